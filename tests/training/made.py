"""Pairs of captions of images that are made up, and every compared system in small. Also a program for torchrun."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from capedit.models.attention_lstm import WriterConfig
from capedit.models.edit_nts import EditNtsConfig
from capedit.models.felix import FelixConfig
from capedit.models.laser_tagger import LaserTaggerConfig
from capedit.models.phrase_vocabulary import PhraseVocabulary
from capedit.models.system import System
from capedit.models.systems import SYSTEMS
from capedit.models.vilbert import StreamConfig, VilbertConfig, VisionInput
from capedit.models.vocabulary import Vocabulary
from capedit.training import TrainConfig
from capedit.training.distributed import Workers, join_workers
from capedit.training.examination import Question
from capedit.training.images import vision_of
from capedit.training.loop import make_optimizer, train_step
from capedit.training.pairs import Lesson
from capedit.training.systems import SystemExamination, SystemTask
from capedit.vision import FeatureStore, StoreWriter, VisualTokens
from capedit.vision.tokens import grid_corners
from tests.editing.tiny import DIM, WORDS, MeanColours

VOCABULARY = Vocabulary(WORDS)
THINGS, PLACES, COLOURS = ["dog", "cat", "man", "woman"], ["sofa", "table", "grass"], ["red", "blue"]
SHORT_RUN = TrainConfig(steps=4, batch_size=9, learning_rate=0.01)
Made = tuple[str, list[str], list[str]]


def made_pairs(count: int = 64) -> list[Made]:
    """Image, wrong caption and right one, of many lengths; each image has a right caption that only it tells."""
    rng = np.random.default_rng(0)
    pairs = []
    for number in range(count):
        thing, other = rng.permutation(THINGS)[:2].tolist()
        place, colour = str(rng.choice(PLACES)), str(rng.choice(COLOURS))
        target = ["a", thing, "is", "running", "on", "the", colour, place]
        if number % 2:
            target = ["two", thing, "and", "a", colour, other, "with", "the", place]
        kept = [word for word in target if rng.random() < 0.6]
        for word in rng.choice(WORDS, size=3).tolist():
            kept.insert(int(rng.integers(len(kept) + 1)), word)
        pairs.append((f"{number}", kept, target))
    assert len({tuple(source) for _, source, _ in pairs}) == count  # so that a system without eyes can learn them, too
    return pairs


def made_store(folder: Path, pairs: Sequence[Made]) -> FeatureStore:
    """Features that mean nothing, but differ from image to image; some images have fewer tokens than others."""
    rng = np.random.default_rng(1)
    if not folder.exists():
        with StoreWriter(folder, MeanColours()) as writer:
            for image, _, _ in pairs:
                rows = 1 + int(image) % 2
                features = rng.normal(size=(2 * rows, DIM)).astype(np.float32)
                writer.add(image, VisualTokens.from_regions(features, grid_corners(rows, 2)))
    return FeatureStore(folder)


def images(store: FeatureStore, count: int) -> VisionInput:
    return vision_of(store.batch([str(number) for number in range(count)]))


def made_system(name: str, pairs: Sequence[Made], **changes: Any) -> System:
    """A small system with random weights, and no dropout."""
    torch.manual_seed(0)
    encoder = VilbertConfig(
        vocabulary=len(VOCABULARY),
        text=StreamConfig(width=32, layers=2, heads=2, inner=64),
        vision=StreamConfig(width=32, layers=1, heads=2, inner=64),
        co_width=32,
        co_heads=2,
        feature_width=DIM,
        positions=30,
        dropout=0.0,
    )
    config: Any
    if name == "v-felix":
        config = FelixConfig(encoder, **{"most": 9, **changes})
    elif name == "v-lasertagger":
        ids = [(VOCABULARY.encode(source), VOCABULARY.encode(target)) for _, source, target in pairs]
        config = LaserTaggerConfig(encoder, PhraseVocabulary.from_pairs(ids, size=None).phrases, **changes)
    else:
        kind = EditNtsConfig if name == "v-editnts" else WriterConfig
        shape = {"width": 48, "word_width": 24, "attention_width": 24, "dropout": 0.0}
        config = kind(DIM, **{**shape, **changes})
    return SYSTEMS[name].build(config, VOCABULARY)


def questions(pairs: Sequence[Made]) -> list[Question]:
    return [Question(image, tuple(source), tuple(target)) for image, source, target in pairs]


def made_task(name: str, folder: Path, pairs: Sequence[Made], **changes: Any) -> SystemTask:
    store = made_store(folder / "store", pairs)
    lesson = Lesson.of(pairs, [], VOCABULARY)
    return SystemTask(made_system(name, pairs, **changes), lesson, store, SystemExamination(questions(pairs), store))


def first_losses(name: str, folder: Path, workers: Workers) -> list[dict[str, float]]:
    """The losses of the first steps, over all processes."""
    task = made_task(name, folder, made_pairs())
    optimizer = make_optimizer(task, SHORT_RUN)
    return [train_step(task, SHORT_RUN, optimizer, step, workers) for step in range(SHORT_RUN.steps)]


def main(folder: str) -> None:
    with join_workers() as workers:
        found = {name: first_losses(name, Path(folder), workers) for name in SYSTEMS}
        if workers.leads:
            (Path(folder) / "losses.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
