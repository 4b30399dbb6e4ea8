"""Published region features in place of an image encoder: what `tiger-base` was trained to see.

The detector that made them is not part of this package, so images are known by their ids in a region file.
"""

from collections.abc import Sequence
from typing import Protocol

from capedit.vision import ImageSource, VisualTokens
from capedit.vision.regions import RegionError

BOTTOM_UP = "bottom-up regions"
"""What stands in place of an encoder's hash in models that were trained on published regions."""


class Regions(Protocol):
    """A region file: `RegionTable` or `RegionFolder`."""

    def tokens(self, image_id: str) -> VisualTokens: ...


class RegionLookup:
    """An encoder for an `Editor`: its images are ids, and their tokens are looked up."""

    name = BOTTOM_UP
    hash = BOTTOM_UP

    def __init__(self, regions: Regions, dim: int = 2048) -> None:
        self._regions = regions
        self.dim = dim

    def encode(self, images: Sequence[ImageSource]) -> list[VisualTokens]:
        return [self._tokens(image) for image in images]

    def _tokens(self, image: ImageSource) -> VisualTokens:
        if not isinstance(image, str):
            raise RegionError(f"regions are looked up by the id of an image, not by {type(image).__name__}")
        return self._regions.tokens(image)
