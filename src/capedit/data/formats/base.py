"""What every format can do, and what it is given to do it with."""

from __future__ import annotations

import gzip
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from capedit.data.errors import DataError, FieldError, Problem
from capedit.data.fields import Record, extended, kind, read_instance, write_record
from capedit.data.formats.jsonvalues import same
from capedit.data.images import Image, ImageFile
from capedit.data.instance import Instance, Origin
from capedit.data.side import Side


@dataclass(frozen=True)
class Reading:
    """How a dataset is to be read, and where its bad records are reported."""

    home: Path | None
    """What image paths start from if `images` does not say: the folder of a whole-folder dataset; None for
    the folder of each file."""
    fields: Mapping[str, str | None]
    """Roles the caller assigned to fields."""
    images: str | None
    """The folder image paths start from, or a pattern such as "images/{image_id:012d}.jpg"."""
    report: Callable[[Problem], None]

    def instance(self, record: Any, **origin: Any) -> Instance | None:
        """The instance of a record; None, and a reported problem, if it cannot be one.

        `origin` are the fields of its `Origin` that the format knows: all but `record` and `names`.
        """
        try:
            if not isinstance(record, dict):
                raise FieldError(None, f"expected an object with fields, found {kind(record)}")
            locate = partial(self.locate, origin["file"])
            return self._with_image(read_instance(record, self.fields, locate, partial(Origin, **origin)))
        except FieldError as error:
            self.report(Problem(origin["file"], origin["place"], error.field, error.reason))
            return None

    def locate(self, file: Path, name: str) -> ImageFile:
        """The image a record of `file` calls `name`."""
        folder = self.home or file.parent
        if self.images is not None and "{" not in self.images:
            folder = Path(self.images)
        return ImageFile(folder / name, name)

    def _with_image(self, instance: Instance) -> Instance:
        if instance.image is not None or instance.image_id is None or "{" not in (self.images or ""):
            return instance
        try:
            path = cast(str, self.images).format(image_id=instance.image_id)
        except (ValueError, KeyError, IndexError) as error:
            reason = f"image pattern {self.images!r} does not fit {instance.image_id!r} ({error})"
            raise FieldError("image_id", reason) from None
        # Not a field of the record: `borrowed` keeps writers from adding one.
        return replace(instance, image=ImageFile(Path(path), path, borrowed=True))


@dataclass
class Output:
    """A dataset being written."""

    path: Path
    """Where it will be."""
    staged: Path
    """Where to write it now."""
    home: Path
    """The folder that paths to images start from."""
    side: Side
    templates: Mapping[str, Path]
    """By format: a file whose dialect, schema or surroundings are to be taken over."""
    keep_paths: bool
    """Image paths start from a folder of their own, not from the dataset: write them as found."""
    report: Callable[[Problem], None]
    """For what could not be carried over."""

    def image_path(self, image: Image | None) -> str | None:
        """The text that leads from the output to the image; one stored in a record gets a file."""
        if image is None:
            return None
        if not isinstance(image, ImageFile):
            return self.side.keep_image(image)
        if image.borrowed:
            return None
        if self.keep_paths or os.path.normpath(self.home / image.name) == os.path.normpath(image.path):
            return image.name
        # A path that led nowhere is left as the author wrote it.
        return Path(os.path.relpath(image.path, self.home)).as_posix() if image.path.exists() else image.name

    def image_data(self, instance: Instance) -> bytes | None:
        """The image itself; None, and a reported problem, if it cannot be read."""
        if instance.image is None:
            return None
        try:
            return instance.image.read()
        except DataError as error:
            origin = instance.origin
            file, place = (origin.file, origin.place) if origin else (self.path, f"instance {instance.id!r}")
            self.report(Problem(file, place, "image", str(error)))
            return None


