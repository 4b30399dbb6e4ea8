"""JSON Lines, plain or gzipped: one record a line. Byte-stable (in .gz: the unpacked bytes)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from capedit.data.errors import FieldError, Problem
from capedit.data.formats.base import Output, Reading, Segment, create, open_bytes
from capedit.data.formats.json_records import JsonRecordFormat
from capedit.data.formats.jsontext import MAX_RECORD, parse
from capedit.data.formats.jsonvalues import restore_from
from capedit.data.instance import Instance

_BOM = b"\xef\xbb\xbf"


class Jsonl(JsonRecordFormat):
    name = "jsonl"
    suffixes = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz", ".jsonlines")

    def segments(self, file: Path, reading: Reading) -> Iterator[Segment]:
        index = -1
        with open_bytes(file) as source:
            for number, line in enumerate(iter(lambda: source.readline(MAX_RECORD), b""), start=1):
                head = _BOM if number == 1 and line.startswith(_BOM) else b""
                body = line[len(head) :].rstrip(b"\r\n")
                if not body.strip():
                    yield Segment(line)
                    continue
                index += 1
                place = f"line {number}"
                try:
                    text = body.decode("utf-8", "surrogateescape")
                    record: Any = restore_from(parse(text), text)
                except FieldError as error:
                    reading.report(Problem(file, place, error.field, error.reason))
                    yield Segment(line)
                    continue
                if head:
                    yield Segment(head)
                yield Segment(
                    body, reading.instance(record, format=self.name, file=file, index=index, place=place, raw=body)
                )
                if ending := line[len(head) + len(body) :]:
                    yield Segment(ending)

    def write(self, instances: Iterator[Instance], output: Output) -> int:
        count = 0
        with create(output.staged) as target:
            for instance in instances:
                target.write(self.render(instance, output.image_path(instance.image)) + b"\n")
                count += 1
        return count
