"""Which captions a run looks at: conditions such as `words<=20`, `source=machine`, `id=@ids.txt`.

A condition is KEY OPERATOR VALUE. The key is `words` or `chars` (the length of the caption), `id`, `image_id`, or the
name of any field of the record. The operators are `=`, `!=`, `<`, `<=`, `>` and `>=`; the last four compare numbers. A
value of `=` and `!=` may be a list (`a,b,c`) or a file of lines (`@FILE`). All conditions must hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt
from pathlib import Path

from capedit.data import Instance
from capedit.edits.tokens import tokenize
from capedit.errors import CapeditError

_CONDITION = re.compile(r"\s*(?P<key>[^<>=!]+?)\s*(?P<operator><=|>=|!=|=|<|>)\s*(?P<value>.*?)\s*", re.DOTALL)
_ORDER: dict[str, Callable[[float, float], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


class SelectionError(CapeditError):
    """A condition that cannot be understood."""


@dataclass(frozen=True)
class Condition:
    key: str
    operator: str
    values: frozenset[str]
    bound: float

    @classmethod
    def parse(cls, text: str) -> Condition:
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise SelectionError(f"condition {text!r}: write KEY=VALUE or KEY<NUMBER, such as words<=20")
        key, operator, value = match["key"], match["operator"], match["value"]
        if operator in _ORDER:
            try:
                return cls(key, operator, frozenset(), float(value))
            except ValueError:
                raise SelectionError(f"condition {text!r}: {value!r} is not a number") from None
        return cls(key, operator, frozenset(_values(text, value)), 0.0)

    def holds(self, instance: Instance) -> bool:
        found = _value(instance, self.key)
        if self.operator in _ORDER:
            try:
                return found is not None and _ORDER[self.operator](float(found), self.bound)
            except ValueError:
                return False
        return (found is not None and found in self.values) == (self.operator == "=")


@dataclass(frozen=True)
class Selection:
    conditions: tuple[Condition, ...] = ()

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Selection:
        return cls(tuple(Condition.parse(text) for text in texts))

    def takes(self, instance: Instance) -> bool:
        return all(condition.holds(instance) for condition in self.conditions)


def _values(text: str, value: str) -> list[str]:
    if not value.startswith("@"):
        return [part.strip() for part in value.split(",")]
    try:
        lines = Path(value[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SelectionError(f"condition {text!r}: {value[1:]} cannot be read ({error})") from error
    return [line.strip() for line in lines if line.strip()]


def _value(instance: Instance, key: str) -> str | None:
    if key == "words":
        return str(len(tokenize(instance.reference)))
    if key == "chars":
        return str(len(instance.reference))
    if key in ("id", "image_id"):
        value = instance.id if key == "id" else instance.image_id
    else:
        record = instance.origin.record if instance.origin is not None else {}
        value = record.get(key, instance.extra.get(key))
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)
