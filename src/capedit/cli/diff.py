"""`capedit diff`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from capedit.cli.console import out, print_json
from capedit.edits import (
    Alignment,
    Order,
    Trace,
    count_trace,
    expand,
    gold_script,
    render_html,
    render_plain,
    render_svg,
    render_terminal,
)
from capedit.edits.tokens import tokenize


class Picture(StrEnum):
    """How an edit is drawn."""

    TERMINAL = "terminal"
    PLAIN = "plain"
    HTML = "html"
    SVG = "svg"


_RENDERERS = {
    Picture.TERMINAL: render_terminal,
    Picture.PLAIN: render_plain,
    Picture.HTML: render_html,
    Picture.SVG: render_svg,
}


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
    drawn = _RENDERERS[style or (Picture.TERMINAL if out.is_terminal and output is None else Picture.PLAIN)](trace)
    if output is not None:
        output.write_text(drawn + "\n", encoding="utf-8")
        return
    typer.echo(drawn)


def as_json(trace: Trace) -> dict[str, Any]:
    """A trace as `capedit edit --json` prints it, too: flat operations with their round, and the rounds in full."""
    return {
        "caption": " ".join(trace.target),
        "operations": [operation.to_json() | {"round": number} for number, operation in trace.changes()],
        "rounds": trace.insertion_rounds,
        "steps": count_trace(trace).total,
        "trace": trace.to_json(),
    }
