"""The report as one web page that needs nothing else but its plots."""

from collections.abc import Mapping, Sequence
from html import escape

from capedit.edits.render.html import STYLE as EDIT_STYLE
from capedit.experiments.reproduce.claims import Claim, verdict
from capedit.experiments.reproduce.examples import Example, examples_html
from capedit.experiments.reproduce.plots import Plot
from capedit.experiments.reproduce.table import Table

STYLE = """
:root { color-scheme: light dark; --line: #d9dce1; --ours: #eef4fb; --soft: #62666d; --good: #1a7f4b; --bad: #b3541e; }
@media (prefers-color-scheme: dark) {
  :root { --line: #444; --ours: #1c2a3a; --soft: #a0a0a0; --good: #5fc790; --bad: #f0a06a; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1.2rem; }
h2 { margin: 2.5rem 0 0.5rem; }
nav { display: flex; flex-wrap: wrap; gap: 0.3rem 1.2rem; }
.soft, figcaption { color: var(--soft); } ul.soft { font-size: 0.9rem; padding-left: 1.2rem; }
.blocks { display: flex; flex-wrap: wrap; gap: 0.5rem 3.5rem; align-items: flex-start; }
.wide { overflow-x: auto; max-width: 100%; }
.numbers { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0.5rem 0 1rem; }
.numbers th, .numbers td { padding: 0.15rem 0.6rem; text-align: right; white-space: nowrap; }
.numbers thead th { border-bottom: 2px solid var(--line); }
.numbers tbody { border-bottom: 1px solid var(--line); }
.numbers th:first-child, .numbers .whose { text-align: left; }
.numbers tbody th { font-weight: 600; vertical-align: top; padding-right: 1.2rem; }
.numbers .paper td { color: var(--soft); }
.numbers .ours td { background: var(--ours); font-weight: 600; }
.claims { border-collapse: collapse; margin: 0.5rem 0 1rem; }
.claims th, .claims td { text-align: left; padding: 0.25rem 1rem 0.25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
.claims .verdict { white-space: nowrap; font-weight: 600; }
.holds { color: var(--good); } .fails { color: var(--bad); }
figure { display: grid; grid-template-columns: 18rem 1fr; gap: 1rem 1.5rem; margin: 1.5rem 0; padding-top: 1.5rem;
  border-top: 1px solid var(--line); }
figure > table { grid-column: 2; border-spacing: 0; align-self: start; }
figure > img { width: 100%; border-radius: 4px; }
figure > table > tbody > tr > th { text-align: left; padding: 0.1rem 1rem 0.1rem 0; vertical-align: top;
  font-weight: 600; white-space: nowrap; }
figcaption { grid-column: 1 / -1; font-size: 0.85rem; }
img.plot { max-width: min(100%, 56rem); background: white; border-radius: 4px; }
@media (max-width: 45rem) { figure { grid-template-columns: 1fr; } figure > table { grid-column: 1; } }
"""


def as_page(
    tables: Sequence[Table],
    claims: Sequence[Claim],
    plots: Mapping[int, Plot],
    examples: Sequence[Example],
    conditions: Sequence[str],
) -> str:
    """The whole page."""
    sections = {"conditions": "Conditions"}
    parts = ["<h2 id=conditions>Conditions</h2>" + _list(conditions)]
    if claims:
        sections["claims"] = "Claims"
        parts.append("<h2 id=claims>What the paper claims, and what we found</h2>" + _claims(claims))
    for table in tables:
        sections[f"table-{table.number}"] = f"Table {table.number}"
        parts.append(_table(table, plots.get(table.number)))
    if examples:
        sections["examples"] = "Examples"
        parts.append("<h2 id=examples>Examples</h2>" + EXAMPLES_READ + examples_html(examples))
    links = "".join(f'<a href="#{place}">{escape(name)}</a>' for place, name in sections.items())
    head = '<meta charset=utf-8><meta name=viewport content="width=device-width"><title>capedit reproduce</title>'
    return (
        f"<!doctype html><html lang=en><head>{head}<style>{STYLE}{EDIT_STYLE}</style></head><body>"
        "<h1>Explicit image caption editing, reproduced</h1>"
        "<p>Each row of the paper with ours under it. Read the conditions before comparing: they differ.</p>"
        f"<nav>{links}</nav>{''.join(parts)}</body></html>\n"
    )


EXAMPLES_READ = (
    "<p class=soft>Spread evenly over the instances, not chosen. Struck words were deleted, underlined ones added. Of "
    "a system that rewrites, the shortest edit that leads to its caption is shown; it made none.</p>"
)


def _table(table: Table, plot: Plot | None) -> str:
    blocks = "".join(_block(table, benchmark) for benchmark in table.benchmarks)
    title = f"<h2 id=table-{table.number}>Table {table.number}. {escape(table.title)}</h2>"
    drawn = f'<img class=plot src="{escape(plot.path.name)}" alt="{escape(plot.title)}">' if plot else ""
    return f"{title}<div class=blocks>{blocks}</div>" + (_list(table.notes) if table.notes else "") + drawn


def _block(table: Table, benchmark: str) -> str:
    head = "".join(f"<th scope=col>{escape(column)}</th>" for column in table.columns)
    groups: dict[str, list[str]] = {}
    for label, whose, cells in table.printed(benchmark):
        numbers = f"<td class=whose>{whose}</td>" + "".join(f"<td>{value}</td>" for value in cells)
        groups.setdefault(label, []).append(f"<tr class={whose}>{{}}{numbers}</tr>")
    bodies = ""
    for label, (first, *rest) in groups.items():
        name = f"<th scope=rowgroup rowspan={1 + len(rest)}>{escape(label)}</th>"
        bodies += "<tbody>" + first.format(name) + "".join(row.format("") for row in rest) + "</tbody>"
    return (
        f"<div class=wide><table class=numbers><thead><tr><th scope=col>{escape(benchmark)}</th><th></th>{head}"
        f"</tr></thead>{bodies}</table></div>"
    )


def _claims(claims: Sequence[Claim]) -> str:
    lines = "".join(
        f"<tr><td>{escape(claim.text)}</td><td>{escape(claim.benchmark)}</td>"
        f'<td class="verdict {"holds" if claim.ours else "fails"}">{verdict(claim.ours)}</td>'
        f"<td class=soft>{escape(claim.figures)}</td></tr>"
        for claim in claims
    )
    head = "<tr><th>the paper's claim</th><th>benchmark</th><th>ours</th><th>our figures</th></tr>"
    return f"<div class=wide><table class=claims><thead>{head}</thead><tbody>{lines}</tbody></table></div>"


def _list(items: Sequence[str]) -> str:
    return "<ul class=soft>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"
