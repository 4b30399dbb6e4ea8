"""TIger's weights as one safetensors file that carries its own shape."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError

from capedit.errors import CapeditError
from capedit.models.concepts import ConceptConfig
from capedit.models.device import placed
from capedit.models.grounding import GroundingConfig
from capedit.models.tensor_files import read_tensors, save_tensors
from capedit.models.tiger import Tiger, TigerConfig
from capedit.models.vilbert import StreamConfig, VilbertConfig
from capedit.models.vocabulary import UNKNOWN
from capedit.models.weight_names import read_weights

SHAPES = Path(__file__).parent / "configs"
"""Shapes that come with the package."""


def named_config(name: str | Path) -> TigerConfig:
    """A shape that comes with the package, or the one in a JSON file."""
    path = Path(name) if str(name).endswith(".json") else SHAPES / f"{name}.json"
    try:
        return read_config(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        known = ", ".join(sorted(found.stem for found in SHAPES.glob("*.json")))
        raise CapeditError(f"shape {name}: neither one of {known} nor a JSON file of a shape ({error!r})") from error


def save_tiger(model: Tiger, path: Path) -> None:
    save_tensors(model.state_dict(), path, {"config": json.dumps(asdict(model.config))})


def load_tiger(path: Path, device: torch.device | None = None) -> Tiger:
    """Read a model, onto torch's default device if no other is given; nothing in the file is executed."""
    try:
        metadata, tensors = read_tensors(path)
        config = read_config(json.loads(metadata["config"]))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise CapeditError(f"{path}: not a TIger ({error!r})") from error
    with torch.device("meta"):  # no memory for weights that are thrown away at once
        model = Tiger(config)
    try:
        model.load_state_dict(tensors, assign=True)
    except RuntimeError as error:
        raise CapeditError(f"{path}: weights do not fit the shape that the file states ({error})") from error
    return placed(model, device).eval()


def recover_tiger(folder: Path, config: TigerConfig) -> Tiger:
    """The network of a model folder out of its ONNX files, in whatever bits it is stored there."""
    with torch.device("meta"):
        model = Tiger(config)
    state = model.state_dict()
    shapes = {f"tiger.{name}": tuple(tensor.shape) for name, tensor in state.items()}
    found = read_weights(sorted(folder.glob("*.onnx")), shapes)
    if (concepts := found.get("tiger.concept_words.of_token")) is not None:  # its inverse is not kept
        tokens_of = np.full(shapes["tiger.concept_words.token_of"], UNKNOWN, np.float32)
        tokens_of[concepts[concepts >= 0].astype(int)] = np.flatnonzero(concepts >= 0)
        found["tiger.concept_words.token_of"] = tokens_of
    if missing := sorted(shapes.keys() - found.keys()):
        raise CapeditError(f"{folder}: its files lack weights that training needs, such as {missing[0]}")
    tensors = {name: torch.as_tensor(found[f"tiger.{name}"]).to(one.dtype) for name, one in state.items()}
    model.load_state_dict(tensors, assign=True)
    return placed(model).eval()


def read_config(values: dict[str, Any]) -> TigerConfig:
    """A shape from JSON."""
    encoder, concepts = dict(values["encoder"]), values.get("concepts")
    for stream in ("text", "vision"):
        encoder[stream] = StreamConfig(**encoder[stream])
    known = {**values, "encoder": VilbertConfig(**encoder)}
    known["concepts"] = None if concepts is None else ConceptConfig(**concepts)
    known["grounding"] = GroundingConfig(**values["grounding"]) if values.get("grounding") else None
    return TigerConfig(**known)
