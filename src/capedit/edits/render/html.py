"""Edits as an HTML fragment: `<del>` and `<ins>`, which read well aloud and without a style sheet, too."""

from html import escape

from capedit.edits.operations import Op, Operation
from capedit.edits.render.view import Row, percent, printable, rows
from capedit.edits.script import Script
from capedit.edits.trace import Trace

STYLE = """
.capedit { border-collapse: collapse; font: 16px/1.6 system-ui, sans-serif; }
.capedit th { text-align: left; font-weight: normal; color: #6b6b6b; padding-right: 1.5em;
  white-space: nowrap; vertical-align: top; }
.capedit del { color: #b3261e; }
.capedit ins { color: #146c2e; font-weight: 600; text-decoration: none; border-bottom: 2px solid; }
@media (prefers-color-scheme: dark) {
  .capedit th { color: #a0a0a0; } .capedit del { color: #ff8a80; } .capedit ins { color: #7ddf94; }
}
"""
"""A style sheet for the fragments, to be put into a page once."""


def render_html(edit: Script | Trace) -> str:
    """A table, one row a round. A word's probability is its title, shown when the mouse rests on it."""
    return '<table class="capedit">' + "".join(map(_row, rows(edit))) + "</table>"


def _row(row: Row) -> str:
    label = f"<th scope=row>{escape(row.label)}</th>" if row.label else ""
    return f'<tr>{label}<td dir="auto">{" ".join(map(_word, row.operations))}</td></tr>'


def _word(operation: Operation) -> str:
    text = escape(printable(operation.token))
    belief = percent(operation.probability)
    title = f' title="{belief}"' if belief else ""
    match operation.op:
        case Op.DELETE:
            return f"<del{title}>{text}</del>"
        case Op.ADD:
            return f"<ins{title}>{text}</ins>"
    return f"<span{title}>{text}</span>" if title else text
