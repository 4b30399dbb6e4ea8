"""Captions on their way to an editor, apart from the format they came in."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from capedit.data import Image, ImageBytes, ImageFile, Instance
from capedit.data.formats.jsonvalues import dumps, restore
from capedit.data.images import ImageMember
from capedit.errors import CapeditError
from capedit.pipeline.settings import relative


@dataclass(frozen=True, slots=True)
class Item:
    """One caption to look at, and where it came from."""

    row: int
    """Orders the items of a shard; where the whole dataset was counted, the number of the caption in it."""
    file: str
    index: int
    place: str
    id: str | int
    image_id: str | None
    text: str
    image: Image | None
    selected: bool
    """Whether the run is to look at it at all."""

    @classmethod
    def of(cls, instance: Instance, row: int, base: Path, *, selected: bool) -> Item:
        origin = instance.origin
        if origin is None:
            raise CapeditError(f"instance {instance.id!r} was not read from a dataset")
        image_id = None if instance.image_id is None else str(instance.image_id)
        return cls(
            row,
            relative(origin.file, base),
            origin.index,
            origin.place,
            instance.id,
            image_id,
            instance.reference,
            instance.image,
            selected,
        )


def image_key(image: Image | None) -> str:
    """Equal for captions that are known to have the same image without reading it."""
    if isinstance(image, ImageFile):
        return str(image.path)
    if isinstance(image, ImageMember):
        return f"{image.path}@{image.offset}"
    return "" if image is None else blake2b(image.read(), digest_size=16).hexdigest()


def image_place(image: Image | None, home: Path) -> tuple[str | None, int | None, int | None]:
    """Path from `home`, offset and size of an image, as far as it has them: what the log says of it."""
    if isinstance(image, ImageFile):
        return _path_from(home, image.path), None, None
    if isinstance(image, ImageMember):
        return _path_from(home, image.path), image.offset, image.size
    return None, None, None


def _path_from(home: Path, path: Path) -> str:
    return Path(os.path.relpath(path, home)).as_posix()


def write_items(items: Iterable[Item]) -> bytes:
    """Items as lines of JSON."""
    return "".join(dumps(_to_list(item), ascii_only=True, compact=True) + "\n" for item in items).encode("ascii")


def read_items(path: Path) -> Iterator[Item]:
    with path.open(encoding="ascii") as file:
        for line in file:
            row, file, index, place, id, image_id, text, image, selected = restore(json.loads(line))
            yield Item(row, file, index, place, id, image_id, text, _image(image), selected)


def _to_list(item: Item) -> list[Any]:
    text = [item.row, item.file, item.index, item.place, item.id, item.image_id, item.text]
    return [*text, _image_to_list(item.image), item.selected]


def _image_to_list(image: Image | None) -> list[Any] | None:
    if isinstance(image, ImageFile):
        return ["file", str(image.path), image.name]
    if isinstance(image, ImageMember):
        return ["member", str(image.path), image.name, image.offset, image.size]
    return None if image is None else ["bytes", image.read(), image.name]


def _image(values: list[Any] | None) -> Image | None:
    if values is None:
        return None
    kind, *rest = values
    if kind == "file":
        return ImageFile(Path(rest[0]), rest[1])
    return ImageBytes(*rest) if kind == "bytes" else ImageMember(Path(rest[0]), *rest[1:])
