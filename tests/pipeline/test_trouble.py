"""Everything that goes wrong on disks: clear errors, nothing lost, the rest done."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from capedit.data import open_dataset, write_dataset
from capedit.errors import CapeditError
from capedit.pipeline import OutputError, RunError, Status, Treatment, edits_folder, fix, undo
from capedit.pipeline import plan as planning
from capedit.pipeline.durable import locked
from capedit.pipeline.output import WriteFile
from tests.pipeline.trees import tree
from tests.pipeline.world import damaged_jpeg, instances, write_world


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SHARD_CAPTIONS", 16)


def problems_beside(out: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (edits_folder(out) / "problems.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("name", "format"), [("captions.jsonl", None), ("shards", "webdataset"), ("tables", "parquet")]
)
def test_a_corrupt_image_costs_its_captions_only(
    tmp_path: Path, treatment: Treatment, name: str, format: str | None
) -> None:
    made = instances(tmp_path, 30)
    assert made[6].image is not None
    (tmp_path / "photos" / "photo0003.jpg").write_bytes(damaged_jpeg())
    write_dataset(made, tmp_path / name, format, shard_size=10)
    out = tmp_path / f"out-{name}"
    run = fix(open_dataset(tmp_path / name, format), out, treatment=treatment, workers=0)
    failed = [row for row in run.log if row.status is Status.FAILED]
    assert [row.id for row in failed] == [1006, 1007]
    assert all("image" in (row.reason or "") for row in failed)
    assert run.manifest.counts["changed"] > 10
    written = {one.id: one.reference for one in open_dataset(out, format)}
    assert written[1006] == made[6].reference
    assert written == {row.id: row.caption for row in run.log}


def test_malformed_records_stay_where_they_are(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 20)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3:3] = [b'{"id": 7, "reference": \n', b"\xff\xfe not text\n", b'{"id": 8, "reference": 3}\n']
    path.write_bytes(b"".join(lines))
    run = fix(open_dataset(path), tmp_path / "out.jsonl", treatment=treatment, workers=0)
    assert (len(run.log), run.manifest.problems) == (20, 3)
    told = problems_beside(run.out)
    assert [problem["place"] for problem in told] == ["line 4", "line 5", "line 6"]
    assert all(problem["file"] == str(path) for problem in told)
    assert (tmp_path / "out.jsonl").read_bytes().splitlines(keepends=True)[3:6] == lines[3:6]
    assert [row.place for row in run.log][2:4] == ["line 3", "line 7"]


def test_doubled_ids_are_told_and_both_are_done(tmp_path: Path, treatment: Treatment) -> None:
    made = instances(tmp_path, 20)
    write_dataset([*made[:10], replace(made[10], id=1003), *made[11:]], tmp_path / "a.jsonl")
    run = fix(open_dataset(tmp_path / "a.jsonl"), in_place=True, treatment=treatment, workers=0)
    assert "duplicate id 1003" in problems_beside(run.out)[0]["reason"]
    both = [row for row in run.log if row.id == 1003]
    assert [row.row for row in both] == [3, 10]
    undo(run.out, ["1003"])
    texts = [one.reference for one in open_dataset(run.out)]
    assert [texts[3], texts[10]] == [both[0].original, both[1].original]


def broken_shards(folder: Path, name: str, format: str) -> Path:
    path = write_world(folder, name, format, 40)
    shard = sorted(file for file in path.rglob("*") if file.suffix in (".parquet", ".tar"))[1]
    data = shard.read_bytes()
    shard.write_bytes(data[: len(data) // 2] if format == "parquet" else b"\1" * 2000)
    return path


@pytest.mark.parametrize("many", [1, 64], ids=["read by workers", "read by the plan"])
@pytest.mark.parametrize(("name", "format"), [("tables", "parquet"), ("shards", "webdataset")])
def test_an_unreadable_shard_is_copied_and_the_rest_done(
    tmp_path: Path, treatment: Treatment, monkeypatch: pytest.MonkeyPatch, name: str, format: str, many: int
) -> None:
    monkeypatch.setattr(planning, "MANY_FILES", many)
    path = broken_shards(tmp_path, name, format)
    run = fix(open_dataset(path, format), tmp_path / "out", treatment=treatment, workers=0)
    assert run.manifest.problems + len(run.manifest.set_aside) >= 1
    before, after = tree(path), tree(tmp_path / "out")
    broken, *others = sorted(before, key=lambda name: "00001" not in name)
    assert after[broken] == before[broken]
    assert all(after[other] != before[other] for other in others if other.endswith((".tar", ".parquet")))
    assert run.manifest.counts["changed"] > 10
    undo(tmp_path / "out")
    assert tree(tmp_path / "out") == before


def test_a_single_unreadable_file_is_an_error(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "inside.parquet", None, 10)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(CapeditError, match=r"inside\.parquet: cannot be read"):
        fix(open_dataset(path), tmp_path / "out.parquet", treatment=treatment, workers=0)
    assert not (tmp_path / "out.parquet").exists()


def test_two_runs_on_one_output(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 4)
    with (
        locked(edits_folder(tmp_path / "out.jsonl")),
        pytest.raises(RunError, match="another run is writing here"),
    ):
        fix(open_dataset(path), tmp_path / "out.jsonl", treatment=treatment, workers=0)
    assert not (tmp_path / "out.jsonl").exists()
    fix(open_dataset(path), tmp_path / "out.jsonl", treatment=treatment, workers=0)
    with locked(edits_folder(tmp_path / "out.jsonl")), pytest.raises(RunError, match="another run"):
        undo(tmp_path / "out.jsonl")


def test_nothing_is_overwritten(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 4)
    (tmp_path / "mine.jsonl").write_text("mine\n")
    with pytest.raises(RunError, match=r"mine\.jsonl: is there already"):
        fix(open_dataset(path), tmp_path / "mine.jsonl", treatment=treatment, workers=0)
    assert (tmp_path / "mine.jsonl").read_text() == "mine\n"
    with pytest.raises(RunError, match="is the dataset itself"):
        fix(open_dataset(path), path, treatment=treatment, workers=0)
    folder = write_world(tmp_path, "shards", "webdataset", 4)
    with pytest.raises(RunError, match="inside the dataset"):
        fix(open_dataset(folder), folder / "fixed", treatment=treatment, workers=0)
    with pytest.raises(RunError, match="one of the two"):
        fix(open_dataset(path), treatment=treatment)
    with pytest.raises(RunError, match="one of the two"):
        fix(open_dataset(path), tmp_path / "x.jsonl", in_place=True, treatment=treatment)


def test_an_output_that_cannot_be_written(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 4)
    # Even root cannot make files there.
    with pytest.raises(OutputError, match=r"/proc/.*cannot be written"):
        fix(open_dataset(path), "/proc/self/out.jsonl", treatment=treatment, workers=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        fix(open_dataset(path), tmp_path / "file" / "out.jsonl", treatment=treatment, workers=0)


def test_a_read_only_folder(tmp_path: Path, model_options: list[str]) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 4)
    (tmp_path / "shut").mkdir(mode=0o555)
    command = [sys.executable, "-m", "capedit", "fix", str(path), "--workers", "0", *model_options]
    # Root minds permissions once it has given up the right not to (CAP_DAC_OVERRIDE); others never had it.
    humbled = "import ctypes, os, sys; ctypes.CDLL(None).prctl(24, 1); os.execv(sys.argv[1], sys.argv[1:])"
    for arguments in (["--out", str(tmp_path / "shut" / "out.jsonl")], ["--in-place"]):
        if arguments == ["--in-place"]:
            tmp_path.chmod(0o555)
        stopped = subprocess.run(
            [sys.executable, "-c", humbled, *command, *arguments], capture_output=True, text=True, check=False
        )
        tmp_path.chmod(0o755)
        assert stopped.returncode == 1
        assert "cannot be written (Permission denied)" in stopped.stderr
        assert "Traceback" not in stopped.stderr
    assert list((tmp_path / "shut").iterdir()) == []


# The largest file that a process may write, in kB: what fails first is, in turn, the plan, a shard's rows, the output.
@pytest.mark.parametrize("kilobytes", [1, 6, 20])
@pytest.mark.parametrize("in_place", [False, True])
def test_a_full_disk(tmp_path: Path, treatment: Treatment, kilobytes: int, in_place: bool) -> None:
    """RLIMIT_FSIZE fails writes as a full disk does, at any place; afterwards the run goes on."""
    path = write_world(tmp_path, "captions.jsonl", None, 200)
    before = tree(path)
    out = path if in_place else tmp_path / "out.jsonl"
    where = "in_place=True" if in_place else repr(str(out))
    code = (
        "import resource\n"
        "from capedit.data import open_dataset\n"
        "from capedit.pipeline import OutputError, Treatment, fix\n"
        f"treatment = Treatment(model={treatment.model!r}, encoder={treatment.encoder!r})\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({kilobytes * 1024}, {kilobytes * 1024}))\n"
        "try:\n"
        f"    fix(open_dataset({str(path)!r}), {where}, treatment=treatment, workers=0)\n"
        "except OutputError as error:\n"
        "    print(error); raise SystemExit(7)\n"
    )
    stopped = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert stopped.returncode == 7, stopped.stderr
    assert "cannot be written" in stopped.stdout
    assert "File too large" in stopped.stdout
    assert tree(path) == before
    assert in_place or not out.exists()
    arguments = {"in_place": True} if in_place else {"out": out}
    run = fix(open_dataset(path), treatment=treatment, workers=0, **arguments)
    assert [one.reference for one in open_dataset(out)] == [row.caption for row in run.log]
    assert len(run.log) == 200
    undo(out)
    assert out.read_bytes() == path.read_bytes()
    assert tree(path) == before


def test_a_file_that_was_half_copied_is_copied_again(
    tmp_path: Path, treatment: Treatment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of a folder that hold no captions (here: the images) go to the output, too."""
    path = write_world(tmp_path, "folder", "sidecar", 12)
    expected = tree(fix(open_dataset(path), tmp_path / "calm", treatment=treatment, workers=0).out)
    copy = shutil.copyfile
    copied = 0

    def dying(source: Path, target: Path) -> None:
        nonlocal copied
        copied += 1
        if copied == 3:
            Path(target).write_bytes(Path(source).read_bytes()[:100])
            raise KeyboardInterrupt
        copy(source, target)

    with monkeypatch.context() as patched:
        patched.setattr("capedit.pipeline.output.shutil.copyfile", dying)
        with pytest.raises(KeyboardInterrupt):
            fix(open_dataset(path), tmp_path / "out", treatment=treatment, workers=0)
    assert copied == 3
    assert tree(fix(open_dataset(path), tmp_path / "out", treatment=treatment, workers=0).out) == expected


