"""What a review comes to: the dataset as people have decided, or their decisions as training data."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path, PurePosixPath

from capedit.data import DataError, Instance, Written, write_dataset
from capedit.pipeline import EditRow, Status
from capedit.pipeline.run import Rewritten
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
    """Write the dataset with the captions as decided, in any format."""
    if undecided is Undecided.DROP:
        decided = (
            instance.revised(reference=_caption(row, decision))
            for instance, row, decision in _logged(review)
            if decision.standing.is_decided
        )
        return write_dataset(decided, path, format, template=review.run.open_output())
    captions = {
        row.row: _caption(row, decision, undecided)
        for row, decision in _decisions(review)
        # What is in the output need not be said again.
        if undecided is not Undecided.OUTPUT or _says_something(decision)
    }
    return review.run.export(path, captions, format)


def export_pairs(review: Review, path: Path, format: str | None = None) -> Written:
    """Write what people have decided as instances to train on: the caption as it was, and as it should be.

    A caption whose edit was rejected teaches to leave it alone. What is open, skipped or flagged teaches nothing.
    """
    pairs = (
        Instance(
            id=instance.id,
            reference=row.original,
            target=_caption(row, decision),
            image_id=_image_id(instance),
            image=instance.image,
            extra={"decision": decision.standing.value},
        )
        for instance, row, decision in _logged(review)
        if teaches(decision)
    )
    return write_dataset(pairs, path, format)


def apply_decisions(review: Review) -> Rewritten:
    """Have the output itself say what people have decided; decisions that were undone since are taken back there."""
    said = review.run.decided
    changed: dict[int, str] = {}
    for row, decision in _decisions(review):
        caption = _caption(row, decision, Undecided.OUTPUT) if _says_something(decision) else row.caption
        if caption != said.get(row.row, row.caption):
            changed[row.row] = caption
    return review.run.rewrite(changed)


def teaches(decision: Decision) -> bool:
    """Whether a decision is one to learn from."""
    empty = decision.standing is Standing.RETYPED and not (decision.text or "").strip()
    return decision.standing.is_decided and not decision.flagged and not empty


def _image_id(instance: Instance) -> str | int | None:
    """By which `capedit train` finds the image in a feature store: the dataset's own, or the file's name."""
    if instance.image_id is not None or instance.image is None or instance.image.name is None:
        return instance.image_id
    return PurePosixPath(instance.image.name).stem


def _says_something(decision: Decision) -> bool:
    """Whether a decision bears on the caption; a flag or a skip does not."""
    return decision.standing.is_decided or decision.standing is Standing.PARTIAL


def _caption(row: EditRow, decision: Decision, undecided: Undecided = Undecided.ORIGINAL) -> str:
    """The caption that a decision leaves."""
    yes = undecided is Undecided.REFINED or (undecided is Undecided.OUTPUT and row.status is Status.CHANGED)
    return Item(row, units_of(row.operations), decision).caption(undecided=yes)


def _decisions(review: Review) -> Iterator[tuple[EditRow, Decision]]:
    return ((row, review.book.current(row.row)[1]) for row in review.log)


def _logged(review: Review) -> Iterator[tuple[Instance, EditRow, Decision]]:
    """Each caption of the output with its row of the log and what was decided on it."""
    dataset = review.run.open_output()
    decisions = _decisions(review)
    for instance in dataset:
        row, decision = next(decisions, (None, None))
        if row is None or decision is None or instance.id != row.id:
            break
        yield instance, row, decision
    else:
        if next(decisions, None) is None:
            return
    raise DataError(f"{dataset.path}: its captions are no longer those of the log; somebody has added or removed some")
