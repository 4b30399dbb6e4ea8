"""The formats by name, and how to tell which one a path holds.

What stays byte for byte when a dataset is rewritten with some captions edited (`rewrite_dataset`):

| format | all but the edited field | remark |
|---|---|---|
| ee, jsonl, coco | yes | in .gz the unpacked bytes; the packing is deterministic |
| csv | yes | the edited cell is quoted as its dialect needs |
| webdataset | yes | of an edited member the size and checksum in its header change too |
| sidecar | yes | a caption must then be a single line |
| parquet, huggingface | per file | values, schema, metadata and row groups stay, but an edited file is encoded anew |

`write_dataset` in the same format keeps unchanged records byte for byte in ee, jsonl, coco, csv and webdataset.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from capedit.data.errors import DataError, FieldError
from capedit.data.formats.base import Format, open_bytes
from capedit.data.formats.coco import Coco
from capedit.data.formats.csv_table import CsvTable
from capedit.data.formats.ee_json import EeJson
from capedit.data.formats.huggingface import HuggingFace
from capedit.data.formats.jsonl import Jsonl
from capedit.data.formats.jsontext import parse, pieces
from capedit.data.formats.parquet import Parquet
from capedit.data.formats.sidecar import Sidecar
from capedit.data.formats.webdataset import WebDataset

# In the order in which a folder is asked: what it cannot be by chance first.
FORMATS: dict[str, Format] = {
    format.name: format
    for format in (HuggingFace(), WebDataset(), Parquet(), Jsonl(), CsvTable(), EeJson(), Coco(), Sidecar())
}
_PEEK = 1 << 20


def format_named(name: str) -> Format:
    if name not in FORMATS:
        raise DataError(f"unknown format {name!r}; known: {', '.join(sorted(FORMATS))}")
    return FORMATS[name]


def find(path: str | Path, name: str | None = None) -> tuple[Format, tuple[Path, ...]]:
    """The format and the files of the dataset at `path`: a file, a folder, or a pattern with {a..b}, * or ?."""
    given = Path(path)
    if not given.exists():
        files = tuple(_matches(str(path)))
        if not files:
            raise DataError(f"{path}: no such file or folder")
        return (format_named(name) if name else _of_file(files[0])), files
    if given.is_file():
        return (format_named(name) if name else _of_file(given)), (given,)
    return _of_folder(given, [format_named(name)] if name else list(FORMATS.values()))


def format_for_output(path: Path, name: str | None, like: Format | None) -> Format:
    """The format to write: as named, else by the suffix, else that of the dataset it is made from."""
    if name is not None:
        return format_named(name)
    fitting = [format for format in FORMATS.values() if has_suffix(path, format)]
    if like is not None and (like in fitting or not fitting):
        return like
    if not fitting:
        raise DataError(f"{path}: cannot tell the format from the name; pass one of {', '.join(sorted(FORMATS))}")
    return fitting[0]


def has_suffix(path: Path, format: Format) -> bool:
    return path.name.lower().endswith(format.suffixes) if format.suffixes else False


def _of_folder(folder: Path, formats: list[Format]) -> tuple[Format, tuple[Path, ...]]:
    for format in formats:
        if not format.suffixes:
            if len(formats) == 1 or format.recognises(folder):
                return format, tuple(format.files(folder))
        elif len(formats) == 1 or ".json" not in format.suffixes:
            # Folders of .json files are asked for by name: most such files are something else.
            files = sorted(file for file in folder.rglob("*") if has_suffix(file, format) and _visible(file, folder))
            if files:
                return format, tuple(files)
    known = formats[0].name if len(formats) == 1 else "any known format"
    raise DataError(f"{folder}: no dataset of {known} in this folder")


def _visible(file: Path, folder: Path) -> bool:
    parts = file.relative_to(folder).parts
    return file.is_file() and not any(part.startswith(".") or part.endswith(".capedit") for part in parts)


def _of_file(file: Path) -> Format:
    if file.suffix == ".arrow":
        return FORMATS["huggingface"]
    fitting = [format for format in FORMATS.values() if has_suffix(file, format)]
    if len(fitting) == 1:
        return fitting[0]
    with open_bytes(file) as source:
        head = source.read(_PEEK)
    if head.startswith(b"PAR1"):
        return FORMATS["parquet"]
    if head[257:262] == b"ustar":
        return FORMATS["webdataset"]
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"["):
        return FORMATS["ee"]
    if text.startswith(b"{"):
        return FORMATS["jsonl"] if _first_line_is_record(text) else _coco(file)
    raise DataError(f"{file}: cannot tell the format; pass one of {', '.join(sorted(FORMATS))}")


def _first_line_is_record(text: bytes) -> bool:
    try:
        record = parse(text.split(b"\n", 1)[0].decode("utf-8", "surrogateescape"))
    except FieldError:
        return False
    return "annotations" not in record


def _coco(file: Path) -> Format:
    with open_bytes(file) as source:
        if any(piece.opens == "annotations" for piece in pieces(source)):
            return FORMATS["coco"]
    raise DataError(f"{file}: a JSON object, but without 'annotations', so not COCO captions")


def _matches(pattern: str) -> Iterator[Path]:
    """The files of a pattern, braces ("{000..012}", "{a,b}") in their order, wildcards sorted."""
    parts = re.split(r"(\{[^{}]*\})", pattern)
    for choice in product(*(_choices(part) for part in parts)):
        text = "".join(choice)
        if any(mark in text for mark in "*?["):
            anchor = Path(text).anchor
            yield from sorted(Path(anchor or ".").glob(text.removeprefix(anchor)))
        elif len(parts) > 1:
            yield Path(text)


def _choices(part: str) -> list[str]:
    span = re.fullmatch(r"\{(\d+)\.\.(\d+)\}", part)
    if span:
        low, high = span.groups()
        return [f"{number:0{len(low)}d}" for number in range(int(low), int(high) + 1)]
    return part[1:-1].split(",") if part.startswith("{") and part.endswith("}") else [part]
