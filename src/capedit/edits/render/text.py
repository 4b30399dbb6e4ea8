"""Edits as text: a word diff that survives any pipe, and a coloured one for terminals."""

from collections.abc import Mapping
from typing import NamedTuple

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
    return _render(edit, _PLAIN)


def render_terminal(edit: Script | Trace) -> str:
    """Deleted words struck in red, added ones bold in green."""
    return _render(edit, _COLOURED)


class _Style(NamedTuple):
    """How labels, changed words and their probabilities are dressed; `{}` is the text."""

    label: str
    changed: Mapping[Op, str]
    believed: Mapping[Op, str]  # `{}` is the word, then its probability


_PLAIN = _Style(
    label="{}",
    changed={Op.DELETE: "[-{}-]", Op.ADD: "{{+{}+}}"},
    believed={Op.DELETE: "[-{}- {}]", Op.ADD: "{{+{}+ {}}}"},
)
_COLOURED = _Style(
    label=f"{_DIM}{{}}{_RESET}",
    changed={Op.DELETE: f"{_RED}{_STRUCK}{{}}{_RESET}", Op.ADD: f"{_GREEN}{_BOLD}{{}}{_RESET}"},
    believed={
        Op.DELETE: f"{_RED}{_STRUCK}{{}}{_RESET}{_DIM} {{}}{_RESET}",
        Op.ADD: f"{_GREEN}{_BOLD}{{}}{_RESET}{_DIM} {{}}{_RESET}",
    },
)


def _render(edit: Script | Trace, style: _Style) -> str:
    drawn = rows(edit)
    width = max(len(row.label) for row in drawn)
    return "\n".join(_line(row, width, style) for row in drawn)


def _line(row: Row, width: int, style: _Style) -> str:
    words = " ".join(_word(operation, style) for operation in row.operations)
    return f"{style.label.format(row.label.ljust(width))}  {words}".rstrip() if width else words


def _word(operation: Operation, style: _Style) -> str:
    text = printable(operation.token)
    if operation.op not in style.changed:
        return text
    if operation.probability is None:
        return style.changed[operation.op].format(text)
    return style.believed[operation.op].format(text, percent(operation.probability))
