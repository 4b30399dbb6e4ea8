"""Undoing what is no longer as the run left it: people's words are left alone."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from capedit.data import open_dataset, rewrite_dataset
from capedit.pipeline import Run, RunError, Status, Treatment, fix, undo
from capedit.pipeline import plan as planning
from capedit.pipeline.durable import place
from capedit.pipeline.manifest import State
from tests.pipeline.trees import tree
from tests.pipeline.world import write_world

HAND = "a person has typed this"


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SHARD_CAPTIONS", 16)


def changed(run: Run) -> list[int]:
    return [row.row for row in run.log if row.status is Status.CHANGED]


def type_into(path: Path, row: int, format: str | None = None) -> None:
    dataset = open_dataset(path, format)
    rewrite_dataset(dataset, [one.revised(reference=HAND) for at, one in enumerate(dataset) if at == row])


def captions(path: Path, format: str | None = None) -> list[str]:
    return [one.reference for one in open_dataset(path, format)]


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize(
    ("name", "format"), [("captions.jsonl", None), ("shards", "webdataset"), ("tables", "parquet")]
)
def test_what_people_have_changed_since(
    tmp_path: Path, treatment: Treatment, name: str, format: str | None, in_place: bool
) -> None:
    path = write_world(tmp_path, name, format, 30)
    out = path if in_place else tmp_path / f"out-{name}"
    where = None if in_place else out
    run = fix(open_dataset(path, format), where, in_place=in_place, treatment=treatment, workers=0)
    rows = list(run.log)
    mine, other, *_ = changed(run)
    kept = next(row.row for row in rows if row.status is Status.KEPT)
    type_into(out, mine, format)
    type_into(out, kept, format)
    assert run.touched()
    assert undo(out, [str(rows[mine].id), str(rows[other].id)]).conflicts == (mine,)
    found = captions(out, format)
    assert (found[mine], found[other], found[kept]) == (HAND, rows[other].original, HAND)
    result = undo(out)
    assert result.conflicts == (mine,)
    assert result.captions == len(changed(run)) - 2
    expected = [HAND if row.row in (mine, kept) else row.original for row in rows]
    assert captions(out, format) == expected
    assert Run(out).manifest.state is State.DONE  # not all of it is undone


def test_records_that_came_or_went(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 20)
    run = fix(open_dataset(path), tmp_path / "out.jsonl", treatment=treatment, workers=0)
    lines = run.out.read_bytes().splitlines(keepends=True)
    run.out.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(RunError, match="has 19 captions where the run wrote 20"):
        undo(run.out)
    assert run.out.read_bytes() == b"".join(lines[:-1])


def test_without_the_input(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 20)
    originals = captions(path)
    run = fix(open_dataset(path), tmp_path / "out.jsonl", treatment=treatment, workers=0)
    path.unlink()
    undo(run.out, [str(run.log[changed(run)[0]].id)])
    undo(run.out)
    assert captions(run.out) == originals
    assert run.image(run.log[0])


def test_undo_is_done_once_and_the_run_can_be_made_again(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 20)
    before = tree(path)
    run = fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)
    after = tree(path)
    undo(path)
    with pytest.raises(RunError, match="was undone before"):
        undo(path)
    fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)
    assert tree(path) == after
    assert (run.folder / "undone-0001" / "log").is_dir()  # what was done and undone stays on record
    undo(path)
    assert tree(path) == before


def test_what_is_kept_of_a_run_that_was_undone_stays_together(tmp_path: Path, treatment: Treatment) -> None:
    """Also if putting it out of the way was cut short once."""
    path = write_world(tmp_path, "captions.jsonl", None, 20)
    run = fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)
    (run.folder / "review.jsonl").write_text("what people have decided\n")
    undo(path)
    aside = run.folder / "undone-0001"
    aside.mkdir()
    (run.folder / "log").rename(aside / "log")
    fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)
    assert sorted(entry.name for entry in aside.iterdir()) == ["log", "output.json", "review.jsonl", "run.json"]
    assert not (run.folder / "undone-0002").exists()


def test_an_undo_that_was_cut_short_can_only_be_finished(
    tmp_path: Path, treatment: Treatment, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_world(tmp_path, "shards", "webdataset", 30)
    before = tree(path)
    run = fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)
    placed: list[Path] = []

    def dying(staged: Path, target: Path) -> None:
        if placed:
            raise KeyboardInterrupt
        placed.append(target)
        place(staged, target)

    with monkeypatch.context() as patched:
        patched.setattr("capedit.pipeline.journal.place", dying)
        with pytest.raises(KeyboardInterrupt):
            undo(path)
    assert tree(path) != before
    with pytest.raises(RunError, match=r"cut short; finish it first \(capedit undo\)"):
        undo(path, [str(run.log[0].id)])
    with pytest.raises(RunError, match=r"cut short; finish it first \(capedit undo\)"):
        fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)
    with pytest.raises(RunError, match="is undoing, not done"):
        run.rewrite({0: HAND})
    undo(path)
    assert tree(path) == before


def test_a_decision_that_was_cut_short_is_carried_out_by_the_next(
    tmp_path: Path, treatment: Treatment, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_world(tmp_path, "tables", "parquet", 30)
    run = fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("capedit.pipeline.run.remake", stop)
        with pytest.raises(KeyboardInterrupt):
            run.rewrite({2: HAND})
    assert captions(path)[2] != HAND
    run.rewrite({27: HAND})  # in another file
    assert [captions(path)[row] for row in (2, 27)] == [HAND, HAND]


def test_a_run_that_was_made_again_must_be_opened_again(
    tmp_path: Path, treatment: Treatment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A review that is left open must not write what it knows of one run into the next."""
    path = write_world(tmp_path, "captions.jsonl", None, 20)
    opened = fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)
    undo(path)
    with pytest.raises(RunError, match="is undone, not done"):
        opened.rewrite({3: HAND})
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000001")
    fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)
    with pytest.raises(RunError, match="open it again"):
        opened.rewrite({3: HAND})


