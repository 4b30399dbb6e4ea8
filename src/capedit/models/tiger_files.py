"""TIger's weights, or those of a chorus, as one safetensors file that carries its own shape."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError

from capedit.errors import CapeditError
from capedit.models.chorus import EYES, Chorus
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


def save_tiger(model: Tiger | Chorus, path: Path) -> None:
    """Write a TIger, or a chorus of them, whose eyes are kept once. A chorus of one is a TIger."""
    if isinstance(model, Chorus) and len(model.voices) == 1:
        model = model.first
    facts, tensors = {"config": json.dumps(asdict(model.config))}, model.state_dict()
    if isinstance(model, Chorus):
        facts["voices"] = str(len(model.voices))
        tensors = {name: tensor for name, tensor in tensors.items() if _own_name(name) == name}
    save_tensors(tensors, path, facts)


def load_tiger(path: Path, device: torch.device | None = None) -> Tiger:
    """Read a model, onto torch's default device if no other is given; nothing in the file is executed."""
    model = load_chorus(path, device)
    if len(model.voices) > 1:
        raise CapeditError(f"{path}: not one TIger, but a chorus of {len(model.voices)}")
    return model.first


def load_chorus(path: Path, device: torch.device | None = None) -> Chorus:
    """Likewise; a single TIger becomes a chorus of one."""
    try:
        metadata, tensors = read_tensors(path)
        config, voices = read_config(json.loads(metadata["config"])), int(metadata.get("voices", 0))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise CapeditError(f"{path}: not a TIger ({error!r})") from error
    with torch.device("meta"):  # no memory for weights that are thrown away at once
        model = Chorus([Tiger(config) for _ in range(max(voices, 1))])
    try:
        if voices:
            tensors |= {name: tensors[own] for name in model.state_dict() if (own := _own_name(name)) in tensors}
            model.load_state_dict(tensors, assign=True)
        else:
            model.first.load_state_dict(tensors, assign=True)
    except RuntimeError as error:
        raise CapeditError(f"{path}: weights do not fit the shape that the file states ({error})") from error
    return placed(model, device).eval()


def recover_chorus(folder: Path, config: TigerConfig, voices: int) -> Chorus:
    """The networks of a model folder out of its ONNX files, in whatever bits they are stored there."""
    with torch.device("meta"):
        model = Chorus([Tiger(config) for _ in range(voices)])
    state = model.state_dict()
    shapes = {f"chorus.{name}": tuple(tensor.shape) for name, tensor in state.items()}
    found = read_weights(sorted(folder.glob("*.onnx")), shapes)
    if (concepts := found.get("chorus.voices.0.concept_words.of_token")) is not None:  # its inverse is not kept
        tokens_of = np.full(shapes["chorus.voices.0.concept_words.token_of"], UNKNOWN, np.float32)
        tokens_of[concepts[concepts >= 0].astype(int)] = np.flatnonzero(concepts >= 0)
        found["chorus.voices.0.concept_words.token_of"] = tokens_of
    own = {name: f"chorus.{_own_name(name)}" for name in state}
    if missing := sorted({kept for kept in own.values() if kept not in found}):
        raise CapeditError(f"{folder}: its files lack weights that training needs, such as {missing[0]}")
    tensors = {name: torch.as_tensor(found[kept]).to(state[name].dtype) for name, kept in own.items()}
    model.load_state_dict(tensors, assign=True)
    return placed(model).eval()


def _own_name(name: str) -> str:
    """Of a tensor in a chorus: the one under which it is kept, as all voices see with the eyes of the first."""
    collection, _, rest = name.split(".", 2)
    return f"{collection}.0.{rest}" if rest.split(".", 1)[0] in EYES else name


def read_config(values: dict[str, Any]) -> TigerConfig:
    """A shape from JSON."""
    encoder, concepts = dict(values["encoder"]), values.get("concepts")
    for stream in ("text", "vision"):
        encoder[stream] = StreamConfig(**encoder[stream])
    known = {**values, "encoder": VilbertConfig(**encoder)}
    known["concepts"] = None if concepts is None else ConceptConfig(**concepts)
    known["grounding"] = GroundingConfig(**values["grounding"]) if values.get("grounding") else None
    return TigerConfig(**known)
