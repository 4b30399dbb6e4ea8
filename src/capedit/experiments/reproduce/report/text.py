"""A table as Markdown, LaTeX and CSV: the paper's row, and ours under it."""

import csv
from io import StringIO

from capedit.experiments.reproduce.table import Table


def as_markdown(table: Table) -> str:
    lines = [f"## Table {table.number}. {table.title}", ""]
    for benchmark in table.benchmarks:
        lines.append(f"| {benchmark} | | " + " | ".join(table.columns) + " |")
        lines.append("|---|---|" + "---|" * len(table.columns))
        lines += [
            f"| {label} | {whose} | " + " | ".join(cells) + " |" for label, whose, cells in table.printed(benchmark)
        ]
        lines.append("")
    lines += [f"- {note}" for note in table.notes]
    return "\n".join(lines).rstrip() + "\n"


def as_latex(table: Table) -> str:
    """For a paper (needs booktabs)."""
    lines = [r"\begin{table}[t]", r"\centering", rf"\caption{{{_latex(table.title)}}}"]
    lines += [rf"\begin{{tabular}}{{ll{'r' * len(table.columns)}}}", r"\toprule"]
    for number, benchmark in enumerate(table.benchmarks):
        head = " & ".join(_latex(column) for column in table.columns)
        lines += [*([r"\midrule"] if number else []), rf"{_latex(benchmark)} & & {head} \\", r"\midrule"]
        lines += [
            rf"{_latex(label)} & {whose} & " + " & ".join(cells).replace("–", "--") + r" \\"
            for label, whose, cells in table.printed(benchmark)
        ]
    notes = [f"% {note}" for note in table.notes]
    return "\n".join([*notes, *lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def as_csv(table: Table) -> str:
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["table", "benchmark", "row", "source", *table.columns])
    for benchmark in table.benchmarks:
        for label, whose, cells in table.lines(benchmark):
            numbers = ["" if value is None else f"{value:g}" for value in cells]
            writer.writerow([table.number, benchmark, label, whose, *numbers])
    return buffer.getvalue()


def _latex(text: str) -> str:
    return "".join(f"\\{character}" if character in "&%$#_{}" else character for character in text)
