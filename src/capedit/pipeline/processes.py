"""The local engine: worker processes, each with an editor of its own.

Workers are programs of their own (`python -m capedit.pipeline.processes`), not copies of this process: nothing of the
caller's threads, files or memory comes along, and the caller's script need not expect to be imported. They talk over a
socket; when it closes, for whatever reason, they go.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from capedit.pipeline.engine import Answer, attempt
from capedit.pipeline.workbench import Task, Unit, Workbench


class ProcessPool:
    """So many worker processes; one that dies is replaced, and its unit answered for."""

    def __init__(self, size: int, task: Task) -> None:
        self._size, self._task = size, task
        self._idle: deque[_Worker] = deque()
        self._busy: dict[Connection, _Worker] = {}

    @property
    def size(self) -> int:
        return self._size

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an error, Ctrl-C included, nobody waits for what is under way: a shard is whole or not there.
        for worker in [*self._idle, *self._busy.values()]:
            worker.end(at_once=kind is not None or worker in self._busy.values())

    def submit(self, unit: Unit) -> None:
        worker = self._idle.popleft() if self._idle else _Worker(self._task)
        self._busy[worker.connection] = worker
        worker.give(unit)

    def wait(self) -> Answer:
        connection = wait(list(self._busy))[0]
        assert isinstance(connection, Connection)
        worker = self._busy.pop(connection)
        answer = worker.answer()
        if worker.alive:
            self._idle.append(worker)
        return answer


class _Worker:
    """A worker process, seen from outside."""

    def __init__(self, task: Task) -> None:
        ours, theirs = socket.socketpair()
        # Alone in its group: Ctrl-C is for the run, which then ends its workers.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "capedit.pipeline.processes", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            process_group=0,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        theirs.close()
        self.connection = Connection(ours.detach())
        self.alive = True
        self._unit: Unit | None = None
        self._send(task)

    def give(self, unit: Unit) -> None:
        self._unit = unit
        self._send(unit)

    def answer(self) -> Answer:
        assert self._unit is not None
        try:
            answer = self.connection.recv()
            assert isinstance(answer, Answer)
            return answer
        except (EOFError, OSError):
            code = self.end(at_once=True)
            how = f"by signal {-code}" if code < 0 else f"with code {code}"
            return Answer(self._unit, error=f"the worker process ended {how}")

    def end(self, *, at_once: bool) -> int:
        self.alive = False
        code = self._process.poll()
        if code is None and at_once:
            self._process.kill()
        self.connection.close()
        try:
            return self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _send(self, message: Any) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # it has died; `answer` will find out
            self.connection.send(message)


def main(descriptor: int) -> None:
    """The life of a worker process."""
    connection = Connection(descriptor)
    inbox: deque[Any] = deque()
    arrived = threading.Semaphore(0)

    def listen() -> None:
        # Apart from the work, so that a worker whose run was killed goes at once and not after its shard.
        while True:
            try:
                inbox.append(connection.recv())
            except (EOFError, OSError):
                os._exit(1)
            arrived.release()

    threading.Thread(target=listen, daemon=True).start()
    arrived.acquire()
    bench = Workbench(inbox.popleft())
    while True:
        arrived.acquire()
        connection.send(attempt(bench, inbox.popleft()))


if __name__ == "__main__":
    main(int(sys.argv[1]))
