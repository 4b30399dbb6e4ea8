"""Captions of a batch, gathered for each of TIger's modules, and in groups that a network reads at once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from capedit.models.decoding import pad_rows
from capedit.models.device import tensor
from capedit.models.runtime import Floats
from capedit.models.tiger import Module
from capedit.models.vilbert import TextInput
from capedit.models.vocabulary import END, MASK, PAD, START, UNKNOWN
from capedit.training.states import IGNORE, Sample
from capedit.training.worth import Opening

GROUP, ROUND_ROWS, ROUND_WIDTH = 64, 16, 4
"""Captions that a network reads at once: about so many, in multiples of these rows and tokens."""


class Rows(NamedTuple):
    """Captions for one module."""

    ids: Tensor  # (R, T)
    labels: Tensor  # (R, T)
    images: Tensor  # (R,) positions in the batch's images
    fits: Tensor  # (R,) whether the caption fits its image: 1, 0, or -1 where nobody says
    worth: Tensor  # (R, T) of deleting the word, or of adding one after it; 0 where nothing was tried
    opening: Tensor  # (R, T) number of the opening that the mask stands for; -1 where there is none

    def by_length(self) -> list["Rows"]:
        """Groups of like length, each no wider than it must be: padding costs as much as words.

        Groups come in few sizes, as torch makes code anew for each size of a product in 16 bits.
        """
        lengths = (self.ids != PAD).sum(1)
        groups = lengths.argsort(stable=True).chunk(max(2, round(len(lengths) / GROUP)))
        return [self._group(group, int(lengths[group].max())) for group in groups if len(group)]

    def _group(self, rows: Tensor, width: int) -> "Rows":
        """These rows, and as many empty ones as make the group's size a round one."""
        ids, labels, images, fits, worth, opening = (part[rows] for part in self)
        right, below = -width % ROUND_WIDTH, -len(rows) % ROUND_ROWS

        def padded(part: Tensor, value: int) -> Tensor:
            return nn.functional.pad(part[:, :width], (0, right, 0, below), value=value)

        ids = padded(ids, PAD)
        ids[len(rows) :, 0] = START  # attention needs something to look at
        return Rows(
            ids,
            padded(labels, IGNORE),
            nn.functional.pad(images, (0, below)),
            nn.functional.pad(fits, (0, below), value=-1),
            padded(worth, 0),
            padded(opening, -1),
        )


class _Row(NamedTuple):
    image: int
    sample: Sample
    fits: int
    worth: Floats | None
    opening: int | None
    """The first of the openings that its masks stand for."""


class Gathered:
    """Rows of a batch while it is put together."""

    def __init__(self, noise: float) -> None:
        self._noise = noise
        self._rows_of: dict[str, list[_Row]] = {module.value: [] for module in Module}
        self.openings: list[Opening] = []

    def add(
        self,
        module: Module,
        image: int,
        sample: Sample,
        rng: np.random.Generator,
        *,
        fits: bool | None = None,
        worth: Floats | None = None,
        openings: Sequence[Opening] = (),
    ) -> None:
        if self._noise:
            hidden = rng.random(len(sample.tokens)) < self._noise
            tokens = [
                UNKNOWN if hide and word > MASK else word for word, hide in zip(sample.tokens, hidden, strict=True)
            ]
            sample = Sample(tokens, sample.labels)
        first = len(self.openings) if openings else None
        self.openings += openings
        self._rows_of[module].append(_Row(image, sample, -1 if fits is None else int(fits), worth, first))

    def rows(self) -> dict[str, Rows]:
        return {module: self._rows(rows) for module, rows in self._rows_of.items()}

    def _rows(self, rows: list[_Row]) -> Rows:
        length = max((len(row.sample.tokens) for row in rows), default=1)
        ids = np.full((len(rows), length), PAD, np.int64)
        labels = np.full((len(rows), length), IGNORE, np.int64)
        worth = np.zeros((len(rows), length), np.float32)
        opening = np.full((len(rows), length), -1, np.int64)
        for at, row in enumerate(rows):
            ids[at, : len(row.sample.tokens)] = row.sample.tokens
            labels[at, : len(row.sample.labels)] = row.sample.labels
            if row.worth is not None:
                worth[at, : len(row.worth)] = row.worth
            if row.opening is not None:
                masks = np.flatnonzero(labels[at] != IGNORE)
                opening[at, masks] = row.opening + np.arange(len(masks))
        images, fits = (torch.tensor([row[at] for row in rows], dtype=torch.long) for at in (0, 2))
        return Rows(tensor(ids), tensor(labels), images, fits, tensor(worth), tensor(opening))


def text_of(captions: Sequence[Sequence[int]]) -> TextInput:
    """Whole captions, with their sentinels, as a network reads them."""
    ids = tensor(pad_rows([[START, *caption, END] for caption in captions]).ids)
    return TextInput(ids, ids != PAD)
