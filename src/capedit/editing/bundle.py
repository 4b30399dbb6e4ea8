"""A model folder: what an editor is made of, as files.

`model.json` says what it is and how it behaves, `vocabulary.json` lists its words or word pieces, and the networks are
ONNX files or a `weights.safetensors`; `encoder.onnx` is there if it wants an image encoder other than the package's.
Nothing in it can run code.
"""

import json
from dataclasses import dataclass, fields
from hashlib import file_digest, sha256
from pathlib import Path
from shutil import copyfile
from typing import Any, TypeVar

from capedit.errors import CapeditError
from capedit.models.decoding import Calibration, Knobs, Scale
from capedit.models.vocabulary import Vocabulary
from capedit.models.word_pieces import load_vocabulary

BUNDLED = Path(__file__).parent / "weights"
"""The model that comes with the package."""
ENCODER = "encoder.onnx"
"""The encoder of a model that does not read the tokens of the package's own."""
FORMAT = 1
_T = TypeVar("_T")


@dataclass(frozen=True)
class Bundle:
    """A model folder that has been read, but for its networks."""

    folder: Path
    name: str
    encoder: str
    """Hash of the encoder whose visual tokens the model was trained on."""
    positions: int
    """Words and sentinels that fit into the model."""
    matching: bool
    """Whether the model can tell if a caption fits."""
    vocabulary: Vocabulary
    knobs: Knobs
    """How the model is best used: the operating point that its scores were measured at."""
    calibration: Calibration
    card: dict[str, Any]
    """All else that `model.json` says: data, training, scores."""
    hash: str
    """Of all files in the folder."""

    @classmethod
    def load(cls, folder: str | Path) -> "Bundle":
        folder = Path(folder)
        path = folder / "model.json"
        try:
            described = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CapeditError(f"{path}: not a model folder ({error})") from error
        if not isinstance(described, dict) or described.get("format") != FORMAT:
            raise CapeditError(f"{path}: expected a model of format {FORMAT}")
        try:
            return cls(
                folder=folder,
                name=str(described["name"]),
                encoder=str(described["encoder"]),
                positions=int(described["positions"]),
                matching=bool(described["matching"]),
                vocabulary=load_vocabulary(folder / "vocabulary.json"),
                knobs=read_knobs(described.get("knobs", {}), path),
                calibration=read_calibration(described.get("calibration", {}), path),
                card=described,
                hash=folder_hash(folder),
            )
        except (KeyError, TypeError) as error:
            raise CapeditError(f"{path}: {error!r}") from error

    @property
    def own_encoder(self) -> str:
        """The encoder that comes with it, as `load_encoder` takes it: a file in the folder, else the package's own."""
        path = self.folder / ENCODER
        return str(path) if path.is_file() else "default"

    @property
    def label(self) -> str:
        return f"{self.name}@{self.hash}"


def find_bundle(model: str | Path) -> Path:
    """The folder of a model: `default` is the bundled one."""
    return BUNDLED if model == "default" else Path(model)


def bring_encoder(source: Path, folder: Path) -> None:
    """A model that is made of another one reads the same tokens: if that has an encoder of its own, it comes along."""
    if (source / ENCODER).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        copyfile(source / ENCODER, folder / ENCODER)


def folder_hash(folder: Path) -> str:
    """A hash of every file in a model folder but its card for people."""
    digest = sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix != ".md":
            with path.open("rb") as file:  # weights may be larger than memory
                digest.update(path.name.encode() + b"\0" + file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]


def read_knobs(values: dict[str, Any], path: Path | str) -> Knobs:
    """Knobs from JSON, where a set is a list."""
    return _known(Knobs, {**values, "protected": frozenset(values.get("protected", ()))}, path)


def read_calibration(values: dict[str, Any], path: Path | str) -> Calibration:
    """A calibration from JSON: a scale for each kind of opinion."""
    return _known(Calibration, {name: _known(Scale, scale, path) for name, scale in values.items()}, path)


def _known(kind: type[_T], values: dict[str, Any], path: Path | str) -> _T:
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    if unknown := set(values) - names:
        raise CapeditError(f"{path}: unknown {kind.__name__.lower()}: {', '.join(sorted(unknown))}")
    return kind(**values)
