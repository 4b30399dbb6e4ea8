"""`capedit bench`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from capedit.cli.console import err, out, print_json
from capedit.cli.datasets import FormatOption
from capedit.data import open_dataset
from capedit.errors import CapeditError
from capedit.pipeline import EngineName, Treatment
from capedit.pipeline.durable import write_json
from capedit.pipeline.throughput import Measurement, conditions, measure, plot


def bench(
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
) -> None:
    """Measure how fast `capedit fix` is here: captions and images a second, memory, and how they grow.

    Example: `capedit bench --sizes 500,2000 --workers 1,2 --plot bench.png`
    """
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


def _numbers(option: str, text: str, *, least: int) -> list[int]:
    try:
        numbers = [int(part.replace("_", "")) for part in text.split(",")]
    except ValueError:
        raise CapeditError(f"{option} {text}: write whole numbers with commas between them") from None
    if not numbers or min(numbers) < least:
        raise CapeditError(f"{option} {text}: numbers must be at least {least}")
    return numbers
