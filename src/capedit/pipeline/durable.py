"""Files that are on the disk, whole, before anything relies on them; and the lock of the one writer."""

from __future__ import annotations

import errno
import fcntl
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from capedit.data.atomic import staged_file, sync
from capedit.pipeline.errors import RunError, writing

_RANDOM = "[a-z0-9_]{8}"
"""What `staged_file` and `staged_folder` put after a name."""


def place(staged: Path, target: Path) -> None:
    """Move a finished file to where it belongs; at no moment is there a part of it, or nothing where something was."""
    sync(staged)
    if target.exists():
        shutil.copymode(target, staged)
    try:
        staged.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # Another disk: copied beside the target first, by a name that the next attempt takes again should we be killed.
        near = target.with_name(f".{target.name}.capedit")
        shutil.copyfile(staged, near)
        shutil.copymode(staged, near)
        sync(near)
        near.replace(target)
        staged.unlink()
    sync(target.parent)


def write_json(path: Path, value: Any) -> None:
    with writing(path), staged_file(path) as staged:
        staged.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: cannot be read ({error})") from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Be the one process that writes here; the system lets go when the process ends, however it ends.

    Whoever comes next clears away what one that was killed had begun to write.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("ab")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunError(f"{folder}: another run is writing here; wait for it, or write elsewhere") from None
        _remove_all(folder, rf"\..+\.{_RANDOM}(\.[^.]+){{0,3}}")
        yield


def remove_leftovers(target: Path) -> None:
    """Clear away what a killed process had begun to write in the place of a target."""
    suffix = "".join(target.suffixes[-2:])
    _remove_all(target.parent, rf"\.{re.escape(target.name[:80])}\.{_RANDOM}({re.escape(suffix)}(\.capedit)?)?")


def _remove_all(folder: Path, names: str) -> None:
    for path in [path for path in folder.glob(".*") if re.fullmatch(names, path.name)]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def file_state(path: Path) -> list[int]:
    """Size and time of change: enough to see that somebody has touched a file, at no cost for large ones."""
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]
