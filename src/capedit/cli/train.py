"""`capedit train`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from capedit.cli.console import out, print_json
from capedit.cli.device import Device
from capedit.cli.progress import progress_bar, show_training
from capedit.errors import CapeditError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capedit.models.decoding import Knobs
    from capedit.training.examination import Question
    from capedit.training.material import Material
    from capedit.training.train_system import SystemRecipe
    from capedit.training.train_tiger import Start, Trained
    from capedit.vision import FeatureStore


def train(
    model: Annotated[
        str, typer.Argument(help="tiger-small, a .json recipe, or a compared system: updn, …", show_default=False)
    ],
    edits: Annotated[list[Path], typer.Option(help="Captions to learn from, wrong and right, in any format.")],
    features: Annotated[Path, typer.Option(help="Feature store of their images (`capedit features`).")],
    val: Annotated[list[Path], typer.Option(help="Instances that decide which checkpoint is best.")],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder of the run; called again, it resumes.")],
    captions: Annotated[
        list[Path] | None, typer.Option(help="Right captions of the images, in any format: COCO caption files, …")
    ] = None,
    concepts: Annotated[
        Path | None, typer.Option(help="concepts.safetensors of `capedit build encoder`, for the concept channel.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(  # torchrun would take --start for its own --start-method
            "--start", "--from", help="Go on from a model folder, or from `default`, the bundled one; see `fine-tune`."
        ),
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of every stage, for a try.")] = None,
    phrases: Annotated[int, typer.Option(min=0, help="v-lasertagger: size of its phrase vocabulary.")] = 500,
    device: Device = None,
    precision: Annotated[
        str | None, typer.Option(help="Of products of matrices: fp32, or bf16 (faster where hardware does it).")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the marks as JSON.")] = False,
) -> None:
    """Train an editor, stage after stage, and write a model folder that `capedit edit --model` takes.

    Images of `--val` are never trained on, whatever the files say. With `torchrun -m capedit train …` on many
    processes or GPUs.
    """
    from capedit.editing.bundle import bring_encoder, find_bundle
    from capedit.models.concept_files import ConceptTable
    from capedit.models.device import choose_device, working_on
    from capedit.models.systems import SYSTEMS
    from capedit.training.distributed import join_workers
    from capedit.training.loop import Progress
    from capedit.training.material import ImageKeys, Material, read_questions
    from capedit.training.recipe import Recipe
    from capedit.training.train_system import small_recipe
    from capedit.training.train_tiger import train_tiger
    from capedit.vision import FeatureStore

    if model in SYSTEMS and (captions or concepts or start):
        raise CapeditError(
            f"{model}: a compared system learns from --edits alone, without --captions, --concepts, --start"
        )
    if start and concepts:
        raise CapeditError("--concepts: the model of --start has its own")
    if model in SYSTEMS and precision:
        raise CapeditError(f"{model}: --precision is for TIger; compared systems train in fp32")
    chosen = choose_device(device)
    recipe = None if model in SYSTEMS else Recipe.load(model).shortened(steps).computed_in(precision)
    store = FeatureStore(features)
    keys = ImageKeys(store)
    material, questions = Material.read(edits, captions or [], keys), read_questions(val, keys)
    if recipe is None:
        with working_on(chosen):
            _train_system(small_recipe(model, steps, phrases), material, questions, store, output, json=json)
        return
    with working_on(chosen), join_workers() as workers, progress_bar() as progress:
        begun = None
        if start is not None:
            begun, knobs = _begin(start, store)
            recipe = recipe.continued(asdict(knobs))
        passed = {"concepts": recipe.concepts, "grounding": recipe.grounding}
        passed |= {stage.name: stage.train for stage in recipe.stages} | {"matching": recipe.matching}
        bars = {name: progress.add_task(name, total=way.steps) for name, way in passed.items() if way is not None}

        def watch(stage: str, step: Progress) -> None:
            show_training(progress, bars[stage], stage)(step)

        table = None if concepts is None else ConceptTable.load(concepts)
        trained = train_tiger(
            recipe, material, questions, store, table, output, start=begun, workers=workers, watch=watch
        )
        if not workers.leads:
            return
    if start is not None:
        bring_encoder(find_bundle(start), output / "model")
    marks = _finish(trained, recipe.name, store.header.encoder_hash, output)
    _show(marks, output / "model", json=json)


def _begin(model: str, store: "FeatureStore") -> "tuple[Start, Knobs]":
    """A trained model whose images are those of the store, and how it is used."""
    from capedit.editing.bundle import Bundle, find_bundle
    from capedit.editing.torch_modules import load_network
    from capedit.training.train_tiger import Start

    bundle = Bundle.load(find_bundle(model))
    if bundle.encoder != store.header.encoder_hash:
        raise CapeditError(f"{store.path}: made by another encoder than that of {bundle.folder} ({bundle.encoder})")
    return Start(load_network(bundle), bundle.vocabulary), bundle.knobs


def _show(marks: "Mapping[str, float]", model: Path, *, json: bool) -> None:
    if json:
        print_json(marks)
        return
    for name, value in marks.items():
        out.print(f"{name}: {value:.2f}")
    out.print(f"the model is in {model}")


def _train_system(
    recipe: "SystemRecipe",
    material: "Material",
    questions: "list[Question]",
    store: "FeatureStore",
    output: Path,
    *,
    json: bool,
) -> None:
    """One of the compared systems, in the shape of `capedit reproduce --scale small`."""
    from capedit.models.systems import SYSTEM_FILE, SystemCard, save_system
    from capedit.models.vocabulary import Vocabulary
    from capedit.training.distributed import join_workers
    from capedit.training.systems import SystemExamination
    from capedit.training.train_system import MIN_COUNT, train_system

    vocabulary = Vocabulary.from_captions((caption for _, *pair in material.edits for caption in pair), MIN_COUNT)
    with join_workers() as workers, progress_bar() as progress:
        bar = progress.add_task(recipe.system, total=recipe.train.steps)
        watch = show_training(progress, bar, recipe.system)
        trained = train_system(recipe, material, questions, vocabulary, store, output, workers=workers, watch=watch)
        if not workers.leads:
            return
    scores = SystemExamination(questions, store).scores(trained.system)
    save_system(trained.system, output / SYSTEM_FILE, SystemCard(store.header.encoder_hash, scores))
    _show({**scores, **trained.notes}, output, json=json)


def _finish(trained: "Trained", name: str, encoder: str, output: Path) -> dict[str, float]:
    """Calibrate, examine on all questions, and write the model folder."""
    from capedit.editing.export import Description, export_bundle
    from capedit.models.tiger_torch import TorchModules
    from capedit.training.calibration import calibrate, plot_reliability

    modules = TorchModules(trained.model, trained.vocabulary)
    calibrated = calibrate(modules, trained.examination)
    plot_reliability(calibrated, output / "reliability.png")
    marks = trained.examination(modules, calibrated.calibration)
    errors = {module: 100 * reliability.error for module, reliability in calibrated.after.items()}
    card = {"marks": marks, "calibration error": errors, "questions": len(trained.examination.questions)}
    description = Description(name, encoder, trained.examination.knobs, calibrated.calibration, card)
    export_bundle(trained.model, trained.vocabulary, description, output / "model", with_torch=True)
    return marks
