"""Hugging Face datasets as `save_to_disk` leaves them, plain or as a dict of splits; read without `datasets`.

Stable by value: an Arrow file in which something changed is written anew, batch by batch; others are copied.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from capedit.data.errors import DataError
from capedit.data.formats.arrow_table import IMAGE_TYPE, ArrowFormat, readable
from capedit.data.formats.base import Edits, Output, Reading
from capedit.data.instance import Instance

_DICT = "dataset_dict.json"
_STATE = "state.json"
_INFO = "dataset_info.json"
SHARD_ROWS = 100_000


class HuggingFace(ArrowFormat):
    """Its files are the Arrow files of all splits, in the order the dataset gives them."""

    name = "huggingface"
    container = "huggingface"

    def recognises(self, path: Path) -> bool:
        return (path / _DICT).is_file() or (path / _STATE).is_file()

    def files(self, path: Path) -> list[Path]:
        found: list[Path] = []
        for folder in _splits(path):
            names = [entry.get("filename") for entry in _load(folder / _STATE).get("_data_files", [])]
            found += [folder / name for name in names if isinstance(name, str)]
        return found

    def read(self, file: Path, reading: Reading) -> Iterator[Instance]:
        split = file.parent.name if (file.parent.parent / _DICT).is_file() else None
        with readable(file, lambda: pa.memory_map(str(file))) as source:
            stream = _Stream(file, source)
            pieces = (piece for batch in stream for piece in _slices(batch))
            yield from self.instances(pieces, file, reading, split)

    def write(self, instances: Iterator[Instance], output: Output) -> int:
        output.staged.mkdir(exist_ok=True)
        model = _root(output.templates.get(self.name))
        if model is None or not (model / _DICT).is_file():
            return self._write_split(instances, output.staged, model, output)
        shutil.copyfile(model / _DICT, output.staged / _DICT)
        splits = [folder.name for folder in _splits(model)]
        parts = _Parts(instances, splits)
        total = 0
        for split in splits:
            (output.staged / split).mkdir()
            part = map(_without_split, parts.of(split)) if _split_is_ours(model / split) else parts.of(split)
            total += self._write_split(part, output.staged / split, model / split, output)
        parts.finish()
        return total

    def rewrite(self, file: Path, edited: Iterator[Instance], out: Path, reading: Reading) -> None:
        edits = Edits(edited)
        with readable(file, lambda: pa.memory_map(str(file))) as source:
            stream = _Stream(file, source)
            with pa.OSFile(str(out), "wb") as target, pa.ipc.new_stream(target, stream.schema) as writer:
                start = 0
                for batch in stream:
                    writer.write_batch(self.edited_batch(batch, start, edits, file, reading))
                    start += batch.num_rows
        edits.finish(file)

    def keep_container(self, files: list[Path], out: Path) -> None:
        root = _root(files[0])
        for folder in _splits(root) if root else []:
            copy = out if folder == root else out / folder.name
            copy.mkdir(parents=True)
            schema = _schema(folder)
            for name in (_INFO, _STATE):
                shutil.copyfile(folder / name, copy / name)
            for entry in _load(folder / _STATE).get("_data_files", []):
                if schema is not None:
                    with pa.OSFile(str(copy / entry["filename"]), "wb") as target:
                        pa.ipc.new_stream(target, schema).close()
        if root and (root / _DICT).is_file():
            shutil.copyfile(root / _DICT, out / _DICT)

    def companions(self, changed: list[Path]) -> dict[Path, bytes]:
        """The state files that must go with changed Arrow files: `datasets` caches by their fingerprint."""
        states = {}
        for folder in dict.fromkeys(file.parent for file in changed):
            state = _load(folder / _STATE)
            old = str(state.get("_fingerprint", ""))
            state["_fingerprint"] = hashlib.sha256(f"{old} edited".encode()).hexdigest()[:16]
            states[folder / _STATE] = json.dumps(state, indent=2, sort_keys=True).encode()
        return states

    def _write_split(self, instances: Iterator[Instance], folder: Path, model: Path | None, output: Output) -> int:
        template = _schema(model) if model else None
        spool = self.spool(instances, output, template)
        schema = spool.schema()
        info = _load(model / _INFO) if model else dict(_NEW_INFO)
        known = info.get("features")
        if template is None or schema.names != template.names or schema.types != template.types:
            info["features"] = known = _features(schema)
        if known is not None:
            note = json.dumps({"info": {"features": known}}).encode()
            schema = schema.with_metadata({**(schema.metadata or {}), b"huggingface": note})
        names = self._write_shards(spool, schema, folder)
        digest = hashlib.sha256()
        for name in names:
            with (folder / name).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        state = _load(model / _STATE) if model else dict(_NEW_STATE)
        state |= {"_data_files": [{"filename": name} for name in names], "_fingerprint": digest.hexdigest()[:16]}
        (folder / _STATE).write_text(json.dumps(state, indent=2, sort_keys=True), encoding="utf-8")
        (folder / _INFO).write_text(json.dumps(info, indent=2, sort_keys=True), encoding="utf-8")
        spool.close()
        return spool.count

    def _write_shards(self, spool: Any, schema: pa.Schema, folder: Path) -> list[str]:
        shards = max(1, -(-spool.count // SHARD_ROWS))
        names = [f"data-{number:05d}-of-{shards:05d}.arrow" for number in range(shards)]
        batches = spool.batches(schema)
        written, batch = 0, next(batches, None)
        for number, name in enumerate(names, start=1):
            with pa.OSFile(str(folder / name), "wb") as target, pa.ipc.new_stream(target, schema) as writer:
                while batch is not None and (written < number * SHARD_ROWS or number == shards):
                    writer.write_batch(batch)
                    written += batch.num_rows
                    batch = next(batches, None)
        return names


_NEW_INFO: dict[str, Any] = {"citation": "", "description": "", "homepage": "", "license": ""}
_NEW_STATE: dict[str, Any] = {
    "_format_columns": None,
    "_format_kwargs": {},
    "_format_type": None,
    "_output_all_columns": False,
    "_split": None,
}


class _Parts:
    """A stream of instances cut at the ends of its splits, which come one after the other."""

    def __init__(self, instances: Iterator[Instance], splits: list[str]) -> None:
        self._instances = instances
        self._splits = splits
        self._next = next(instances, None)

    def of(self, split: str) -> Iterator[Instance]:
        while self._next is not None and self._split(self._next) == split:
            yield self._next
            self._next = next(self._instances, None)

    def finish(self) -> None:
        if self._next is not None:
            raise DataError(f"instance {self._next.id!r}: split out of order ({', '.join(self._splits)})")

    def _split(self, instance: Instance) -> str:
        found = instance.origin.split if instance.origin else None
        found = instance.extra.get("split") if found is None else found
        return found if isinstance(found, str) and found in self._splits else self._splits[-1]


class _Stream:
    """The batches of an Arrow file, in the streaming format that `datasets` writes or in the file format."""

    def __init__(self, file: Path, source: pa.MemoryMappedFile) -> None:
        self._file = file
        try:
            self._reader = pa.ipc.open_stream(source)
        except pa.ArrowInvalid:
            whole = readable(file, lambda: pa.ipc.open_file(source))
            batches = (whole.get_batch(at) for at in range(whole.num_record_batches))
            self._reader = pa.RecordBatchReader.from_batches(whole.schema, batches)
        self.schema: pa.Schema = self._reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        reader = iter(self._reader)
        while (batch := readable(self._file, lambda: next(reader, None))) is not None:
            yield batch


def _split_is_ours(model: Path) -> bool:
    """Whether a field "split" can only have been added when these records were converted."""
    schema = _schema(model)
    return schema is None or "split" not in schema.names


def _without_split(instance: Instance) -> Instance:
    return replace(instance, extra={key: value for key, value in instance.extra.items() if key != "split"})


def _slices(batch: pa.RecordBatch, rows: int = 256) -> Iterator[pa.RecordBatch]:
    return (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


def _splits(path: Path) -> list[Path]:
    if not (path / _DICT).is_file():
        return [path]
    splits = _load(path / _DICT).get("splits", [])
    return [path / split for split in splits if isinstance(split, str)]


def _root(file: Path | None) -> Path | None:
    if file is None:
        return None
    folder = file.parent
    return folder.parent if (folder.parent / _DICT).is_file() else folder


def _load(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: cannot be read ({error})") from error
    if not isinstance(content, dict):
        raise DataError(f"{file}: expected a JSON object")
    return content


def _schema(folder: Path) -> pa.Schema | None:
    names = [entry["filename"] for entry in _load(folder / _STATE).get("_data_files", [])]
    if not names:
        return None
    with pa.memory_map(str(folder / names[0])) as source:
        return _Stream(folder / names[0], source).schema


def _features(schema: pa.Schema) -> dict[str, Any] | None:
    """The columns in `datasets`' own words; None, which lets it find out itself, if one has no word here."""
    features = {field.name: _feature(field.type) for field in schema}
    return None if None in features.values() else features


def _feature(type: pa.DataType) -> Any:
    if type == IMAGE_TYPE:
        return {"_type": "Image"}
    if pa.types.is_list(type):
        inner = _feature(type.value_type)
        return None if inner is None else [inner]  # understood by every version of `datasets`
    if pa.types.is_struct(type):
        inner = {field.name: _feature(field.type) for field in type}
        return None if None in inner.values() else inner
    plain = {pa.float64(): "float64", pa.float32(): "float32", pa.bool_(): "bool", pa.null(): "null"}
    if pa.types.is_integer(type) or type in (pa.string(), pa.large_string(), pa.binary()):
        return {"dtype": str(type), "_type": "Value"}
    return {"dtype": plain[type], "_type": "Value"} if type in plain else None
