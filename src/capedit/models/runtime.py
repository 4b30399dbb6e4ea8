"""What decoding asks of TIger's three modules, whatever computes them: numpy in, numpy out."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from capedit.models.vocabulary import Vocabulary

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Images(NamedTuple):
    """Visual tokens of a batch of images: features (B, V, F), boxes (B, V, 5), and how many tokens each has (B,)."""

    features: Floats
    boxes: Floats
    counts: Ints


class Seen(NamedTuple):
    """A batch of images as the model has seen them; computed once, used for every caption and round."""

    views: Floats
    mask: Bools
    concepts: Floats
    """(B, 2, C) logits of the concept words; C is 0 in a model without them."""
    cells: Floats
    """(B, V, S) visual tokens in the space of the grounding; S is 0 in a model without it."""

    def rows(self, images: Ints) -> "Seen":
        """The images at these positions, one for each caption."""
        return Seen(self.views[images], self.mask[images], self.concepts[images], self.cells[images])


class Text(NamedTuple):
    """A batch of captions with their sentinels: word ids (B, T), and which of them are there."""

    ids: Ints
    mask: Bools


class Modules(Protocol):
    """The three modules, and the eye that they share."""

    @property
    def vocabulary(self) -> Vocabulary: ...

    @property
    def max_words(self) -> int:
        """The longest caption that it can read, masks included."""

    def see(self, images: Images) -> Seen: ...

    def delete(self, text: Text, seen: Seen) -> tuple[Floats, Floats | None]:
        """Logits of DELETE over KEEP (B, T), and of caption and image belonging together (B,), if it can tell."""

    def add(self, text: Text, seen: Seen) -> Floats:
        """Logits of ADD-after over KEEP (B, T)."""

    def insert(self, text: Text, seen: Seen, rows: Ints, columns: Ints) -> Floats:
        """Logits of the words (N, V) behind the N masks at these places."""

    def support(self, text: Text, seen: Seen) -> Floats | None:
        """How well each word is supported by each visual token (B, T, V), where the model can tell."""
