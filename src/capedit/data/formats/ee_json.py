"""The published COCO-EE and Flickr30K-EE files: one JSON array of records. Byte-stable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from capedit.data.errors import Problem
from capedit.data.fields import EE_NAMES
from capedit.data.formats.base import Output, Reading, Segment, create, open_bytes
from capedit.data.formats.json_records import JsonRecordFormat
from capedit.data.formats.jsontext import array_spacing, encode, pieces
from capedit.data.formats.jsonvalues import restore_from
from capedit.data.instance import Instance


class EeJson(JsonRecordFormat):
    """Also any other array of objects in which a caption can be found."""

    name = "ee"
    suffixes = (".json", ".json.gz")

    def names(self, instance: Instance) -> Mapping[str, str]:
        origin = instance.origin
        # An array with names of its own keeps them; what comes from elsewhere gets the published ones.
        if origin is not None and origin.format == self.name:
            return {**EE_NAMES, **origin.names}
        return EE_NAMES

    def segments(self, file: Path, reading: Reading) -> Iterator[Segment]:
        index = -1
        with open_bytes(file) as source:
            for piece in pieces(source):
                raw = encode(piece.text)
                if piece.array is None:
                    if piece.error:
                        reading.report(Problem(file, f"line {piece.line}", None, piece.error))
                    yield Segment(raw)
                    continue
                index += 1
                place = f"record {index + 1} (line {piece.line})"
                if piece.error:
                    reading.report(Problem(file, place, None, piece.error))
                    yield Segment(raw)
                    continue
                record = restore_from(piece.value, piece.text)
                yield Segment(
                    raw, reading.instance(record, format=self.name, file=file, index=index, place=place, raw=raw)
                )

    def write(self, instances: Iterator[Instance], output: Output) -> int:
        head, between, tail = _punctuation(output.templates.get(self.name))
        count = 0
        with create(output.staged) as target:
            target.write(head)
            for count, instance in enumerate(instances, start=1):
                if count > 1:
                    target.write(between)
                target.write(self.render(_complete(instance), output.image_path(instance.image)))
            target.write(tail)
        return count


def _complete(instance: Instance) -> Instance:
    """With the tokens every published record has; a record that was read without them stays as it is."""
    if instance.origin is not None and instance.origin.format == EeJson.name:
        return instance
    return replace(
        instance,
        given_reference_tokens=instance.reference_tokens,
        given_target_tokens=instance.target_tokens,
    )


def _punctuation(template: Path | None) -> tuple[bytes, bytes, bytes]:
    """What stands before, between and after the records: as in the template, down to its last line break."""
    if template is None:
        return b"[", b", ", b"]"
    with open_bytes(template) as source:
        inner, between = array_spacing(source, "")
    tail = re.search(rb"\s*\]\s*\Z", _last_bytes(template))
    return b"[" + encode(inner), encode(between), tail[0] if tail else b"]"


def _last_bytes(file: Path) -> bytes:
    if file.suffix == ".gz":
        return b"]"
    with file.open("rb") as source:
        source.seek(max(0, file.stat().st_size - 1024))
        return source.read()
