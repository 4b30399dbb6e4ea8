"""`capedit stats`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from capedit.cli.console import out, print_json
from capedit.cli.datasets import FieldOption, FormatOption, StrictOption, account, open_for, watched
from capedit.data.statistics import Statistics, collect_statistics

_SHOWN_ROUNDS = 6


def stats(
    file: Annotated[Path, typer.Argument(help="Pairs of reference and target captions.", show_default=False)],
    format: FormatOption = None,
    field: FieldOption = None,
    strict: StrictOption = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Tell what a dataset of caption pairs is like: Table 1 of the paper, and how many rounds its gold edits need.

    Example: `capedit stats COCO_EE_val.json`
    """
    dataset = open_for(file, format, field, strict)
    statistics = collect_statistics(
        (instance.image_id, instance.reference_tokens, instance.target_tokens)
        for instance in watched(dataset, "reading")
        if instance.target_tokens is not None
    )
    if json:
        print_json(statistics.to_json())
    else:
        out.print(_figures(statistics))
        out.print(_rounds(statistics))
    account(dataset)


def _figures(statistics: Statistics) -> Table:
    table = Table("", "value", title="Pairs of reference and target", title_justify="left")
    for name, value in statistics.to_json().items():
        if name != "rounds":
            table.add_row(name.replace("_", " "), f"{value:,.2f}" if isinstance(value, float) else f"{value:,}")
    return table


def _rounds(statistics: Statistics) -> Table:
    rounds = [str(number) for number in range(1, _SHOWN_ROUNDS + 1)]
    table = Table("alignment", "order", *rounds, title="% rebuilt exactly within so many rounds", title_justify="left")
    for alignment, orders in statistics.rounds.items():
        for order, shares in orders.items():
            cells = [*shares, *[100.0] * _SHOWN_ROUNDS][:_SHOWN_ROUNDS] if shares else ["-"] * _SHOWN_ROUNDS
            table.add_row(alignment, order, *(f"{cell:.2f}" if isinstance(cell, float) else cell for cell in cells))
    return table
