"""Engines: how the units of a run are shared out. What they compute is no business of theirs."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from capedit.pipeline.errors import FatalError
from capedit.pipeline.workbench import Account, Task, Unit, Workbench

ATTEMPTS = 3
"""How often a unit is tried before it is set aside."""


class EngineName(StrEnum):
    LOCAL = "local"
    """Processes on this machine."""
    RAY = "ray"
    """Actors of a Ray cluster: that of RAY_ADDRESS, else one made on this machine."""


@dataclass(frozen=True)
class Outcome:
    """A unit that is done, or was set aside for a reason."""

    unit: Unit
    account: Account | None
    reason: str | None = None


@dataclass(frozen=True)
class Answer:
    """What a worker has to say of a unit: an account, or what went wrong."""

    unit: Unit
    account: Account | None = None
    error: str | None = None
    fatal: bool = False
    """No other unit will fare better."""


class Pool(Protocol):
    """Workers that take one unit each."""

    @property
    def size(self) -> int:
        """How many units can be under way."""

    def submit(self, unit: Unit) -> None:
        """Give a unit to a worker that has none."""

    def wait(self) -> Answer:
        """The answer of some worker, as soon as there is one."""


def work_through(pool: Pool, units: Iterable[Unit]) -> Iterator[Outcome]:
    """Have all units done, in no certain order; a new one is begun only when a worker is free."""
    fresh = iter(units)
    again: deque[Unit] = deque()
    failures: dict[int, int] = {}
    under_way = 0
    while True:
        while under_way < pool.size and (unit := next(fresh, None) or (again.popleft() if again else None)) is not None:
            pool.submit(unit)
            under_way += 1
        if not under_way:
            return
        answer = pool.wait()
        under_way -= 1
        if answer.account is not None:
            yield Outcome(answer.unit, answer.account)
            continue
        if answer.fatal:
            raise FatalError(answer.error or "a worker gave up")
        failures[answer.unit.number] = failures.get(answer.unit.number, 0) + 1
        if failures[answer.unit.number] < ATTEMPTS:
            again.append(answer.unit)
        else:
            yield Outcome(answer.unit, None, answer.error)


def open_pool(engine: EngineName, workers: int | None, task: Task) -> AbstractContextManager[Pool]:
    """The workers of an engine; by default one a core, and 0 for none but this process."""
    count = (os.cpu_count() or 1) if workers is None else workers
    if engine is EngineName.RAY:
        from capedit.pipeline.ray_pool import RayPool

        return RayPool(max(count, 1), task)
    if count == 0:
        return InlinePool(task)
    from capedit.pipeline.processes import ProcessPool

    return ProcessPool(count, task)


def attempt(bench: Workbench, unit: Unit) -> Answer:
    """Do a unit, and tell what came of it."""
    try:
        return Answer(unit, bench.do(unit))
    except FatalError as error:
        return Answer(unit, error=str(error), fatal=True)
    except Exception as error:  # noqa: BLE001 - a shard may fail in any way; the run goes on without it
        return Answer(unit, error=f"{type(error).__name__}: {error}")


class InlinePool:
    """No workers at all: small datasets are done before a second process has started."""

    size = 1

    def __init__(self, task: Task) -> None:
        self._bench = Workbench(task)
        self._unit: Unit | None = None

    def __enter__(self) -> InlinePool:
        return self

    def __exit__(self, *_: object) -> None:
        self._unit = None

    def submit(self, unit: Unit) -> None:
        self._unit = unit

    def wait(self) -> Answer:
        assert self._unit is not None
        return attempt(self._bench, self._unit)
