"""A crash campaign: runs killed with SIGKILL at many moments, resumed, and compared with one that was left alone.

Also run at length by `benchmarks/pipeline_crash.py`. Each attempt is a process of its own, forked from this one before
anything has been loaded that cannot be forked; its workers are processes of theirs. A moment is a number of seconds, or
the n-th time that the run makes, renames, links or removes a file: those are where order matters, and they come at the
same point on a busy machine.
"""

import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random

import pyarrow as pa

from capedit.data import open_dataset
from capedit.pipeline import EditLog, Treatment, edits_folder, fix, undo
from capedit.pipeline import plan as planning
from capedit.pipeline.manifest import State
from capedit.pipeline.run import Run
from tests.pipeline.trees import tree

Action = Callable[[], None]


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


@dataclass(frozen=True)
class Moment:
    """When to kill: at the n-th change to the files of the run, or after so many seconds."""

    change: int | None = None
    seconds: float = 0.0


@dataclass
class Trial:
    """What became of one disturbed run."""

    kills: int = 0
    """Attempts that were killed before they had finished."""
    finished_early: int = 0

    def count(self, *, killed: bool) -> None:
        self.kills += killed
        self.finished_early += not killed


class Campaign:
    """One scenario, to be disturbed again and again in a folder of its own."""

    def __init__(self, world: Path, scenario: Scenario, treatment: Treatment, folder: Path) -> None:
        self.world, self.scenario, self.treatment = world, scenario, treatment
        self.root = folder / "root"  # always the same name: the log has paths in it
        pa.array([0])  # pyarrow's first array loads pandas where it is installed; not anew in each child
        self._refresh()
        self.before = tree(self.output if scenario.out is None else self.root / scenario.dataset)
        tally = folder / "changes"
        started = time.perf_counter()
        self._run_alone(self.run, tally)
        self.seconds = time.perf_counter() - started
        self.changes = int(tally.read_text())
        self.expected = self._outcome()
        assert self._captions() == [row.caption for row in EditLog(self.output)]
        self._run_alone(self.undo, tally)
        self.undo_changes = int(tally.read_text())
        self.count = len(list(open_dataset(world / scenario.dataset, scenario.format)))

    @property
    def output(self) -> Path:
        return self.root / (self.scenario.out or self.scenario.dataset)

    def run(self) -> None:
        """What is disturbed."""
        dataset = open_dataset(self.root / self.scenario.dataset, self.scenario.format)
        out = None if self.scenario.out is None else self.output
        fix(dataset, out, in_place=out is None, treatment=self.treatment, workers=self.scenario.workers)

    def undo(self) -> None:
        undo(self.output)

    def disturb(self, moments: Iterable[Moment], undoing: Moment) -> Trial:
        """A run that is killed at these moments and then left alone, and undone likewise."""
        self._refresh()
        trial = Trial()
        for moment in moments:
            trial.count(killed=self._killed(self.run, moment))
        self._run_alone(self.run)
        self._compare(self._outcome(), self.expected)
        log = EditLog(self.output)
        assert len(log) == len({(row.file, row.index) for row in log}) == self.count
        killed = self._killed(self.undo, undoing)
        trial.count(killed=killed)
        if killed and Run(self.output).manifest.state is not State.UNDONE:  # else all was done but going home
            self._run_alone(self.undo)
        if self.scenario.out is None:
            self._compare(tree(self.output), self.before)
        assert self._captions() == [row.original for row in log]
        return trial

    def _captions(self) -> list[str]:
        format = self.scenario.format if self.scenario.out is None else None
        return [one.reference for one in open_dataset(self.output, format)]

    def _refresh(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.world, self.root)

    def _outcome(self) -> dict[str, str]:
        """All that must be the same: output, log, and no litter."""
        ours = edits_folder(self.output)
        found = {f"out/{name}": digest for name, digest in tree(self.output).items()}
        found |= {f"log/{name}": digest for name, digest in tree(ours / "log").items()}
        litter = [
            path.relative_to(self.root).as_posix()
            for path in self.root.rglob(".*")
            if path.name != ".capedit" and ours / "journal" / "originals" not in path.parents
        ]
        return found | {"litter": repr(sorted(litter)), "kept": repr(sorted(entry.name for entry in ours.iterdir()))}

    def _compare(self, found: dict[str, str], expected: dict[str, str]) -> None:
        different = {name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)}
        told = [(name, found.get(name), expected.get(name)) for name in sorted(different)]
        assert not different, f"{self.scenario.name}: {told[:5]} in {self.root}"

    def _run_alone(self, action: Action, tally: Path | None = None) -> None:
        """Let an action run to its end; `tally` is told the number of its changes."""
        _, status = os.waitpid(in_child(action, self.root, tally=tally), 0)
        assert os.waitstatus_to_exitcode(status) == 0, f"{self.scenario.name}: failed in {self.root}"

    def _killed(self, action: Action, moment: Moment) -> bool:
        """Have an action killed; False if it had finished before."""
        child = in_child(action, self.root, moment.change)
        if moment.change is None:
            time.sleep(moment.seconds)
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        assert code in (0, -signal.SIGKILL), f"{self.scenario.name}: failed in {self.root}"
        return code != 0


CHANGES = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate"})


def in_child(action: Action, root: Path, last: int | None = None, tally: Path | None = None) -> int:
    """Start an action in a process of its own, which dies before its `last` change; gives the number of the process."""
    child = os.fork()
    if child:
        return child
    code = 1
    seen = 0

    def count_change(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if event == "open":
            path, _, flags = arguments
            # Caches of Python's own, elsewhere, come and go with the weather.
            changes = isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR)) and str(path).startswith(home)
        else:
            changes = event in CHANGES and "__pycache__" not in str(arguments[0])
        if changes:
            seen += 1
            if seen == last:
                os.kill(os.getpid(), signal.SIGKILL)

    home = str(root)
    try:
        os.environ["SOURCE_DATE_EPOCH"] = "1700000000"
        sys.addaudithook(count_change)
        action()
        if tally is not None:
            tally.write_text(str(seen))
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


def spread(campaign: Campaign, trials: int) -> Iterator[Trial]:
    """Kills at even distances, from the first change to the last: the same ones each time."""
    for number in range(trials):
        share = (number + 0.5) / trials
        first = Moment(1 + int(share * campaign.changes))
        yield campaign.disturb([first], Moment(1 + int(share * campaign.undo_changes)))


def every(campaign: Campaign, start: int = 1) -> Iterator[Trial]:
    """Killed once before each of its changes."""
    for number in range(start, campaign.changes + 1):
        yield campaign.disturb([Moment(number)], Moment(1 + (number - 1) % campaign.undo_changes))


def at_random(campaign: Campaign, seed: int, start: int = 0) -> Iterator[Trial]:
    """Without end: killed one to three times, half of the moments drawn from its time and half from its changes."""
    for number in count(start):
        chance = Random(f"{seed} {number}")
        times = chance.choice([1, 1, 1, 2, 3])
        moments = [_moment(chance, campaign.changes, campaign.seconds) for _ in range(times)]
        yield campaign.disturb(moments, _moment(chance, campaign.undo_changes, campaign.seconds / 4))


def _moment(chance: Random, changes: int, seconds: float) -> Moment:
    if chance.random() < 0.5:
        return Moment(seconds=chance.uniform(0, seconds))
    return Moment(chance.randint(1, changes))


def small_shards() -> None:
    """Many shards in a small dataset, so that there is much to interrupt."""
    planning.SHARD_CAPTIONS = 16
