"""`capedit export`."""

from pathlib import Path
from typing import Annotated

import typer

from capedit.cli.console import out, print_json
from capedit.errors import MissingExtraError
from capedit.models.bits import Bits


def export(
    source: Annotated[
        Path,
        typer.Argument(metavar="RUN_OR_MODEL", help="A model folder with weights.safetensors, or a training run."),
    ],
    output: Annotated[Path, typer.Option("--out", "-o", help="The new model folder.", show_default=False)],
    bits: Annotated[Bits, typer.Option(help="fp16 halves the files, int8 quarters them; all compute in 32 bits.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Write the networks of a model for ONNX Runtime, in 32, 16 or 8 bits.

    Example: `capedit export runs/tiger-small --out tiger-small-int8 --bits int8`
    """
    try:
        from capedit.editing.export import reexport
    except ImportError as error:
        raise MissingExtraError("capedit export", "train", str(error)) from error
    bundle = reexport(source, output, bits)
    size = sum(path.stat().st_size for path in output.iterdir())
    if json:
        print_json({"model": bundle.label, "out": str(output), "bits": bits.value, "bytes": size})
        return
    out.print(f"{bundle.label} in {output}: {size / 1e6:,.1f} MB ({bits.value})")
