"""A GPU that is none: a device of its own to torch, which computes on the CPU and refuses what a GPU would refuse.

A tensor of the CPU that meets one of this device is an error, as is `numpy()` of the latter. It is stricter than CUDA
in one thing: there, a tensor may be indexed by one of the CPU. To be imported before the first backward of a process,
for that is when torch counts its devices.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

_setup_privateuseone_for_python_backend("pretend")
PRETEND = torch.device("pretend:0")
_MOVES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)


class There(Tensor):
    """A tensor of the device: the tensor `held` of the CPU, out of reach."""

    held: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls: type["There"], held: Tensor) -> "There":
        made: There = Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=PRETEND,
        )
        made.held = held
        return made

    def tolist(self) -> Any:
        """A device gives its numbers away; torch has this for its own devices only."""
        return self.held.tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func not in _MOVES:
            _refuse_strangers(func, list(_tensors([args, *kwargs.values()])))
        to = kwargs.get("device")
        inner_args = _replaced(args, There, _held)
        inner_kwargs = {name: _replaced(value, There, _held) for name, value in kwargs.items()}
        if to is not None:
            inner_kwargs["device"] = torch.device("cpu")
        result = func(*inner_args, **inner_kwargs)
        stays = isinstance(args[0], There) if func is torch.ops.aten.copy_.default else True
        if not stays or (to is not None and torch.device(to).type == "cpu"):
            return result
        return return_and_correct_aliasing(func, args, kwargs, _replaced(result, Tensor, There))


def _held(tensor: There) -> Tensor:
    return tensor.held


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part)


def _replaced(value: Any, kind: type, replace: Callable[[Any], Any]) -> Any:
    """Tensors of one kind replaced, in lists too. (torch's own walk over trees takes most of a trial's time.)"""
    if isinstance(value, kind):
        return replace(value)
    return type(value)(_replaced(part, kind, replace) for part in value) if isinstance(value, list | tuple) else value


def _refuse_strangers(func: Any, tensors: Sequence[Tensor]) -> None:
    """Single numbers of the CPU may take part in what is done number by number, and nowhere else."""
    for tensor in tensors:
        if not isinstance(tensor, There) and (tensor.dim() or torch.Tag.pointwise not in func.tags):
            raise RuntimeError(f"{func}: tensors on two devices, one of them {tuple(tensor.shape)} on the CPU")


def _empty(size: Sequence[int], dtype: torch.dtype | None = None, **_: Any) -> There:
    return There(torch.empty(size, dtype=dtype, device="cpu"))


def _empty_strided(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype | None = None, **_: Any) -> There:
    return There(torch.empty_strided(size, stride, dtype=dtype, device="cpu"))


def _copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    ours, theirs = (tensor.held if isinstance(tensor, There) else tensor for tensor in (target, source))
    ours.copy_(theirs)
    return target


def _arange(*numbers: int | float, dtype: torch.dtype | None = None, **_: Any) -> There:
    return There(torch.arange(*numbers, dtype=dtype, device="cpu"))


_LIBRARY = torch.library.Library("aten", "IMPL")
_KERNELS: dict[str, Callable[..., Tensor]] = {
    "empty.memory_format": _empty,
    "empty_strided": _empty_strided,
    "_copy_from": _copy_from,
    "arange": _arange,
    "arange.start": _arange,
    "arange.start_step": _arange,
}
for _name, _kernel in _KERNELS.items():
    _LIBRARY.impl(_name, _kernel, "PrivateUse1")


def _lstm_cell(
    x: Tensor, state: tuple[Tensor, Tensor], to_x: Tensor, to_hidden: Tensor, bias: Tensor, hidden_bias: Tensor
) -> tuple[Tensor, Tensor]:
    hidden, cell = state
    gates = nn.functional.linear(x, to_x, bias) + nn.functional.linear(hidden, to_hidden, hidden_bias)
    enter, forget, new, leave = gates.chunk(4, 1)
    cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
    return leave.sigmoid() * cell.tanh(), cell


setattr(torch._VF, "lstm_cell", _lstm_cell)  # noqa: B010 (unknown to mypy). GPUs have one kernel for it, CPUs not.
