"""All files of a report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from capedit.experiments.reproduce.claims import Claim, check_claims, verdict
from capedit.experiments.reproduce.examples import Example
from capedit.experiments.reproduce.plots import plot_tables
from capedit.experiments.reproduce.report.page import as_page
from capedit.experiments.reproduce.report.text import as_csv, as_latex, as_markdown
from capedit.experiments.reproduce.table import Table


@dataclass(frozen=True)
class Report:
    """What is reported."""

    tables: Mapping[int, Table]
    conditions: Sequence[str]
    examples: Sequence[Example] = ()


def write_report(report: Report, folder: Path) -> Path:
    """Write `report.md`, `report.tex`, `table-N.csv`, plots and `index.html`; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = [report.tables[number] for number in sorted(report.tables)]
    claims = check_claims(dict(sorted(report.tables.items())))
    plots = plot_tables(report.tables, folder)
    markdown = [
        "# Explicit image caption editing, reproduced",
        "\n".join(f"- {condition}" for condition in report.conditions),
        *([_claims(claims)] if claims else []),
    ]
    for table in tables:
        markdown.append(as_markdown(table))
        if table.number in plots:
            markdown.append(f"![{plots[table.number].title}]({plots[table.number].path.name})")
    (folder / "report.md").write_text("\n\n".join(markdown) + "\n", encoding="utf-8")
    conditions = "".join(f"% {condition}\n" for condition in report.conditions)
    (folder / "report.tex").write_text(conditions + "\n".join(map(as_latex, tables)), encoding="utf-8")
    for table in tables:
        (folder / f"table-{table.number}.csv").write_text(as_csv(table), encoding="utf-8")
    page = folder / "index.html"
    page.write_text(as_page(tables, claims, plots, report.examples, report.conditions), encoding="utf-8")
    return page


def _claims(claims: Sequence[Claim]) -> str:
    lines = ["## What the paper claims, and what we found", "", "| claim | benchmark | paper | ours | our figures |"]
    lines.append("|---|---|---|---|---|")
    lines += [
        f"| {claim.text} | {claim.benchmark} | {verdict(claim.paper)} | {verdict(claim.ours)} | {claim.figures} |"
        for claim in claims
    ]
    return "\n".join(lines)
