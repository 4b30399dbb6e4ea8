"""`capedit build eye`."""

import json as json_module
import os
from pathlib import Path
from shutil import copytree
from typing import Annotated

import typer

from capedit.cli.console import out, print_json
from capedit.cli.progress import progress_bar, show_training
from capedit.errors import CapeditError


def build_eye(
    images: Annotated[list[Path], typer.Option(help="Pictures: folders, files, or .txt lists of paths.")],
    edits: Annotated[list[Path], typer.Option(help="Captions to learn from, wrong and right, in any format.")],
    captions: Annotated[list[Path], typer.Option(help="Right captions of the images, in any format.")],
    val: Annotated[list[Path], typer.Option(help="Instances to examine it by; their images are never trained on.")],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder of the run; called again, it resumes.")],
    model: Annotated[str, typer.Option(help="The editor: a model folder, or `default`, the bundled one.")] = "default",
    encoder: Annotated[str | None, typer.Option(help="Its encoder, an .onnx file; by default its own.")] = None,
    variant: Annotated[str, typer.Option(help="lite0, lite1 or lite2.")] = "lite2",
    frozen: Annotated[int, typer.Option(min=1, max=6, help="First stages that stay as they are.")] = 5,
    steps: Annotated[int, typer.Option(min=1, help="Training steps.")] = 1300,
    batch_size: Annotated[int, typer.Option(min=1, help="Edits a step.")] = 64,
    learning_rate: Annotated[float, typer.Option(help="Peak learning rate.")] = 1.5e-4,
    precision: Annotated[str, typer.Option(help="Of products of matrices: fp32, or bf16.")] = "fp32",
    seed: Annotated[int, typer.Option(help="Everything random follows from it.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Train an editor's image encoder further, through the editor itself, which stays as it is.

    Writes the folder `model`: the same editor, with that encoder in it. Images of `--val` are never trained on. With
    `torchrun -m capedit build eye …` on many processes.
    """
    from capedit.editing.bundle import ENCODER, Bundle, find_bundle
    from capedit.editing.torch_modules import load_network
    from capedit.models.efficientnet import new_network
    from capedit.models.efficientnet_onnx import load_onnx
    from capedit.models.precision import Precision
    from capedit.training.config import TrainConfig
    from capedit.training.distributed import join_workers
    from capedit.training.maps import fill_maps
    from capedit.training.material import ImageKeys, Material, read_questions
    from capedit.training.train_encoder import write_encoder
    from capedit.training.train_eye import EyeRecipe, train_eye
    from capedit.training.train_tiger import Start
    from capedit.vision import FeatureStore, GridEncoder
    from capedit.vision.extraction import find_images
    from capedit.vision.registry import encoder_path

    bundle, recipe = Bundle.load(find_bundle(model)), EyeRecipe(frozen_stages=frozen)
    weights = encoder_path(encoder or bundle.own_encoder)
    if GridEncoder(weights).hash != bundle.encoder:
        raise CapeditError(f"{weights}: {bundle.folder} reads the tokens of another encoder ({bundle.encoder})")
    network = new_network(variant)
    load_onnx(network, weights)
    config = TrainConfig(
        steps,
        batch_size,
        learning_rate=learning_rate,
        warmup=0.06,
        average=0.985,
        seed=seed,
        evaluate_every=steps,  # the rate ends at nothing, and a few hundred questions are too few to choose by
        checkpoint_every=100,
        precision=Precision(precision),
    )
    with join_workers() as workers, progress_bar() as progress:
        if workers.leads:
            output.mkdir(parents=True, exist_ok=True)
            entries = find_images(images)
            mapping = progress.add_task("maps", total=len(entries))
            fill_maps(
                network,
                recipe.frozen_stages,
                entries,
                output / "maps",
                workers=os.cpu_count() or 1,
                report=lambda done: progress.update(mapping, completed=done),
            )
        workers.agree(True)  # maps are there
        maps = FeatureStore(output / "maps")
        keys = ImageKeys(maps)
        figures = train_eye(
            network,
            Start(load_network(bundle), bundle.vocabulary),
            Material.read(edits, captions, keys),
            read_questions(val, keys),
            maps,
            config,
            output,
            recipe=recipe,
            knobs=bundle.knobs,
            calibration=bundle.calibration,
            workers=workers,
            watch=show_training(progress, progress.add_task("eye", total=steps), "eye"),
        )
        if not workers.leads:
            return
    made = output / "model"
    copytree(bundle.folder, made, dirs_exist_ok=True)
    card = bundle.card | {"encoder": write_encoder(network, made / ENCODER, recipe.grid).hash}
    text = json_module.dumps(card, indent=2, ensure_ascii=False) + "\n"
    (made / "model.json").write_text(text, encoding="utf-8")
    if json:
        print_json(figures)
        return
    for name, value in figures.items():
        out.print(f"{name}: {value:.2f}")
