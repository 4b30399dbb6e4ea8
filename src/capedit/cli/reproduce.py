"""`capedit reproduce`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from capedit.cli.console import out, print_json
from capedit.cli.progress import progress_bar, show_training
from capedit.errors import CapeditError

if TYPE_CHECKING:
    from rich.progress import TaskID

    from capedit.experiments.reproduce import Benchmark
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
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Make the tables of the paper, our rows beside its own: Markdown, LaTeX, CSV, plots and a web page.

    What a table needs is trained, or loaded where it was trained before. Example: `capedit reproduce --scale tiny`
    """
    from capedit.experiments.reproduce import SCALES, ScaleName
    from capedit.experiments.reproduce import reproduce as make
    from capedit.experiments.reproduce.paper import COCO, FLICKR, PAPER
    from capedit.metrics import SpiceScorer
    from capedit.training.distributed import join_workers

    if scale not in SCALES:
        raise CapeditError(f"--scale {scale}: not one of {', '.join(SCALES)}")
    chosen = SCALES[ScaleName(scale)]
    benchmarks = _benchmarks(
        chosen.name == "tiny",
        output,
        {COCO: (coco_train, coco_val), FLICKR: (flickr_train, flickr_val)},
        split,
        features,
    )
    scorer: SpiceScorer | None = None
    if spice:
        from capedit.metrics.spice import Spice

        scorer = Spice()
    with join_workers() as workers, progress_bar() as progress:
        bars: dict[str, TaskID] = {}

        def watch(name: str, step: "Progress") -> None:
            if name not in bars:
                bars[name] = progress.add_task(name, total=step.steps)
            show_training(progress, bars[name], name)(step)

        page = make(
            chosen,
            benchmarks,
            output,
            tables=sorted(set(table or PAPER)),
            spice=scorer,
            images=images,
            workers=workers,
            watch=watch,
        )
    if page is None:
        return
    if json:
        print_json({"page": str(page), "markdown": str(page.with_name("report.md"))})
    else:
        out.print(f"the report is {page}")


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
