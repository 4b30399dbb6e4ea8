"""From the edit log to the output: the dataset again, with nothing changed but the captions that are to change.

Every file of the output is made from the file of the source that it stands for, and put in place whole. So it can be
made again at any time, with other captions: that is what undoing is.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, groupby
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from capedit.data import DataError, Dataset, Instance, Problem
from capedit.pipeline.durable import place
from capedit.pipeline.errors import FatalError, RunError, writing
from capedit.pipeline.log import EditLog, Status
from capedit.pipeline.settings import Source, base_folder, relative
from capedit.pipeline.workbench import Account, Task, Workbench


@dataclass(frozen=True, slots=True)
class NewCaption:
    """A record that is to say something else than it did."""

    row: int
    file: str
    index: int
    original: str
    caption: str


def new_captions(
    log: EditLog, decided: Mapping[int, str] | None, start: int = 0, stop: int | None = None
) -> Iterator[NewCaption]:
    """The captions that differ from the original, by decision or, where there is none, by the run.

    None instead of decisions undoes the run: there are no new captions then.
    """
    if decided is None:
        return
    for new in final_captions(log, decided, start, stop):
        if new.caption != new.original:
            yield new


def final_captions(
    log: EditLog, decided: Mapping[int, str], start: int = 0, stop: int | None = None
) -> Iterator[NewCaption]:
    """What every caption says that the run has changed or that was decided upon."""
    chosen = pa.array(decided, pa.int64())
    for batch in log.batches(["row", "file", "index", "original", "original_raw", "refined", "status"], start, stop):
        wanted = pc.equal(batch.column("status").cast(pa.string()), Status.CHANGED.value)
        if decided:
            wanted = pc.or_(wanted, pc.is_in(batch.column("row"), chosen))
        batch = batch.filter(wanted)
        for record in batch.to_pylist():
            raw = record["original_raw"]
            original = record["original"] if raw is None else raw.decode("utf-8", "surrogatepass")
            said = record["refined"] if record["status"] == Status.CHANGED else original
            said = decided.get(record["row"], said)
            yield NewCaption(record["row"], record["file"], record["index"], original, said)


Matched = Iterator[tuple[Instance, NewCaption | None]]


def matched(instances: Iterable[Instance], captions: Iterator[NewCaption], base: Path) -> Matched:
    """Instances in the order of their dataset, each with the new caption that is meant for it."""
    new = next(captions, None)
    for instance in instances:
        origin = instance.origin
        if new is None or origin is None or (new.index, new.file) != (origin.index, relative(origin.file, base)):
            yield instance, None
        else:
            yield instance, new
            new = next(captions, None)
    if new is not None:
        raise RunError(f"{base / new.file}: record {new.index + 1} is gone since the run read it")


def as_read(both: Matched) -> Matched:
    """The same, of a dataset that must still say what it said when the run read it."""
    for instance, new in both:
        if new is not None and instance.reference != new.original:
            where = f"{instance.origin.file}, {instance.origin.place}" if instance.origin else f"{instance.id}"
            raise RunError(f"{where}: the caption has changed since the run read it")
        yield instance, new


def revised(both: Matched) -> Iterator[Instance]:
    """All instances, with new captions where there are any."""
    return (one if new is None else one.revised(reference=new.caption) for one, new in both)


class Handling(StrEnum):
    """What the files at the target are before they are written."""

    NEW = "new"
    """Not there; those that are there are done."""
    UNTOUCHED = "untouched"
    """The very files of the source, or what takes their place; anything else is somebody's work, and left alone."""
    OURS = "ours"
    """Known to be written by us."""


@dataclass(frozen=True)
class WriteFile:
    """A unit of work: one file of the dataset (all of it, where the format has no such thing), with its captions."""

    number: int
    """Of the file in the dataset."""
    source: Source
    log: str
    rows: range
    """Of the log, those about this file."""
    target: str
    """The folder that files go to, as they are called in the source; or the file, if `single`."""
    single: bool
    always: tuple[str, ...]
    """Files to write even if nothing in them changes."""
    handling: Handling
    decided: Mapping[int, str] | None = field(default_factory=dict)

    def is_done(self, task: Task) -> bool:
        return (
            self.handling is Handling.NEW
            and bool(self.always)
            and all(self._target(name).exists() for name in self.always)
        )

    def run(self, bench: Workbench) -> Account:
        self.write(bench.task.work / "staged")
        return Account()

    def write(self, staging: Path) -> None:
        dataset = self.source.open()
        base = base_folder(dataset)
        written = set()
        captions = self._captions()
        first = next(captions, None)
        with writing(Path(self.target)):
            staging.mkdir(parents=True, exist_ok=True)
            if first is not None:  # a file without changes is not even read: it may be unreadable
                both = as_read(matched(self._instances(dataset), chain([first], captions), base))
                changed = revised(pair for pair in both if pair[1] is not None)
                for file, group in self._by_file(changed, dataset, base):
                    name = relative(file, base)
                    staged = _staged(staging, self.number, file)
                    dataset.format.rewrite(file, iter(group), staged, dataset.reading(_ignore))
                    self._put(staged, name, base)
                    written.add(name)
            for name in self.always:
                if name not in written:
                    staged = _staged(staging, self.number, Path(name))
                    shutil.copyfile(base / name, staged)
                    self._put(staged, name, base)

    def _captions(self) -> Iterator[NewCaption]:
        return new_captions(EditLog(self.log), self.decided, self.rows.start, self.rows.stop)

    def _by_file(
        self, changed: Iterator[Instance], dataset: Dataset, base: Path
    ) -> Iterator[tuple[Path, Iterable[Instance]]]:
        """Instances by the file that they go to, each file once, with all of its own."""
        if not dataset.files[self.number].is_dir():
            yield from groupby(changed, key=_file)
            return
        # Inside a folder, the captions of a file need not follow one another: they wait until all have come.
        due = Counter(new.file for new in self._captions())
        waiting: dict[Path, list[Instance]] = {}
        for instance in changed:
            file = _file(instance)
            waiting.setdefault(file, []).append(instance)
            if len(waiting[file]) == due[relative(file, base)]:
                yield file, sorted(waiting.pop(file), key=_index)

    def _instances(self, dataset: Dataset) -> Iterator[Instance]:
        try:
            yield from dataset.format.read(dataset.files[self.number], dataset.reading(_ignore))
        except OSError as error:
            raise DataError(f"{dataset.files[self.number]}: cannot be read ({error.strerror or error})") from error

    def _put(self, staged: Path, name: str, base: Path) -> None:
        target = self._target(name).resolve()  # a link stays a link
        target.parent.mkdir(parents=True, exist_ok=True)
        if self.handling is Handling.UNTOUCHED and not _is_either(target, base / name, staged):
            raise FatalError(f"{target}: has been changed while the run was under way, and is left alone")
        place(staged, target)

    def _target(self, name: str) -> Path:
        return Path(self.target) if self.single else Path(self.target) / name


