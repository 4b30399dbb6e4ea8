"""`capedit convert`."""

from pathlib import Path
from typing import Annotated

import typer

from capedit.cli.console import out, print_json, warn
from capedit.cli.datasets import FieldOption, FormatOption, StrictOption, account, open_for, watched
from capedit.data import FORMATS, write_dataset


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The dataset to read.", show_default=False)],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Where to write it.", show_default=False)],
    format: FormatOption = None,
    to: Annotated[
        str | None, typer.Option(help=f"Output format, where OUT does not tell: {', '.join(FORMATS)}.")
    ] = None,
    field: FieldOption = None,
    strict: StrictOption = False,
    json: Annotated[bool, typer.Option("--json", help="Print an account as JSON.")] = False,
) -> None:
    """Convert a dataset from any format to any other, losing nothing.

    What the new format cannot hold is kept in a folder beside it (`OUT.capedit`) and put back by the way home.
    Example: `capedit convert captions_train2014.json captions.parquet`
    """
    dataset = open_for(source, format, field, strict)
    written = write_dataset(watched(dataset, "converting"), target, to, template=dataset)
    for problem in written.problems:
        warn(str(problem))
    if json:
        bad = len(dataset.problems) + len(written.problems)
        print_json({"path": str(target), "format": written.format, "instances": written.count, "problems": bad})
    else:
        out.print(f"{written.count:,} captions: {dataset.format.name} -> {written.format}, {target}")
    account(dataset)
