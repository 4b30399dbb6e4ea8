"""What a run is asked to do: of which dataset, to where, and how. All of it can be written down and sent elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from capedit.data import Dataset, Problem, open_dataset
from capedit.editing import Bundle, Editor, Runtime
from capedit.editing.bundle import find_bundle
from capedit.editing.editor import load_modules
from capedit.errors import CapeditError
from capedit.vision import load_encoder
from capedit.vision.encoder import Encoder


@dataclass(frozen=True)
class Source:
    """A dataset by name, so that any process on any machine with these files can open it."""

    path: str
    format: str
    fields: Mapping[str, str | None] = field(default_factory=dict)
    images: str | None = None

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        images = None if dataset.images is None else _absolute(dataset.images)
        return cls(str(dataset.path.absolute()), dataset.format.name, dict(dataset.fields), images)

    def open(self, on_error: Callable[[Problem], None] | None = None) -> Dataset:
        return open_dataset(self.path, self.format, fields=self.fields, images=self.images, on_error=on_error)


@dataclass(frozen=True)
class Limits:
    """When an edit is too much to be made without a person's consent."""

    max_shrink: float = 0.5
    """A caption that would lose more than this share of its length (in words) is held."""
    max_deleted: float = 0.8
    """A caption of which more than this share of the words would go is held, whatever comes in their place."""
    collapse_count: int = 20
    """So many different captions that become one and the same sentence are held, ..."""
    collapse_share: float = 0.01
    """... if they are also at least this share of all changed captions: some sentences are merely common."""


@dataclass(frozen=True)
class Treatment:
    """How captions are edited. Captions and a treatment determine the result, whoever computes it where."""

    model: str = "default"
    """A model folder."""
    encoder: str = "default"
    """The encoder that the model was trained with."""
    features: str | None = None
    """A feature store to look images up in before they are encoded."""
    knobs: Mapping[str, Any] = field(default_factory=dict)
    """What differs from the model's own operating point, as in `capedit.editing.Knobs`; a set is a sorted list."""
    review_below: float = 0.0
    """A change with less confidence is held for review."""
    only: tuple[str, ...] = ()
    """Conditions on the captions to look at (see `capedit.pipeline.selection`)."""
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if not 0 <= self.review_below <= 1:
            raise CapeditError(f"review_below must lie in [0, 1], got {self.review_below}")

    def settled(self) -> Treatment:
        """The same from wherever it is looked at: with absolute paths, and values as JSON gives them back."""
        values = self.to_json()
        values["model"] = self.model if self.model == "default" else _absolute(self.model)
        values["encoder"] = _absolute(self.encoder) if self.encoder.endswith(".onnx") else self.encoder
        values["features"] = None if self.features is None else _absolute(self.features)
        return Treatment.from_json(values)

    def chosen_knobs(self) -> dict[str, Any]:
        """As `Editor` takes them."""
        knobs = dict(self.knobs)
        if "protected" in knobs:
            knobs["protected"] = frozenset(knobs["protected"])
        return knobs

    def bundle(self) -> Bundle:
        return Bundle.load(find_bundle(self.model))

    def load_encoder(self) -> Encoder:
        """The one that was named, else the model's own."""
        name = self.bundle().own_encoder if self.encoder == "default" else self.encoder
        return load_encoder(name, threads=1)

    def load_editor(self) -> Editor:
        """An editor on one core: runs use several processes instead of several threads."""
        bundle, encoder = self.bundle(), self.load_encoder()
        if encoder.hash != bundle.encoder:
            raise CapeditError(
                f"{bundle.folder}: trained on the visual tokens of encoder {bundle.encoder}, not of {encoder.hash} "
                f"({encoder.name})"
            )
        return Editor(bundle, load_modules(bundle, Runtime.ONNX, 1), encoder)

    def to_json(self) -> dict[str, Any]:
        sets = {key: sorted(value) for key, value in self.knobs.items() if isinstance(value, set | frozenset)}
        return asdict(self) | {"knobs": {**self.knobs, **sets}, "only": list(self.only)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        known = {name: values[name] for name in (one.name for one in fields(cls)) if name in values}
        return cls(**known | {"only": tuple(values["only"]), "limits": Limits(**values["limits"])})


def _absolute(path: str) -> str:
    return str(Path(path).absolute())


def base_folder(dataset: Dataset) -> Path:
    """What the files of a dataset are told apart from: the folder of the dataset, or the one that holds its files."""
    if dataset.path.is_dir():
        return dataset.path
    return Path(os.path.commonpath([file.parent for file in dataset.files]))


@lru_cache(maxsize=1024)
def relative(file: Path, base: Path) -> str:
    """A path as a run writes it down: from `base`, with slashes."""
    return Path(os.path.relpath(file, base)).as_posix()
