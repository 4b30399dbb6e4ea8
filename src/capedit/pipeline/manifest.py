"""The manifest of a run, `run.json` in the folder beside the output: what was asked, of what, and how far it is."""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from capedit.data import Dataset
from capedit.pipeline.durable import file_state, read_json, write_json
from capedit.pipeline.errors import RunError
from capedit.pipeline.settings import Source, Treatment, base_folder, relative

FORMAT = 1
FILE = "run.json"


class State(StrEnum):
    """How far a run is. Each step begins only when all before it is safely on the disk."""

    EDITING = "editing"
    """Captions are being looked at; the output does not exist, or is untouched."""
    WRITING = "writing"
    """The log is complete; the output is being written."""
    DONE = "done"
    UNDOING = "undoing"
    """An undo of the whole has begun; it can only be gone on with."""
    UNDONE = "undone"
    """Every caption is what it was before the run."""


@dataclass
class Manifest:
    source: Source
    treatment: Treatment
    in_place: bool
    output_format: str
    rewritten: bool
    """Whether the output is the source with some captions changed; else it was converted."""
    model: str
    encoder: str
    version: str
    time: str
    """When the run began; every row of the log says so."""
    input: str
    """A fingerprint of the files that were read."""
    state: State = State.EDITING
    counts: dict[str, int] = field(default_factory=dict)
    """Captions by status."""
    collapsed: dict[str, int] = field(default_factory=dict)
    """Sentences that many captions would have become, with their number: those captions are held."""
    set_aside: dict[str, str] = field(default_factory=dict)
    """Shards that failed again and again, and why."""
    problems: int = 0
    """Bad records and files; `problems.jsonl` names them."""
    warnings: list[str] = field(default_factory=list)
    finished: str | None = None

    def save(self, folder: Path) -> None:
        values = {"format": FORMAT, **asdict(self), "treatment": self.treatment.to_json()}
        write_json(folder / FILE, values)

    @classmethod
    def load(cls, folder: Path) -> Manifest:
        values = read_json(folder / FILE)
        if not isinstance(values, dict) or values.pop("format", None) != FORMAT:
            raise RunError(f"{folder / FILE}: not the manifest of a run that this version knows")
        try:
            made = {
                "source": Source(**values["source"]),
                "treatment": Treatment.from_json(values["treatment"]),
                "state": State(values["state"]),
            }
            return cls(**values | made)
        except (TypeError, KeyError, ValueError) as error:
            raise RunError(f"{folder / FILE}: cannot be understood ({error!r})") from error

    def differences(self, other: Manifest) -> list[str]:
        """How another run that was asked for here would differ, in words."""
        mine, theirs = self._asked(), other._asked()
        return [f"{name}: {mine[name]!r}, now {theirs[name]!r}" for name in mine if mine[name] != theirs[name]]

    def _asked(self) -> dict[str, Any]:
        treatment = self.treatment.to_json()
        names = ("in_place", "output_format", "model", "encoder", "version")
        return asdict(self.source) | treatment | {name: getattr(self, name) for name in names}


def fingerprint(dataset: Dataset) -> str:
    """Changes when a file of the dataset is changed, added or removed."""
    base = base_folder(dataset)
    digest = hashlib.sha256()
    for file in sorted(_files(dataset)):
        digest.update(f"{relative(file, base)}\0{file_state(file)}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:32]


def _files(dataset: Dataset) -> list[Path]:
    if not dataset.files[0].is_dir():
        return list(dataset.files)
    return [Path(inside, name) for file in dataset.files for inside, _, names in os.walk(file) for name in names]
