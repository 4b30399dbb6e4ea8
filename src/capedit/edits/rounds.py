"""Rounds: how a gold script is carried out, deletions first and then one word into every gap at a time."""

from enum import StrEnum

from capedit.edits.operations import Op, Operation, keep
from capedit.edits.script import Script
from capedit.edits.trace import Trace


class Order(StrEnum):
    """Which missing word of a gap comes first: the leftmost (published), or the middle one."""

    LEFT_TO_RIGHT = "left-to-right"
    BALANCED = "balanced"


def rounds_needed(gap: int, order: Order) -> int:
    """Rounds of insertion that fill a gap of so many words: balanced, r rounds fill 2^r - 1."""
    return gap if order is Order.LEFT_TO_RIGHT else gap.bit_length()


def insertion_rounds(words: int, order: Order) -> list[int]:
    """For each word of a gap, the round (from 1) in which it is inserted."""
    if order is Order.LEFT_TO_RIGHT:
        return list(range(1, words + 1))
    rounds = [0] * words
    parts = [(0, words)]
    current = 1
    while parts:
        halves = []
        for start, end in parts:
            if start < end:
                middle = (start + end) // 2
                rounds[middle] = current
                halves += [(start, middle), (middle + 1, end)]
        parts = halves
        current += 1
    return rounds


def expand(script: Script, order: Order = Order.LEFT_TO_RIGHT) -> Trace:
    """The script as a trace: a round of deletions, then rounds that each add one word to every open gap.

    The deletion round is there even where nothing is deleted, as the editor decides it first in any case.
    Composites are carried out as their parts.
    """
    script = script.decompose()
    scheduled = _schedule(script, order)
    deletion = Script(op for op in script if op.op is not Op.ADD)
    insertions = [
        Script(
            operation if when == current else keep(operation.token) for operation, when in scheduled if when <= current
        )
        for current in range(1, max((when for _, when in scheduled), default=0) + 1)
    ]
    return Trace(tuple(script.source), (deletion, *insertions))


def _schedule(script: Script, order: Order) -> list[tuple[Operation, int]]:
    """Every word of the result with the round in which it appears; kept words are there from round 0."""
    scheduled: list[tuple[Operation, int]] = []
    gap: list[Operation] = []

    def close_gap() -> None:
        scheduled.extend(zip(gap, insertion_rounds(len(gap), order), strict=True))
        gap.clear()

    for operation in script:
        if operation.op is Op.ADD:
            gap.append(operation)
        elif operation.op is Op.KEEP:
            close_gap()
            scheduled.append((operation, 0))
    close_gap()
    return scheduled
