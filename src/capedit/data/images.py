"""Where an image is, without reading it: a file, bytes already at hand, or a stretch of a shard."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from capedit.data.errors import DataError


class Image(Protocol):
    """A reference to an image; `read` gives the encoded bytes (JPEG, PNG, …) exactly as stored."""

    @property
    def name(self) -> str | None:
        """The file name or path the dataset gives the image, if any."""

    def read(self) -> bytes:
        """The encoded image; raises `DataError` naming the file when it cannot be read."""


@dataclass(frozen=True, slots=True)
class ImageFile:
    """An image in a file of its own; `name` is the path as the dataset spells it."""

    path: Path
    name: str
    borrowed: bool = False
    """Found by a pattern over image ids; no field of the record names it."""

    def read(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise DataError(f"{self.path}: image cannot be read ({error.strerror or error})") from error


@dataclass(frozen=True, slots=True)
class ImageBytes:
    """An image held inside a record, as Parquet and Hugging Face datasets do."""

    data: bytes = field(repr=False)
    name: str | None = None

    def read(self) -> bytes:
        return self.data


@dataclass(frozen=True, slots=True)
class ImageMember:
    """An image inside a tar shard: `size` bytes from `offset` on."""

    path: Path
    name: str
    offset: int
    size: int

    def read(self) -> bytes:
        try:
            with self.path.open("rb") as shard:
                shard.seek(self.offset)
                data = shard.read(self.size)
        except OSError as error:
            raise DataError(f"{self.path}, member {self.name!r}: {error.strerror or error}") from error
        if len(data) != self.size:
            raise DataError(f"{self.path}, member {self.name!r}: shard ends inside the image")
        return data


IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif", ".jfif")


def image_suffix(data: bytes, name: str | None) -> str:
    """A fitting file suffix: that of `name` if it is an image's, else by the first bytes."""
    if name is not None and (suffix := Path(name).suffix).lower() in IMAGE_SUFFIXES:
        return suffix
    if data.startswith(b"\x89PNG"):
        return ".png"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return ".webp"
    if data.startswith(b"GIF8"):
        return ".gif"
    return ".jpg"
