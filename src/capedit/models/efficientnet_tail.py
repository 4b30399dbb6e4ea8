"""The last stages of EfficientNet-Lite, for fine-tuning on a CPU, on maps that the frozen body computed once.

Batch norms are folded into the weights and stay as they were measured on ImageNet. Maps are laid out as (batch, rows,
columns, channels): a pointwise convolution is one large product then, and a depthwise one is several times cheaper to
differentiate than in torch's usual order.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from capedit.models.depthwise import depthwise
from capedit.models.efficientnet import Block, ConvNorm, EfficientNetLite


class Pointwise(nn.Module):
    """A folded 1 x 1 convolution."""

    def __init__(self, layer: ConvNorm) -> None:
        super().__init__()
        weight, bias = layer.folded()
        self.weight = nn.Parameter(weight.flatten(1))
        self.bias = nn.Parameter(bias)
        self.activate = layer.activate

    def forward(self, x: Tensor) -> Tensor:
        """(B, H, W, C) -> (B, H, W, C')."""
        y = nn.functional.linear(x, self.weight, self.bias)
        return nn.functional.relu6(y) if self.activate else y


class Depthwise(nn.Module):
    """A folded depthwise convolution."""

    def __init__(self, layer: ConvNorm) -> None:
        super().__init__()
        weight, bias = layer.folded()
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(bias)
        self.stride = layer.stride

    def forward(self, x: Tensor) -> Tensor:
        """(B, H, W, C) -> (B, H', W', C)."""
        return nn.functional.relu6(depthwise(x, self.weight, self.bias, self.stride))


class TailBlock(nn.Module):
    """An inverted bottleneck."""

    def __init__(self, block: Block) -> None:
        super().__init__()
        assert block.expand is not None
        self.expand = Pointwise(block.expand)
        self.depthwise = Depthwise(block.depthwise)
        self.project = Pointwise(block.project)
        self.shortcut = block.shortcut

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.project(self.depthwise(self.expand(x)))
        return x + y if self.shortcut else y


class Tail(nn.Module):
    """Stages `first_stage` to the end, and the head."""

    def __init__(self, network: EfficientNetLite, first_stage: int) -> None:
        super().__init__()
        self.first_stage = first_stage
        self.blocks = nn.ModuleList(TailBlock(block) for block in tail_blocks(network, first_stage))
        self.head = Pointwise(network.head)

    def forward(self, maps: Tensor) -> Tensor:
        """Square maps (B, cells, C) -> (B, cells, dim)."""
        side = round(maps.shape[1] ** 0.5)
        x = maps.unflatten(1, (side, side))
        for block in self.blocks:
            x = block(x)
        features: Tensor = self.head(x)
        return features.flatten(1, 2)

    @torch.no_grad()
    def write_back(self, network: EfficientNetLite) -> None:
        """Put the trained weights into a network, whose batch norms there become plain biases."""
        for block, trained in zip(tail_blocks(network, self.first_stage), self.blocks, strict=True):
            assert isinstance(trained, TailBlock)
            assert block.expand is not None
            for layer, weights in (
                (block.expand, trained.expand),
                (block.depthwise, trained.depthwise),
                (block.project, trained.project),
            ):
                layer.unfold(weights.weight, weights.bias)
        network.head.unfold(self.head.weight, self.head.bias)


def tail_blocks(network: EfficientNetLite, first_stage: int) -> Iterator[Block]:
    for stage in list(network.stages)[first_stage:]:
        for block in stage.children():
            assert isinstance(block, Block)
            yield block
