"""Where a review stands: the journal, folded.

Of all changes that touch a caption the latest that is not undone counts. So undoing one's own change never takes away
what another has decided since, and nobody's undo needs anybody's leave.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from capedit.server.refusal import Refusal
from capedit.server.review.decisions import Author, Decision, Standing
from capedit.server.review.journal import Event, JournalWriter, LogMark, now, read_journal

STANDINGS = list(Standing)
NOTHING = Decision()
PACE_MINUTES = 5


@dataclass
class Change:
    """One change of one author, on one caption or many."""

    event: Event
    undone: bool = False


@dataclass
class _History:
    """What one author can undo and redo."""

    undo: list[int] = field(default_factory=list)
    redo: list[int] = field(default_factory=list)


class ReviewBook:
    """All decisions of a review; safe to use from several threads."""

    def __init__(self, rows: int) -> None:
        self.lock = RLock()
        self.standing: NDArray[np.int8] = np.zeros(rows, np.int8)
        """For each caption the place of its standing in `STANDINGS`."""
        self.flagged: NDArray[np.bool_] = np.zeros(rows, bool)
        self._changes: dict[int, Change] = {}
        self._touching: dict[int, list[int]] = {}
        self._histories: dict[str, _History] = {}
        self._affected: list[tuple[int, ...]] = []
        self._writer: JournalWriter | None = None
        self._last = 0

    @classmethod
    def read(cls, path: Path, mark: LogMark) -> "ReviewBook":
        """A review to look at."""
        book = cls(mark.rows)
        for event in read_journal(path, mark):
            book._apply(event)
        return book

    @classmethod
    def open(cls, path: Path, mark: LogMark) -> "ReviewBook":
        """A review to go on with; the journal is this process's until it is closed."""
        writer = JournalWriter(path, mark)
        try:
            book = cls.read(path, mark)
        except BaseException:
            writer.close()
            raise
        book._writer = writer
        return book

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    @property
    def sequence(self) -> int:
        """How many events there were."""
        return len(self._affected)

    def affected_since(self, sequence: int) -> set[int]:
        """The captions that later events touched."""
        return {row for rows in self._affected[max(sequence, 0) :] for row in rows}

    def current(self, row: int) -> tuple[int, Decision, Event | None]:
        """What counts for a caption: the number of the change (0 if there is none), its decision, and who and when."""
        for number in reversed(self._touching.get(row, ())):
            change = self._changes[number]
            if not change.undone:
                return number, change.event.items[row], change.event
        return 0, NOTHING, None

    def decided(self) -> Iterable[int]:
        """The captions that have any decision, in order."""
        return sorted(row for row in self._touching if self.current(row)[0])

    def counts(self) -> dict[str, int]:
        found = np.bincount(self.standing, minlength=len(STANDINGS)).tolist()
        return {standing.value: found[at] for at, standing in enumerate(STANDINGS)} | {
            "flagged": int(self.flagged.sum())
        }

    def decide(self, author: Author, row: int, base: int, decision: Decision) -> Event:
        """Decide on one caption; refused if it has changed since the author saw it."""
        with self.lock:
            current, _, event = self.current(row)
            if current != base:
                by = event.author.name if event is not None else "someone"
                raise Refusal(409, f"{by} has decided on this caption meanwhile", field="base")
            return self._make(Event("change", self._last + 1, author, now(), {row: decision}))

    def decide_many(self, author: Author, label: str, items: Mapping[int, Decision]) -> Event:
        """A bulk change. Hold `lock` from looking to deciding, so that nobody is overruled between the two."""
        with self.lock:
            return self._make(Event("change", self._last + 1, author, now(), dict(items), label))

    def undo(self, author: Author) -> Event | None:
        return self._turn(author, "undo")

    def redo(self, author: Author) -> Event | None:
        return self._turn(author, "redo")

    def depths(self, author_id: str) -> tuple[int, int]:
        """How many changes an author can undo and redo."""
        history = self._histories.get(author_id, _History())
        return len(history.undo), len(history.redo)

    def change(self, number: int) -> Change:
        return self._changes[number]

    def pace(self, author_id: str | None = None) -> float:
        """Captions decided one by one in each of the last minutes, by one author or by all."""
        since = now() - timedelta(minutes=PACE_MINUTES)
        first: datetime | None = None
        rows: set[int] = set()
        for change in reversed(self._changes.values()):
            event = change.event
            if event.time < since:
                break
            if not event.label and not change.undone and author_id in (None, event.author.id):
                rows.update(event.items)
                first = event.time
        if first is None:
            return 0.0
        minutes = max((now() - first).total_seconds() / 60, 0.25)
        return len(rows) / minutes

    def _turn(self, author: Author, kind: "str") -> Event | None:
        with self.lock:
            history = self._histories.get(author.id, _History())
            stack = history.undo if kind == "undo" else history.redo
            if not stack:
                return None
            return self._make(Event("undo" if kind == "undo" else "redo", stack[-1], author, now(), {}))

    def _make(self, event: Event) -> Event:
        if self._writer is None:
            raise Refusal(409, "this review is only being looked at")
        self._writer.append(event)
        self._apply(event)
        return event

    def _apply(self, event: Event) -> None:
        if event.kind == "change":
            rows = {row for row in event.items if 0 <= row < len(self.standing)}
            self._changes[event.change] = Change(event)
            self._last = max(self._last, event.change)
            for row in rows:
                self._touching.setdefault(row, []).append(event.change)
            history = self._histories.setdefault(event.author.id, _History())
            history.undo.append(event.change)
            history.redo.clear()
        else:
            change = self._changes[event.change]
            change.undone = event.kind == "undo"
            rows = set(change.event.items)
            history = self._histories.setdefault(event.author.id, _History())
            source, target = (history.undo, history.redo) if change.undone else (history.redo, history.undo)
            if event.change in source:
                source.remove(event.change)
            target.append(event.change)
        for row in rows:
            _, decision, _ = self.current(row)
            self.standing[row] = STANDINGS.index(decision.standing)
            self.flagged[row] = decision.flagged
        self._affected.append(tuple(rows))
