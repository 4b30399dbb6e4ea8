"""Datasets of any format: open, write, and rewrite with nothing but the edits changed."""

from __future__ import annotations

import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, islice
from pathlib import Path

from capedit.data.atomic import staged_file, staged_folder
from capedit.data.errors import DataError, Problem, Problems
from capedit.data.fields import check_fields
from capedit.data.formats import FORMATS, find, format_for_output, has_suffix
from capedit.data.formats.base import Format, Output, Reading
from capedit.data.instance import Instance, Origin
from capedit.data.side import Side, side_folder

SHARD_SIZE = 10_000
"""Instances in a shard, where a folder of shards is written from something that has none."""


@dataclass
class Dataset:
    """Captions on disk. Iterating reads them from the start, each time, in bounded memory."""

    path: Path
    format: Format
    files: tuple[Path, ...]
    fields: Mapping[str, str | None] = field(default_factory=dict)
    images: str | None = None
    strict: bool = False
    on_error: Callable[[Problem], None] | None = None
    problems: Problems = field(default_factory=Problems)
    """The bad records of the latest pass so far."""

    def __iter__(self) -> Iterator[Instance]:
        self.problems.clear()
        reading = self.reading(self._report)
        seen = _SeenIds()
        for file in self.files:
            try:
                for instance in self.format.read(file, reading):
                    if instance.has_given_id and not seen.add(instance.id) and instance.origin is not None:
                        where = instance.origin
                        name = where.names.get("id", "id")
                        self._report(Problem(where.file, where.place, name, f"duplicate id {instance.id!r}"))
                    yield instance
            except (DataError, OSError) as error:
                # Of many shards one may be lost; of a single file there is nothing left.
                if self.strict or len(self.files) == 1:
                    raise error if isinstance(error, DataError) else _unreadable(file, error) from error
                reason = str(error).removeprefix(f"{file}: ")
                self._report(Problem(file, "", None, reason))

    def shards(self) -> list[Dataset]:
        """One dataset per file, to be worked on apart; each can be read and rewritten by itself."""
        return [replace(self, files=(file,), path=self._shard_path(file), problems=Problems()) for file in self.files]

    def reading(self, report: Callable[[Problem], None]) -> Reading:
        """What formats are told about how to read this dataset."""
        return Reading(None if self.format.suffixes else self.path, self.fields, self.images, report)

    def _shard_path(self, file: Path) -> Path:
        return file if self.format.suffixes else self.path

    def _report(self, problem: Problem) -> None:
        if self.strict:
            raise DataError(str(problem))
        self.problems.add(problem)
        if self.on_error is not None:
            self.on_error(problem)


def open_dataset(
    path: str | Path,
    format: str | None = None,
    *,
    fields: Mapping[str, str | None] | None = None,
    images: str | Path | None = None,
    strict: bool = False,
    on_error: Callable[[Problem], None] | None = None,
) -> Dataset:
    """Open captions in any known format; which one is found out from the path and the content.

    `path` is a file, a folder, or a pattern such as "shards/{000..099}.tar". `fields` says which field
    plays which role where the usual names do not: {"reference": "alt", "target": None}. `images` is the
    folder image paths start from, or a pattern over ids: "images/{image_id:012d}.jpg".

    A bad record is left out, noted in `Dataset.problems` and given to `on_error`; with `strict` it raises
    `DataError`. Doubled ids, and images that a table lacks, are noted too, but the record is kept.
    """
    check_fields(fields or {})
    found, files = find(path, format)
    where = None if images is None else str(images)
    return Dataset(Path(path), found, files, dict(fields or {}), where, strict, on_error)


@dataclass(frozen=True)
class Written:
    """What became of a dataset that was written."""

    path: Path
    format: str
    count: int
    problems: Problems
    """What could not be carried over, such as images that could not be read."""


