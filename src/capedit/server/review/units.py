"""What a reviewer decides on: a word deleted, a word added, or one word in place of another."""

from collections.abc import Sequence
from dataclasses import dataclass

from capedit.editing import EditOperation
from capedit.edits import Op, Operation, Script, realise

Verdicts = tuple[bool | None, ...]
"""For each unit of an edit: accepted, rejected, or not decided."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One decision: its operations by their place in the edit."""

    operations: tuple[int, ...]
    deleted: str | None
    added: str | None
    probability: float | None
    """Of the least sure of its operations."""

    @property
    def name(self) -> str:
        """As people write it: `dog -> cat`, `-dog`, `+cat`."""
        if self.deleted is not None and self.added is not None:
            return f"{self.deleted} -> {self.added}"
        return f"-{self.deleted}" if self.deleted is not None else f"+{self.added}"


def units_of(operations: Sequence[EditOperation]) -> list[Unit]:
    """The units of an edit in reading order.

    Between two kept words the n-th deleted word goes with the n-th added one; what is left over stands alone.
    """
    found: list[Unit] = []
    deleted: list[int] = []
    added: list[int] = []

    def close_gap() -> None:
        gap = range(max(len(deleted), len(added)))
        found.extend(_unit(operations, deleted[at : at + 1], added[at : at + 1]) for at in gap)
        deleted.clear()
        added.clear()

    for at, operation in enumerate(operations):
        if operation.op is Op.KEEP:
            close_gap()
        else:
            (deleted if operation.op is Op.DELETE else added).append(at)
    close_gap()
    return found


def _unit(operations: Sequence[EditOperation], deleted: list[int], added: list[int]) -> Unit:
    places = (*deleted, *added)
    sure = [p for at in places if (p := operations[at].probability) is not None]
    return Unit(
        places,
        operations[deleted[0]].token if deleted else None,
        operations[added[0]].token if added else None,
        min(sure) if sure else None,
    )


def decided_script(operations: Sequence[EditOperation], units: Sequence[Unit], accepted: Sequence[bool]) -> Script:
    """The edit with its rejected units undone.

    Unit by unit, so that of neighbours one can be taken and the other left: the word that stays keeps its place among
    the words that come.
    """
    unit_of = {at: number for number, unit in enumerate(units) for at in unit.operations}
    made: list[Operation] = []
    done: set[int] = set()
    for at, operation in enumerate(operations):
        number = unit_of.get(at)
        if number is None:
            made.append(Operation(operation.op, operation.token, operation.probability))
        elif number not in done:
            done.add(number)
            parts = [operations[place] for place in units[number].operations]
            if accepted[number]:
                made.extend(Operation(part.op, part.token, part.probability) for part in parts)
            else:
                made.extend(Operation(Op.KEEP, part.token) for part in parts if part.op is Op.DELETE)
    return Script(made)


def decided_caption(
    original: str, refined: str, operations: Sequence[EditOperation], units: Sequence[Unit], accepted: Sequence[bool]
) -> str:
    """The caption that the decisions leave: the refined one if all is accepted, the original's bytes if nothing is."""
    if all(accepted):
        return refined
    if not any(accepted):
        return original
    return realise(original, decided_script(operations, units, accepted))
