"""A depthwise convolution over channels-last maps whose derivatives are plain convolutions.

In 16 bits torch differentiates a depthwise convolution several times slower than it computes one. But both derivatives
are convolutions themselves: that of the input, with the kernel turned round; that of the kernel, of each map with the
gradient that came back to it. So all three run at the speed of the first.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import conv2d, pad

from capedit.models.efficientnet import same_padding


def depthwise(x: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
    """(B, H, W, C) by kernels (C, 1, k, k), under TensorFlow's "SAME" rule, -> (B, H', W', C)."""
    kernel = weight.shape[-1]
    (top, bottom), (left, right) = (same_padding(size, kernel, stride) for size in x.shape[1:3])
    padded = pad(x, (0, 0, left, right, top, bottom))
    if torch.is_autocast_enabled("cpu"):
        padded, weight, bias = (part.to(torch.get_autocast_dtype("cpu")) for part in (padded, weight, bias))
    if padded.dtype is torch.bfloat16:
        y: Tensor = _Depthwise.apply(padded, weight, bias, stride)  # type: ignore[no-untyped-call]
        return y
    return _convolved(padded, weight, bias, stride)


def _convolved(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int = 1, margin: int = 0) -> Tensor:
    return conv2d(x.permute(0, 3, 1, 2), weight, bias, stride, margin, groups=len(weight)).permute(0, 2, 3, 1)


class _Depthwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.stride = stride
        return _convolved(x, weight, bias, stride)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        (x, weight), stride, back = ctx.saved_tensors, ctx.stride, gradients[0]
        kernel, (images, rows, columns, channels) = weight.shape[-1], back.shape

        spread = back.new_zeros(images, *(size - kernel + 1 for size in x.shape[1:3]), channels)
        spread[:, : (rows - 1) * stride + 1 : stride, : (columns - 1) * stride + 1 : stride] = back
        to_input = _convolved(spread, weight.flip(2, 3), margin=kernel - 1)

        # Every channel of every image is a channel of one image here, and what came back to it is its kernel.
        maps = x.permute(1, 2, 0, 3).flatten(2).permute(2, 0, 1).unsqueeze(0)  # (1, images x channels, H, W)
        kernels = back.permute(0, 3, 1, 2).flatten(0, 1).unsqueeze(1)
        found = conv2d(maps, kernels, dilation=stride, groups=len(kernels))[..., :kernel, :kernel]
        to_weight = found.view(images, *weight.shape[:1], 1, kernel, kernel).float().sum(0)
        return to_input, to_weight.to(weight.dtype), back.float().sum((0, 1, 2)).to(weight.dtype), None
