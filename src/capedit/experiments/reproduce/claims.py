"""What the paper claims of its tables, held against ours."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from capedit.experiments.reproduce.table import Row, Table, Values


@dataclass(frozen=True)
class Claim:
    """An order that the paper's numbers have, and whether ours have it."""

    benchmark: str
    text: str
    paper: bool
    ours: bool
    figures: str
    """The numbers of ours that decide it."""


def verdict(holds: bool) -> str:
    return "holds" if holds else "does not hold"


def check_claims(tables: Mapping[int, Table]) -> list[Claim]:
    """All claims that the tables at hand can decide."""
    return [claim for table in tables.values() for claim in _claims(table)]


def _claims(table: Table) -> Iterator[Claim]:
    for benchmark in table.benchmarks:
        rows = {row.label: row for row in table.rows if row.benchmark == benchmark and row.ours}
        if table.number in (2, 3):
            explicit = ["V-EditNTS", "V-Felix", "V-LaserTagger"]
            for column, name in (("C", "CIDEr-D"), ("GPS", "GPS")):
                yield from _order(
                    benchmark, f"TIger is above every explicit system in {name}", rows, "TIger", explicit, column
                )
            yield from _order(
                benchmark,
                "TIger is above every implicit system in CIDEr-D",
                rows,
                "TIger",
                ["UpDn-E", "MN", "ETN"],
                "C",
            )
        elif table.number == 4:
            yield from _order(
                benchmark, "The weighted loss (1.5) is above the unweighted in CIDEr-D", rows, "1.5", ["1.0"], "C"
            )
        elif table.number == 6:
            for more, less in (("2", "1"), ("3", "2")):
                yield from _order(
                    benchmark, f"Round {more} gains over round {less} in CIDEr-D", rows, more, [less], "C"
                )
        elif table.number == 7:
            yield from _order(benchmark, "Pre-training gains in CIDEr-D", rows, "pre-trained", ["without"], "C")
        elif table.number == 8:
            for system in ("V-EditNTS", "V-Felix", "V-LaserTagger"):
                yield from _order(
                    benchmark,
                    f"TIger improves what {system} wrote, in CIDEr-D",
                    rows,
                    f"{system} + TIger",
                    [system],
                    "C",
                )


def _order(
    benchmark: str, text: str, rows: Mapping[str, Row], first: str, others: list[str], column: str
) -> Iterator[Claim]:
    if not {first, *others} <= rows.keys():
        return

    def holds(values: Mapping[str, Values]) -> bool:
        best = values[first].get(column)
        rest = [values[other].get(column) for other in others]
        return best is not None and all(value is not None and best > value for value in rest)

    told = [f"{label}: {rows[label].ours.get(column) or 0:.2f}" for label in (first, *others)]
    yield Claim(
        benchmark,
        text,
        holds({label: row.paper for label, row in rows.items()}),
        holds({label: row.ours for label, row in rows.items()}),
        ", ".join(told),
    )
