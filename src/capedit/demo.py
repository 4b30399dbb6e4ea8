"""`make demo`: the bundled model edits wrong captions of real photographs, and shows every step."""

import sys
from importlib.util import find_spec
from pathlib import Path

import typer

from capedit.editing import Editor
from capedit.edits import render_plain, render_terminal
from capedit.errors import MissingExtraError

CAPTIONS = [
    ("chelsea.png", "A dog lies on a sofa."),
    ("chelsea.png", "A close up of a cat."),
    ("coffee.png", "A plate of pizza on a wooden table."),
    ("rocket.jpg", "A train is traveling down the tracks at night."),
    ("astronaut.png", "A man in a red shirt holding a tennis racket."),
    ("motorcycle_left.png", "A bicycle parked in a garage."),
]
"""Photographs inside scikit-image's wheel, with what someone might have written by mistake, and one right caption."""


def photographs() -> Path:
    """The folder of the sample photographs."""
    found = find_spec("skimage")
    if found is None or found.origin is None:
        raise MissingExtraError("the photographs of the demo", "demo")
    return Path(found.origin).parent / "data"


def main() -> None:
    folder, editor = photographs(), Editor.load()
    render = render_terminal if sys.stdout.isatty() else render_plain
    edits = editor.edit_many((folder / name, caption) for name, caption in CAPTIONS)
    for (name, _), edit in zip(CAPTIONS, edits, strict=True):
        typer.echo(f"{name}\n{render(edit.trace)}")
        fits = "" if edit.fits is None else f"; the original fits with {edit.fits:.0%}"
        typer.echo(f"-> {edit.caption}  ({edit.steps} steps, confidence {edit.confidence:.0%}{fits})\n")


if __name__ == "__main__":
    main()
