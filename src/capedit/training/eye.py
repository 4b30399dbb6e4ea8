"""Train the eye through the editor that reads it.

The image encoder learns which words people use of an image, before there is an editor. Here its last stages go on
learning, from what the finished editor would have needed to see: the editor stays as it is, and its losses, and those
of its concept channel, tell the encoder what to show. So what comes out takes the encoder's place, and no other weight
changes. Not in the paper, whose regions come from a detector that never learns.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from capedit.models.device import array, tensor
from capedit.models.efficientnet_tail import Tail
from capedit.models.precision import Precision, computing_in
from capedit.models.tiger import Tiger
from capedit.models.vilbert import VisionInput
from capedit.training import tiger
from capedit.training.concepts import ConceptTask
from capedit.training.maps import maps_of, mirror
from capedit.training.pairs import Lesson
from capedit.training.task import LossTerm
from capedit.training.tiger import TigerTask
from capedit.vision.grid import area_pooling
from capedit.vision.store import StoreHeader, TokenBatch, TokenSource
from capedit.vision.tokens import VisualTokens, grid_corners

WORDS = 0.1
"""What the words of an image count beside its edits: a hundred words or so are at stake in an image, ten in an edit."""


class Eye(nn.Module):
    """The encoder's last stages, and the editor that reads what they make of an image."""

    def __init__(self, tail: Tail, editor: Tiger, grid: int = 4) -> None:
        super().__init__()
        self.tail, self.editor, self._grid = tail, editor, grid
        self._boxes = tensor(
            VisualTokens.from_regions(np.zeros((grid**2, 1), np.float32), grid_corners(grid, grid)).boxes
        )

    def forward(self, maps: Tensor) -> VisionInput:
        """Square maps of the frozen stages (B, cells, C) -> images as the encoder gives them to an editor."""
        cells: Tensor = self.tail(maps).float()
        side = round(cells.shape[1] ** 0.5)
        pooling = tensor(area_pooling(side, self._grid))
        with torch.autocast(cells.device.type, enabled=False):
            cells = torch.einsum("ir,jc,brcd->bijd", pooling, pooling, cells.unflatten(1, (side, side))).flatten(1, 2)
        features = torch.cat([cells.mean(1, keepdim=True), cells], 1)
        return VisionInput(features, self._boxes.expand(len(features), -1, -1), None)


class SeenThrough:
    """Images as an eye sees them now, by their maps."""

    def __init__(self, eye: Eye, maps: TokenSource, precision: Precision = Precision.FULL) -> None:
        self._eye, self._maps, self._precision = eye, maps, precision

    @property
    def header(self) -> StoreHeader:
        return self._maps.header

    @torch.no_grad()
    def batch(self, image_ids: Sequence[str]) -> TokenBatch:
        with computing_in(self._precision):
            seen = self._eye(tensor(maps_of(self._maps, image_ids)))
        counts = np.full(len(image_ids), seen.features.shape[1])
        return TokenBatch(array(seen.features), array(seen.locations), counts)


class Batch(NamedTuple):
    """Maps of images, of which the first have edits, and the share of each image's captions that have each word."""

    maps: Tensor
    edits: tiger.Batch
    shares: Tensor


class EyeTask:
    """An example is an edit and the right captions of its image, or an image without edits and its captions."""

    name = "eye"
    metric = "CIDEr-D"
    """Of what the editor makes of what it sees: that may get better while the words of an image do not."""

    def __init__(
        self,
        eye: Eye,
        edits: TigerTask,
        words: ConceptTask,
        lesson: Lesson,
        maps: TokenSource,
        examine: Callable[[], Mapping[str, float]],
    ) -> None:
        """`edits` and `words` are tasks of the eye's editor, learned from the same lesson; `examine` is how it does."""
        self._eye, self._edits, self._words, self._examine = eye, edits, words, examine
        self._lesson, self._maps = lesson, maps
        edited = {pair.image for pair in lesson.pairs}
        self._lone = [image for image, captions in lesson.right.items() if captions and image not in edited]

    @property
    def model(self) -> Eye:
        return self._eye

    def __len__(self) -> int:
        return len(self._edits) + len(self._lone)

    def fingerprint(self) -> str:
        shape = {name: tuple(weight.shape) for name, weight in self._eye.tail.state_dict().items()}
        return sha256(repr([self._edits.fingerprint(), len(self), shape]).encode()).hexdigest()[:16]

    def rate_factor(self, parameter: str) -> float:
        return 1.0 if parameter.startswith("tail.") else 0.0

    def batch(self, indices: NDArray[np.int64], rng: np.random.Generator) -> Batch:
        """Half of the images are seen in a mirror."""
        edited, lone = indices[indices < len(self._edits)], indices[indices >= len(self._edits)]
        edits, step = self._edits.batch(edited, rng), int(rng.integers(2**32))
        images = [self._lesson.pairs[at].image for at in edited]
        images += [self._lone[at - len(self._edits)] for at in lone]
        maps = maps_of(self._maps, images)
        turned = [np.random.default_rng([step, int(at)]).integers(2) for at in (*edited, *lone)]
        mirrored = np.array(turned, bool)
        maps[mirrored] = mirror(maps[mirrored])
        return Batch(tensor(maps), edits, self._words.shares([self._lesson.right[image] for image in images]))

    def loss_weights(self, batch: Batch) -> Mapping[str, float]:
        return {**self._edits.loss_weights(batch.edits), "words": float(len(batch.shares))}

    def loss(self, batch: Batch) -> Mapping[str, LossTerm]:
        seen = self._eye(batch.maps)
        edits = self._edits.loss(batch.edits._replace(vision=seen))
        return {**edits, "words": LossTerm(self._words.surprise(seen, batch.shares), WORDS)}

    def evaluate(self) -> Mapping[str, float]:
        return {**self._words.evaluate(), **self._examine()}
