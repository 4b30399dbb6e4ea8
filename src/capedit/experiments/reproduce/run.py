"""Table after table: train, measure, write; what is there already is not done again."""

import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path

import torch

import capedit
from capedit.errors import CapeditError
from capedit.experiments.reproduce.examples import Example, choose_examples
from capedit.experiments.reproduce.plan import in_order
from capedit.experiments.reproduce.report import Report, write_report
from capedit.experiments.reproduce.scale import ScaleName
from capedit.experiments.reproduce.table import Table
from capedit.experiments.reproduce.tables import PLANS, concerned, fill
from capedit.experiments.reproduce.tigers import MAIN
from capedit.experiments.reproduce.workshop import Model, Workshop, name_of
from capedit.models.device import describe_device

EXAMPLES = 6
REPORT_EVERY = 60.0
"""Seconds after which a report that is not complete yet is worth writing."""


def reproduce(
    shops: Sequence[Workshop],
    out: Path,
    *,
    tables: Iterable[int],
    images: Path | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Path | None:
    """Make tables and write the report into `out`; returns its page, or None in a process that does not lead.

    Models and their outputs are kept by the workshops, tables in `out/tables`: called again, only what is missing is
    made, and the report holds all tables made so far with these workshops. `images` is a folder of pictures for the
    examples, named as in the feature store.
    """
    workers, numbers = shops[0].workers, in_order(tables)
    for number in numbers:
        if not concerned(number, shops):
            raise CapeditError(f"table {number}: is about {' and '.join(PLANS[number].benchmarks)}, which is not given")
    kept = out / "tables" / _identity(shops)
    if workers.world > 1:  # processes train together; then one of them measures, and nobody waits for it
        for number in numbers:
            _prepare(number, shops)
        if not workers.leads:
            return None
    page, written = None, time.monotonic()
    for number in numbers:
        if workers.world == 1:
            _prepare(number, shops)
        tell(f"table {number}")
        _keep(number, shops, kept)
        if number == numbers[-1] or time.monotonic() > written + REPORT_EVERY:
            page = write_report(Report(_tables(kept), conditions(shops), _examples(shops, images)), out)
            written = time.monotonic()
    return page


def train_only(shops: Sequence[Workshop], names: Iterable[str]) -> None:
    """Train models that tables will ask for, and no more: to spread them over processes or machines."""
    known = {name_of(model): model for plan in PLANS.values() for model in plan.models}
    for name in names:
        if name not in known:
            raise CapeditError(f"model {name!r}: not one of {', '.join(known)}")
        for shop in shops:
            shop.prepare(known[name])


def conditions(shops: Sequence[Workshop]) -> list[str]:
    """Under which our numbers hold."""
    scale = shops[0].scale
    meaningless = " Made data and a few steps: the numbers mean nothing." if scale.name is ScaleName.TINY else ""
    gpu = f" on {describe_device()}" if describe_device() else ""
    told = [
        f"Scale: {scale.name}.{meaningless}",
        *(shop.benchmark.describe() + "." for shop in shops),
        _budget(shops[0]),
        "TIger is the paper's method here: three separate modules, gold states, no concept channel, no repairs. All "
        "systems have the same words, visual tokens and (where they have one) shape of the two-stream encoder.",
        "Of the checkpoints of a run, the best is taken by CIDEr-D on a part of the instances that are examined.",
        f"Machine: {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, torch "
        f"{torch.__version__}{gpu}; capedit {capedit.__version__}.",
        "Steps (ES, D, A) are counted in words, where the paper counts word pieces.",
    ]
    for shop in shops:
        if shop.signature is not None:
            told.append(f"{shop.benchmark.name}, scores: {shop.signature}.")
        told += _trainings(shop)
    if shops[0].spice is not None:
        told.append(f"S is {shops[0].spice.kind}, not the Java original.")
    return told


def _budget(shop: Workshop) -> str:
    if shop.scale.seconds is None:
        return f"Budget: {shop.scale.train.steps:,} steps of {shop.scale.train.batch_size} pairs for each model."
    return (
        f"Budget: {shop.scale.seconds / 60:g} CPU minutes for each model (TIger: for its three modules together), "
        "evaluations not counted. All TIgers get the same number of steps; pre-training comes on top."
    )


def _trainings(shop: Workshop) -> list[str]:
    models: dict[str, Model] = {name_of(model): model for plan in PLANS.values() for model in plan.models}
    notes = {name: shop.notes(model) for name, model in models.items() if shop.is_ready(model)}
    trained = [
        f"{name} {note['steps']:,.0f} steps of {note['batch']:.0f} pairs, {note['seconds'] / 60:,.1f} CPU min in all"
        for name, note in notes.items()
    ]
    skipped = [
        f"{name} cannot learn from {note['pairs skipped']:,.0f} pairs"
        + (
            f": its {note['phrases']:,.0f} phrases cover {note['% of pairs covered']:.1f} % of pairs and "
            f"{note['% of phrases covered']:.1f} % of additions"
            if "phrases" in note
            else ""
        )
        for name, note in notes.items()
        if note.get("pairs skipped")
    ]
    name = shop.benchmark.name
    return [f"{name}, trained: {'; '.join(trained) or 'nothing yet'}.", *(f"{name}, {line}." for line in skipped)]


def _identity(shops: Sequence[Workshop]) -> str:
    told = [(shop.folder.name, shop.spice and shop.spice.kind, shop.guest and shop.guest.bundle.hash) for shop in shops]
    return f"{shops[0].scale.name}-{sha256(repr(told).encode()).hexdigest()[:12]}"


def _prepare(number: int, shops: Sequence[Workshop]) -> None:
    for shop in concerned(number, shops):
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
    ready = [shop for shop in shops if shop.has_outputs(shop.output_name(MAIN))]
    return [example for shop in ready for example in choose_examples(shop, EXAMPLES, images)]
