"""The Ray engine: the same workers as actors of a cluster. All machines must reach the dataset and the output."""

from __future__ import annotations

import logging
import os
from collections import deque
from typing import Any

from capedit.errors import MissingExtraError
from capedit.pipeline.engine import Answer, attempt
from capedit.pipeline.workbench import Task, Unit, Workbench

os.environ.setdefault("RAY_raylet_start_wait_time_s", "180")  # a machine that is at work starts it slowly
os.environ.setdefault("RAY_worker_niceness", "0")  # 15 by default: beside anything else that works, next to nothing

try:
    import ray
    from ray.exceptions import RayError
except ImportError as error:
    raise MissingExtraError("the Ray engine", "ray", error) from error


class RayWorker:
    """An actor: one process, one core, one editor."""

    def __init__(self, task: Task) -> None:
        self._bench = Workbench(task)

    def do(self, unit: Unit) -> Answer:
        return attempt(self._bench, unit)


class RayPool:
    """So many actors; one that is lost with its machine is replaced, and its unit answered for."""

    def __init__(self, size: int, task: Task) -> None:
        self._size, self._task = size, task
        self._idle: deque[Any] = deque()
        self._busy: dict[Any, tuple[Any, Unit]] = {}
        self._own_cluster = False

    @property
    def size(self) -> int:
        return self._size

    def __enter__(self) -> RayPool:
        if not ray.is_initialized():
            address = os.environ.get("RAY_ADDRESS")
            # A cluster of this machine's own is told how many cores it has; another one knows.
            local: dict[str, Any] = {} if address else {"num_cpus": self._size, "include_dashboard": False}
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **local)
            self._own_cluster = True
        # Shipped once: the task names folders, not their contents, but may list many protected words.
        self._shared = ray.put(self._task)
        self._kind: Any = ray.remote(num_cpus=1, max_restarts=0)(RayWorker)
        return self

    def __exit__(self, *_: object) -> None:
        for actor in [*self._idle, *(actor for actor, _ in self._busy.values())]:
            ray.kill(actor)
        if self._own_cluster:
            ray.shutdown()

    def submit(self, unit: Unit) -> None:
        actor = self._idle.popleft() if self._idle else self._kind.remote(self._shared)
        self._busy[actor.do.remote(unit)] = (actor, unit)

    def wait(self) -> Answer:
        ready, _ = ray.wait(list(self._busy), num_returns=1)
        actor, unit = self._busy.pop(ready[0])
        try:
            answer = ray.get(ready[0])
        except RayError as error:
            ray.kill(actor)
            first_line = (str(error).strip().splitlines() or [""])[0]
            return Answer(unit, error=f"the Ray worker was lost ({type(error).__name__}: {first_line})")
        self._idle.append(actor)
        assert isinstance(answer, Answer)
        return answer
