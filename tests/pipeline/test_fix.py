"""Whole datasets in every format: only captions change, the log has every change, and all can be taken back."""

import json
from collections import Counter
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from capedit.data import open_dataset, rewrite_dataset, write_dataset
from capedit.edits import Op, Operation, Script, realise
from capedit.edits.tokens import tokenize
from capedit.pipeline import Limits, Progress, Run, RunError, Stage, Status, Treatment, fix, undo
from capedit.pipeline import plan as planning
from tests.pipeline.trees import tree
from tests.pipeline.world import LAYOUTS, instances, texts, write_world

IDS = [name for name, _ in LAYOUTS]
COUNT = 40


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SHARD_CAPTIONS", 16)


def renamed(found: dict[str, str]) -> dict[str, str]:
    return {name.removeprefix("fixed-"): digest for name, digest in found.items()}


@pytest.mark.parametrize(("name", "format"), LAYOUTS, ids=IDS)
def test_every_format_there_and_back(tmp_path: Path, treatment: Treatment, name: str, format: str | None) -> None:
    path = write_world(tmp_path, name, format, COUNT)
    dataset = open_dataset(path, format)
    before, originals = tree(path), list(dataset)
    out = path.with_name(f"fixed-{name}")

    run = fix(dataset, out, treatment=treatment, workers=0)
    assert tree(path) == before
    rows = list(run.log)
    assert [(row.row, row.id, row.original) for row in rows] == [
        (number, one.id, one.reference) for number, one in enumerate(originals)
    ]
    assert run.manifest.counts == dict(Counter(row.status.value for row in rows))
    assert {Status.CHANGED, Status.KEPT} <= {row.status for row in rows}
    written = open_dataset(out, format, strict=True)
    for row, new, old in zip(rows, written, originals, strict=True):
        assert new.reference == row.caption
        assert (new.reference != old.reference) == (row.status is Status.CHANGED)
        assert (new.id, new.image_id, dict(new.extra)) == (old.id, old.image_id, dict(old.extra))
        assert new.image is not None
        assert old.image is not None
        assert new.image.read() == old.image.read() == run.image(row)

    again = fix(open_dataset(path, format), in_place=True, treatment=treatment, workers=0)
    assert tree(path) == renamed(tree(out))
    for row in (rows[0], rows[-1]):
        assert again.image(row) == run.image(row)
    changed = run.manifest.counts["changed"]
    assert undo(path).captions == changed
    assert tree(path) == before
    assert undo(out).captions == changed
    assert renamed(tree(out)) == before
    assert not [file for file in tmp_path.rglob(".*") if file.is_file() and ".capedit" not in str(file)]


@pytest.mark.parametrize(("name", "format"), LAYOUTS, ids=IDS)
def test_undo_by_id_is_as_if_it_had_never_been(
    tmp_path: Path, treatment: Treatment, name: str, format: str | None
) -> None:
    path = write_world(tmp_path, name, format, COUNT)
    before = tree(path)
    run = fix(open_dataset(path, format), in_place=True, treatment=treatment, workers=0)
    changed = [row for row in run.log if row.status is Status.CHANGED]
    chosen = changed[::3]
    ids = [str(row.id) for row in chosen]
    assert undo(path, ids).captions == len(chosen)
    captions = {one.id: one.reference for one in open_dataset(path, format)}
    for row in run.log:
        assert captions[row.id] == (row.original if row in chosen else row.caption)

    # As if the others alone had ever been changed, byte for byte.
    other = open_dataset(write_world(tmp_path / "other", name, format, COUNT), format)
    left = {row.row: row.caption for row in changed if row not in chosen}
    rewrite_dataset(other, (one.revised(reference=left[at]) for at, one in enumerate(other) if at in left))
    assert tree(path) == tree(other.path)
    undo(path, [str(row.id) for row in changed])
    assert tree(path) == before
    undo(path)
    assert tree(path) == before


def test_every_format_to_another(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 24)
    captions: set[tuple[str, ...]] = set()
    for name, format in LAYOUTS:
        out = tmp_path / "out" / name
        run = fix(open_dataset(path), out, format=format, treatment=treatment, workers=0)
        assert run.manifest.rewritten == (name == "captions.jsonl")
        found = list(open_dataset(out, format, strict=True))
        assert [one.id for one in found] == [row.id for row in run.log]
        captions.add(tuple(one.reference for one in found))
        assert captions == {tuple(row.caption for row in run.log)}
        undo(out)
        assert [one.reference for one in open_dataset(out, format)] == [row.original for row in run.log]


