"""Arrow tables and records: shared by Parquet and Hugging Face datasets.

A column keeps its values natively if Arrow gives them back as they were, else as JSON text; the field's
metadata says so (`capedit: json`), and also when null stands for "no such field" (`capedit: absent`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from capedit.data.errors import DataError
from capedit.data.fields import Record
from capedit.data.formats.base import Edits, Format, Output, Reading, found_image
from capedit.data.formats.jsonvalues import dumps, restore, same
from capedit.data.images import ImageFile
from capedit.data.instance import Instance

CHUNK_ROWS = 1000
CHUNK_CHARS = 1 << 23
IMAGE_TYPE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
_NOTE = b"capedit"


class ArrowFormat(Format):
    """A format whose files are tables in Arrow's sense. Stable by value, not by byte: a file in which
    something changed is encoded anew, one in which nothing did is copied."""

    def instances(
        self, batches: Iterator[pa.RecordBatch], file: Path, reading: Reading, split: str | None = None
    ) -> Iterator[Instance]:
        index = 0
        for batch in batches:
            for record in records(batch):
                about = {"format": self.name, "file": file, "index": index, "split": split}
                instance = reading.instance(record, **about, place=f"row {index + 1}")
                index += 1
                if instance is not None:
                    yield instance

    def spool(self, instances: Iterator[Instance], output: Output, template: pa.Schema | None) -> Spool:
        """Every record on disk, and a schema that can hold them all."""
        spool = Spool(template, output.staged.parent)
        embed: bool | None = None
        for instance in instances:
            image = instance.image
            if embed is None and image is not None:
                embed = not isinstance(image, ImageFile) or self._embeds(template, instance)
            spool.add(self.record(instance, _image_value(instance, output, embed=bool(embed))))
        spool.finish()
        return spool

    def _embeds(self, template: pa.Schema | None, instance: Instance) -> bool:
        name = self.names(instance)["image"]
        return template is not None and name in template.names and template.field(name).type == IMAGE_TYPE

    def edited_batch(
        self, batch: pa.RecordBatch, start: int, edits: Edits, file: Path, reading: Reading
    ) -> pa.RecordBatch:
        """A batch with the edited values; the very same object if none of its rows was edited."""
        changes: dict[str, dict[int, Any]] = {}
        for row, record in enumerate(records(batch)):
            about = {"format": self.name, "file": file, "index": start + row, "place": f"row {start + row + 1}"}
            old = reading.instance(record, **about)
            new = edits.of(old) if old is not None else None
            if new is None:
                continue
            for key, value in self.record(new, found_image(new)).items():
                if key not in batch.schema.names:
                    raise DataError(f"{file}, row {start + row + 1}: rewriting cannot add the field {key!r}")
                if not same(value, record.get(key)):
                    changes.setdefault(key, {})[row] = value
        for key, values in changes.items():
            at = batch.schema.get_field_index(key)
            field = batch.schema.field(at)
            column = [values.get(row, old) for row, old in enumerate(_decoded(batch.column(at), field))]
            batch = batch.set_column(at, field, _encoded(column, field))
        return batch


class _Absent:
    """Stands for a field that a record does not have."""


ABSENT = _Absent()


def records(batch: pa.RecordBatch) -> Iterator[Record]:
    """The rows of a batch as records."""
    columns = [_decoded(batch.column(at), field) for at, field in enumerate(batch.schema)]
    names = batch.schema.names
    for row in zip(*columns, strict=True):
        yield {name: value for name, value in zip(names, row, strict=True) if value is not ABSENT}


class Spool:
    """Records waiting on disk until the last has been seen and the schema is known."""

    def __init__(self, template: pa.Schema | None, folder: Path) -> None:
        self._file: IO[str] = tempfile.TemporaryFile("w+", dir=folder, encoding="utf-8")  # noqa: SIM115
        self._chunk: list[Record] = []
        self._chars = 0
        self._columns: dict[str, _Column] = {}
        for field in template or ():
            self._columns[field.name] = _Column(None if _note(field) == "json" else field)
        self._template = template
        self.count = 0

    def add(self, record: Record) -> None:
        line = dumps(record, ascii_only=True)
        self._file.write(line + "\n")
        self._chunk.append(record)
        self._chars += len(line)
        self.count += 1
        if len(self._chunk) == CHUNK_ROWS or self._chars > CHUNK_CHARS:
            self.finish()

    def finish(self) -> None:
        """Take the last records into account."""
        for record in self._chunk:
            for key in record:
                self._columns.setdefault(key, _Column(None))
        before = self.count - len(self._chunk)
        for key, column in self._columns.items():
            column.see([record.get(key, ABSENT) for record in self._chunk], before)
        self._chunk, self._chars = [], 0

    def schema(self) -> pa.Schema:
        fields = [column.field(key) for key, column in self._columns.items()]
        schema = pa.schema(fields)
        if self._template is None or not self._template.metadata:
            return schema
        metadata = dict(self._template.metadata)
        if schema.names != self._template.names:
            # Other libraries' notes on the columns; wrong as soon as there are other columns.
            metadata = {key: note for key, note in metadata.items() if key not in (b"pandas", b"huggingface")}
        return schema.with_metadata(metadata)

    def batches(self, schema: pa.Schema, rows: int = CHUNK_ROWS) -> Iterator[pa.RecordBatch]:
        self._file.seek(0)
        chunk: list[Record] = []
        chars = 0
        for line in self._file:
            chunk.append(restore(json.loads(line)))
            chars += len(line)
            if len(chunk) == rows or chars > CHUNK_CHARS:
                yield _batch(chunk, schema)
                chunk, chars = [], 0
        if chunk or not self.count:
            yield _batch(chunk, schema)

    def close(self) -> None:
        self._file.close()


class _Column:
    """What one column has been seen to hold."""

    def __init__(self, template: pa.Field | None) -> None:
        self._template = template
        self._type: pa.DataType | None = None if template is None else template.type
        self._native = True
        self._absent = 0
        self._none = 0
        self._present = 0

    def see(self, values: list[Any], before: int) -> None:
        if not self._present:
            self._absent = before  # a column that turns up late was absent till now
        self._absent += sum(value is ABSENT for value in values)
        self._none += sum(value is None for value in values)
        self._present += sum(value is not ABSENT for value in values)
        given = [None if value is ABSENT else value for value in values]
        if not self._native or all(value is None for value in given):
            return
        image = any(isinstance(value, dict) and set(value) == {"bytes", "path"} for value in given)
        try:
            inferred = IMAGE_TYPE if image else pa.infer_type(given)
            if inferred == pa.list_(pa.null()):
                inferred = pa.list_(pa.string())  # empty lists so far; of words, most likely
            self._type = inferred if self._type is None else self._type
            # Parquet has no structs without fields.
            self._native = "struct<>" not in str(self._type) and same(_plain(_array(given, self._type)), given)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            self._native = False

    def field(self, name: str) -> pa.Field:
        if not self._native or (self._absent and self._none):
            return pa.field(name, pa.string(), metadata={_NOTE: b"json"})
        template = self._template
        if template is not None and not self._absent and (template.nullable or not self._none):
            metadata = {key: note for key, note in (template.metadata or {}).items() if key != _NOTE}
            return template.with_metadata(metadata or None)
        note = {_NOTE: b"absent"} if self._absent else None
        return pa.field(name, pa.null() if self._type is None else self._type, metadata=note)


def _batch(chunk: list[Record], schema: pa.Schema) -> pa.RecordBatch:
    columns = [_encoded([record.get(field.name, ABSENT) for record in chunk], field) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _note(field: pa.Field) -> str | None:
    note = (field.metadata or {}).get(_NOTE)
    return None if note is None else note.decode()


def _encoded(values: list[Any], field: pa.Field) -> pa.Array:
    if _note(field) == "json":
        texts = [None if value is ABSENT else dumps(value, ascii_only=True) for value in values]
        return pa.array(texts, field.type)
    return _array([None if value is ABSENT else value for value in values], field.type)


def _decoded(array: pa.Array, field: pa.Field) -> list[Any]:
    note = _note(field)
    values = _plain(array)
    if note == "json":
        return [ABSENT if text is None else restore(json.loads(text)) for text in values]
    return [ABSENT if value is None else value for value in values] if note == "absent" else values


def _is_nanoseconds(type: pa.DataType | None) -> bool:
    return type is not None and pa.types.is_timestamp(type) and type.unit == "ns"


def _array(values: list[Any], type: pa.DataType | None) -> pa.Array:
    if _is_nanoseconds(type):
        return pa.array(values, pa.string()).cast(type)
    return pa.array(values, type)


def _plain(array: pa.Array) -> list[Any]:
    """Python values; nanoseconds, for which Python has no type, as text."""
    if _is_nanoseconds(array.type):
        array = array.cast(pa.string())
    values: list[Any] = array.to_pylist()
    return values


def _image_value(instance: Instance, output: Output, *, embed: bool) -> Any:
    """A dataset's images are all inside it or all named, as its first one is."""
    image = instance.image
    if image is None:
        return None
    if isinstance(found_image(instance), bytes):
        return image.read()
    if isinstance(image, ImageFile):
        path = output.image_path(image)
        if not embed or path is None:
            return path
        data = output.image_data(instance)
        return {"bytes": data, "path": path if data is None else Path(path).name}
    return {"bytes": image.read(), "path": image.name} if embed else output.image_path(image)


def readable(file: Path, action: Callable[[], Any]) -> Any:
    """The result of `action`, Arrow's complaints turned into ours."""
    try:
        return action()
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{file}: cannot be read ({error})") from error
