"""What a model costs on this machine, measured shortly before any of it is spent.

In CPU seconds of the process, not by the clock: a budget then buys the same on a busy machine as on an idle one.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from capedit.training.config import TrainConfig
from capedit.training.distributed import Workers
from capedit.training.loop import make_optimizer, train_step
from capedit.training.task import Task

LEAST_STEPS = 3
SHARE = 0.01
"""Of the budget, spent on measuring what it buys."""


@dataclass(frozen=True)
class Rates:
    """CPU seconds, each."""

    setup: float
    """Until the first step."""
    step: float
    caption: float
    """Editing one, in a batch. Measured before training: some systems write longer captions then."""


@dataclass
class Stopwatch:
    """CPU seconds of this process so far, all threads together."""

    started: float
    seconds: float = 0.0

    def read(self) -> float:
        return time.process_time() - self.started


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Runs while the block lasts; afterwards `seconds` says how long."""
    watch = Stopwatch(time.process_time())
    try:
        yield watch
    finally:
        watch.seconds = watch.read()


def measure_step(task: Task, train: TrainConfig, seconds: float, workers: Workers) -> float:
    """CPU seconds of a step, over a share of a budget of so many. The model is spoiled by it."""
    optimizer = make_optimizer(task, train)
    train_step(task, train, optimizer, 0, workers)  # the first one allocates
    steps = 0
    with stopwatch() as spent:
        while workers.agree(steps < LEAST_STEPS or spent.read() < SHARE * seconds):
            steps += 1
            train_step(task, train, optimizer, steps % train.steps, workers)
    return spent.seconds / steps


def measure_captions(edit: Callable[[], int]) -> float:
    """CPU seconds of a caption; `edit` says how many it has edited."""
    with stopwatch() as spent:
        count = edit()
    return spent.seconds / count