def _staged(staging: Path, number: int, file: Path) -> Path:
    # The same ending, since formats go by it.
    return staging / f"{number}.{uuid4().hex}{''.join(file.suffixes[-2:])}"


def _is_either(file: Path, one: Path, other: Path) -> bool:
    return file.exists() and (
        file.samefile(one) or filecmp.cmp(file, one, shallow=False) or filecmp.cmp(file, other, shallow=False)
    )


def _file(instance: Instance) -> Path:
    assert instance.origin is not None
    return instance.origin.file


def _index(instance: Instance) -> int:
    assert instance.origin is not None
    return instance.origin.index


def _ignore(problem: Problem) -> None:
    """The plan has told of it."""


def files_of_rows(log: EditLog, rows: Iterable[int]) -> list[str]:
    """The files in which these rows of the log stand."""
    chosen = pa.array(rows, pa.int64())
    found: dict[str, None] = {}
    for batch in log.batches(["row", "file"]):
        hits = batch.filter(pc.is_in(batch.column("row"), chosen))
        found |= dict.fromkeys(hits.column("file").to_pylist())
    return list(found)


def rows_by_file(log: EditLog) -> dict[str, range]:
    """The rows about each file: they follow one another in the log, save where a dataset is one folder."""
    found: dict[str, range] = {}
    row = 0
    for batch in log.batches(["file"]):
        for item in pc.value_counts(batch.column(0)).to_pylist():  # in the order in which they come
            start = found[item["values"]].start if item["values"] in found else row
            row += item["counts"]
            found[item["values"]] = range(start, row)
    return found


def write_units(
    source: Source,
    log: EditLog,
    target: Path,
    handling: Handling,
    *,
    decided: Mapping[int, str] | None,
    always: Iterable[str] | None = None,
) -> list[WriteFile]:
    """What must be done to have the output at `target`; `always` says which files, by default all of them."""
    dataset = source.open()
    base = base_folder(dataset)
    names = [relative(file, base) for file in dataset.files]
    wanted = set(names) if always is None else set(always)
    rows = rows_by_file(log)
    units = []
    for number, (file, name) in enumerate(zip(dataset.files, names, strict=True)):
        # Of a dataset that is one folder, the names are those of the files inside.
        mine = wanted - {name} if file.is_dir() else wanted & {name}
        span = range(len(log)) if file.is_dir() else rows.get(name, range(0))
        here = decided and {row: text for row, text in decided.items() if row in span}
        single = dataset.path.is_file()
        unit = WriteFile(
            number, source, str(log.folder), span, str(target), single, tuple(sorted(mine)), handling, here
        )
        units.append(unit)
    return units


def copy_rest(source: Source, target: Path, staging: Path) -> None:
    """Copy what belongs to a folder but holds no captions of its own, unless it is there."""
    folder = Path(source.path)
    staging.mkdir(parents=True, exist_ok=True)
    staged = staging / "rest"
    for inside, _, names in os.walk(folder):
        for name in names:
            file = Path(inside, name)
            copy = target / file.relative_to(folder)
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, staged)
                staged.replace(copy)  # a copy that is there is whole
        (target / Path(inside).relative_to(folder)).mkdir(parents=True, exist_ok=True)


def companions(source: Source, changed: Iterable[str]) -> dict[str, bytes]:
    """Other files, with their new content, that go with changed ones."""
    dataset = source.open()
    base = base_folder(dataset)
    found = dataset.format.companions([base / name for name in changed])
    return {relative(path, base): content for path, content in found.items()}


def write_companions(
    source: Source, changed: Iterable[str], target: Path, staging: Path, also: Iterable[str] = ()
) -> None:
    """Write the companions of changed files; those of files in `also` that are as they were become so, too."""
    base = base_folder(source.open())
    new = companions(source, changed)
    for name in {**companions(source, also), **new}:
        with writing(target / name):
            staging.mkdir(parents=True, exist_ok=True)
            staged = staging / "companion"
            staged.write_bytes(new[name] if name in new else (base / name).read_bytes())
            place(staged, target / name)


def changed_files(log: EditLog, decided: Mapping[int, str] | None) -> list[str]:
    """The files in which a caption differs from the original."""
    return list(dict.fromkeys(new.file for new in new_captions(log, decided)))
