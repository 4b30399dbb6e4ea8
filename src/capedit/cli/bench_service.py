"""`capedit bench --service`."""

import tempfile
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from capedit.cli.console import err, out, print_json
from capedit.cli.progress import progress_bar
from capedit.data import Image, ImageBytes
from capedit.errors import CapeditError
from capedit.pipeline.durable import write_json
from capedit.pipeline.throughput import conditions, made
from capedit.server.child import started
from capedit.server.load import Findings, Load, Plan, images_in, measure
from capedit.server.load_plot import plot

_MADE = 64


def bench_service(
    plan: Plan,
    model: str,
    threads: int,
    folder: Path | None,
    output: Path | None,
    picture: Path | None,
    *,
    as_json: bool,
) -> None:
    """Start the service, drive it, and show what came of it."""
    images = _made_images() if folder is None else images_in(folder)
    surroundings = conditions()
    with progress_bar() as bar:
        task = bar.add_task("starting the service", total=plan.total)
        with started(model, max_waiting=plan.max_waiting, threads=threads) as child:
            found = measure(
                child,
                images,
                plan,
                report=lambda doing, done: bar.update(task, description=doing, completed=done),
                tell=_tell,
            )
    figures = {"conditions": surroundings, "plan": asdict(plan), **asdict(found), "failures": found.failures}
    if output is not None:
        write_json(output, figures)
    if picture is not None:
        plot(found, picture)
    if as_json:
        print_json(figures)
    else:
        _show(found, plan)
    if found.failures:
        raise CapeditError(f"{found.failures} requests got an answer that should not have come")


def _made_images() -> list[Image]:
    with tempfile.TemporaryDirectory(prefix="capedit-bench-") as folder:
        return [ImageBytes(one.image.read()) for one in made(Path(folder), _MADE, 1) if one.image is not None]


def _show(found: Findings, plan: Plan) -> None:
    out.print(f"{found.model}, {plan.max_waiting} places")
    table = Table("requests", "clients", "requests/s", "p50 ms", "p95 ms", "p99 ms", "other answers", box=None)
    for load in [*found.loads, found.crowd]:
        marks = ("" if mark is None else f"{mark:,.0f}" for mark in (load.p50, load.p95, load.p99))
        table.add_row(load.kind, str(load.clients), f"{load.edits_per_second:,.1f}", *marks, _others(load))
    out.print(table)
    if found.memory:
        held = ", ".join(f"{requests:,}: {size / 2**20:,.0f}" for requests, size in found.memory)
        out.print(f"memory after so many requests, MB: {held}")


def _tell(load: Load) -> None:
    err.print(f"{load.kind}, {load.clients} clients: {load.edits_per_second:,.1f} requests/s")


def _others(load: Load) -> str:
    others = [f"{count:,} x {status or 'no answer'}" for status, count in load.answers.items() if status != 200]
    return ", ".join(others) or "none"
