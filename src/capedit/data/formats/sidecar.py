"""A folder of images, each with its captions in a .txt or .caption file beside it, one to a line.

Byte-stable. A blank line is no caption, but an empty file is one empty caption. Everything else an
instance may have (ids, target, tokens, extra fields, line breaks in a caption) goes to
`.capedit/records.jsonl`, which is only written when there is such a thing; the text file has the last
word on the caption, so people can go on editing it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from capedit.data.errors import DataError, Problem
from capedit.data.fields import Record
from capedit.data.formats.base import Edits, Format, Output, Reading
from capedit.data.formats.jsonvalues import dumps, restore
from capedit.data.images import IMAGE_SUFFIXES, Image, ImageFile, image_suffix
from capedit.data.instance import Instance
from capedit.data.side import side_folder

_CAPTIONS = (".txt", ".caption")
_BOM = b"\xef\xbb\xbf"
_UNFIT = re.compile("[\r\n\ud800-\udfff]")
RECORDS = "records.jsonl"


class Sidecar(Format):
    name = "sidecar"

    def recognises(self, path: Path) -> bool:
        if (side_folder(path) / RECORDS).is_file():
            return True
        return any(_beside(caption, images) for _, captions, images in _walk(path) for caption in captions)

    def read(self, file: Path, reading: Reading) -> Iterator[Instance]:
        """`file` is the folder."""
        known: set[str] = set()
        if (side_folder(file) / RECORDS).is_file():
            yield from _known(file, known, reading)
        for folder, captions, images in _walk(file):
            for caption in captions:
                if _relative(caption, file) not in known:
                    yield from _captions(file, caption, _beside(caption, images), reading)
            bare = set(images) - {name for caption in captions if (name := _beside(caption, images))}
            for name in sorted(bare):
                reading.report(Problem(folder / name, "", None, "image without a caption"))

    def write(self, instances: Iterator[Instance], output: Output) -> int:
        output.staged.mkdir(exist_ok=True)
        count, dispensable = 0, True
        last: tuple[tuple[int, str], ...] = ((0, ""),)
        with output.side.file(RECORDS).open("w", encoding="utf-8") as records:
            for instance in instances:
                count += 1
                entry = self._put(instance, output)
                order = (*_order(entry["sidecar"]), (0, f"{entry['line']:09d}"))
                dispensable = dispensable and order > last and _is_plain(instance, entry)
                last = order
                records.write(dumps(entry) + "\n")
        if dispensable:
            output.side.file(RECORDS).unlink()
            output.side.staged.rmdir()
        return count

    def is_changed(self, instance: Instance) -> bool:
        origin = instance.origin
        return origin is None or instance.reference != origin.record[origin.names["reference"]]

    def rewrite(self, file: Path, edited: Iterator[Instance], out: Path, reading: Reading) -> None:
        """`file` is one of the text files. Only captions can change here; other fields are not in it."""
        edits = Edits(edited)
        new: list[bytes] = []
        for at, raw in enumerate(_lines(file) or [b""]):
            instance = edits.at(at)
            new.append(raw if instance is None else _edited_line(raw, instance))
        bom = _BOM if file.read_bytes().startswith(_BOM) else b""
        out.write_bytes(bom + b"".join(new))
        edits.finish(file)

    def _put(self, instance: Instance, output: Output) -> dict[str, Any]:
        """Write one caption and its image; gives the entry that tells everything about it."""
        data = output.image_data(instance)
        stem, image = _place_image(output.staged, _stem(instance), data, instance.image)
        record = self.record(instance, None if data is not None else output.image_path(instance.image))
        names = {r: key for r, key in self.names(instance).items() if key in record and key not in instance.extra}
        if data is not None and "image" in names:
            record.pop(names.pop("image"))
        written = _UNFIT.sub(lambda unfit: " " if unfit[0] in "\r\n" else "\ufffd", instance.reference)
        own = instance.origin is not None and instance.origin.format == self.name
        file = stem + (instance.origin.file.suffix if own and instance.origin else ".txt")
        line = _append(output.staged / file, written)
        about = {"sidecar": file, "line": line, "written": written, "image": image}
        return {**about, "names": names, "record": record}


def _is_plain(instance: Instance, entry: Mapping[str, Any]) -> bool:
    """Whether the files alone give the instance back, so that no entry is needed."""
    origin, names = instance.origin, entry["names"]
    if origin is None or origin.format != Sidecar.name or entry["image"] is None:
        return False
    stem = entry["image"].rpartition(".")[0]
    derived = instance.image_id == stem and re.fullmatch(re.escape(stem) + r"(#\d+)?", str(instance.id))
    bare = set(entry["record"]) == {names[role] for role in ("reference", "id", "image_id") if role in names}
    text = entry["written"]
    return bool(derived) and bare and text == instance.reference and bool(text.strip()) and text[0] != "\ufeff"


def _captions(root: Path, file: Path, image: str | None, reading: Reading) -> Iterator[Instance]:
    """The captions of a text file that nothing else is known of."""
    if image is None:
        reading.report(Problem(file, "", "image", "no image beside this caption"))
        return
    lines = _lines(file) or [b""]
    chosen = [at for at, line in enumerate(lines) if line.strip()] or [0]
    where = ImageFile(file.parent / image, _relative(file.parent / image, root))
    stem = where.name.rpartition(".")[0]
    for number, at in enumerate(chosen, start=1):
        text = _text(lines[at], file, at, reading)
        found = None if text is None else _instance({"caption": text}, lines[at], file, at, reading)
        if found is not None:
            name = stem if len(chosen) == 1 else f"{stem}#{number}"
            yield replace(found, id=name, image_id=stem, image=where)


def _known(root: Path, known: set[str], reading: Reading) -> Iterator[Instance]:
    """The captions that `records.jsonl` tells of, in its order; the files they are in are entered in `known`."""
    records = side_folder(root) / RECORDS
    current, lines = Path(), [b""]
    with records.open(encoding="utf-8") as source:
        for number, row in enumerate(source, start=1):
            try:
                entry = json.loads(row)
                file, at, written, image = (entry[key] for key in ("sidecar", "line", "written", "image"))
                names, record = dict(entry["names"]), restore(entry["record"])
                caption = names["reference"]
            except (ValueError, KeyError, TypeError) as error:
                reading.report(Problem(records, f"line {number}", None, f"broken entry ({error!r})"))
                continue
            known.add(file)
            if root / file != current:
                current = root / file
                lines = (_lines(current) or [b""]) if current.is_file() else []
            text = _text(lines[at], current, at, reading) if at < len(lines) else None
            if text is None:
                if at >= len(lines):
                    reading.report(Problem(current, f"line {at + 1}", "caption", "gone, though records.jsonl has it"))
                continue
            stale = text != written
            if stale:
                record[caption] = text
            found = _instance(record, lines[at], current, at, replace(reading, fields=names))
            if found is not None:
                picture = ImageFile(root / image, image) if image else found.image
                tokens = None if stale else found.given_reference_tokens
                yield replace(found, image=picture, given_reference_tokens=tokens)


def _instance(record: Record, raw: bytes, file: Path, at: int, reading: Reading) -> Instance | None:
    place = f"line {at + 1}"
    return reading.instance(record, format=Sidecar.name, file=file, index=at, place=place, raw=raw)


def _text(raw: bytes, file: Path, at: int, reading: Reading) -> str | None:
    try:
        return raw.rstrip(b"\r\n").decode("utf-8")
    except UnicodeDecodeError as error:
        reason = f"not UTF-8 (byte 0x{raw[error.start]:02x})"
        reading.report(Problem(file, f"line {at + 1}", "caption", reason))
        return None


def _edited_line(raw: bytes, instance: Instance) -> bytes:
    origin = instance.origin
    if origin is not None and instance.reference == origin.record[origin.names["reference"]]:
        return raw if origin.raw is None else origin.raw
    if _UNFIT.search(instance.reference) and origin is not None:
        raise DataError(f"{origin.file}, {origin.place}, field 'caption': must be one line of text here")
    return instance.reference.encode("utf-8") + raw[len(raw.rstrip(b"\r\n")) :]


def _lines(file: Path) -> list[bytes]:
    """The lines of a text file with their ends; only \\n ends a line."""
    return re.findall(rb"[^\n]*\n|[^\n]+", file.read_bytes().removeprefix(_BOM))


def _walk(root: Path) -> Iterator[tuple[Path, list[Path], dict[str, None]]]:
    """Folder by folder: its caption files and the names of its images, sorted; hidden things left out."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        visible = sorted(name for name in names if not name.startswith("."))
        captions = [Path(folder, name) for name in visible if Path(name).suffix.lower() in _CAPTIONS]
        images = [name for name in visible if Path(name).suffix.lower() in IMAGE_SUFFIXES]
        yield Path(folder), captions, dict.fromkeys(images)


