"""Runs to review: a dataset, its pictures, and the log of an imagined editor."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from capedit.data import open_dataset
from capedit.editing import EditOperation
from capedit.edits import Op, gold_script, realise
from capedit.edits.tokens import tokenize
from capedit.pipeline import EditRow, Status, edits_folder
from capedit.pipeline.log import LogWriter, to_table
from capedit.pipeline.manifest import Manifest, State, fingerprint
from capedit.pipeline.run import note_output
from capedit.pipeline.settings import Source, Treatment
from tests.server.conftest import picture

EDITS = [
    ("A dog lies on a sofa.", "a cat lies on a sofa", 0.95),
    ("Two men ride horses.", "a woman rides a brown horse", 0.40),
    ("A plate of food.", "a plate of food", 0.99),
    ("A dog runs in the snow.", "a cat runs in the snow", 0.93),
    ("The dog, a big one, sleeps.", "the cat sleeps", 0.55),
    ("a man with a red hat", "a man with a blue hat", 0.80),
]


def edit_row(row: int, original: str, target: str, confidence: float, held_below: float = 0.5) -> EditRow:
    """What an editor would log that is as sure of every operation as `confidence` says."""
    words = tokenize(original)
    script = gold_script(words, tokenize(target))
    operations = tuple(
        EditOperation(operation.op, operation.token, confidence, 0 if operation.op is Op.DELETE else 1)
        for operation in script
    )
    changed = script.changes
    status = Status.KEPT if not changed else Status.HELD if confidence < held_below else Status.CHANGED
    return EditRow(
        row=row,
        file="raw.jsonl",
        index=row,
        place=f"line {row + 1}",
        id=row,
        image_id=str(row),
        image_path=f"{row}.png",
        image_offset=None,
        image_size=None,
        original=original,
        refined=realise(original, script),
        operations=operations,
        confidence=confidence,
        fits=None,
        steps=sum(operation.op is not Op.KEEP for operation in script),
        rounds=1 if changed else 0,
        status=status,
        reason=None,
        model="imagined@0001",
        encoder="none",
        version="0.0.0",
        time=datetime(2024, 1, 1, tzinfo=UTC),
    )


def _line(row: EditRow, caption: str) -> str:
    record = {"id": row.id, "image": row.image_path, "caption": caption, "licence": row.row % 3}
    return json.dumps(record) + "\n"


def write_run(
    folder: Path, proposals: Sequence[tuple[str, str, float]] = tuple(EDITS), *, pictures: bool = True
) -> Path:
    """A finished run; gives its output, beside which the log stands."""
    out = folder / "fixed.jsonl"
    known = {edit: edit_row(0, *edit) for edit in set(proposals)}
    rows = [
        replace(known[edit], row=row, index=row, id=row, place=f"line {row + 1}", image_path=f"{row}.png")
        for row, edit in enumerate(proposals)
    ]
    source = folder / "raw.jsonl"
    source.write_text("".join(_line(row, row.original) for row in rows))
    out.write_text("".join(_line(row, row.caption) for row in rows))
    if pictures:
        for row in rows:
            (folder / f"{row.row}.png").write_bytes(picture(row.row, (96, 64)))
    edits = edits_folder(out)
    with LogWriter(edits / "log") as log:
        log.write(to_table(rows))
    Manifest(
        source=Source.of(open_dataset(source)),
        treatment=Treatment(),
        in_place=False,
        output_format="jsonl",
        rewritten=True,
        model="imagined@0001",
        encoder="none",
        version="0.0.0",
        time=rows[0].time.isoformat(),
        input=fingerprint(open_dataset(source)),
        state=State.DONE,
    ).save(edits)
    note_output(edits, out)
    return out
