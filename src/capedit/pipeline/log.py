"""The edit log: one row for every caption of a run, as Parquet beside the output.

Beside the output `OUT` stands the folder `OUT.edits.capedit/` (`edits_folder`); its sub-folder `log/` holds the log as
`00000.parquet`, `00001.parquet`, ... of `FILE_ROWS` rows each, in the order of the dataset. Any reader of Parquet takes
the folder as a whole. Once a run has finished, nothing changes the log; what people decide later stands beside it.

| column | meaning |
|---|---|
| `row` | number of the caption in the dataset, from 0; also its number in the log |
| `file`, `index`, `place` | where it was read: file (from the dataset's folder), record from 0, and that in words |
| `id`, `id_is_number` | its id as text; whether the dataset spells it as a number |
| `image_id` | as text |
| `image_path`, `image_offset`, `image_size` | the image: a file, or a stretch of a shard; from the folder that holds |
|   | `OUT`. No path: it is inside the record, or there is none (`Run.image` finds the former) |
| `original` | the caption as it was; exact, but for the rare text that UTF-8 cannot hold: then `original_raw` has it |
| `refined` | what the editor proposes: the original itself where nothing is to change, null where it failed |
| `operations` | list of `op` (KEEP, DELETE, ADD), `token`, `probability`, `round`: the net edit in reading order |
| `confidence`, `fits` | of the edit; of the original fitting the image, where the model can tell |
| `steps`, `rounds` | words deleted and added on the way; rounds in which something changed |
| `status`, `reason` | see `Status`; why it is held, failed or was not looked at |
| `model`, `encoder`, `version` | name and hash of the model, hash of the encoder, version of capedit |
| `time` | when the run began: the same in all rows, and after a resume |

Only `changed` captions differ from the original in the output. `EditRow.caption` is what the output says.

    log = EditLog("fixed.jsonl")
    len(log); log[17]; log.counts()
    for row in log: row.id, row.original, row.refined, row.operations, row.status
    log.table(["row", "status", "confidence"])      # Arrow, for sorting and filtering many rows at once
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from capedit.editing import EditOperation
from capedit.edits import Op
from capedit.errors import CapeditError

FILE_ROWS = 100_000
"""Rows in a file of the log: what a reader may have to hold at once."""
GROUP_ROWS = 5_000
"""Rows in a row group: what is read to see a single one."""


class LogError(CapeditError):
    """A log that is not there or cannot be read."""


class Status(StrEnum):
    """What became of a caption."""

    KEPT = "kept"
    """Nothing to change, or not looked at: `reason` then says why."""
    CHANGED = "changed"
    """The output has the refined caption."""
    HELD = "held"
    """A change is proposed but waits for a person: the output has the original."""
    FAILED = "failed"
    """It could not be looked at: the output has the original."""


@dataclass(frozen=True, slots=True)
class EditRow:
    """One caption of a run; the fields are the columns of the log."""

    row: int
    file: str
    index: int
    place: str
    id: str | int
    image_id: str | None
    image_path: str | None
    image_offset: int | None
    image_size: int | None
    original: str
    refined: str | None
    operations: tuple[EditOperation, ...]
    confidence: float | None
    fits: float | None
    steps: int
    rounds: int
    status: Status
    reason: str | None
    model: str
    encoder: str
    version: str
    time: datetime

    @property
    def caption(self) -> str:
        """What the output says."""
        return self.refined if self.status is Status.CHANGED and self.refined is not None else self.original


_NAME = pa.dictionary(pa.int32(), pa.string())
_OPERATION = pa.struct(
    [("op", pa.string()), ("token", pa.string()), ("probability", pa.float32()), ("round", pa.int32())]
)
SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("file", _NAME, nullable=False),
        pa.field("index", pa.int64(), nullable=False),
        pa.field("place", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("id_is_number", pa.bool_(), nullable=False),
        pa.field("image_id", pa.string()),
        pa.field("image_path", pa.string()),
        pa.field("image_offset", pa.int64()),
        pa.field("image_size", pa.int64()),
        pa.field("original", pa.string(), nullable=False),
        pa.field("original_raw", pa.binary()),
        pa.field("refined", pa.string()),
        pa.field("operations", pa.list_(_OPERATION), nullable=False),
        pa.field("confidence", pa.float32()),
        pa.field("fits", pa.float32()),
        pa.field("steps", pa.int32(), nullable=False),
        pa.field("rounds", pa.int32(), nullable=False),
        pa.field("status", _NAME, nullable=False),
        pa.field("reason", pa.string()),
        pa.field("model", _NAME, nullable=False),
        pa.field("encoder", _NAME, nullable=False),
        pa.field("version", _NAME, nullable=False),
        pa.field("time", pa.timestamp("us", "UTC"), nullable=False),
    ],
    metadata={b"capedit.log": b"1"},
)


def edits_folder(out: str | Path) -> Path:
    """The folder beside an output that tells how it came about. Its name keeps it from being taken for a dataset."""
    out = Path(out).absolute()
    return out.with_name(out.name + ".edits.capedit")


class EditLog:
    """Reads the log of an output. Opening is cheap; rows are read from disk when they are asked for."""

    def __init__(self, out: str | Path) -> None:
        """`out` is the output of a run, or a folder of log files."""
        folder = edits_folder(out) / "log"
        self.folder = folder if folder.is_dir() else Path(out)
        self.files = sorted(self.folder.glob("*.parquet")) if self.folder.is_dir() else []
        if not self.files:
            raise LogError(f"{out}: no edit log beside it ({folder})")
        self._starts = [0]
        for file in self.files:
            self._starts.append(self._starts[-1] + _read(pq.read_metadata, file).num_rows)

    def __len__(self) -> int:
        return self._starts[-1]

    def __iter__(self) -> Iterator[EditRow]:
        for batch in self.batches():
            yield from rows(batch)

    def __getitem__(self, row: int) -> EditRow:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of a log of {len(self)}")
        return next(rows(next(self.batches(start=row, stop=row + 1))))

    def batches(
        self, columns: Sequence[str] | None = None, start: int = 0, stop: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows from `start` to `stop` as Arrow batches, some thousand at a time."""
        stop = len(self) if stop is None else stop
        wanted = None if columns is None else list(columns)
        for at, path in enumerate(self.files):
            first = self._starts[at]
            if first >= stop or self._starts[at + 1] <= start:
                continue
            with _read(pq.ParquetFile, path) as file:
                for group in range(file.num_row_groups):
                    count = file.metadata.row_group(group).num_rows
                    begin, end = max(start - first, 0), min(stop - first, count)
                    if begin < end:
                        table = file.read_row_group(group, columns=wanted).slice(begin, end - begin)
                        yield from table.combine_chunks().to_batches()
                    first += count

    def table(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of all rows at once."""
        return pa.Table.from_batches(self.batches(columns), pa.schema([SCHEMA.field(name) for name in columns]))

    def counts(self) -> Counter[Status]:
        """How many captions have each status."""
        counts: Counter[Status] = Counter()
        for batch in self.batches(["status"]):
            for item in pc.value_counts(batch.column(0)).to_pylist():
                counts[Status(item["values"])] += item["counts"]
        return counts


class LogWriter:
    """Writes a log, file by file; the same rows give the same bytes, however they are handed over."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._waiting: list[pa.Table] = []
        self._count = 0
        self._written = 0
        self._file: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        elif self._file is not None:
            self._file.close()

    def write(self, table: pa.Table) -> None:
        """Add rows; `to_table` makes a table of `EditRow`s."""
        self._waiting.append(table.cast(SCHEMA))
        self._count += table.num_rows
        while self._count >= GROUP_ROWS:
            self._put(GROUP_ROWS)

    def close(self) -> None:
        if self._count or not self._written:
            self._put(self._count)
        if self._file is not None:
            self._file.close()
            self._file = None

    def _put(self, count: int) -> None:
        whole = pa.concat_tables(self._waiting) if self._waiting else SCHEMA.empty_table()
        if self._file is None:
            path = self._folder / f"{self._written // FILE_ROWS:05d}.parquet"
            self._file = pq.ParquetWriter(path, SCHEMA, compression="zstd")
        # Dictionaries anew, or they would tell how the rows came in pieces.
        self._file.write_table(_undivided(whole.slice(0, count)), row_group_size=GROUP_ROWS)
        self._waiting = [whole.slice(count)]
        self._count -= count
        self._written += count
        if self._written % FILE_ROWS == 0:
            self._file.close()
            self._file = None


def to_table(edit_rows: Iterable[EditRow]) -> pa.Table:
    """Rows as an Arrow table."""
    return pa.Table.from_pylist([_record(row) for row in edit_rows], SCHEMA)


def rows(batch: pa.RecordBatch) -> Iterator[EditRow]:
    """The rows of an Arrow batch with all columns of the log."""
    for record in batch.to_pylist():
        raw, is_number = record.pop("original_raw"), record.pop("id_is_number")
        record["original"] = record["original"] if raw is None else raw.decode("utf-8", "surrogatepass")
        record["id"] = int(record["id"]) if is_number else record["id"]
        record["operations"] = tuple(
            EditOperation(Op(one["op"]), one["token"], one["probability"], one["round"]) for one in record["operations"]
        )
        record["status"] = Status(record["status"])
        yield EditRow(**record)


def _record(row: EditRow) -> dict[str, Any]:
    record = {name: getattr(row, name) for name in EditRow.__slots__}
    try:
        row.original.encode("utf-8")
        record["original_raw"] = None
    except UnicodeEncodeError:  # half an emoji, which JSON can escape but UTF-8 cannot hold
        record["original_raw"] = row.original.encode("utf-8", "surrogatepass")
        record["original"] = row.original.encode("utf-8", "replace").decode("utf-8")
    record["id"], record["id_is_number"] = str(row.id), isinstance(row.id, int)
    record["operations"] = [one.to_json() for one in row.operations]
    record["status"] = row.status.value
    return record


def _undivided(table: pa.Table) -> pa.Table:
    plain = {field.name: field.type.value_type for field in SCHEMA if pa.types.is_dictionary(field.type)}
    for name, kind in plain.items():
        at = table.schema.get_field_index(name)
        values = table.column(at).cast(kind).combine_chunks()
        table = table.set_column(at, SCHEMA.field(name), values.dictionary_encode())
    return table.combine_chunks().cast(SCHEMA)


def _read(action: Any, path: Path) -> Any:
    try:
        return action(path)
    except (pa.ArrowException, OSError) as error:
        raise LogError(f"{path}: cannot be read ({error})") from error
