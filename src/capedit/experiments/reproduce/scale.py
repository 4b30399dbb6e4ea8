"""How much is spent on a reproduction: the shapes of the models and the length of their training."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any

from capedit.training.config import TrainConfig
from capedit.training.train_system import LSTM_SYSTEMS, MIN_COUNT, SMALL, SMALL_ENCODER, SMALL_LSTM, SMALL_LSTM_RATE


class ScaleName(StrEnum):
    """`tiny` is a test on made data, `small` is what two cores can do in hours, `full` is the paper's setting."""

    TINY = "tiny"
    SMALL = "small"
    FULL = "full"


@dataclass(frozen=True)
class Scale:
    """The same for every system, so that what they are given can be compared."""

    name: ScaleName
    encoder: Mapping[str, Any]
    """The two-stream encoder of TIger, V-Felix and V-LaserTagger."""
    lstm: Mapping[str, Any]
    """Widths and dropout of the LSTM systems."""
    train: TrainConfig
    """Of the transformer systems; its steps hold for all unless `seconds` is given."""
    lstm_rate: float
    """Peak learning rate of the LSTM systems."""
    seconds: float | None = None
    """Budget of each model in CPU seconds, evaluations not counted. Its steps are as many as that buys by a measurement
    before it starts; all TIgers get the steps of the first, and pre-training comes on top."""
    min_count: int = 1
    """How often a word must be seen to be in the vocabulary."""
    phrases: int | None = 500
    """Size of V-LaserTagger's phrase vocabulary; None is all phrases."""
    pretraining: float = 0.5
    """Table 7: steps of pre-training on captions, over those of training."""
    rounds: Mapping[str, int] | None = None
    """TIger's rounds by benchmark; 4 where not named."""
    timed: int = 50
    """Captions whose editing is timed."""

    def rounds_on(self, benchmark: str) -> int:
        return (self.rounds or {}).get(benchmark, 4)

    def train_of(self, system: str) -> TrainConfig:
        return replace(self.train, learning_rate=self.lstm_rate) if system in LSTM_SYSTEMS else self.train

    def fingerprint(self) -> str:
        """A hash of all that decides what models come out."""
        return sha256(repr(sorted(asdict(self).items())).encode()).hexdigest()[:12]


PUBLISHED_ROUNDS = {"COCO-EE": 4, "Flickr30K-EE": 3}

SCALES = {
    ScaleName.TINY: Scale(
        ScaleName.TINY,
        encoder={
            "text": {"width": 16, "layers": 1, "heads": 2, "inner": 32},
            "vision": {"width": 16, "layers": 1, "heads": 2, "inner": 32},
            "co_width": 16,
            "co_heads": 2,
            "positions": 40,
            "segments": 1,
            "dropout": 0.0,
        },
        lstm={"width": 16, "word_width": 16, "attention_width": 8, "dropout": 0.0},
        train=TrainConfig(steps=12, batch_size=16, learning_rate=0.02, evaluate_every=12, checkpoint_every=12),
        lstm_rate=0.02,
        rounds=PUBLISHED_ROUNDS,
        timed=2,
    ),
    ScaleName.SMALL: Scale(
        ScaleName.SMALL,
        encoder=SMALL_ENCODER,
        lstm=SMALL_LSTM,
        train=SMALL,
        lstm_rate=SMALL_LSTM_RATE,
        seconds=720.0,
        min_count=MIN_COUNT,
        phrases=5000,  # 500 tell 8 % of our COCO-EE pairs, 5,000 tell 30 %
        rounds=PUBLISHED_ROUNDS,
    ),
    ScaleName.FULL: Scale(
        ScaleName.FULL,
        encoder={
            "text": {"width": 768, "layers": 12, "heads": 12, "inner": 3072},
            "vision": {"width": 1024, "layers": 6, "heads": 8, "inner": 1024},
            "co_width": 1024,
            "co_heads": 8,
        },
        lstm={"width": 1000, "word_width": 1000, "attention_width": 512, "dropout": 0.5},
        # 20 epochs of 97,567 pairs in batches of 64. The rate is that of the paper's heads: its encoders, which start
        # from ViLBERT's weights, learn at 2e-6, but ours start from nothing.
        train=TrainConfig(steps=30_490, batch_size=64, learning_rate=1e-4, evaluate_every=1525, checkpoint_every=500),
        lstm_rate=5e-4,
        rounds=PUBLISHED_ROUNDS,
        timed=200,
    ),
}
