"""Fine-tune the image encoder on the words of captions.

An ImageNet network knows a thousand labels. Here the last stages learn which words people use of an image, from COCO
train captions. What comes out is the encoder that ships, and the concept head that scores words for TIger.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from capedit.data.builders.captions import CaptionTable
from capedit.models.device import tensor
from capedit.models.efficientnet_tail import Tail
from capedit.training.maps import maps_of, mirror
from capedit.training.task import LossTerm
from capedit.vision.store import TokenSource

EVALUATION_BATCH = 128
LIKELIEST = 10
# Words that say nothing about an image.
_UNSEEN = frozenset(
    (
        "a an the and or of to in on at with by for from into onto over under near next is are was were be being been "
        "has have had while that which who what this these those his her its their our my some up down as it he she "
        "they there here not no other another each all both very than but so just can could will would out off"
    ).split()
)


def concept_words(captions: Iterable[Sequence[str]], count: int) -> list[str]:
    """The words that most captions have, but for those that say nothing about an image."""
    seen = Counter(word for caption in captions for word in set(caption) - _UNSEEN)
    return sorted(seen, key=lambda word: (-seen[word], word))[:count]


class WordTargets:
    """For every image, the share of its captions that have each concept word; kept sparse."""

    def __init__(self, table: CaptionTable, words: Sequence[str]) -> None:
        number = {word: at for at, word in enumerate(words)}
        self._words = len(words)
        self._found: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        for image in range(len(table)):
            captions = [table.captions[caption] for caption in table.of_image(image)]
            counts = Counter(number[word] for caption in captions for word in set(caption) if word in number)
            shares = (np.array(list(counts.values())) / len(captions)).astype(np.float32)
            self._found.append((np.array(list(counts), np.int64), shares))

    def __len__(self) -> int:
        return len(self._found)

    def batch(self, positions: Iterable[int]) -> Tensor:
        """(B, words)."""
        rows = [self._found[at] for at in positions]
        targets = np.zeros((len(rows), self._words), np.float32)
        for row, (columns, shares) in zip(targets, rows, strict=True):
            row[columns] = shares
        return tensor(targets)

    def mean(self, positions: Sequence[int]) -> Tensor:
        """How often each word is used of any image: what there is to know without looking."""
        total = np.zeros(self._words)
        for at in positions:
            columns, shares = self._found[at]
            total[columns] += shares
        return tensor((total / len(positions)).astype(np.float32))


class WordReader(nn.Module):
    """The trainable tail of the encoder, and a linear concept head on the whole-image token (the mean of cells)."""

    def __init__(self, tail: Tail, dim: int, prior: Tensor) -> None:
        super().__init__()
        self.tail = tail
        self.score = nn.Linear(dim, len(prior))
        nn.init.normal_(self.score.weight, std=0.01)
        with torch.no_grad():
            self.score.bias.copy_(torch.logit(prior, eps=1e-5))

    def forward(self, maps: Tensor) -> Tensor:
        """(B, cells, C) -> (B, words) logits."""
        logits: Tensor = self.score(self.tail(maps).mean(1))
        return logits


class Batch(NamedTuple):
    """Maps (B, cells, C) and the words of their images (B, words)."""

    maps: Tensor
    targets: Tensor


class CaptionWordsTask:
    """An example is an image; its loss is the binary cross-entropy of all concept words, summed."""

    name = "caption words"
    metric = "gain"
    """Nats an image over the prior, on held-out images."""

    def __init__(
        self,
        model: WordReader,
        maps: TokenSource,
        images: Sequence[str],
        targets: WordTargets,
        held_out: Sequence[int],
        tail_rate: float = 0.2,
    ) -> None:
        """`maps` has each of `images`, of which `targets` has the words. Positions in `held_out` are never trained on.
        `tail_rate` is the tail's learning rate over the head's."""
        if len(images) != len(targets):
            raise ValueError(f"{len(images)} images, but words of {len(targets)}")
        self._model, self._maps, self._images, self._targets = model, maps, images, targets
        self._held_out, self._tail_rate = list(held_out), tail_rate
        self._train = np.setdiff1d(np.arange(len(targets)), self._held_out)
        prior = targets.mean(self._train.tolist())
        held = [targets.batch(part) for part in _parts(self._held_out)]
        logits = torch.logit(prior, eps=1e-6)
        self._prior_loss = sum(float(_loss(logits.expand_as(part), part)) for part in held) / len(self._held_out)

    @property
    def model(self) -> WordReader:
        return self._model

    def __len__(self) -> int:
        return len(self._train)

    def fingerprint(self) -> str:
        parts = [self._maps.header.encoder_hash, self._images, self._held_out, self._tail_rate]
        parts += [self._model.score.weight.shape]
        return sha256(repr(parts).encode()).hexdigest()[:16]

    def batch(self, indices: NDArray[np.int64], rng: np.random.Generator) -> Batch:
        """Half of the images are seen in a mirror."""
        step, positions = int(rng.integers(2**32)), self._train[indices]
        mirrored = [bool(np.random.default_rng([step, int(at)]).integers(2)) for at in positions]
        return self._batch(positions, np.array(mirrored, bool))

    def loss_weights(self, batch: Batch) -> Mapping[str, float]:
        return {"words": float(len(batch.targets))}

    def loss(self, batch: Batch) -> Mapping[str, LossTerm]:
        return {"words": LossTerm(_loss(self._model(batch.maps), batch.targets))}

    def evaluate(self) -> Mapping[str, float]:
        """Loss an image, what it gains over the prior, and how many of the ten likeliest words are right."""
        loss, right = 0.0, 0.0
        for part in _parts(self._held_out):
            batch = self._batch(np.array(part))
            logits = self._model(batch.maps)
            loss += float(_loss(logits, batch.targets))
            likeliest = logits.topk(min(LIKELIEST, logits.shape[1]), dim=1).indices
            right += float((batch.targets.gather(1, likeliest) > 0).float().mean(1).sum())
        count = len(self._held_out)
        return {
            "gain": self._prior_loss - loss / count,
            "held-out loss": loss / count,
            f"top-{LIKELIEST}": 100 * right / count,
        }

    def rate_factor(self, parameter: str) -> float:
        return self._tail_rate if parameter.startswith("tail.") else 1.0

    def _batch(self, positions: NDArray[np.int64], mirrored: NDArray[np.bool_] | None = None) -> Batch:
        maps = maps_of(self._maps, [self._images[at] for at in positions])
        if mirrored is not None:
            maps[mirrored] = mirror(maps[mirrored])
        return Batch(tensor(maps), self._targets.batch(positions.tolist()))


def _loss(logits: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="sum")


def _parts(positions: Sequence[int]) -> list[Sequence[int]]:
    return [positions[at : at + EVALUATION_BATCH] for at in range(0, len(positions), EVALUATION_BATCH)]
