import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from capedit.errors import CapeditError
from capedit.models.efficientnet import EfficientNetLite
from capedit.models.efficientnet_onnx import export_onnx
from capedit.vision.grid import GridEncoder
from capedit.vision.image import ImageError
from capedit.vision.tokens import VisualTokens


def pictures(count: int) -> list[Image.Image]:
    chance = np.random.default_rng(0)
    sizes = chance.integers(20, 200, (count, 2))
    noise = (chance.integers(0, 256, (4, 5, 3), dtype=np.uint8) for _ in range(count))
    return [Image.fromarray(one).resize((int(w), int(h))) for one, (w, h) in zip(noise, sizes, strict=True)]


def same(one: VisualTokens, other: VisualTokens) -> bool:
    return np.array_equal(one.features, other.features) and np.array_equal(one.boxes, other.boxes)


def test_each_cell_is_a_token(encoder: GridEncoder) -> None:
    (tokens,) = encoder.encode(pictures(1))
    assert (len(tokens), tokens.dim, encoder.dim) == (50, 32, 32)
    np.testing.assert_allclose(tokens.features[0], tokens.features[1:].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(tokens.boxes[1 + 7 * 2 + 3], [3 / 7, 2 / 7, 4 / 7, 3 / 7, 1 / 49], atol=1e-6)


def test_cells_lie_where_their_boxes_say(encoder: GridEncoder) -> None:
    """Changing a corner of the picture changes the cells there, and not the far ones."""
    plain = Image.new("RGB", (112, 112), (90, 120, 150))
    marked = plain.copy()
    marked.paste((255, 0, 0), (96, 0, 112, 16))
    before, after = encoder.encode([plain, marked])
    change = np.abs(after.features - before.features).sum(axis=1)[1:]
    touched = before.boxes[1:][change > 1e-6]
    assert len(touched)
    assert touched[:, 0].min() > 0.4
    assert touched[:, 3].max() < 0.6
    assert change.argmax() in (5, 6, 13)  # the upper right cell, or a neighbour


def test_tokens_equal_the_torch_network(encoder: GridEncoder, network: EfficientNetLite) -> None:
    picture = pictures(1)[0]
    pixels = torch.from_numpy(encoder.prepare(picture).copy()).permute(2, 0, 1)[None]
    with torch.inference_mode():
        cells = network.features(pixels)[0].flatten(1).T.numpy()
    np.testing.assert_allclose(encoder.encode([picture])[0].features[1:], cells, atol=1e-4)


@pytest.mark.parametrize("grid", [None, 3])
def test_batch_and_single_give_the_same_tokens(encoder_file: Path, grid: int | None) -> None:
    encoder = GridEncoder(encoder_file, grid=grid, threads=1)
    images = pictures(19)
    batch = encoder.encode(images)
    assert all(same(one, encoder.encode([image])[0]) for one, image in zip(batch, images, strict=True))
    assert encoder.encode([]) == []


def test_threads_share_an_encoder(encoder: GridEncoder) -> None:
    images = pictures(24)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda image: encoder.encode([image])[0], images))
    assert all(same(one, other) for one, other in zip(results, encoder.encode(images), strict=True))


def test_the_same_pixels_from_jpeg_and_png(encoder: GridEncoder, tmp_path: Path) -> None:
    picture = pictures(1)[0]
    picture.save(tmp_path / "one.jpg", quality=80)
    with Image.open(tmp_path / "one.jpg") as decoded:
        decoded.save(tmp_path / "one.png")
    from_jpeg, from_png = encoder.encode([tmp_path / "one.jpg", str(tmp_path / "one.png")])
    assert same(from_jpeg, from_png)
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=80)
    assert same(from_jpeg, encoder.encode([buffer.getvalue()])[0])


@pytest.mark.parametrize("grid", [1, 2, 3, 5, 7])
def test_pooling_weighs_by_area(encoder: GridEncoder, encoder_file: Path, grid: int) -> None:
    picture = pictures(1)[0]
    (full,) = encoder.encode([picture])
    (pooled,) = GridEncoder(encoder_file, grid=grid, threads=1).encode([picture])
    assert len(pooled) == grid * grid + 1
    np.testing.assert_allclose(pooled.features[0], full.features[0], atol=1e-5)  # the whole image stays
    # The slow way: blow every cell up to grid x grid pieces, and average whole cells of pieces.
    pieces = full.features[1:].reshape(7, 7, -1).repeat(grid, axis=0).repeat(grid, axis=1)
    expected = pieces.reshape(grid, 7, grid, 7, -1).mean(axis=(1, 3)).reshape(grid * grid, -1)
    np.testing.assert_allclose(pooled.features[1:], expected, atol=1e-5)
    np.testing.assert_allclose(pooled.boxes[1:, 4], 1 / grid**2, atol=1e-6)


def test_the_hash_tells_encoders_apart(
    encoder: GridEncoder, encoder_file: Path, network: EfficientNetLite, tmp_path: Path
) -> None:
    copy = tmp_path / "renamed.onnx"
    copy.write_bytes(encoder_file.read_bytes())
    export_onnx(network, tmp_path / "larger.onnx", name="tiny", resolution=64)
    others = [
        GridEncoder(encoder_file, grid=3),
        GridEncoder(encoder_file, grid=2),
        GridEncoder(tmp_path / "larger.onnx"),
    ]
    assert GridEncoder(copy).hash == encoder.hash
    assert len({encoder.hash, *(other.hash for other in others)}) == 4
    assert (encoder.name, others[0].name) == ("tiny", "tiny pooled 3 x 3")


def test_wrong_files_are_refused(encoder_file: Path, tmp_path: Path) -> None:
    (tmp_path / "junk.onnx").write_bytes(b"junk")
    with pytest.raises(CapeditError, match=r"junk\.onnx: not an ONNX file"):
        GridEncoder(tmp_path / "junk.onnx")
    with pytest.raises(CapeditError, match=r"none\.onnx: encoder cannot be read"):
        GridEncoder(tmp_path / "none.onnx")
    with pytest.raises(CapeditError, match="grid 8 does not fit a map of 7 x 7"):
        GridEncoder(encoder_file, grid=8)


def test_an_unreadable_image_is_named(encoder: GridEncoder, tmp_path: Path) -> None:
    (tmp_path / "bad.jpg").write_bytes(b"no picture")
    with pytest.raises(ImageError, match=r"bad\.jpg"):
        encoder.encode([pictures(1)[0], tmp_path / "bad.jpg"])
