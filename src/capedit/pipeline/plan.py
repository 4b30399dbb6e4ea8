"""The plan of a run: which captions are edited together. It depends on the dataset alone, never on who works on it.

Where images are files of their own, the captions of an image may stand anywhere (COCO's do): one pass over the dataset
puts them together, so that each image is encoded once. Where images are inside the records (tar shards, Parquet with
bytes), each file is worked on by itself, and a large dataset is read by its workers alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from capedit.data import Dataset, ImageFile, Problem
from capedit.data.atomic import staged_folder
from capedit.pipeline.durable import read_json, write_json
from capedit.pipeline.errors import RunError, writing
from capedit.pipeline.items import Item, image_key, write_items
from capedit.pipeline.selection import Selection
from capedit.pipeline.settings import Source, base_folder, relative
from capedit.pipeline.shards import FileShard, Shard, SpooledShard, problem_line, spool_file

SHARD_CAPTIONS = 256
"""Captions after which a shard takes no more images: some seconds of work, which is what a crash can cost."""
SHARD_MOST = 8192
"""Captions after which a shard takes none at all, even of images that it has."""
MANY_FILES = 64
"""So many files with their images inside are shards by themselves, and are read by workers only."""
_SPOOL_BYTES = 32 << 20
_PEEK = 100


@dataclass(frozen=True)
class Plan:
    shards: tuple[Shard, ...]
    captions: int | None
    """How many there are; None where nobody has counted."""
    spooled: bool
    broken: dict[str, str]
    """Files that could not be read to their end, and why: nothing in them is changed."""
    problems: int

    @classmethod
    def load(cls, folder: Path) -> Plan:
        values = read_json(folder / "plan.json")
        kind = SpooledShard if values["spooled"] else FileShard
        try:
            return cls(**values | {"shards": tuple(kind(*shard) for shard in values["shards"])})
        except (TypeError, KeyError) as error:
            raise RunError(f"{folder}: not a plan of this version ({error}); remove it to begin anew") from error

    def save(self, folder: Path) -> None:
        values = asdict(self) | {"shards": [list(asdict(shard).values()) for shard in self.shards]}
        write_json(folder / "plan.json", values)


def make_plan(source: Source, selection: Selection, folder: Path) -> Plan:
    """Plan a run, and leave the plan in `folder`, which appears when it is complete."""
    with writing(folder), staged_folder(folder) as staged:
        (staged / "items").mkdir()
        with _Ledger(source, staged / "problems.jsonl") as ledger:
            dataset = source.open(ledger.note)
            if not _has_images_inside(source):
                plan = _by_image(dataset, selection, staged, ledger)
            elif len(dataset.files) < MANY_FILES:
                plan = _by_stretch(dataset, ledger)
            else:
                shards = tuple(FileShard(at, None, at, 0, None) for at in range(len(dataset.files)))
                plan = Plan(shards, None, False, {}, 0)
        plan.save(staged)
    return plan


def _has_images_inside(source: Source) -> bool:
    instances = islice(source.open(), _PEEK)
    first = next((instance.image for instance in instances if instance.image is not None), None)
    return first is not None and not isinstance(first, ImageFile)


def _by_image(dataset: Dataset, selection: Selection, folder: Path, ledger: _Ledger) -> Plan:
    spool = _Spool(folder)
    images = _ImageTable()
    base = base_folder(dataset)
    current = count = 0
    sizes = [0]
    for count, instance in enumerate(dataset, start=1):
        item = Item.of(instance, count - 1, base, selected=selection.takes(instance))
        if sizes[current] >= SHARD_CAPTIONS:
            current += 1
            sizes.append(0)
        shard = images.shard_of(image_key(item.image), current)
        if sizes[shard] >= SHARD_MOST:
            shard = images.move(image_key(item.image), current)
        sizes[shard] += 1
        spool.add(shard, item)
    spool.flush()
    shards = tuple(SpooledShard(number, size) for number, size in enumerate(sizes) if size)
    return Plan(shards, count, True, ledger.broken, ledger.count)


def _by_stretch(dataset: Dataset, ledger: _Ledger) -> Plan:
    """Stretches of each file, cut after so many captions."""
    numbers = {file: number for number, file in enumerate(dataset.files)}
    shards: list[FileShard] = []
    count = captions = start = 0
    file = last = -1

    def cut(stop: int) -> None:
        if captions:
            shards.append(FileShard(len(shards), captions, file, start, stop))

    for instance in dataset:
        origin = instance.origin
        assert origin is not None  # it was read from a file
        number = numbers[origin.file]
        if number != file or captions == SHARD_CAPTIONS:
            cut(last + 1 if number != file else origin.index)
            start, captions, file = 0 if number != file else origin.index, 0, number
        captions, last = captions + 1, origin.index
        count += 1
    cut(last + 1)
    return Plan(tuple(shards), count, False, ledger.broken, ledger.count)


class _Ledger:
    """Bad records and files as they are reported."""

    def __init__(self, source: Source, path: Path) -> None:
        dataset = source.open()
        self._names = {file: relative(file, base_folder(dataset)) for file in dataset.files}
        self._file = path.open("w", encoding="utf-8")
        self.broken: dict[str, str] = {}
        self.count = 0

    def __enter__(self) -> _Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def note(self, problem: Problem) -> None:
        self.count += 1
        self._file.write(problem_line(problem))
        if problem.file in self._names and not problem.place and problem.field is None:
            self.broken[self._names[problem.file]] = problem.reason


class _Spool:
    """Items on their way to the files of their shards, which are many: written when they have become some megabytes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: dict[int, list[bytes]] = {}
        self._bytes = 0

    def add(self, shard: int, item: Item) -> None:
        line = write_items([item])
        self._waiting.setdefault(shard, []).append(line)
        self._bytes += len(line) + 100
        if self._bytes > _SPOOL_BYTES:
            self.flush()

    def flush(self) -> None:
        for shard, lines in self._waiting.items():
            with spool_file(self._folder, shard).open("ab") as file:
                file.writelines(lines)
        self._waiting, self._bytes = {}, 0


