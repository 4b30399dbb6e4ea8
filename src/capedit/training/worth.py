"""What a decision is worth, found by trying: a reward for whole edits, shared out over what was decided in them.

Tagger_del learns from gold edits which words go. But a word that the annotator happened to phrase otherwise is not
worth the risk of deleting it, and a word next to others that go may be. So edits are drawn from the model itself, each
is scored by the CIDEr-D of the caption that comes out, and deletions that go with better captions are made likelier.
For independent decisions with the mean reward as baseline, the policy gradient of REINFORCE is the covariance of
deleting the word with the reward, times the gradient of the word's logit. Where to add and which word come in rounds,
each upon the one before, so edits that differ in them are told apart whole: the best is made likelier, the worst less
likely. Not in the paper.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from capedit.metrics import DocumentFrequencies, cider, rouge_l
from capedit.models.draft import FROM_SOURCE, Draft
from capedit.models.runtime import Floats
from capedit.models.vocabulary import Vocabulary
from capedit.training.pairs import Pair


class Rewards:
    """CIDEr-D of captions of training pairs, by the document frequencies of all targets; with ROUGE-L, if asked for."""

    def __init__(self, pairs: Sequence[Pair], vocabulary: Vocabulary, overlap: float = 0.0) -> None:
        """`overlap` is what ROUGE-L (0 to 1) counts beside CIDEr-D (0 to 10)."""
        self._words, self._overlap = vocabulary.words, overlap
        self._frequencies = DocumentFrequencies.from_pairs(("", [self._told(pair)]) for pair in pairs)

    def of(self, drafts: Sequence[Draft], pairs: Sequence[Pair]) -> Floats:
        """Of each draft as it stands."""
        found = [(draft.tokens, [self._told(pair)]) for draft, pair in zip(drafts, pairs, strict=True)]
        rewards = cider(found, self._frequencies)[1]
        if self._overlap:
            rewards = rewards + self._overlap * rouge_l(found)[1]
        return rewards.astype(np.float32)

    def _told(self, pair: Pair) -> list[str]:
        return [self._words[word] for word in pair.target]


def deletions(draft: Draft) -> NDArray[np.bool_]:
    """Which words of the source fell."""
    return np.array([not word.stands for word in draft.words if word.born == FROM_SOURCE])


def worth(drawn: Sequence[Draft], rewards: Floats) -> Floats:
    """The covariance of each source word's deletion with the reward, over edits of one caption."""
    gains = rewards - rewards.mean()
    covariance: Floats = gains @ np.stack([deletions(draft) for draft in drawn]).astype(np.float32)
    return covariance / np.float32(len(drawn) - 1)


def extremes(drawn: Sequence[Draft], rewards: Floats) -> list[tuple[Draft, float]]:
    """The best and the worst of some edits of one caption, and by how much they differ from the mean reward."""
    gains = rewards - rewards.mean()
    return [(drawn[at], float(gains[at])) for at in (int(gains.argmax()), int(gains.argmin())) if gains[at] != 0]


def nudges(rows: int, words: int, rng: np.random.Generator) -> Floats:
    """Noise (rows, words) that makes a draw of a decision: a logit with it is above 0 as often as its sigmoid says."""
    return rng.logistic(size=(rows, words)).astype(np.float32)
