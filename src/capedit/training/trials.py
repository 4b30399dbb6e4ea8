"""Edits that a model in training makes by itself: captions to go on from, and what its decisions are worth."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from capedit.metrics.clashes import find_open_seams
from capedit.models.decoding import Knobs, decode, frame
from capedit.models.draft import Draft
from capedit.models.runtime import Floats, Images
from capedit.models.tiger_torch import TorchModules
from capedit.training.pairs import MAX_WORDS, Pair
from capedit.training.states import Path, path_taken
from capedit.training.worth import Opening, Rewards, doubtful

KNOBS = Knobs(rounds=2, stop_bias=-0.5)
"""Of such an edit. It also adds words that Tagger_add would rather not, to learn whether it should."""
LIVELINESS = 0.5
"""Of the noise that the first edit's deletions are drawn with: with 1, as likely as the model finds them."""


class Round(NamedTuple):
    """One round of insertion in an edit, and what came of it."""

    path: Path
    number: int
    gains: Floats
    """For each place where something was added in this round or later: by how much that made the caption better."""
    openings: list[Opening]
    """The places of this round's words in the finished caption."""


class Tried(NamedTuple):
    """What the model itself made of a pair."""

    draft: Draft
    """The best of its edits."""
    worth: Floats | None = None
    """Of deleting each word of the source: the reward if it falls less the reward if it stays; 0 where not tried."""
    rounds: Sequence[Round] = ()


class Trials:
    """Tries edits of captions, and their opposites."""

    def __init__(self, modules: TorchModules, rewards: Rewards | None, flips: int) -> None:
        """`flips` is how many deletions of a caption are also decided the other way round, to reward the better."""
        self._modules, self.rewards, self._flips = modules, rewards, flips

    def of(self, pairs: Sequence[Pair], images: Images, chances: Sequence[np.random.Generator]) -> list[Tried]:
        """Try each pair with its image; all that is random about it comes from its own generator."""
        if not pairs:
            return []
        model = self._modules.model
        training = model.training
        model.eval()
        found = self._tried(pairs, images, chances)
        model.train(training)
        return found

    def _tried(self, pairs: Sequence[Pair], images: Images, chances: Sequence[np.random.Generator]) -> list[Tried]:
        words = self._modules.vocabulary.words
        captions = [[words[word] for word in pair.source] for pair in pairs]
        seen = self._modules.see(images)
        logits = self._modules.delete(frame(captions, self._modules.vocabulary), seen)[0]
        flipped = []  # for each pair, the words whose deletion is decided the other way round
        owners, falls = list[int](), list[NDArray[np.bool_]]()
        for number, (pair, chance) in enumerate(zip(pairs, chances, strict=True)):
            mine = logits[number, 1 : len(pair.source) + 1]
            fall = np.zeros(MAX_WORDS, bool)
            fall[: len(mine)] = mine + LIVELINESS * chance.logistic(size=len(mine)) > 0
            flipped.append(doubtful(mine, self._flips, chance))
            for word in (None, *flipped[-1]):
                owners.append(number)
                falls.append(fall.copy())
                if word is not None:
                    falls[-1][word] = not fall[word]
        drafts = decode(
            self._modules,
            seen.rows(np.array(owners)),
            [captions[number] for number in owners],
            KNOBS,
            breaks=find_open_seams,
            falls=np.stack(falls),
        )
        if self.rewards is None:
            return [Tried(draft) for draft in drafts]
        told = self._modules.vocabulary.encode
        rewards = self.rewards.of([told(draft.tokens) for draft in drafts], [pairs[number] for number in owners])
        found, start = [], 0
        for pair, tested, chance in zip(pairs, flipped, chances, strict=True):
            part = slice(start, start + 1 + len(tested))
            start = part.stop
            worth = np.zeros(len(pair.source), np.float32)
            worth[tested] = np.where(falls[part.start][tested], -1, 1) * (rewards[part][1:] - rewards[part.start])
            best = drafts[part.start + int(rewards[part].argmax())]
            other = drafts[int(chance.integers(part.start, part.stop))]
            rounds = [self._round(draft, pair, chance) for draft in (best, other)]
            found.append(Tried(best, worth, [each for each in rounds if each is not None]))
        return found

    def _round(self, draft: Draft, pair: Pair, rng: np.random.Generator) -> Round | None:
        """One of the rounds in which the edit added words."""
        assert self.rewards is not None
        path = path_taken(draft, self._modules.vocabulary)
        number = path.draw_round(rng)
        if number is None:
            return None
        caption = path.target
        without = [[word for at, word in enumerate(caption) if at not in run] for run in path.missing(number - 1)]
        rewards = self.rewards.of([caption, *without], [pair] * (1 + len(without)))
        openings = [Opening(caption, at, pair) for at in path.inserted(number)]
        return Round(path, number, rewards[0] - rewards[1:], openings)

    def state(self, tried: Tried, rng: np.random.Generator) -> list[int] | None:
        """A caption that the model made on its way; not the reference itself, which is seen anyway."""
        made = tried.draft.trace().states[1:]
        return self._modules.vocabulary.encode(made[int(rng.integers(len(made)))]) if made else None
