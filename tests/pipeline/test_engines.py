"""Engines: whoever does the work, in whatever order, the result is the same; trouble with one shard stays with it."""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from capedit.data import ImageFile, open_dataset
from capedit.pipeline import EngineName, Progress, Run, Stage, Status, Treatment, edits_folder, fix
from capedit.pipeline import plan as planning
from capedit.pipeline.engine import ATTEMPTS, Answer, Outcome, work_through
from capedit.pipeline.errors import FatalError
from capedit.pipeline.refine import Stamp
from capedit.pipeline.settings import Source
from capedit.pipeline.workbench import Account, Task, Unit, Workbench
from tests.pipeline.trees import tree
from tests.pipeline.world import write_world


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SHARD_CAPTIONS", 16)


@dataclass(frozen=True)
class Chore:
    """A unit that needs nothing."""

    number: int

    def is_done(self, task: Task) -> bool:
        return False

    def run(self, bench: Workbench) -> Account:
        return Account(self.number)


class FakePool:
    """Workers in no hurry and in no order; some units fail so many times."""

    def __init__(self, size: int, failing: dict[int, int], fatal: int | None = None) -> None:
        self.size, self._failing, self._fatal = size, dict(failing), fatal
        self._units: deque[Unit] = deque()
        self._chance = Random(3)
        self.most = 0

    def submit(self, unit: Unit) -> None:
        self._units.append(unit)
        self.most = max(self.most, len(self._units))
        assert len(self._units) <= self.size

    def wait(self) -> Answer:
        self._units.rotate(self._chance.randrange(4))
        unit = self._units.popleft()
        if unit.number == self._fatal:
            return Answer(unit, error="disk full", fatal=True)
        if self._failing.get(unit.number, 0) > 0:
            self._failing[unit.number] -= 1
            return Answer(unit, error="not today")
        return Answer(unit, Account(unit.number))


def outcomes(pool: FakePool, count: int) -> list[Outcome]:
    return list(work_through(pool, (Chore(number) for number in range(count))))


def test_every_unit_once_and_never_more_than_fit() -> None:
    pool = FakePool(3, {})
    found = outcomes(pool, 20)
    assert sorted(one.unit.number for one in found) == list(range(20))
    assert pool.most == 3


def test_units_are_begun_only_when_there_is_room() -> None:
    begun = 0

    def units() -> Iterator[Unit]:
        nonlocal begun
        for number in range(100):
            begun += 1
            yield Chore(number)

    for count, _ in enumerate(work_through(FakePool(2, {}), units()), start=1):
        assert begun <= count + 2


def test_failing_units_are_tried_again_and_then_set_aside() -> None:
    found = {one.unit.number: one for one in outcomes(FakePool(2, {3: ATTEMPTS - 1, 5: ATTEMPTS}), 10)}
    assert len(found) == 10
    assert found[3].account is not None
    assert (found[5].account, found[5].reason) == (None, "not today")


def test_what_would_stop_all_stops_at_once() -> None:
    with pytest.raises(FatalError, match="disk full"):
        outcomes(FakePool(2, {}, fatal=4), 10)


def results(run: Run) -> dict[str, str]:
    return {**tree(run.out), **tree(run.log.folder)}


LOCAL, RAY = EngineName.LOCAL, EngineName.RAY


@pytest.mark.parametrize(
    ("name", "format", "engines"),
    [
        ("captions.jsonl", None, [(LOCAL, 0), (LOCAL, 1), (LOCAL, 3)]),
        ("shards", "webdataset", [(LOCAL, 0), (LOCAL, 2), (RAY, 2)]),
    ],
)
def test_engines_agree(
    tmp_path: Path, treatment: Treatment, name: str, format: str | None, engines: list[tuple[EngineName, int]]
) -> None:
    path = write_world(tmp_path, name, format, 90, scattered=True)
    found = []
    for engine, workers in engines:
        out = tmp_path / f"{engine}{workers}" / path.name
        run = fix(open_dataset(path, format), out, treatment=treatment, engine=engine, workers=workers)
        assert not run.manifest.set_aside
        found.append(results(run))
    assert all(one == found[0] for one in found)


def test_ray_replaces_workers_that_are_lost(tmp_path: Path, treatment: Treatment) -> None:
    from capedit.pipeline.ray_pool import RayPool

    @dataclass(frozen=True)
    class Deadly:
        number: int

        def is_done(self, task: Task) -> bool:
            return False

        def run(self, bench: Workbench) -> Account:
            if self.number == 2:
                os._exit(1)
            return Account(self.number)

    stamp = Stamp("m@1", "e", "0", datetime(2024, 1, 1, tzinfo=UTC), tmp_path)
    task = Task(Source(str(tmp_path / "none.jsonl"), "jsonl"), treatment, stamp, tmp_path)
    with RayPool(2, task) as pool:
        found = {one.unit.number: one for one in work_through(pool, map(Deadly, range(5)))}
    assert sorted(found) == list(range(5))
    assert [number for number, one in found.items() if one.account is None] == [2]
    assert "Ray worker was lost" in (found[2].reason or "")


