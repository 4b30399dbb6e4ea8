"""A caption while it is edited: words that were there, that went, that came.

Every word keeps the round of its birth and death, so that a decision can be taken back without a trace, and the trace
is told only when all is decided.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from capedit.edits import Op, Operation, Script, Trace, gold_script

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

    def reclaim(self) -> None:
        """Where a word fell and the same came in its stead, it never fell."""
        words: list[Word] = []
        run: list[Word] = []  # between two words of the source that stand
        for word in self.words:
            if word.stands and word.born == FROM_SOURCE:
                words += [*_reclaimed(run), word]
                run = []
            else:
                run.append(word)
        self.words = words + _reclaimed(run)

    def untouched(self) -> "Draft":
        """The caption as if nothing had been done to it."""
        words = [replace(word, died=None, deleted=None) for word in self.words if word.born == FROM_SOURCE]
        return replace(self, words=words)

    def trace(self) -> Trace:
        """The edit as it happened, less what was taken back."""
        source = tuple(word.text for word in self.words if word.born == FROM_SOURCE)
        rounds = (Script(self._round(number)) for number in range(1, self.rounds + 1))
        return Trace(source, tuple(script for script in rounds if script.changes))  # to find nothing to do is no round

    def _round(self, number: int) -> Iterator[Operation]:
        for word in self.words:
            if word.born == number and number > FROM_SOURCE:
                yield Operation(Op.ADD, word.text, word.added)
            elif word.born < number and word.died == number:
                yield Operation(Op.DELETE, word.text, word.deleted)
            elif word.born < number and (word.died is None or word.died > number):
                yield Operation(Op.KEEP, word.text, word.kept)


def _reclaimed(run: list[Word]) -> list[Word]:
    """A run of words that fell and words that came, less those that only changed places with themselves."""
    fallen = [word for word in run if word.born == FROM_SOURCE]
    came = [word for word in run if word.stands]
    if not fallen or not came:
        return run
    if len(fallen) + len(came) < len(run):  # a word that came and went again keeps its place in the story
        return run
    script = gold_script([word.text for word in fallen], [word.text for word in came])
    if all(operation.op is not Op.KEEP for operation in script):
        return run
    old, new = iter(fallen), iter(came)
    result = []
    for operation in script:
        if operation.op is Op.KEEP:
            word, again = next(old), next(new)
            if word.deleted is not None and again.added is not None:
                word.kept = 1 - word.deleted * (1 - again.added)  # it would stand either way
            word.died, word.deleted = None, None
            result.append(word)
        else:
            result.append(next(old if operation.op is Op.DELETE else new))
    return result