def write_dataset(
    instances: Iterable[Instance],
    path: str | Path,
    format: str | None = None,
    *,
    template: Dataset | None = None,
    shard_size: int = SHARD_SIZE,
) -> Written:
    """Write exactly these instances, in order, streaming; the output appears whole or not at all.

    The format goes by `format`, else the suffix of `path`, else `template`. The template also gives what
    is not in the instances: CSV dialect, Parquet schema, COCO images and licences. `instances` that are a
    `Dataset` are their own template. A path without suffix becomes a folder of shards, for formats that
    are files. What the format cannot hold goes to the side folder (see `capedit.data.side`).
    """
    path = Path(path)
    if template is None and isinstance(instances, Dataset):
        template = instances
    found = format_for_output(path, format, template.format if template else None)
    problems = Problems()
    job = _Job(found, template, problems.add)
    stream = iter(instances)
    if not found.suffixes:
        with staged_folder(path) as staged:
            count = job.write(stream, path, staged, path, Side(path / ".capedit", staged / ".capedit"))
    elif has_suffix(path, found):
        count = job.write_file(stream, path)
    else:
        count = 0
        with staged_folder(path) as staged:
            for name, part in _parts(stream, found, template, shard_size):
                (staged / name).parent.mkdir(parents=True, exist_ok=True)
                count += job.write_file(part, path / name, staged / name)
    return Written(path, found.name, count, problems)


def rewrite_dataset(dataset: Dataset, edited: Iterable[Instance], path: str | Path | None = None) -> int:
    """Copy a dataset, byte for byte, but for the edited instances; in place if `path` is None.

    `edited` are instances of `dataset`, changed (`Instance.revised`), in its order; records of which none
    comes, bad ones included, stay as they are. Gives the number of records that changed. Each file is
    replaced whole; those without changes are not touched. Parquet and Hugging Face files that change are
    encoded anew; all other formats keep every byte outside the changed fields. Image paths stay as written.
    """
    return _rewrite(dataset, filter(dataset.format.is_changed, _own(dataset, edited)), path)


def restore_instances(dataset: Dataset, originals: Iterable[Instance], path: str | Path | None = None) -> int:
    """Undo edits: put instances, as they were read before `dataset` was rewritten, back in their places.

    Formats that keep bytes get back the very bytes of these records, since an unchanged instance is
    written as its `Origin.raw`; all else as in `rewrite_dataset`.
    """
    return _rewrite(dataset, _own(dataset, originals), path)


def _own(dataset: Dataset, instances: Iterable[Instance]) -> Iterator[Instance]:
    for instance in instances:
        if instance.origin is None:
            raise DataError(f"instance {instance.id!r} was not read from {dataset.path}")
        yield instance


def _rewrite(dataset: Dataset, new: Iterator[Instance], path: str | Path | None) -> int:
    count = 0

    def counted() -> Iterator[Instance]:
        nonlocal count
        for instance in new:
            count += 1
            yield instance

    if path is None or Path(path) == dataset.path:
        _rewrite_files(dataset, counted(), {})
    elif dataset.path.is_file():
        _rewrite_single(dataset, counted(), Path(path))
    else:
        _rewrite_folder(dataset, counted(), Path(path))
    return count


def _rewrite_files(dataset: Dataset, changed: Iterator[Instance], moved: Mapping[Path, Path]) -> None:
    """Replace files in place; `moved` leads from the folder they were read from to the copy to change."""
    reading = dataset.reading(lambda problem: None)
    done: list[Path] = []
    for source, group in groupby(changed, key=lambda instance: instance.origin and instance.origin.file):
        if source is None or not any(source.is_relative_to(file) for file in dataset.files):
            raise DataError(f"{source}: not a file of {dataset.path}")
        file = next((new / source.relative_to(old) for old, new in moved.items()), source)
        with staged_file(file) as staged:
            dataset.format.rewrite(file, group, staged, reading)
        done.append(file)
    for file, content in dataset.format.companions(done).items():
        with staged_file(file) as staged:
            staged.write_bytes(content)


def _rewrite_single(dataset: Dataset, changed: Iterator[Instance], path: Path) -> None:
    first = next(changed, None)
    with staged_file(path) as staged:
        if first is None:
            shutil.copyfile(dataset.files[0], staged)
        else:
            dataset.format.rewrite(dataset.files[0], chain([first], changed), staged, dataset.reading(_ignore))
        if side_folder(dataset.path).is_dir():
            shutil.copytree(side_folder(dataset.path), side_folder(path), dirs_exist_ok=True)


def _rewrite_folder(dataset: Dataset, changed: Iterator[Instance], path: Path) -> None:
    if not dataset.path.is_dir():
        raise DataError(f"{dataset.path}: a pattern is rewritten in place, or shard by shard")
    with staged_folder(path) as staged:
        shutil.copytree(dataset.path, staged, dirs_exist_ok=True)
        _rewrite_files(dataset, changed, {dataset.path: staged})


def _ignore(problem: Problem) -> None:
    """Reading has reported it before."""


