"""WebDataset tar shards: a sample is the files of one key, such as 0001.jpg, 0001.txt and 0001.json.

Byte-stable: unchanged members are copied with their headers and padding, a changed .txt or .json gets a
new size and checksum in its header and nothing else. An image is repeated for each of its captions.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from capedit.data.errors import DataError, FieldError, Problem
from capedit.data.fields import Record, detect, kind
from capedit.data.formats.base import Edits, Format, Output, Reading, found_image
from capedit.data.formats.jsontext import encode, parse, patch_object
from capedit.data.formats.jsonvalues import dumps, is_utf8, restore, same
from capedit.data.images import IMAGE_SUFFIXES, ImageMember, image_suffix
from capedit.data.instance import Instance, Member, Origin

_KEY = re.compile(r"((?:.*/)?[^./]+)(\.[^/]*)", re.DOTALL)
_SAFE_KEY = re.compile(r"[A-Za-z0-9_\-]+(?:/[A-Za-z0-9_\-]+)*")
_TEXT = (".txt", ".caption", ".text")
_COPY = 1 << 20


class WebDataset(Format):
    name = "webdataset"
    suffixes = (".tar",)

    def read(self, file: Path, reading: Reading) -> Iterator[Instance]:
        with file.open("rb") as source:
            for index, (key, members) in enumerate(_samples(file, reading)):
                place = f"key {key}"
                try:
                    record, fields = _record(members, source, reading.fields)
                except FieldError as error:
                    reading.report(Problem(file, place, error.field, error.reason))
                    continue
                about = {"format": self.name, "file": file, "index": index, "place": place}
                raw = next((_data(source, member) for member in members if member.suffix == ".json"), None)
                found = replace(reading, fields=fields).instance(record, **about, members=members, raw=raw)
                if found is not None:
                    found = found if found.has_given_id else replace(found, id=key)
                    yield replace(found, image=_image(file, key, members) or found.image)

    def write(self, instances: Iterator[Instance], output: Output) -> int:
        count, last = 0, ""
        with output.staged.open("wb") as target:
            for count, instance in enumerate(instances, start=1):
                origin = instance.origin
                if origin is not None and origin.format == self.name:
                    with origin.file.open("rb") as source:
                        for member in origin.members:
                            self._put_member(member, instance, source, target)
                    last = origin.place.removeprefix("key ")
                else:
                    last = _key(instance, count, last)
                    self._put_new(last, instance, target, output)
            # As tar itself ends an archive: two empty blocks, and the last record of 20 blocks filled.
            target.write(bytes(1024))
            target.write(bytes(-target.tell() % tarfile.RECORDSIZE))
        return count

    def rewrite(self, file: Path, edited: Iterator[Instance], out: Path, reading: Reading) -> None:
        edits = Edits(edited)
        with file.open("rb") as source, out.open("wb") as target:
            at = 0
            for instance in self.read(file, reading):
                if (new := edits.of(instance)) is not None and instance.origin is not None:
                    for member in instance.origin.members:
                        _copy(source, target, at, member.start)
                        self._put_member(member, new, source, target, instance)
                        at = member.end
            _copy(source, target, at, file.stat().st_size)
        edits.finish(file)

    def _put_member(
        self, member: Member, instance: Instance, source: IO[bytes], target: IO[bytes], current: Instance | None = None
    ) -> None:
        """Copy a member of `current` (by default, of what the instance was read from) with its new content."""
        data = self._changed(member, instance, source, current or instance)
        if data is None:
            _copy(source, target, member.start, member.end)
            return
        _copy(source, target, member.start, member.data - tarfile.BLOCKSIZE)
        source.seek(member.data - tarfile.BLOCKSIZE)
        target.write(_resized(source.read(tarfile.BLOCKSIZE), len(data)))
        target.write(data + bytes(-len(data) % tarfile.BLOCKSIZE))

    def _changed(self, member: Member, instance: Instance, source: IO[bytes], current: Instance) -> bytes | None:
        """The new content of a member; None if it stays as it is."""
        origin, now = instance.origin, current.origin
        if origin is None or now is None or member.suffix not in (*_TEXT, ".json"):
            return None
        if member.suffix in _TEXT:
            before = now.record[now.names["reference"]]
            if instance.reference == before or member.suffix != _caption_suffix(now):
                return None
            return encode(_as_file(instance.reference, _data(source, member).endswith(b"\n")))
        record = self.record(instance, found_image(instance))
        if same(record, dict(now.record)):
            return None
        if origin.raw is not None and same(record, dict(origin.record)):
            return origin.raw
        old, new = ({k: v for k, v in side.items() if not k.startswith(".")} for side in (now.record, record))
        return None if same(old, new) else encode(patch_object(_data(source, member).decode("utf-8"), old, new))

    def names(self, instance: Instance) -> Any:
        origin = instance.origin
        if origin is not None and origin.format == self.name:
            return {**super().names(instance), **origin.names}
        return super().names(instance)

    def record(self, instance: Instance, image: Any) -> Record:
        # The key stands for an id that no field gives.
        origin = instance.origin
        if origin is not None and origin.format == self.name and "id" not in origin.names:
            record = super().record(instance, image)
            if f"key {instance.id}" == origin.place:
                record.pop(self.names(instance)["id"], None)
            self._check(record, origin)
            return record
        return super().record(instance, image)

    def _check(self, record: Record, origin: Origin) -> None:
        if all(member.suffix != ".json" for member in origin.members):
            for key in record:
                if key not in origin.record:
                    raise DataError(f"{origin.file}, {origin.place}: no .json member to hold the field {key!r}")

    def _put_new(self, key: str, instance: Instance, target: IO[bytes], output: Output) -> None:
        data = output.image_data(instance)
        missing = output.image_path(instance.image) if data is None else None
        record = self.record(instance, missing)
        names = self.names(instance)
        if missing is None and names["image"] not in instance.extra:
            record.pop(names["image"], None)
        if fits := is_utf8(instance.reference):
            record.pop(names["reference"])
        if instance.id == key and not detect(tuple(k for k in record if k != names["id"]), {}).get("id"):
            record.pop(names["id"], None)
        if data is not None and instance.image is not None:
            _put(target, key + image_suffix(data, instance.image.name), data)
        if fits:
            _put(target, f"{key}.txt", encode(_as_file(instance.reference, ends=False)))
        for name in [name for name, value in record.items() if name.startswith(".") and isinstance(value, bytes)]:
            _put(target, key + name, record.pop(name))
        if record:
            _put(target, f"{key}.json", encode(dumps(record)))


def _samples(file: Path, reading: Reading) -> Iterator[tuple[str, tuple[Member, ...]]]:
    """Keys and members of the samples: files of one key that follow one another."""
    key: str | None = None
    members: list[Member] = []
    size = file.stat().st_size
    try:
        with tarfile.open(file, "r:", errorlevel=2) as shard:
            while (entry := shard.next()) is not None:
                shard.members.clear()  # type: ignore[attr-defined]  # or the index of a large shard would stay in memory
                match = _KEY.fullmatch(entry.name) if entry.isreg() else None
                if match is None:
                    continue
                if match[1] != key:
                    if key is not None:
                        yield key, tuple(members)
                    key, members = match[1], []
                member = Member(match[2], entry.offset, entry.offset_data, entry.size)
                if member.data + member.size > size:
                    raise tarfile.ReadError(f"the shard ends inside {entry.name!r}")
                members.append(member)
            _check_end(file, shard.offset)
    except (tarfile.TarError, EOFError) as error:
        reading.report(Problem(file, f"key {key}" if key else "", None, f"broken tar shard: {error}"))
        if members and members[-1].end > size:
            return
    if key is not None and members:
        yield key, tuple(members)


def _check_end(file: Path, offset: int) -> None:
    """`tarfile` takes a damaged header for the end of the archive; the end is a block of zeros."""
    with file.open("rb") as source:
        source.seek(offset)
        block = source.read(tarfile.BLOCKSIZE)
    # Having met the end, it stands behind the block of zeros or at it.
    if block.strip(b"\0"):
        raise tarfile.ReadError(f"no tar header at byte {offset}")


def _record(members: tuple[Member, ...], source: IO[bytes], fields: Any) -> tuple[Record, dict[str, str | None]]:
    """The fields of a sample: those of its .json, its caption, and other files (as bytes, by suffix)."""
    record: Record = {}
    text: tuple[str, str] | None = None
    pictured = False
    others: Record = {}
    for member in members:
        suffix = member.suffix
        if suffix.lower() in IMAGE_SUFFIXES and not pictured:
            pictured = True
        elif suffix == ".json":
            content = restore(parse(_data(source, member).decode("utf-8", "surrogateescape")))
            if not isinstance(content, dict):
                raise FieldError("json", f"expected an object with fields, found {kind(content)}")
            record = content
        elif suffix in _TEXT and text is None:
            text = (suffix, _decode(_data(source, member), suffix))
        else:
            others[suffix] = _data(source, member)
    roles: dict[str, str | None] = {**fields}
    if pictured:
        roles["image"] = None
    if text is not None:
        known = detect(tuple(record), roles).get("reference")
        # img2dataset writes the caption into both; then they are one, and are edited together.
        if known is None or record[known] != text[1]:
            record = {text[0]: text[1], **record}
            roles["reference"] = text[0]
    return {**record, **others}, roles


def _decode(data: bytes, suffix: str) -> str:
    try:
        return data.decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise FieldError(suffix.removeprefix("."), f"not UTF-8 (byte 0x{data[error.start]:02x})") from None


def _as_file(text: str, ends: bool) -> str:
    """A caption as the content of a file: one line break at the end is not part of it."""
    return text + "\n" if ends or text.endswith("\n") else text


def _caption_suffix(origin: Origin) -> str | None:
    return next((member.suffix for member in origin.members if member.suffix in _TEXT), None)


def _image(file: Path, key: str, members: tuple[Member, ...]) -> ImageMember | None:
    for member in members:
        if member.suffix.lower() in IMAGE_SUFFIXES:
            return ImageMember(file, key + member.suffix, member.data, member.size)
    return None


def _key(instance: Instance, count: int, last: str) -> str:
    """The id if it can be a file's name and differs from its neighbour's; else a running number."""
    if isinstance(instance.id, str) and _SAFE_KEY.fullmatch(instance.id) and instance.id != last:
        return instance.id if len(instance.id) <= 200 else f"{count - 1:09d}"
    number = f"{count - 1:09d}"
    return number if number != last else f"{number}_"


def _put(target: IO[bytes], name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)  # no time and no owner: the same data gives the same shard
    target.write(info.tobuf(tarfile.PAX_FORMAT))
    target.write(data + bytes(-len(data) % tarfile.BLOCKSIZE))


def _data(source: IO[bytes], member: Member) -> bytes:
    source.seek(member.data)
    return source.read(member.size)


def _copy(source: IO[bytes], target: IO[bytes], start: int, end: int) -> None:
    source.seek(start)
    left = end - start
    while left > 0 and (data := source.read(min(left, _COPY))):
        target.write(data)
        left -= len(data)


def _resized(header: bytes, size: int) -> bytes:
    """A tar header block with another size: 12 octal digits at 124, and the checksum at 148 anew."""
    block = bytearray(header)
    block[124:136] = b"%011o\0" % size
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)
