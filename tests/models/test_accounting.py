"""The published network, accounted for: parameters and multiply-accumulates (see docs/models.md)."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from capedit.models.accounting import Cost, encoder_cost, parameters, published_module, tag_head_cost, word_head_cost
from capedit.models.tiger import Module, Tiger
from capedit.models.tiger_files import named_config
from capedit.models.vilbert import TextInput, Vilbert, VisionInput

BASE = named_config("tiger-base")
TEXT, VISION = 32, 37
PAPER = 7.508e9


def published(**traits: bool) -> Cost:
    """All parts of a published module with these traits."""
    parts = published_module(BASE.encoder, TEXT, VISION)
    chosen = [p.cost for p in parts if all(getattr(p, trait) is wanted for trait, wanted in traits.items())]
    return sum(chosen, Cost(0, 0))


def counted(encoder: Vilbert, text: int, vision: int) -> int:
    """Multiply-accumulates of all linear layers, seen while a forward passes them (without computing anything)."""
    total = 0

    def count(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal total
        total += output.numel() * inputs[0].shape[-1]

    for layer in encoder.modules():
        if isinstance(layer, nn.Linear):
            layer.register_forward_hook(count)
    with torch.device("meta"):
        ids, there = torch.zeros(1, text, dtype=torch.long), torch.ones(1, text, dtype=torch.bool)
        features, boxes = torch.zeros(1, vision, encoder.config.feature_width), torch.zeros(1, vision, 5)
        encoder(TextInput(ids, there), VisionInput(features, boxes))
    return total


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("text", "vision"), [(TEXT, VISION), (12, 37), (5, 3)])
def test_macs_are_those_that_a_forward_makes(whole: bool, text: int, vision: int) -> None:
    with torch.device("meta"):
        encoder = Vilbert(replace(BASE.encoder, whole=whole)).eval()
    assert encoder_cost(encoder, text, vision).macs == counted(encoder, text, vision)


def test_parameters_of_the_published_network() -> None:
    module = published().parameters
    assert module == 233_868_800 + 15_552_579 + 593_666 + 622_650
    assert round(module / 1e6, 1) == 250.6
    assert round(3 * module / 1e6, 1) == 751.9


def test_parameters_of_the_network_that_is_built_here() -> None:
    with torch.device("meta"):
        model = Tiger(BASE)
    encoder = parameters(model.encoder(Module.DELETE))
    assert encoder == 221_789_696
    assert parameters(model) == 3 * encoder + 2 * 593_666 + 622_650
    assert parameters(model) == 3 * published(needed=True).parameters - 593_666 - 2 * 622_650


def test_macs_of_a_published_forward() -> None:
    near = published(counted=True).macs
    assert near == 7_503_586_304
    assert abs(near / PAPER - 1) < 0.01
    assert published(run=True).macs == 7_988_248_576


def test_macs_of_a_forward_here() -> None:
    encoder = published_module(BASE.encoder, TEXT, VISION)[0].cost.macs
    assert encoder == 6_660_744_192
    assert tag_head_cost(BASE.encoder, TEXT).macs == 32 * (768 * 768 + 2 * 768)
    assert word_head_cost(BASE.encoder, 2).macs == 2 * (768 * 768 + 768 * 30522)
