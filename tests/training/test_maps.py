from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from capedit.errors import CapeditError
from capedit.models.efficientnet import LITE_CONFIGS, EfficientNetLite
from capedit.models.efficientnet_onnx import export_onnx
from capedit.models.efficientnet_tail import Tail
from capedit.training.maps import fill_maps, maps_of
from capedit.vision import GridEncoder
from capedit.vision.extraction import ImageEntry, find_images


@pytest.fixture
def network() -> EfficientNetLite:
    torch.manual_seed(0)
    return EfficientNetLite(replace(LITE_CONFIGS["lite0"], resolution=64)).eval()


@pytest.fixture
def images(tmp_path: Path) -> list[ImageEntry]:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number in range(20):
        pixels = np.random.default_rng(number).integers(0, 256, (40, 50, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02}.png")
    return find_images([folder])


def test_body_and_tail_make_the_whole_network(
    network: EfficientNetLite, images: list[ImageEntry], tmp_path: Path
) -> None:
    export_onnx(network, tmp_path / "whole.onnx", name="whole")
    whole = GridEncoder(tmp_path / "whole.onnx", threads=1)
    store = fill_maps(network, 5, images, tmp_path / "maps")
    with torch.no_grad():
        features = Tail(network, first_stage=5)(torch.from_numpy(maps_of(store, ["03", "00"])))
    for row, number in enumerate((3, 0)):
        expected = whole.encode([images[number].path])[0].features[1:]
        np.testing.assert_allclose(features[row].numpy(), expected, rtol=0.02, atol=0.02)  # float16 on the way


def test_a_broken_run_goes_on_where_it_was(network: EfficientNetLite, images: list[ImageEntry], tmp_path: Path) -> None:
    names = [entry.image_id for entry in images]
    whole = maps_of(fill_maps(network, 5, images, tmp_path / "whole"), names)

    def stop(done: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill_maps(network, 5, images, tmp_path / "parts", report=stop, workers=1)
    first = {path: path.read_bytes() for path in (tmp_path / "parts").glob("shard-*")}
    assert first
    seen: list[int] = []
    again = fill_maps(network, 5, images, tmp_path / "parts", report=seen.append)
    np.testing.assert_array_equal(maps_of(again, names), whole)
    assert first == {path: path.read_bytes() for path in first}
    assert seen[-1] == len(images)


def test_an_image_that_cannot_be_read_is_left_out(
    network: EfficientNetLite, images: list[ImageEntry], tmp_path: Path
) -> None:
    images[7].path.write_bytes(b"no picture")
    store = fill_maps(network, 5, images, tmp_path / "maps")
    assert len(store) == len(images) - 1
    assert [failure.image_id for failure in store.failures()] == ["07"]


def test_maps_of_another_network_are_not_mixed_in(
    network: EfficientNetLite, images: list[ImageEntry], tmp_path: Path
) -> None:
    fill_maps(network, 5, images[:2], tmp_path / "maps")
    with pytest.raises(CapeditError, match="encoder"):
        fill_maps(network, 4, images[:2], tmp_path / "maps")
