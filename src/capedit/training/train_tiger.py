"""Train TIger from a recipe: setup -> main -> fit, stage after stage."""

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from capedit.errors import CapeditError
from capedit.models.concept_files import ConceptTable
from capedit.models.decoding import Knobs
from capedit.models.device import CPU, placed, working_on
from capedit.models.mean_weights import mean_weights
from capedit.models.tiger import Tiger
from capedit.models.tiger_files import save_tiger
from capedit.models.vocabulary import Vocabulary
from capedit.training.checkpoint import load_checkpoint, load_into
from capedit.training.concepts import ConceptTask
from capedit.training.config import TrainConfig
from capedit.training.distributed import Workers
from capedit.training.examination import Examination, Question
from capedit.training.grounding import GroundingTask
from capedit.training.loop import Progress, fit
from capedit.training.matching import MatchingTask
from capedit.training.material import Material
from capedit.training.pairs import Lesson, Pair
from capedit.training.recipe import Recipe, Stage
from capedit.training.tiger import TigerTask
from capedit.vision import FeatureStore

EXAMINED = 1000
"""Questions asked while training; the report asks all."""


@dataclass(frozen=True)
class Setup:
    """Everything that all stages share."""

    model: Tiger
    vocabulary: Vocabulary
    material: Material
    store: FeatureStore
    examination: Examination

    @cached_property
    def lesson(self) -> Lesson:
        """All of the material, in the words of the model."""
        return Lesson.of(self.material.edits, self.material.right, self.vocabulary)


@dataclass(frozen=True)
class Trained:
    """What came out, and all the questions to examine it by."""

    model: Tiger
    vocabulary: Vocabulary
    examination: Examination


class Start(NamedTuple):
    """A trained model to go on from."""

    model: Tiger
    vocabulary: Vocabulary


def train_tiger(
    recipe: Recipe,
    material: Material,
    questions: Sequence[Question],
    store: FeatureStore,
    concepts: ConceptTable | None,
    out: Path,
    *,
    start: Start | None = None,
    workers: Workers | None = None,
    watch: Callable[[str, Progress], None] = lambda stage, progress: None,
) -> "Trained":
    """Train, or go on training. Each stage has its folder in `out`; the finished weights are beside them.

    With a `start`, its shape, words and evidence stay as they are, and it passes the stages of the recipe
    (`Recipe.continued`).
    """
    ready = setup(recipe, material, questions, store, concepts, start)
    leads = workers is None or workers.leads
    if leads:
        out.mkdir(parents=True, exist_ok=True)
        ready.vocabulary.save(out / "vocabulary.json")
        described = {**asdict(recipe), "examined on": len(ready.examination.questions)}
        (out / "recipe.json").write_text(json.dumps(described, indent=2, default=list) + "\n", encoding="utf-8")
    if start is None:
        if recipe.concepts is not None and ready.model.config.concepts is not None:
            learn_concepts(ready, recipe.concepts, out / "concepts", workers, partial(watch, "concepts"))
        if recipe.grounding is not None:
            ground(ready, recipe.grounding, out / "grounding", workers, partial(watch, "grounding"))
    for stage in recipe.stages:
        main(ready, stage, out / stage.name, workers, partial(watch, stage.name))
    if recipe.matching is not None and ready.model.match is not None:
        learn_matching(ready, recipe.matching, out / "matching", workers, partial(watch, "matching"))
    if leads:
        save_tiger(ready.model, out / "weights.safetensors")
    return Trained(ready.model.eval(), ready.vocabulary, Examination(questions, store, Knobs(**recipe.knobs)))


def setup(
    recipe: Recipe,
    material: Material,
    questions: Sequence[Question],
    store: FeatureStore,
    concepts: ConceptTable | None,
    start: Start | None = None,
) -> Setup:
    """The words, the model as it starts, and the examination."""
    material = material.without({question.image for question in questions})
    if not material.edits:
        raise CapeditError(f"{store.path}: holds no image of any edit to train on")
    if concepts is not None and concepts.encoder != store.header.encoder_hash:
        raise CapeditError(f"{store.path}: made by another encoder than the concept table's ({concepts.encoder})")
    chosen = questions[:: max(1, len(questions) // EXAMINED)]
    examination = Examination(chosen, store, Knobs(**recipe.knobs))
    if start is not None:
        return Setup(placed(start.model), start.vocabulary, material, store, examination)
    captions = [caption for _, caption in material.right]
    captions += [caption for _, source, target in material.edits for caption in (source, target)]
    vocabulary = Vocabulary.from_captions(captions, recipe.min_count)
    known = 0 if concepts is None else len(concepts.words)
    config = recipe.config(len(vocabulary), store.header.dim, known)  # refuses recipes for trained models
    torch.manual_seed(recipe.stages[0].train.seed)
    with working_on(CPU):  # the same start on every device
        if concepts is None or config.concepts is None:
            model = Tiger(config)
        else:
            model = Tiger(config, torch.tensor(vocabulary.encode(concepts.words)))
            model.concepts.load(concepts.weight, concepts.bias, concepts.prior)
    return Setup(placed(model), vocabulary, material, store, examination)


def ground(
    ready: Setup, config: TrainConfig, out: Path, workers: Workers | None, watch: Callable[[Progress], None]
) -> None:
    """Before all stages: the evidence that TIger will read, learned on all captioned images."""
    model = ready.model.grounding
    task = GroundingTask(model, ready.vocabulary, ready.lesson, ready.store, ready.examination.questions)
    fit(task, config, out, workers=workers, watch=watch)
    load_best(model, out)


def learn_concepts(
    ready: Setup, config: TrainConfig, out: Path, workers: Workers | None, watch: Callable[[Progress], None]
) -> None:
    """Likewise: what the cells of an image say together of its words."""
    head, questions = ready.model.concepts, ready.examination.questions
    targets = [Pair(asked.image, [], ready.vocabulary.encode(asked.target)) for asked in questions]
    task = ConceptTask(head, ready.model.concept_words, ready.lesson, ready.store, targets)
    fit(task, config, out, workers=workers, watch=watch)
    load_best(head, out)


def main(ready: Setup, stage: Stage, out: Path, workers: Workers | None, watch: Callable[[Progress], None]) -> None:
    """One stage: afterwards the model is as far as `Stage.taken` says on the way to the best weights of it."""
    begun = deepcopy(ready.model.state_dict())
    lesson = ready.lesson
    if stage.captions:
        right = ready.material.right
        lesson = Lesson.of([(image, c, c) for image, c in right], right, ready.vocabulary)
    task = TigerTask(ready.model, ready.vocabulary, lesson, ready.store, stage.tiger, ready.examination)
    fit(task, stage.train, out, workers=workers, watch=watch)
    load_best(ready.model, out)
    ready.model.load_state_dict(mean_weights(begun, ready.model.state_dict(), stage.taken))


def learn_matching(
    ready: Setup, config: TrainConfig, out: Path, workers: Workers | None, watch: Callable[[Progress], None]
) -> None:
    """After all stages: whether a caption fits, by what the finished Tagger_del reads."""
    task = MatchingTask(ready.model, ready.vocabulary, ready.lesson, ready.store, ready.examination.questions)
    if len(task):  # else no wrong caption has an image
        fit(task, config, out, workers=workers, watch=watch)
        load_best(ready.model, out)


def load_best(model: nn.Module, out: Path) -> None:
    """Give a model the best weights of a run."""
    best = out / "best.safetensors"
    load_into(model, load_checkpoint(best).tensors, best)
