"""How much more an image encoder knows of the words of captions than another: the same linear head on either.

    capedit features IMAGES --encoder lite2 --grid 4 --out IMAGENET
    python benchmarks/encoder_words.py IMAGENET STORE --captions captions_val2014.json --only karpathy_val_ids.txt

Name images that neither encoder was trained on. One fifth of them is held out; the head learns from the others.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from capedit.data.builders.captions import read_coco_captions
from capedit.training.caption_words import LIKELIEST, WordTargets, concept_words
from capedit.training.material import ImageKeys
from capedit.vision import FeatureStore

WORDS, EPOCHS, BATCH = 3000, 20, 64
RATES = (3e-4, 1e-3)
DECAYS = (0.01, 0.3)


def loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Nats an image."""
    return nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="none").sum(1).mean()


def learn(features: Tensor, targets: Tensor, held: Tensor, rate: float, decay: float) -> tuple[float, float]:
    """(nats, share of the likeliest words that are used) on the held-out images, of the best epoch."""
    torch.manual_seed(0)
    told, asked = features[~held], features[held]
    centre, spread = told.mean(0), told.std(0) + 1e-6
    told, asked = (told - centre) / spread, (asked - centre) / spread
    head = nn.Linear(features.shape[1], targets.shape[1])
    nn.init.zeros_(head.weight)
    with torch.no_grad():
        head.bias.copy_(torch.logit(targets[~held].mean(0), eps=1e-5))
    optimizer = torch.optim.AdamW(head.parameters(), lr=rate, weight_decay=decay)
    best = (float("inf"), 0.0)
    for _ in range(EPOCHS):
        for part in torch.randperm(len(told)).split(BATCH):
            optimizer.zero_grad()
            loss(head(told[part]), targets[~held][part]).backward()
            optimizer.step()
        with torch.no_grad():
            logits = head(asked)
            likeliest = logits.topk(LIKELIEST, 1).indices
            used = float((targets[held].gather(1, likeliest) > 0).float().mean())
            best = min(best, (float(loss(logits, targets[held])), used))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stores", type=Path, nargs="+")
    parser.add_argument("--captions", type=Path, action="append", required=True)
    parser.add_argument("--only", type=Path, help="ids of the images to take")
    told = parser.parse_args()
    stores = [FeatureStore(path) for path in told.stores]
    keys = [ImageKeys(store) for store in stores]
    chosen = {int(line) for line in told.only.read_text().split()} if told.only else None
    table = read_coco_captions(told.captions, frozenset()).only(
        lambda image: (chosen is None or image in chosen) and all(key.find(image) is not None for key in keys)
    )
    words = concept_words(table.captions, WORDS)
    targets = WordTargets(table, words).batch(range(len(table)))
    held = torch.from_numpy(np.arange(len(table)) % 5 == 0)
    prior = torch.logit(targets[~held].mean(0), eps=1e-5).expand(int(held.sum()), -1)
    print(f"{len(table)} images, {int(held.sum())} held out")
    print(f"without looking: {float(loss(prior, targets[held])):.2f} nats an image")
    for store, key in zip(stores, keys, strict=True):
        names = [key.find(int(image)) for image in table.image_ids]
        whole = torch.from_numpy(np.stack([store.tokens(name).features[0] for name in names if name])).float()
        nats, used = min(learn(whole, targets, held, rate, decay) for rate in RATES for decay in DECAYS)
        print(
            f"{store.header.encoder}: {nats:.2f} nats an image, {100 * used:.1f} % of {LIKELIEST} likeliest words used"
        )


if __name__ == "__main__":
    main()
