"""How far a run is, how fast it goes, and when it will be done."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from capedit.pipeline.log import Status
from capedit.pipeline.workbench import Account


class Stage(StrEnum):
    READING = "reading"
    EDITING = "editing"
    LOGGING = "logging"
    WRITING = "writing"


@dataclass(frozen=True)
class Progress:
    """A moment of a run."""

    stage: Stage
    captions: int = 0
    """Looked at so far, by earlier runs too."""
    total: int | None = None
    """Captions in all, where that is known."""
    share: float = 0.0
    """Of the stage, from 0 to 1."""
    rate: float = 0.0
    """Captions a second, of this run."""
    remaining: float | None = None
    """Seconds, as far as one can tell."""
    images: int = 0
    """Encoded by this run."""
    set_aside: int = 0
    cpu: float = 0.0
    """Seconds of processors that the workers of this run have spent."""
    memory: int = 0
    """Most bytes that a worker has held."""
    statuses: Counter[Status] = field(default_factory=Counter)


Report = Callable[[Progress], None]


class Meter:
    """Counts what comes in, and tells of it."""

    def __init__(self, report: Report, shards: int, total: int | None, done_shards: int, done_captions: int) -> None:
        self._report, self._total, self._shards = report, total, shards
        self._done, self._captions = done_shards, done_captions
        self._began, self._before, self._before_shards = time.monotonic(), done_captions, done_shards
        self._images = self._set_aside = self._memory = 0
        self._cpu = 0.0
        self._statuses: Counter[Status] = Counter()
        self.tell()

    def add(self, account: Account | None) -> None:
        """Count a shard that was done, or (None) set aside."""
        self._done += 1
        if account is None:
            self._set_aside += 1
        else:
            self._captions += account.captions
            self._images += account.images
            self._cpu += account.cpu
            self._memory = max(self._memory, account.memory)
            self._statuses += account.statuses
        self.tell()

    def tell(self) -> None:
        self._report(self.now())

    def now(self) -> Progress:
        seconds = max(time.monotonic() - self._began, 1e-9)
        if self._total:
            share, gained = self._captions / self._total, (self._captions - self._before) / self._total
        else:
            share = self._done / max(self._shards, 1)
            gained = (self._done - self._before_shards) / max(self._shards, 1)
        return Progress(
            Stage.EDITING,
            self._captions,
            self._total,
            min(share, 1.0),
            (self._captions - self._before) / seconds,
            (1 - share) * seconds / gained if gained > 0 else None,
            self._images,
            self._set_aside,
            self._cpu,
            self._memory,
            self._statuses.copy(),
        )
