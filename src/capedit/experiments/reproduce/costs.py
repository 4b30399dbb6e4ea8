"""What editing a caption costs: time, multiply-accumulates, parameters."""

import time

from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from capedit.experiments.reproduce.benchmark import Benchmark
from capedit.experiments.reproduce.tigers import TigerEditor
from capedit.models.accounting import parameters
from capedit.models.tiger_torch import TorchModules
from capedit.training.images import vision_of
from capedit.training.systems import Edits


def measure_cost(editor: Edits, benchmark: Benchmark, captions: int) -> dict[str, float]:
    """Means over the first captions, edited one by one."""
    asked = [
        (vision_of(benchmark.store.batch([question.image])), [question.reference])
        for question in benchmark.questions[:captions]
    ]
    editor.edit(*asked[0])  # warm up
    start = time.perf_counter()
    for vision, references in asked:
        editor.edit(vision, references)
    seconds = (time.perf_counter() - start) / len(asked)
    with FlopCounterMode(display=False) as counter:
        for vision, references in asked:
            editor.edit(vision, references)
    network = _network(editor)
    return {
        "IT (ms)": 1000 * seconds,
        "GMACs": counter.get_total_flops() / 2e9 / len(asked),  # a multiply-accumulate is two operations
        "M parameters": parameters(network) / 1e6,
    }


def _network(editor: Edits) -> nn.Module:
    if isinstance(editor, TigerEditor):
        assert isinstance(editor.modules, TorchModules)
        return editor.modules.model
    assert isinstance(editor, nn.Module)
    return editor
