"""A script: the operations that turn one token list into another, in reading order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from capedit.edits.operations import EditError, Op, Operation


@dataclass(frozen=True, slots=True)
class Composite:
    """What a reader sees as one thing: a primitive operation, or the linked pair of a REPLACE or MOVE."""

    op: Op
    operations: tuple[Operation, ...]

    def decompose(self) -> tuple[Operation, ...]:
        """The primitives, with their tie undone: counted and applied like any others."""
        return tuple(replace(operation, link=None) for operation in self.operations)


@dataclass(frozen=True)
class Script:
    """Operations in reading order; between two KEEPs DELETEs stand before ADDs, so that equal edits are equal."""

    operations: tuple[Operation, ...]

    def __init__(self, operations: Iterable[Operation] = ()) -> None:
        object.__setattr__(self, "operations", tuple(_in_normal_order(operations)))
        _check_links(self.operations)

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)

    def __len__(self) -> int:
        return len(self.operations)

    @cached_property
    def source(self) -> list[str]:
        """The tokens this script was written for."""
        return [operation.token for operation in self.operations if operation.consumes]

    @cached_property
    def target(self) -> list[str]:
        """The tokens it turns them into."""
        return [operation.token for operation in self.operations if operation.produces]

    @property
    def changes(self) -> bool:
        """Whether anything is deleted or added at all."""
        return any(operation.op is not Op.KEEP for operation in self.operations)

    def invert(self) -> "Script":
        """The script from target back to source."""
        return Script(operation.inverted() for operation in self.operations)

    def composites(self) -> list[Composite]:
        """The same script with linked pairs seen as one REPLACE or MOVE, where the first of the two stands."""
        pairs: dict[int, list[Operation]] = {}
        for operation in self.operations:
            if operation.link is not None:
                pairs.setdefault(operation.link, []).append(operation)
        seen: set[int] = set()
        result = []
        for operation in self.operations:
            if operation.link is None:
                result.append(Composite(operation.op, (operation,)))
            elif operation.link not in seen:
                seen.add(operation.link)
                pair = tuple(pairs[operation.link])
                moved = pair[0].token == pair[1].token
                result.append(Composite(Op.MOVE if moved else Op.REPLACE, pair))
        return result

    def decompose(self) -> "Script":
        """The same edit in primitives alone."""
        return Script(replace(operation, link=None) for operation in self.operations)

    def to_json(self) -> list[dict[str, Any]]:
        return [operation.to_json() for operation in self.operations]

    @classmethod
    def from_json(cls, data: Sequence[Mapping[str, Any]]) -> Self:
        if isinstance(data, str | bytes | Mapping) or not isinstance(data, Sequence):
            raise EditError(f"a script is a list of operations, not {type(data).__name__}")
        return cls(Operation.from_json(item) for item in data)


def apply(script: Script, tokens: Sequence[str]) -> list[str]:
    """Carry out a script on tokens.

    Total: defined for every script and every token list. Operations go by position, so a script also applies
    to tokens that differ from its own source; what it does not reach is kept, and KEEPs and DELETEs past the end
    of the tokens do nothing.
    """
    result: list[str] = []
    at = 0
    for operation in script:
        if operation.op is Op.ADD:
            result.append(operation.token)
        elif at < len(tokens):
            if operation.op is Op.KEEP:
                result.append(tokens[at])
            at += 1
    result.extend(tokens[at:])
    return result


def _in_normal_order(operations: Iterable[Operation]) -> Iterator[Operation]:
    pending: list[Operation] = []
    for operation in operations:
        if operation.op is Op.DELETE:
            yield operation
        elif operation.op is Op.ADD:
            pending.append(operation)
        else:
            yield from pending
            pending.clear()
            yield operation
    yield from pending


def _check_links(operations: tuple[Operation, ...]) -> None:
    linked: dict[int, list[Op]] = {}
    for operation in operations:
        if operation.link is not None:
            linked.setdefault(operation.link, []).append(operation.op)
    for link, ops in linked.items():
        if sorted(ops) != [Op.ADD, Op.DELETE]:
            raise EditError(f"link {link} must tie one DELETE to one ADD, found {', '.join(ops)}")
