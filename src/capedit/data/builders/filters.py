"""Steps 2 and 3: keep captions that read like the image's own (BLEU) and mean something else (SPICE)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from capedit.data.builders.captions import IntArray, Tokens
from capedit.metrics.bleu import STATISTICS, bleu_from_statistics
from capedit.metrics.evaluation import SpiceScorer
from capedit.metrics.fluency import FUNCTION_WORDS
from capedit.metrics.ngrams import MAX_ORDER

Scores = NDArray[np.float64]
ORDERS = 3
"""BLEU-1 to BLEU-3 are computed; the filter asks for the last two."""


class CaptionBleu:
    """Multi-reference BLEU of captions of a table against captions of the same table, millions of times over.

    Every n-gram of the table gets a number once. Then an image's references fill a table of counts, and the n-grams
    of its candidates are looked up in it all at once: a candidate costs a microsecond. An n-gram that occurs for the
    k-th time in its caption is matched if some reference has it k times, which is BLEU's clipping.
    """

    def __init__(self, captions: Sequence[Tokens]) -> None:
        self.lengths: IntArray = np.fromiter(map(len, captions), np.int64, len(captions))
        self._starts = np.cumsum(self.lengths) - self.lengths
        number: dict[str, int] = {}
        words = np.fromiter(
            (number.setdefault(word, len(number)) for caption in captions for word in caption),
            np.int64,
            int(self.lengths.sum()),
        )
        caption_of = np.repeat(np.arange(len(captions)), self.lengths)
        remaining = np.repeat(self._starts + self.lengths, self.lengths) - np.arange(len(words))
        self._grams: list[NDArray[np.int32]] = []
        self._times: list[NDArray[np.uint8]] = []
        self._counts: list[NDArray[np.uint8]] = []
        grams = np.zeros(len(words), np.int64)
        for order in range(1, ORDERS + 1):
            last_word = words[np.minimum(np.arange(len(words)) + order - 1, len(words) - 1)]
            _, grams = np.unique(grams * len(number) + last_word, return_inverse=True)
            grams = np.where(remaining >= order, grams + 1, 0)  # 0: no n-gram begins here
            self._grams.append(grams.astype(np.int32))
            self._times.append(_times_seen(caption_of, grams))
            self._counts.append(np.zeros(int(grams.max(initial=0)) + 1, np.uint8))

    def scores(self, candidates: IntArray, references: Sequence[int]) -> Scores:
        """BLEU-1 to BLEU-3 of each candidate against all references together: (candidates, ORDERS)."""
        chosen = np.asarray(references, np.int64)
        lengths = self.lengths[candidates]
        statistics = np.zeros((len(candidates), STATISTICS))
        reference_words, candidate_words = self._positions(chosen), self._positions(candidates)
        ends = np.cumsum(lengths)
        for order in range(ORDERS):
            grams, times, counts = self._grams[order], self._times[order], self._counts[order]
            np.maximum.at(counts, grams[reference_words], times[reference_words])
            counts[0] = 0
            matched = np.zeros(len(candidate_words) + 1, np.int64)
            np.cumsum(counts[grams[candidate_words]] >= times[candidate_words], out=matched[1:])
            counts[grams[reference_words]] = 0
            statistics[:, order] = matched[ends] - matched[ends - lengths]
            statistics[:, MAX_ORDER + order] = np.maximum(lengths - order, 0)
        statistics[:, -2] = lengths
        statistics[:, -1] = _closest(lengths, self.lengths[chosen])
        return np.asarray(bleu_from_statistics(statistics)[:, :ORDERS], np.float64)

    def _positions(self, captions: IntArray) -> IntArray:
        """The words of captions, end to end, as positions in the flat arrays."""
        lengths = self.lengths[captions]
        ends = np.cumsum(lengths)
        return np.repeat(self._starts[captions] - (ends - lengths), lengths) + np.arange(int(lengths.sum()))


def _times_seen(caption_of: IntArray, grams: IntArray) -> NDArray[np.uint8]:
    """For each n-gram, the how-manieth of its kind in its caption it is, from 1; at most 255."""
    order = np.argsort(caption_of * (int(grams.max(initial=0)) + 1) + grams, kind="stable")
    caption, gram = caption_of[order], grams[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (caption[1:] != caption[:-1]) | (gram[1:] != gram[:-1])
    run_start = np.flatnonzero(is_first)[np.cumsum(is_first) - 1] if len(order) else order
    times = np.empty(len(order), np.int64)
    times[order] = np.arange(len(order)) - run_start + 1
    return np.asarray(times.clip(max=255), np.uint8)


def _closest(lengths: IntArray, references: IntArray) -> IntArray:
    """The reference length nearest to each length; of two equally near, the shorter."""
    ascending = np.sort(references)
    nearest = np.abs(ascending[None, :] - lengths[:, None]).argmin(axis=1)  # the first of equals
    return np.asarray(ascending[nearest], np.int64)


class Meaning(Protocol):
    """How much of what captions say is said by references, between 0 and 1: SPICE, or what stands in for it."""

    @property
    def name(self) -> str:
        """For reports."""

    def scores(self, candidates: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> Scores:
        """(candidates,), each against all its references together. Called with a few hundred at a time."""


class Against(StrEnum):
    """What SPICE compares a candidate with: `each` caption of the image by itself, of which the highest score counts,
    or `all` of them merged into one scene graph, as when captioning systems are scored.

    The paper does not say, and published pairs do not settle it (docs/benchmarks.md). As a whole they resemble what
    `each` leaves; but one in six breaks that rule, while nearly all meet `all`, which removes hardly anything.
    """

    EACH = "each"
    ALL = "all"


@dataclass(frozen=True)
class SpiceMeaning:
    """The paper's filter, by any SPICE."""

    spice: SpiceScorer
    against: Against = Against.EACH

    @property
    def name(self) -> str:
        return f"{self.spice.kind} against {self.against}"

    def scores(self, candidates: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> Scores:
        if not candidates:
            return np.zeros(0)
        texts = [[" ".join(reference) for reference in several] for several in references]
        hypotheses = [" ".join(candidate) for candidate in candidates]
        if self.against is Against.ALL:
            return np.array([score.f for score in self.spice.scores(hypotheses, texts)], np.float64)
        counts = np.fromiter(map(len, texts), np.int64, len(texts))
        repeated = [text for text, count in zip(hypotheses, counts, strict=True) for _ in range(count)]
        single = self.spice.scores(repeated, [[text] for several in texts for text in several])
        return np.maximum.reduceat(np.array([score.f for score in single], np.float64), np.cumsum(counts) - counts)


@dataclass(frozen=True)
class ContentOverlap:
    """A stand-in for SPICE that needs no parser: shared content words.

    The harmonic mean of the share of a candidate's content words that some reference has, and of the share of a
    reference's content words that the candidate has, averaged over references. It is not SPICE: on published pairs a
    limit of 0.40 selects much as SPICE < 0.35 does.
    """

    name: str = "content overlap"

    def scores(self, candidates: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> Scores:
        return np.array([_overlap(*pair) for pair in zip(candidates, references, strict=True)], np.float64)


def content_words(caption: Tokens) -> frozenset[str]:
    return frozenset(caption) - FUNCTION_WORDS


def _overlap(candidate: Tokens, references: Sequence[Tokens]) -> float:
    words = content_words(candidate)
    wanted = [found for found in map(content_words, references) if found]
    if not words or not wanted:
        return 0.0
    precision = len(words & frozenset[str]().union(*wanted)) / len(words)
    recall = sum(len(words & reference) / len(reference) for reference in wanted) / len(wanted)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
