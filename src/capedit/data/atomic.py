"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capedit.data.errors import DataError


@contextmanager
def staged_file(path: Path) -> Iterator[Path]:
    """A name to write to, beside `path`; on success it becomes `path`, on failure it is removed."""
    staged = _free_name(path)
    try:
        yield staged
        sync(staged)
        if path.exists():
            shutil.copymode(path, staged)
        staged.replace(path)
        sync(path.parent)
    finally:
        staged.unlink(missing_ok=True)


@contextmanager
def staged_folder(path: Path) -> Iterator[Path]:
    """A new folder to fill, beside `path`; on success it becomes `path`.

    A folder that already holds something is never replaced: it may hold what no format knows of.
    """
    if path.is_dir() and any(path.iterdir()):
        raise DataError(f"{path}: folder exists and is not empty")
    staged = _free_name(path)
    staged.mkdir()
    try:
        yield staged
        _sync_tree(staged)
        if path.is_dir():
            path.rmdir()
        staged.replace(path)
        sync(path.parent)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def sync(path: Path) -> None:
    """Have a file or folder on the disk before going on."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_tree(folder: Path) -> None:
    files = [Path(inside, name) for inside, _, names in os.walk(folder) for name in names]
    if len(files) > 100:  # one by one would take minutes
        os.sync()
        return
    for file in files:
        sync(file)


def _free_name(path: Path) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # mkdtemp only reserves a name that no other run has; the same suffix lets formats go by it.
        folder = tempfile.mkdtemp(prefix=f".{path.name[:80]}.", dir=path.parent)
    except OSError as error:
        raise DataError(f"{path.parent}: cannot write here ({error.strerror})") from error
    Path(folder).rmdir()
    return Path(f"{folder}{''.join(path.suffixes[-2:])}")
