"""How commands draw an edit."""

from enum import StrEnum
from pathlib import Path

import typer

from capedit.cli.console import out
from capedit.edits import Trace, render_html, render_plain, render_svg, render_terminal


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


def draw(trace: Trace, style: Picture | None, output: Path | None) -> None:
    """Draw a trace on the screen or into a file; without a style, as suits the place."""
    drawn = _RENDERERS[style or (Picture.TERMINAL if out.is_terminal and output is None else Picture.PLAIN)](trace)
    if output is not None:
        output.write_text(drawn + "\n", encoding="utf-8")
    else:
        typer.echo(drawn)
