"""What a caption is worth, and so what each decision was worth that led to it.

Gold edits teach which words go. But a word that the annotator happened to phrase otherwise is not worth the risk of
deleting it, and a word next to others that go may be. So the model's own edits are rewarded by the CIDEr-D of the
caption that comes out. Each decision is judged by itself: by how much better the caption is than the one that the
opposite decision would have led to, all others being equal. Not in the paper.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from capedit.metrics import DocumentFrequencies, cider, rouge_l
from capedit.models.decoding import sigmoid
from capedit.models.runtime import Floats
from capedit.models.vocabulary import Vocabulary
from capedit.training.pairs import Pair

LEAST_DOUBT = 0.01
"""Variance of a decision below which trying its opposite teaches next to nothing."""


class Opening(NamedTuple):
    """A place of a finished caption in which another word might stand, and the caption that it should have become."""

    caption: Sequence[int]
    at: int
    target: Sequence[int]

    def filled(self, word: int) -> list[int]:
        """The caption with this word in the place."""
        return [*self.caption[: self.at], word, *self.caption[self.at + 1 :]]


class Rewards:
    """CIDEr-D of captions of training pairs, by the document frequencies of all targets; with ROUGE-L, if asked for."""

    def __init__(self, pairs: Sequence[Pair], vocabulary: Vocabulary, overlap: float = 0.0) -> None:
        """`overlap` is what ROUGE-L (0 to 1) counts beside CIDEr-D (0 to 10)."""
        self._words, self._overlap = vocabulary.words, overlap
        self._frequencies = DocumentFrequencies.from_pairs(("", [self._told(pair.target)]) for pair in pairs)

    def of(self, captions: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Floats:
        """Of each caption by its target."""
        found = [(self._told(one), [self._told(other)]) for one, other in zip(captions, targets, strict=True)]
        rewards = cider(found, self._frequencies)[1]
        if self._overlap:
            rewards = rewards + self._overlap * rouge_l(found)[1]
        return rewards.astype(np.float32)

    def of_words(self, openings: Sequence[Opening], words: NDArray[np.int64]) -> Floats:
        """Of each of some words (openings, words) in its place."""
        captions = [o.filled(word) for o, row in zip(openings, words.tolist(), strict=True) for word in row]
        targets = [opening.target for opening in openings for _ in range(words.shape[1])]
        return self.of(captions, targets).reshape(words.shape)

    def _told(self, caption: Sequence[int]) -> list[str]:
        return [self._words[word] for word in caption]


def doubtful(logits: Floats, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Up to so many of some decisions (their logits), drawn by how doubtful each is; the certain ones never."""
    likely = sigmoid(logits)
    doubt, chance = likely * (1 - likely), rng.gumbel(size=len(logits))
    open_to = np.flatnonzero(doubt > LEAST_DOUBT)
    order = np.argsort(-(np.log(doubt[open_to]) + chance[open_to]))
    return np.sort(open_to[order[:count]])
