"""Training samples of TIger: captions on their way from reference to target, and what each module should say of them.

All of it works on word ids; a sample is one row of a batch for one module.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from capedit.edits import Alignment, Order, align
from capedit.edits.rounds import insertion_rounds
from capedit.models.draft import FROM_SOURCE, Draft
from capedit.models.vocabulary import Vocabulary

KEEP, CHANGE, IGNORE = 0, 1, -100
"""Labels. IGNORE is what cross-entropy skips."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Tokens with sentinels, and a label for each: a tag, or the word behind a mask."""

    tokens: list[int]
    labels: list[int]


@dataclass(frozen=True)
class Path:
    """The way from a caption to its target: which source words stay, and which words go into the gap after each.

    `gaps[0]` comes before the first kept word, `gaps[i]` after the i-th; so there is one more gap than kept words.
    """

    source: Sequence[int]
    kept: list[int]
    """Positions in the source."""
    gaps: list[list[int]]
    schedule: list[list[int]]
    """For every word of every gap, the round in which it is inserted, from 1."""

    @classmethod
    def planned(cls, source: Sequence[int], kept: list[int], gaps: list[list[int]], order: Order) -> "Path":
        """With every gap filled in this order."""
        return cls(source, kept, gaps, [insertion_rounds(len(gap), order) for gap in gaps])

    @property
    def rounds(self) -> int:
        return max((max(rounds) for rounds in self.schedule if rounds), default=0)

    @property
    def target(self) -> list[int]:
        """The caption at the end of the way."""
        return [word for word, _ in self._finished()]

    def inserted(self, round: int) -> list[int]:
        """Where in the target the words of a round stand."""
        return [at for at, (_, when) in enumerate(self._finished()) if when == round]

    def missing(self, after: int) -> list[list[int]]:
        """Where in the target the words stand that are not there yet after so many rounds; side by side, together."""
        runs: list[list[int]] = [[]]
        for at, (_, when) in enumerate(self._finished()):
            if when > after:
                runs[-1].append(at)
            else:
                runs.append([])
        return [run for run in runs if run]

    def _finished(self) -> list[tuple[int, int]]:
        """The words of the target, each with the round in which it is inserted; 0 if it is kept."""
        words = list[tuple[int, int]]()
        for place, (gap, schedule) in enumerate(zip(self.gaps, self.schedule, strict=True)):
            words += zip(gap, schedule, strict=True)
            if place < len(self.kept):
                words.append((self.source[self.kept[place]], 0))
        return words

    def draw_round(self, rng: np.random.Generator) -> int | None:
        """A round in which words come, every word being as likely as any other to be among them."""
        rounds = [when for gap in self.schedule for when in gap]
        return rounds[int(rng.integers(len(rounds)))] if rounds else None


def find_path(source: Sequence[int], target: Sequence[int], alignment: Alignment, order: Order) -> Path:
    pairs = align(source, target, alignment)
    gaps, start = [], 0
    for _, j in [*pairs, (len(source), len(target))]:
        gaps.append(list(target[start:j]))
        start = j + 1
    return Path.planned(source, [i for i, _ in pairs], gaps, order)


def path_taken(draft: Draft, vocabulary: Vocabulary) -> Path:
    """The way that an editor took by itself, in one look."""
    source = [word for word in draft.words if word.born == FROM_SOURCE]
    gaps: list[list[int]] = [[]]
    schedule: list[list[int]] = [[]]
    for word in draft.standing:
        if word.born == FROM_SOURCE:
            gaps.append([])
            schedule.append([])
        else:
            gaps[-1] += vocabulary.encode([word.text])
            schedule[-1].append(word.born - 1)  # the first round deletes
    kept = [at for at, word in enumerate(source) if word.stands]
    return Path(vocabulary.encode([word.text for word in source]), kept, gaps, schedule)


@dataclass(frozen=True)
class Sentinels:
    """The ids that frame and mask captions."""

    start: int
    end: int
    mask: int


class Sampler:
    """Makes samples of paths."""

    def __init__(self, sentinels: Sentinels) -> None:
        self._sentinels = sentinels

    def deletion(self, path: Path) -> Sample:
        """The reference caption: KEEP or DELETE each word; sentinels have no say."""
        kept = set(path.kept)
        labels = [KEEP if i in kept else CHANGE for i in range(len(path.source))]
        return Sample(self._framed(path.source), [IGNORE, *labels, IGNORE])

    def addition(self, path: Path, after: int) -> Sample:
        """The caption after so many rounds: is a word missing behind this one? The start may say so, the end not."""
        tokens, labels = [self._sentinels.start], list[int]()
        for place, (gap, schedule) in enumerate(zip(path.gaps, path.schedule, strict=True)):
            missing = 0
            for word, when in zip(gap, schedule, strict=True):
                if when > after:
                    missing += 1
                else:
                    labels.append(CHANGE if missing else KEEP)
                    tokens.append(word)
                    missing = 0
            labels.append(CHANGE if missing else KEEP)
            if place < len(path.kept):
                tokens.append(path.source[path.kept[place]])
        return Sample([*tokens, self._sentinels.end], [*labels, IGNORE])

    def insertion(self, path: Path, round: int) -> Sample:
        """The caption with a mask wherever this round inserts a word: which word is it?"""
        tokens, labels = [self._sentinels.start], [IGNORE]
        for place, (gap, schedule) in enumerate(zip(path.gaps, path.schedule, strict=True)):
            for word, when in zip(gap, schedule, strict=True):
                if when == round:
                    tokens.append(self._sentinels.mask)
                    labels.append(word)
                elif when < round:
                    tokens.append(word)
                    labels.append(IGNORE)
            if place < len(path.kept):
                tokens.append(path.source[path.kept[place]])
                labels.append(IGNORE)
        return Sample([*tokens, self._sentinels.end], [*labels, IGNORE])

    def _framed(self, tokens: Sequence[int]) -> list[int]:
        return [self._sentinels.start, *tokens, self._sentinels.end]
