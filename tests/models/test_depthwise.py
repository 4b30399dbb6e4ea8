import pytest
import torch
from torch.nn.functional import conv2d

from capedit.models.depthwise import depthwise


def results(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, y: torch.Tensor, weigh: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """A result and, of its weighted sum, all derivatives."""
    return (y, *torch.autograd.grad((y.float() * weigh).sum(), (x, weight, bias)))


@pytest.mark.parametrize("kernel", [3, 5])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("side", [6, 9])
def test_sixteen_bits_give_what_thirty_two_give_and_so_do_their_derivatives(
    kernel: int, stride: int, side: int
) -> None:
    torch.manual_seed(kernel * stride * side)
    x = torch.randn(3, side, side, 8, requires_grad=True)
    weight, bias = torch.randn(8, 1, kernel, kernel, requires_grad=True), torch.randn(8, requires_grad=True)
    exact = depthwise(x, weight, bias, stride)
    with torch.autocast("cpu", torch.bfloat16):
        short = depthwise(x, weight, bias, stride)
    assert short.dtype is torch.bfloat16
    weigh = torch.randn_like(exact)
    for full, half in zip(results(x, weight, bias, exact, weigh), results(x, weight, bias, short, weigh), strict=True):
        assert half.shape == full.shape
        assert (half.float() - full).norm() < 0.01 * full.norm()


def test_padding_is_that_of_tensorflow() -> None:
    x, weight = torch.randn(1, 6, 6, 2), torch.randn(2, 1, 3, 3)
    late = torch.nn.functional.pad(x.permute(0, 3, 1, 2), (0, 1, 0, 1))  # the odd pixel at the bottom right
    expected = conv2d(late, weight, stride=2, groups=2).permute(0, 2, 3, 1)
    torch.testing.assert_close(depthwise(x, weight, torch.zeros(2), 2), expected)
