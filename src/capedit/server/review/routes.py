"""The routes of the review app."""

from datetime import UTC, datetime

import numpy as np
from fastapi import APIRouter, Response
from fastapi.responses import FileResponse
from numpy.typing import NDArray

from capedit import __version__
from capedit.data import FORMATS
from capedit.server.problems import describe
from capedit.server.refusal import Refusal
from capedit.server.review import schemas as wire
from capedit.server.review.book import STANDINGS
from capedit.server.review.decisions import Author, Decision
from capedit.server.review.export import Undecided, export_captions, export_pairs
from capedit.server.review.pictures import shown
from capedit.server.review.presence import Presence
from capedit.server.review.query import matching
from capedit.server.review.review import Item, Review
from capedit.server.review.units import Unit

_REFUSALS = (400, 401, 403, 404, 413, 421, 422)
_KINDS = 60
_SAMPLES = 8
_TOLD = 50
"""States that are told one by one; after a larger change the page asks anew."""


def review_routes(review: Review, reviewer: str) -> APIRouter:
    """The API of one review. Routes are plain functions: they wait for disks, in threads of their own."""
    router = APIRouter(prefix="/api/v1/review", tags=["review"], responses=describe(*_REFUSALS))
    index, book = review.index, review.book
    presence = Presence()
    exports: dict[str, str] = {}
    is_proposal = index.is_proposal

    def state(item: Item) -> wire.StateOut:
        number, decision, event = book.current(item.row.row)
        told = decision.to_json()
        told["units"] = told["units"] or "?" * len(item.units)
        return wire.StateOut(
            row=item.row.row,
            change=number,
            decision=wire.DecisionModel(**told),
            standing=decision.standing.value,
            by=event.author.name if event is not None else None,
            time=event.time if event is not None else None,
            caption=item.caption(undecided=True),
        )

    def news(author: Author, since: int) -> wire.NewsOut:
        with book.lock:
            touched = sorted(book.affected_since(since))
            stale = len(touched) > _TOLD or since > book.sequence
            undo, redo = book.depths(author.id)
            decided = [at for at, standing in enumerate(STANDINGS) if standing.is_decided]
            return wire.NewsOut(
                sequence=book.sequence,
                states=[] if stale else [state(review.item(row)) for row in touched],
                stale=stale,
                counts=book.counts(),
                proposals_decided=int((np.isin(book.standing, decided) & is_proposal).sum()),
                pace=round(book.pace(author.id), 1),
                team_pace=round(book.pace(), 1),
                undo=undo,
                redo=redo,
                present=[wire.PresentOut(name=one.author.name, row=one.row) for one in presence.others(author.id)],
            )

    @router.get("", summary="What is being reviewed", response_model=wire.ReviewOut)
    def about() -> wire.ReviewOut:
        return wire.ReviewOut(
            name=review.run.out.name,
            total=len(review.log),
            proposals=int(is_proposal.sum()),
            model=review.run.manifest.model,
            format=review.run.manifest.output_format,
            formats=sorted(FORMATS),
            version=__version__,
            journal=str(review.journal),
            reviewer=reviewer,
        )

    @router.post("/query", summary="Find captions", response_model=wire.QueryOut)
    def query(wanted: wire.QueryIn) -> wire.QueryOut:
        rows = matching(wanted.query(), index, book)
        among = np.zeros(len(index), bool)
        among[rows] = True
        kinds = index.kinds(among[index.unit_row], _KINDS)
        return wire.QueryOut(
            rows=rows.tolist(), kinds=[wire.KindOut(deleted=k.deleted, added=k.added, count=k.count) for k in kinds]
        )

    @router.post("/rows", summary="Lines of the list", response_model=list[wire.RowOut])
    def list_rows(wanted: wire.RowsIn) -> list[wire.RowOut]:
        lines = []
        for row in wanted.rows:
            if row >= len(index):
                raise Refusal(404, f"there are {len(index)} captions, numbered from 0")
            _, decision, _ = book.current(row)
            sure = float(index.confidence[row])
            lines.append(
                wire.RowOut(
                    row=row,
                    caption=review.caption(row),
                    confidence=None if np.isnan(sure) else round(sure, 4),
                    standing=decision.standing.value,
                    flagged=decision.flagged,
                )
            )
        return lines

    @router.get("/items/{row}", summary="One caption", response_model=wire.ItemOut)
    def one(row: int) -> wire.ItemOut:
        item = review.item(row)
        logged = item.row
        return wire.ItemOut(
            row=row,
            id=logged.id,
            place=f"{logged.file}, {logged.place}" if logged.file else logged.place,
            image=f"/api/v1/review/items/{row}/image",
            original=logged.original,
            refined=item.refined,
            operations=[wire.OperationOut(**operation.to_json()) for operation in logged.operations],
            units=[_told(unit) for unit in item.units],
            confidence=logged.confidence,
            fits=logged.fits,
            status=logged.status.value,
            reason=logged.reason,
            model=logged.model,
            state=state(item),
        )

    @router.get(
        "/items/{row}/image",
        summary="Its image",
        response_class=Response,
        responses={200: {"content": {"image/*": {}}}},
    )
    def image(row: int) -> Response:
        data, media_type = shown(review.run, review.item(row).row)
        return Response(data, media_type=media_type, headers={"Cache-Control": "private, max-age=3600"})

    @router.post("/decide", summary="Decide", response_model=wire.NewsOut, responses=describe(409))
    def decide(wanted: wire.DecideIn) -> wire.NewsOut:
        """Saved when the answer comes. 409 means that another has decided on the caption since `base`."""
        review.item(wanted.row)
        author = wanted.author.author()
        before = book.sequence
        book.decide(author, wanted.row, wanted.base, review.checked(wanted.row, wanted.decision.decision()))
        return news(author, before)

    @router.post("/undo", summary="Undo", response_model=wire.TurnOut)
    def undo(wanted: wire.TurnIn) -> wire.TurnOut:
        """Take back the author's latest change, a bulk change as a whole. Nobody else's work is touched."""
        return turn(wanted.author.author(), back=True)

    @router.post("/redo", summary="Redo", response_model=wire.TurnOut)
    def redo(wanted: wire.TurnIn) -> wire.TurnOut:
        return turn(wanted.author.author(), back=False)

    def turn(author: Author, *, back: bool) -> wire.TurnOut:
        before = book.sequence
        event = book.undo(author) if back else book.redo(author)
        touched = book.change(event.change).event if event is not None else None
        rows = list(touched.items) if touched is not None else []
        label = touched.label if touched is not None else ""
        return wire.TurnOut(rows=rows[:1], count=len(rows), label=label, told=news(author, before))

    @router.post("/bulk", summary="Decide on many at once", response_model=wire.BulkOut)
    def bulk(wanted: wire.BulkIn) -> wire.BulkOut:
        """One verdict for all edits of a kind; with `preview` it only tells what would happen."""
        if not wanted.any_edit and wanted.deleted is None and wanted.added is None:
            raise Refusal(422, "deleted: say what is deleted or added, or any_edit", field="deleted")
        among = np.zeros(len(index), bool)
        among[matching(wanted.query.query(), index, book)] = True
        units = np.ones(len(index.deleted), bool)
        if not wanted.any_edit:
            units = index.units_named(wanted.deleted, wanted.added)
        units &= among[index.unit_row]
        # What nobody put a number on is above no number.
        units &= (index.probability >= wanted.min_probability - 1e-6) | (wanted.min_probability == 0)
        author = wanted.author.author()
        with book.lock:
            before = book.sequence
            made = review.bulk(units, wanted.verdict == "accept")
            if made.decisions and not wanted.preview:
                book.decide_many(author, _label(wanted), made.decisions)
        shown_rows = list(made.decisions)[:_SAMPLES] if wanted.preview else []
        return wire.BulkOut(
            items=len(made.decisions),
            units=made.units,
            decided_before=int(units.sum()) - made.units,
            samples=[sample(row, made.decisions[row], units) for row in shown_rows],
            told=None if wanted.preview else news(author, before),
        )

    def sample(row: int, decision: Decision, units: NDArray[np.bool_]) -> wire.SampleOut:
        item = review.item(row)
        least = float(index.probability[units & (index.unit_row == row)].min())
        return wire.SampleOut(
            row=row,
            original=item.row.original,
            caption=Item(item.row, item.units, decision).caption(undecided=False),
            probability=None if np.isnan(least) else round(least, 4),
        )

    @router.post("/news", summary="What others did", response_model=wire.NewsOut)
    def tell(wanted: wire.NewsIn) -> wire.NewsOut:
        author = wanted.author.author()
        presence.note(author, wanted.row)
        return news(author, wanted.since)

    @router.post("/export", summary="Write what was decided", response_model=wire.ExportOut)
    def export(wanted: wire.ExportIn) -> wire.ExportOut:
        """Into the folder beside the log, under a name of the server's choosing."""
        format = FORMATS.get(wanted.format)
        if format is None:
            raise Refusal(422, f"format: known are {', '.join(sorted(FORMATS))}", field="format")
        folder = review.journal.parent / "exports"
        folder.mkdir(exist_ok=True)
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")[:-3]
        path = folder / f"{wanted.what}-{stamp}{format.suffixes[0] if format.suffixes else ''}"
        if wanted.what == "pairs":
            written = export_pairs(review, path, wanted.format)
        else:
            written = export_captions(review, path, wanted.format, Undecided(wanted.undecided))
        download = None
        if path.is_file():
            exports[path.name] = str(path)
            download = f"/api/v1/review/exports/{path.name}"
        return wire.ExportOut(
            path=str(path),
            count=written.count,
            problems=[str(problem) for problem in written.problems],
            download=download,
        )

    @router.get("/exports/{name}", summary="A file that was written", response_class=Response)
    def exported(name: str) -> FileResponse:
        # Only what this server has written, looked up by name: never a path of the caller's.
        if name not in exports:
            raise Refusal(404, "no such export")
        return FileResponse(exports[name], media_type="application/octet-stream", filename=name)

    return router


def _told(unit: Unit) -> wire.UnitOut:
    return wire.UnitOut(
        operations=list(unit.operations),
        name=unit.name,
        deleted=unit.deleted,
        added=unit.added,
        probability=unit.probability,
    )


def _label(wanted: wire.BulkIn) -> str:
    kind = "all edits" if wanted.any_edit else Unit((), wanted.deleted, wanted.added, None).name
    above = f" above {wanted.min_probability:g}" if wanted.min_probability else ""
    return f"{wanted.verdict} {kind}{above}"
