"""Where a model looks when it judges a word.

A model with a grounding says it itself: how near a word lies to each part of the image. Any other is asked by hiding
parts of the image, one after another: a place matters if the word's chances to be kept fall without it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capedit.editing.editor import ROOM, Editor, read_caption
from capedit.models.decoding import frame
from capedit.models.runtime import Seen, Text
from capedit.vision import VisualTokens

REACH = 0.2
"""How far from a region's centre others are hidden with it, as a share of the image: neighbours tell of each other."""
CONTRAST = 0.3
"""How far above its mean over the image the support of a word must rise to be as clear as it gets. Words that can be
seen in one place rise so far; those like "a" or "of", and those that the image does not show, hardly rise at all."""
_BATCH = 32


@dataclass(frozen=True, eq=False)
class Gaze:
    """For each word of a caption, how much each region of the image speaks for it."""

    words: list[str]
    boxes: NDArray[np.float32]
    """(R, 4): left, top, right and bottom of the regions, as shares of the image."""
    weights: NDArray[np.float32]
    """(words, R), from 0 (nothing to be seen of it) to 1."""


def gaze(editor: Editor, image: VisualTokens, caption: str, seen: Seen | None = None) -> Gaze:
    """Where the model looks for each word of a caption; `seen` saves looking at the image again."""
    words = read_caption(caption, editor.modules.max_words - ROOM)
    text = frame([words], editor.modules.vocabulary)
    support = editor.modules.support(text, editor.see([image]) if seen is None else seen)
    if support is None:
        weights = _without_each_region(editor, image, text)[:, 1 : len(words) + 1].T
    else:  # (1, T, V): sentinels around the words, the whole image before the regions
        regions = support[0, 1 : len(words) + 1, 1 : len(image)]
        weights = np.clip((regions - regions.mean(1, keepdims=True)) / CONTRAST, 0, 1)
    return Gaze(words, image.boxes[1:, :4], weights.astype(np.float32))


def _without_each_region(editor: Editor, image: VisualTokens, text: Text) -> NDArray[np.float32]:
    """(R, T): how much of each word's odds of being kept hangs on a region, from 0 to 1.

    About as much work as editing a batch of as many captions as there are regions.
    """
    shown = [image, *_with_holes(image)]
    logits = np.concatenate(
        [_delete_logits(editor, shown[start : start + _BATCH], text) for start in range(0, len(shown), _BATCH)]
    )  # (1 + R, T), of DELETE over KEEP
    lost: NDArray[np.float32] = 1 - np.exp(-np.maximum(logits[1:] - logits[0], 0))
    return lost


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
