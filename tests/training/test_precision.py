"""Training in 16 bits: in processes of their own, as a processor may refuse."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from capedit.errors import CapeditError
from capedit.training import TrainConfig, load_checkpoint
from capedit.training.curves import read_curves

SAFE = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
CONFIG = TrainConfig(steps=120, batch_size=20, learning_rate=0.05, evaluate_every=120, checkpoint_every=120)


def train(out: Path, precision: str, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    told = json.dumps(CONFIG.to_json() | {"precision": precision})
    command = [sys.executable, "-m", "tests.training.toy", str(out), told]
    where = {"PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(command, env=os.environ | where | environment, capture_output=True, text=True, check=False)


def figures(out: Path) -> dict[str, float]:
    return {name: value for _, name, value in read_curves(out / "curves.csv")}


def test_sixteen_bits_learn_the_same_within_their_precision(tmp_path: Path) -> None:
    weights = {}
    for precision in ("fp32", "bf16"):
        assert train(tmp_path / precision, precision, SAFE).returncode == 0
        assert figures(tmp_path / precision)["accuracy"] > 0.9
        weights[precision] = load_checkpoint(tmp_path / precision / "last.safetensors").part("model")
    for name, full in weights["fp32"].items():
        half = weights["bf16"][name]
        assert half.dtype == torch.float32
        assert not torch.equal(half, full)
        torch.testing.assert_close(half, full, atol=0.1, rtol=0.1)


def test_a_machine_that_cannot_says_so_and_does_not_die(tmp_path: Path) -> None:
    """Which of the two this machine does is the machine's affair; that no signal ends it is ours."""
    ended = train(tmp_path, "bf16", {"ONEDNN_MAX_CPU_ISA": ""})
    assert ended.returncode == 0 or "torch cannot compute so on this machine" in ended.stderr, ended.stderr


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(CapeditError, match="precision must be fp32 or bf16, got 'fp8'"):
        TrainConfig(**CONFIG.to_json() | {"precision": "fp8"})
