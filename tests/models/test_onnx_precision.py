import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from capedit.models.onnx_precision import Bits, shrink
from capedit.models.runtime import Floats, Ints

WORDS, WIDTH = 300, 64


class Reader(nn.Module):
    """Words are looked up in a table, pass two kinds of product, and are told by the same table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        self.dense, self.flat = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, ids: Tensor, scale: Tensor) -> Tensor:
        x = torch.relu(self.dense(self.table(ids))) * scale  # (B, T, D)
        told: Tensor = self.flat(x[:, 0]) @ self.table.weight.T  # (B, V)
        return told


def written(path: Path, bits: Bits, bias: float = 0.0) -> Path:
    torch.manual_seed(0)
    model = Reader()
    with torch.no_grad():
        for layer in (model.dense, model.flat):
            layer.weight += bias
    example = (torch.zeros(2, 3, dtype=torch.long), torch.ones(2, 1, 1))
    axes = {"ids": {0: "captions"}, "scale": {0: "captions"}}
    names = {"input_names": ["ids", "scale"], "output_names": ["told"], "dynamic_axes": axes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model.eval(), example, str(path), opset_version=17, dynamo=False, **names)  # type: ignore[arg-type]
    shrink(path, bits)
    return path


def told(path: Path, ids: Ints, scale: Floats) -> Floats:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"ids": ids, "scale": scale})[0])


IDS = np.arange(18).reshape(6, 3) * 7
ONES = np.ones((6, 1, 1), np.float32)


@pytest.mark.parametrize("bias", [0.0, 0.5])  # with a bias sums are so large that 16 bits would not hold them
@pytest.mark.parametrize("bits", [Bits.FLOAT16, Bits.INT8])
def test_what_is_stored_in_few_bits_says_nearly_the_same(tmp_path: Path, bits: Bits, bias: float) -> None:
    wide, narrow = (told(written(tmp_path / f"{b}.onnx", b, bias), IDS, ONES) for b in (Bits.FLOAT32, bits))
    assert np.abs(wide - narrow).max() < 0.02 * np.abs(wide).max()


def test_in_eight_bits_a_caption_does_not_depend_on_its_neighbours(tmp_path: Path) -> None:
    path = written(tmp_path / "int8.onnx", Bits.INT8)
    alone = told(path, IDS[:1], ONES[:1])
    loud = ONES.copy()
    loud[1:] = 1000.0
    np.testing.assert_allclose(told(path, IDS, loud)[:1], alone, rtol=1e-4, atol=1e-4 * np.abs(alone).max())


def test_fewer_bits_make_smaller_files_and_keep_a_table_once(tmp_path: Path) -> None:
    sizes = {bits: written(tmp_path / f"{bits}.onnx", bits).stat().st_size for bits in Bits}
    assert sizes[Bits.FLOAT16] < 0.6 * sizes[Bits.FLOAT32]
    once = WORDS * WIDTH + 2 * WIDTH * WIDTH
    assert once < sizes[Bits.INT8] < 1.5 * once
