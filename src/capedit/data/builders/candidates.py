"""Step 1: captions of other images that an image-text score takes for captions of this one."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from capedit.data.builders.captions import CaptionTable, IntArray, Tokens

FloatArray = NDArray[np.float32]
_GROUP = 64


class Scorer(Protocol):
    """How well captions fit images: the inner product of an image's and a caption's vector."""

    @property
    def name(self) -> str:
        """Says which scorer it is and, by a hash of weights and features, which of its kind; goes into reports."""

    def embed_captions(self, captions: Sequence[Tokens]) -> FloatArray:
        """(captions, dim)."""

    def embed_images(self, image_ids: Sequence[int]) -> FloatArray:
        """(images, dim)."""

    def can_see(self, image_id: int) -> bool:
        """Whether there is a picture of this image to score."""


class Pools:
    """Images in pools drawn at random, of about as many images each; an image is offered captions of its own pool.

    The best 300 captions of a large pool lie nearer to an image than those of a small one. The published val and test
    files come from pools of 5,000 images.
    """

    def __init__(self, table: CaptionTable, captions: FloatArray, images: int | None, seed: int) -> None:
        """`captions` are vectors of the table's captions; without a number of images, there is one pool of all."""
        count = max(1, round(len(table) / images)) if images else 1
        order = np.random.default_rng([seed, images or 0]).permutation(len(table))
        self._table, self._pool = table, np.empty(len(table), np.int64)
        self._pool[order] = np.arange(len(table)) * count // len(table)
        of_caption = self._pool[table.image_of]
        self._numbers = [np.flatnonzero(of_caption == pool) for pool in range(count)]
        self._vectors = [captions[numbers] for numbers in self._numbers] if count > 1 else [captions]

    @property
    def fewest(self) -> int:
        """Captions of the smallest pool."""
        return min(map(len, self._numbers))

    def rank(self, images: Sequence[int], vectors: FloatArray, count: int) -> list[IntArray]:
        """The best captions of other images in the pool of each image, best first."""
        ranked: dict[int, IntArray] = {}
        pools = self._pool[list(images)]
        for pool in np.unique(pools).tolist():
            rows, numbers = np.flatnonzero(pools == pool).tolist(), self._numbers[pool]
            own = [self._table.of_image(images[row]) for row in rows]
            starts = np.searchsorted(numbers, [mine.start for mine in own]).tolist()
            places = [range(start, start + len(mine)) for start, mine in zip(starts, own, strict=True)]
            found = rank_candidates(vectors[rows], self._vectors[pool], places, count)
            ranked.update(zip(rows, numbers[found], strict=True))
        return [ranked[row] for row in range(len(images))]


def rank_candidates(images: FloatArray, captions: FloatArray, own: Sequence[range], count: int) -> IntArray:
    """The best `count` captions of each image, best first, its own left out: (images, count).

    All scores of the block are held at once: images x captions x 4 bytes.
    """
    if not 0 < count <= len(captions) - max(map(len, own), default=0):
        raise ValueError(f"{count} candidates of {len(captions)} captions")
    groups = -(-len(captions) // _GROUP)
    scores = np.full((len(images), groups * _GROUP), -np.inf, np.float32)
    np.matmul(images, captions.T, out=scores[:, : len(captions)])
    for row, mine in zip(scores, own, strict=True):
        row[mine.start : mine.stop] = -np.inf
    return np.stack([_top(row, count) for row in scores]) if len(scores) else np.zeros((0, count), np.int64)


def draw(ranked: IntArray, count: int, seed: int, image_id: int) -> IntArray:
    """`count` of an image's candidates at random, in the order of their rank.

    Each image has a random stream of its own, so the draw does not depend on which images are done together.
    """
    if count >= len(ranked):
        return ranked
    chosen = np.random.default_rng([seed, image_id]).choice(len(ranked), count, replace=False)
    chosen.sort()
    return np.asarray(ranked[chosen], np.int64)


def _top(row: FloatArray, count: int) -> IntArray:
    """The positions of the largest values, largest first, equal ones in order.

    The best `count` values lie in the `count` groups with the best maxima: so most of a row is only ever looked at
    by a vectorised maximum, which is ten times faster than partitioning all of it.
    """
    maxima = row.reshape(-1, _GROUP).max(axis=1)
    if count < len(maxima):
        # Every group with a maximum of at least the count-th best: with equal maxima that may be a few more.
        limit = np.partition(maxima, len(maxima) - count)[len(maxima) - count]
        groups = np.flatnonzero(maxima >= limit)
    else:
        groups = np.arange(len(maxima))
    positions = (groups[:, None] * _GROUP + np.arange(_GROUP)).ravel()
    values = row[positions]
    limit = np.partition(values, len(values) - count)[len(values) - count]
    chosen = positions[values >= limit]
    order = np.lexsort((chosen, -row[chosen]))
    return np.asarray(chosen[order[:count]], np.int64)
