"""How a model is trained, whatever the model."""

from dataclasses import asdict, dataclass
from typing import Any

from capedit.errors import CapeditError
from capedit.models.precision import Precision


@dataclass(frozen=True)
class TrainConfig:
    """Saved beside every checkpoint; a run resumes only under the config that it was started with."""

    steps: int
    """Optimiser steps in all."""
    batch_size: int = 32
    """Examples a step, over all processes and accumulated parts."""
    accumulate: int = 1
    """Parts into which a process splits its share of a batch, to save memory. The result does not depend on it."""
    learning_rate: float = 5e-4
    """Peak rate. A parameter group may carry a factor of its own (heads and body in the paper)."""
    warmup: float = 0.1
    """Share of the steps in which the rate rises from zero; then it falls linearly to zero."""
    weight_decay: float = 0.01
    """On matrices only, never on biases and norms (the published code has this the wrong way round)."""
    clip: float = 1.0
    """Largest norm of the gradient."""
    average: float = 0.0
    """Decay of the moving average of the weights that evaluation uses; 0 switches it off."""
    seed: int = 0
    """Everything random is a function of the seed and the step, which is why a run can resume exactly."""
    evaluate_every: int = 1000
    """Steps between evaluations."""
    checkpoint_every: int = 500
    """Steps between checkpoints; an interrupt writes one as well."""
    patience: int = 0
    """Evaluations without a better figure after which training stops; 0 never stops early."""
    precision: Precision = Precision.FULL
    """Of products of matrices in training. 16 bits are faster where the processor multiplies them in hardware."""

    def __post_init__(self) -> None:
        if self.precision not in set(Precision):
            raise CapeditError(f"training config: precision must be fp32 or bf16, got {self.precision!r}")
        object.__setattr__(self, "precision", Precision(self.precision))  # JSON has but its name
        for field in ("steps", "batch_size", "accumulate", "evaluate_every", "checkpoint_every"):
            if getattr(self, field) < 1:
                raise CapeditError(f"training config: {field} must be at least 1, got {getattr(self, field)}")
        if not 0 <= self.warmup <= 1:
            raise CapeditError(f"training config: warmup must lie in [0, 1], got {self.warmup}")
        if not 0 <= self.average < 1:
            raise CapeditError(f"training config: average must lie in [0, 1), got {self.average}")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def learning_rate_at(step: int, config: TrainConfig) -> float:
    """Linear warm-up, then linear decay; step counts from 0, and no step has a rate of exactly zero."""
    warm = round(config.warmup * config.steps)
    if step < warm:
        return config.learning_rate * (step + 1) / (warm + 1)
    return config.learning_rate * (config.steps - step) / (config.steps - warm)
