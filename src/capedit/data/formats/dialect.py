"""How a CSV or TSV file is spelled: encoding, separator, quotes, line ends; found out, and written again."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from capedit.data.fields import detect
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
        # A leading space is quoted because some readers, this one included, may take it for spacing.
        marks = (self.delimiter, self.quote or "\n", self.escape or "\n", "\r", "\n")
        return any(mark in text for mark in marks) or text.startswith(" ")

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
    """The dialect of a file: the usual one if it fits, else the one that gives the steadiest rows."""
    with open_bytes(file) as source:
        data = source.read(SAMPLE)
    encoding, bom = next(((name, "\ufeff") for mark, name in _BOMS if data.startswith(mark)), ("utf-8", ""))
    text = data.decode(encoding, "replace" if encoding != "utf-8" else "surrogateescape")[len(bom) :]
    line_end = next((end for end in ("\r\n", "\n", "\r") if end in text), "\n")
    tabs = {".tsv", ".tab"} & {suffix.lower() for suffix in file.suffixes}
    candidates = []
    for delimiter in ("\t", ",", ";", "|") if tabs else (",", "\t", ";", "|"):
        for quote, escape in (('"', None), ('"', "\\"), (None, None), ("'", None), ("'", "\\")):
            dialect = Dialect(delimiter, quote, escape, encoding, bom, line_end)
            if quote == "'" and not _opens_cells(dialect, text):
                continue
            if escape is not None and quote is not None and escape + quote not in text:
                continue
            candidates.append(_refined(dialect, text))
    # The first of equals: the likelier ones stand first.
    return max(candidates, key=lambda dialect: _fit(dialect, text, cut=len(data) == SAMPLE))


def _lines(text: str) -> Iterator[str]:
    """Lines as files have them; `str.splitlines` would also split at characters that captions may hold."""
    return iter(io.StringIO(text, newline=""))


def _refined(dialect: Dialect, text: str) -> Dialect:
    """With what the header shows: cells all quoted, or a space after each separator."""
    header = next(_lines(text), "").rstrip("\r\n")
    cells = dialect.raw_cells(header)
    quote = dialect.quote or ""
    quote_all = bool(quote and header) and all(cell.strip(" ")[:1] == quote for cell in cells)
    space_after = len(cells) > 1 and all(cell[:1] == " " and cell[1:2] not in ("", " ") for cell in cells[1:])
    return replace(dialect, quote_all=quote_all, space_after=space_after)


def _fit(dialect: Dialect, text: str, *, cut: bool) -> tuple[bool, float, int]:
    """Better is greater: a header with a caption, rows as wide as the header, more columns."""
    try:
        rows = [row for row in dialect.rows(_lines(text)) if row]
    except csv.Error:
        return (False, 0.0, 0)
    if not rows:
        return (False, 0.0, 0)
    widths = [len(row) for row in (rows[:-1] if cut and len(rows) > 2 else rows)]
    steady = sum(width == widths[0] for width in widths) / len(widths)
    return ("reference" in detect(tuple(rows[0]), {}), steady * (widths[0] > 1), widths[0])


def _opens_cells(dialect: Dialect, text: str) -> bool:
    """Single quotes are apostrophes unless they open a cell in line after line."""
    edge = re.compile(rf"(?:^|{re.escape(dialect.delimiter)}) ?{dialect.quote}")
    lines = [line for line in islice(_lines(text), 50) if line.strip()]
    return bool(lines) and sum(edge.search(line) is not None for line in lines) > len(lines) / 2
