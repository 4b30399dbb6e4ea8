"""`capedit reproduce`."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from capedit.cli.console import err, out, print_json
from capedit.cli.device import Device
from capedit.cli.progress import progress_bar, show_training
from capedit.errors import CapeditError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import TaskID

    from capedit.experiments.reproduce import Benchmark, Estimate, Scale, Workshop
    from capedit.training.distributed import Workers
    from capedit.training.loop import Progress

Files = list[Path] | None


def reproduce(
    table: Annotated[
        list[int] | None, typer.Option(min=1, max=9, help="A table of the paper, 1 to 9; may be repeated. [all]")
    ] = None,
    scale: Annotated[
        str, typer.Option(help="tiny: made data, a test; small: hours on two cores; full: the paper's.")
    ] = "tiny",
    output: Annotated[
        Path, typer.Option("--out", "-o", help="Where the report goes; called again, it goes on.")
    ] = Path("report"),
    minutes: Annotated[float | None, typer.Option(min=0, help="CPU minutes to train each model. [small: 12]")] = None,
    coco_train: Annotated[Files, typer.Option(help="COCO-EE train pairs (`capedit build coco-ee`).")] = None,
    coco_val: Annotated[Path | None, typer.Option(help="COCO-EE instances to examine on.")] = None,
    flickr_train: Annotated[
        Files, typer.Option(help="Flickr30K-EE train pairs (`capedit build flickr30k-ee`).")
    ] = None,
    flickr_val: Annotated[Path | None, typer.Option(help="Flickr30K-EE instances to examine on.")] = None,
    split: Annotated[str, typer.Option(help="Which split the instances to examine on are.")] = "val",
    features: Annotated[Path | None, typer.Option(help="Feature store of the images (`capedit features`).")] = None,
    images: Annotated[Path | None, typer.Option(help="Folder of the images, for the examples.")] = None,
    spice: Annotated[bool, typer.Option("--spice/--no-spice", help="Whether to compute SPICE (capedit).")] = False,
    guest: Annotated[
        str | None, typer.Option(help="A model folder, or `default` (the bundled model), shown beside the comparison.")
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what is yet to be done and how long it takes; stop.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Train this model and stop; for several processes. May be repeated.")
    ] = None,
    device: Device = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Make the tables of the paper, our rows beside its own: Markdown, LaTeX, CSV, plots and a web page.

    What a table needs is trained, or loaded where it was trained before. Example: `capedit reproduce --scale tiny`
    """
    from capedit.experiments.reproduce import SCALES, ScaleName, estimate, train_only
    from capedit.experiments.reproduce import reproduce as make
    from capedit.experiments.reproduce.paper import COCO, FLICKR
    from capedit.experiments.reproduce.tables import PLANS
    from capedit.models.device import choose_device, working_on
    from capedit.training.distributed import join_workers

    if scale not in SCALES:
        raise CapeditError(f"--scale {scale}: not one of {', '.join(SCALES)}")
    chosen = SCALES[ScaleName(scale)]
    if minutes is not None:
        chosen = replace(chosen, seconds=60 * minutes)
    files = {COCO: (coco_train, coco_val), FLICKR: (flickr_train, flickr_val)}
    with working_on(choose_device(device)), join_workers() as workers, progress_bar() as progress:
        if not workers.leads:
            workers.agree(True)  # made data are made by one process
        benchmarks = _benchmarks(chosen.name == "tiny", output, files, split, features)
        if workers.leads:
            workers.agree(True)
        at_hand = {benchmark.name for benchmark in benchmarks}
        tables = table or [number for number, planned in PLANS.items() if at_hand.intersection(planned.benchmarks)]
        bars: dict[str, TaskID] = {}

        def watch(name: str, step: "Progress") -> None:
            if name not in bars:
                bars[name] = progress.add_task(name, total=step.steps)
            show_training(progress, bars[name], name)(step)

        shops = _workshops(chosen, benchmarks, output, spice, guest, workers, watch)
        if plan:
            estimates = estimate(shops, tables)
            page = None
        elif only:
            train_only(shops, only)
            return
        else:
            page = make(shops, output, tables=tables, images=images, tell=lambda line: err.print(line, style="dim"))
    if plan and workers.leads:
        _show(estimates, json=json)
    if page is None:
        return
    if json:
        print_json({"page": str(page), "markdown": str(page.with_name("report.md"))})
    else:
        out.print(f"the report is {page}")


def _workshops(
    scale: "Scale",
    benchmarks: "list[Benchmark]",
    output: Path,
    spice: bool,
    guest: str | None,
    workers: "Workers",
    watch: "Callable[[str, Progress], None]",
) -> "list[Workshop]":
    from capedit.experiments.reproduce import Workshop
    from capedit.experiments.reproduce.guest import Guest
    from capedit.metrics import SpiceScorer

    scorer: SpiceScorer | None = None
    if spice:
        from capedit.metrics.spice import Spice

        scorer = Spice()
    return [
        Workshop(
            scale,
            benchmark,
            output / "work",
            spice=scorer,
            guest=Guest.load(guest, benchmark.store.header.encoder_hash) if guest else None,
            workers=workers,
            watch=watch,
        )
        for benchmark in benchmarks
    ]


def _benchmarks(
    made: bool, output: Path, files: dict[str, tuple[Files, Path | None]], split: str, features: Path | None
) -> "list[Benchmark]":
    from capedit.experiments.reproduce import Benchmark, BenchmarkFiles, make_benchmarks
    from capedit.vision import FeatureStore

    if made:
        return make_benchmarks(output / "made")
    given = {name: (train, asked) for name, (train, asked) in files.items() if train and asked}
    if not given or features is None:
        raise CapeditError("beyond --scale tiny, give --features, and train pairs and instances of a benchmark")
    store = FeatureStore(features)
    return [
        Benchmark.read(BenchmarkFiles(name, tuple(train), asked, split), store)
        for name, (train, asked) in given.items()
        if train and asked
    ]


def _show(estimates: "list[Estimate]", *, json: bool) -> None:
    """The plan; minutes are of one core."""
    total = sum(found.seconds for found in estimates)
    if json:
        print_json({"tables": [asdict(found) for found in estimates], "seconds": total})
        return
    trainings = Table("model to train", "benchmark", "steps", "pairs", "CPU min", box=None)
    tables = Table("table", "", "training", "measuring", "CPU min", box=None)
    for found in estimates:
        for each in found.trainings:
            trainings.add_row(
                each.model, each.benchmark, f"{each.steps:,}", f"{each.examples:,}", f"{each.seconds / 60:.1f}"
            )
        spent = found.seconds - found.measuring
        cells = (f"{seconds / 60:.1f}" for seconds in (spent, found.measuring, found.seconds))
        tables.add_row(str(found.table), found.title, *cells)
    out.print(trainings)
    out.print()
    out.print(tables)
    out.print(f"\nin all {total / 3600:.1f} CPU hours; models can be trained side by side, one a core, with --only")