def workers_of(pid: int) -> list[int]:
    """The worker processes of a run."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [child for child in map(int, children) if is_worker(child)]


def is_worker(pid: int) -> bool:
    try:
        return b"capedit.pipeline.processes" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_a_worker_that_dies_is_replaced(tmp_path: Path, treatment: Treatment) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 120)
    calm = fix(open_dataset(path), tmp_path / "a" / "out.jsonl", treatment=treatment, workers=0)
    killed = 0

    def kill_some(_: object) -> None:
        nonlocal killed
        if killed < 3 and (found := workers_of(os.getpid())):
            os.kill(found[0], signal.SIGKILL)
            killed += 1

    run = fix(open_dataset(path), tmp_path / "b" / "out.jsonl", treatment=treatment, workers=2, report=kill_some)
    assert killed == 3
    assert not run.manifest.set_aside
    assert results(run) == results(calm)


def test_a_shard_that_kills_its_workers_is_set_aside(
    tmp_path: Path, treatment: Treatment, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 60)
    real = Workbench.do

    def deadly(bench: Workbench, unit: Unit) -> Account:
        if unit.number == 1:
            raise MemoryError("too much for me")
        return real(bench, unit)

    monkeypatch.setattr(Workbench, "do", deadly)
    run = fix(open_dataset(path), tmp_path / "out.jsonl", treatment=treatment, workers=0)
    assert run.manifest.set_aside == {"1": "MemoryError: too much for me"}
    failed = [row for row in run.log if row.status is Status.FAILED]
    assert {row.reason for row in failed} == {"shard set aside: MemoryError: too much for me"}
    assert len(failed) == 16
    assert len(run.log) == 60
    assert [one.reference for one in open_dataset(tmp_path / "out.jsonl")] == [row.caption for row in run.log]


def test_shards_that_are_done_are_skipped(
    tmp_path: Path, treatment: Treatment, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 80)
    done: list[int] = []
    moments: list[Progress] = []
    real = Workbench.do

    def run(stop_after: int) -> list[int]:
        done.clear()

        def counted(bench: Workbench, unit: Unit) -> Account:
            if len(done) == stop_after:
                raise KeyboardInterrupt
            done.append(unit.number)
            return real(bench, unit)

        monkeypatch.setattr(Workbench, "do", counted)
        fix(open_dataset(path), tmp_path / "out.jsonl", treatment=treatment, workers=0, report=moments.append)
        return done.copy()

    with pytest.raises(KeyboardInterrupt):
        run(stop_after=2)
    first = done.copy()
    moments.clear()
    *shards, _ = run(stop_after=100)  # the last unit is the file of the output
    assert not set(first) & set(shards)
    assert sorted(first + shards) == list(range(5))
    editing = [now for now in moments if now.stage is Stage.EDITING]
    assert editing[0].captions == 32
    assert editing[-1].captions == 80


def test_control_c_stops_cleanly(tmp_path: Path, model_options: list[str]) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 600)
    last = block_last_image(path)
    out = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "capedit", "fix", str(path), "--out", str(out), "--workers", "2", *model_options]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    parts = wait_for_parts(run, out, 2)
    workers = workers_of(run.pid)
    assert len(workers) == 2
    run.send_signal(signal.SIGINT)
    _, told = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130
    assert "give the same command again" in told
    assert "Traceback" not in told
    assert not any(is_worker(worker) for worker in workers)
    assert not out.exists()
    assert len(list(parts.glob("*.parquet"))) == 2
    last.unlink()
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 3, finished.stderr  # an image is gone
    assert len(list(open_dataset(out))) == 600


def test_workers_of_a_killed_run_go(tmp_path: Path, model_options: list[str]) -> None:
    """They hold its error stream: it ends only when the last of them has gone."""
    path = write_world(tmp_path, "captions.jsonl", None, 600)
    block_last_image(path)
    out = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "capedit", "fix", str(path), "--out", str(out), "--workers", "2", *model_options]
    run = subprocess.Popen(command, stderr=subprocess.PIPE)
    wait_for_parts(run, out, 2)
    run.send_signal(signal.SIGKILL)
    run.communicate(timeout=PATIENCE)


PATIENCE = 300
"""Seconds that a busy machine may take for what an idle one does in two."""


def block_last_image(path: Path) -> Path:
    """Have whoever reads the image of the last caption wait for ever: the run cannot be over before it is stopped."""
    *_, last = open_dataset(path)
    assert isinstance(last.image, ImageFile)
    last.image.path.unlink()
    os.mkfifo(last.image.path)
    return last.image.path


def wait_for_parts(run: subprocess.Popen[Any], out: Path, count: int) -> Path:
    """Until so many shards are done; gives the folder that they are in."""
    parts = edits_folder(out) / "work" / "parts"
    deadline = time.monotonic() + PATIENCE
    while not parts.exists() or len(list(parts.glob("*.parquet"))) < count:
        assert run.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return parts
