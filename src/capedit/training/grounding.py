"""Train the grounding by contrast."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from capedit.models.grounding import Grounding
from capedit.models.vilbert import TextInput, VisionInput
from capedit.models.vocabulary import MASK, UNKNOWN, Vocabulary
from capedit.training.examination import Question
from capedit.training.images import vision_of
from capedit.training.pairs import Lesson
from capedit.training.rows import text_of
from capedit.training.task import LossTerm
from capedit.training.telling import tell_apart
from capedit.vision import FeatureStore

WORD_NOISE = 0.05
"""Share of words hidden in training, so that no caption hangs on one word."""


class Batch(NamedTuple):
    """Images; a right caption of each (the first captions), then wrong captions of some (the rest)."""

    vision: VisionInput
    text: TextInput
    mistaken: Tensor  # (wrong captions,) the image that each was written for by mistake


class GroundingTask:
    """An example is an image, with one of its captions and, where there is one, a wrong caption."""

    name = "grounding"
    metric = "AUC"

    def __init__(
        self,
        model: Grounding,
        vocabulary: Vocabulary,
        lesson: Lesson,
        store: FeatureStore,
        questions: Sequence[Question],
    ) -> None:
        self._model, self._vocabulary, self._store, self._questions = model, vocabulary, store, questions
        self._lesson = lesson
        self._images = [image for image, captions in lesson.right.items() if captions]
        self._wrong: dict[str, list[list[int]]] = {}
        for pair in lesson.pairs:
            if pair.source != pair.target:
                self._wrong.setdefault(pair.image, []).append(pair.source)

    @property
    def model(self) -> Grounding:
        return self._model

    def __len__(self) -> int:
        return len(self._images)

    def fingerprint(self) -> str:
        parts = [self._lesson.fingerprint(), self._store.header.encoder_hash, json.dumps(asdict(self._model.config))]
        return sha256("\n".join(parts).encode()).hexdigest()[:16]

    def rate_factor(self, parameter: str) -> float:
        return 1.0

    def batch(self, indices: NDArray[np.int64], rng: np.random.Generator) -> Batch:
        images = [self._images[index] for index in indices]
        step = int(rng.integers(2**32))
        right, wrong, mistaken = [], [], []
        for at, (index, image) in enumerate(zip(indices, images, strict=True)):
            draw = np.random.default_rng([step, int(index)])
            right.append(_hidden(_one_of(self._lesson.right[image], draw), draw))
            if image in self._wrong:
                wrong.append(_hidden(_one_of(self._wrong[image], draw), draw))
                mistaken.append(at)
        vision = vision_of(self._store.batch(images))
        return Batch(vision, text_of([*right, *wrong]), torch.tensor(mistaken, dtype=torch.long))

    def loss_weights(self, batch: Batch) -> Mapping[str, float]:
        images, wrong = len(batch.vision.features), len(batch.mistaken)
        return {"contrast": float(images), "ranking": float(images * wrong)}

    def loss(self, batch: Batch) -> Mapping[str, LossTerm]:
        model, images = self._model, len(batch.vision.features)
        scores = model.fit(model.words(batch.text), model.cells(batch.vision)) * model.log_scale.exp()  # (C, I)
        own = torch.arange(images)
        to_caption = nn.functional.cross_entropy(scores.T, own, reduction="sum")
        to_image = nn.functional.cross_entropy(scores[:images], own, reduction="sum")
        right = scores[own, own]
        wrong = scores[images + torch.arange(len(batch.mistaken)), batch.mistaken]
        ranking = -nn.functional.logsigmoid(right[:, None] - wrong).sum()  # any right caption above any wrong one
        return {"contrast": LossTerm((to_caption + to_image) / 2), "ranking": LossTerm(ranking)}

    def evaluate(self) -> Mapping[str, float]:
        return tell_apart(self._judge, self._questions, self._vocabulary, self._store)

    def _judge(self, text: TextInput, vision: VisionInput) -> Tensor:
        return self._model.evidence(self._model.words(text), self._model.cells(vision)).fit


def _one_of(captions: Sequence[list[int]], rng: np.random.Generator) -> list[int]:
    return captions[int(rng.integers(len(captions)))]


def _hidden(caption: list[int], rng: np.random.Generator) -> list[int]:
    hide = rng.random(len(caption)) < WORD_NOISE
    return [UNKNOWN if h and word > MASK else word for word, h in zip(caption, hide, strict=True)]
