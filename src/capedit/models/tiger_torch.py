"""TIger's modules computed by torch."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capedit.models.device import array, tensor
from capedit.models.runtime import Floats, Images, Ints, Seen, Text
from capedit.models.tiger import Tiger, TigerSight
from capedit.models.vilbert import TextInput, VisionInput
from capedit.models.vocabulary import Vocabulary


class TorchModules:
    """A TIger behind the face that decoding knows."""

    def __init__(self, model: Tiger, vocabulary: Vocabulary) -> None:
        self.model, self.vocabulary = model, vocabulary

    @property
    def max_words(self) -> int:
        return self.model.config.encoder.positions - 2

    @torch.no_grad()
    def see(self, images: Images) -> Seen:
        there = np.arange(images.features.shape[1]) < images.counts[:, None]
        sight = self.model.see(VisionInput(*self._tensors(images.features, images.boxes, there)))
        assert sight.mask is not None
        nothing = np.zeros((len(images.counts), 2, 0), np.float32)
        concepts, cells = (nothing if part is None else array(part) for part in (sight.concepts, sight.cells))
        return Seen(array(sight.views), array(sight.mask), concepts, cells)

    @torch.no_grad()
    def delete(self, text: Text, seen: Seen) -> tuple[Floats, Floats | None]:
        tags, match = self.model.delete(self._text(text), self._sight(seen))
        return _over_keep(tags), None if match is None else array(match)

    @torch.no_grad()
    def add(self, text: Text, seen: Seen) -> Floats:
        return _over_keep(self.model.add(self._text(text), self._sight(seen)))

    @torch.no_grad()
    def insert(self, text: Text, seen: Seen, rows: Ints, columns: Ints) -> Floats:
        return array(self.model.insert(self._text(text), self._sight(seen), *self._tensors(rows, columns)))

    @torch.no_grad()
    def support(self, text: Text, seen: Seen) -> Floats | None:
        grounds = self.model.ground(self._text(text), self._sight(seen))
        return None if grounds is None else array(grounds.similarity)

    def _tensors(self, *arrays: NDArray[Any]) -> Iterator[Tensor]:
        """Where the model is, which need not be torch's default device: that is another one in every thread."""
        device = next(self.model.parameters()).device
        return (tensor(each, device) for each in arrays)

    def _text(self, text: Text) -> TextInput:
        return TextInput(*self._tensors(text.ids, text.mask))

    def _sight(self, seen: Seen) -> TigerSight:
        views, mask, concepts, cells = self._tensors(*seen)
        return TigerSight(views, mask, concepts if concepts.shape[-1] else None, cells if cells.shape[-1] else None)


def _over_keep(tags: Tensor) -> Floats:
    return array(tags[..., 1] - tags[..., 0])
