"""The log in memory, as columns: what a hundred thousand captions are sorted, filtered and counted by."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from capedit.edits import Op
from capedit.pipeline import EditLog, Status

NONE = -1
"""Stands for no word."""
_COLUMNS = ("original", "refined", "confidence", "status", "operations")


@dataclass(frozen=True)
class EditKind:
    """All units that do the same: `dog -> cat`, `-dog` or `+cat`."""

    deleted: str | None
    added: str | None
    count: int


class LogIndex:
    """Columns of a log. Units are numbered over all rows; those of row i are `starts[i]` to `starts[i + 1]`."""

    def __init__(self, log: EditLog) -> None:
        table = log.table(_COLUMNS)
        self.original: pa.ChunkedArray = table["original"]
        self.refined: pa.ChunkedArray = table["refined"]
        self.confidence: NDArray[np.float32] = pc.fill_null(table["confidence"], float("nan")).to_numpy()
        status = table["status"].cast(pa.string())
        self.status: NDArray[np.int8] = _codes(status)
        self.words: NDArray[np.int32] = np.asarray(pc.count_substring_regex(self.original, r"\S+"), np.int32)
        self._read_units(table["operations"].combine_chunks())

    def __len__(self) -> int:
        return len(self.confidence)

    @property
    def is_proposal(self) -> NDArray[np.bool_]:
        """Rows where the editor would change something."""
        return np.diff(self.starts) > 0

    def texts(self, row: int) -> tuple[str, str]:
        """The caption as it was, and as the editor would have it."""
        original = self.original[row].as_py()
        return original, self.refined[row].as_py() or original

    def units_named(self, deleted: str | None, added: str | None) -> NDArray[np.bool_]:
        """Which units do exactly this."""
        return np.asarray((self.deleted == self._code(deleted)) & (self.added == self._code(added)))

    def units_with(self, *, deleted: str | None = None, added: str | None = None) -> NDArray[np.bool_]:
        """Which units delete, and add, these words; None is any."""
        found = np.ones(len(self.deleted), bool)
        if deleted is not None:
            found &= self.deleted == self._code(deleted)
        if added is not None:
            found &= self.added == self._code(added)
        return found

    def rows_with(self, units: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which rows have one of these units."""
        found = np.zeros(len(self), bool)
        found[self.unit_row[units]] = True
        return found

    def kinds(self, units: NDArray[np.bool_], most: int) -> list[EditKind]:
        """What these units do, the most frequent first."""
        size = len(self._tokens) + 1
        keys, counts = np.unique(
            (self.deleted[units].astype(np.int64) + 1) * size + (self.added[units] + 1), return_counts=True
        )
        best = np.argsort(-counts, kind="stable")[:most]
        return [
            EditKind(self._word(int(keys[at]) // size - 1), self._word(int(keys[at]) % size - 1), int(counts[at]))
            for at in best
        ]

    def _word(self, code: int) -> str | None:
        return None if code == NONE else self._tokens[code]

    def _code(self, word: str | None) -> int:
        return NONE if word is None else self._code_of.get(word, NONE - 1)

    def _read_units(self, operations: pa.ListArray) -> None:
        """The same units as `units_of` finds, for all rows at once."""
        flat = operations.flatten()
        lengths = pc.fill_null(pc.list_value_length(operations), 0).to_numpy()
        row_of = np.repeat(np.arange(len(operations), dtype=np.int32), lengths)
        op = flat.field("op")
        is_keep = np.asarray(pc.equal(op, Op.KEEP.value), bool)
        encoded = flat.field("token").dictionary_encode()
        self._tokens: list[str] = encoded.dictionary.to_pylist()
        self._code_of = {token: code for code, token in enumerate(self._tokens)}
        codes = encoded.indices.to_numpy()
        sure = pc.fill_null(flat.field("probability"), float("nan")).to_numpy()
        changed = np.flatnonzero(~is_keep)
        # A gap is known by the words kept before it, counted over all rows, and by its row.
        gap = np.cumsum(is_keep)[changed] + row_of[changed].astype(np.int64) * (len(flat) + 1)
        deletes = np.asarray(pc.equal(op, Op.DELETE.value), bool)[changed]
        rows: list[int] = []
        deleted: list[int] = []
        added: list[int] = []
        probability: list[float] = []
        row, code, p = row_of[changed].tolist(), codes[changed].tolist(), sure[changed].tolist()
        for first, middle, last in _gaps(gap, deletes):
            for at in range(max(middle - first, last - middle)):
                out, into = first + at, middle + at
                rows.append(row[first])
                deleted.append(code[out] if out < middle else NONE)
                added.append(code[into] if into < last else NONE)
                probability.append(min(p[out] if out < middle else 1.0, p[into] if into < last else 1.0))
        self.unit_row: NDArray[np.int32] = np.array(rows, np.int32)
        self.deleted: NDArray[np.int32] = np.array(deleted, np.int32)
        self.added: NDArray[np.int32] = np.array(added, np.int32)
        self.probability: NDArray[np.float32] = np.array(probability, np.float32)
        counts = np.bincount(self.unit_row, minlength=len(operations))
        self.starts: NDArray[np.int64] = np.concatenate([[0], np.cumsum(counts)])


def _gaps(gap: NDArray[np.int64], deletes: NDArray[np.bool_]) -> Iterator[tuple[int, int, int]]:
    """Each stretch of equal `gap`: its first, its first that is no DELETE, and its end."""
    edges = np.flatnonzero(np.diff(gap)) + 1
    firsts = [0, *edges.tolist()] if len(gap) else []
    ends = [*edges.tolist(), len(gap)]
    before = np.concatenate([[0], np.cumsum(deletes)])
    for first, last in zip(firsts, ends, strict=False):
        yield first, first + int(before[last] - before[first]), last


def _codes(status: pa.ChunkedArray) -> NDArray[np.int8]:
    """For each row the place of its status in `Status`."""
    found = np.zeros(len(status), np.int8)
    for code, name in enumerate(Status):
        found[np.asarray(pc.equal(status, name.value), bool)] = code
    return found
