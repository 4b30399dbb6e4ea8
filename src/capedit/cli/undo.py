"""`capedit undo`."""

from pathlib import Path
from typing import Annotated

import typer

from capedit.cli.console import ExitCode, out, print_json, warn
from capedit.pipeline import Run
from capedit.pipeline import undo as undo_run

_SHOWN = 20


def undo(
    output: Annotated[Path, typer.Argument(metavar="OUT", help="What `capedit fix` wrote, or changed in place.")],
    id: Annotated[
        list[str] | None, typer.Option("--id", help="Undo the caption with this id only; may be repeated.")
    ] = None,
    ids: Annotated[Path | None, typer.Option("--ids", help="A file of ids, one a line.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the account as JSON.")] = False,
) -> None:
    """Take back what `capedit fix` did: all of it, or the captions with certain ids.

    A dataset that was changed in place gets back its files, byte for byte.
    Example: `capedit undo fixed.jsonl --id 1234`
    """
    lines = [] if ids is None else [line.strip() for line in ids.read_text(encoding="utf-8").splitlines()]
    chosen = [*(id or []), *filter(None, lines)]
    result = undo_run(output, chosen if id or ids else None)
    run = Run(output)
    if json:
        print_json({"out": str(run.out), "captions": result.captions, "conflicts": list(result.conflicts)})
    else:
        out.print(f"{result.captions:,} captions are as they were: {run.out}")
    for row in result.conflicts[:_SHOWN]:
        warn(f"caption {run.log[row].id} has been changed since by another hand, and was left alone")
    if len(result.conflicts) > _SHOWN:
        warn(f"... and {len(result.conflicts) - _SHOWN} more")
    if result.conflicts:
        raise typer.Exit(ExitCode.PARTIAL)
