"""Train the matching head by itself, when all else is trained.

While TIger learns to edit, its matching head learns from all captions that are read on the way: wrong ones, right ones,
slips, captions of other images. What it is asked in the end is a narrower question: is this caption, which somebody
wrote of an image much like this one, wrong? So when Tagger_del reads as it always will, the head learns that alone,
from both captions of every pair. Nothing else changes, so edits stay as they are. Not in the paper.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from capedit.models.tiger import Tiger
from capedit.models.vilbert import TextInput, VisionInput
from capedit.models.vocabulary import Vocabulary
from capedit.training.examination import Question
from capedit.training.images import vision_of
from capedit.training.pairs import Lesson
from capedit.training.rows import text_of
from capedit.training.task import LossTerm
from capedit.training.telling import tell_apart
from capedit.vision import WITHHELD, FeatureStore


class Batch(NamedTuple):
    """Images, and for each of them a wrong caption (the first captions) and a right one (the rest)."""

    vision: VisionInput
    text: TextInput


class MatchingTask:
    """An example is an edit: its source does not fit the image, its target does."""

    name = "matching"
    metric = "AUC"

    def __init__(
        self,
        model: Tiger,
        vocabulary: Vocabulary,
        lesson: Lesson,
        store: FeatureStore,
        questions: Sequence[Question],
    ) -> None:
        self._model, self._vocabulary, self._store, self._questions = model, vocabulary, store, questions
        self._lesson = lesson
        self._pairs = [pair for pair in lesson.pairs if pair.source != pair.target and pair.image != WITHHELD]

    @property
    def model(self) -> Tiger:
        return self._model

    def __len__(self) -> int:
        return len(self._pairs)

    def fingerprint(self) -> str:
        parts = [self._lesson.fingerprint(), self._store.header.encoder_hash, repr(self._model.config)]
        return sha256("\n".join(parts).encode()).hexdigest()[:16]

    def rate_factor(self, parameter: str) -> float:
        return float(parameter.startswith("match"))  # the head, and what the grounding's opinion counts in it

    def batch(self, indices: NDArray[np.int64], rng: np.random.Generator) -> Batch:
        pairs = [self._pairs[index] for index in indices]
        text = text_of([*(pair.source for pair in pairs), *(pair.target for pair in pairs)])
        return Batch(vision_of(self._store.batch([pair.image for pair in pairs])), text)

    def loss_weights(self, batch: Batch) -> Mapping[str, float]:
        return {"match": float(len(batch.text.ids))}

    def loss(self, batch: Batch) -> Mapping[str, LossTerm]:
        images = len(batch.vision.features)
        logits = self._judge(batch.text, batch.vision)
        fits = torch.arange(len(logits), device=logits.device) >= images
        return {
            "match": LossTerm(nn.functional.binary_cross_entropy_with_logits(logits, fits.float(), reduction="sum"))
        }

    def evaluate(self) -> Mapping[str, float]:
        return tell_apart(self._judge, self._questions, self._vocabulary, self._store)

    def _judge(self, text: TextInput, vision: VisionInput) -> Tensor:
        """Logits of captions and images belonging together; where there are more captions, images serve in turn."""
        images = len(vision.features)
        sight = self._model.see(vision).rows(torch.arange(len(text.ids), device=text.ids.device) % images)
        match = self._model.delete(text, sight)[1]
        assert match is not None
        return match
