"""capedit: repair image captions by editing them, and show every step."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capedit.editing import Edit, Editor

__version__ = version("capedit")
__all__ = ["Edit", "Editor", "__version__"]


def __getattr__(name: str) -> Any:
    """The editor brings ONNX Runtime; only who asks for it waits for it."""
    if name in ("Edit", "Editor"):
        return getattr(import_module("capedit.editing"), name)
    raise AttributeError(f"module 'capedit' has no attribute {name!r}")
