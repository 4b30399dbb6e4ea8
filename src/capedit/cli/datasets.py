"""Datasets on the command line: the options that all commands share, progress, and an account of bad records."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from capedit.cli.console import ExitCode, err, warn
from capedit.data import FORMATS, DataError, Dataset, Instance, open_dataset

FormatOption = Annotated[
    str | None, typer.Option("--format", help=f"Instead of finding it out: {', '.join(FORMATS)}.", show_default=False)
]
FieldOption = Annotated[
    list[str] | None,
    typer.Option("--field", help="ROLE=NAME, where a file uses other names: reference=alt_text.", show_default=False),
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Stop at the first bad record.")]

_SHOWN = 20  # bad records named one by one; the rest are counted


def open_for(path: Path, format: str | None, field: list[str] | None, strict: bool) -> Dataset:
    """Open a dataset as the options say; bad records are named on standard error as they come."""
    shown = 0

    def name_it(problem: object) -> None:
        nonlocal shown
        shown += 1
        if shown <= _SHOWN:
            warn(str(problem))

    return open_dataset(path, format, fields=parse_fields(field), strict=strict, on_error=name_it)


def parse_fields(options: list[str] | None) -> dict[str, str | None]:
    fields: dict[str, str | None] = {}
    for option in options or []:
        role, equals, name = option.partition("=")
        if not equals:
            raise DataError(f"--field {option}: write ROLE=NAME, such as reference=alt_text")
        fields[role] = name or None
    return fields


def watched(dataset: Dataset, doing: str) -> Iterator[Instance]:
    """The instances, with a count on a screen while they pass."""
    columns = (SpinnerColumn(), TextColumn("{task.description} {task.completed:,} captions"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(doing, total=None)
        for instance in dataset:
            yield instance
            progress.advance(task)


def account(dataset: Dataset) -> None:
    """Count the bad records of the last pass, and end with the exit code that tells of them."""
    if len(dataset.problems):
        if len(dataset.problems) > _SHOWN:
            warn(f"... and {len(dataset.problems) - _SHOWN} more")
        warn(f"{dataset.path}: {len(dataset.problems)} problems in all")
        raise typer.Exit(ExitCode.PARTIAL)
