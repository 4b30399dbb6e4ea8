"""Captions in, rows of the edit log out: the work itself, the same wherever and in whatever company it is done.

What a network computes for a caption may differ in the last bits with the captions beside it, so windows are cut by
counting and by nothing else: the items of a shard, in their order, fix every number in the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path

import numpy as np

from capedit.data.formats.jsonvalues import is_utf8
from capedit.editing import CaptionError, Edit, Editor
from capedit.editing.editor import ROOM, read_caption
from capedit.pipeline.errors import FatalError
from capedit.pipeline.guards import Verdict, judge
from capedit.pipeline.items import Item, image_place
from capedit.pipeline.log import EditRow, Status
from capedit.pipeline.settings import Treatment
from capedit.pipeline.visuals import Visuals
from capedit.vision import VisualTokens

WINDOW = 64
"""Captions edited side by side."""
HOPELESS = 8
"""So many captions side by side that all break the editor show that it is the editor that is broken."""
NOT_SELECTED = "not selected"


@dataclass(frozen=True)
class Stamp:
    """What every row says of its run."""

    model: str
    encoder: str
    version: str
    time: datetime
    home: Path
    """The folder that paths of images start from."""

    def row(self, item: Item, verdict: Verdict, edit: Edit | None = None) -> EditRow:
        path, offset, size = image_place(item.image, self.home)
        refined = edit.caption if edit is not None else item.text if verdict.status is Status.KEPT else None
        return EditRow(
            row=item.row,
            file=item.file,
            index=item.index,
            place=item.place,
            id=item.id,
            image_id=item.image_id,
            image_path=path,
            image_offset=offset,
            image_size=size,
            original=item.text,
            refined=None if refined is not None and not is_utf8(refined) else refined,
            operations=() if edit is None else tuple(edit.operations),
            confidence=None if edit is None else edit.confidence,
            fits=None if edit is None else edit.fits,
            steps=0 if edit is None else edit.steps,
            rounds=0 if edit is None else edit.rounds,
            status=verdict.status,
            reason=verdict.reason,
            model=self.model,
            encoder=self.encoder,
            version=self.version,
            time=self.time,
        )


class Refiner:
    """Edits items, one window after the other."""

    def __init__(self, editor: Editor, visuals: Visuals, treatment: Treatment, stamp: Stamp) -> None:
        self._editor, self._visuals, self._stamp = editor, visuals, stamp
        self._treatment, self._knobs = treatment, treatment.chosen_knobs()

    def rows(self, items: Iterable[Item]) -> Iterator[EditRow]:
        self._visuals.forget()
        stream = iter(items)
        while window := list(islice(stream, WINDOW)):
            yield from self._window(window)

    def _window(self, window: Sequence[Item]) -> Iterator[EditRow]:
        verdicts = [self._obstacle(item) for item in window]
        open_rows = [at for at, verdict in enumerate(verdicts) if verdict is None]
        pairs: list[tuple[VisualTokens, str]] = []
        for at, tokens in zip(open_rows, self._visuals.of([window[at] for at in open_rows]), strict=True):
            if isinstance(tokens, str):
                verdicts[at] = Verdict(Status.FAILED, f"image: {tokens}")
            else:
                pairs.append((tokens, window[at].text))
        edits = iter(self._edit(pairs))
        for item, verdict in zip(window, verdicts, strict=True):
            if verdict is not None:
                yield self._stamp.row(item, verdict)
                continue
            edit = next(edits)
            if isinstance(edit, str):
                yield self._stamp.row(item, Verdict(Status.FAILED, edit))
            else:
                yield self._stamp.row(item, judge(edit, self._treatment), edit)

    def _obstacle(self, item: Item) -> Verdict | None:
        """What keeps a caption from being edited."""
        if not item.selected:
            return Verdict(Status.KEPT, NOT_SELECTED)
        if not is_utf8(item.text):
            return Verdict(Status.FAILED, "the caption has half a character, which UTF-8 cannot hold")
        try:
            read_caption(item.text, self._editor.modules.max_words - ROOM)
        except CaptionError as error:
            return Verdict(Status.FAILED, str(error))
        return None

    def _edit(self, pairs: Sequence[tuple[VisualTokens, str]]) -> list[Edit | str]:
        """Edits, or reasons why there are none; a caption that breaks the editor does not take its neighbours along."""
        if not pairs:
            return []
        try:
            return [*self._edit_together(pairs)]
        except Exception as error:
            if len(pairs) == 1:
                return [f"editor: {type(error).__name__}: {error}"]
            alone = [self._edit([pair])[0] for pair in pairs]
            if len(pairs) >= HOPELESS and all(isinstance(edit, str) for edit in alone):
                raise FatalError(f"the editor fails on every caption ({alone[0]})") from error
            return alone

    def _edit_together(self, pairs: Sequence[tuple[VisualTokens, str]]) -> list[Edit]:
        images = {id(tokens): tokens for tokens, _ in pairs}
        places = {key: place for place, key in enumerate(images)}
        seen = self._editor.see(list(images.values()))
        rows = seen.rows(np.array([places[id(tokens)] for tokens, _ in pairs], np.int64))
        edits = self._editor.edit_seen(rows, [text for _, text in pairs], **self._knobs)
        for edit in edits:
            _ = edit.caption, edit.operations  # made here, where an error is caught
        return edits
