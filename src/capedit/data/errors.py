"""What can be wrong with a dataset, said with file, place and field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from capedit.errors import CapeditError


class DataError(CapeditError):
    """A dataset, or (in strict mode) one of its records, cannot be used; the message says where."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One bad record. `place` is "line 12", "record 3" or "key 000017"; empty for the file as a whole."""

    file: Path
    place: str
    field: str | None
    reason: str

    def __str__(self) -> str:
        parts = [str(self.file), self.place, f"field {self.field!r}" if self.field else ""]
        return f"{', '.join(part for part in parts if part)}: {self.reason}"


class Problems:
    """The bad records of one pass: every one is counted, the first `KEPT` are kept in full.

    A shard in which everything is broken must not fill the memory with complaints.
    """

    KEPT = 1000

    def __init__(self) -> None:
        self.kept: list[Problem] = []
        self.by_reason: Counter[str] = Counter()

    def add(self, problem: Problem) -> None:
        if len(self.kept) < self.KEPT:
            self.kept.append(problem)
        self.by_reason[problem.reason if len(self.by_reason) < self.KEPT else "other"] += 1

    def clear(self) -> None:
        self.kept.clear()
        self.by_reason.clear()

    def __len__(self) -> int:
        return self.by_reason.total()

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.kept)

    def __getitem__(self, index: int) -> Problem:
        return self.kept[index]


class FieldError(ValueError):
    """A record's field is unusable. Formats turn it into a `Problem`; it never leaves this package."""

    def __init__(self, field: str | None, reason: str) -> None:
        super().__init__(reason)
        self.field = field
        self.reason = reason
