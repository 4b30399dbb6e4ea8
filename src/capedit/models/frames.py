"""Captions as the modules read them: word ids between sentinels, side by side in rows of one length."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from capedit.models.draft import Draft
from capedit.models.runtime import Ints, Text
from capedit.models.vocabulary import END, MASK, PAD, START, Vocabulary


class Frame(NamedTuple):
    """A draft between its sentinels."""

    ids: list[int]
    fallen: list[bool]
    """Words that stand no more, and are there only to be remembered."""
    places: list[int]
    """What is asked about: the start and the words that stand, behind which a word may come; or the masks."""

    @classmethod
    def of(cls, draft: Draft, vocabulary: Vocabulary, *, recall: bool) -> "Frame":
        """With `recall`, words of the source that fell stay where they stood."""
        words = [(word, stands) for word, stands in draft.after(draft.rounds) if stands or recall]
        fallen = [False, *(not stands for _, stands in words), False]
        ids = [START, *vocabulary.encode(word.text for word, _ in words), END]
        return cls(ids, fallen, [at for at, fell in enumerate(fallen[:-1]) if not fell])

    def masked(self, behind: Collection[int]) -> "Frame":
        """With a mask behind each of these `places`; places are counted."""
        chosen = {self.places[number] for number in behind}
        ids, fallen, masks = list[int](), list[bool](), list[int]()
        for at, (word, fell) in enumerate(zip(self.ids, self.fallen, strict=True)):
            ids.append(word)
            fallen.append(fell)
            if at in chosen:
                masks.append(len(ids))
                ids.append(MASK)
                fallen.append(False)
        return Frame(ids, fallen, masks)


def frame(captions: Sequence[Sequence[str]], vocabulary: Vocabulary) -> Text:
    """Word ids between sentinels, padded to the longest."""
    return pad_rows([[START, *vocabulary.encode(caption), END] for caption in captions])


def lay_out(frames: Sequence[Frame]) -> Text:
    """Frames side by side."""
    fallen = _padded([row.fallen for row in frames], 0) != 0
    return pad_rows([row.ids for row in frames])._replace(fallen=fallen)


def pad_rows(rows: Sequence[Sequence[int]]) -> Text:
    """Rows of ids side by side, padded to the longest; nothing in them fell."""
    ids = _padded(rows, PAD)
    return Text(ids, ids != PAD, np.zeros(ids.shape, bool))


def _padded(rows: Sequence[Sequence[int]], filler: int) -> Ints:
    padded: Ints = np.full((len(rows), max(map(len, rows))), filler, np.int64)
    for row, values in zip(padded, rows, strict=True):
        row[: len(values)] = values
    return padded
