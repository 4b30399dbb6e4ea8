"""Files are read and written in bounded memory, whatever their size."""

import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from capedit.data import Instance, open_dataset, rewrite_dataset, write_dataset

MEGABYTE = 1 << 20
RECORDS = 1_500
PADDING = "x" * 36_000  # 1,500 of these make more than 50 MB; a few long records spare the test time


def instances(count: int = RECORDS) -> Iterator[Instance]:
    for number in range(count):
        extra = {"padding": PADDING, "number": number}
        yield Instance(number, f"caption {number}", image_id=number // 5, extra=extra)


def peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def write_json(path: Path, format: str) -> None:
    """50 MB of JSON, made without the code under test."""
    with path.open("w", encoding="utf-8") as file:
        file.write({"ee": "[", "jsonl": "", "coco": '{"images": [{"id": 1}], "annotations": ['}[format])
        for number in range(RECORDS):
            between = "\n" if format == "jsonl" else ", "
            record = {"id": number, "image_id": 1, "caption": f"caption {number}", "padding": PADDING}
            file.write((between if number else "") + json.dumps(record))
        file.write({"ee": "]", "jsonl": "\n", "coco": "]}"}[format])


@pytest.mark.parametrize("format", ["ee", "jsonl", "coco"])
def test_fifty_megabytes_of_json(tmp_path: Path, format: str) -> None:
    path = tmp_path / "big.json"
    write_json(path, format)
    assert path.stat().st_size > 50 * MEGABYTE
    dataset = open_dataset(path)
    assert dataset.format.name == format
    assert peak(lambda: sum(1 for _ in dataset)) < 5 * MEGABYTE
    edited = (i.revised(reference="new") for i in dataset if i.id == RECORDS - 1)
    assert peak(lambda: rewrite_dataset(dataset, edited, tmp_path / "copy.json")) < 10 * MEGABYTE
    before, after = path.read_bytes(), (tmp_path / "copy.json").read_bytes()
    assert after == before.replace(f'"caption {RECORDS - 1}"'.encode(), b'"new"')


@pytest.mark.parametrize(
    ("name", "format"),
    [("a.csv", None), ("a.parquet", None), ("a.tar", None), ("hf", "huggingface"), ("a.jsonl", None)],
)
def test_writing_and_reading_the_others(tmp_path: Path, name: str, format: str | None) -> None:
    count = RECORDS
    # Tables are written by the thousand rows, so their bound is that of a chunk and not of a record.
    assert peak(lambda: write_dataset(instances(count), tmp_path / name, format)) < 40 * MEGABYTE
    found = 0

    def read() -> None:
        nonlocal found
        found = sum(1 for _ in open_dataset(tmp_path / name))

    assert peak(read) < 20 * MEGABYTE
    assert found == count


def test_a_file_that_is_one_broken_string_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capedit.data.formats.jsontext.MAX_RECORD", MEGABYTE)
    (tmp_path / "a.json").write_text('[{"Ref-Cap": "a"}, {"Ref-Cap": "' + "x" * (20 * MEGABYTE), encoding="utf-8")
    dataset = open_dataset(tmp_path / "a.json")
    assert peak(lambda: list(dataset)) < 8 * MEGABYTE
    assert [i.reference for i in dataset] == ["a"]
    assert "a quote may be missing" in dataset.problems[0].reason
