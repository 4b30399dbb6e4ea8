"""TIger as the tables need it: by name, from parts of two, and behind the face of the compared systems."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from capedit.edits import Trace
from capedit.errors import CapeditError
from capedit.experiments.reproduce.scale import Scale
from capedit.models.decoding import Knobs, decode
from capedit.models.runtime import Images
from capedit.models.system import Outcome
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
    """How a variant is trained. Pre-training fills holes in right captions; the paper's is that of ViLBERT."""
    shape: dict[str, Any] = {"encoder": scale.encoder, "shared": False, "matching": False}
    training = TigerTraining(keep_weight=variant.keep_weight, body_rate=scale.body_rate)
    stages = [Stage("edits", False, train, training)]
    if variant.pretrained:
        before = replace(train, steps=max(1, round(scale.pretraining * train.steps)))
        stages.insert(0, Stage("captions", True, before, replace(training, holes=1.0, body_rate=1.0)))
    return Recipe(variant.name, scale.min_count, shape, {"rounds": rounds, "fluent": False}, tuple(stages))


def combined(deleter: Tiger, adder: Tiger) -> Tiger:
    """Tagger_del of one, Tagger_add and Inserter of the other. The modules share nothing, so this is as if they had
    been trained that way."""
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
    """A TIger that edits like the compared systems do."""

    def __init__(self, model: Tiger, vocabulary: Vocabulary, rounds: int) -> None:
        self.model, self._knobs = model, knobs(rounds)
        self._modules = TorchModules(model, vocabulary)

    def edit(self, vision: VisionInput, captions: Sequence[Sequence[str]]) -> list[Outcome]:
        """Captions too long for the encoder are left as they are."""
        fitting = [at for at, caption in enumerate(captions) if len(caption) <= self._modules.max_words]
        outcomes = [Outcome.edited(Trace(tuple(caption), ())) for caption in captions]
        if fitting:
            rows = torch.tensor(fitting)
            images = vision.features[rows].numpy(), vision.locations[rows].numpy()
            tokens = vision.features.shape[1]
            counts = torch.full((len(rows),), tokens) if vision.mask is None else vision.mask[rows].sum(1)
            seen = self._modules.see(Images(*images, counts.numpy()))
            drafts = decode(self._modules, seen, [captions[at] for at in fitting], self._knobs)
            for at, draft in zip(fitting, drafts, strict=True):
                outcomes[at] = Outcome.edited(draft.trace())
        return outcomes
