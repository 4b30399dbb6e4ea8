"""A task small enough to train in a blink: tell the sign of a sum. Also a program, so that torchrun can start it."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from capedit.training import LossTerm, TrainConfig, fit
from capedit.training.distributed import join_workers


class SignTask:
    """Binary classification whose positive examples weigh double, so that a weighted mean is at stake."""

    name = "sign"
    metric = "accuracy"

    def __init__(self, dropout: float = 0.0, examples: int = 96) -> None:
        torch.manual_seed(0)
        self.model: nn.Module = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 1))
        self.inputs = torch.randn(examples, 8)
        self.labels = (self.inputs.sum(1) > 0).float()

    def __len__(self) -> int:
        return len(self.inputs)

    def fingerprint(self) -> str:
        return f"sign-{len(self)}"

    def batch(self, indices: np.ndarray, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        noise = torch.from_numpy(rng.normal(size=(len(indices), 8)).astype(np.float32)) * 0
        return self.inputs[indices] + noise, self.labels[indices]

    def loss_weights(self, batch: tuple[Tensor, Tensor]) -> Mapping[str, float]:
        return {"loss": float((1 + batch[1]).sum())}

    def loss(self, batch: tuple[Tensor, Tensor]) -> Mapping[str, LossTerm]:
        inputs, labels = batch
        weights = 1 + labels
        each = nn.functional.binary_cross_entropy_with_logits(self.model(inputs)[:, 0], labels, reduction="none")
        return {"loss": LossTerm((weights * each).sum())}

    def evaluate(self) -> Mapping[str, float]:
        right = (self.model(self.inputs)[:, 0] > 0).float() == self.labels
        return {"accuracy": float(right.float().mean())}

    def rate_factor(self, parameter: str) -> float:
        return 1.0


def main(out: str, config: str) -> None:
    with join_workers() as workers:
        fit(SignTask(), TrainConfig(**json.loads(config)), Path(out), workers=workers)


if __name__ == "__main__":
    main(*sys.argv[1:])
