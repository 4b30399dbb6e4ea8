"""`capedit diff`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from capedit.cli.console import print_json
from capedit.cli.pictures import Picture, draw
from capedit.edits import Alignment, Order, Trace, count_trace, expand, gold_script
from capedit.edits.tokens import tokenize


def diff(
    reference: Annotated[str, typer.Argument(help="The caption as it is.", show_default=False)],
    target: Annotated[str, typer.Argument(help="The caption as it should be.", show_default=False)],
    alignment: Annotated[Alignment, typer.Option(help="How equal words are paired.")] = Alignment.SHORTEST,
    order: Annotated[Order, typer.Option(help="Which missing word of a gap is added first.")] = Order.LEFT_TO_RIGHT,
    style: Annotated[Picture | None, typer.Option("--as", help="Default: terminal on a screen, else plain.")] = None,
    output: Annotated[Path | None, typer.Option("--out", "-o", help="Write to this file instead.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Show the gold edit between two captions, round by round.

    Example: `capedit diff "a dog lies on a sofa" "a black cat lies on a sofa"`
    """
    trace = expand(gold_script(tokenize(reference), tokenize(target), alignment), order)
    if json:
        print_json(as_json(trace))
        return
    draw(trace, style, output)


def as_json(trace: Trace) -> dict[str, Any]:
    """A trace as `capedit edit --json` prints it, too: flat operations with their round, and the rounds in full."""
    return {
        "caption": " ".join(trace.target),
        "operations": [operation.to_json() | {"round": number} for number, operation in trace.changes()],
        "rounds": trace.insertion_rounds,
        "steps": count_trace(trace).total,
        "trace": trace.to_json(),
    }