@dataclass(frozen=True)
class _Job:
    """Writing to one format after one template."""

    format: Format
    template: Dataset | None
    report: Callable[[Problem], None]

    def write_file(self, instances: Iterator[Instance], path: Path, target: Path | None = None) -> int:
        """Write one file, staged; at `target` for now, if `path` is inside a folder that is itself staged."""
        target = target or path
        with staged_file(target) as staged:
            side = Side(side_folder_of_file(path), staged.with_name(staged.name + ".capedit"))
            try:
                count = self.write(instances, path, staged, path.parent, side)
                Side(side_folder_of_file(target), side.staged).commit()
            finally:
                shutil.rmtree(side.staged, ignore_errors=True)
        return count

    def write(self, instances: Iterator[Instance], path: Path, staged: Path, home: Path, side: Side) -> int:
        templates = self._templates()
        for name, (source, is_kept) in templates.items():
            format = FORMATS[name]
            if format is self.format or format.container is None:
                continue
            out = side.file(format.container)
            if is_kept:
                _copy(source, out)
            elif self.template is not None:
                format.keep_container(list(self.template.files), out)
        keep_paths = self.template is not None and self.template.images is not None
        files = {name: _first_file(source) if is_kept else source for name, (source, is_kept) in templates.items()}
        output = Output(path, staged, home, side, files, keep_paths, self.report)
        return self.format.write(self._named(instances), output)

    def _named(self, instances: Iterator[Instance]) -> Iterator[Instance]:
        """Instances that come from nowhere call their fields what the template calls them."""
        like: Origin | None = None
        for instance in instances:
            if instance.origin is None and self.template is not None:
                like = like or _nowhere(self.template)
                yield replace(instance, origin=like)
            else:
                yield instance

    def _templates(self) -> dict[str, tuple[Path, bool]]:
        """By format: the template itself, and what it keeps in its side folder of formats it came from."""
        if self.template is None or not self.template.files:
            return {}
        side = side_folder(self.template.path)
        kept = {
            name: (side / format.container, True)
            for name, format in FORMATS.items()
            if format.container is not None and (side / format.container).exists()
        }
        return {**kept, self.template.format.name: (self.template.files[0], False)}


def _nowhere(template: Dataset) -> Origin:
    first = next(iter(replace(template, strict=False, on_error=None, problems=Problems())), None)
    names = first.origin.names if first is not None and first.origin is not None else {}
    return Origin("", template.path, -1, "", {}, names)


def _first_file(source: Path) -> Path:
    return source if source.is_file() else next(iter(FORMATS["huggingface"].files(source)), source)


def _copy(source: Path, out: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, out)
    else:
        shutil.copyfile(source, out)


def side_folder_of_file(path: Path) -> Path:
    return path.with_name(path.name + ".capedit")


def _parts(
    instances: Iterator[Instance], format: Format, template: Dataset | None, shard_size: int
) -> Iterator[tuple[str, Iterator[Instance]]]:
    """The shards to write: those of a template of the same format, else `shard_size` instances each."""
    if template is not None and template.format is format and template.path.is_dir():
        for file, group in groupby(instances, key=lambda instance: instance.origin and instance.origin.file):
            if file is None or not file.is_relative_to(template.path):
                raise DataError("an instance that is from no shard of the template; pass no template")
            yield file.relative_to(template.path).as_posix(), group
        return
    number = 0
    while (first := next(instances, None)) is not None or number == 0:
        part = chain([] if first is None else [first], islice(instances, shard_size - 1))
        yield f"{number:05d}{format.suffixes[0]}", part
        number += 1


class _SeenIds:
    """Which ids have come by, in 16 bytes each or so: their hashes, in a table that doubles when half full."""

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * 1024))
        self._count = 0

    def add(self, id: str | int) -> bool:
        """Enter an id; False if it was there."""
        if not _insert(self._slots, (hash((type(id), id)) & 0xFFFFFFFFFFFFFFFF) or 1):
            return False
        self._count += 1
        if 2 * self._count > len(self._slots):
            larger = array("Q", bytes(16 * len(self._slots)))
            for old in self._slots:
                if old:
                    _insert(larger, old)
            self._slots = larger
        return True


def _insert(slots: array[int], code: int) -> bool:
    mask = len(slots) - 1
    at = code & mask
    while slots[at]:
        if slots[at] == code:
            return False
        at = (at + 1) & mask
    slots[at] = code
    return True


def _unreadable(file: Path, error: OSError) -> DataError:
    return DataError(f"{error.filename or file}: cannot be read ({error.strerror or error})")
