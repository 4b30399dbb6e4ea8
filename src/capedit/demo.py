"""`make demo`: what an edit looks like. There is no model yet, so it shows the gold edit of a caption pair."""

import sys

import typer

from capedit.edits import count_trace, expand, gold_script, render_plain, render_terminal
from capedit.edits.tokens import tokenize

PAIRS = [
    ("A dog lies on a sofa.", "A black cat lies on a red sofa."),
    ("Two men are riding horses on the beach.", "A woman is riding a brown horse in the snow."),
]


def main() -> None:
    render = render_terminal if sys.stdout.isatty() else render_plain
    for reference, target in PAIRS:
        trace = expand(gold_script(tokenize(reference), tokenize(target)))
        typer.echo(render(trace))
        typer.echo(f"{count_trace(trace).total} steps, {trace.insertion_rounds} rounds\n")


if __name__ == "__main__":
    main()
