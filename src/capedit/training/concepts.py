"""Train what the cells of an image say together of its words: the layers of the concept channel."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from capedit.models.concepts import ConceptHead, ConceptWords
from capedit.models.device import array, tensor
from capedit.models.vilbert import VisionInput
from capedit.training.images import vision_of
from capedit.training.pairs import Lesson, Pair
from capedit.training.task import LossTerm
from capedit.vision.store import TokenSource

EVALUATION_BATCH = 128
WITHHELD = 0.02
"""Share of the images that are not shown, so that it stays known which words are usual."""


class Batch(NamedTuple):
    """Images, and the share of their captions that have each concept word (B, C)."""

    vision: VisionInput
    shares: Tensor


class ConceptTask:
    """An example is an image; its loss is the binary cross-entropy of all concept words, summed."""

    name = "concepts"
    metric = "gain"
    """Nats an image over the linear scores, on the images that are examined."""

    def __init__(
        self, head: ConceptHead, words: ConceptWords, lesson: Lesson, store: TokenSource, examined: Sequence[Pair]
    ) -> None:
        self._head, self._of_token, self._store, self._lesson = head, array(words.of_token), store, lesson
        self._images = [image for image, captions in lesson.right.items() if captions]
        self._examined: dict[str, list[list[int]]] = {}
        for pair in examined:
            self._examined.setdefault(pair.image, []).append(pair.target)
        self._before = self._examine()

    @property
    def model(self) -> ConceptHead:
        return self._head

    def __len__(self) -> int:
        return len(self._images)

    def fingerprint(self) -> str:
        shape = {name: tuple(weight.shape) for name, weight in self._head.state_dict().items()}
        parts = [self._lesson.fingerprint(), self._store.header.encoder_hash, shape]
        return sha256(repr(parts).encode()).hexdigest()[:16]

    def rate_factor(self, parameter: str) -> float:
        return 0.0 if parameter.startswith("score.") else 1.0  # the linear scores are the encoder's

    def batch(self, indices: NDArray[np.int64], rng: np.random.Generator) -> Batch:
        step = int(rng.integers(2**32))
        images = [self._images[index] for index in indices]
        shown = [np.random.default_rng([step, int(index)]).random() >= WITHHELD for index in indices]
        vision = _withhold(vision_of(self._store.batch(images)), tensor(np.array(shown)))
        return Batch(vision, self.shares([self._lesson.right[image] for image in images]))

    def loss_weights(self, batch: Batch) -> Mapping[str, float]:
        return {"words": float(len(batch.shares))}

    def loss(self, batch: Batch) -> Mapping[str, LossTerm]:
        return {"words": LossTerm(self.surprise(batch.vision, batch.shares))}

    def surprise(self, vision: VisionInput, shares: Tensor) -> Tensor:
        """Nats that the words of all these images cost together."""
        return _loss(self._head(vision)[:, 0], shares)

    def evaluate(self) -> Mapping[str, float]:
        loss = self._examine()
        return {"gain": self._before - loss, "nats": loss}

    @torch.no_grad()
    def _examine(self) -> float:
        """Nats an image."""
        total, images = 0.0, list(self._examined)
        for start in range(0, len(images), EVALUATION_BATCH):
            part = images[start : start + EVALUATION_BATCH]
            vision = vision_of(self._store.batch(part))
            total += float(self.surprise(vision, self.shares([self._examined[image] for image in part])))
        return total / len(images)

    def shares(self, captions: Sequence[Sequence[Sequence[int]]]) -> Tensor:
        """For the captions of each image, the share that has each concept word (B, C)."""
        found = np.zeros((len(captions), len(self._head.prior)), np.float32)
        for row, known in zip(found, captions, strict=True):
            for caption in known:
                concepts = np.unique(self._of_token[list(caption)])
                row[concepts[concepts >= 0]] += 1 / len(known)
        return tensor(found)


def _withhold(vision: VisionInput, shown: Tensor) -> VisionInput:
    """Images of which some are nothing but a whole without any feature."""
    there = torch.ones(vision.features.shape[:2], dtype=torch.bool) if vision.mask is None else vision.mask
    first = torch.arange(there.shape[1]) == 0
    return VisionInput(vision.features * shown[:, None, None], vision.locations, there & (shown[:, None] | first))


def _loss(logits: Tensor, shares: Tensor) -> Tensor:
    return nn.functional.binary_cross_entropy_with_logits(logits, shares, reduction="sum")
