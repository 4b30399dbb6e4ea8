"""COCO captions JSON: images and annotations; all else in the file is carried along. Byte-stable."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, Any

from capedit.data.errors import DataError, Problem
from capedit.data.fields import Record
from capedit.data.formats.base import Output, Reading, Segment, create, open_bytes
from capedit.data.formats.json_records import JsonRecordFormat
from capedit.data.formats.jsontext import Piece, array_spacing, encode, patch_object, pieces
from capedit.data.formats.jsonvalues import dumps, restore_from
from capedit.data.instance import Instance

_EMPTY = b'{"images": [], "annotations": []}'
_NAMES = {"id": "id", "image_id": "image_id", "reference": "caption"}


class Coco(JsonRecordFormat):
    """Records are the annotations. The names of the images are held in memory while reading: they may
    stand behind the annotations, and captions are many to an image."""

    name = "coco"
    suffixes = (".json", ".json.gz")
    container = "coco.json"

    def names(self, instance: Instance) -> Mapping[str, str]:
        return {**super().names(instance), **_NAMES}

    def segments(self, file: Path, reading: Reading) -> Iterator[Segment]:
        images = _image_names(file)
        index = -1
        with open_bytes(file) as source:
            for piece in pieces(source):
                raw = encode(piece.text)
                if piece.array != "annotations":
                    if piece.error:
                        reading.report(Problem(file, f"line {piece.line}", piece.array, piece.error))
                    yield Segment(raw)
                    continue
                index += 1
                place = f"annotation {index + 1} (line {piece.line})"
                if piece.error:
                    reading.report(Problem(file, place, None, piece.error))
                    yield Segment(raw)
                    continue
                about = {"format": self.name, "file": file, "index": index, "place": place, "raw": raw}
                instance = reading.instance(restore_from(piece.value, piece.text), **about)
                yield Segment(raw, None if instance is None else _with_image(instance, images, file, reading))

    def record(self, instance: Instance, image: Any) -> Record:
        record = super().record(instance, image)
        key = self.names(instance)["image"]
        if image is None and key not in instance.extra:
            record.pop(key, None)  # it is in the table of images
        return record

    def keep_container(self, files: list[Path], out: Path) -> None:
        with open_bytes(files[0]) as source, out.open("wb") as target:
            inside = False
            for piece in pieces(source):
                inside = inside and piece.closes is None
                if not inside:
                    target.write(encode(piece.text))
                inside = inside or piece.opens == "annotations"

    def write(self, instances: Iterator[Instance], output: Output) -> int:
        container = _container(output)

        def open_container() -> IO[bytes]:
            return open_bytes(container) if container else BytesIO(_EMPTY)

        with open_container() as source:
            spacing = array_spacing(source, "annotations")
        with open_container() as source:
            table = _Table(source)
        with tempfile.TemporaryFile(dir=output.staged.parent) as spool:
            count = 0
            for count, instance in enumerate(instances, start=1):
                numbered = instance if instance.has_given_id else replace(instance, id=count)
                path = output.image_path(instance.image)
                image = None if table.holds(instance.image_id, path) else path
                raw = self.render(numbered, image)
                spool.write(len(raw).to_bytes(8, "big") + raw)
            spool.seek(0)
            with open_container() as source, create(output.staged) as target:
                _assemble(source, target, spool, table, spacing)
        return count


class _Table:
    """The images of the file being written: those of the container, then those that turn up."""

    def __init__(self, container: IO[bytes]) -> None:
        self.names: dict[str | int, str] = {}
        self.added: dict[str | int, str | None] = {}
        self.moved: dict[str | int, str] = {}
        self.exists = False
        for piece in pieces(container):
            self.exists = self.exists or piece.opens == "images"
            if piece.array == "images" and isinstance(piece.value, dict):
                image = piece.value
                if isinstance(image.get("id"), str | int):
                    self.names[image["id"]] = image.get("file_name", "")

    def holds(self, image_id: str | int | None, path: str | None) -> bool:
        """Whether the annotation can leave the image to the table; a new image is entered."""
        if image_id is None or not self.exists:
            return False
        if image_id in self.names:
            known = self.names[image_id]
            if path is None or path == known:
                return True
            # From another folder the way to the same image is spelled differently.
            if PurePosixPath(path).name == PurePosixPath(known).name:
                self.moved[image_id] = path
                return True
            return False
        self.names[image_id], self.added[image_id] = path or "", path
        return True

    def text(self, piece: Piece) -> str:
        """A piece of the container; an image that is now reached by another path says so."""
        image = piece.value
        if piece.array != "images" or not isinstance(image, dict) or image.get("id") not in self.moved:
            return piece.text
        return patch_object(piece.text, image, {**image, "file_name": self.moved[image["id"]]})


def _assemble(source: IO[bytes], target: IO[bytes], spool: IO[bytes], table: _Table, spacing: tuple[str, str]) -> None:
    """Copy the container with its annotations replaced by the spooled ones and the new images added."""
    inside, had_images, had_annotations, gap = False, False, False, ""
    for piece in pieces(source):
        had_images = had_images or piece.array == "images"
        if piece.closes == "images" and table.added:
            rows = [dumps(_entry(key, path)) for key, path in table.added.items()]
            target.write(encode((", " if had_images else "") + ", ".join(rows)))
        if piece.closes == "annotations":
            inside = False
            target.write(encode(gap) if had_annotations else b"")
        if inside:
            is_record = piece.array == "annotations"
            had_annotations = had_annotations or is_record
            gap = "" if is_record else gap + piece.text
            continue
        target.write(encode(table.text(piece)))
        if piece.opens == "annotations":
            inside = True
            lead = encode(spacing[0])
            while size := spool.read(8):
                target.write(lead + spool.read(int.from_bytes(size, "big")))
                lead = encode(spacing[1])


def _entry(image_id: str | int, path: str | None) -> Record:
    return {"id": image_id} if path is None else {"id": image_id, "file_name": path}


def _container(output: Output) -> Path | None:
    """The file whose other contents are taken over."""
    template = output.templates.get(Coco.name)
    if template is not None:
        with open_bytes(template) as source:
            if not any(piece.opens == "annotations" for piece in pieces(source)):
                raise DataError(f"{template}: no 'annotations' array, so it cannot serve as a template")
    return template


def _image_names(file: Path) -> dict[str | int, str]:
    names: dict[str | int, str] = {}
    with open_bytes(file) as source:
        for piece in pieces(source):
            image = piece.value if piece.array == "images" else None
            if isinstance(image, dict) and isinstance(image.get("id"), str | int):
                names[image["id"]] = str(image.get("file_name") or "")
    return names


def _with_image(instance: Instance, images: dict[str | int, str], file: Path, reading: Reading) -> Instance:
    if instance.image_id is None or not images:
        return instance
    name = images.get(instance.image_id)
    if name is None and instance.origin is not None:
        reason = f"no image with id {instance.image_id!r} in 'images'"
        reading.report(Problem(file, instance.origin.place, "image_id", reason))
    if not name or instance.image is not None:
        return instance
    return replace(instance, image=reading.locate(file, name))
