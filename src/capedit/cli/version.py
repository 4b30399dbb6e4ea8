"""`capedit version`."""

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from capedit import __version__
from capedit.cli.console import out, print_json

_TOLD = ("numpy", "onnxruntime", "pillow", "pyarrow", "torch", "ray", "fastapi")


def version(json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False) -> None:
    """Tell the version of capedit, and of the packages that can change what it computes."""
    packages = {name: found for name in _TOLD if (found := _version_of(name))}
    if json:
        print_json({"capedit": __version__, "python": platform.python_version(), "packages": packages})
        return
    out.print(f"capedit {__version__} (Python {platform.python_version()})")
    for name, found in packages.items():
        out.print(f"  {name} {found}")


def _version_of(package: str) -> str | None:
    try:
        return installed_version(package)
    except PackageNotFoundError:
        return None
