"""Where capedit keeps what it can make again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir(*parts: str) -> Path:
    """A folder below the cache root, `~/.cache/capedit` unless CAPEDIT_CACHE says otherwise; made if missing."""
    root = os.environ.get("CAPEDIT_CACHE")
    folder = (Path(root) if root else Path.home() / ".cache" / "capedit").joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
