"""Where tensors live: on torch's default device, which a command that trains sets once for all that it does.

Networks, optimisers and masks are made on that device by torch itself. What comes from numpy or a file, and what goes
back there, passes through here, and nowhere else: a test sees to that.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from capedit.errors import CapeditError

CPU = torch.device("cpu")
_Module = TypeVar("_Module", bound=nn.Module)


def tensor(array: NDArray[Any], device: torch.device | None = None) -> Tensor:
    """An array on this device, else on the default one. On a CPU it is the same memory."""
    return torch.from_numpy(array).to(device or torch.get_default_device())


def array(tensor: Tensor) -> NDArray[Any]:
    """A tensor of any device as an array. On a CPU it is the same memory, but for 16 bits, which numpy has not."""
    found: NDArray[Any] = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).cpu().numpy()
    return found


def placed(module: _Module, device: torch.device | None = None) -> _Module:
    """A network moved to this device, else to the default one."""
    return module.to(device or torch.get_default_device())


def choose_device(name: str | None = None) -> torch.device:
    """The device of that name; without one, a GPU if there is any, else the CPU.

    Of the processes that torchrun starts on a machine, each takes the GPU of its own number.
    """
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise CapeditError(f"device {name!r}: expected cpu, cuda or cuda:N") from error
    if device.type == "cpu":
        return CPU
    if device.type != "cuda":
        raise CapeditError(f"device {name!r}: expected cpu, cuda or cuda:N")
    number = int(os.environ.get("LOCAL_RANK", "0")) if device.index is None else device.index
    count = torch.cuda.device_count()
    if number >= count:
        raise CapeditError(f"device cuda:{number}: torch finds {count} GPUs; start as many processes, or say cpu")
    return torch.device("cuda", number)


@contextmanager
def working_on(device: torch.device) -> Iterator[None]:
    """Tensors are made on this device while the block lasts. Where that is so anyway, nothing is touched."""
    if device == torch.get_default_device():
        yield
    elif device.type == "cuda":
        with torch.cuda.device(device), device:  # the first for nccl, which asks CUDA which GPU is at work
            yield
    else:
        with device:
            yield


def describe_device() -> str:
    """The device at work, for people: the name of the GPU, or nothing to speak of on a CPU."""
    device = torch.get_default_device()
    return torch.cuda.get_device_name(device) if device.type == "cuda" else ""
