"""Write a model folder out of a trained network: what an `Editor` loads."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from capedit.editing.bundle import FORMAT, Bundle
from capedit.models.decoding import Calibration, Knobs
from capedit.models.onnx_precision import Bits, shrink
from capedit.models.tiger import Tiger
from capedit.models.tiger_files import save_tiger
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


def write_description(model: Tiger, description: Description, folder: Path, bits: Bits) -> None:
    knobs = asdict(description.knobs)
    told = {
        "format": FORMAT,
        "name": description.name,
        "encoder": description.encoder,
        "positions": model.config.encoder.positions,
        "matching": model.config.matching,
        "bits": bits.value,
        "knobs": {**knobs, "protected": sorted(knobs["protected"])},
        "calibration": asdict(description.calibration),
        "shape": asdict(model.config),
        **description.card,
    }
    (folder / "model.json").write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
