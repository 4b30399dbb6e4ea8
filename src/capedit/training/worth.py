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
from capedit.training.pairs import Lesson, Pair

LEAST_DOUBT = 0.01
"""Variance of a decision below which trying its opposite teaches next to nothing."""
DOCUMENTS = 5000
"""Targets whose n-grams are counted: about as many as val and test have. The more there are, the more a rare n-gram
would weigh; what is rewarded should be what is measured."""


class Opening(NamedTuple):
    """A place of a finished caption in which another word might stand, and the pair that it was made of."""

    caption: Sequence[int]
    at: int
    pair: Pair

    def filled(self, word: int) -> list[int]:
        """The caption with this word in the place."""
        return [*self.caption[: self.at], word, *self.caption[self.at + 1 :]]


class Rewards:
    """CIDEr-D of captions by the document frequencies of targets; with ROUGE-L, and by more than the target, if
    asked for."""

    def __init__(self, lesson: Lesson, vocabulary: Vocabulary, overlap: float = 0.0, witnesses: float = 0.0) -> None:
        """`overlap` is what ROUGE-L (0 to 1) counts beside CIDEr-D (0 to 10), `witnesses` what the other right captions
        of the image count together; the target counts the rest of 1."""
        self._words, self._overlap, self._witnesses = vocabulary.words, overlap, witnesses
        self._right = lesson.right
        counted = lesson.pairs[:: max(1, len(lesson.pairs) // DOCUMENTS)]
        self._frequencies = DocumentFrequencies.from_pairs(("", [self._told(pair.target)]) for pair in counted)

    def of(self, captions: Sequence[Sequence[int]], pairs: Sequence[Pair]) -> Floats:
        """Of each caption by the target of its pair, and by the witnesses of its image."""
        compared, shares, owners = [], list[float](), list[int]()
        for owner, (caption, pair) in enumerate(zip(captions, pairs, strict=True)):
            told = self._told(caption)
            for reference, share in self._references(pair):
                compared.append((told, [self._told(reference)]))
                shares.append(share)
                owners.append(owner)
        rewards = cider(compared, self._frequencies)[1]
        if self._overlap:
            rewards = rewards + self._overlap * rouge_l(compared)[1]
        return np.bincount(owners, rewards * shares, len(captions)).astype(np.float32)

    def of_words(self, openings: Sequence[Opening], words: NDArray[np.int64]) -> Floats:
        """Of each of some words (openings, words) in its place."""
        captions = [o.filled(word) for o, row in zip(openings, words.tolist(), strict=True) for word in row]
        pairs = [opening.pair for opening in openings for _ in range(words.shape[1])]
        return self.of(captions, pairs).reshape(words.shape)

    def _references(self, pair: Pair) -> list[tuple[Sequence[int], float]]:
        """What a caption of the pair is compared with, and how much that counts."""
        others = [caption for caption in self._right.get(pair.image, ()) if caption != pair.target]
        if not self._witnesses or not others:
            return [(pair.target, 1.0)]
        return [(pair.target, 1 - self._witnesses), *((other, self._witnesses / len(others)) for other in others)]

    def _told(self, caption: Sequence[int]) -> list[str]:
        return [self._words[word] for word in caption]


def doubtful(logits: Floats, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Up to so many of some decisions (their logits), drawn by how doubtful each is; the certain ones never."""
    likely = sigmoid(logits)
    doubt, chance = likely * (1 - likely), rng.gumbel(size=len(logits))
    open_to = np.flatnonzero(doubt > LEAST_DOUBT)
    order = np.argsort(-(np.log(doubt[open_to]) + chance[open_to]))
    return np.sort(open_to[order[:count]])
