"""The side folder: what a format cannot hold, kept beside the dataset instead of being dropped.

`OUT.capedit/` stands beside a file, `OUT/.capedit/` inside a folder. In it, only when needed:

- `notes.json`: for CSV, which columns hold JSON rather than text;
- `records.jsonl`: for sidecar folders, every field besides the caption, in the original order;
- `coco.json`: for datasets converted from COCO, that file without its annotations;
- `images/`: images that were stored inside records, for formats that can only name files.

Readers look for it and put everything back, so that a conversion there and back loses nothing. Without
it, the dataset is still a good one of its format.
"""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

from capedit.data.images import Image, image_suffix


def side_folder(path: Path) -> Path:
    """Where the side folder of the dataset at `path` is or would be."""
    return path / ".capedit" if path.is_dir() else path.with_name(path.name + ".capedit")


class Side:
    """A side folder being written: staged with its dataset, made on first use."""

    def __init__(self, final: Path, staged: Path) -> None:
        self.final = final
        self.staged = staged

    def file(self, name: str) -> Path:
        """The path to write `name` to."""
        self.staged.mkdir(exist_ok=True)
        return self.staged / name

    def write_notes(self, notes: dict[str, Any]) -> None:
        self.file("notes.json").write_text(json.dumps(notes, indent=1), encoding="utf-8")

    def keep_image(self, image: Image) -> str:
        """Store an image that has no file; gives its path from the folder that holds the dataset."""

        data = image.read()
        name = sha256(data).hexdigest()[:24] + image_suffix(data, image.name)
        folder = self.file("images")
        folder.mkdir(exist_ok=True)
        if not (folder / name).exists():
            (folder / name).write_bytes(data)
        return f"{self.final.name}/images/{name}"

    def commit(self) -> None:
        """Put the folder in place, or remove one that an earlier dataset of that name left."""
        if self.staged == self.final:
            return
        if self.final.exists():
            shutil.rmtree(self.final)
        if self.staged.exists():
            self.staged.replace(self.final)


def read_notes(path: Path) -> dict[str, Any]:
    """The notes on the dataset at `path`; empty if there are none."""
    file = side_folder(path) / "notes.json"
    if not file.is_file():
        return {}
    notes = json.loads(file.read_text(encoding="utf-8"))
    return notes if isinstance(notes, dict) else {}
