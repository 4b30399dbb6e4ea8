from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image

from capedit.data.builders.captions import CaptionTable
from capedit.errors import CapeditError
from capedit.models.bits import Bits
from capedit.models.concept_files import ConceptTable
from capedit.models.efficientnet import LITE_CONFIGS, EfficientNetLite
from capedit.models.efficientnet_onnx import export_onnx, load_onnx
from capedit.training import TrainConfig
from capedit.training.train_encoder import CONCEPTS, ENCODER, EncoderRecipe, train_encoder
from capedit.vision import GridEncoder

COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30)}
TABLE = CaptionTable.from_pairs((at, ("a", list(COLOURS)[at % 2], "square")) for at in range(10))
CONFIG = TrainConfig(steps=4, batch_size=4, learning_rate=1e-3, evaluate_every=2, checkpoint_every=4)


def made_network(name: str = "lite0") -> EfficientNetLite:
    torch.manual_seed(0)
    return EfficientNetLite(LITE_CONFIGS[name]).eval()


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    for at in range(len(TABLE)):
        noise = np.random.default_rng(at).integers(0, 40, (24, 24, 3))
        Image.fromarray((noise + np.array(list(COLOURS.values())[at % 2])).astype(np.uint8)).save(
            tmp_path / f"{at}.png"
        )
    return tmp_path


def trained(network: EfficientNetLite, pictures: Path, out: Path, frozen: int, start: ConceptTable | None) -> float:
    recipe = EncoderRecipe(words=3, frozen_stages=frozen, held_out=2)
    figures = train_encoder(
        network, TABLE, lambda at: pictures / f"{at}.png", CONFIG, out, recipe=recipe, start=start, workers=1
    )
    return figures["held-out loss"]


def test_an_encoder_is_trained_and_then_trained_further(picture: Path) -> None:
    first, second = picture / "first", picture / "second"
    trained(made_network(), picture, first, frozen=6, start=None)
    concepts = ConceptTable.load(first / CONCEPTS)
    assert concepts.words == ("square", "green", "red")
    assert concepts.encoder == GridEncoder(first / ENCODER).hash

    again = made_network()
    load_onnx(again, first / ENCODER)
    untouched = [parameter.clone() for parameter in again.stages[3].parameters()]
    trained(again, picture, second, frozen=5, start=concepts)
    further = ConceptTable.load(second / CONCEPTS)
    assert further.words == concepts.words
    moved = float((further.weight - concepts.weight).abs().max())
    assert 0 < moved < 0.01  # it went on from there; a new head would be drawn anew
    assert all(map(torch.equal, again.stages[3].parameters(), untouched))


@pytest.mark.parametrize("bits", Bits)
def test_an_encoder_file_is_read_back(bits: Bits, tmp_path: Path) -> None:
    network, again = made_network(), made_network()
    for layer in network.layers():
        torch.nn.init.normal_(layer.norm.bias, std=0.1)
        torch.nn.init.uniform_(layer.norm.running_var, 0.5, 2)  # type: ignore[arg-type]
    export_onnx(network, tmp_path / "encoder.onnx", name="made", resolution=64, bits=bits)
    load_onnx(again, tmp_path / "encoder.onnx")
    pixels = np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3), np.uint8)
    session = onnxruntime.InferenceSession(tmp_path / "encoder.onnx", providers=["CPUExecutionProvider"])
    seen = torch.from_numpy(session.run(None, {"pixels": pixels})[0]).permute(0, 3, 1, 2)
    with torch.no_grad():
        torch.testing.assert_close(again(torch.from_numpy(pixels).permute(0, 3, 1, 2)), seen, rtol=1e-3, atol=1e-3)
    with pytest.raises(CapeditError, match="lite2 has"):
        load_onnx(made_network("lite2"), tmp_path / "encoder.onnx")
