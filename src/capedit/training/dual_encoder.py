"""Train the dual encoder on images and their captions."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capedit.data.builders.captions import CaptionTable
from capedit.errors import CapeditError
from capedit.models.device import CPU, placed, tensor, working_on
from capedit.models.dual_encoder import UNKNOWN, DualEncoder, DualEncoderConfig, Vocabulary
from capedit.training.checkpoint import load_checkpoint, load_into
from capedit.training.config import TrainConfig
from capedit.training.loop import Progress, fit
from capedit.training.task import LossTerm
from capedit.vision import FeatureStore

WORD_DROPOUT = 0.1
"""Share of words hidden in training, so that no caption hangs on one word."""
HELD_OUT_IMAGES = 1000
RECALL_AT = (1, 5, 10)


class Batch(NamedTuple):
    """Images, each with one of its captions."""

    features: Tensor  # (B, N, F)
    boxes: Tensor  # (B, N, 5)
    words: Tensor  # (B, T)


class DualEncoderTask:
    """An example is an image with one of its captions, drawn anew each time."""

    name = "dual encoder"
    metric = "mean recall"

    def __init__(
        self,
        model: DualEncoder,
        train: CaptionTable,
        held_out: CaptionTable,
        store: FeatureStore,
        key: Callable[[int], str],
    ) -> None:
        """`key` makes the id under which the store keeps an image."""
        self._model, self._train, self._held_out, self._store, self._key = model, train, held_out, store, key
        self._words = model.vocabulary.encode(train.captions, model.config.max_words).astype(np.int32)

    @property
    def model(self) -> DualEncoder:
        return self._model

    def __len__(self) -> int:
        return len(self._train)

    def fingerprint(self) -> str:
        parts = [self._train.fingerprint(), self._held_out.fingerprint(), self._store.header.encoder_hash]
        parts += [json.dumps(asdict(self._model.config)), str(len(self._model.vocabulary))]
        return sha256("\n".join(parts).encode()).hexdigest()[:16]

    def batch(self, indices: NDArray[np.int64], rng: np.random.Generator) -> Batch:
        first, after = self._train.first[indices], self._train.first[indices + 1]
        words = self._words[first + (rng.random(len(indices)) * (after - first)).astype(np.int64)].astype(np.int64)
        words = words[:, : int((words != 0).sum(axis=1).max())]
        words[(words != 0) & (rng.random(words.shape) < WORD_DROPOUT)] = UNKNOWN
        tokens = self._store.batch([self._key(i) for i in self._train.image_ids[indices].tolist()])
        return Batch(tensor(tokens.features), tensor(tokens.boxes), tensor(words))

    def loss_weights(self, batch: Batch) -> Mapping[str, float]:
        return {"contrast": float(len(batch.words))}

    def loss(self, batch: Batch) -> Mapping[str, LossTerm]:
        return {"contrast": LossTerm(self._model.loss(*batch))}

    def evaluate(self) -> Mapping[str, float]:
        """Recall in %, both ways, on the held-out images and all their captions."""
        figures = recall(self._model, self._held_out, self._store, self._key)
        return {self.metric: float(np.mean(list(figures.values()))), **figures}

    def rate_factor(self, parameter: str) -> float:
        return 1.0


def train_dual_encoder(
    table: CaptionTable,
    store: FeatureStore,
    config: TrainConfig,
    out: Path,
    *,
    shape: DualEncoderConfig | None = None,
    key: Callable[[int], str] = str,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> dict[str, float]:
    """Train on all images of a table but 1,000, which the recall is measured on; the best weights go to `out`.

    `out/run` holds checkpoints and curves, and called again this resumes. `out/recall.json` has the figures returned.
    """
    table = table.only(lambda image_id: key(image_id) in store)
    if len(table) <= HELD_OUT_IMAGES:
        raise CapeditError(
            f"{store.path}: features of {len(table)} captioned images, more than {HELD_OUT_IMAGES} needed"
        )
    held_out_ids = held_out_images(table.image_ids.tolist(), config.seed, HELD_OUT_IMAGES)
    train = table.only(lambda image_id: image_id not in held_out_ids)
    held_out = table.only(lambda image_id: image_id in held_out_ids)
    torch.manual_seed(config.seed)
    shape = shape or DualEncoderConfig(features=store.header.dim)
    vocabulary = Vocabulary.from_captions(train.captions)
    with working_on(CPU):  # the same start on every device
        model = DualEncoder(shape, vocabulary, store.header.encoder_hash)
    placed(model)
    fit(DualEncoderTask(model, train, held_out, store, key), config, out / "run", watch=watch)
    best = out / "run" / "best.safetensors"
    load_into(model, load_checkpoint(best).tensors, best)
    model.eval()
    model.save(out)
    figures = recall(model, held_out, store, key)
    (out / "recall.json").write_text(
        json.dumps({"images": len(held_out), **figures}, indent=2) + "\n", encoding="utf-8"
    )
    return figures


def held_out_images(image_ids: Sequence[int], seed: int, count: int) -> frozenset[int]:
    """The images that recall is measured on."""
    chosen = np.random.default_rng([seed, count]).choice(np.sort(np.array(image_ids)), count, replace=False)
    return frozenset(chosen.tolist())


def recall(model: DualEncoder, table: CaptionTable, store: FeatureStore, key: Callable[[int], str]) -> dict[str, float]:
    """Recall@1, 5, 10 in %: of each image's best captions is one its own; is a caption's image among its best."""
    images = np.concatenate(
        [
            model.embed_images(*store.batch([key(i) for i in table.image_ids[start : start + 256].tolist()])[:2])
            for start in range(0, len(table), 256)
        ]
    )
    scores = images @ model.embed_captions(table.captions).T  # (images, captions)
    own = scores[table.image_of, np.arange(scores.shape[1])]  # (captions,)
    best_own = np.maximum.reduceat(own, table.first[:-1])  # (images,)
    rank_of_caption = (scores > best_own[:, None]).sum(axis=1)
    rank_of_image = (scores > own[None, :]).sum(axis=0)
    figures = {f"image to text R@{n}": 100 * float((rank_of_caption < n).mean()) for n in RECALL_AT}
    return figures | {f"text to image R@{n}": 100 * float((rank_of_image < n).mean()) for n in RECALL_AT}
