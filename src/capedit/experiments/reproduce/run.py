"""Table after table: train, measure, write; what is there already is not done again."""

import json
import os
import platform
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import torch

import capedit
from capedit.experiments.reproduce.benchmark import Benchmark
from capedit.experiments.reproduce.examples import Example, choose_examples
from capedit.experiments.reproduce.paper import PAPER
from capedit.experiments.reproduce.report import Report, write_report
from capedit.experiments.reproduce.scale import Scale, ScaleName
from capedit.experiments.reproduce.table import Table
from capedit.experiments.reproduce.tables import PLANS, fill
from capedit.experiments.reproduce.tigers import MAIN
from capedit.experiments.reproduce.workshop import Model, Workshop, name_of
from capedit.metrics import SpiceScorer
from capedit.models.systems import SYSTEMS
from capedit.training.distributed import Workers
from capedit.training.loop import Progress

EXAMPLES = 6


def reproduce(
    scale: Scale,
    benchmarks: Sequence[Benchmark],
    out: Path,
    *,
    tables: Sequence[int] = tuple(PAPER),
    spice: SpiceScorer | None = None,
    images: Path | None = None,
    workers: Workers | None = None,
    watch: Callable[[str, Progress], None] = lambda name, progress: None,
) -> Path | None:
    """Make tables and write the report into `out`; returns its page, or None in a process that does not lead.

    Models and their outputs are kept in `out/work`, tables in `out/tables`: called again, only what is missing is
    made, and the report holds all tables made so far at this scale on these data. `images` is a folder of pictures
    for the examples, named as in the feature store.
    """
    workers = workers or Workers()
    shops = [
        Workshop(scale, benchmark, out / "work", spice=spice, workers=workers, watch=watch) for benchmark in benchmarks
    ]
    kept = out / "tables" / _identity(shops)
    if workers.world > 1:  # processes train together; then one of them measures, and nobody waits for it
        for number in tables:
            _prepare(number, shops)
        if not workers.leads:
            return None
    page = None
    for number in tables:
        if workers.world == 1:
            _prepare(number, shops)
        _keep(number, shops, kept)
        page = write_report(Report(_tables(kept), conditions(shops), _examples(shops, images)), out)
    return page


def conditions(shops: Sequence[Workshop]) -> list[str]:
    """Under which our numbers hold."""
    scale = shops[0].scale
    told = [
        f"Scale: {scale.name}."
        + (" Made data and a few steps: the numbers mean nothing." if scale.name is ScaleName.TINY else ""),
        *(shop.benchmark.describe() + "." for shop in shops),
        "TIger is the paper's method here: three separate modules, gold states, no concept channel, no repairs; "
        "the same encoder shape, words, visual tokens and training time as the other systems.",
        f"Machine: {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, torch "
        f"{torch.__version__}; capedit {capedit.__version__}.",
        "Steps (ES, D, A) are counted in words, where the paper counts word pieces.",
    ]
    for shop in shops:
        if shop.signature is not None:
            told.append(f"{shop.benchmark.name}, scores: {shop.signature}.")
        models: list[Model] = [*SYSTEMS, MAIN]
        notes = [(name_of(model), shop.notes(model)) for model in models if shop.is_ready(model)]
        trained = ", ".join(f"{name} {note['steps']:,.0f} steps in {note['seconds']:,.0f} s" for name, note in notes)
        told.append(f"{shop.benchmark.name}, training: {trained or 'none yet'}.")
        told += [
            f"{shop.benchmark.name}, {name}: {', '.join(f'{what} {value:,.1f}' for what, value in note.items())}."
            for name, note in notes
            if note.get("pairs skipped")
        ]
    if shops[0].spice is not None:
        told.append(f"S is {shops[0].spice.kind}, not the Java original.")
    return told


def _identity(shops: Sequence[Workshop]) -> str:
    told = [shop.folder.name + ("" if shop.spice is None else shop.spice.kind) for shop in shops]
    return f"{shops[0].scale.name}-{sha256(repr(told).encode()).hexdigest()[:12]}"


def _prepare(number: int, shops: Sequence[Workshop]) -> None:
    for shop in shops:
        if shop.benchmark.name in PLANS[number].benchmarks:
            for model in PLANS[number].models:
                shop.prepare(model)


def _keep(number: int, shops: Sequence[Workshop], folder: Path) -> None:
    path = folder / f"table-{number}.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(fill(number, shops).to_json(), indent=2) + "\n", encoding="utf-8")


def _tables(folder: Path) -> dict[int, Table]:
    found = [Table.from_json(json.loads(path.read_text(encoding="utf-8"))) for path in folder.glob("table-*.json")]
    return {table.number: table for table in sorted(found, key=lambda table: table.number)}


def _examples(shops: Sequence[Workshop], images: Path | None) -> list[Example]:
    return [example for shop in shops if shop.has_outputs(MAIN) for example in choose_examples(shop, EXAMPLES, images)]
