"""Tensors in safetensors files. They are read and written on the CPU, whichever device is at work."""

from collections.abc import Mapping
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from capedit.models.device import CPU, working_on


def save_tensors(tensors: Mapping[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path, metadata=metadata)


def read_tensors(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and tensors by name; nothing in the file is executed, whoever wrote it."""
    with working_on(CPU), safe_open(path, framework="pt") as file:
        return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
