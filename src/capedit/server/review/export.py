"""What a review comes to: the dataset as people have decided, or their decisions as training data."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from capedit.data import DataError, Dataset, Instance, Written, write_dataset
from capedit.pipeline import EditRow, Status
from capedit.server.review.decisions import Decision, Standing
from capedit.server.review.review import Item, Review
from capedit.server.review.units import units_of


class Undecided(StrEnum):
    """What becomes of captions, and of single operations, that nobody has decided on."""

    OUTPUT = "output"
    """As in the output of the run: what it changed stays changed, what it held stays as it was."""
    ORIGINAL = "original"
    """As before the run."""
    REFINED = "refined"
    """As the editor would have it."""
    DROP = "drop"
    """Such captions are left out."""


def export_captions(
    review: Review, path: Path, format: str | None = None, undecided: Undecided = Undecided.OUTPUT
) -> Written:
    """Write the dataset with the captions as decided."""
    dataset = review.dataset()
    return write_dataset(_decided_captions(review, dataset, undecided), path, format, template=dataset)


def export_pairs(review: Review, path: Path, format: str | None = None) -> Written:
    """Write what people have decided as instances to train on: the caption as it was, and as it should be.

    A caption whose edit was rejected teaches to leave it alone. What is open, skipped or flagged teaches nothing.
    """
    return write_dataset(_pairs(review, review.dataset()), path, format)


def _decided_captions(review: Review, dataset: Dataset, undecided: Undecided) -> Iterator[Instance]:
    for instance, row in logged(dataset, review):
        decision = review.book.current(row.row)[1]
        if undecided is Undecided.DROP and not decision.standing.is_decided:
            continue
        caption = Item(row, units_of(row.operations), decision).caption(undecided=_default(undecided, row))
        yield instance.revised(reference=caption)


def _default(undecided: Undecided, row: EditRow) -> bool:
    """Whether operations count as accepted that nobody has decided on."""
    return undecided is Undecided.REFINED or (undecided is Undecided.OUTPUT and row.status is Status.CHANGED)


def _pairs(review: Review, dataset: Dataset) -> Iterator[Instance]:
    for instance, row in logged(dataset, review):
        decision = review.book.current(row.row)[1]
        if teaches(decision):
            yield Instance(
                id=instance.id,
                reference=row.original,
                target=Item(row, units_of(row.operations), decision).caption(),
                image_id=instance.image_id,
                image=instance.image,
                extra={"decision": decision.standing.value},
            )


def teaches(decision: Decision) -> bool:
    """Whether a decision is one to learn from."""
    standing = decision.standing
    empty = standing is Standing.RETYPED and not (decision.text or "").strip()
    return standing.is_decided and not decision.flagged and not empty


def logged(dataset: Dataset, review: Review) -> Iterator[tuple[Instance, EditRow]]:
    """Each caption of the dataset with its row of the log."""
    rows = iter(review.log)
    for instance in dataset:
        row = next(rows, None)
        place = None if instance.origin is None else (instance.origin.index, instance.id)
        if row is None or place != (row.index, row.id):
            raise DataError(f"{dataset.path}: has changed since the run; its captions are no longer those of the log")
        yield instance, row
    if next(rows, None) is not None:
        raise DataError(f"{dataset.path}: has fewer captions than the log")
