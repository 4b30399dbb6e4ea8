"""Visual tokens: what an editor sees of an image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WHOLE_IMAGE_BOX = (0.0, 0.0, 1.0, 1.0, 1.0)
WITHHELD = "withheld"
"""The id of an image that nobody may see; a store may hold `VisualTokens.blank` under it."""


@dataclass(frozen=True, slots=True, eq=False)
class VisualTokens:
    """Features of the whole image (first) and of its regions, with their places.

    A place is five numbers: x1/w, y1/h, x2/w, y2/h and the share of the image's area.
    """

    features: NDArray[np.float32]  # (N, D)
    boxes: NDArray[np.float32]  # (N, 5)

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or self.features.dtype != np.float32:
            raise ValueError(f"features are {self.features.dtype} {self.features.shape}, expected float32 (N, D)")
        if self.boxes.shape != (len(self.features), 5) or self.boxes.dtype != np.float32:
            raise ValueError(
                f"boxes are {self.boxes.dtype} {self.boxes.shape}, expected float32 ({len(self.features)}, 5)"
            )
        if not len(self.features) or tuple(self.boxes[0].tolist()) != WHOLE_IMAGE_BOX:
            raise ValueError("the first token must be the whole image, with the box 0, 0, 1, 1, 1")

    @classmethod
    def from_regions(cls, features: NDArray[np.float32], corners: NDArray[np.float32]) -> VisualTokens:
        """Tokens from regions and their corners (N, 4) as shares of width and height; the whole image is their mean."""
        if features.ndim != 2 or not len(features) or corners.shape != (len(features), 4):
            raise ValueError(f"{features.shape} features with {corners.shape} corners, expected (N, D) and (N, 4)")
        area = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
        places = np.concatenate([corners, area[:, None]], axis=1)
        return cls(
            np.concatenate([features.mean(axis=0, keepdims=True), features]).astype(np.float32, copy=False),
            np.concatenate([np.array([WHOLE_IMAGE_BOX]), places]).astype(np.float32),
        )

    @classmethod
    def blank(cls, dim: int) -> VisualTokens:
        """No image at all: a whole without any feature."""
        return cls(np.zeros((1, dim), np.float32), np.array([WHOLE_IMAGE_BOX], np.float32))

    def __len__(self) -> int:
        return len(self.features)

    @property
    def dim(self) -> int:
        return int(self.features.shape[1])


def grid_corners(rows: int, columns: int) -> NDArray[np.float32]:
    """Corners (rows * columns, 4) of the cells of a grid laid over the image, row by row."""
    top, left = np.divmod(np.arange(rows * columns), columns)
    corners = np.stack([left / columns, top / rows, (left + 1) / columns, (top + 1) / rows], axis=1)
    return corners.astype(np.float32)
