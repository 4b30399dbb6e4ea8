"""Files compared by their bytes."""

import hashlib
from pathlib import Path


def tree(path: Path) -> dict[str, str]:
    """Every file at or below a path, with a hash of its bytes; of a file, what is kept beside it too."""
    roots = [path] if path.is_dir() else [path, path.with_name(path.name + ".capedit")]
    files = [file for root in roots for file in ([root] if root.is_file() else sorted(root.rglob("*")))]
    base = path if path.is_dir() else path.parent
    return {str(f.relative_to(base)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files if f.is_file()}
