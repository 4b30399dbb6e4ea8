"""Train one of the compared systems: setup -> main -> fit, as for TIger."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from capedit.errors import CapeditError
from capedit.models.device import CPU, placed, working_on
from capedit.models.phrase_vocabulary import PhraseVocabulary
from capedit.models.system import System
from capedit.models.systems import SYSTEM_FILE, SYSTEMS, SystemCard, save_system
from capedit.models.vocabulary import UNKNOWN, Vocabulary
from capedit.training.checkpoint import load_checkpoint, load_into
from capedit.training.config import TrainConfig
from capedit.training.distributed import Workers
from capedit.training.examination import Question
from capedit.training.loop import Progress, fit
from capedit.training.material import Material
from capedit.training.pairs import Lesson
from capedit.training.systems import SystemExamination, SystemTask
from capedit.vision import FeatureStore

EXAMINED = 1000
"""Questions asked while training."""
LSTM_SYSTEMS = ("updn", "updn-e", "mn", "etn", "v-editnts")
SMALL_ENCODER: Mapping[str, Any] = {
    "text": {"width": 256, "layers": 4, "heads": 4, "inner": 512},
    "vision": {"width": 256, "layers": 2, "heads": 4, "inner": 512},
    "co_width": 256,
    "co_heads": 4,
    "positions": 64,
    "segments": 1,
    "dropout": 0.0,
}
"""A two-stream encoder that two cores can train."""
SMALL_LSTM: Mapping[str, Any] = {"width": 384, "word_width": 256, "attention_width": 256, "dropout": 0.2}
SMALL_LSTM_RATE = 2e-3
MIN_COUNT = 5
"""How often a word must be seen in small data to be in the vocabulary."""
SMALL = TrainConfig(steps=4000, batch_size=48, learning_rate=6e-4, warmup=0.05, evaluate_every=1000)


@dataclass(frozen=True)
class SystemRecipe:
    """All that decides what comes out, but for the data."""

    system: str
    """One of `SYSTEMS`."""
    shape: Mapping[str, Any]
    """Its config in JSON, less the sizes that the data decide."""
    train: TrainConfig
    phrases: int | None = 500
    """Size of V-LaserTagger's phrase vocabulary; None takes every phrase of the data."""


def small_recipe(system: str, steps: int | None = None, phrases: int | None = 500) -> SystemRecipe:
    """What `capedit train` takes for a system that is named; `capedit reproduce --scale small` has the same shapes."""
    lstm = system in LSTM_SYSTEMS
    train = replace(SMALL, learning_rate=SMALL_LSTM_RATE) if lstm else SMALL
    if steps is not None:
        train = replace(train, steps=steps, evaluate_every=min(steps, train.evaluate_every))
    return SystemRecipe(system, SMALL_LSTM if lstm else {"encoder": SMALL_ENCODER}, train, phrases)


@dataclass(frozen=True)
class TrainedSystem:
    """What came out, and what is worth telling about its training."""

    system: System
    notes: dict[str, float]


def train_system(
    recipe: SystemRecipe,
    material: Material,
    questions: Sequence[Question],
    vocabulary: Vocabulary,
    store: FeatureStore,
    out: Path,
    *,
    workers: Workers | None = None,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> TrainedSystem:
    """Train, or go on training, in `out`; the finished system is in `out` under `SYSTEM_FILE`.

    Images of the questions are never trained on.
    """
    task, notes = setup(recipe, material, questions, vocabulary, store)
    leads = workers is None or workers.leads
    if leads:
        out.mkdir(parents=True, exist_ok=True)
        described = {**asdict(recipe), "notes": notes}
        (out / "recipe.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    figures = fit(task, recipe.train, out / "run", workers=workers, watch=watch)
    best = out / "run" / "best.safetensors"
    load_into(task.model, load_checkpoint(best).tensors, best)
    if leads:
        card = SystemCard(store.header.encoder_hash, {task.metric: figures[task.metric]})
        save_system(task.model, out / SYSTEM_FILE, card)
    task.model.eval()
    return TrainedSystem(task.model, notes)


def setup(
    recipe: SystemRecipe,
    material: Material,
    questions: Sequence[Question],
    vocabulary: Vocabulary,
    store: FeatureStore,
) -> tuple[SystemTask, dict[str, float]]:
    """The system as it starts, with its lessons and its examination."""
    material = material.without({question.image for question in questions})
    if not material.edits:
        raise CapeditError(f"{store.path}: holds no image of any edit to train on")
    lesson = Lesson.of(material.edits, [], vocabulary)
    torch.manual_seed(recipe.train.seed)
    with working_on(CPU):  # the same start on every device
        system, notes = build_system(recipe, lesson, vocabulary, store.header.dim)
    examination = SystemExamination(questions[:: max(1, len(questions) // EXAMINED)], store)
    task = SystemTask(placed(system), lesson, store, examination)
    if not len(task):
        raise CapeditError(f"{recipe.system}: not one of {len(lesson.pairs)} pairs can be said with its operations")
    return task, {**notes, "pairs": float(len(task)), "pairs skipped": float(task.skipped)}


def build_system(
    recipe: SystemRecipe, lesson: Lesson, vocabulary: Vocabulary, feature_width: int
) -> tuple[System, dict[str, float]]:
    """A system of the recipe's shape with random weights; for V-LaserTagger, also what its phrases cover."""
    entry = SYSTEMS.get(recipe.system)
    if entry is None:
        raise CapeditError(f"system {recipe.system!r}: not one of {', '.join(SYSTEMS)}")
    shape, notes = dict(recipe.shape), dict[str, float]()
    if "encoder" in shape:
        shape["encoder"] = {**shape["encoder"], "vocabulary": len(vocabulary), "feature_width": feature_width}
    else:
        shape["feature_width"] = feature_width
    if recipe.system == "v-lasertagger":
        pairs = ((pair.source, pair.target) for pair in lesson.pairs)
        found = PhraseVocabulary.from_pairs(pairs, recipe.phrases, without=[UNKNOWN])
        shape["phrases"] = found.phrases
        notes = {
            "phrases": float(len(found.phrases)),
            "% of pairs covered": 100 * found.pairs_covered,
            "% of phrases covered": 100 * found.phrases_covered,
        }
    return entry.build(entry.read_config(shape), vocabulary), notes
