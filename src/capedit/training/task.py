"""What the loop asks of anything that can be trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from torch import Tensor, nn


@dataclass(frozen=True)
class LossTerm:
    """A sum of losses, of which the loop makes a mean.

    It divides by the weight of the *whole* batch (`Task.loss_weights`), however that is spread over processes and
    accumulated parts. So one process gives what two give, and a weighted mean stays one.
    """

    total: Tensor
    """Sum over the examples at hand, weights applied."""
    factor: float = 1.0
    """Share of this term in the objective."""


class Task(Protocol):
    """A model, its examples and its figure of merit."""

    name: str
    metric: str
    """The figure of `evaluate` that picks the best checkpoint; higher is better."""

    @property
    def model(self) -> nn.Module: ...

    def __len__(self) -> int:
        """How many training examples there are."""

    def fingerprint(self) -> str:
        """A hash of the data and of the model's shape: a checkpoint of anything else is not resumed."""

    def batch(self, indices: np.ndarray, rng: np.random.Generator) -> Any:
        """Examples as tensors. All that is random comes from `rng`.

        Every process and part of a step gets the same `rng`: a task that gives each example a generator of its own,
        made from a number of `rng` and its index, draws the same whatever the number of processes.
        """

    def loss_weights(self, batch: Any) -> Mapping[str, float]:
        """The weight of each loss term, before any network has run."""

    def loss(self, batch: Any) -> Mapping[str, LossTerm]:
        """The terms to minimise."""

    def evaluate(self) -> Mapping[str, float]:
        """Figures on validation data, of the model as it stands (averaged weights are swapped in by the loop)."""

    def rate_factor(self, parameter: str) -> float:
        """The learning rate of a parameter relative to the others; 0 freezes it."""
