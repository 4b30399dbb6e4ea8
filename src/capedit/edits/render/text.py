"""Edits as text: a word diff that survives any pipe, and a coloured one for terminals."""

from collections.abc import Callable

from capedit.edits.operations import Op, Operation
from capedit.edits.render.view import Row, percent, printable, rows
from capedit.edits.script import Script
from capedit.edits.trace import Trace

_RED, _GREEN, _BOLD, _DIM, _STRUCK, _RESET = (
    "\x1b[31m",
    "\x1b[32m",
    "\x1b[1m",
    "\x1b[2m",
    "\x1b[9m",
    "\x1b[0m",
)


def render_plain(edit: Script | Trace) -> str:
    """`[-deleted-]` and `{+added+}`, the notation of wdiff, with probabilities where there are any."""
    return _render(edit, _plain_word, lambda label: label)


def render_terminal(edit: Script | Trace) -> str:
    """Deleted words struck in red, added ones bold in green."""
    return _render(edit, _coloured_word, lambda label: f"{_DIM}{label}{_RESET}")


def _render(edit: Script | Trace, word: Callable[[Operation], str], dress: Callable[[str], str]) -> str:
    drawn = rows(edit)
    width = max(len(row.label) for row in drawn)
    return "\n".join(_line(row, width, word, dress) for row in drawn)


def _line(row: Row, width: int, word: Callable[[Operation], str], dress: Callable[[str], str]) -> str:
    words = " ".join(word(operation) for operation in row.operations)
    return f"{dress(row.label.ljust(width))}  {words}".rstrip() if width else words


def _plain_word(operation: Operation) -> str:
    text = printable(operation.token)
    belief = percent(operation.probability)
    suffix = f" {belief}" if belief else ""
    match operation.op:
        case Op.DELETE:
            return f"[-{text}-{suffix}]"
        case Op.ADD:
            return f"{{+{text}+{suffix}}}"
    return text


def _coloured_word(operation: Operation) -> str:
    text = printable(operation.token)
    belief = percent(operation.probability)
    suffix = f"{_DIM} {belief}{_RESET}" if belief else ""
    match operation.op:
        case Op.DELETE:
            return f"{_RED}{_STRUCK}{text}{_RESET}{suffix}"
        case Op.ADD:
            return f"{_GREEN}{_BOLD}{text}{_RESET}{suffix}"
    return text
