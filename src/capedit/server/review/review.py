"""One review: a log, its dataset, and what people have decided."""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from capedit.pipeline import EditRow, Run
from capedit.server.refusal import Refusal
from capedit.server.review.book import ReviewBook
from capedit.server.review.decisions import Decision, Standing
from capedit.server.review.index import LogIndex
from capedit.server.review.journal import LogMark
from capedit.server.review.units import Unit, decided_caption, units_of

JOURNAL = "review.jsonl"


@dataclass(frozen=True)
class Item:
    """One caption under review."""

    row: EditRow
    units: list[Unit]
    decision: Decision

    @property
    def refined(self) -> str:
        return self.row.original if self.row.refined is None else self.row.refined

    def caption(self, *, undecided: bool = False) -> str:
        """What the decision makes of the caption; `undecided` is how operations count that nobody has decided on."""
        if self.decision.text is not None:
            return self.decision.text
        verdicts = self.decision.verdicts or (None,) * len(self.units)
        accepted = [undecided if verdict is None else verdict for verdict in verdicts]
        return decided_caption(self.row.original, self.refined, self.row.operations, self.units, accepted)


class Review:
    """A review of the run that made an output."""

    def __init__(self, out: str | Path, *, read_only: bool = False) -> None:
        self.run = Run(out)
        self.log = self.run.log
        self.journal = self.run.folder / JOURNAL
        mark = LogMark(len(self.log), self.run.manifest.time)
        self.book = (ReviewBook.read if read_only else ReviewBook.open)(self.journal, mark)
        self.index = LogIndex(self.log)
        # Reading one row means reading its group; a page asks for the same few again and again.
        self._row = lru_cache(maxsize=1024)(self.log.__getitem__)

    def close(self) -> None:
        self.book.close()

    def item(self, row: int) -> Item:
        if not 0 <= row < len(self.log):
            raise Refusal(404, f"there are {len(self.log)} captions, numbered from 0")
        logged = self._row(row)
        return Item(logged, units_of(logged.operations), self.book.current(row)[1])

    def caption(self, row: int) -> str:
        """As it is decided, or else as the editor would have it: from the columns where they tell, for long lists."""
        decision = self.book.current(row)[1]
        original, refined = self.index.texts(row)
        match decision.standing:
            case Standing.RETYPED:
                return decision.text or ""
            case Standing.REJECTED:
                return original
            case Standing.MIXED | Standing.PARTIAL:
                return self.item(row).caption(undecided=True)
        return refined

    def checked(self, row: int, decision: Decision) -> Decision:
        """A decision that fits its caption."""
        units = int(self.index.starts[row + 1] - self.index.starts[row])
        if len(decision.verdicts) != units:
            raise Refusal(422, f"units: {len(decision.verdicts)} verdicts for {units} operations", field="units")
        return decision

    def bulk(self, units: NDArray[np.bool_], verdict: bool) -> "Bulk":
        """Give all of these units, as far as nobody has decided on them, this verdict."""
        decisions: dict[int, Decision] = {}
        changed = 0
        for unit in np.flatnonzero(units).tolist():
            row = int(self.index.unit_row[unit])
            decision = decisions.get(row) or self.book.current(row)[1]
            start, stop = int(self.index.starts[row]), int(self.index.starts[row + 1])
            verdicts = decision.verdicts or (None,) * (stop - start)
            at = unit - start
            if decision.text is None and verdicts[at] is None:
                verdicts = (*verdicts[:at], verdict, *verdicts[at + 1 :])
                decisions[row] = replace(decision, verdicts=verdicts, skipped=False)
                changed += 1
        return Bulk(decisions, changed)


@dataclass(frozen=True)
class Bulk:
    """One verdict on many units: the decisions that it makes, and how many units they decide."""

    decisions: dict[int, Decision]
    units: int
