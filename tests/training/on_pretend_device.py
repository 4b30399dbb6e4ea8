"""Every network trains, evaluates, is saved, resumed and loaded on a device that is not the CPU. A program.

A process of its own, for a device cannot be taken back. It writes what each trial found, on either device, or why it
failed.
"""

import json
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from capedit.data.builders.captions import CaptionTable
from capedit.experiments.reproduce.tigers import TigerEditor, combined
from capedit.models.device import placed, working_on
from capedit.models.dual_encoder import DualEncoder, DualEncoderConfig
from capedit.models.dual_encoder import Vocabulary as DualVocabulary
from capedit.models.efficientnet import LITE_CONFIGS, EfficientNetLite
from capedit.models.efficientnet_tail import GemmTail
from capedit.models.systems import SYSTEM_FILE, SYSTEMS, describe_system, load_system, save_system
from capedit.models.tiger import Tiger
from capedit.models.tiger_files import load_tiger, save_tiger
from capedit.models.tiger_onnx import export_tiger
from capedit.models.tiger_torch import TorchModules
from capedit.training import TrainConfig, fit
from capedit.training.caption_words import CaptionWordsTask, WordReader, WordTargets
from capedit.training.dual_encoder import DualEncoderTask
from capedit.training.grounding import GroundingTask
from capedit.training.pairs import Lesson
from capedit.training.systems import SystemExamination
from capedit.training.task import Task
from capedit.training.tiger import TigerTraining
from tests.calling import run
from tests.editing.tiny import DIM, tiny_config
from tests.training import made, test_tiger, test_train_command
from tests.training.pretend_device import PRETEND, There

CONFIG = TrainConfig(steps=4, batch_size=6, learning_rate=0.01, evaluate_every=4, checkpoint_every=2, average=0.9)
Figures = dict[str, float]
PAIRS = made.made_pairs(6)
WRITERS = ("updn", "updn-e", "mn", "etn")
TIGERS = {
    "published": TigerTraining(),
    "ours": TigerTraining(right=1.0, slips=0.5, strangers=0.5, holes=0.2, own_states=0.5, draws=2, word_noise=0.02),
}


def main(folder: str) -> None:
    root = Path(folder)
    found: dict[str, dict[str, Any]] = {}
    for name, trial in TRIALS.items():
        found[name] = {}
        for device in (torch.device("cpu"), PRETEND):
            try:
                with working_on(device):
                    found[name][device.type] = trial(root / device.type / name.replace(" ", "-"))
            except Exception:  # noqa: BLE001 (told, and judged by the test)
                found[name][device.type] = traceback.format_exc()
    (root / "found.json").write_text(json.dumps(found))


