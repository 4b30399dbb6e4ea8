"""The image of a single record that holds it, without reading all records before it where the format allows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from capedit.data import DataError, Dataset, Instance
from capedit.data.formats.arrow_table import ArrowFormat
from capedit.data.formats.parquet import Parquet


def embedded_image(dataset: Dataset, file: Path, index: int) -> bytes:
    """The encoded image inside the record at `index` of a file."""
    try:
        instance = next(_from(dataset, file, index), None)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{file}: cannot be read ({error})") from error
    if instance is None or instance.image is None:
        raise DataError(f"{file}, record {index + 1}: the record has no image")
    return instance.image.read()


def _from(dataset: Dataset, file: Path, index: int) -> Iterator[Instance]:
    """The instances of a file from the record at `index` on."""
    format, reading = dataset.format, dataset.reading(lambda problem: None)
    if isinstance(format, Parquet):
        yield from format.instances(_parquet_row(file, index), file, reading)
    elif isinstance(format, ArrowFormat):
        yield from format.instances(_arrow_row(file, index), file, reading)
    else:
        yield from (one for one in format.read(file, reading) if one.origin is not None and one.origin.index == index)


def _parquet_row(file: Path, index: int) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(file) as source:
        for group in range(source.num_row_groups):
            count = source.metadata.row_group(group).num_rows
            if index < count:
                yield from source.read_row_group(group).slice(index, 1).to_batches()
                return
            index -= count


def _arrow_row(file: Path, index: int) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(file)) as source:  # batches are passed over without being read
        for batch in pa.ipc.open_stream(source):
            if index < batch.num_rows:
                yield batch.slice(index, 1)
                return
            index -= batch.num_rows
