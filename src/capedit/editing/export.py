"""Write a model folder out of a trained network: what an `Editor` loads."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from capedit.editing.bundle import FORMAT, Bundle, bring_encoder
from capedit.errors import CapeditError
from capedit.models.accounting import parameters
from capedit.models.decoding import Calibration, Knobs
from capedit.models.onnx_precision import Bits, shrink
from capedit.models.tiger import Tiger
from capedit.models.tiger_files import load_tiger, save_tiger
from capedit.models.tiger_onnx import export_tiger
from capedit.models.vocabulary import Vocabulary


@dataclass(frozen=True)
class Description:
    """What a model folder says of itself."""

    name: str
    encoder: str
    """Hash of the encoder whose visual tokens it reads."""
    knobs: Knobs = field(default_factory=Knobs)
    calibration: Calibration = field(default_factory=Calibration)
    card: Mapping[str, Any] = field(default_factory=dict)
    """Data, training and scores, for people."""


def export_bundle(
    model: Tiger,
    vocabulary: Vocabulary,
    description: Description,
    folder: Path,
    *,
    bits: Bits = Bits.FLOAT32,
    with_torch: bool = False,
) -> Bundle:
    """Write the networks as ONNX, and with `with_torch` also as weights for the torch runtime."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary.save(folder / "vocabulary.json")
    for path in export_tiger(model, folder):
        shrink(path, bits)
    if with_torch:
        save_tiger(model, folder / "weights.safetensors")
    write_description(model, description, folder, bits)
    return Bundle.load(folder)


def reexport(source: Path, folder: Path, bits: Bits) -> Bundle:
    """Write a model folder, or the one of a training run, once more in other bits. It must hold its weights."""
    bundle = Bundle.load(source if (source / "model.json").exists() else source / "model")
    weights = bundle.folder / "weights.safetensors"
    if not weights.is_file():
        raise CapeditError(f"{bundle.folder}: has no {weights.name}, which networks are exported from")
    if folder.is_dir() and any(folder.iterdir()):
        raise CapeditError(f"{folder}: is not empty")
    model = load_tiger(weights)
    description = Description(bundle.name, bundle.encoder, bundle.knobs, bundle.calibration)
    known = _facts(model, description, bits)
    card = {name: value for name, value in bundle.card.items() if name not in known}
    bring_encoder(bundle.folder, folder)
    return export_bundle(model, bundle.vocabulary, replace(description, card=card), folder, bits=bits)


def write_description(model: Tiger, description: Description, folder: Path, bits: Bits) -> None:
    told = {**_facts(model, description, bits), **description.card}
    (folder / "model.json").write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _facts(model: Tiger, description: Description, bits: Bits) -> dict[str, Any]:
    """What an editor needs to know of a model, beside its card."""
    knobs = asdict(description.knobs)
    return {
        "format": FORMAT,
        "name": description.name,
        "encoder": description.encoder,
        "positions": model.config.encoder.positions,
        "matching": model.config.matching,
        "parameters": parameters(model),
        "bits": bits.value,
        "knobs": {**knobs, "protected": sorted(knobs["protected"])},
        "calibration": asdict(description.calibration),
        "shape": asdict(model.config),
    }
