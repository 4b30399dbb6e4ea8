"""Which captions a reviewer wants to see, and in which order.

The search box takes words to be found in either caption, and edits: `-dog` (deleted), `+cat` (added), `dog -> cat`.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from capedit.pipeline import Status
from capedit.server.review.book import STANDINGS, ReviewBook
from capedit.server.review.decisions import Standing
from capedit.server.review.index import LogIndex

_TERM = re.compile(
    r'(?P<deleted>[^\s>]+)\s*->\s*(?P<added>\S+)|(?P<sign>[-+])(?P<word>\S+)|"(?P<phrase>[^"]+)"|(?P<text>\S+)'
)


class About(StrEnum):
    """Which captions, by what the editor made of them."""

    PROPOSALS = "proposals"
    CHANGED = "changed"
    HELD = "held"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    ALL = "all"


class Progress(StrEnum):
    """Which captions, by what people made of them."""

    ALL = "all"
    TODO = "todo"
    DECIDED = "decided"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    MIXED = "mixed"
    RETYPED = "retyped"
    SKIPPED = "skipped"
    FLAGGED = "flagged"


class Sort(StrEnum):
    """Lowest confidence first is where a reviewer's time does most."""

    DOUBTFUL = "doubtful"
    CONFIDENT = "confident"
    DATASET = "dataset"
    CHANGES = "changes"


@dataclass(frozen=True)
class Term:
    """One thing that is searched for."""

    text: str | None = None
    deleted: str | None = None
    added: str | None = None

    @property
    def is_edit(self) -> bool:
        return self.text is None


@dataclass(frozen=True)
class Query:
    """What to show."""

    search: str = ""
    about: About = About.PROPOSALS
    progress: Progress = Progress.ALL
    min_confidence: float = 0.0
    max_confidence: float = 1.0
    min_words: int = 0
    max_words: int | None = None
    sort: Sort = Sort.DOUBTFUL


_DECIDED = [at for at, standing in enumerate(STANDINGS) if standing.is_decided]


def parse_search(search: str) -> list[Term]:
    terms = []
    for match in _TERM.finditer(search):
        if match["deleted"]:
            terms.append(Term(deleted=match["deleted"].lower(), added=match["added"].lower()))
        elif match["sign"]:
            word = match["word"].lower()
            terms.append(Term(deleted=word) if match["sign"] == "-" else Term(added=word))
        else:
            terms.append(Term(text=match["phrase"] or match["text"]))
    return terms


def matching(query: Query, index: LogIndex, book: ReviewBook) -> NDArray[np.int64]:
    """The rows of a query, in its order."""
    found = _about(query.about, index) & _progress(query.progress, book)
    if query.min_confidence > 0 or query.max_confidence < 1:
        # What has no confidence (it failed) is neither above nor below.
        found &= (index.confidence >= query.min_confidence) & (index.confidence <= query.max_confidence)
    if query.min_words:
        found &= index.words >= query.min_words
    if query.max_words is not None:
        found &= index.words <= query.max_words
    for term in parse_search(query.search):
        found &= _matches(term, index)
    return _sorted(np.flatnonzero(found), query.sort, index)


def _matches(term: Term, index: LogIndex) -> NDArray[np.bool_]:
    if term.is_edit:
        return index.rows_with(index.units_with(deleted=term.deleted, added=term.added))
    either = [
        np.asarray(pc.fill_null(pc.match_substring(texts, term.text, ignore_case=True), False), bool)
        for texts in (index.original, index.refined)
    ]
    found: NDArray[np.bool_] = either[0] | either[1]
    return found


def _about(about: About, index: LogIndex) -> NDArray[np.bool_]:
    statuses = list(Status)
    match about:
        case About.ALL:
            return np.ones(len(index), bool)
        case About.PROPOSALS:
            return index.is_proposal
        case About.CHANGED:
            return np.asarray(index.status == statuses.index(Status.CHANGED))
        case About.HELD:
            return np.asarray(index.status == statuses.index(Status.HELD))
        case About.FAILED:
            return np.asarray(index.status == statuses.index(Status.FAILED))
    return np.asarray(index.status == statuses.index(Status.KEPT)) & ~index.is_proposal


def _progress(progress: Progress, book: ReviewBook) -> NDArray[np.bool_]:
    match progress:
        case Progress.ALL:
            return np.ones(len(book.standing), bool)
        case Progress.FLAGGED:
            return book.flagged.copy()
        case Progress.DECIDED:
            return np.isin(book.standing, _DECIDED)
        case Progress.TODO:
            return ~np.isin(book.standing, _DECIDED)
    return np.asarray(book.standing == STANDINGS.index(Standing(progress.value)))


def _sorted(rows: NDArray[np.int64], sort: Sort, index: LogIndex) -> NDArray[np.int64]:
    if sort is Sort.DATASET:
        return rows
    if sort is Sort.CHANGES:
        key = -np.diff(index.starts)[rows].astype(np.float64)
    else:
        sure = index.confidence[rows].astype(np.float64)
        key = np.where(np.isnan(sure), 2.0, sure if sort is Sort.DOUBTFUL else -sure)
    return rows[np.argsort(key, kind="stable")]
