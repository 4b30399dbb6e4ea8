from pathlib import Path

import pytest

from capedit.errors import CapeditError
from capedit.vision import registry
from capedit.vision.registry import encoder_path, load_encoder


def test_an_encoder_by_its_file(encoder_file: Path) -> None:
    assert load_encoder(str(encoder_file)).name == "tiny"
    assert load_encoder(str(encoder_file), grid=2).name == "tiny pooled 2 x 2"


def test_the_bundled_encoder_is_the_default(
    encoder_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ours.onnx").write_bytes(encoder_file.read_bytes())
    monkeypatch.setattr(registry, "BUNDLED", tmp_path)
    assert encoder_path() == tmp_path / "ours.onnx"
    assert load_encoder().name == "tiny"


def test_without_it_the_default_is_in_the_cache(
    encoder_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "BUNDLED", tmp_path / "none")
    monkeypatch.setenv("CAPEDIT_CACHE", str(tmp_path / "cache"))
    with pytest.raises(CapeditError, match="efficientnet_onnx lite0"):
        load_encoder()
    cached = tmp_path / "cache" / "encoders" / "efficientnet-lite0-imagenet-224.onnx"
    cached.write_bytes(encoder_file.read_bytes())
    assert load_encoder().name == load_encoder("lite0").name == "tiny"


def test_unknown_names() -> None:
    with pytest.raises(CapeditError, match="'lite9': expected default, lite0"):
        load_encoder("lite9")
    with pytest.raises(CapeditError, match="a grid is an option of grid encoders"):
        load_encoder("clip:ViT-B-32", grid=3)