def test_kept_words_keep_their_looks(tmp_path: Path, treatment: Treatment) -> None:
    """What is written is the original with the operations of the log carried out on it, punctuation, case and all."""
    made = instances(tmp_path, 40)
    dressed = [replace(one, reference=_dressed(one.reference, number)) for number, one in enumerate(made)]
    write_dataset(dressed, tmp_path / "a.jsonl")
    run = fix(open_dataset(tmp_path / "a.jsonl"), tmp_path / "b.jsonl", treatment=treatment, workers=0)
    seen = 0
    for row, old in zip(run.log, dressed, strict=True):
        assert row.original == old.reference
        script = Script(Operation(one.op, one.token) for one in row.operations)
        assert script.source == tokenize(row.original)
        assert row.refined == realise(row.original, script)
        if row.status is Status.CHANGED and "“" in row.caption and "—" in row.caption:
            seen += 1
        kept = [one.token for one in row.operations if one.op is Op.KEEP]
        assert all(token in row.caption.lower() for token in kept)
    assert seen


def _dressed(text: str, number: int) -> str:
    words = text.split()
    words[0] = f"“{words[0]}”"
    words[-1] = f"— {words[-1].upper() if number % 2 else words[-1]}"
    return "  ".join(words) + (" …" if number % 3 else "!")


def test_knobs(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 40)

    def run(name: str, **changes: object) -> Run:
        asked = replace(treatment, **changes)  # type: ignore[arg-type]
        return fix(open_dataset(path), tmp_path / f"{name}.jsonl", treatment=asked, workers=0)

    plain = run("plain")
    steps = Counter(row.steps for row in plain.log if row.status is Status.CHANGED)
    assert max(steps) > 3
    few = run("few", knobs={"max_edits": 3})
    assert max(row.steps for row in few.log) <= 3
    none = run("none", knobs={"keep_bias": 1e9, "stop_bias": 1e9, "fluent": False})
    assert none.manifest.counts == {"kept": 40}
    assert (tmp_path / "none.jsonl").read_bytes() == path.read_bytes()
    held = run("held", review_below=0.999)
    for row, before in zip(held.log, plain.log, strict=True):
        if row.status is Status.HELD:
            assert row.refined == before.refined != row.original
            assert row.caption == row.original
        elif row.status is Status.CHANGED:
            assert (row.confidence or 0) >= 0.999
    assert held.manifest.counts["held"] > plain.manifest.counts.get("held", 0)
    gone = Counter(one.token for row in plain.log for one in row.operations if one.op is Op.DELETE)
    word = gone.most_common(1)[0][0]
    safe = run("safe", knobs={"protected": [word]})
    assert not any(one.op is Op.DELETE and one.token == word for row in safe.log for one in row.operations)
    only = run("only", only=("source=machine", "words>=5"))
    for row, one in zip(only.log, open_dataset(path), strict=True):
        chosen = one.extra["source"] == "machine" and len(tokenize(one.reference)) >= 5
        assert (row.reason == "not selected") != chosen
    with pytest.raises(RunError, match=r"no such knob.*keep_bias"):
        run("wrong", knobs={"keepbias": 1})


def test_a_refiner_that_collapses_captions_is_caught(tmp_path: Path, treatment: Treatment) -> None:
    """Without its biases the random model makes nearly everything the same short sentence."""
    path = write_world(tmp_path, "captions.jsonl", None, 60)
    wild = replace(treatment, knobs={"keep_bias": 0.0, "stop_bias": 0.0, "rounds": 2})
    run = fix(open_dataset(path), tmp_path / "a.jsonl", treatment=wild, workers=0)
    assert any("would be left" in (row.reason or "") or "would go" in (row.reason or "") for row in run.log)
    lax = replace(wild, limits=Limits(max_shrink=1.0, max_deleted=1.0))
    collapsed = fix(open_dataset(path), tmp_path / "b.jsonl", treatment=lax, workers=0)
    assert collapsed.manifest.collapsed
    for text, count in collapsed.manifest.collapsed.items():
        rows = [row for row in collapsed.log if tokenize(row.refined or "") == text.split() != tokenize(row.original)]
        assert len(rows) == count >= 20
        assert {(row.status, row.reason) for row in rows} == {
            (Status.HELD, f"guard: {count} captions would become this sentence")
        }
        assert all(row.caption == row.original for row in rows)


def test_scattered_captions_come_out_in_order(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "coco.json", "coco", 120, scattered=True)
    images: list[int] = []
    run = fix(
        open_dataset(path),
        tmp_path / "out.json",
        treatment=treatment,
        workers=0,
        report=lambda now: images.append(now.images),
    )
    assert max(images) == 60  # each once
    assert [row.id for row in run.log] == [one.id for one in open_dataset(path)]
    assert [one.reference for one in open_dataset(tmp_path / "out.json")] == [row.caption for row in run.log]


