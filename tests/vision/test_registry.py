from pathlib import Path

import numpy as np
import pytest

from capedit.errors import CapeditError
from capedit.vision.registry import encoder_path, load_encoder


def test_an_encoder_by_its_file(encoder_file: Path) -> None:
    assert load_encoder(str(encoder_file)).name == "tiny"
    assert load_encoder(str(encoder_file), grid=2).name == "tiny pooled 2 x 2"


def test_the_bundled_encoder_is_the_default() -> None:
    encoder = load_encoder()
    assert encoder_path().parent.parent.name == "vision"
    tokens = encoder.encode([np.zeros((30, 40, 3), np.uint8)])[0]
    assert tokens.features.shape == (17, encoder.dim)


def test_imagenet_encoders_are_found_in_the_cache(
    encoder_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPEDIT_CACHE", str(tmp_path / "cache"))
    with pytest.raises(CapeditError, match="efficientnet_onnx lite0"):
        load_encoder("lite0")
    cached = tmp_path / "cache" / "encoders" / "efficientnet-lite0-imagenet-224.onnx"
    cached.write_bytes(encoder_file.read_bytes())
    assert load_encoder("lite0").name == "tiny"


def test_unknown_names() -> None:
    with pytest.raises(CapeditError, match="'lite9': expected default, lite0"):
        load_encoder("lite9")
    with pytest.raises(CapeditError, match="a grid is an option of grid encoders"):
        load_encoder("clip:ViT-B-32", grid=3)
