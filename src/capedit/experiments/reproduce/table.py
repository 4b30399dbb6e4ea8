"""A table of the paper: its rows beside ours, and the conditions under which ours were measured."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

Values = Mapping[str, float | None]


@dataclass(frozen=True)
class Row:
    """One line: what the paper prints, and what was measured here. A cell that does not exist is None."""

    benchmark: str
    label: str
    paper: Values
    ours: Values = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table with both."""

    number: int
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    """What a reader must know before comparing."""

    def row(self, benchmark: str, label: str) -> Row:
        return next(row for row in self.rows if (row.benchmark, row.label) == (benchmark, label))

    @property
    def benchmarks(self) -> list[str]:
        return list(dict.fromkeys(row.benchmark for row in self.rows))

    def lines(self, benchmark: str) -> Iterator[tuple[str, str, list[float | None]]]:
        """(label, whose, cells) of each line that has anything to show, the paper's before ours."""
        for row in self.rows:
            if row.benchmark == benchmark:
                for whose, values in (("paper", row.paper), ("ours", row.ours)):
                    if values:
                        yield row.label, whose, [values.get(column) for column in self.columns]

    def printed(self, benchmark: str) -> Iterator[tuple[str, str, list[str]]]:
        """The same, with cells as tables print them."""
        for label, whose, cells in self.lines(benchmark):
            told = zip(cells, self.columns, strict=True)
            yield label, whose, [cell(value, "" if label in COUNTS else column) for value, column in told]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "Table":
        rows = tuple(Row(**row) for row in told["rows"])
        return cls(told["number"], told["title"], tuple(told["columns"]), rows, tuple(told["notes"]))


PRECISE = ("ES", "GPS", "D", "A", "IT (ms)", "GMACs", "M parameters")
"""Columns with two digits behind the point; the others have one."""
COUNTS = ("instances", "images", "vocabulary")
"""Rows with none."""


def cell(value: float | None, column: str) -> str:
    """A number as tables print it; without a column, a count."""
    if value is None:
        return "–"
    if not column:
        return f"{value:,.0f}"
    return f"{value:.2f}" if column in PRECISE else f"{value:.1f}"
