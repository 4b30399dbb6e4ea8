"""Edits that a model in training makes by itself: captions to go on from, and what its decisions are worth."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from capedit.metrics.clashes import find_open_seams
from capedit.models.decoding import Knobs, decode
from capedit.models.draft import Draft
from capedit.models.runtime import Floats, Images
from capedit.models.tiger_torch import TorchModules
from capedit.training.pairs import MAX_WORDS, Pair
from capedit.training.worth import Rewards, extremes, nudges, worth

ROUNDS = 2
"""Most rounds of insertion in such an edit."""


class Tried(NamedTuple):
    """The best edit that the model itself made of a pair, and what was learned by trying: the worth of each deletion,
    or edits that differ in their insertions and by how much they are better than the mean."""

    draft: Draft
    worth: Floats | None = None
    told_apart: Sequence[tuple[Draft, float]] = ()


class Trials:
    """Draws edits of captions; rewards them, if there are several of each."""

    def __init__(
        self, modules: TorchModules, pairs: Sequence[Pair], draws: int, word_draws: float, overlap: float
    ) -> None:
        """Either the deletions of a caption are drawn, or, for a share `word_draws` of captions, the insertions.

        `overlap` is the share of ROUGE-L in the reward.
        """
        self._modules, self._draws, self._word_draws = modules, draws, word_draws
        self._rewards = Rewards(pairs, modules.vocabulary, overlap) if draws > 1 else None

    @property
    def rewarded(self) -> bool:
        return self._rewards is not None

    def of(self, pairs: Sequence[Pair], images: Images, chances: Sequence[np.random.Generator]) -> list[Tried]:
        """Try each pair with its image; all that is random about it comes from its own generator."""
        if not pairs:
            return []
        of_words = [chance.random() < self._word_draws for chance in chances]
        drafts = self._drawn(pairs, images, chances, of_words)
        if self._rewards is None:
            return [Tried(draft) for draft in drafts]
        rewards = self._rewards.of(drafts, [pair for pair in pairs for _ in range(self._draws)])
        found = []
        for number, words in enumerate(of_words):
            part = slice(number * self._draws, (number + 1) * self._draws)
            drawn, reward = drafts[part], rewards[part]
            best = drawn[int(reward.argmax())]
            found.append(Tried(best, None, extremes(drawn, reward)) if words else Tried(best, worth(drawn, reward)))
        return found

    def _drawn(
        self, pairs: Sequence[Pair], images: Images, chances: Sequence[np.random.Generator], of_words: Sequence[bool]
    ) -> list[Draft]:
        """So many edits of each pair, one after the other."""
        times, model, words = self._draws, self._modules.model, self._modules.vocabulary.words
        noise = np.concatenate([nudges(times, MAX_WORDS + 1, chance) for chance in chances])
        noise[np.repeat(of_words, times)] = 0.0
        training = model.training
        model.eval()
        seen = self._modules.see(images).rows(np.repeat(np.arange(len(pairs)), times))
        drafts = decode(
            self._modules,
            seen,
            [[words[word] for word in pair.source] for pair in pairs for _ in range(times)],
            Knobs(rounds=ROUNDS),
            breaks=find_open_seams,
            nudges=noise,
            chances=[c if drawn else None for c, drawn in zip(chances, of_words, strict=True) for _ in range(times)],
        )
        model.train(training)
        return drafts

    def state(self, tried: Tried, rng: np.random.Generator) -> list[int] | None:
        """A caption that the model made on its way; not the reference itself, which is seen anyway."""
        made = tried.draft.trace().states[1:]
        return self._modules.vocabulary.encode(made[int(rng.integers(len(made)))]) if made else None
