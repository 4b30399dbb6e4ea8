import pytest
import torch

from capedit.models.efficientnet import LITE_CONFIGS, EfficientNetLite
from capedit.models.efficientnet_tail import Tail


def cells(maps: torch.Tensor) -> torch.Tensor:
    """(B, C, H, W) -> (B, cells, C)."""
    return maps.flatten(2).transpose(1, 2)


@pytest.fixture
def network() -> EfficientNetLite:
    torch.manual_seed(0)
    network = EfficientNetLite(LITE_CONFIGS["lite0"])
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(module.running_mean, std=0.1)  # type: ignore[arg-type]
            torch.nn.init.uniform_(module.running_var, 0.5, 2)  # type: ignore[arg-type]
            torch.nn.init.normal_(module.bias, std=0.1)
    return network.eval()


@torch.no_grad()
def test_the_tail_computes_what_the_convolutions_do(network: EfficientNetLite) -> None:
    pixels = torch.rand(3, 3, 96, 96) * 255
    *maps, last = network.maps(pixels)
    tail = Tail(network, first_stage=4)
    torch.testing.assert_close(tail(cells(maps[4])), cells(last), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_trained_weights_go_back_into_the_network(network: EfficientNetLite) -> None:
    pixels = torch.rand(2, 3, 96, 96) * 255
    tail = Tail(network, first_stage=5)
    for parameter in tail.parameters():
        parameter.mul_(1.1)
    *maps, before = network.maps(pixels)
    tail.write_back(network)
    after = network.features(pixels)
    assert not torch.allclose(before, after)
    torch.testing.assert_close(cells(after), tail(cells(maps[5])), rtol=1e-4, atol=1e-4)
