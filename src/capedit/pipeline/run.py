"""A run that has been made: its log, its images, and its output written again with other captions.

run = Run("fixed.jsonl")
run.manifest.counts, run.log[17]
run.image(run.log[17])                          # the encoded image
run.rewrite({17: "a cat on a sofa"})            # what row 17 says from now on; its original takes the edit back
run.export("reviewed.parquet", {17: "..."})     # the same to another place, in any format
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from capedit.data import DataError, Dataset, Instance, Written, open_dataset, rewrite_dataset, write_dataset
from capedit.data.atomic import sync
from capedit.pipeline.durable import file_state, locked, read_json, write_json
from capedit.pipeline.embedded import embedded_image
from capedit.pipeline.errors import RunError, writing
from capedit.pipeline.journal import Journal
from capedit.pipeline.log import EditLog, EditRow, edits_folder
from capedit.pipeline.manifest import FILE, Manifest, State, fingerprint
from capedit.pipeline.output import (
    Handling,
    changed_files,
    companions,
    files_of_rows,
    final_captions,
    matched,
    revised,
    rows_by_file,
    write_companions,
    write_units,
)
from capedit.pipeline.settings import Source, base_folder

OUTPUT = "output.json"
DECISIONS = "decisions.jsonl"
_STAYING = ("lock", "exports")
"""What is in the folder of a run but does not belong to this one run."""


@dataclass(frozen=True)
class Rewritten:
    """What a rewriting came to."""

    captions: int
    """Captions that now say what they were to say."""
    conflicts: tuple[int, ...] = ()
    """Rows that somebody else has changed since, and that were left alone."""


class Run:
    """A run, known by its output."""

    def __init__(self, out: str | Path) -> None:
        self.out = Path(out).absolute()
        self.folder = edits_folder(self.out)
        if not (self.folder / FILE).exists():
            raise RunError(f"{out}: not made by capedit fix (there is no {self.folder / FILE})")
        self.manifest = Manifest.load(self.folder)

    @cached_property
    def log(self) -> EditLog:
        return EditLog(self.folder / "log")

    @property
    def decided(self) -> dict[int, str]:
        """What people, or an undo, have decided rows to say; the last word on each."""
        path = self.folder / DECISIONS
        if not path.exists():
            return {}
        decided: dict[int, str] = {}
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                with suppress(ValueError):  # a line that a crash cut short: it was never acted upon
                    record = json.loads(line)
                    decided[record["row"]] = record["caption"]
        return decided

    def image(self, row: EditRow) -> bytes:
        """The encoded image of a row."""
        if row.image_path is None:
            records = self._records()
            return embedded_image(records, base_folder(records) / row.file, row.index)
        path = self.out.parent / row.image_path
        if row.image_offset is not None and self.manifest.in_place:
            path = self.journal.kept(row.file) or path  # in the shard as it is now, images may have moved
        try:
            with path.open("rb") as file:
                file.seek(row.image_offset or 0)
                return file.read(-1 if row.image_size is None else row.image_size)
        except OSError as error:
            raise DataError(f"{path}: image cannot be read ({error.strerror or error})") from error

    def touched(self) -> bool:
        """Whether somebody else has written to the output since it was last written here."""
        known: dict[str, list[int] | None] = read_json(self.folder / OUTPUT)
        return any(state is not None and _state(self.place(name)) != state for name, state in known.items())

    def rewrite(self, captions: Mapping[int, str], *, by: str = "review") -> Rewritten:
        """Have rows say other captions in the output; what is not named stays as it is.

        Every decision is kept in `decisions.jsonl`. An output that nobody else has touched comes out as if the run had
        decided so, byte for byte; in one that somebody has, only records that still say what they said are changed.
        """
        with self.alone() as state:
            if state is not State.DONE:
                raise RunError(f"{self.out}: the run is {state}, not done; only finished ones can be changed")
            return self.change(captions, by=by)

    @contextmanager
    def alone(self) -> Iterator[State]:
        """Be the one that writes to this run; gives how far it is now that nobody else does."""
        with locked(self.folder):
            now = Manifest.load(self.folder)
            if now.time != self.manifest.time:
                raise RunError(f"{self.out}: has been undone and run again since it was opened here; open it again")
            self.manifest = now
            yield now.state

    def change(self, captions: Mapping[int, str], *, by: str) -> Rewritten:
        """`rewrite`, by one who is `alone`."""
        if not captions:
            return Rewritten(0)
        if self.manifest.rewritten and not self.touched() and (original := self.original()) is not None:
            names = self._files_of(captions)
            disclaim(self, names)  # first: should this be cut short, the next rewriting makes these files again
            self._decide(captions, by)
            remake(self, original, names, self.decided)
            return Rewritten(len(captions))
        conflicts = self._patch(captions)
        self._decide({row: text for row, text in captions.items() if row not in conflicts}, by)
        return Rewritten(len(captions) - len(conflicts), tuple(sorted(conflicts)))

    def export(self, path: str | Path, captions: Mapping[int, str] | None = None, format: str | None = None) -> Written:
        """Write all captions elsewhere, in any format: those of the output, and `captions` where it says otherwise."""
        dataset = self._records()
        said = final_captions(self.log, {**self.decided, **(captions or {})})
        instances = revised(matched(dataset, said, base_folder(dataset)))
        with writing(Path(path)):
            return write_dataset(instances, path, format, template=dataset)

    def original(self) -> Source | None:
        """The dataset as it was before the run, if it is still to be had."""
        if self.manifest.in_place:
            return self.journal.source if self.journal.hashes else self.manifest.source
        try:
            found = self.manifest.source.open()
            return self.manifest.source if fingerprint(found) == self.manifest.input else None
        except (DataError, OSError):
            return None

    @property
    def journal(self) -> Journal:
        return Journal(self.folder / "journal", self.manifest.source)

    def _records(self) -> Dataset:
        """A dataset with the records of the run, whatever their captions say."""
        if self.manifest.in_place or self.original() is not None:
            return self.manifest.source.open()
        if not self.manifest.rewritten:
            raise RunError(f"{self.manifest.source.path}: is gone or has changed since the run read it")
        return self.open_output()

    def open_output(self) -> Dataset:
        source = self.manifest.source
        if self.manifest.rewritten:
            return open_dataset(self.out, source.format, fields=source.fields, images=source.images)
        return open_dataset(self.out, self.manifest.output_format)

    def place(self, name: str) -> Path:
        """Where a file of the dataset is in the output."""
        if self.manifest.in_place:
            return self._live / name
        return self.out if self.out.is_file() else self.out / name

    @cached_property
    def _live(self) -> Path:
        """The folder of a dataset that was changed in place."""
        return base_folder(self.manifest.source.open())

    def _decide(self, captions: Mapping[int, str], by: str) -> None:
        time = datetime.now(UTC).isoformat(timespec="seconds")
        path = self.folder / DECISIONS
        with writing(path), path.open("a+b") as file:
            if file.tell() and not _ends_line(path):
                file.write(b"\n")  # closes a line that a crash cut short
            for row, caption in captions.items():
                record = {"row": row, "caption": caption, "by": by, "time": time}
                file.write(json.dumps(record).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
            sync(path.parent)

    def _files_of(self, captions: Mapping[int, str]) -> list[str]:
        """The files in which these rows stand, and those that a crash has kept from being written."""
        cut_short = [name for name, state in read_json(self.folder / OUTPUT).items() if state is None]
        return list(dict.fromkeys([*files_of_rows(self.log, captions), *cut_short]))

    def _patch(self, captions: Mapping[int, str]) -> set[int]:
        """Change single records of the output; gives the rows that no longer say what this run had them say."""
        dataset = self.open_output()
        count = sum(1 for _ in dataset)
        if count != len(self.log):
            raise RunError(
                f"{self.out}: has {count} captions where the run wrote {len(self.log)}; which is which cannot be told"
            )
        conflicts: set[int] = set()
        said = self.decided

        def edited() -> Iterator[Instance]:
            for instance, row in zip(dataset, self.log, strict=True):
                if row.row not in captions:
                    continue
                if instance.reference in (said.get(row.row, row.caption), captions[row.row]):
                    yield instance.revised(reference=captions[row.row])
                else:
                    conflicts.add(row.row)

        with writing(self.out):
            rewrite_dataset(dataset, edited())
        return conflicts


def remake(run: Run, original: Source, names: Sequence[str], decided: Mapping[int, str] | None) -> None:
    """Make these files of the output again, from the originals; with None as decisions, as they were before the run."""
    known = disclaim(run, names)
    if run.manifest.in_place:
        run.journal.keep([*names, *companions(original, names)])
        original = run.journal.source
    single = original.open().path.is_file()
    base = run.out if single else run.place("")
    staging = run.folder / "work" / "staged"
    for unit in write_units(original, run.log, base, Handling.OURS, decided=decided, always=names):
        if unit.always:
            unit.write(staging)
    if not single:
        write_companions(original, changed_files(run.log, decided), base, staging, also=names)
    shutil.rmtree(staging.parent, ignore_errors=True)
    write_json(run.folder / OUTPUT, known | {name: _state(run.place(name)) for name in names})


def disclaim(run: Run, names: Sequence[str]) -> dict[str, list[int] | None]:
    """Vouch no longer for how these files look: they are about to be written, and that may be cut short."""
    known: dict[str, list[int] | None] = read_json(run.folder / OUTPUT)
    write_json(run.folder / OUTPUT, known | dict.fromkeys(names))
    return known


def note_output(folder: Path, out: Path) -> None:
    """Write down what the files of a finished output look like, so that a stranger's hand is seen."""
    run = Run(out)
    states = {name: _state(run.place(name)) for name in rows_by_file(run.log)} if run.manifest.rewritten else {}
    write_json(folder / OUTPUT, states)


def _state(path: Path) -> list[int] | None:
    return file_state(path) if path.exists() else None


def _ends_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def retire(folder: Path) -> None:
    """Put an undone run out of the way of the next one; nothing of it is thrown away."""
    # If that was cut short once, the manifest is still here, and it is gone on with.
    number = next(n for n in itertools.count(1) if not (folder / f"undone-{n:04d}" / FILE).exists())
    kept = folder / f"undone-{number:04d}"
    with writing(folder):
        kept.mkdir(exist_ok=True)
        belongings = [path for path in folder.iterdir() if path.name not in _STAYING and not path.match("undone-*")]
        for path in sorted(belongings, key=lambda path: path.name == FILE):  # the manifest last: it says whose all is
            path.replace(kept / path.name)
