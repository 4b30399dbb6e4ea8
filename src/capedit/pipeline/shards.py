"""Shards: the captions of a dataset in pieces that are edited apart, each from a list of items to one file of rows.

A shard is done once its file of rows is there, which appears whole or not at all. Two processes may do the same shard:
they write the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow.parquet as pq

from capedit.data import Problem
from capedit.data.errors import Problems
from capedit.data.formats.jsonvalues import dumps
from capedit.pipeline.durable import place
from capedit.pipeline.errors import writing
from capedit.pipeline.items import Item, image_key, read_items
from capedit.pipeline.log import SCHEMA, EditRow, Status, to_table
from capedit.pipeline.refine import WINDOW
from capedit.pipeline.workbench import Account, Task, Workbench


@dataclass(frozen=True)
class Shard:
    """A piece of the dataset."""

    number: int
    captions: int | None
    """How many, where somebody has counted."""

    def items(self, bench: Workbench) -> Iterable[Item]:
        raise NotImplementedError

    def is_done(self, task: Task) -> bool:
        return part_file(task, self.number).exists()

    def run(self, bench: Workbench) -> Account:
        return write_part(bench.task, self.number, bench.refiner.rows(self.items(bench)))


@dataclass(frozen=True)
class SpooledShard(Shard):
    """Captions that the plan has put together because they share images; they wait in a file of their own."""

    def items(self, bench: Workbench) -> Iterable[Item]:
        items = list(read_items(spool_file(bench.task.work / "plan", self.number)))
        # Captions of an image side by side, in the order in which images first come.
        first: dict[str, int] = {}
        keys = [image_key(item.image) for item in items]
        for key in keys:
            first.setdefault(key, len(first))
        return [items[at] for at in sorted(range(len(items)), key=lambda at: (first[keys[at]], items[at].row))]


@dataclass(frozen=True)
class FileShard(Shard):
    """A stretch of a file with its images inside; the worker reads it itself."""

    file: int
    start: int
    stop: int | None
    """None: to the end, of which the plan does not know."""

    def items(self, bench: Workbench) -> Iterable[Item]:
        return bench.reader.items(self.file, self.start, self.stop)

    def run(self, bench: Workbench) -> Account:
        bench.reader.problems.clear()
        rows = bench.refiner.rows(self.items(bench))
        if self.stop is not None:  # the plan has read the file and told of its bad records
            return write_part(bench.task, self.number, rows)
        return write_part(bench.task, self.number, rows, bench.reader.problems)


def spool_file(plan: Path, number: int) -> Path:
    return plan / "items" / f"{number:06d}.jsonl"


def part_file(task: Task, number: int) -> Path:
    return task.parts / f"{number:06d}.parquet"


def problems_file(task: Task, number: int) -> Path:
    return task.parts / f"{number:06d}.problems.jsonl"


def write_part(task: Task, number: int, rows: Iterable[EditRow], problems: Problems | None = None) -> Account:
    """Write the rows of a shard; it is done when this returns."""
    target = part_file(task, number)
    staged = _staged(target)
    statuses: Counter[Status] = Counter()
    try:
        with writing(target):
            with pq.ParquetWriter(staged, SCHEMA, compression="zstd") as writer:
                for chunk in _chunks(rows):
                    statuses.update(row.status for row in chunk)
                    writer.write_table(to_table(chunk))
            if problems:
                write_problems(problems_file(task, number), problems)
            place(staged, target)
    finally:
        staged.unlink(missing_ok=True)
    return Account(captions=statuses.total(), statuses=statuses)


def write_problems(path: Path, problems: Problems) -> None:
    """The bad records of a shard; of very many, the first ones and their number."""
    staged = _staged(path)
    with staged.open("w", encoding="utf-8") as file:
        file.writelines(map(problem_line, problems))
        if more := len(problems) - len(problems.kept):
            file.write(problem_line(Problem(problems[0].file, "", None, f"{more} more problems in this file")))
    place(staged, path)


def problem_line(problem: Problem) -> str:
    values = {"file": str(problem.file), "place": problem.place, "field": problem.field, "reason": problem.reason}
    return dumps(values) + "\n"


def _staged(path: Path) -> Path:
    # Another machine may be at the same shard, with a process of the same number.
    return path.with_name(f"{path.name}.{uuid4().hex}.staged")


def _chunks(rows: Iterable[EditRow]) -> Iterator[list[EditRow]]:
    chunk: list[EditRow] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == 16 * WINDOW:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
