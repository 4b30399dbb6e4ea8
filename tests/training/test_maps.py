from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from capedit.errors import CapeditError
from capedit.models.efficientnet import LITE_CONFIGS, EfficientNetLite
from capedit.models.efficientnet_onnx import export_onnx
from capedit.models.efficientnet_tail import Tail
from capedit.training import maps
from capedit.vision import GridEncoder


@pytest.fixture
def network() -> EfficientNetLite:
    torch.manual_seed(0)
    return EfficientNetLite(LITE_CONFIGS["lite0"]).eval()


@pytest.fixture
def body(network: EfficientNetLite, tmp_path: Path) -> GridEncoder:
    export_onnx(network, tmp_path / "body.onnx", name="body", resolution=64, stages=5)
    return GridEncoder(tmp_path / "body.onnx", threads=1)


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{number}.png" for number in range(5)]
    for number, path in enumerate(paths):
        pixels = np.random.default_rng(number).integers(0, 256, (40, 50, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
    return paths


def test_body_and_tail_make_the_whole_network(
    network: EfficientNetLite, body: GridEncoder, images: list[Path], tmp_path: Path
) -> None:
    export_onnx(network, tmp_path / "whole.onnx", name="whole", resolution=64)
    whole = GridEncoder(tmp_path / "whole.onnx", threads=1)
    cache = maps.fill_map_cache(images, body, tmp_path / "maps")
    with torch.no_grad():
        features = Tail(network, first_stage=5)(torch.from_numpy(cache.batch(np.array([3, 0]))))
    for row, number in enumerate((3, 0)):
        expected = whole.encode([images[number]])[0].features[1:]
        np.testing.assert_allclose(features[row].numpy(), expected, rtol=0.02, atol=0.02)  # float16 on the way


def test_a_broken_run_goes_on_where_it_was(
    body: GridEncoder, images: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps, "CHUNK", 2)
    whole = maps.fill_map_cache(images, body, tmp_path / "whole").batch(np.arange(5))

    def stop(done: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        maps.fill_map_cache(images, body, tmp_path / "parts", report=stop)
    first = (tmp_path / "parts/00000.npy").stat().st_mtime_ns
    seen: list[int] = []
    again = maps.fill_map_cache(images, body, tmp_path / "parts", report=seen.append)
    np.testing.assert_array_equal(again.batch(np.arange(5)), whole)
    assert (tmp_path / "parts/00000.npy").stat().st_mtime_ns == first
    assert seen == [2, 4, 5]


def test_maps_of_other_images_are_not_mixed_in(body: GridEncoder, images: list[Path], tmp_path: Path) -> None:
    maps.fill_map_cache(images, body, tmp_path / "maps")
    with pytest.raises(CapeditError, match="other images"):
        maps.fill_map_cache(images[:3], body, tmp_path / "maps")
