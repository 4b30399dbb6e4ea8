"""Which images are held out: the Karpathy validation and test images, on which no training set may touch."""

import json
from pathlib import Path
from typing import Any

from capedit.data.errors import DataError

HELD_OUT = ("val", "test")
"""The splits of Karpathy's file that no training set may touch; `train` and `restval` are left."""


def read_id_list(path: Path) -> frozenset[int]:
    """One image id a line."""
    ids = set()
    for number, line in enumerate(_read_text(path).splitlines(), start=1):
        if line.strip():
            try:
                ids.add(int(line))
            except ValueError:
                raise DataError(f"{path}, line {number}: expected an image id, got {line.strip()[:40]!r}") from None
    if not ids:
        raise DataError(f"{path}: no image ids")
    return frozenset(ids)


def read_karpathy_split(path: Path) -> dict[str, frozenset[int]]:
    """The image ids of each split in Karpathy's `dataset_coco.json`."""
    images = read_json_list(path, "images")
    splits: dict[str, set[int]] = {}
    for number, image in enumerate(images, start=1):
        if not isinstance(image, dict) or not isinstance(image.get("split"), str):
            raise DataError(f"{path}, images, record {number}, field 'split': missing or not text")
        if not isinstance(image.get("cocoid"), int):
            raise DataError(f"{path}, images, record {number}, field 'cocoid': missing or not a number")
        splits.setdefault(image["split"], set()).add(image["cocoid"])
    missing = [name for name in HELD_OUT if name not in splits]
    if missing:
        raise DataError(f"{path}: no image of split {', '.join(map(repr, missing))}; found {sorted(splits)}")
    return {name: frozenset(ids) for name, ids in splits.items()}


def read_held_out(path: Path) -> frozenset[int]:
    """The held-out ids, from a list of ids or (ending in .json) from Karpathy's split file."""
    if path.suffix != ".json":
        return read_id_list(path)
    splits = read_karpathy_split(path)
    return frozenset[int]().union(*(splits[name] for name in HELD_OUT))


def read_json_list(path: Path, key: str) -> list[Any]:
    """The list under a key of a JSON object."""
    try:
        data = json.loads(_read_text(path))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {error.lineno}: not JSON ({error.msg})") from error
    if not isinstance(data, dict) or not isinstance(data.get(key), list):
        raise DataError(f"{path}: expected a JSON object with a list under {key!r}")
    found: list[Any] = data[key]
    return found


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 ({error.reason} at byte {error.start})") from error
