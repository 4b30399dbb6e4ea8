"""`capedit fix`, `undo` and `bench` as a user calls them."""

import json
from pathlib import Path

import pytest

from capedit.data import open_dataset
from capedit.edits import Op
from capedit.pipeline import EditLog, Status
from tests.calling import run, run_json
from tests.pipeline.trees import tree
from tests.pipeline.world import damaged_jpeg, write_world


def test_fix_and_undo(tmp_path: Path, model_options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    path = write_world(tmp_path, "captions.csv", None, 30)
    out = tmp_path / "fixed.parquet"
    assert run("fix", path, "--out", out, "--workers", 0, *model_options) == 0
    told = capsys.readouterr().out
    assert "30 captions" in told
    assert f"capedit undo {out}" in told
    rows = list(EditLog(out))
    assert [one.reference for one in open_dataset(out)] == [row.caption for row in rows]
    edited = next(row for row in rows if row.status is Status.CHANGED)
    assert run_json(capsys, "undo", out, "--id", edited.id)["captions"] == 1
    assert [one.reference for one in open_dataset(out)][edited.row] == edited.original
    assert run("undo", out) == 0
    assert [one.reference for one in open_dataset(out)] == [row.original for row in rows]


def test_in_place_with_all_knobs(tmp_path: Path, model_options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 30)
    before = tree(path)
    (tmp_path / "words.txt").write_text("Dog\ncat man\n")
    (tmp_path / "ids.txt").write_text("".join(f"{1000 + number}\n" for number in range(20)))
    knobs = ["--min-confidence", 0.05, "--keep-bias", 14, "--max-edits", 8, "--rounds", 2, "--review-below", 0.2]
    chosen = ["--only", f"id=@{tmp_path / 'ids.txt'}", "--only", "words>2", "--protect", tmp_path / "words.txt"]
    result = run_json(
        capsys, "fix", path, "--in-place", "--workers", 0, *knobs, *chosen, "--protect", "sofa,table", *model_options
    )
    assert sum(result["counts"].values()) == 30
    rows = list(EditLog(path))
    deleted = {one.token for row in rows for one in row.operations if one.op is Op.DELETE}
    assert deleted
    assert not deleted & {"dog", "cat", "man", "sofa", "table"}
    assert all(row.reason == "not selected" for row in rows[20:])
    assert all(row.steps <= 8 for row in rows)
    assert run("undo", path) == 0
    assert tree(path) == before


def test_dry_run(tmp_path: Path, model_options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 60)
    before = tree(tmp_path)
    assert run("fix", path, "--dry-run", "--workers", 0, *model_options) == 0
    told = capsys.readouterr().out
    for words in ("60 captions:", "nothing was written", "confidence of the edits", "steps", "samples", "{+", "[-"):
        assert words in told
    seen = run_json(capsys, "fix", path, "--dry-run", "--workers", 0, "--out", tmp_path / "no.jsonl", *model_options)
    counts = seen["counts"]
    assert sum(counts.values()) == seen["captions"] == seen["total"] == 60
    edits = counts["changed"] + counts.get("held", 0)
    assert sum(seen["confidence"]) == sum(seen["steps"].values()) == edits
    assert [one["confidence"] for one in seen["samples"]] == sorted(one["confidence"] for one in seen["samples"])
    assert len(seen["samples"]) == 10
    assert tree(tmp_path) == before
    result = run_json(capsys, "fix", path, "--out", tmp_path / "yes.jsonl", "--workers", 0, *model_options)
    assert result["counts"] == counts
    assert run("fix", path, "--out", tmp_path / "x.jsonl", "--sample", 5, *model_options) == 1


def test_a_sample_comes_from_all_over(
    tmp_path: Path, model_options: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capedit.pipeline.plan.SHARD_CAPTIONS", 10)
    path = write_world(tmp_path, "captions.jsonl", None, 100)
    seen = run_json(capsys, "fix", path, "--dry-run", "--sample", 30, "--workers", 0, *model_options)
    assert (seen["captions"], seen["total"]) == (30, 100)


def test_partial_success_is_told(tmp_path: Path, model_options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 10)
    (tmp_path / "photos" / "photo0002.jpg").write_bytes(damaged_jpeg())
    with path.open("a") as file:
        file.write("not json\n")
    assert run("fix", path, "--out", tmp_path / "out.jsonl", "--workers", 0, *model_options) == 3
    caught = capsys.readouterr()
    assert "2 failed" in caught.out
    assert "1 bad records" in caught.err


def test_errors_are_one_line(tmp_path: Path, model_options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 4)
    for arguments in (
        ("fix", tmp_path / "none.jsonl", "--out", tmp_path / "o.jsonl"),
        ("fix", path),
        ("fix", path, "--out", path),
        ("fix", path, "--out", tmp_path / "o.unknown", "--to", "nonsense"),
        ("fix", path, "--out", tmp_path / "o.jsonl", "--only", "words<many"),
        ("undo", path),
        ("bench", "--sizes", "few"),
    ):
        options = model_options if arguments[0] == "fix" else []
        assert run(*arguments, *options) == 1
        told = capsys.readouterr().err
        assert told.startswith("error:")
        assert "Traceback" not in told


def test_bench(tmp_path: Path, model_options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--sizes", "20,40", "--workers", "0", "--per-image", 2, "--plot", tmp_path / "b.png", *model_options]
    figures = run_json(capsys, "bench", *options, "--out", tmp_path / "b.json")
    assert [one["captions"] for one in figures["runs"]] == [20, 40]
    assert [one["images"] for one in figures["runs"]] == [10, 20]
    for one in figures["runs"]:
        assert 0 < one["captions_per_second"] < 1e6
        assert 10e6 < one["memory_run"] < 4e9
        assert one["cpu_seconds"] > 0
        assert sorted(one["stages"]) == ["editing", "logging", "reading", "writing"]
        assert one["curve"][-1][::2] == [one["captions"], one["memory_worker"]]
    assert json.loads((tmp_path / "b.json").read_text()) == figures
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


def test_bench_of_a_dataset(tmp_path: Path, model_options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    path = write_world(tmp_path, "shards", "webdataset", 20)
    figures = run_json(capsys, "bench", path, "--sizes", 10, "--workers", 1, *model_options)
    assert [(one["captions"], one["workers"]) for one in figures["runs"]] == [(10, 1)]
    assert figures["runs"][0]["memory_worker"] > 10e6
