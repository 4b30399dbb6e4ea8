"""CSV and TSV with a header, in any dialect. Byte-stable: an edit changes one cell and nothing else.

Cells are text. What is not (numbers, lists, null) is written as JSON, and the side folder's notes say
which columns are so; a file without notes is all text, and an empty cell of an optional role is "none".
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from capedit.data.errors import DataError, FieldError, Problem
from capedit.data.fields import Record, detect
from capedit.data.formats.base import Output, Reading, Segment, TextFormat, create, found_image, open_bytes
from capedit.data.formats.dialect import Dialect, sniff
from capedit.data.formats.jsontext import parse
from capedit.data.formats.jsonvalues import dumps, is_utf8, restore, same
from capedit.data.instance import Instance
from capedit.data.side import read_notes

_TOKENS = ("reference_tokens", "target_tokens")


@dataclass(frozen=True)
class Sheet:
    """What is known of a table before its first row."""

    dialect: Dialect
    header: tuple[str, ...]
    kinds: Mapping[str, str]
    """Per column: "json", or "absent" (an empty cell means that the record has no such field)."""
    optional: frozenset[str]
    """Columns of roles that may be empty."""

    def value(self, column: str, cell: str) -> Any:
        if self.kinds.get(column) == "json":
            try:
                return restore(parse(cell))
            except FieldError as error:
                raise FieldError(column, error.reason) from None
        return None if column in self.optional and not cell else cell

    def record(self, cells: list[str]) -> Record:
        if len(cells) != len(self.header):
            raise FieldError(None, f"{len(cells)} cells where the header has {len(self.header)}")
        return {
            column: self.value(column, cell)
            for column, cell in zip(self.header, cells, strict=True)
            if cell or column not in self.kinds
        }

    def cell(self, column: str, value: Any) -> str:
        if self.kinds.get(column) == "json" or not (value is None or isinstance(value, str)):
            return dumps(value)
        return value or ""

    def cells(self, record: Record) -> list[str]:
        return [self.cell(column, record[column]) if column in record else "" for column in self.header]


class CsvTable(TextFormat):
    name = "csv"
    suffixes = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".tab")

    def segments(self, file: Path, reading: Reading) -> Iterator[Segment]:
        sheet = _sheet(file, reading.fields)
        errors = "surrogateescape" if sheet.dialect.encoding == "utf-8" else "strict"
        with open_bytes(file) as source:
            text = io.TextIOWrapper(source, sheet.dialect.encoding, errors, newline="")
            index = -2  # the header comes first
            for number, row, cells, error in _rows(sheet.dialect, text):
                raw = row.encode(sheet.dialect.encoding, errors)
                index += bool(cells) or error is not None
                if index < 0 or not (cells or error):
                    yield Segment(raw)
                    continue
                place = f"line {number}"
                try:
                    if error:
                        raise FieldError(None, error)
                    _check_text(raw, sheet.dialect)
                    record, fields = _with_tokens(sheet.record(cells), reading.fields)
                except FieldError as problem:
                    reading.report(Problem(file, place, problem.field, problem.reason))
                    yield Segment(raw)
                    continue
                about = {"format": self.name, "file": file, "index": index, "place": place, "raw": raw}
                yield Segment(raw, replace(reading, fields=fields).instance(record, **about))

    def renderer(self, file: Path) -> Callable[[Instance], bytes]:
        dialect, header, kinds = _layout(file)
        sheet = Sheet(dialect, header, kinds, frozenset())
        return lambda instance: _render(instance, self.record(instance, found_image(instance)), sheet)

    def write(self, instances: Iterator[Instance], output: Output) -> int:
        template = output.templates.get(self.name)
        dialect, header, _ = _layout(template) if template else (_default_dialect(output.path), (), {})
        plan = _Plan(header)
        # Twice over the data, the second time from a spool: only then are all columns known.
        with tempfile.TemporaryFile("w+", dir=output.staged.parent, encoding="utf-8") as spool:
            count = 0
            for instance in instances:
                count += 1
                record = self.record(instance, output.image_path(instance.image))
                plan.see(record, self.names(instance))
                origin = instance.origin
                unchanged = origin is not None and origin.format == self.name and same(record, dict(origin.record))
                raw = origin.raw.hex() if unchanged and origin and origin.raw else ""
                columns = list(origin.record) if origin and raw else []
                spool.write(dumps([raw, columns, record], ascii_only=True) + "\n")
            sheet = plan.sheet(dialect)
            if notes := {column: kind for column, kind in sheet.kinds.items() if plan.noteworthy(column)}:
                output.side.write_notes({"columns": notes})
            spool.seek(0)
            with create(output.staged) as target:
                target.write(_header_row(sheet, template, header))
                for line in spool:
                    raw, columns, record = json.loads(line)
                    reusable = raw and sheet.dialect == dialect and columns == list(sheet.header)
                    row = "" if reusable else sheet.dialect.row(sheet.cells(restore(record)))
                    target.write(_ended(bytes.fromhex(raw), dialect) if reusable else _encoded(row, sheet.dialect))
        return count


class _Plan:
    """Which columns there are and what each must be able to hold."""

    def __init__(self, header: tuple[str, ...]) -> None:
        self.columns: dict[str, dict[str, int]] = {column: _no_counts() for column in header}
        self.optional: set[str] = set()
        self.rows = 0

    def see(self, record: Record, names: Mapping[str, str]) -> None:
        self.rows += 1
        self.optional.update(key for role, key in names.items() if role != "reference")
        for column, value in record.items():
            counts = self.columns.setdefault(column, _no_counts())
            text = isinstance(value, str) and is_utf8(value)
            counts["present"] += 1
            counts["text"] += text
            counts["empty"] += value == ""
            counts["none"] += value is None
            counts["tokens"] += isinstance(value, list) and column in {names.get(role) for role in _TOKENS}

    def kind(self, column: str) -> str:
        counts, optional = self.columns[column], column in self.optional
        # Read without notes, an empty cell of an optional role is None, any other an empty text.
        as_text = counts["text"] + (counts["none"] if optional else 0)
        whole = as_text == counts["present"]
        if whole and not (optional and counts["empty"]) and (optional or counts["present"] == self.rows):
            return "text"
        if counts["tokens"] + counts["none"] == counts["present"] and optional:
            return "text"
        if counts["text"] == counts["present"] and not counts["empty"]:
            return "absent"
        return "json"

    def noteworthy(self, column: str) -> bool:
        return self.kind(column) != "text"

    def sheet(self, dialect: Dialect) -> Sheet:
        header = tuple(self.columns) or ("id", "image_id", "image", "reference")
        kinds = {column: self.kind(column) for column in self.columns if self.kind(column) != "text"}
        # Without quotes there are texts that cannot be held; such a dialect is not carried on.
        usable = dialect if dialect.quote else Dialect(dialect.delimiter, line_end=dialect.line_end)
        return Sheet(usable, header, kinds, frozenset(self.optional))


def _no_counts() -> dict[str, int]:
    return dict.fromkeys(("present", "text", "empty", "none", "tokens"), 0)


def _render(instance: Instance, record: Record, sheet: Sheet) -> bytes:
    """A row with only its changed cells new."""
    origin = instance.origin
    if origin is None or origin.raw is None:
        raise DataError(f"instance {instance.id!r} was not read from this file")
    if added := [key for key in record if key not in sheet.header]:
        raise DataError(f"{origin.file}, {origin.place}: rewriting cannot add the column {added[0]!r}")
    if same(record, dict(origin.record)):
        return origin.raw
    text = origin.raw.decode(sheet.dialect.encoding)
    body = text.rstrip("\r\n")
    cells = sheet.dialect.raw_cells(body)
    if len(cells) != len(sheet.header):
        return _encoded(sheet.dialect.row(sheet.cells(record)), sheet.dialect)
    for at, column in enumerate(sheet.header):
        if column in record and not same(record[column], origin.record.get(column)):
            value = sheet.cell(column, record[column])
            if sheet.dialect.quote is None and sheet.dialect.needs_quotes(value):
                raise DataError(f"{origin.file}, {origin.place}, field {column!r}: needs quotes; this file has none")
            cells[at] = sheet.dialect.cell(value)
    return _encoded(sheet.dialect.delimiter.join(cells) + text[len(body) :], sheet.dialect)


def _layout(file: Path) -> tuple[Dialect, tuple[str, ...], Mapping[str, str]]:
    dialect = sniff(file)
    with open_bytes(file) as source:
        text = io.TextIOWrapper(source, dialect.encoding, "replace", newline="")
        header = next((cells for _, _, cells, _ in _rows(dialect, text) if cells), None)
    if header is None:
        raise DataError(f"{file}: empty file, not even a header")
    kinds = read_notes(file).get("columns", {})
    return dialect, _unique(header), kinds if isinstance(kinds, dict) else {}


def _sheet(file: Path, fields: Mapping[str, str | None]) -> Sheet:
    dialect, header, kinds = _layout(file)
    names = detect(header, fields)
    if "reference" not in names:
        wanted = repr(fields["reference"]) if fields.get("reference") else "a caption"
        raise DataError(f"{file}, line 1: no column for {wanted} among {', '.join(map(repr, header))}")
    optional = {key for role, key in names.items() if role != "reference"}
    return Sheet(dialect, header, kinds, frozenset(optional))


def _unique(header: list[str]) -> tuple[str, ...]:
    """Column names, with "#2" after the second of a name, for a record can hold only one of each."""
    seen: dict[str, int] = {}
    columns = []
    for name in header:
        seen[name] = seen.get(name, 0) + 1
        columns.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return tuple(columns)


def _rows(dialect: Dialect, lines: Iterator[str]) -> Iterator[tuple[int, str, list[str], str | None]]:
    """Line number, text, cells and error of every row; the texts together are the file."""
    taken: list[str] = []

    def feed() -> Iterator[str]:
        for number, line in enumerate(lines):
            taken.append(line)
            yield line.removeprefix("\ufeff") if number == 0 else line

    rows, number = dialect.rows(feed()), 1
    while True:
        cells: list[str] = []
        error = None
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as problem:
            error = f"not a row: {problem}"
        yield number, "".join(taken), cells, error
        number += len(taken)
        taken.clear()


def _check_text(raw: bytes, dialect: Dialect) -> None:
    if dialect.encoding == "utf-8":
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise FieldError(None, f"not UTF-8 (byte 0x{raw[error.start]:02x})") from None


def _with_tokens(record: Record, fields: Mapping[str, str | None]) -> tuple[Record, Mapping[str, str | None]]:
    """Token cells are JSON lists; a cell of another make is left to itself as an extra field."""
    names = detect(tuple(record), fields)
    for role in _TOKENS:
        key = names.get(role)
        if key is None or not isinstance(record[key], str):
            continue
        try:
            value = json.loads(record[key])
        except ValueError:
            value = None
        if isinstance(value, list):
            record[key] = value
        else:
            fields = {**fields, role: None}
    return record, fields


def _default_dialect(path: Path) -> Dialect:
    return Dialect(delimiter="\t" if {".tsv", ".tab"} & set(path.suffixes) else ",")


def _header_row(sheet: Sheet, template: Path | None, header: tuple[str, ...]) -> bytes:
    row = _encoded(sheet.dialect.row(list(sheet.header)), sheet.dialect)
    if template is None or header != sheet.header or sniff(template) != sheet.dialect:
        return _encoded(sheet.dialect.bom, sheet.dialect) + row
    with open_bytes(template) as source:
        text = io.TextIOWrapper(source, sheet.dialect.encoding, newline="")
        return next(_encoded(raw, sheet.dialect) for _, raw, cells, _ in _rows(sheet.dialect, text) if cells)


def _ended(raw: bytes, dialect: Dialect) -> bytes:
    """A raw row with a line end: the last one of a file may have lacked it."""
    return raw if raw.endswith((b"\n", b"\r", b"\n\0", b"\r\0")) else raw + _encoded(dialect.line_end, dialect)


def _encoded(text: str, dialect: Dialect) -> bytes:
    return text.encode(dialect.encoding)
