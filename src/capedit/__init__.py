"""capedit: repair image captions by editing them, and show every step."""

from importlib.metadata import version

__version__ = version("capedit")
