"""The edit log: rows come back as they were, and the same rows are the same bytes."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from capedit.data import open_dataset, write_dataset
from capedit.editing import EditOperation
from capedit.edits import Op
from capedit.pipeline import EditLog, EditRow, LogError, Status, edits_folder, log
from capedit.pipeline.log import LogWriter, to_table
from tests.pipeline.world import instances


def row(number: int, **changes: Any) -> EditRow:
    values: dict[str, Any] = {
        "row": number,
        "file": f"part{number // 40}.jsonl",
        "index": number,
        "place": f"line {number + 1}",
        "id": number if number % 2 else f"x{number}",
        "image_id": None if number % 3 else "7",
        "image_path": "a/b.jpg",
        "image_offset": number,
        "image_size": 4,
        "original": f"Ein Hund — “größer” 🐕 {number}\n",
        "refined": None if number % 4 == 0 else "a cat",
        "operations": (EditOperation(Op.KEEP, "a", 0.5, 0), EditOperation(Op.DELETE, "dog", None, 1)),
        "confidence": 0.25,
        "fits": None,
        "steps": 1,
        "rounds": 1,
        "status": list(Status)[number % 4],
        "reason": None if number % 5 else "guard: …",
        "model": "m@1",
        "encoder": "e",
        "version": "0",
        "time": datetime(2024, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
    }
    return EditRow(**values | changes)


def write(folder: Path, rows: list[EditRow], step: int) -> EditLog:
    with LogWriter(folder) as writer:
        for start in range(0, len(rows), step):
            writer.write(to_table(rows[start : start + step]))
    return EditLog(folder)


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "FILE_ROWS", 40)
    monkeypatch.setattr(log, "GROUP_ROWS", 10)


@pytest.mark.usefixtures("small_files")
@pytest.mark.parametrize("count", [0, 1, 10, 40, 95, 120])
def test_rows_come_back(tmp_path: Path, count: int) -> None:
    rows = [row(number) for number in range(count)]
    found = write(tmp_path / "log", rows, 7)
    assert len(found) == count
    assert list(found) == rows
    assert [found[number] for number in range(count)] == rows
    assert len(found.files) == max(1, -(-count // 40))
    assert found.counts() == {status: n for status in Status if (n := sum(r.status is status for r in rows))}
    for start, stop in [(0, 5), (8, 12), (35, 45), (39, 95)]:
        taken = [r for batch in found.batches(start=start, stop=min(stop, count)) for r in log.rows(batch)]
        assert taken == rows[start:stop]
    table = found.table(["row", "confidence"])
    assert table.column("row").to_pylist() == list(range(count))


@pytest.mark.usefixtures("small_files")
def test_the_same_rows_are_the_same_bytes(tmp_path: Path) -> None:
    rows = [row(number) for number in range(95)]
    logs = [write(tmp_path / f"log{step}", rows, step) for step in (1, 13, 40, 95)]
    contents = [[file.read_bytes() for file in one.files] for one in logs]
    assert all(content == contents[0] for content in contents)


def test_text_that_utf8_cannot_hold(tmp_path: Path) -> None:
    odd = row(0, original="half an emoji \ud83d here")
    assert list(write(tmp_path / "log", [odd, row(1)], 2)) == [odd, row(1)]


def test_other_readers_take_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "log", [row(number) for number in range(10)], 10)
    table = pq.read_table(tmp_path / "log")
    assert table.column("original").to_pylist()[3] == row(3).original
    assert set(table.column("status").to_pylist()) == {"kept", "changed", "held", "failed"}


def test_a_log_is_never_taken_for_a_dataset(tmp_path: Path) -> None:
    write_dataset(instances(tmp_path, 4), tmp_path / "data" / "captions.parquet")
    write(edits_folder(tmp_path / "data" / "captions.parquet") / "log", [row(0)], 1)
    assert len(list(open_dataset(tmp_path / "data"))) == 4
    assert len(EditLog(tmp_path / "data" / "captions.parquet")) == 1


def test_no_log(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"nothing\.jsonl: no edit log"):
        EditLog(tmp_path / "nothing.jsonl")
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "00000.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(LogError, match=r"00000\.parquet: cannot be read"):
        EditLog(tmp_path / "log")
