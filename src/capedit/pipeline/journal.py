"""The journal: originals kept before anything is changed in place.

A file is changed by putting another in its place, so the original is kept at no cost by a second name (a hard link; a
copy where the disk has no such thing). Around the originals stand links to everything that did not change, so that the
journal as a whole is the dataset as it was before the run, and can be read and rewritten from like any dataset.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from capedit.data import Dataset
from capedit.data.atomic import sync
from capedit.data.side import side_folder
from capedit.pipeline.durable import place, read_json, remove_leftovers, write_json
from capedit.pipeline.errors import RunError, writing
from capedit.pipeline.settings import Source, base_folder, relative


class Journal:
    """The originals of a dataset that is changed in place."""

    def __init__(self, folder: Path, source: Source) -> None:
        self._folder, self._source = folder, source
        self._list = folder / "journal.json"
        self._originals = folder / "originals"
        dataset = source.open()
        self._live = base_folder(dataset)
        self.hashes: dict[str, str] = read_json(self._list) if self._list.exists() else {}
        """Of the originals that are kept, by name."""

    @property
    def source(self) -> Source:
        """The dataset as it was."""
        return replace(self._source, path=str(self._originals / relative(Path(self._source.path), self._live)))

    def kept(self, name: str) -> Path | None:
        """The original of a file, if it is kept here."""
        path = self._originals / name
        return path if name in self.hashes and path.exists() else None

    def keep(self, names: Iterable[str]) -> None:
        """Have these files in the journal, on the disk, before any of them changes."""
        new = [name for name in names if name not in self.hashes]
        with writing(self._folder):
            remove_leftovers(self._list)
            if not self.hashes:
                shutil.rmtree(self._originals, ignore_errors=True)
                self._mirror()
            for name in new:
                kept = self._originals / name
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.unlink(missing_ok=True)
                _link((self._live / name).resolve(), kept)
                self.hashes[name] = _hash(kept)
                sync(kept.parent)
            write_json(self._list, self.hashes)

    def check(self) -> None:
        """Make sure that the originals are what they were when they were put here."""
        for name in self._waiting():
            if _hash(self._originals / name) != self.hashes[name]:
                raise RunError(
                    f"{self._originals / name}: the original kept here has been changed; {self._live / name} is left "
                    "alone, and all others"
                )

    def restore(self) -> None:
        """Put every original back into its place."""
        with writing(self._live):
            for name in self._waiting():
                place(self._originals / name, (self._live / name).resolve())

    def _waiting(self) -> list[str]:
        """The originals that are here still: an undo that was cut short has put others back."""
        kept = {name: self._originals / name for name in self.hashes}
        return [name for name, path in kept.items() if path.exists() and not path.is_symlink()]

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _mirror(self) -> None:
        dataset = self._source.open()
        self._originals.mkdir(parents=True)
        for file in _belongings(dataset):
            link = self._originals / relative(file, self._live)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file.absolute())


def _belongings(dataset: Dataset) -> Iterable[Path]:
    """All files of a dataset: of a folder everything inside, else its files and what is kept beside them."""
    roots = [dataset.path] if dataset.path.is_dir() else [side_folder(file) for file in dataset.files]
    for root in roots:
        for inside, _, names in os.walk(root):
            yield from (Path(inside, name) for name in names)
    if not dataset.path.is_dir():
        yield from dataset.files


def _link(file: Path, kept: Path) -> None:
    try:
        os.link(file, kept)
    except OSError:
        shutil.copy2(file, kept)
        sync(kept)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