class _ImageTable:
    """In which shard an image is, in some 30 bytes an image: an open hash table of the hashes of their names.

    Two images that share a hash share a shard, and that is all.
    """

    def __init__(self) -> None:
        self._hashes, self._shards = array("Q", bytes(8 * 1024)), array("i", bytes(4 * 1024))
        self._count = 0

    def shard_of(self, key: str, otherwise: int) -> int:
        """The image's shard; one that has none is put into `otherwise`."""
        code = _code(key)
        at = self._find(code)
        if self._hashes[at] == code:
            return self._shards[at]
        self._hashes[at], self._shards[at] = code, otherwise
        self._count += 1
        if 2 * self._count > len(self._hashes):
            self._grow()
        return otherwise

    def move(self, key: str, shard: int) -> int:
        self._shards[self._find(_code(key))] = shard
        return shard

    def _find(self, code: int) -> int:
        mask = len(self._hashes) - 1
        at = code & mask
        while self._hashes[at] and self._hashes[at] != code:
            at = (at + 1) & mask
        return at

    def _grow(self) -> None:
        old = list(_pairs(self._hashes, self._shards))
        self._hashes, self._shards = array("Q", bytes(16 * len(self._hashes))), array("i", bytes(8 * len(self._shards)))
        for code, shard in old:
            at = self._find(code)
            self._hashes[at], self._shards[at] = code, shard


def _pairs(hashes: array[int], shards: array[int]) -> Iterator[tuple[int, int]]:
    return ((code, shard) for code, shard in zip(hashes, shards, strict=True) if code)


def _code(key: str) -> int:
    digest: Any = blake2b(key.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1
