"""What a worker process has at hand, and what it is given to do."""

from __future__ import annotations

import resource
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

from capedit.editing import Editor
from capedit.errors import CapeditError
from capedit.pipeline.errors import FatalError
from capedit.pipeline.log import Status
from capedit.pipeline.reading import FileReader
from capedit.pipeline.refine import Refiner, Stamp
from capedit.pipeline.selection import Selection
from capedit.pipeline.settings import Source, Treatment
from capedit.pipeline.visuals import Visuals, open_store


@dataclass(frozen=True)
class Task:
    """All that the units of a run have in common."""

    source: Source
    treatment: Treatment
    stamp: Stamp
    work: Path
    """Where the run keeps what it has not finished; every worker must reach it."""

    @property
    def parts(self) -> Path:
        return self.work / "parts"


@dataclass(frozen=True)
class Account:
    """What a unit of work came to."""

    captions: int = 0
    images: int = 0
    """Encoded."""
    statuses: Counter[Status] = field(default_factory=Counter)
    cpu: float = 0.0
    """Seconds of a processor, without those that it took to get the tools."""
    memory: int = 0
    """Most bytes that the worker has held so far."""


class Unit(Protocol):
    """A piece of work that can be done anywhere, again and again, with the same result."""

    @property
    def number(self) -> int: ...

    def is_done(self, task: Task) -> bool:
        """Whether its result is there already."""

    def run(self, bench: Workbench) -> Account: ...


class Workbench:
    """One worker's tools. They are costly to get, so they are got when first needed and kept."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._getting_tools = 0.0

    def do(self, unit: Unit) -> Account:
        encoded, started = self._encoded, time.process_time() - self._getting_tools
        account = unit.run(self)
        cpu = time.process_time() - self._getting_tools - started
        return replace(account, images=self._encoded - encoded, cpu=cpu, memory=peak_memory())

    @property
    def _encoded(self) -> int:
        return self.visuals.encoded if "visuals" in self.__dict__ else 0

    @cached_property
    def editor(self) -> Editor:
        started = time.process_time()
        try:
            return self.task.treatment.load_editor()
        except CapeditError as error:
            raise FatalError(str(error)) from error
        finally:
            self._getting_tools += time.process_time() - started

    @cached_property
    def visuals(self) -> Visuals:
        try:
            return Visuals(self.editor.encoder, open_store(self.task.treatment.features, self.editor.encoder))
        except CapeditError as error:
            raise FatalError(str(error)) from error

    @cached_property
    def refiner(self) -> Refiner:
        return Refiner(self.editor, self.visuals, self.task.treatment, self.task.stamp)

    @cached_property
    def reader(self) -> FileReader:
        return FileReader(self.task.source.open(), Selection.parse(self.task.treatment.only))


def peak_memory() -> int:
    """Most bytes that this process has held. The system's own figure counts its parent's, too, hence the first way."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
