"""`capedit edit`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from capedit.cli.console import out, print_json
from capedit.cli.models import SYSTEM_FILE
from capedit.cli.pictures import Picture, draw
from capedit.editing import Edit, Editor
from capedit.editing.editor import Runtime
from capedit.errors import CapeditError, MissingExtraError


def edit(
    image: Annotated[Path, typer.Argument(help="The picture.", show_default=False)],
    caption: Annotated[str, typer.Argument(help="Its caption, right or wrong.", show_default=False)],
    model: Annotated[str, typer.Option(help="A model folder; default: the bundled model.")] = "default",
    runtime: Annotated[Runtime, typer.Option(help="What computes the networks.")] = Runtime.ONNX,
    rounds: Annotated[int | None, typer.Option(min=1, help="Most rounds of insertion.")] = None,
    keep_bias: Annotated[float | None, typer.Option(help="Higher deletes less.")] = None,
    min_confidence: Annotated[float | None, typer.Option(min=0, max=1, help="Make no operation below this.")] = None,
    protect: Annotated[list[str] | None, typer.Option(help="A word that is never deleted; may be repeated.")] = None,
    style: Annotated[Picture | None, typer.Option("--as", help="Default: terminal on a screen, else plain.")] = None,
    output: Annotated[Path | None, typer.Option("--out", "-o", help="Write to this file instead.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Edit the caption of a picture, and show every step.

    Example: `capedit edit photo.jpg "a dog lies on a sofa"`
    """
    given = {
        "rounds": rounds,
        "keep_bias": keep_bias,
        "min_confidence": min_confidence,
        "protected": frozenset(word.lower() for word in protect) if protect else None,
    }
    knobs = {name: value for name, value in given.items() if value is not None}
    if is_system(model):
        made = _edit_by_system(model, image, caption, knobs)
    else:
        made = Editor.load(model, runtime=runtime).edit(image, caption, **knobs)
    if json:
        print_json(made.to_json())
        return
    draw(made.trace, style, output)
    if output is None:
        fits = "" if made.fits is None else f", the original fits with {made.fits:.0%}"
        out.print(f"{made.caption}", markup=False, style="bold")
        out.print(f"{made.steps} steps, confidence {made.confidence:.0%}{fits}; {made.model}", style="dim")


def is_system(model: str) -> bool:
    """Whether a folder holds one of the compared systems (`capedit train updn-e …`)."""
    return (Path(model) / SYSTEM_FILE).is_file()


def _edit_by_system(model: str, image: Path, caption: str, knobs: dict[str, Any]) -> Edit:
    if knobs:
        raise CapeditError(f"{model}: a compared system has no {', '.join(knobs)}")
    try:
        from capedit.editing.system_editor import SystemEditor
    except ImportError as error:
        raise MissingExtraError("a compared system", "train", str(error)) from error
    return SystemEditor.load(model).edit(image, caption)