def test_in_place_only_once(tmp_path: Path, treatment: Treatment) -> None:
    """A second run in place would edit the machine's text, and bury the originals."""
    path = write_world(tmp_path, "captions.jsonl", None, 20)
    fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)
    after = tree(path)
    fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)  # it is done
    assert tree(path) == after
    type_into(path, 3)
    with pytest.raises(RunError, match="was fixed in place and has changed since"):
        fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)


def test_a_damaged_journal_is_not_restored_from(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 20)
    run = fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)
    after = tree(path)
    kept = run.folder / "journal" / "originals" / "captions.jsonl"
    kept.write_bytes(kept.read_bytes()[:-5])
    with pytest.raises(RunError, match="the original kept here has been changed"):
        undo(path)
    assert tree(path) == after
    assert Run(path).manifest.state is State.DONE


def test_a_run_without_changes_can_still_be_reviewed(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "arrow", "huggingface", 12)
    before = tree(path)
    still = replace(treatment, knobs={"keep_bias": 1e9, "stop_bias": 1e9, "fluent": False})
    run = fix(open_dataset(path), in_place=True, treatment=still, workers=0)
    assert run.manifest.counts == {"kept": 12}
    assert tree(path) == before
    run.rewrite({3: HAND})
    assert captions(path)[3] == HAND
    assert undo(path).captions == 1
    assert tree(path) == before


def test_an_output_that_is_gone(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 4)
    fix(open_dataset(path), tmp_path / "out.jsonl", treatment=treatment, workers=0).out.unlink()
    with pytest.raises(RunError, match=r"out\.jsonl: is gone"):
        fix(open_dataset(path), tmp_path / "out.jsonl", treatment=treatment, workers=0)


def test_ids_that_are_not_there(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 4)
    run = fix(open_dataset(path), tmp_path / "out.jsonl", treatment=treatment, workers=0)
    with pytest.raises(RunError, match="no caption with id 'nobody'"):
        undo(run.out, ["1000", "nobody"])
    with pytest.raises(RunError, match="not made by capedit fix"):
        undo(path)


def test_decisions_of_reviewers(tmp_path: Path, treatment: Treatment) -> None:
    """The face that the review app builds on."""
    path = write_world(tmp_path, "captions.jsonl", None, 30)
    before = path.read_bytes()
    run = fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)
    mine, other, *_ = changed(run)
    kept = next(row.row for row in run.log if row.status is Status.KEPT)
    assert run.rewrite({mine: HAND, kept: HAND}).captions == 2
    assert run.rewrite({other: run.log[other].original}).captions == 1
    assert run.decided == {mine: HAND, kept: HAND, other: run.log[other].original}
    expected = [run.decided.get(row.row, row.caption) for row in run.log]
    assert captions(path) == expected
    assert not run.touched()
    for name in ("all.parquet", "all.csv", "all.jsonl"):
        run.export(tmp_path / name, {kept: "something else"})
        assert captions(tmp_path / name) == [
            text if at != kept else "something else" for at, text in enumerate(expected)
        ]
    kept_lines = (run.folder / "decisions.jsonl").read_text().splitlines()
    decided = [json.loads(line) for line in kept_lines]
    assert [(one["row"], one["by"]) for one in decided] == [(mine, "review"), (kept, "review"), (other, "review")]
    with (run.folder / "decisions.jsonl").open("a") as file:
        file.write('{"row": 0, "capt')  # a crash while it was written
    assert run.rewrite({mine: "once more"}).captions == 1
    assert captions(path)[mine] == "once more"
    undo(path)
    assert path.read_bytes() == before
