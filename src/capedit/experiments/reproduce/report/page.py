"""The report as one web page that needs nothing else but its plots."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from capedit.edits.render.html import STYLE as EDIT_STYLE
from capedit.experiments.reproduce.claims import Claim
from capedit.experiments.reproduce.examples import Example, examples_html
from capedit.experiments.reproduce.table import Table

STYLE = """
:root { color-scheme: light dark; --line: #d6d6d6; --ours: #eef4fb; --soft: #6b6b6b; }
@media (prefers-color-scheme: dark) { :root { --line: #444; --ours: #1c2a3a; --soft: #a0a0a0; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
.wide { overflow-x: auto; }
.numbers { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0.5rem 0 1rem; }
.numbers th, .numbers td { border-bottom: 1px solid var(--line); padding: 0.2rem 0.7rem; text-align: right; }
.numbers th:first-child, .numbers td:first-child, .numbers td:nth-child(2) { text-align: left; }
.claims th, .claims td { text-align: left !important; } .claims td:nth-child(n + 2):nth-child(-n + 4) {
  white-space: nowrap; }
.numbers .ours { background: var(--ours); font-weight: 600; }
.numbers .paper td:nth-child(2), .soft, figcaption { color: var(--soft); }
figure { display: grid; grid-template-columns: 20rem 1fr; gap: 1rem; margin: 1.5rem 0; padding-top: 1rem;
  border-top: 1px solid var(--line); }
figure > table { grid-column: 2; border-spacing: 0; } figure > img { max-width: 20rem; border-radius: 4px; }
figure > table > tbody > tr > th { text-align: left; padding-right: 1rem; vertical-align: top; font-weight: 600; }
figcaption { grid-column: 1 / -1; font-size: 0.85rem; }
img.plot { max-width: 100%; background: white; }
@media (max-width: 45rem) { figure { grid-template-columns: 1fr; } figure > table { grid-column: 1; } }
"""


def as_page(
    tables: Sequence[Table],
    claims: Sequence[Claim],
    plots: Mapping[str, Path],
    examples: Sequence[Example],
    conditions: Sequence[str],
) -> str:
    """The whole page."""
    parts = [
        "<h1>Explicit image caption editing, reproduced</h1>",
        "<p>Each row of the paper with ours under it. Read the conditions before comparing: they differ.</p>",
        "<h2>Conditions</h2>" + _list(conditions),
    ]
    if claims:
        parts.append("<h2>What the paper claims, and what we found</h2>" + _claims(claims))
    parts += [_table(table) for table in tables]
    for title, path in plots.items():
        parts.append(f'<h2>{escape(title)}</h2><img class=plot src="{escape(path.name)}" alt="{escape(title)}">')
    if examples:
        parts.append("<h2>Examples</h2>" + examples_html(examples))
    head = '<meta charset=utf-8><meta name=viewport content="width=device-width"><title>capedit reproduce</title>'
    return (
        f"<!doctype html><html lang=en><head>{head}<style>{STYLE}{EDIT_STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _table(table: Table) -> str:
    blocks = []
    for benchmark in table.benchmarks:
        head = "".join(f"<th scope=col>{escape(column)}</th>" for column in table.columns)
        lines = "".join(
            f"<tr class={whose}><td>{escape(label)}</td><td>{whose}</td>"
            + "".join(f"<td>{value}</td>" for value in cells)
            + "</tr>"
            for label, whose, cells in table.printed(benchmark)
        )
        blocks.append(
            f"<div class=wide><table class=numbers><thead><tr><th scope=col>{escape(benchmark)}</th><th></th>{head}"
            f"</tr></thead><tbody>{lines}</tbody></table></div>"
        )
    title = f"<h2>Table {table.number}. {escape(table.title)}</h2>"
    return title + "".join(blocks) + (_list(table.notes) if table.notes else "")


def _claims(claims: Sequence[Claim]) -> str:
    lines = "".join(
        f"<tr><td>{escape(claim.text)}</td><td>{escape(claim.benchmark)}</td><td>{_yes(claim.paper)}</td>"
        f"<td><b>{_yes(claim.ours)}</b></td><td>{escape(claim.figures)}</td></tr>"
        for claim in claims
    )
    head = "<tr><th>claim</th><th>benchmark</th><th>paper</th><th>ours</th><th>our figures</th></tr>"
    return f"<div class=wide><table class='numbers claims'><thead>{head}</thead><tbody>{lines}</tbody></table></div>"


def _yes(holds: bool) -> str:
    return "holds" if holds else "does not hold"


def _list(items: Sequence[str]) -> str:
    return "<ul class=soft>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"
