"""Train and mark the compared systems: one task and one examination for all seven."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from capedit.metrics import EditCosts, Evaluation, SpiceScorer, evaluate
from capedit.models.system import UNASKED, Outcome, System, padded
from capedit.models.systems import name_of
from capedit.models.vilbert import VisionInput
from capedit.models.vocabulary import PAD
from capedit.training.examination import Question
from capedit.training.images import vision_of
from capedit.training.pairs import Lesson
from capedit.training.task import LossTerm
from capedit.vision import FeatureStore

EXAMINED_AT_ONCE = 64


class Batch(NamedTuple):
    """Images, and the exercises that go with them: rows (B, T) by name."""

    vision: VisionInput
    shown: dict[str, Tensor]
    wanted: dict[str, Tensor]


class SystemTask:
    """An example is a pair of captions; the loss is the cross-entropy of all that the system is asked."""

    metric = "CIDEr-D"

    def __init__(
        self,
        system: System,
        lesson: Lesson,
        store: FeatureStore,
        examine: Callable[[System], Mapping[str, float]],
    ) -> None:
        """`examine` scores the system on validation data."""
        self.name = name_of(system)
        self._system, self._lesson, self._store, self._examine = system, lesson, store, examine
        self._pairs = [pair for pair in lesson.pairs if system.exercise(pair.source, pair.target) is not None]
        self.skipped = len(lesson.pairs) - len(self._pairs)
        """Pairs that the system has no way to learn from."""

    @property
    def model(self) -> System:
        return self._system

    def __len__(self) -> int:
        return len(self._pairs)

    def fingerprint(self) -> str:
        parts = [self.name, self._lesson.fingerprint(), self._store.header.encoder_hash]
        parts += [json.dumps(asdict(self._system.config), sort_keys=True), repr(self._system.vocabulary.words)]
        return sha256("\n".join(parts).encode()).hexdigest()[:16]

    def rate_factor(self, parameter: str) -> float:
        return 1.0

    def batch(self, indices: NDArray[np.int64], rng: np.random.Generator) -> Batch:
        pairs = [self._pairs[index] for index in indices]
        exercises = [self._system.exercise(pair.source, pair.target) for pair in pairs]
        shown = [exercise.shown for exercise in exercises if exercise is not None]
        wanted = [exercise.wanted for exercise in exercises if exercise is not None]
        return Batch(
            vision_of(self._store.batch([pair.image for pair in pairs])), _rows(shown, PAD), _rows(wanted, UNASKED)
        )

    def loss_weights(self, batch: Batch) -> Mapping[str, float]:
        return {name: float((labels != UNASKED).sum()) for name, labels in batch.wanted.items()}

    def loss(self, batch: Batch) -> Mapping[str, LossTerm]:
        asked = {name: labels != UNASKED for name, labels in batch.wanted.items()}
        answers = self._system.answers(batch.vision, batch.shown, asked)
        return {
            name: LossTerm(nn.functional.cross_entropy(logits, batch.wanted[name][asked[name]], reduction="sum"))
            for name, logits in answers.items()
        }

    def evaluate(self) -> Mapping[str, float]:
        return self._examine(self._system)


class Edits(Protocol):
    """All that an examination asks of a system."""

    def edit(self, vision: VisionInput, captions: Sequence[Sequence[str]]) -> list[Outcome]: ...


class SystemExamination:
    """Questions about images of a feature store, for any of the systems."""

    def __init__(self, questions: Sequence[Question], store: FeatureStore) -> None:
        self.questions, self._store = list(questions), store

    def __call__(self, system: Edits) -> dict[str, float]:
        """The marks to watch while training."""
        scores = self.scores(system)
        return {name: scores[name] for name in ("CIDEr-D", "GPS")}

    def scores(self, system: Edits) -> dict[str, float]:
        """All marks but SPICE."""
        return dict(self.evaluate(self.outcomes(system)).scores)

    def outcomes(self, system: Edits, captions: Sequence[Sequence[str]] | None = None) -> list[Outcome]:
        """What the system makes of the questions' references, or of other captions, one for each question."""
        given = [question.reference for question in self.questions] if captions is None else captions
        order = sorted(range(len(given)), key=lambda at: len(given[at]))  # like lengths together
        found: dict[int, Outcome] = {}
        for start in range(0, len(order), EXAMINED_AT_ONCE):
            part = order[start : start + EXAMINED_AT_ONCE]
            vision = vision_of(self._store.batch([self.questions[at].image for at in part]))
            found.update(zip(part, system.edit(vision, [given[at] for at in part]), strict=True))
        return [found[at] for at in range(len(given))]

    def evaluate(self, outcomes: Sequence[Outcome], *, spice: SpiceScorer | None = None) -> Evaluation:
        """Caption metrics, steps and gain, in the words of `capedit score`."""
        pairs = [(outcome.tokens, [q.target]) for outcome, q in zip(outcomes, self.questions, strict=True)]
        costs = EditCosts([outcome.steps for outcome in outcomes], [q.reference for q in self.questions])
        return evaluate(pairs, edits=costs, spice=spice)


def _rows(parts: Sequence[Mapping[str, Sequence[int]]], value: int) -> dict[str, Tensor]:
    return {name: padded([part[name] for part in parts], value) for name in parts[0]}
