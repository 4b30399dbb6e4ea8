"""How a CSV or TSV file is spelled: encoding, separator, quotes, line ends; found out, and written again."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from capedit.data.formats.base import open_bytes

SAMPLE = 1 << 16
MAX_CELL = 1 << 26
csv.field_size_limit(MAX_CELL)  # the default of 128 kB refuses captions that are merely long

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


@dataclass(frozen=True)
class Dialect:
    """One spelling of tables as text."""

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    """A backslash before a quote, in files that do not double their quotes."""
    encoding: str = "utf-8"
    bom: str = ""
    line_end: str = "\n"
    quote_all: bool = False
    space_after: bool = False
    """Cells may begin with a space that does not belong to them."""

    def rows(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """Parse lines; each row takes as many from `lines` as it spans, and no more."""
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            escapechar=self.escape,
            doublequote=self.escape is None,
            skipinitialspace=self.space_after,
        )

    def row(self, cells: list[str]) -> str:
        """One line of text with these cells, line end included."""
        if cells == [""]:
            return f"{self.quote or ''}{self.quote or ''}{self.line_end}"  # a blank line would be no row
        return self.delimiter.join(map(self.cell, cells)) + self.line_end

    def cell(self, text: str) -> str:
        if self.quote is None or not (self.quote_all or self.needs_quotes(text)):
            return text
        if self.escape:
            text = text.replace(self.escape, self.escape * 2).replace(self.quote, self.escape + self.quote)
        else:
            text = text.replace(self.quote, self.quote * 2)
        return f"{self.quote}{text}{self.quote}"

    def needs_quotes(self, text: str) -> bool:
        marks = (self.delimiter, self.quote or "\n", self.escape or "\n", "\r", "\n")
        return any(mark in text for mark in marks) or (self.space_after and text.startswith(" "))

    def raw_cells(self, row: str) -> list[str]:
        """The cells of a row (without its line end) as they are spelled, quotes and all."""
        if self.quote is None:
            return row.split(self.delimiter)
        quote, escape, delimiter = (re.escape(c) for c in (self.quote, self.escape or "", self.delimiter))
        inner = rf"(?:[^{quote}{escape}]|{escape}.)*" if escape else rf"(?:[^{quote}]|{quote}{quote})*"
        lead = " *" if self.space_after else ""
        cell = re.compile(rf"(?:{lead}{quote}{inner}{quote})?[^{delimiter}]*", re.DOTALL)
        cells, at = [], 0
        while at <= len(row):
            end = cell.match(row, at).end()  # type: ignore[union-attr]
            cells.append(row[at:end])
            at = end + 1
        return cells


def sniff(file: Path) -> Dialect:
    """The dialect that gives the first rows of a file the same number of cells, and the most of them."""
    with open_bytes(file) as source:
        data = source.read(SAMPLE)
    encoding, bom = next(((name, "\ufeff") for mark, name in _BOMS if data.startswith(mark)), ("utf-8", ""))
    text = data.decode(encoding, "replace" if encoding != "utf-8" else "surrogateescape")[len(bom) :]
    line_end = next((end for end in ("\r\n", "\n", "\r") if end in text), "\n")
    delimiters = ["\t", ",", ";", "|"] if ".tsv" in file.suffixes or ".tab" in file.suffixes else [",", "\t", ";", "|"]
    candidates = []
    for rank, delimiter in enumerate(delimiters):
        for quote in ('"', "'", None):
            style = {"encoding": encoding, "bom": bom, "line_end": line_end, "delimiter": delimiter, "quote": quote}
            dialect = _refined(Dialect(**style), text)  # type: ignore[arg-type]
            candidates.append((*_fit(dialect, text), -rank, dialect))
    return max(candidates, key=lambda candidate: candidate[:-1])[-1]


def _refined(dialect: Dialect, text: str) -> Dialect:
    quote, delimiter = dialect.quote, re.escape(dialect.delimiter)
    space_after = re.search(rf"^[^\n]*{delimiter} [^ \n]", text) is not None
    if quote is None:
        return Dialect(**{**vars(dialect), "space_after": space_after})
    backslash = f"\\{quote}" in text and not re.search(rf"[^{delimiter}\n]{quote}{quote}[^{delimiter}\n]", text)
    first = text.splitlines()[0] if text else ""
    cells = re.split(delimiter, first)
    quote_all = bool(first) and all(cell.strip()[:1] == quote and cell.strip()[-1:] == quote for cell in cells)
    refined = {"escape": "\\" if backslash else None, "quote_all": quote_all, "space_after": space_after}
    return Dialect(**{**vars(dialect), **refined})


def _fit(dialect: Dialect, text: str) -> tuple[bool, bool, float, int]:
    """Better is greater: more than one column, quotes that really quote, steady widths, more columns."""
    try:
        widths = [len(row) for row in dialect.rows(text.splitlines(keepends=True)) if row]
    except csv.Error:
        return (False, False, 0.0, 0)
    if not widths:
        return (False, False, 0.0, 0)
    widths = widths[:-1] if len(text) >= SAMPLE // 4 and len(widths) > 2 else widths
    steady = sum(width == widths[0] for width in widths) / len(widths)
    quote = dialect.quote
    edge = rf"(?:^|{re.escape(dialect.delimiter)}) ?{quote}"
    quotes = quote == '"' or (quote is not None and _opens_every_row(edge, text))
    return (widths[0] > 1, quotes or quote is None, round(steady, 3), widths[0])


def _opens_every_row(edge: str, text: str) -> bool:
    """Single quotes are apostrophes unless they open a cell in line after line."""
    lines = [line for line in text.splitlines() if line][:50]
    return bool(lines) and sum(re.search(edge, line) is not None for line in lines) > len(lines) / 2
