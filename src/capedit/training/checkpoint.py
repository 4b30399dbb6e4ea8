"""Checkpoints: one safetensors file, written atomically, with all that an exact resume needs."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from capedit.errors import CapeditError
from capedit.models.tensor_files import read_tensors, save_tensors


class CheckpointError(CapeditError):
    """A checkpoint that is broken, or belongs to another run."""


@dataclass
class Checkpoint:
    """Tensors by name (`model.…`, `optimizer.…`, `average.…`) and the state of the run."""

    tensors: dict[str, Tensor]
    state: dict[str, Any] = field(default_factory=dict)

    def part(self, name: str) -> dict[str, Tensor]:
        """The tensors of one part, without its prefix."""
        prefix = f"{name}."
        return {key.removeprefix(prefix): value for key, value in self.tensors.items() if key.startswith(prefix)}


def save_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Write beside, flush to disk, then rename: at any moment there is a whole checkpoint."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    save_tensors(checkpoint.tensors, unfinished, {"state": json.dumps(checkpoint.state)})
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())
    unfinished.replace(path)


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; nothing in it is executed, whoever wrote it."""
    try:
        metadata, tensors = read_tensors(path)
        state = json.loads(metadata.get("state", "{}"))
    except (SafetensorError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{path}: not a readable checkpoint ({error})") from error
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: no such checkpoint") from error
    if not isinstance(state, dict):
        raise CheckpointError(f"{path}: metadata field 'state' must be an object")
    return Checkpoint(tensors, state)


def load_into(module: torch.nn.Module, tensors: dict[str, Tensor], path: Path | str) -> None:
    """Put tensors into a module, naming what does not fit."""
    expected = module.state_dict()
    missing, unknown = sorted(expected.keys() - tensors.keys()), sorted(tensors.keys() - expected.keys())
    wrong = [name for name in expected.keys() & tensors.keys() if expected[name].shape != tensors[name].shape]
    if missing or unknown or wrong:
        misfits = f"missing {missing[:3]}, unknown {unknown[:3]}, wrong shape {wrong[:3]}"
        raise CheckpointError(f"{path}: weights do not fit the model ({misfits})")
    module.load_state_dict(tensors)
