"""The journal: every decision, undo and redo ever made, one JSON line each. Lines are only ever added.

| line | says |
|---|---|
| `{"journal": 1, "rows": 1000, "time": "..."}` | first line: which log it belongs to |
| `{"change": 7, "items": {"12": {"units": "+-"}}, ...}` | the captions 12, ... are now decided like this |
| `{"undo": 7, ...}`, `{"redo": 7, ...}` | change 7 counts no more, counts again |

All but the first have `time` and `author` (`id`, `name`); a bulk change has a `label`. A line is on the disk before
anyone is told that it was saved. A line torn by a crash is skipped: nobody was told of it.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal

from capedit.errors import CapeditError
from capedit.server.review.decisions import Author, Decision

try:
    import fcntl
except ImportError:  # not on Windows, where opening twice is up to the user
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
Kind = Literal["change", "undo", "redo"]


class JournalError(CapeditError):
    """A journal that cannot be used."""


@dataclass(frozen=True)
class Event:
    """One line of the journal."""

    kind: Kind
    change: int
    author: Author
    time: datetime
    items: dict[int, Decision]
    """What a change decides; empty for undo and redo."""
    label: str = ""
    """What a bulk change did, in words."""

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            self.kind: self.change,
            "time": self.time.isoformat(timespec="milliseconds"),
            "author": {"id": self.author.id, "name": self.author.name},
        }
        if self.label:
            told["label"] = self.label
        if self.kind == "change":
            told["items"] = {str(row): decision.to_json() for row, decision in self.items.items()}
        return told

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Event":
        kind: Kind = "change" if "change" in data else "undo" if "undo" in data else "redo"
        author = data["author"]
        return cls(
            kind,
            int(data[kind]),
            Author(str(author["id"]), str(author["name"])),
            datetime.fromisoformat(data["time"]),
            {int(row): Decision.from_json(decision) for row, decision in data.get("items", {}).items()},
            str(data.get("label", "")),
        )


@dataclass(frozen=True)
class LogMark:
    """By which a journal knows its log."""

    rows: int
    time: str

    def to_json(self) -> dict[str, Any]:
        return {"journal": FORMAT, "rows": self.rows, "time": self.time}


def read_journal(path: Path, mark: LogMark) -> Iterator[Event]:
    """The events of a journal, in order; none if there is no journal yet."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                data = json.loads(line)
            except ValueError as error:
                if line.endswith(b"}\n"):
                    raise JournalError(f"{path}, line {number}: not JSON ({error})") from error
                continue  # torn: the crash came before anyone was told
            try:
                if "journal" in data:
                    _check_mark(path, data, mark)
                else:
                    yield Event.from_json(data)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                if isinstance(error, JournalError):
                    raise
                raise JournalError(f"{path}, line {number}: {error}") from error


def _check_mark(path: Path, data: dict[str, Any], mark: LogMark) -> None:
    if data != mark.to_json():
        raise JournalError(
            f"{path}: this journal belongs to another run ({data}, expected {mark.to_json()}); "
            "move it away to begin a new review"
        )


class JournalWriter:
    """Adds events to a journal; only one process at a time may hold it."""

    def __init__(self, path: Path, mark: LogMark) -> None:
        self._path = path
        is_new = not path.exists()
        self._file: IO[bytes] = path.open("ab")
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self._file.close()
                raise JournalError(
                    f"{path}: another review of this output is running; open its page instead"
                ) from error
        if is_new or not path.stat().st_size:
            self._put(mark.to_json())
        elif not _ends_whole(path):
            self._file.write(b"\n")  # so that a torn line spoils no other

    def append(self, event: Event) -> None:
        """Returns once the event is on the disk."""
        self._put(event.to_json())

    def close(self) -> None:
        self._file.close()

    def _put(self, data: dict[str, Any]) -> None:
        line = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
        size = self._file.seek(0, os.SEEK_END)
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            os.truncate(self._path, size)
            raise JournalError(f"{self._path}: the decision could not be saved ({error.strerror or error})") from error


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def now() -> datetime:
    return datetime.now(UTC)
