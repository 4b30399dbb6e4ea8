"""Many callers, one set of networks: they wait in a bounded room, and those who wait together are served together."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from capedit.server.refusal import busy

Job = TypeVar("Job")
Result = TypeVar("Result")
Work = Callable[[Sequence[Job]], Sequence[Result | Exception]]
"""Gives for each job its result, or the exception that its caller is to get."""


class Gate:
    """A room with so many places; who finds none is told to come back."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.taken = 0

    @asynccontextmanager
    async def admit(self, count: int = 1) -> AsyncIterator[None]:
        if self.taken + count > self.places:
            raise busy(f"{self.taken} of {self.places} places are taken; try again in a moment")
        self.taken += count
        try:
            yield
        finally:
            self.taken -= count


class Batcher(Generic[Job, Result]):
    """Hands jobs to `work`, all that have come while it was busy at once.

    Nothing ever waits for company: a lone job starts at once, and under load batches grow by themselves.
    """

    def __init__(self, work: Work[Job, Result], *, most: int, executor: Executor) -> None:
        self._work, self._most, self._executor = work, most, executor
        self._waiting: list[tuple[Job, asyncio.Future[Result]]] = []
        self._runner: asyncio.Task[None] | None = None

    async def submit(self, job: Job) -> Result:
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((job, future))
        if self._runner is None:
            self._runner = asyncio.create_task(self._run())
        return await future

    async def drain(self) -> None:
        """Wait until nothing is under way."""
        while self._runner is not None:
            await asyncio.wait([self._runner])

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                taken, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                wanted = [(job, future) for job, future in taken if not future.done()]  # callers may have left
                if not wanted:
                    continue
                try:
                    results = await loop.run_in_executor(self._executor, self._work, [job for job, _ in wanted])
                except Exception as error:  # noqa: BLE001 (a bug in `work` is the callers' to see, not the loop's)
                    results = [error] * len(wanted)
                for (_, future), result in zip(wanted, results, strict=True):
                    if future.done():
                        continue
                    if isinstance(result, Exception):
                        future.set_exception(result)
                    else:
                        future.set_result(result)
        finally:
            self._runner = None
