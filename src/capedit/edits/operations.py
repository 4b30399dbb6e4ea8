"""The operations of an edit: KEEP, DELETE and ADD, and the composites REPLACE and MOVE made of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self

from capedit.errors import CapeditError


class Op(StrEnum):
    """What happens to a token. REPLACE and MOVE are always a linked DELETE and ADD underneath."""

    KEEP = "KEEP"
    DELETE = "DELETE"
    ADD = "ADD"
    REPLACE = "REPLACE"
    MOVE = "MOVE"


class EditError(CapeditError):
    """An edit that cannot be: a malformed script, or JSON that does not describe one."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One primitive operation on one token.

    `token` is the word that is kept, deleted or added. `probability` is the editor's belief in the operation,
    where an editor made it. `link` ties a DELETE and an ADD into one composite: MOVE where both carry the same
    word, REPLACE otherwise.
    """

    op: Op
    token: str
    probability: float | None = None
    link: int | None = None

    def __post_init__(self) -> None:
        if self.op not in _PRIMITIVES:
            raise EditError(f"{self.op} is a composite; write it as a linked DELETE and ADD")
        if self.op is Op.KEEP and self.link is not None:
            raise EditError(f"KEEP {self.token!r} cannot be part of a composite")

    @property
    def consumes(self) -> bool:
        """Whether the operation uses up a source token."""
        return self.op is not Op.ADD

    @property
    def produces(self) -> bool:
        """Whether the operation leaves a token in the result."""
        return self.op is not Op.DELETE

    def inverted(self) -> Self:
        """The operation that undoes this one. No probability carries over: nobody predicted the inverse."""
        return replace(self, op=_INVERSE[self.op], probability=None)

    def to_json(self) -> dict[str, Any]:
        optional = {"probability": self.probability, "link": self.link}
        return {"op": self.op.value, "token": self.token} | {k: v for k, v in optional.items() if v is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        try:
            op, token = Op(data["op"]), data["token"]
            probability, link = data.get("probability"), data.get("link")
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise EditError(f"not an operation: {data!r} ({error})") from error
        if not isinstance(token, str):
            raise EditError(f"operation {data!r}: field 'token' must be a string")
        if probability is not None and (isinstance(probability, bool) or not isinstance(probability, int | float)):
            raise EditError(f"operation {data!r}: field 'probability' must be a number")
        if link is not None and (isinstance(link, bool) or not isinstance(link, int)):
            raise EditError(f"operation {data!r}: field 'link' must be a whole number")
        return cls(op, token, probability, link)


_PRIMITIVES = frozenset({Op.KEEP, Op.DELETE, Op.ADD})
_INVERSE = {Op.KEEP: Op.KEEP, Op.DELETE: Op.ADD, Op.ADD: Op.DELETE}


def keep(token: str, probability: float | None = None) -> Operation:
    return Operation(Op.KEEP, token, probability)


def delete(token: str, probability: float | None = None) -> Operation:
    return Operation(Op.DELETE, token, probability)


def add(token: str, probability: float | None = None) -> Operation:
    return Operation(Op.ADD, token, probability)


def replace_token(old: str, new: str, link: int) -> tuple[Operation, Operation]:
    """REPLACE, decomposed: one DELETE and one ADD in the same place."""
    if old == new:
        raise EditError(f"REPLACE needs two different words, got {old!r} twice; KEEP it instead")
    return Operation(Op.DELETE, old, link=link), Operation(Op.ADD, new, link=link)


def move_token(token: str, link: int) -> tuple[Operation, Operation]:
    """MOVE, decomposed: the DELETE goes where the token stood, the ADD where it shall stand."""
    return Operation(Op.DELETE, token, link=link), Operation(Op.ADD, token, link=link)
