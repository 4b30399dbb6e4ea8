"""From the rows of shards, done in any order, to the edit log in the order of the dataset."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from capedit.data import DataError
from capedit.data.atomic import staged_folder
from capedit.pipeline.errors import writing
from capedit.pipeline.guards import Change, Verdict, find_collapsed, sentence
from capedit.pipeline.log import FILE_ROWS, SCHEMA, EditRow, LogWriter, Status, to_table
from capedit.pipeline.plan import Plan
from capedit.pipeline.shards import Shard, part_file
from capedit.pipeline.workbench import Task, Workbench

_BATCH = 4096


@dataclass(frozen=True)
class Gathered:
    """What the log says in sum."""

    statuses: Counter[Status]
    collapsed: dict[str, int]
    """Sentences that too many captions would have become."""


def gather(plan: Plan, task: Task, set_aside: Mapping[int, str], folder: Path) -> Gathered:
    """Write the log to `folder`, which appears when it is complete."""
    with writing(folder):
        files = [
            _answer_for(shard, set_aside[shard.number], task)
            if shard.number in set_aside
            else part_file(task, shard.number)
            for shard in plan.shards
        ]
        collapsed = find_collapsed(lambda: _changes(files), task.treatment.limits)
        statuses: Counter[Status] = Counter()
        with staged_folder(folder) as staged, LogWriter(staged) as log:
            row = 0
            for table in _ordered(files, task.work / "sorting") if plan.spooled else _tables(files):
                settled = _settled(_numbered(table, row), collapsed, plan.broken)
                row += settled.num_rows
                for item in pc.value_counts(settled.column("status")).to_pylist():
                    statuses[Status(item["values"])] += item["counts"]
                log.write(settled)
        shutil.rmtree(task.work / "sorting", ignore_errors=True)
    return Gathered(statuses, collapsed)


def _answer_for(shard: Shard, reason: str, task: Task) -> Path:
    """Rows for the captions of a shard that could not be done, as far as they can be read; it stays undone."""
    bench = Workbench(task)
    verdict = Verdict(Status.FAILED, f"shard set aside: {reason}")
    rows: list[EditRow] = []
    with suppress(DataError):  # a file that breaks off: what was read of it is told
        rows.extend(task.stamp.row(item, verdict) for item in shard.items(bench))
    file = part_file(task, shard.number).with_suffix(".aside")
    pq.write_table(to_table(rows), file)
    return file


def _tables(files: Iterable[Path]) -> Iterator[pa.Table]:
    for file in files:
        with pq.ParquetFile(file) as part:
            for batch in part.iter_batches(_BATCH):
                yield pa.Table.from_batches([batch])


def _changes(files: Iterable[Path]) -> Iterator[Change]:
    for file in files:
        with pq.ParquetFile(file) as part:
            for batch in part.iter_batches(_BATCH, columns=["original", "refined", "status"]):
                changed = batch.filter(pc.equal(batch.column("status").cast(pa.string()), Status.CHANGED.value))
                sentences = map(sentence, changed.column("refined").to_pylist())
                yield from zip(changed.column("original").to_pylist(), sentences, strict=True)


def _ordered(files: Iterable[Path], scratch: Path) -> Iterator[pa.Table]:
    """Rows sorted by number, in bounded memory: dealt out to files of neighbours, each of which is then sorted."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    heaps: dict[int, pq.ParquetWriter] = {}
    for table in _tables(files):
        homes = pc.divide(table.column("row"), FILE_ROWS)
        for home in pc.unique(homes).to_pylist():
            if home not in heaps:
                heaps[home] = pq.ParquetWriter(scratch / f"{home:06d}.parquet", SCHEMA, compression="lz4")
            heaps[home].write_table(table.filter(pc.equal(homes, home)))
    for heap in heaps.values():
        heap.close()
    for home in sorted(heaps):
        table = pq.read_table(scratch / f"{home:06d}.parquet").cast(SCHEMA).unify_dictionaries().combine_chunks()
        table = table.take(pc.sort_indices(table.column("row")))
        for start in range(0, table.num_rows, _BATCH):
            yield table.slice(start, _BATCH)


def _numbered(table: pa.Table, start: int) -> pa.Table:
    return table.set_column(0, SCHEMA.field("row"), pa.array(range(start, start + table.num_rows), pa.int64()))


def _settled(table: pa.Table, collapsed: Mapping[str, int], broken: Mapping[str, str]) -> pa.Table:
    """With the verdicts that only the whole can give: on sentences that recur, and on files that break off."""
    status = table.column("status").cast(pa.string())
    reason, refined = table.column("reason"), table.column("refined")
    if collapsed:
        texts = zip(status.to_pylist(), refined.to_pylist(), strict=True)
        counts = [collapsed.get(sentence(text)) if kind == Status.CHANGED else None for kind, text in texts]
        told = [None if n is None else f"guard: {n} captions would become this sentence" for n in counts]
        hit = pa.array([n is not None for n in counts])
        status = pc.if_else(hit, Status.HELD.value, status)
        reason = pc.if_else(hit, pa.array(told, pa.string()), reason)
    for file, why in broken.items():
        hit = pc.equal(table.column("file").cast(pa.string()), file)
        status = pc.if_else(hit, Status.FAILED.value, status)
        reason = pc.if_else(hit, f"file: {why}", reason)
        refined = pc.if_else(hit, pa.scalar(None, pa.string()), refined)
    for name, column in (("status", status), ("reason", reason), ("refined", refined)):
        field = SCHEMA.field(name)
        table = table.set_column(table.schema.get_field_index(name), field, column.cast(field.type))
    return table
