"""Several processes, started by torchrun; alone, all of this is a no-op."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

PATIENCE = timedelta(hours=2)
"""How long processes wait for the leading one, which evaluates and measures alone; by default nccl gives up soon."""


@dataclass(frozen=True)
class Workers:
    """Which of how many processes this is."""

    rank: int = 0
    world: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process evaluates, logs and writes checkpoints."""
        return self.rank == 0

    def sum_(self, tensors: Iterable[Tensor]) -> None:
        """Add up tensors over all processes, in place and in one message."""
        tensors = list(tensors)
        if self.world == 1 or not tensors:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        dist.all_reduce(flat)
        start = 0
        for tensor in tensors:
            tensor.copy_(flat[start : start + tensor.numel()].view_as(tensor))
            start += tensor.numel()

    def sum_figures(self, figures: dict[str, float]) -> dict[str, float]:
        """Add up named figures over all processes; every process must have the same names."""
        if self.world == 1:
            return figures
        values = torch.tensor(list(figures.values()), dtype=torch.float64)
        self.sum_([values])
        return dict(zip(figures, values.tolist(), strict=True))

    def from_leader(self, number: int) -> int:
        """What the leading process has."""
        return round(self.sum_figures({"": float(number) if self.leads else 0.0})[""])

    def agree(self, decision: bool) -> bool:
        """True everywhere if it is true anywhere."""
        return self.sum_figures({"": float(decision)})[""] > 0


@contextmanager
def join_workers() -> Iterator[Workers]:
    """Join the group that torchrun describes in the environment, if there is one.

    It talks as tensors of torch's default device can: see `capedit.models.device.working_on`.
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Workers()
        return
    backend = "nccl" if torch.get_default_device().type == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=PATIENCE)
    try:
        yield Workers(dist.get_rank(), world)
    finally:
        dist.destroy_process_group()
