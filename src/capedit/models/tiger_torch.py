"""TIger's modules computed by torch."""

import numpy as np
import torch
from torch import Tensor

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
        there = torch.arange(images.features.shape[1]) < torch.from_numpy(images.counts)[:, None]
        sight = self.model.see(VisionInput(torch.from_numpy(images.features), torch.from_numpy(images.boxes), there))
        assert sight.mask is not None
        nothing = np.zeros((len(images.counts), 2, 0), np.float32)
        concepts, cells = (nothing if part is None else part.numpy() for part in (sight.concepts, sight.cells))
        return Seen(sight.views.numpy(), sight.mask.numpy(), concepts, cells)

    @torch.no_grad()
    def delete(self, text: Text, seen: Seen) -> tuple[Floats, Floats | None]:
        tags, match = self.model.delete(_text(text), _sight(seen))
        return _over_keep(tags), None if match is None else match.numpy()

    @torch.no_grad()
    def add(self, text: Text, seen: Seen) -> Floats:
        return _over_keep(self.model.add(_text(text), _sight(seen)))

    @torch.no_grad()
    def insert(self, text: Text, seen: Seen, rows: Ints, columns: Ints) -> Floats:
        logits = self.model.insert(_text(text), _sight(seen), torch.from_numpy(rows), torch.from_numpy(columns))
        result: Floats = logits.numpy()
        return result

    @torch.no_grad()
    def support(self, text: Text, seen: Seen) -> Floats | None:
        grounds = self.model.ground(_text(text), _sight(seen))
        return None if grounds is None else grounds.similarity.numpy()


def _text(text: Text) -> TextInput:
    return TextInput(torch.from_numpy(text.ids), torch.from_numpy(text.mask))


def _sight(seen: Seen) -> TigerSight:
    concepts, cells = (torch.from_numpy(part) if part.shape[-1] else None for part in (seen.concepts, seen.cells))
    return TigerSight(torch.from_numpy(seen.views), torch.from_numpy(seen.mask), concepts, cells)


def _over_keep(tags: Tensor) -> Floats:
    result: Floats = (tags[..., 1] - tags[..., 0]).numpy()
    return result
