"""Captions to learn from, as word ids: edits, right captions, and ways to make wrong ones out of right ones."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from capedit.edits import Alignment, Order
from capedit.models.vocabulary import UNKNOWN, Vocabulary
from capedit.training.states import Path, find_path

Tokens = Sequence[str]
MAX_WORDS = 20
"""Longer captions are not trained on: one would pad the whole batch."""


class Pair(NamedTuple):
    """A caption of an image, and what should become of it; equal where nothing should."""

    image: str
    """The id under which a feature store keeps the image."""
    source: list[int]
    target: list[int]


@dataclass(frozen=True)
class Lesson:
    """All that is trained on: pairs, and the captions that are known to be right, of their images and of others."""

    pairs: Sequence[Pair]
    right: Mapping[str, Sequence[list[int]]]

    @classmethod
    def of(
        cls,
        edits: Iterable[tuple[str, Tokens, Tokens]],
        right: Iterable[tuple[str, Tokens]],
        vocabulary: Vocabulary,
    ) -> "Lesson":
        """From (image, reference, target) and (image, caption)."""
        pairs = [
            Pair(image, vocabulary.encode(source), vocabulary.encode(target))
            for image, source, target in edits
            if max(len(source), len(target)) <= MAX_WORDS
        ]
        known: dict[str, list[list[int]]] = {pair.image: [] for pair in pairs}
        for image, caption in right:
            if len(caption) <= MAX_WORDS:
                known.setdefault(image, []).append(vocabulary.encode(caption))
        return cls(pairs, known)

    def right_caption(self, pair: Pair, rng: np.random.Generator) -> list[int]:
        """A right caption of the pair's image; its target where no other is known."""
        captions = self.right[pair.image]
        return captions[int(rng.integers(len(captions)))] if captions else pair.target

    def fingerprint(self) -> str:
        digest = sha256()
        for pair in self.pairs:
            digest.update(repr(pair).encode())
        digest.update(str(sum(map(len, self.right.values()))).encode())
        return digest.hexdigest()[:16]


class Slips:
    """Which word is mistaken for which: learned from edits that replace one word by one other."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        counts: dict[int, Counter[int]] = {}
        for pair in pairs:
            for wrong, right in replacements(pair):
                counts.setdefault(right, Counter())[wrong] += 1
        self._wrong = {
            right: (np.array(list(found)), np.array(list(found.values()), float) / found.total())
            for right, found in counts.items()
        }

    def slip(self, caption: Sequence[int], words: int, rng: np.random.Generator) -> list[int]:
        """The caption with up to so many words mistaken for others."""
        wrong = list(caption)
        candidates = [at for at, word in enumerate(caption) if word in self._wrong]
        for at in rng.permutation(candidates)[:words].tolist():
            choices, weights = self._wrong[caption[at]]
            wrong[at] = int(rng.choice(choices, p=weights))
        return wrong


def replacements(pair: Pair) -> list[tuple[int, int]]:
    """(wrong, right) wherever exactly one word stands for one other."""
    path = find_path(pair.source, pair.target, Alignment.SHORTEST, Order.LEFT_TO_RIGHT)
    bounds = [-1, *path.kept, len(pair.source)]
    found = []
    for place, gap in enumerate(path.gaps):
        fallen = pair.source[bounds[place] + 1 : bounds[place + 1]]
        if len(gap) == len(fallen) == 1 and UNKNOWN not in (gap[0], fallen[0]):
            found.append((fallen[0], gap[0]))
    return found


def with_holes(caption: Sequence[int], order: Order, rng: np.random.Generator, share: float = 0.4) -> Path:
    """The way to a caption from one without some spans: what a deletion may leave, for learning to fill it."""
    keep = np.ones(len(caption), bool)
    wanted = max(1, round(share * rng.uniform(0.25, 1.75) * len(caption)))
    while keep.sum() > max(0, len(caption) - wanted):
        start, length = int(rng.integers(len(caption))), min(int(rng.geometric(0.5)), 4)
        keep[start : start + length] = False
    gaps: list[list[int]] = [[]]
    for word, stays in zip(caption, keep, strict=True):
        if stays:
            gaps.append([])
        else:
            gaps[-1].append(word)
    left = [word for word, stays in zip(caption, keep, strict=True) if stays]
    return Path.planned(left, list(range(len(left))), gaps, order)


def as_it_stands(state: Sequence[int], target: Sequence[int], alignment: Alignment, order: Order) -> Path:
    """The way from a caption to its target by insertion alone.

    Words that should have gone are still there; a gap in which one stands is taken, and gets nothing more.
    """
    gold = find_path(state, target, alignment, order)
    gaps: list[list[int]] = [[] for _ in range(len(state) + 1)]
    schedule: list[list[int]] = [[] for _ in range(len(state) + 1)]
    bounds = [-1, *gold.kept, len(state)]
    for place, gap in enumerate(gold.gaps):
        if bounds[place + 1] == bounds[place] + 1:  # nothing stands between
            gaps[bounds[place + 1]], schedule[bounds[place + 1]] = gap, gold.schedule[place]
    return Path(state, list(range(len(state))), gaps, schedule)
