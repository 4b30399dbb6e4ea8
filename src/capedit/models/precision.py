"""How precisely products of matrices are computed in training."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

import torch

from capedit.errors import CapeditError

_TRIAL = "import torch; torch.ones(64, 64, dtype=torch.bfloat16) @ torch.ones(64, 64, dtype=torch.bfloat16)"


class Precision(StrEnum):
    """Of products alone; everything else, and what is learned, keeps 32 bits."""

    FULL = "fp32"
    HALF = "bf16"


@contextmanager
def computing_in(precision: Precision) -> Iterator[None]:
    """Products have this precision while the block lasts."""
    if precision is Precision.FULL:
        yield
    else:
        with torch.autocast(torch.get_default_device().type, torch.bfloat16):
            yield


def require(precision: Precision) -> None:
    """Complain if this machine cannot compute so.

    Some virtual machines offer the processor's tiles (AMX) but not their measures; there, torch dies by an illegal
    instruction. So it is tried in a process that may die.
    """
    if precision is Precision.FULL or torch.get_default_device().type != "cpu":
        return
    trial = subprocess.run([sys.executable, "-c", _TRIAL], capture_output=True, text=True, check=False)
    if trial.returncode:
        last_words = " ".join(trial.stderr.strip().splitlines()[-1:])
        raise CapeditError(
            f"precision {precision}: torch cannot compute so on this machine "
            f"(it ended with {trial.returncode} {last_words}); train with fp32, "
            "or set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16, which is safe but slower"
        )