def train(task: Task, out: Path) -> Figures:
    """Half of a run, the rest of it from its checkpoint, and what is left on either way."""
    assert {parameter.device for parameter in task.model.parameters()} == {torch.get_default_device()}
    losses, calls = task.loss, 0

    def break_off(batch: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise MemoryError
        return losses(batch)

    with suppress(MemoryError), patch.object(task, "loss", break_off):
        fit(task, CONFIG, out)
    assert calls == 4
    figures = fit(task, CONFIG, out)
    moved = sum(float(parameter.detach().abs().sum()) for parameter in task.model.parameters())
    return {**figures, "weights": moved}


def train_system(name: str) -> Callable[[Path], Figures]:
    def trial(out: Path) -> Figures:
        out.mkdir(parents=True)
        task = made.made_task(name, out, PAIRS, **({"longest": 8} if name in WRITERS else {}))
        figures = train(task, out / "run")
        save_system(task.model, out / "system.safetensors")
        loaded = load_system(out / "system.safetensors")
        examination = SystemExamination(made.questions(PAIRS), made.made_store(out / "store", PAIRS))
        assert examination.outcomes(loaded) == examination.outcomes(task.model.eval())
        return figures

    return trial


def train_tiger(name: str) -> Callable[[Path], Figures]:
    def trial(out: Path) -> Figures:
        out.mkdir(parents=True)
        task, exam = test_tiger.made_task(out, TIGERS[name], 8)
        figures = train(task, out / "run")
        save_tiger(task.model, out / "weights.safetensors")
        loaded = load_tiger(out / "weights.safetensors")
        return {**figures, **exam(TorchModules(loaded, test_tiger.VOCABULARY))}

    return trial


def ground(out: Path) -> Figures:
    out.mkdir(parents=True)
    task, exam = test_tiger.made_task(out, TIGERS["ours"], 8)
    pairs, store = test_tiger.made_pairs(8), test_tiger.made_store(out / "store", [])
    lesson = Lesson.of(pairs, [(image, right) for image, _, right in pairs], test_tiger.VOCABULARY)
    grounding = GroundingTask(task.model.grounding, test_tiger.VOCABULARY, lesson, store, exam.questions)
    return train(grounding, out / "run")


def editors_of_the_paper(out: Path) -> Figures:
    """TIger behind the face of the compared systems, and one made of parts of two."""
    store, questions = made.made_store(out / "store", PAIRS), made.questions(PAIRS)
    torch.manual_seed(0)
    parts = [Tiger(tiny_config(shared=False, concepts=None, grounding=None, matching=False)) for _ in range(2)]
    editor = TigerEditor.published(combined(*parts), made.VOCABULARY, 2)
    return SystemExamination(questions, store).scores(editor)


def dual_encoder(out: Path) -> Figures:
    store = made.made_store(out / "store", PAIRS)
    table = CaptionTable.from_pairs((int(image), tuple(target)) for image, _, target in PAIRS)
    torch.manual_seed(0)
    shape = DualEncoderConfig(features=DIM, width=16, heads=2, text_layers=1)
    model = DualEncoder(shape, DualVocabulary.from_captions(table.captions, 1), "made")
    even, odd = table.only(lambda image: image % 2 == 0), table.only(lambda image: image % 2 == 1)
    figures = train(DualEncoderTask(model, even, odd, store, str), out / "run")
    model.save(out / "saved")
    assert DualEncoder.load(out / "saved").hash == model.hash
    return figures


class Maps:
    """What the frozen stages of an image encoder would have made."""

    header = "made"

    def __len__(self) -> int:
        return 12

    def batch(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = np.random.default_rng(0).random((12, 4, 112), np.float32)[positions]
        return found


def caption_words(out: Path) -> Figures:
    colours = ("red", "green", "blue")
    table = CaptionTable.from_pairs((number, ("a", colours[number % 3], "square")) for number in range(12))
    targets = WordTargets(table, colours)
    torch.manual_seed(0)
    with working_on(torch.device("cpu")):
        network = EfficientNetLite(LITE_CONFIGS["lite0"]).eval()
        model = WordReader(GemmTail(network, 5, 2), network.config.dim, targets.mean(range(12)))
    task = CaptionWordsTask(placed(model), Maps(), targets, [0, 1, 2])  # type: ignore[arg-type]
    figures = train(task, out)
    model.tail.write_back(network)
    assert {parameter.device.type for parameter in network.parameters()} == {"cpu"}
    return figures


def elsewhere_than_the_default(out: Path) -> Figures:
    """A model serves from a thread whose default device is another, and is exported from wherever it is."""
    out.mkdir(parents=True)
    task, exam = test_tiger.made_task(out, TIGERS["ours"], 8)
    assert isinstance(task.model.match_fit, There) == (torch.get_default_device() == PRETEND)
    with working_on(torch.device("cpu")):
        figures = exam(TorchModules(task.model.eval(), test_tiger.VOCABULARY))
    files = export_tiger(task.model, out / "onnx")
    return {**figures, **{path.name: float(len(path.read_bytes())) for path in files}}


def train_by_command(out: Path) -> Figures:
    """`capedit train` and all that comes after: calibration, marks, the model folder."""
    call(test_train_command.arguments(made_files(out))[:-1])
    marks: Figures = json.loads((out / "run/model/model.json").read_text())["marks"]
    return marks


def train_system_by_command(out: Path) -> Figures:
    files = made_files(out)
    told = ["--edits", files / "train.jsonl", "--val", files / "val.jsonl", "--features", files / "store"]
    call(["train", "v-felix", *told, "--out", out / "run", "--steps", "2"])
    return dict(describe_system(out / "run" / SYSTEM_FILE).card.marks)


def made_files(out: Path) -> Path:
    out.mkdir(parents=True)
    folder: Path = test_train_command.files.__wrapped__(out)  # type: ignore[attr-defined]
    return folder


def call(arguments: Sequence[object]) -> None:
    """A command that chooses the device that is at work here. Networks must have come to it."""
    device, seen = torch.get_default_device(), list[torch.device]()

    def note(module: nn.Module) -> nn.Module:
        seen.append(next(placed(module).parameters()).device)
        return module

    with (
        working_on(torch.device("cpu")),
        patch("capedit.models.device.choose_device", lambda name: device),
        patch("capedit.training.train_tiger.placed", note),
        patch("capedit.training.train_system.placed", note),
    ):
        assert run(*arguments) == 0
    assert set(seen) == {device}


def forgotten(out: Path) -> Figures:
    """What is left where it is must not go unseen."""
    with patch("capedit.training.images.tensor", torch.from_numpy):
        return train(made.made_task("updn", out, PAIRS, longest=8), out / "run")


def not_read_back(out: Path) -> Figures:
    with patch("capedit.models.tiger_torch.array", lambda tensor: tensor.numpy()):
        return train(test_tiger.made_task(out, TIGERS["published"], 8)[0], out / "run")


TRIALS: dict[str, Callable[[Path], Figures]] = {
    **{name: train_system(name) for name in SYSTEMS},
    **{f"tiger {name}": train_tiger(name) for name in TIGERS},
    "grounding": ground,
    "editors of the paper": editors_of_the_paper,
    "dual encoder": dual_encoder,
    "caption words": caption_words,
    "elsewhere than the default": elsewhere_than_the_default,
    "capedit train": train_by_command,
    "capedit train v-felix": train_system_by_command,
    "forgotten": forgotten,
    "not read back": not_read_back,
}

if __name__ == "__main__":
    main(*sys.argv[1:])
