"""What encoders share that squash an image to a square and see it as cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from capedit.vision.image import ImageSource, load_image
from capedit.vision.tokens import VisualTokens

_BATCH = 8  # larger batches were no faster on a CPU and take memory


class SquareEncoder(ABC):
    """An `Encoder` whose regions are the cells of a fixed grid."""

    def __init__(self, *, name: str, hash: str, dim: int, side: int, corners: NDArray[np.float32]) -> None:
        """`side` is that of the square the network sees; `corners` (cells, 4) are the boxes of its cells."""
        self.name, self.hash, self.dim = name, hash, dim
        self._side, self._corners = side, corners

    def encode(self, images: Sequence[ImageSource]) -> list[VisualTokens]:
        return [VisualTokens.from_regions(cells, self._corners) for cells in self.cells(images)]

    def cells(self, images: Sequence[ImageSource]) -> list[NDArray[np.float32]]:
        """The regions of each image alone, (cells, D), in reading order."""
        found: list[NDArray[np.float32]] = []
        for start in range(0, len(images), _BATCH):
            pixels = np.stack([self.prepare(image) for image in images[start : start + _BATCH]])
            found.extend(self._run(pixels))
        return found

    def prepare(self, image: ImageSource) -> NDArray[np.uint8]:
        """The pixels the network sees, (S, S, 3)."""
        square = load_image(image).resize((self._side, self._side), Image.Resampling.BICUBIC, reducing_gap=3.0)
        return np.asarray(square)

    @abstractmethod
    def _run(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """(B, S, S, 3) -> (B, cells, D)."""
