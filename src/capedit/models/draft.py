"""A caption while it is edited: words that were there, that went, that came.

Every word keeps the round of its birth and death, so that a decision can be taken back without a trace, and the trace
is told only when all is decided.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from capedit.edits import Op, Operation, Script, Trace

FROM_SOURCE = 0
"""The birth of words that were there from the start; rounds are counted from 1, and round 1 deletes."""


@dataclass(eq=False)
class Word:
    """A word of the draft, and why it stands or fell. Probabilities are None where nobody had an opinion."""

    text: str
    born: int = FROM_SOURCE
    died: int | None = None
    kept: float | None = None
    """How sure the first look was that it stays."""
    added: float | None = None
    deleted: float | None = None

    @property
    def stands(self) -> bool:
        return self.died is None

    @property
    def whole(self) -> str:
        """The word of the caption that it is, or is a piece of."""
        return self.text


@dataclass
class Draft:
    """All words that ever stood in the caption, in order."""

    words: list[Word]
    rounds: int = 0
    """Rounds so far."""
    match: float | None = None
    """How likely caption and image belong together, as first seen."""

    @classmethod
    def of(cls, tokens: Sequence[str]) -> "Draft":
        return cls([Word(token) for token in tokens])

    @property
    def standing(self) -> list[Word]:
        return [word for word in self.words if word.stands]

    @property
    def tokens(self) -> list[str]:
        return [word.text for word in self.words if word.stands]

    def insert_after(self, word: Word | None, new: Word) -> None:
        """Put a word behind another, or at the start."""
        at = 0 if word is None else self.words.index(word) + 1
        self.words.insert(at, new)

    def withdraw(self, word: Word) -> None:
        """Take back that a word was added: it never was."""
        self.words.remove(word)

    def gap_before(self, standing: int) -> list[Word]:
        """The words of the source that fell between two standing words; `standing` counts the right one."""
        places = [at for at, word in enumerate(self.words) if word.stands]
        start = places[standing - 1] + 1 if standing > 0 else 0
        end = places[standing] if standing < len(places) else len(self.words)
        return [word for word in self.words[start:end] if word.born == FROM_SOURCE]

    def untouched(self) -> "Draft":
        """The caption as if nothing had been done to it."""
        words = [replace(word, died=None, deleted=None) for word in self.words if word.born == FROM_SOURCE]
        return replace(self, words=words)

    def trace(self) -> Trace:
        """The edit as it happened, less what was taken back."""
        source = tuple(word.text for word in self.words if word.born == FROM_SOURCE)
        rounds = [Script(self._round(number)) for number in range(1, self.rounds + 1)]
        while rounds and not rounds[-1].changes:  # looking and finding nothing to do is no round
            rounds.pop()
        return Trace(source, tuple(rounds))

    def _round(self, number: int) -> Iterator[Operation]:
        for word in self.words:
            if word.born == number and number > FROM_SOURCE:
                yield Operation(Op.ADD, word.text, word.added)
            elif word.born < number and word.died == number:
                yield Operation(Op.DELETE, word.text, word.deleted)
            elif word.born < number and (word.died is None or word.died > number):
                yield Operation(Op.KEEP, word.text, word.kept)
