"""What the seven compared systems have in common, so that one task trains them and one examination marks them.

A system learns from exercises: what it is shown of a pair of captions, and what it should answer. All of them are
trained by cross-entropy alone, as in the paper. It edits captions into outcomes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

import numpy as np
from torch import Tensor, nn

from capedit.edits import Steps, Trace, count_implicit, count_trace
from capedit.models.decoding import frame
from capedit.models.device import tensor
from capedit.models.vilbert import TextInput, VisionInput
from capedit.models.vocabulary import PAD, Vocabulary

UNASKED = -100
"""The label of a place where nothing is asked; what cross-entropy skips."""


class Kind(StrEnum):
    """How a system comes to its caption: by rewriting all of it, or by operations that can be traced."""

    CAPTIONER = "captioner"
    """Does not read the reference caption at all."""
    IMPLICIT = "implicit"
    EXPLICIT = "explicit"


class Outcome(NamedTuple):
    """A caption that a system made of another, what that cost, and for an explicit system how it went."""

    tokens: list[str]
    steps: Steps
    trace: Trace | None = None

    @classmethod
    def edited(cls, trace: Trace) -> "Outcome":
        return cls(trace.target, count_trace(trace), trace)

    @classmethod
    def rewritten(cls, reference: Sequence[str], tokens: Sequence[str]) -> "Outcome":
        return cls(list(tokens), count_implicit(reference, tokens))


@dataclass(frozen=True)
class Exercise:
    """One pair of captions as word ids: rows that are shown, and rows of labels, one for each loss."""

    shown: Mapping[str, Sequence[int]]
    wanted: Mapping[str, Sequence[int]]


class System(nn.Module, ABC):
    """A network with its words."""

    kind: ClassVar[Kind]
    vocabulary: Vocabulary
    config: Any
    """Its shape: a dataclass."""

    @abstractmethod
    def exercise(self, source: Sequence[int], target: Sequence[int]) -> Exercise | None:
        """How to learn from a pair of captions; None if the system has no way to say the target."""

    @abstractmethod
    def answers(
        self, vision: VisionInput, shown: Mapping[str, Tensor], asked: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """For each loss, logits (N, classes) for the N places that are true in `asked` (B, T), in reading order."""

    @abstractmethod
    def edit(self, vision: VisionInput, captions: Sequence[Sequence[str]]) -> list[Outcome]:
        """Edit captions, one for each image. The network must be in evaluation mode."""

    def read(self, captions: Sequence[Sequence[str]]) -> TextInput:
        """Captions between their sentinels."""
        text = frame(captions, self.vocabulary)
        return TextInput(tensor(text.ids), tensor(text.mask))


def edit_what_fits(
    vision: VisionInput,
    captions: Sequence[Sequence[str]],
    max_words: int,
    edit: Callable[[VisionInput, Sequence[Sequence[str]]], list[Outcome]],
) -> list[Outcome]:
    """Edit all captions that an encoder can read; those with more words are left as they are."""
    fitting = [at for at, caption in enumerate(captions) if len(caption) <= max_words]
    if len(fitting) == len(captions):
        return edit(vision, captions)
    outcomes = [Outcome.edited(Trace(tuple(caption), ())) for caption in captions]
    if fitting:
        mask = None if vision.mask is None else vision.mask[fitting]
        images = VisionInput(vision.features[fitting], vision.locations[fitting], mask)
        for at, outcome in zip(fitting, edit(images, [captions[at] for at in fitting]), strict=True):
            outcomes[at] = outcome
    return outcomes


def as_text(ids: Tensor) -> TextInput:
    """Padded rows of word ids as a batch of captions."""
    return TextInput(ids, ids != PAD)


def padded(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    """Rows of numbers as one tensor (B, longest), filled up with a value."""
    filled = np.full((len(rows), max(map(len, rows))), value, np.int64)
    for row, numbers in zip(filled, rows, strict=True):
        row[: len(numbers)] = numbers
    return tensor(filled)
