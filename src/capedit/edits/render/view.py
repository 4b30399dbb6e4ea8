"""What every renderer draws: labelled rows of words, each with the operation that it met."""

from collections.abc import Iterable
from dataclasses import dataclass

from capedit.edits.operations import Op, Operation, keep
from capedit.edits.script import Script
from capedit.edits.trace import Trace


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the picture."""

    label: str
    operations: tuple[Operation, ...]


def rows(edit: Script | Trace) -> list[Row]:
    """A script is one row; a trace is the original, every round, and the refined caption."""
    if isinstance(edit, Script):
        return [Row("", edit.operations)]
    return [
        Row("original", _kept(edit.source)),
        *(Row(_label(number, script), script.operations) for number, script in enumerate(edit.rounds)),
        Row("refined", _kept(edit.target)),
    ]


def percent(probability: float | None) -> str:
    """A probability as a reader wants it, or nothing where there is none."""
    return "" if probability is None else f"{100 * probability:.0f}%"


def printable(text: str, *, line_breaks: str = " ") -> str:
    """Text that cannot steer a terminal or break a markup file: control characters become visible."""
    return "".join(_visible(character, line_breaks) for character in text)


def _visible(character: str, line_breaks: str) -> str:
    if character in "\n\r\t\v\f\x85\u2028\u2029":
        return line_breaks
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)  # the control pictures of Unicode: ESC is shown as one sign
    if code == 0x7F:
        return "\u2421"
    if 0x80 <= code < 0xA0 or 0xD800 <= code < 0xE000 or code in (0xFFFE, 0xFFFF):
        return "\ufffd"
    return character


def _kept(tokens: Iterable[str]) -> tuple[Operation, ...]:
    return tuple(keep(token) for token in tokens)


def _label(number: int, script: Script) -> str:
    ops = {operation.op for operation in script}
    if Op.ADD not in ops and (number == 0 or Op.DELETE in ops):
        return "delete" if number == 0 else f"round {number}: delete"
    return f"round {number}: add" if Op.DELETE not in ops else f"round {number}: revise"
