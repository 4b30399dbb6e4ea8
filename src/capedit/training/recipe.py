"""How a model is made, as a small JSON file: its shape, its words, and the stages of its training."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from capedit.errors import CapeditError
from capedit.models.tiger import TigerConfig
from capedit.models.tiger_files import read_config
from capedit.training.config import TrainConfig
from capedit.training.tiger import TigerTraining, config_of

RECIPES = Path(__file__).parent / "recipes"


@dataclass(frozen=True)
class Stage:
    """One run of the loop; it starts from what the stage before left."""

    name: str
    captions: bool
    """Whether examples are plain captions (pre-training), and not edits."""
    train: TrainConfig
    tiger: TigerTraining
    taken: float = 1.0
    """How far the model goes from where the stage started to where it ended; half of the way is their mean."""

    def __post_init__(self) -> None:
        if not 0 < self.taken <= 1:
            raise ValueError(f"stage {self.name}: taken must lie in (0, 1], got {self.taken}")


@dataclass(frozen=True)
class Recipe:
    """All that decides what comes out, but for the data."""

    name: str
    min_count: int
    """How often a word must be seen to be in the vocabulary."""
    shape: Mapping[str, Any] | None
    """A `TigerConfig` in JSON, less the sizes that the data decide; None if the recipe is for models that have one."""
    knobs: Mapping[str, Any]
    """How the model is used when it is examined, and by default after."""
    stages: tuple[Stage, ...]
    grounding: TrainConfig | None = None
    """How the grounding is trained before all stages, if the shape has one."""
    concepts: TrainConfig | None = None
    """How the layers of the concept channel are trained before all stages, if the shape has some (`concept_layers`)."""
    matching: TrainConfig | None = None
    """How the matching head is trained after all stages, by itself, if the model has one."""

    @classmethod
    def load(cls, name: str | Path) -> "Recipe":
        """One of the recipes that come with the package, or the path of a JSON file."""
        path = Path(name) if str(name).endswith(".json") else RECIPES / f"{name}.json"
        if not path.is_file():
            known = ", ".join(sorted(found.stem for found in RECIPES.glob("*.json")))
            raise CapeditError(f"recipe {name}: not a .json file, and not one of {known}")
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            stages = tuple(
                Stage(
                    stage["name"],
                    bool(stage.get("captions")),
                    TrainConfig(**stage["train"]),
                    config_of(stage["tiger"]),
                    stage.get("taken", 1.0),
                )
                for stage in told["stages"]
            )
            apart = [
                TrainConfig(**told[name]) if name in told else None for name in ("grounding", "concepts", "matching")
            ]
            shape = told.get("shape")
            if not stages and (shape is not None or "matching" not in told):
                raise ValueError("it needs a stage, or, for a trained model, `matching`")
            return cls(told["name"], told.get("min_count", 1), shape, told["knobs"], stages, *apart)
        except (ValueError, KeyError, TypeError) as error:
            raise CapeditError(f"{path}: not a recipe ({error!r})") from error

    def continued(self, knobs: Mapping[str, Any]) -> "Recipe":
        """The recipe for a model that is trained already, and is used in this way."""
        return replace(self, knobs={**knobs, **self.knobs})

    def shortened(self, steps: int | None) -> "Recipe":
        """The recipe with so many steps in every stage, for a try."""
        return self if steps is None else self._trained(steps=steps, evaluate_every=steps)

    def computed_in(self, precision: str | None) -> "Recipe":
        """The recipe with every stage in this precision."""
        return self if precision is None else self._trained(precision=precision)

    def _trained(self, **changes: Any) -> "Recipe":
        """With these changes to how every stage is trained."""
        stages = tuple(replace(stage, train=replace(stage.train, **changes)) for stage in self.stages)
        grounding, concepts, matching = (
            each and replace(each, **changes) for each in (self.grounding, self.concepts, self.matching)
        )
        return replace(self, stages=stages, grounding=grounding, concepts=concepts, matching=matching)

    def config(self, vocabulary: int, feature_width: int, concepts: int) -> TigerConfig:
        """The model's shape for these data."""
        if self.shape is None:
            raise CapeditError(f"recipe {self.name}: goes on from a trained model, so say which one (--start)")
        encoder = {**self.shape["encoder"], "vocabulary": vocabulary, "feature_width": feature_width}
        told = {**self.shape, "encoder": encoder}
        shown, layers = told.pop("concepts_shown", 0), told.pop("concept_layers", 0)
        told["concepts"] = {"words": concepts, "shown": shown, "layers": layers} if concepts and shown else None
        if self.grounding is not None:
            told["grounding"] = {"vocabulary": vocabulary, "feature_width": feature_width, **told["grounding"]}
        return read_config(told)
