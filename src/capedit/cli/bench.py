"""`capedit bench`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from capedit.cli.bench_service import bench_service
from capedit.cli.console import err, out, print_json
from capedit.cli.datasets import FormatOption
from capedit.data import open_dataset
from capedit.errors import CapeditError
from capedit.pipeline import EngineName, Treatment
from capedit.pipeline.durable import write_json
from capedit.pipeline.throughput import Measurement, conditions, measure, plot
from capedit.server.load import Plan

_OF_FIX = {"source", "sizes", "workers", "per_image", "engine", "format", "encoder"}
_OF_SERVICE = {"images", "clients", "requests", "soak", "max_waiting", "threads"}
_PANEL = "With --service"
_PICTURES = (".png", ".svg", ".pdf")


def bench(
    context: typer.Context,
    source: Annotated[
        Path | None, typer.Argument(metavar="[DATASET]", help="Captions with images; default: made ones.")
    ] = None,
    sizes: Annotated[str, typer.Option(help="Captions of each run, as a list.")] = "256,1024",
    workers: Annotated[str, typer.Option(help="Workers of each run, as a list.")] = "1,2",
    per_image: Annotated[int, typer.Option(min=1, help="Captions of each made image.")] = 1,
    engine: Annotated[EngineName, typer.Option(help="Who does the work.")] = EngineName.LOCAL,
    format: FormatOption = None,
    model: Annotated[str, typer.Option(help="A model folder; default: the bundled model.")] = "default",
    encoder: Annotated[str, typer.Option(help="The encoder that the model was trained with.")] = "default",
    output: Annotated[Path | None, typer.Option("--out", "-o", help="Write the figures to this JSON file.")] = None,
    picture: Annotated[Path | None, typer.Option("--plot", help="Draw them to this file (.png, .svg).")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    service: Annotated[
        bool, typer.Option("--service", help="Measure `capedit serve` instead.", rich_help_panel=_PANEL)
    ] = False,
    images: Annotated[
        Path | None, typer.Option(help="A folder of images; default: made ones.", rich_help_panel=_PANEL)
    ] = None,
    clients: Annotated[str, typer.Option(help="Clients at once, as a list.", rich_help_panel=_PANEL)] = "1,8,32",
    requests: Annotated[
        int, typer.Option(min=1, help="Of each kind, by each number of clients.", rich_help_panel=_PANEL)
    ] = 300,
    soak: Annotated[
        int, typer.Option(min=0, help="Requests over which memory is watched; 0: none.", rich_help_panel=_PANEL)
    ] = 0,
    max_waiting: Annotated[
        int, typer.Option(min=1, help="Captions in the house at once; then 429.", rich_help_panel=_PANEL)
    ] = 64,
    threads: Annotated[int, typer.Option(min=0, help="Cores of the service; 0 means all.", rich_help_panel=_PANEL)] = 0,
) -> None:
    """Measure how fast `capedit fix` is here: captions and images a second, memory, and how they grow.

    With `--service`: how many requests a second `capedit serve` answers here, how long each takes, and what it holds.
    Examples: `capedit bench --sizes 500,2000 --workers 1,2 --plot bench.png`, `capedit bench --service --soak 10000`
    """
    _refuse(context, _OF_FIX if service else _OF_SERVICE, "goes without --service" if service else "needs --service")
    _check_targets(output, picture)
    if service:
        plan = Plan(tuple(_numbers("--clients", clients, least=1)), requests, max_waiting, soak)
        bench_service(plan, model, threads, images, output, picture, as_json=json)
        return
    dataset = None if source is None else open_dataset(source, format)

    def tell(one: Measurement) -> None:
        err.print(f"{one.captions:,} captions, {one.workers} workers: {one.captions_per_second:,.1f} captions/s")

    treatment = Treatment(model, encoder)
    found = measure(
        dataset,
        _numbers("--sizes", sizes, least=1),
        _numbers("--workers", workers, least=0),
        treatment=treatment,
        engine=engine,
        per_image=per_image,
        report=tell,
    )
    figures = {
        "conditions": conditions(),
        "model": treatment.bundle().label,
        "runs": [asdict(one) for one in found],
    }
    if output is not None:
        write_json(output, figures)
    if picture is not None:
        plot(found, picture)
    if json:
        print_json(figures)
        return
    table = Table("engine", "workers", "captions", "captions/s", "images/s", "run MB", "worker MB", "seconds", box=None)
    for one in found:
        speeds = f"{one.captions_per_second:,.1f}", f"{one.images_per_second:,.1f}"
        memory = f"{one.memory_run / 2**20:,.0f}", f"{one.memory_worker / 2**20:,.0f}"
        table.add_row(one.engine, str(one.workers), f"{one.captions:,}", *speeds, *memory, f"{one.seconds:.1f}")
    out.print(table)


def _refuse(context: typer.Context, options: set[str], why: str) -> None:
    """What would be passed over in silence is said to be out of place."""
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name)
        if name in options and given is not None and given.name == "COMMANDLINE":
            raise CapeditError(f"{'DATASET' if name == 'source' else parameter.opts[0]} {why}")


def _check_targets(output: Path | None, picture: Path | None) -> None:
    """Before minutes of measuring, not after."""
    for path in (output, picture):
        if path is not None and not path.parent.is_dir():
            raise CapeditError(f"{path}: there is no folder {path.parent}")
    if picture is not None and picture.suffix.lower() not in _PICTURES:
        raise CapeditError(f"--plot {picture}: must end in one of {', '.join(_PICTURES)}")


def _numbers(option: str, text: str, *, least: int) -> list[int]:
    try:
        numbers = [int(part.replace("_", "")) for part in text.split(",")]
    except ValueError:
        raise CapeditError(f"{option} {text}: write whole numbers with commas between them") from None
    if not numbers or min(numbers) < least:
        raise CapeditError(f"{option} {text}: numbers must be at least {least}")
    return numbers
