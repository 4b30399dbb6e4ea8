"""Where a model looks when it judges a word: hide a part of the image, and see how much less the word is wanted.

This asks the model itself, whatever it is made of, and needs neither gradients nor attention weights: a place matters
if the word's chances to be kept fall without it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capedit.editing.editor import ROOM, Editor, read_caption
from capedit.models.decoding import frame
from capedit.models.runtime import Text
from capedit.vision import VisualTokens

REACH = 0.2
"""How far from a region's centre others are hidden with it, as a share of the image: neighbours tell of each other."""
_BATCH = 32


@dataclass(frozen=True)
class Gaze:
    """For each word of a caption, how much each region of the image speaks for it."""

    words: list[str]
    boxes: NDArray[np.float32]
    """(R, 4): left, top, right and bottom of the regions, as shares of the image."""
    weights: NDArray[np.float32]
    """(words, R): by how much the log-odds of keeping the word fall without the region; 0 where they do not fall."""


def gaze(editor: Editor, image: VisualTokens, caption: str) -> Gaze:
    """Ask a model what it looks at; about as much work as editing a batch of as many captions as there are regions."""
    words = read_caption(caption, editor.modules.max_words - ROOM)
    corners = image.boxes[1:, :4]
    shown = [image, *_with_holes(image)]
    text = frame([words], editor.modules.vocabulary)
    logits = np.concatenate(
        [_delete_logits(editor, shown[start : start + _BATCH], text) for start in range(0, len(shown), _BATCH)]
    )  # (1 + R, T), of DELETE over KEEP
    fall = logits[1:] - logits[0]
    return Gaze(words, corners, np.maximum(fall[:, 1 : len(words) + 1].T, 0).astype(np.float32))


def _delete_logits(editor: Editor, images: list[VisualTokens], text: Text) -> NDArray[np.float32]:
    rows = len(images)
    repeated = Text(np.repeat(text.ids, rows, 0), np.repeat(text.mask, rows, 0))
    return editor.modules.delete(repeated, editor.see(images))[0]


def _with_holes(image: VisualTokens) -> Iterator[VisualTokens]:
    """For each region the image without it and its neighbours; the whole is the mean of what is left."""
    corners = image.boxes[1:, :4]
    centres = (corners[:, :2] + corners[:, 2:]) / 2
    for at, centre in enumerate(centres):
        left = np.abs(centres - centre).max(1) > REACH
        if not left.any():  # a coarse grid: hide the region alone, or nothing if it is the only one
            left = np.arange(len(centres)) != at if len(centres) > 1 else np.ones(1, bool)
        yield VisualTokens.from_regions(image.features[1:][left], corners[left])
