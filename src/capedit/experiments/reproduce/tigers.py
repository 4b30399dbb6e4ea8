"""TIger as the tables need it: by name, from parts of two, and behind the face of the compared systems."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from capedit.errors import CapeditError
from capedit.experiments.reproduce.scale import Scale
from capedit.models.decoding import Breaks, Calibration, Knobs, decode
from capedit.models.device import array
from capedit.models.runtime import Images, Modules
from capedit.models.system import Outcome, edit_what_fits
from capedit.models.tiger import Tiger
from capedit.models.tiger_torch import TorchModules
from capedit.models.vilbert import VisionInput
from capedit.models.vocabulary import Vocabulary
from capedit.training.config import TrainConfig
from capedit.training.recipe import Recipe, Stage
from capedit.training.tiger import TigerTraining


@dataclass(frozen=True)
class Variant:
    """A TIger of the paper's method, as published: three separate modules, gold states alone."""

    keep_weight: float = 1.5
    """Lambda."""
    pretrained: bool = False

    @property
    def name(self) -> str:
        return f"tiger-{self.keep_weight}" + ("-pretrained" if self.pretrained else "")


MAIN = Variant()
LAMBDAS = (1.0, 1.2, 1.5, 2.0)


def knobs(rounds: int) -> Knobs:
    """How the paper edits: no thresholds, no repairs."""
    return Knobs(rounds=rounds, fluent=False)


def recipe(variant: Variant, scale: Scale, train: TrainConfig, rounds: int) -> Recipe:
    """How a variant learns to edit."""
    training = TigerTraining(keep_weight=variant.keep_weight)
    return _recipe(variant.name, scale, Stage("edits", False, train, training), rounds, shared=False)


def pretraining(scale: Scale, train: TrainConfig, rounds: int) -> Recipe:
    """What comes before that in a variant that is pre-trained: one encoder fills holes in right captions.

    It stands for ViLBERT's pre-training, from which the paper starts all three modules.
    """
    steps = max(1, round(scale.pretraining * train.steps))
    before = replace(train, steps=steps, evaluate_every=steps)  # its edits mean nothing yet: no choice by them
    training = TigerTraining(holes=1.0, factors={"delete": 0.0})  # in a right caption there is nothing to delete
    return _recipe("pre-training", scale, Stage("captions", True, before, training), rounds, shared=True)


def _recipe(name: str, scale: Scale, stage: Stage, rounds: int, *, shared: bool) -> Recipe:
    shape: dict[str, Any] = {"encoder": scale.encoder, "shared": shared, "matching": False}
    return Recipe(name, scale.min_count, shape, {"rounds": rounds, "fluent": False}, (stage,))


def start_from(model: Tiger, pretrained: Tiger) -> None:
    """Give each module the one encoder that was trained before; heads start anew, but for the words'."""
    trained = pretrained.encoders["all"].state_dict()
    for encoder in model.encoders.values():
        encoder.load_state_dict(trained)
    model.words.load_state_dict(pretrained.words.state_dict())


def combined(deleter: Tiger, adder: Tiger) -> Tiger:
    """Tagger_del of one, Tagger_add and Inserter of the other.

    The modules share nothing but the norm at which gradients are clipped, so this is as if they had been trained so.
    """
    if deleter.config != adder.config or deleter.config.shared:
        raise CapeditError("only TIgers of one shape with separate modules can be combined")
    made = Tiger(deleter.config)
    weights = adder.state_dict()
    for name, tensor in deleter.state_dict().items():
        if name.startswith(("encoders.delete.", "taggers.delete.")):
            weights[name] = tensor
    made.load_state_dict(weights)
    return made.eval()


class TigerEditor:
    """A TIger that edits like the compared systems do; by default in the paper's way, with no repairs."""

    def __init__(
        self,
        modules: Modules,
        knobs: Knobs,
        *,
        calibration: Calibration | None = None,
        breaks: Breaks | None = None,
    ) -> None:
        self.modules, self._knobs, self._calibration, self._breaks = modules, knobs, calibration, breaks

    @classmethod
    def published(cls, model: Tiger, vocabulary: Vocabulary, rounds: int) -> "TigerEditor":
        return cls(TorchModules(model, vocabulary), knobs(rounds))

    def edit(self, vision: VisionInput, captions: Sequence[Sequence[str]]) -> list[Outcome]:
        return edit_what_fits(vision, captions, self.modules.max_words, self._edit)

    def _edit(self, vision: VisionInput, captions: Sequence[Sequence[str]]) -> list[Outcome]:
        features, locations = array(vision.features), array(vision.locations)
        counts = np.full(len(captions), features.shape[1]) if vision.mask is None else array(vision.mask).sum(1)
        seen = self.modules.see(Images(features, locations, counts))
        drafts = decode(self.modules, seen, captions, self._knobs, calibration=self._calibration, breaks=self._breaks)
        return [Outcome.edited(draft.trace()) for draft in drafts]
