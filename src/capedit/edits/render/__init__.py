"""Edits to look at: one view of a script or trace, drawn as plain text, for a terminal, as HTML or as SVG."""

from capedit.edits.render.html import render_html
from capedit.edits.render.svg import render_svg
from capedit.edits.render.text import render_plain, render_terminal

__all__ = ["render_html", "render_plain", "render_svg", "render_terminal"]
