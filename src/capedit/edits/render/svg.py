"""The figure of the paper as SVG: the whole path of an edit, deletions struck, additions marked."""

from collections.abc import Iterator
from html import escape
from unicodedata import combining, east_asian_width

from capedit.edits.operations import Op, Operation
from capedit.edits.render.view import percent, printable, rows
from capedit.edits.script import Script
from capedit.edits.trace import Trace

_FONT = 16  # px; monospace, so that a line's width can be told without a font at hand
_ADVANCE = 0.602 * _FONT
_SMALL = 0.65  # probabilities, relative to the words
_LINE, _ROW_GAP, _MARGIN = 24, 10, 16
_COLUMNS = 78  # of words; longer captions wrap

_STYLE = """
text { font: 16px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #1c1c1c; }
.label, .p { fill: #6b6b6b; } .p { font-size: 10.4px; }
.del { fill: #b3261e; text-decoration: line-through; }
.add { fill: #146c2e; font-weight: bold; text-decoration: underline; }
.page { fill: #ffffff; }
@media (prefers-color-scheme: dark) {
  text { fill: #ececec; } .label, .p { fill: #a0a0a0; } .del { fill: #ff8a80; } .add { fill: #7ddf94; }
  .page { fill: #161616; }
}
"""
_CLASS = {Op.DELETE: "del", Op.ADD: "add"}


def render_svg(edit: Script | Trace) -> str:
    """A picture of the edit; wraps long captions, and follows the reader's light or dark setting."""
    drawn = rows(edit)
    label_columns = max(len(row.label) for row in drawn)
    left = _MARGIN + (label_columns + 2) * _ADVANCE if label_columns else _MARGIN
    body: list[str] = []
    widest = 0.0
    y = _MARGIN + _FONT
    for row in drawn:
        if row.label:
            body.append(f'<text class="label" x="{_MARGIN}" y="{y:.0f}">{escape(row.label)}</text>')
        for line in _wrap(row.operations):
            widest = max(widest, sum(map(_columns, line)) + len(line))
            body.append(f'<text x="{left:.0f}" y="{y:.0f}">{" ".join(map(_word, line))}</text>')
            y += _LINE
        y += _ROW_GAP
    width, height = left + widest * _ADVANCE + _MARGIN, y - _LINE + _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img"><title>{escape(_title(edit))}</title>'
        f'<style>{_STYLE}</style><rect class="page" width="100%" height="100%"/>{"".join(body)}</svg>'
    )


def _title(edit: Script | Trace) -> str:
    before, after = (printable(" ".join(tokens)) for tokens in (edit.source, edit.target))
    return f"{before} → {after}"


def _wrap(operations: tuple[Operation, ...]) -> Iterator[list[Operation]]:
    line: list[Operation] = []
    used = 0.0
    for operation in operations:
        columns = _columns(operation)
        if line and used + columns > _COLUMNS:
            yield line
            line, used = [], 0.0
        line.append(operation)
        used += columns + 1
    yield line


def _columns(operation: Operation) -> float:
    word = sum(_character_columns(character) for character in printable(operation.token))
    return word + _SMALL * len(_belief(operation))


def _character_columns(character: str) -> int:
    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def _word(operation: Operation) -> str:
    text = escape(printable(operation.token))
    css = _CLASS.get(operation.op)
    word = f'<tspan class="{css}">{text}</tspan>' if css else text
    belief = _belief(operation)
    return f'{word}<tspan class="p">{belief}</tspan>' if belief else word


def _belief(operation: Operation) -> str:
    """Only changes show their probability: the numbers of all the kept words would drown the edit."""
    return percent(operation.probability) if operation.op in _CLASS else ""
