"""A crash campaign: runs killed with SIGKILL at random moments, resumed, and compared with one that was left alone.

Also run at length by `benchmarks/pipeline_crash.py`. Each attempt is a process of its own, forked from this one before
anything has been loaded that cannot be forked; its workers are processes of theirs. A moment is a number of seconds, or
the n-th time that the run opens, renames, links or removes a file: those are where order matters, and they come at the
same point on a busy machine.
"""

import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from capedit.data import open_dataset
from capedit.pipeline import EditLog, Treatment, edits_folder, fix, undo
from capedit.pipeline import plan as planning
from tests.pipeline.trees import tree


@dataclass(frozen=True)
class Scenario:
    """A run to be disturbed."""

    name: str
    dataset: str
    """Within the folder that is copied for each trial."""
    format: str | None
    out: str | None
    """None: in place."""
    workers: int


@dataclass
class Trial:
    """What became of one disturbed run."""

    kills: int = 0
    """Attempts that were killed before they had finished."""
    finished_early: int = 0


def attempt(root: Path, scenario: Scenario, treatment: Treatment) -> None:
    """The run itself; what the child process does."""
    dataset = open_dataset(root / scenario.dataset, scenario.format)
    if scenario.out is None:
        fix(dataset, in_place=True, treatment=treatment, workers=scenario.workers)
    else:
        fix(dataset, root / scenario.out, treatment=treatment, workers=scenario.workers)


EVENTS = frozenset({"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate"})


def in_child(action: Callable[[], None], last_event: int | None = None, tally: Path | None = None) -> int:
    """Start an action in a process of its own, which dies at its `last_event`; gives the number of the process."""
    child = os.fork()
    if child:
        return child
    code = 1
    count = 0

    def count_event(event: str, _: object) -> None:
        nonlocal count
        if event in EVENTS:
            count += 1
            if count == last_event:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        os.environ["SOURCE_DATE_EPOCH"] = "1700000000"
        sys.addaudithook(count_event)
        action()
        if tally is not None:
            tally.write_text(str(count))
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


def run_alone(action: Callable[[], None], tally: Path | None = None) -> float:
    """Let an action run to its end; gives the seconds."""
    started = time.perf_counter()
    _, status = os.waitpid(in_child(action, tally=tally), 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return time.perf_counter() - started


def killed_at_event(action: Callable[[], None], number: int) -> bool:
    """Have an action die at its n-th event; False if it had fewer."""
    _, status = os.waitpid(in_child(action, number), 0)
    return _was_killed(status)


def killed_at_time(action: Callable[[], None], seconds: float) -> bool:
    """Kill an action after so many seconds; False if it had finished."""
    child = in_child(action)
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return _was_killed(status)
        time.sleep(0.002)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    return _was_killed(os.waitpid(child, 0)[1])


def _was_killed(status: int) -> bool:
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL), "the run failed"
    return code != 0


def outcome(root: Path, scenario: Scenario) -> dict[str, str]:
    """All that must be the same: output, log, and no litter."""
    out = root / (scenario.out or scenario.dataset)
    found = {f"out/{name}": digest for name, digest in tree(out).items()}
    found |= {f"log/{name}": digest for name, digest in tree(edits_folder(out) / "log").items()}
    ours = edits_folder(out)
    litter = sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.name.startswith(".") and ours not in path.parents
    )
    work = [entry.name for entry in ours.iterdir() if entry.name not in ("journal", "problems.jsonl")]
    return found | {"litter": repr(litter), "work": repr(sorted(work))}


def campaign(
    world: Path, scenario: Scenario, treatment: Treatment, folder: Path, trials: int, seed: int, *, by_time: float = 0.0
) -> Iterator[Trial]:
    """Disturb a run so many times, a share of them `by_time`; raises where the end is not that of a calm run."""
    chance = Random(seed)
    root = folder / "root"  # always the same name: the log has paths in it
    _refresh(world, root)
    before = tree(root / scenario.dataset)

    def run() -> None:
        attempt(root, scenario, treatment)

    seconds = run_alone(run, folder / "events")
    events = int((folder / "events").read_text())
    expected = outcome(root, scenario)
    count = len(list(open_dataset(world / scenario.dataset, scenario.format)))
    for number in range(trials):
        _refresh(world, root)
        trial = Trial()
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            if chance.random() < by_time:
                killed = killed_at_time(run, chance.uniform(0, 1.1 * seconds))
            else:
                killed = killed_at_event(run, chance.randint(1, events * 9 // 10))
            trial.kills += killed
            trial.finished_early += not killed
        run_alone(run)
        found = outcome(root, scenario)
        different = {name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)}
        assert not different, f"{scenario.name}, trial {number}: {[(name, found.get(name)) for name in different]}"
        log = EditLog(root / (scenario.out or scenario.dataset))
        assert len(log) == len({(row.file, row.index) for row in log}) == count
        if scenario.out is None:
            assert tree(root / scenario.dataset) != before
            undo(root / scenario.dataset)
            assert tree(root / scenario.dataset) == before
        yield trial
    shutil.rmtree(root)


def _refresh(world: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(world, folder)


def small_shards() -> None:
    """Many shards in a small dataset, so that there is much to interrupt."""
    planning.SHARD_CAPTIONS = 16