def test_captions_of_a_file_that_do_not_follow_one_another(tmp_path: Path, treatment: Treatment) -> None:
    """A sidecar folder made from another dataset keeps its order, in which the lines of a text file are far apart."""
    path = write_world(tmp_path, "folder", "sidecar", 40, scattered=True)
    files = [one.origin.file for one in open_dataset(path) if one.origin is not None]
    assert len(list(groupby(files))) > len(set(files))
    before = tree(path)
    beside = fix(open_dataset(path), tmp_path / "out", treatment=treatment, workers=0)
    fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)
    assert tree(path) == tree(tmp_path / "out")
    assert [one.reference for one in open_dataset(path)] == [row.caption for row in beside.log]
    chosen = [row for row in beside.log if row.status is Status.CHANGED][::2]
    undo(path, [str(row.id) for row in chosen])
    expected = [row.original if row in chosen else row.caption for row in beside.log]
    assert [one.reference for one in open_dataset(path)] == expected
    undo(path)
    undo(tmp_path / "out")
    assert tree(path) == tree(tmp_path / "out") == before


def test_progress_tells_rate_and_time(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 60)
    moments: list[Progress] = []
    fix(open_dataset(path), tmp_path / "out.jsonl", treatment=treatment, workers=0, report=moments.append)
    assert [stage for stage, _ in groupby(now.stage for now in moments)] == list(Stage)
    editing = [now for now in moments if now.stage is Stage.EDITING]
    assert [now.captions for now in editing] == sorted(now.captions for now in editing)
    assert (editing[0].share, editing[-1].share, editing[-1].captions) == (0.0, 1.0, 60)
    assert all(now.total == 60 for now in editing)
    assert all(now.rate > 0 and now.remaining is not None for now in editing[1:])
    assert editing[-1].remaining == pytest.approx(0)
    assert editing[-1].memory > 10_000_000
    assert 0 < editing[-1].cpu < 600
    assert editing[-1].statuses.total() == 60


def test_what_is_done_is_not_done_again(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 20)
    run = fix(open_dataset(path), tmp_path / "out.jsonl", treatment=treatment, workers=0)
    before = tree(tmp_path / "out.jsonl")
    moments: list[Progress] = []
    again = fix(open_dataset(path), tmp_path / "out.jsonl", treatment=treatment, workers=0, report=moments.append)
    assert not moments
    assert again.manifest.finished == run.manifest.finished
    assert tree(tmp_path / "out.jsonl") == before
    with pytest.raises(RunError, match=r"other settings.*review_below"):
        fix(open_dataset(path), tmp_path / "out.jsonl", treatment=replace(treatment, review_below=0.5))


def test_the_log_says_by_whom_and_when(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 4)
    run = fix(open_dataset(path), tmp_path / "out.jsonl", treatment=treatment, workers=0)
    table = pq.read_table(run.log.folder)
    assert set(table.column("model").to_pylist()) == {treatment.bundle().label}
    assert set(table.column("encoder").to_pylist()) == {treatment.load_encoder().hash}
    assert set(table.column("version").to_pylist()) == {run.manifest.version}
    assert {time.isoformat() for time in table.column("time").to_pylist()} == {run.manifest.time}
    assert table.column("image_path").to_pylist()[0] == "photos/photo0000.png"


def test_an_empty_dataset(tmp_path: Path, treatment: Treatment) -> None:
    (tmp_path / "none.jsonl").write_text("\n")
    run = fix(open_dataset(tmp_path / "none.jsonl"), tmp_path / "out.jsonl", treatment=treatment, workers=0)
    assert (len(run.log), run.manifest.counts) == (0, {})
    assert (tmp_path / "out.jsonl").read_text() == "\n"


def test_unusual_spelling_survives(tmp_path: Path, treatment: Treatment) -> None:
    """Bytes outside the caption stay, and undoing gives back even escapes that nobody would write."""
    photo = instances(tmp_path, 1)[0].image
    assert photo is not None
    lines = [
        b'{ "caption" :"%s" ,"n": 1.50e3, "image":"photos/photo0000.png", "\\u0061": "\\/"}\r\n' % spelled
        for spelled in (text.replace("a", "\\u0061").encode() for text in islice(texts(), 12))
    ]
    path = tmp_path / "odd.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"".join(lines) + b"not json\r\n\r\n")
    before = path.read_bytes()
    run = fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)
    assert run.manifest.problems == 1
    after = path.read_bytes()
    assert after.startswith(b"\xef\xbb\xbf")
    assert after.endswith(b"not json\r\n\r\n")
    assert after.count(b'"n": 1.50e3, "image":"photos/photo0000.png", "\\u0061": "\\/"}\r\n') == 12
    changed = [row for row in run.log if row.status is Status.CHANGED]
    undo(path, [str(changed[0].id)])
    assert path.read_bytes().splitlines()[changed[0].index] == before.splitlines()[changed[0].index]
    undo(path)
    assert path.read_bytes() == before


def test_manifest_is_plain_json(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.csv", None, 10)
    run = fix(open_dataset(path), tmp_path / "out.csv", treatment=treatment, workers=0)
    described = json.loads((run.folder / "run.json").read_text())
    assert described["state"] == "done"
    assert described["counts"] == run.manifest.counts
    assert described["treatment"]["model"] == treatment.model
    assert sorted(entry.name for entry in run.folder.iterdir()) == ["lock", "log", "output.json", "run.json"]
