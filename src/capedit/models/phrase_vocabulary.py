"""The phrases that LaserTagger may add: few of them, chosen so that many training pairs can be told with them."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from capedit.edits import Alignment, align

Word = TypeVar("Word", bound=Hashable)


def added_phrases(source: Sequence[Word], target: Sequence[Word]) -> list[tuple[Word, ...]]:
    """The runs of words that the target has between the words that are kept."""
    phrases, start = [], 0
    for _, found in [*align(source, target, Alignment.REFERENCE), (len(source), len(target))]:
        if found > start:
            phrases.append(tuple(target[start:found]))
        start = found + 1
    return phrases


@dataclass(frozen=True)
class PhraseVocabulary(Generic[Word]):
    """Phrases, the most frequent first, and how much of the data can be told with them."""

    phrases: tuple[tuple[Word, ...], ...]
    pairs_covered: float
    """Share of pairs all of whose added phrases are here: only those can be learned from."""
    phrases_covered: float
    """Share of the added phrases, as often as they are added."""

    @classmethod
    def from_pairs(
        cls,
        pairs: Iterable[tuple[Sequence[Word], Sequence[Word]]],
        size: int | None,
        *,
        without: Iterable[Word] = (),
    ) -> "PhraseVocabulary[Word]":
        """The phrases that most pairs need; all of them if `size` is None.

        Choosing the phrases that cover the most pairs is hard (a minimum k-union); the published answer is to take
        the most frequent. A phrase with a word of `without` is never taken.
        """
        needed = [added_phrases(source, target) for source, target in pairs]
        barred = set(without)
        counts = Counter(phrase for phrases in needed for phrase in set(phrases) if barred.isdisjoint(phrase))
        chosen = tuple(sorted(counts, key=lambda phrase: (-counts[phrase], phrase))[:size])
        known = set(chosen)
        covered = sum(known.issuperset(phrases) for phrases in needed)
        added = sum(map(len, needed))
        there = sum(phrase in known for phrases in needed for phrase in phrases)
        return cls(chosen, covered / max(len(needed), 1), there / max(added, 1))