def test_the_dataset_changes_while_the_run_is_cut_short(
    tmp_path: Path, treatment: Treatment, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 20)
    _stop_before_writing(monkeypatch, path, treatment)
    with path.open("a") as file:
        file.write('{"id": 1, "reference": "a late caption", "image": "photos/photo0000.png"}\n')
    after = path.read_bytes()
    with pytest.raises(RunError, match="has changed since this run began"):
        fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)
    assert path.read_bytes() == after


def _stop_before_writing(monkeypatch: pytest.MonkeyPatch, path: Path, treatment: Treatment) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("capedit.pipeline.fixing._write", stop)
        with pytest.raises(KeyboardInterrupt):
            fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)


def test_a_file_that_somebody_edits_between_crash_and_resume_is_left_alone(
    tmp_path: Path, treatment: Treatment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place, the journal is complete and half of the shards are written when the run dies; then a person comes."""
    path = write_world(tmp_path, "shards", "webdataset", 30)
    before = tree(path)
    real = WriteFile.write
    written = 0

    def dying(unit: WriteFile, staging: Path) -> None:
        nonlocal written
        if written == 1:
            raise KeyboardInterrupt
        written += 1
        real(unit, staging)

    with monkeypatch.context() as patched:
        patched.setattr(WriteFile, "write", dying)
        with pytest.raises(KeyboardInterrupt):
            fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)
    last = sorted(path.glob("*.tar"))[-1]
    mine = last.read_bytes() + bytes(512)
    last.unlink()  # as an editor saves: another file in its place
    last.write_bytes(mine)
    with pytest.raises(RunError, match="has been changed while the run was under way"):
        fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)
    assert last.read_bytes() == mine
    last.write_bytes(mine[:-512])
    fix(open_dataset(path), in_place=True, treatment=treatment, workers=0)
    undo(path)
    assert tree(path) == before


def test_a_model_that_is_not_there(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 40)
    with pytest.raises(CapeditError, match="not a model folder"):
        fix(open_dataset(path), tmp_path / "out.jsonl", treatment=replace(treatment, model=str(tmp_path)))
    model = shutil.copytree(treatment.model, tmp_path / "model")
    (model / "see.onnx").write_bytes(b"nonsense")
    crippled = replace(treatment, model=str(model))
    for workers in (0, 2):
        with pytest.raises(RunError, match=r"see\.onnx: cannot be loaded"):
            fix(open_dataset(path), tmp_path / "out.jsonl", treatment=crippled, workers=workers)
    assert not (tmp_path / "out.jsonl").exists()


def test_a_store_of_another_encoder_is_refused(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 4)
    store = tmp_path / "store"
    store.mkdir()
    header = {"encoder": "x", "encoder_hash": "other", "dim": 3, "precision": "float16", "format": 1}
    (store / "store.json").write_text(json.dumps(header))
    with pytest.raises(CapeditError, match="made by encoder other"):
        fix(open_dataset(path), tmp_path / "out.jsonl", treatment=replace(treatment, features=str(store)))
