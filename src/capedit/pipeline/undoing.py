"""Undo a run: wholly, or the captions with certain ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from capedit.pipeline.errors import RunError
from capedit.pipeline.manifest import State
from capedit.pipeline.output import changed_files, final_captions, new_captions
from capedit.pipeline.run import Rewritten, Run, disclaim, remake
from capedit.pipeline.settings import Source


def undo(out: str | Path, ids: Sequence[str] | None = None) -> Rewritten:
    """Have the output say again what the dataset said before the run, byte for byte.

    Changed in place, the dataset gets its very files back. Captions that somebody has changed since are left alone and
    told of as conflicts. What was undone stays on record: the log, and every decision.
    """
    run = Run(out)
    with run.alone() as state:
        if state is State.UNDONE:
            raise RunError(f"{out}: this run was undone before")
        if state not in (State.DONE, State.UNDOING):
            raise RunError(f"{out}: the run is not finished ({state}); finish it by the same command first")
        if ids is None:
            return _undo_all(run)
        if state is State.UNDOING:
            raise RunError(f"{out}: an undo of the whole run was cut short; finish it first (capedit undo)")
        return run.change(_originals(run, ids), by="undo")


def _undo_all(run: Run) -> Rewritten:
    decided = run.decided
    changed = new_captions(run.log, decided)
    has_files = run.manifest.rewritten and (run.manifest.state is State.UNDOING or not run.touched())
    if has_files and (original := run.original()) is not None:
        run.journal.check()
        _note(run, State.UNDOING)
        # Also files that only a decision has changed, or changed back.
        _restore(run, original, list(dict.fromkeys([*changed_files(run.log, {}), *changed_files(run.log, decided)])))
        result = Rewritten(sum(1 for _ in changed))
    else:
        result = run.change({new.row: new.original for new in changed}, by="undo")
    if not result.conflicts:
        _note(run, State.UNDONE)
    return result


def _restore(run: Run, original: Source, names: Sequence[str]) -> None:
    """Have files be what they were: the very files from the journal, or the same made once more from the input."""
    if run.manifest.in_place:
        disclaim(run, names)
        run.journal.restore()
        run.journal.remove()
    else:
        remake(run, original, names, None)


def _note(run: Run, state: State) -> None:
    run.manifest.state = state
    run.manifest.save(run.folder)


def _originals(run: Run, ids: Sequence[str]) -> dict[int, str]:
    """The originals of captions with these ids, as far as anything was decided on them."""
    wanted = pa.array([str(one) for one in ids], pa.string())
    rows: set[int] = set()
    found: set[str] = set()
    for batch in run.log.batches(["row", "id"]):
        hits = batch.filter(pc.is_in(batch.column("id"), wanted))
        rows.update(hits.column("row").to_pylist())
        found.update(hits.column("id").to_pylist())
    if unknown := [str(one) for one in ids if str(one) not in found]:
        raise RunError(f"{run.out}: no caption with id {', '.join(map(repr, unknown[:5]))}")
    # Those decided before are told again: that decision may have been cut short before it was carried out.
    return {new.row: new.original for new in final_captions(run.log, run.decided) if new.row in rows}
