"""A small editor with random weights: real in every part, but it has learned nothing."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from capedit.editing import Bundle, Editor
from capedit.editing.editor import Runtime, load_modules
from capedit.editing.export import Description, export_bundle
from capedit.models.concepts import ConceptConfig
from capedit.models.decoding import Knobs
from capedit.models.grounding import GroundingConfig
from capedit.models.onnx_precision import Bits
from capedit.models.tiger import Tiger, TigerConfig
from capedit.models.vilbert import StreamConfig, VilbertConfig
from capedit.models.vocabulary import Vocabulary
from capedit.vision import ImageSource, VisualTokens, load_image
from capedit.vision.tokens import grid_corners

WORDS = "a the dog cat man woman is on in with of sofa table grass red blue running sitting and two".split()
DIM = 12


class MeanColours:
    """An encoder with nothing to download: a cell's features are made of its mean colour."""

    name = "mean-colours"
    hash = "mean-colours-0001"
    dim = DIM

    def encode(self, images: Sequence[ImageSource]) -> list[VisualTokens]:
        return [self._encode(np.asarray(load_image(image))) for image in images]

    def _encode(self, image: NDArray[np.uint8]) -> VisualTokens:
        side = min(image.shape[:2]) // 2 * 2
        cells = image[:side, :side].reshape(2, side // 2, 2, side // 2, 3).mean((1, 3)).reshape(4, 3) / 128 - 1
        features = np.concatenate([cells**power for power in (1, 2, 3, 4)], 1).astype(np.float32)
        return VisualTokens.from_regions(features, grid_corners(2, 2))


def tiny_config(**changes: object) -> TigerConfig:
    encoder = VilbertConfig(
        vocabulary=len(Vocabulary(WORDS)),
        text=StreamConfig(width=16, layers=2, heads=2, inner=32),
        vision=StreamConfig(width=16, layers=2, heads=2, inner=32),
        co_width=16,
        co_heads=2,
        feature_width=DIM,
        dropout=0.0,
        positions=40,
        vision_reads_text=False,
    )
    grounding = GroundingConfig(encoder.vocabulary, DIM, 16, heads=2, inner=16, space=8, positions=40)
    values = {
        "shared": True,
        "concepts": ConceptConfig(words=8, shown=3),
        "matching": True,
        "grounding": grounding,
        **changes,
    }
    return TigerConfig(encoder, **values)  # type: ignore[arg-type]


def write_tiny_model(
    folder: Path, config: TigerConfig | None = None, knobs: Knobs | None = None, bits: Bits = Bits.FLOAT32
) -> Path:
    """A model folder with both the ONNX files and the torch weights of one random network."""
    torch.manual_seed(0)
    model = Tiger(config or tiny_config(), torch.arange(7, 15)).eval()
    with torch.no_grad():  # far from zero, so that it has opinions
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(12)
    description = Description("tiny", MeanColours.hash, knobs or Knobs())
    export_bundle(model, Vocabulary(WORDS), description, folder, bits=bits, with_torch=True)
    return folder


def tiny_editor(folder: Path, *, runtime: Runtime = Runtime.ONNX, knobs: Knobs | None = None) -> Editor:
    bundle = Bundle.load(write_tiny_model(folder, knobs=knobs))
    return Editor(bundle, load_modules(bundle, runtime, 1), MeanColours())
