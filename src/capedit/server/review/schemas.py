"""What the review page and its server tell each other."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from capedit.server.review.decisions import Author, Decision
from capedit.server.review.query import About, Progress, Query, Sort
from capedit.server.schemas import Probability, Strict

TEXT_CHARS = 10_000
ROWS = 200
"""Captions that are listed at once."""


class AuthorIn(Strict):
    """The browser that asks, and the name its user goes by."""

    id: Annotated[str, StringConstraints(pattern=r"^[\w-]{8,64}$")]
    name: Annotated[str, StringConstraints(min_length=1, max_length=80, strip_whitespace=True)]

    def author(self) -> Author:
        return Author(self.id, self.name)


class QueryIn(Strict):
    """Which captions, in which order."""

    search: Annotated[str, StringConstraints(max_length=500)] = ""
    about: About = About.PROPOSALS
    progress: Progress = Progress.ALL
    min_confidence: Probability = 0.0
    max_confidence: Probability = 1.0
    min_words: int = Field(default=0, ge=0, le=100_000)
    max_words: int | None = Field(default=None, ge=0, le=100_000)
    sort: Sort = Sort.DOUBTFUL

    def query(self) -> Query:
        return Query(**self.model_dump())


class QueryOut(BaseModel):
    rows: list[int] = Field(description="Numbers of the captions, in order.")
    kinds: list["KindOut"] = Field(description="The most frequent edits among them.")


class KindOut(BaseModel):
    deleted: str | None
    added: str | None
    count: int


class RowsIn(Strict):
    rows: list[Annotated[int, Field(ge=0)]] = Field(max_length=ROWS)


class RowOut(BaseModel):
    """A line of the list."""

    row: int
    caption: str = Field(description="As it is decided, or else as the editor would have it.")
    confidence: float | None
    standing: str
    flagged: bool


class UnitOut(BaseModel):
    operations: list[int]
    name: str
    deleted: str | None
    added: str | None
    probability: float | None


class OperationOut(BaseModel):
    op: Literal["KEEP", "DELETE", "ADD"]
    token: str
    probability: float | None
    round: int


class DecisionModel(Strict):
    """`units` has a sign for each: + accepted, - rejected, ? not decided."""

    units: Annotated[str, StringConstraints(pattern=r"^[-+?]*$", max_length=2_000)] = ""
    text: Annotated[str, StringConstraints(max_length=TEXT_CHARS)] | None = None
    settled: bool = False
    skipped: bool = False
    flagged: bool = False
    note: Annotated[str, StringConstraints(max_length=1_000)] = ""

    def decision(self) -> Decision:
        return Decision.from_json(self.model_dump())


class StateOut(BaseModel):
    """What has been decided about a caption, by whom, and what that makes of it."""

    row: int
    change: int = Field(description="To be sent as `base` with the next decision.")
    decision: DecisionModel
    standing: str
    by: str | None
    time: datetime | None
    caption: str


class ItemOut(BaseModel):
    """A caption with its edit."""

    row: int
    id: str | int
    place: str
    image: str | None
    original: str
    refined: str
    operations: list[OperationOut]
    units: list[UnitOut]
    confidence: float | None
    fits: float | None
    status: str
    reason: str | None
    model: str
    state: StateOut


class DecideIn(Strict):
    author: AuthorIn
    row: int = Field(ge=0)
    base: int = Field(ge=0, description="The change that was current when the author decided; 0 for none.")
    decision: DecisionModel


class TurnIn(Strict):
    author: AuthorIn


class TurnOut(BaseModel):
    rows: list[int] = Field(description="The captions that it touched; of a bulk change the first.")
    count: int
    label: str
    told: "NewsOut"


class BulkIn(Strict):
    """All units of one kind above a probability, among the captions of a query."""

    author: AuthorIn
    query: QueryIn = QueryIn()
    deleted: Annotated[str, StringConstraints(max_length=200)] | None = None
    added: Annotated[str, StringConstraints(max_length=200)] | None = None
    any_edit: bool = Field(default=False, description="Take units of every kind.")
    min_probability: Probability = 0.0
    verdict: Literal["accept", "reject"]
    preview: bool = True


class SampleOut(BaseModel):
    row: int
    original: str
    caption: str
    probability: float | None


class BulkOut(BaseModel):
    items: int
    units: int
    decided_before: int = Field(description="Units that people have decided on: they stay as they are.")
    samples: list[SampleOut]
    told: "NewsOut | None" = None


class NewsIn(Strict):
    author: AuthorIn
    since: int = Field(ge=0)
    row: int | None = Field(default=None, ge=0, description="Where the author is now.")


class PresentOut(BaseModel):
    name: str
    row: int | None


class NewsOut(BaseModel):
    """What has happened since the page last asked."""

    sequence: int
    states: list[StateOut]
    stale: bool = Field(description="Too much has changed to be told: ask for everything anew.")
    counts: dict[str, int]
    proposals_decided: int
    pace: float
    team_pace: float
    undo: int
    redo: int
    present: list[PresentOut]


class ReviewOut(BaseModel):
    """What is being reviewed."""

    name: str
    total: int
    proposals: int
    model: str
    format: str
    formats: list[str]
    version: str
    journal: str
    reviewer: str = Field(description="The name that is offered to whoever opens the page; empty if it should ask.")


class ExportIn(Strict):
    what: Literal["captions", "pairs"] = "captions"
    format: Annotated[str, StringConstraints(max_length=40)]
    undecided: Literal["output", "original", "refined", "drop"] = "output"


class ExportOut(BaseModel):
    path: str
    count: int
    problems: list[str]
    download: str | None = Field(description="Where to get it, if it is a single file.")


for _model in (QueryOut, TurnOut, BulkOut):
    _model.model_rebuild()