def _beside(caption: Path, images: Mapping[str, None]) -> str | None:
    """The image of a caption file: a.jpg for a.txt, and for a.jpg.txt too."""
    if caption.stem in images:
        return caption.stem
    suffixes = (variant for suffix in IMAGE_SUFFIXES for variant in (suffix, suffix.upper()))
    return next((name for suffix in suffixes if (name := caption.stem + suffix) in images), None)


def _order(relative: str) -> tuple[tuple[int, str], ...]:
    """Sorts as `_walk` goes: the files of a folder before its subfolders."""
    *folders, name = relative.split("/")
    return (*((1, folder) for folder in folders), (0, name))


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def _stem(instance: Instance) -> str:
    """A file name, without suffix, for the image: its id, else its own name, else the caption's id."""
    name = instance.image.name if instance.image else None
    chosen = str(next(x for x in (instance.image_id, name, instance.id) if x is not None))
    if PurePosixPath(chosen).suffix.lower() in IMAGE_SUFFIXES:
        chosen = chosen[: chosen.rindex(".")]
    return "/".join(_file_name(part) for part in chosen.split("/") if part) or "unnamed"


def _file_name(part: str) -> str:
    """A part of a path that every file system takes: no hidden names, no "..", nothing too long."""
    name = quote(part, safe=" !#$&'()+,-.;=@[]^_{}~", errors="surrogatepass")
    name = "%2E" + name[1:] if name.startswith(".") else name
    return name if len(name) <= 150 else f"{name[:120]}~{sha256(name.encode()).hexdigest()[:16]}"


def _place_image(root: Path, stem: str, data: bytes | None, image: Image | None) -> tuple[str, str | None]:
    """Put an image into the folder unless it is there; another of the same name gets a number."""
    if data is None or image is None:
        return stem, None
    suffix = image_suffix(data, image.name)
    number, free = 1, stem
    while taken := next((found for s in IMAGE_SUFFIXES if (found := root / f"{free}{s}").exists()), None):
        if taken.suffix == suffix and taken.read_bytes() == data:
            return free, free + suffix
        number += 1
        free = f"{stem}~{number}"
    file = root / f"{free}{suffix}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return free, free + suffix


def _append(file: Path, text: str) -> int:
    """Add a line to a text file; gives its number, from 0."""
    file.parent.mkdir(parents=True, exist_ok=True)
    line = len(_lines(file)) if file.exists() else 0
    with file.open("ab") as target:
        target.write(text.encode("utf-8") + b"\n")
    return line
