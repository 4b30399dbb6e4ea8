"""Train the image encoder of a finished editor further, through that editor: maps -> fit -> an encoder in its place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from capedit.edits import Alignment
from capedit.errors import CapeditError
from capedit.models.decoding import Calibration, Knobs
from capedit.models.device import placed
from capedit.models.efficientnet import EfficientNetLite
from capedit.models.efficientnet_tail import Tail
from capedit.models.tiger_torch import TorchModules
from capedit.training.checkpoint import load_checkpoint, load_into
from capedit.training.concepts import ConceptTask
from capedit.training.config import TrainConfig
from capedit.training.distributed import Workers
from capedit.training.examination import Examination, Question
from capedit.training.eye import Eye, EyeTask, SeenThrough
from capedit.training.loop import Progress, fit
from capedit.training.material import Material
from capedit.training.pairs import Lesson, Pair
from capedit.training.tiger import TigerTask, TigerTraining
from capedit.training.train_tiger import Start
from capedit.vision import FeatureStore

EXAMINED = 400
"""Questions asked while training; what counts is measured afterwards, with the whole model."""


@dataclass(frozen=True)
class EyeRecipe:
    """What is trained, and from what."""

    frozen_stages: int = 5
    """Stages that stay as they are."""
    grid: int = 4
    """The encoder's map is pooled to so many rows and columns."""
    edits: TigerTraining = field(
        default_factory=lambda: TigerTraining(
            keep_weight=1.0,
            alignment=Alignment.SHORTEST,
            right=1.0,  # a calibration is fitted to as many right captions as wrong ones
            holes=0.3,
            word_noise=0.01,
            factors={"delete": 2.0, "add": 0.3, "insert": 0.7, "match": 0.3},
        )
    )
    """What the editor would have needed to see."""


def train_eye(
    network: EfficientNetLite,
    editor: Start,
    material: Material,
    questions: Sequence[Question],
    maps: FeatureStore,
    config: TrainConfig,
    out: Path,
    *,
    recipe: EyeRecipe | None = None,
    knobs: Knobs | None = None,
    calibration: Calibration | None = None,
    workers: Workers | None = None,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> dict[str, float]:
    """Train, or go on training. The network is left as it came out; returns figures of the images of `questions`.

    `network` is the encoder whose tokens the editor reads, and `maps` what its frozen stages make of the images.
    `knobs` and `calibration` are the editor's: how it is used, and what its opinions mean.
    """
    recipe = recipe or EyeRecipe()
    if editor.model.config.concepts is None:
        raise CapeditError("the editor has no concept channel to tell the words of an image by")
    material = material.without({question.image for question in questions})
    if not material.edits:
        raise CapeditError(f"{maps.path}: holds no image to train on")
    model, vocabulary = placed(editor.model), editor.vocabulary
    lesson = Lesson.of(material.edits, material.right, vocabulary)
    eye = placed(Eye(Tail(network, recipe.frozen_stages), model, recipe.grid))
    seen, asked = SeenThrough(eye, maps, config.precision), questions[:: max(1, len(questions) // EXAMINED)]
    targets = [Pair(question.image, [], vocabulary.encode(question.target)) for question in asked]
    examination, modules = Examination(asked, seen, knobs or Knobs()), TorchModules(model, vocabulary)
    task = EyeTask(
        eye,
        TigerTask(model, vocabulary, lesson, maps, recipe.edits, lambda _: {}, calibration),
        ConceptTask(model.concepts, model.concept_words, lesson, seen, targets),
        lesson,
        maps,
        lambda: examination.scores(
            examination.answers(modules, [question.reference for question in asked], calibration=calibration)
        ),
    )
    fit(task, config, out / "run", workers=workers, watch=watch)
    best = load_checkpoint(out / "run" / "best.safetensors")
    load_into(eye, best.tensors, out / "run" / "best.safetensors")
    eye.tail.write_back(network)
    figures: dict[str, float] = best.state["figures"]
    return figures
