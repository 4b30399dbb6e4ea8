"""A small encoder with random weights, exported here: the tests need no download and no cache."""

from pathlib import Path

import pytest
import torch

from capedit.models.efficientnet import ConvNorm, EfficientNetLite, LiteConfig, Stage
from capedit.models.efficientnet_onnx import export_onnx
from capedit.vision.grid import GridEncoder

TINY = LiteConfig(
    name="tiny",
    resolution=56,
    stages=(
        Stage(kernel=3, stride=1, expansion=1, width=8, repeats=1),
        Stage(kernel=5, stride=2, expansion=4, width=16, repeats=2),
        Stage(kernel=3, stride=2, expansion=2, width=24, repeats=1),
    ),
    stem_width=8,
    dim=32,
)


def random_network(config: LiteConfig = TINY) -> EfficientNetLite:
    """A network whose batch norms have statistics worth folding."""
    torch.manual_seed(0)
    network = EfficientNetLite(config).eval()
    for module in network.modules():
        if isinstance(module, ConvNorm):
            norm = module.norm
            assert norm.running_mean is not None
            assert norm.running_var is not None
            torch.nn.init.normal_(norm.running_mean, std=0.2)
            torch.nn.init.uniform_(norm.running_var, 0.2, 1.0)
            torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
            torch.nn.init.normal_(norm.bias, mean=0.5, std=0.5)
    return network


@pytest.fixture(scope="session")
def network() -> EfficientNetLite:
    return random_network()


@pytest.fixture(scope="session")
def encoder_file(network: EfficientNetLite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("encoder") / "tiny.onnx"
    export_onnx(network, path, name="tiny")
    return path


@pytest.fixture(scope="session")
def encoder(encoder_file: Path) -> GridEncoder:
    return GridEncoder(encoder_file, threads=1)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPEDIT_CACHE", str(tmp_path_factory.mktemp("cache")))
