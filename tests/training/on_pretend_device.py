"""Every network trains, evaluates, is saved, resumed and loaded on a device that is not the CPU. A program.

A process of its own, for a device cannot be taken back. It writes what each trial found, on either device, or why it
failed.
"""

import json
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from capedit.experiments.reproduce.tigers import TigerEditor, combined
from capedit.models.concepts import ConceptConfig, ConceptHead
from capedit.models.device import working_on
from capedit.models.systems import SYSTEMS, load_system, save_system
from capedit.models.tiger import Tiger
from capedit.models.tiger_files import load_tiger, save_tiger
from capedit.models.tiger_onnx import export_tiger
from capedit.models.tiger_torch import TorchModules
from capedit.training import TrainConfig, fit
from capedit.training.concepts import ConceptTask
from capedit.training.grounding import GroundingTask
from capedit.training.matching import MatchingTask
from capedit.training.pairs import Lesson, Pair
from capedit.training.systems import SystemExamination
from capedit.training.task import Task
from capedit.training.tiger import TigerTraining
from tests.editing.tiny import DIM, tiny_config
from tests.training import made, test_tiger
from tests.training.pretend_device import PRETEND, There

CONFIG = TrainConfig(steps=3, batch_size=4, learning_rate=0.01, evaluate_every=3, checkpoint_every=2, average=0.9)
Figures = dict[str, float]
PAIRS = made.made_pairs(4)
WRITERS = ("updn", "updn-e", "mn", "etn")
TIGERS = {
    "published": TigerTraining(),
    "ours": TigerTraining(right=1.0, slips=0.5, strangers=0.5, holes=0.2, own_states=0.5, flips=2, word_noise=0.02),
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
    """The most of a run, the rest of it from its checkpoint, and what is left on either way."""
    assert {parameter.device for parameter in task.model.parameters()} == {torch.get_default_device()}
    losses, calls = task.loss, 0

    def break_off(batch: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise MemoryError
        return losses(batch)

    with suppress(MemoryError), patch.object(task, "loss", break_off):
        fit(task, CONFIG, out)
    assert calls == 3
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
        task, exam = test_tiger.made_task(out, TIGERS[name], 4)
        figures = train(task, out / "run")
        save_tiger(task.model, out / "weights.safetensors")
        loaded = load_tiger(out / "weights.safetensors")
        return {**figures, **exam(TorchModules(loaded, test_tiger.VOCABULARY))}

    return trial


def ground(out: Path) -> Figures:
    out.mkdir(parents=True)
    task, exam = test_tiger.made_task(out, TIGERS["ours"], 4)
    pairs, store = test_tiger.made_pairs(4), test_tiger.made_store(out / "store", [])
    lesson = Lesson.of(pairs, [(image, right) for image, _, right in pairs], test_tiger.VOCABULARY)
    grounding = GroundingTask(task.model.grounding, test_tiger.VOCABULARY, lesson, store, exam.questions)
    examined = [Pair(image, [], test_tiger.VOCABULARY.encode(right)) for image, _, right in pairs]
    torch.manual_seed(0)
    head = ConceptHead(DIM, ConceptConfig(words=8, shown=3, layers=1))
    concepts = ConceptTask(head, task.model.concept_words, lesson, store, examined)
    matching = MatchingTask(task.model, test_tiger.VOCABULARY, lesson, store, exam.questions)
    return {
        **train(concepts, out / "concepts"),
        **train(grounding, out / "run"),
        **{f"{name} of matching": figure for name, figure in train(matching, out / "matching").items()},
    }


def editors_of_the_paper(out: Path) -> Figures:
    """TIger behind the face of the compared systems, and one made of parts of two."""
    store, questions = made.made_store(out / "store", PAIRS), made.questions(PAIRS)
    torch.manual_seed(0)
    parts = [Tiger(tiny_config(shared=False, concepts=None, grounding=None, matching=False)) for _ in range(2)]
    editor = TigerEditor.published(combined(*parts), made.VOCABULARY, 2)
    return SystemExamination(questions, store).scores(editor)


def elsewhere_than_the_default(out: Path) -> Figures:
    """A model serves from a thread whose default device is another, and is exported from wherever it is."""
    out.mkdir(parents=True)
    task, exam = test_tiger.made_task(out, TIGERS["ours"], 4)
    assert isinstance(task.model.match_fit, There) == (torch.get_default_device() == PRETEND)
    with working_on(torch.device("cpu")):
        figures = exam(TorchModules(task.model.eval(), test_tiger.VOCABULARY))
    files = export_tiger(task.model, out / "onnx")
    return {**figures, **{path.name: float(len(path.read_bytes())) for path in files}}


def forgotten(out: Path) -> Figures:
    """What is left where it is must not go unseen."""
    with patch("capedit.training.images.tensor", torch.from_numpy):
        return train(made.made_task("updn", out, PAIRS, longest=8), out / "run")


def not_read_back(out: Path) -> Figures:
    with patch("capedit.models.tiger_torch.array", lambda tensor: tensor.numpy()):
        return train(test_tiger.made_task(out, TIGERS["published"], 4)[0], out / "run")


TRIALS: dict[str, Callable[[Path], Figures]] = {
    **{name: train_system(name) for name in SYSTEMS},
    **{f"tiger {name}": train_tiger(name) for name in TIGERS},
    "grounding": ground,
    "editors of the paper": editors_of_the_paper,
    "elsewhere than the default": elsewhere_than_the_default,
    "forgotten": forgotten,
    "not read back": not_read_back,
}

if __name__ == "__main__":
    main(*sys.argv[1:])
