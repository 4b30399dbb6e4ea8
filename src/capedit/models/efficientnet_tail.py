"""The last stages of EfficientNet-Lite as matrix products, for fine-tuning on a CPU.

Depthwise convolutions are the slowest thing a CPU can be asked to differentiate. But on a 9 x 9 map one is just an
81 x 81 matrix for each channel, and with maps laid out as (channels, batch, cells) every pointwise convolution is one
large product. So the tail trains at the speed of matrix multiplication, on maps that the frozen body computed once.
Batch norms are folded into the weights and stay as they were measured on ImageNet.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from capedit.models.efficientnet import Block, ConvNorm, EfficientNetLite, same_padding


class Pointwise(nn.Module):
    """A folded 1 x 1 convolution."""

    def __init__(self, layer: ConvNorm) -> None:
        super().__init__()
        weight, bias = layer.folded()
        self.weight = nn.Parameter(weight.flatten(1))
        self.bias = nn.Parameter(bias)
        self.activate = layer.activate

    def forward(self, x: Tensor) -> Tensor:
        """(C, B, S) -> (C', B, S)."""
        y = torch.addmm(self.bias[:, None], self.weight, x.flatten(1)).view(-1, *x.shape[1:])
        return nn.functional.relu6(y) if self.activate else y


class Depthwise(nn.Module):
    """A folded depthwise convolution over square maps of one size, as a matrix for each channel."""

    def __init__(self, layer: ConvNorm, side: int) -> None:
        super().__init__()
        weight, bias = layer.folded()
        self.weight = nn.Parameter(weight.flatten(1))  # (C, K * K)
        self.bias = nn.Parameter(bias)
        self.spread: Tensor  # (K * K, S_in * S_out): which tap of the kernel joins which two cells
        self.register_buffer("spread", taps(side, layer.kernel, layer.stride), persistent=False)
        self.cells = side * side

    def forward(self, x: Tensor) -> Tensor:
        """(C, B, S) -> (C, B, S')."""
        matrices = (self.weight @ self.spread).view(len(self.weight), self.cells, -1)  # (C, S, S')
        return nn.functional.relu6(torch.baddbmm(self.bias[:, None, None], x, matrices))


class TailBlock(nn.Module):
    """An inverted bottleneck."""

    def __init__(self, block: Block, side: int) -> None:
        super().__init__()
        assert block.expand is not None
        self.expand = Pointwise(block.expand)
        self.depthwise = Depthwise(block.depthwise, side)
        self.project = Pointwise(block.project)
        self.shortcut = block.shortcut

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.project(self.depthwise(self.expand(x)))
        return x + y if self.shortcut else y


class GemmTail(nn.Module):
    """Stages `first_stage` to the end, and the head."""

    def __init__(self, network: EfficientNetLite, first_stage: int, side: int) -> None:
        """`side` is that of the maps that come in."""
        super().__init__()
        self.first_stage = first_stage
        self.blocks = nn.ModuleList()
        for block in tail_blocks(network, first_stage):
            self.blocks.append(TailBlock(block, side))
            side = -(-side // block.depthwise.stride)
        self.head = Pointwise(network.head)

    def forward(self, maps: Tensor) -> Tensor:
        """(B, cells, C) -> (B, cells, dim)."""
        x = maps.permute(2, 0, 1).contiguous()  # (C, B, S)
        for block in self.blocks:
            x = block(x)
        features: Tensor = self.head(x)
        return features.permute(1, 2, 0)

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
                unfold(layer, weights.weight, weights.bias)
        unfold(network.head, self.head.weight, self.head.bias)


def tail_blocks(network: EfficientNetLite, first_stage: int) -> Iterator[Block]:
    for stage in list(network.stages)[first_stage:]:
        for block in stage.children():
            assert isinstance(block, Block)
            yield block


def unfold(layer: ConvNorm, weight: Tensor, bias: Tensor) -> None:
    """Make a layer compute just this weight and bias."""
    layer.conv.weight.copy_(weight.view_as(layer.conv.weight))
    norm = layer.norm
    assert norm.running_mean is not None
    assert norm.running_var is not None
    norm.running_mean.zero_()
    norm.running_var.fill_(1 - norm.eps)
    norm.weight.fill_(1)
    norm.bias.copy_(bias)


def taps(side: int, kernel: int, stride: int) -> Tensor:
    """(K * K, side^2 * out^2) of zeros and ones."""
    out = -(-side // stride)
    before, _ = same_padding(side, kernel, stride)
    spread = torch.zeros(kernel, kernel, side, side, out, out)
    for row in range(kernel):
        for column in range(kernel):
            for y in range(out):
                for x in range(out):
                    source_y, source_x = y * stride + row - before, x * stride + column - before
                    if 0 <= source_y < side and 0 <= source_x < side:
                        spread[row, column, source_y, source_x, y, x] = 1
    return spread.reshape(kernel * kernel, -1)
