"""The one face of everything that turns images into visual tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from capedit.vision.image import ImageSource
from capedit.vision.tokens import VisualTokens


class Encoder(Protocol):
    """Images in, visual tokens out; the same tokens however the images are batched."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def hash(self) -> str:
        """For stores and models: equal only where weights, input treatment and pooling are equal."""

    @property
    def dim(self) -> int:
        """Width of a token's features."""

    def encode(self, images: Sequence[ImageSource]) -> list[VisualTokens]:
        """Encode images; raises `ImageError` for the first that cannot be read."""
