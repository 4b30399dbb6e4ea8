"""Counting rules: what an edit costs in steps, for every kind of system that is compared.

ES = DELETE + ADD (+ 1 for each token that only moves). Words are counted; `pieces` says how many word pieces
stand for a word where the published figures, which count pieces, are wanted.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from capedit.edits.operations import Op
from capedit.edits.script import Script
from capedit.edits.trace import Trace

Pieces = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Steps:
    """The cost of one edit."""

    deletes: int = 0
    adds: int = 0
    moves: int = 0

    @property
    def total(self) -> int:
        """ES, the editing steps."""
        return self.deletes + self.adds + self.moves

    def __add__(self, other: "Steps") -> "Steps":
        return Steps(self.deletes + other.deletes, self.adds + other.adds, self.moves + other.moves)

    def to_json(self) -> dict[str, Any]:
        return {"deletes": self.deletes, "adds": self.adds, "moves": self.moves, "total": self.total}


class FelixTag(NamedTuple):
    """Felix: what happens to a token, and how many words are inserted after it."""

    op: Op
    insertions: int = 0


class LaserTag(NamedTuple):
    """LaserTagger: what happens to a token, and the phrase that goes before it."""

    op: Op
    phrase: Sequence[str] = ()


def one_piece(word: str) -> int:
    """The rule of the paper: a word is a word."""
    return 1


def count_script(script: Script, pieces: Pieces = one_piece) -> Steps:
    """Steps of a script. REPLACE costs its DELETE and its ADD, MOVE is one step."""
    steps = Steps()
    for composite in script.composites():
        if composite.op is Op.MOVE:
            steps += Steps(moves=1)
            continue
        for operation in composite.operations:
            if operation.op is Op.DELETE:
                steps += Steps(deletes=pieces(operation.token))
            elif operation.op is Op.ADD:
                steps += Steps(adds=pieces(operation.token))
    return steps


def count_trace(trace: Trace, pieces: Pieces = one_piece) -> Steps:
    """Steps of every round: a word that is added and taken out again has cost two."""
    return sum((count_script(script, pieces) for script in trace.rounds), Steps())


def count_felix(tags: Iterable[FelixTag]) -> Steps:
    """(DELETE|N) is one DELETE and N ADDs, (KEEP|N) is N ADDs."""
    return sum((Steps(deletes=int(tag.op is Op.DELETE), adds=tag.insertions) for tag in tags), Steps())


def count_lasertagger(tags: Iterable[LaserTag]) -> Steps:
    """(phrase|DELETE) is one DELETE and an ADD for each word of the phrase, (phrase|KEEP) the ADDs alone."""
    return sum((Steps(deletes=int(tag.op is Op.DELETE), adds=len(tag.phrase)) for tag in tags), Steps())


def count_implicit(reference: Sequence[str], output: Sequence[str], pieces: Pieces = one_piece) -> Steps:
    """An implicit editor rewrites: everything is deleted, everything is added."""
    return Steps(deletes=sum(map(pieces, reference)), adds=sum(map(pieces, output)))
