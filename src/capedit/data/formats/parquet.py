"""Parquet: schema, metadata, row groups and compression are kept. Stable by value (see arrow_table)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from capedit.data.formats.arrow_table import ArrowFormat, readable
from capedit.data.formats.base import Edits, Output, Reading
from capedit.data.instance import Instance

BATCH_ROWS = 256
GROUP_ROWS = 10_000
GROUP_BYTES = 1 << 26
"""Row groups are held in memory; those with images inside must be shorter."""


class Parquet(ArrowFormat):
    name = "parquet"
    suffixes = (".parquet", ".pq")
    container = "schema.parquet"

    def read(self, file: Path, reading: Reading) -> Iterator[Instance]:
        with readable(file, lambda: pq.ParquetFile(file)) as source:
            yield from self.instances(_batches(file, source), file, reading)

    def write(self, instances: Iterator[Instance], output: Output) -> int:
        template = output.templates.get(self.name)
        model = pq.ParquetFile(template) if template else None
        spool = self.spool(instances, output, model.schema_arrow if model else None)
        schema = spool.schema()
        rows = max(1, model.metadata.row_group(0).num_rows) if model and model.num_row_groups else GROUP_ROWS
        with pq.ParquetWriter(output.staged, schema, **_settings(model)) as target:
            pending: list[pa.RecordBatch] = []
            for batch in spool.batches(schema, min(rows, GROUP_ROWS)):
                pending.append(batch)
                large = model is None and sum(part.nbytes for part in pending) > GROUP_BYTES
                if large or sum(part.num_rows for part in pending) >= rows:
                    target.write_table(pa.Table.from_batches(pending, schema), row_group_size=rows)
                    pending = []
            if pending:
                target.write_table(pa.Table.from_batches(pending, schema), row_group_size=rows)
        spool.close()
        if model:
            model.close()
        return spool.count

    def keep_container(self, files: list[Path], out: Path) -> None:
        with readable(files[0], lambda: pq.ParquetFile(files[0])) as source:
            pq.write_table(source.schema_arrow.empty_table(), out)

    def rewrite(self, file: Path, edited: Iterator[Instance], out: Path, reading: Reading) -> None:
        edits = Edits(edited)
        with (
            readable(file, lambda: pq.ParquetFile(file)) as source,
            pq.ParquetWriter(out, source.schema_arrow, **_settings(source)) as target,
        ):
            start = 0
            for group in range(source.num_row_groups):
                table = readable(file, partial(source.read_row_group, group))
                batches = []
                for batch in table.to_batches(BATCH_ROWS):
                    batches.append(self.edited_batch(batch, start, edits, file, reading))
                    start += batch.num_rows
                new = pa.Table.from_batches(batches, source.schema_arrow)
                target.write_table(new, row_group_size=max(1, new.num_rows))
        edits.finish(file)


def _batches(file: Path, source: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    batches = source.iter_batches(BATCH_ROWS)
    while (batch := readable(file, lambda: next(batches, None))) is not None:
        yield batch


def _settings(model: pq.ParquetFile | None) -> dict[str, Any]:
    """Writer options as in the model: compression and dictionaries column by column."""
    if model is None or not model.num_row_groups:
        return {"compression": "zstd"}
    group = model.metadata.row_group(0)
    columns = [group.column(at) for at in range(group.num_columns)]
    packed = {column.path_in_schema: column.compression.lower() for column in columns}
    dictionary = [column.path_in_schema for column in columns if column.has_dictionary_page]
    compression = {path: "none" if codec == "uncompressed" else codec for path, codec in packed.items()}
    return {"compression": compression, "use_dictionary": dictionary or False}