class Format(ABC):
    """One way of keeping captions on disk. A dataset is one or more files of it."""

    name: str
    suffixes: tuple[str, ...] = ()
    """Of single files, the one for new files first; none if a dataset is always a folder as a whole."""
    container: str | None = None
    """What the side folder of another format calls the surroundings of records of this one."""

    @abstractmethod
    def read(self, file: Path, reading: Reading) -> Iterator[Instance]:
        """The instances of one file, in order, in bounded memory."""

    @abstractmethod
    def write(self, instances: Iterator[Instance], output: Output) -> int:
        """Write one file (or folder) of exactly these instances; gives their number."""

    @abstractmethod
    def rewrite(self, file: Path, edited: Iterator[Instance], out: Path, reading: Reading) -> None:
        """Copy `file` to `out` with the edited instances in place of those they were made from.

        They come in the order of the file; records without an edited one stay as they are.
        """

    def recognises(self, folder: Path) -> bool:
        """Whether a folder is a dataset of this format; asked of whole-folder formats only."""
        return False

    def files(self, path: Path) -> list[Path]:
        """The files of the dataset that is at `path` as a whole."""
        return [path]

    def keep_container(self, files: list[Path], out: Path) -> None:
        """Save, as a template for the way back, what surrounds the records (schema, tables of images)."""
        raise NotImplementedError(f"{self.name} has no container")

    def is_changed(self, instance: Instance) -> bool:
        """Whether an instance differs from the record it was read from."""
        origin = instance.origin
        return origin is None or not same(self.record(instance, found_image(instance)), dict(origin.record))

    def companions(self, changed: list[Path]) -> Mapping[Path, bytes]:
        """Other files, with their new content, that must change when these have been rewritten."""
        return {}

    def names(self, instance: Instance) -> Mapping[str, str]:
        """What this format calls the fields of an instance: what its source called them."""
        found = instance.origin.names if instance.origin else {}
        # ".txt" is the name of a file in a shard, not of a field.
        return extended({role: key for role, key in found.items() if not key.startswith(".")}, instance.extra)

    def record(self, instance: Instance, image: Any) -> Record:
        """The record to write for an instance."""
        record = write_record(instance, self.names(instance), image)
        origin = instance.origin
        if origin is not None and origin.split is not None and origin.format != self.name:
            record.setdefault("split", origin.split)
        return record


def found_image(instance: Instance) -> Any:
    """The image field's value as found; rewriting leaves images alone."""
    origin = instance.origin
    return origin.record.get(origin.names["image"]) if origin and "image" in origin.names else None


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a file: the record of an instance, or anything else (bad records included)."""

    raw: bytes
    instance: Instance | None = None


class TextFormat(Format):
    """A format whose files are a row of segments; rewriting replaces segments and touches no other byte."""

    @abstractmethod
    def segments(self, file: Path, reading: Reading) -> Iterator[Segment]:
        """The whole file in order: joining the `raw` gives its (uncompressed) bytes."""

    @abstractmethod
    def renderer(self, file: Path) -> Callable[[Instance], bytes]:
        """What makes the segment of an instance of `file`, its image left alone."""

    def read(self, file: Path, reading: Reading) -> Iterator[Instance]:
        return (segment.instance for segment in self.segments(file, reading) if segment.instance is not None)

    def rewrite(self, file: Path, edited: Iterator[Instance], out: Path, reading: Reading) -> None:
        edits = Edits(edited)
        render = self.renderer(file)
        with create(out) as target:
            for segment in self.segments(file, reading):
                new = edits.of(segment.instance) if segment.instance else None
                target.write(segment.raw if new is None else render(new))
        edits.finish(file)


class Edits:
    """Edited instances handed out as the records they belong to come by."""

    def __init__(self, edited: Iterator[Instance]) -> None:
        self._edited = edited
        self._next = next(edited, None)

    def of(self, instance: Instance) -> Instance | None:
        """The edited form of `instance`, if it is the next one."""
        return self.at(_position(instance))

    def at(self, index: int) -> Instance | None:
        """The edited form of the record at `index`, if it is the next one."""
        new = self._next
        if new is None or _position(new) != index:
            return None
        self._next = next(self._edited, None)
        return new

    def finish(self, file: Path) -> None:
        """Complain about an instance that found no place."""
        if self._next is not None:
            raise DataError(f"{file}: edited instance {self._next.id!r} is out of order or not from this file")


def _position(instance: Instance) -> int:
    return instance.origin.index if instance.origin else -1


def open_bytes(path: Path) -> IO[bytes]:
    """A file for reading, unpacked if its name ends in .gz."""
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


@contextmanager
def create(path: Path) -> Iterator[IO[bytes]]:
    """A file for writing, packed if its name ends in .gz; the same content gives the same bytes."""
    with path.open("wb") as file:
        if path.suffix != ".gz":
            yield file
            return
        # Without the name and time that gzip would put into its header.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
            yield cast(IO[bytes], packed)
