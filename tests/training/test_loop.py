import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import tests.training.toy
from capedit.training import TrainConfig, fit, load_checkpoint
from capedit.training.checkpoint import CheckpointError
from capedit.training.config import learning_rate_at
from capedit.training.curves import read_curves
from capedit.training.loop import Progress
from tests.training.toy import SignTask

CONFIG = TrainConfig(steps=120, batch_size=20, learning_rate=0.05, evaluate_every=30, checkpoint_every=30, average=0.9)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_checkpoint(folder / "last.safetensors").tensors


def test_training_learns_and_leaves_what_a_reader_needs(tmp_path: Path) -> None:
    figures = fit(SignTask(), CONFIG, tmp_path)
    assert figures["accuracy"] > 0.9
    assert {path.name for path in tmp_path.iterdir()} == {
        "best.safetensors",
        "config.json",
        "curves.csv",
        "curves.png",
        "last.safetensors",
    }
    names = {name for _, name, _ in read_curves(tmp_path / "curves.csv")}
    assert names == {"loss", "accuracy"}


@pytest.mark.parametrize("stop_at", [1, 45, 60])
def test_resumed_training_equals_uninterrupted_training_bit_for_bit(tmp_path: Path, stop_at: int) -> None:
    fit(SignTask(dropout=0.2), CONFIG, tmp_path / "whole")

    class Stopped(SignTask):
        def loss_weights(self, batch: tuple[torch.Tensor, torch.Tensor]) -> dict[str, float]:
            self.calls = getattr(self, "calls", 0) + 1
            if self.calls == stop_at:
                os.kill(os.getpid(), signal.SIGINT)
            return dict(super().loss_weights(batch))

    with pytest.raises(KeyboardInterrupt):
        fit(Stopped(dropout=0.2), CONFIG, tmp_path / "parts")
    fit(SignTask(dropout=0.2), CONFIG, tmp_path / "parts")
    whole, parts = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    assert read_curves(tmp_path / "whole/curves.csv")[-1] == read_curves(tmp_path / "parts/curves.csv")[-1]


def test_a_killed_run_resumes_from_its_last_checkpoint(tmp_path: Path) -> None:
    fit(SignTask(), CONFIG, tmp_path / "whole")

    class Killed(SignTask):
        def loss_weights(self, batch: tuple[torch.Tensor, torch.Tensor]) -> dict[str, float]:
            self.calls = getattr(self, "calls", 0) + 1
            if self.calls == 100:
                raise MemoryError
            return dict(super().loss_weights(batch))

    with pytest.raises(MemoryError):
        fit(Killed(), CONFIG, tmp_path / "parts")
    assert load_checkpoint(tmp_path / "parts/last.safetensors").state["run"]["step"] == 90
    fit(SignTask(), CONFIG, tmp_path / "parts")
    whole, parts = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_accumulated_parts_give_the_same_model(tmp_path: Path) -> None:
    fit(SignTask(), CONFIG, tmp_path / "one")
    fit(SignTask(), TrainConfig(**CONFIG.to_json() | {"accumulate": 3}), tmp_path / "three")
    one, three = weights(tmp_path / "one"), weights(tmp_path / "three")
    for name in one:
        torch.testing.assert_close(one[name], three[name], rtol=1e-3, atol=1e-4)


def test_two_processes_give_the_same_model_as_one(tmp_path: Path) -> None:
    fit(SignTask(), CONFIG, tmp_path / "one")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run(
        [*command, tests.training.toy.__file__, str(tmp_path / "two"), json.dumps(CONFIG.to_json())],
        check=True,
        env=environment,
        timeout=120,
    )
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    for name in one:
        torch.testing.assert_close(one[name], two[name], rtol=1e-3, atol=1e-4)


def test_patience_ends_a_run_that_no_longer_improves(tmp_path: Path) -> None:
    class Stuck(SignTask):
        def evaluate(self) -> dict[str, float]:
            return {"accuracy": 0.5}

    seen: list[Progress] = []
    config = TrainConfig(**CONFIG.to_json() | {"patience": 2})
    assert fit(Stuck(), config, tmp_path, watch=seen.append) == {"accuracy": 0.5, "step": 30.0}
    assert load_checkpoint(tmp_path / "last.safetensors").state["run"]["step"] == 90
    assert any(progress.seconds_left for progress in seen)


def test_another_config_is_not_resumed(tmp_path: Path) -> None:
    fit(SignTask(), CONFIG, tmp_path)
    with pytest.raises(CheckpointError, match="another config"):
        fit(SignTask(), TrainConfig(**CONFIG.to_json() | {"seed": 1}), tmp_path)


def test_a_broken_checkpoint_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "last.safetensors"
    broken.write_bytes(b"\x80\x04pickle?")
    with pytest.raises(CheckpointError, match=r"last\.safetensors"):
        fit(SignTask(), CONFIG, tmp_path)


def test_every_example_is_seen_equally_often(tmp_path: Path) -> None:
    from capedit.training.distributed import Workers
    from capedit.training.loop import share_of_batch

    config = TrainConfig(steps=6, batch_size=4, accumulate=2)
    seen = [
        int(index)
        for step in range(6)
        for rank in range(2)
        for part in share_of_batch(8, config, step, Workers(rank, 2))
        for index in part
    ]
    assert sorted(seen) == sorted([*range(8)] * 3)


def test_rate_rises_then_falls() -> None:
    config = TrainConfig(steps=100, learning_rate=1.0, warmup=0.1)
    rates = [learning_rate_at(step, config) for step in range(100)]
    assert max(rates) == rates[10] == 1.0
    assert rates[:11] == sorted(rates[:11])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert min(rates) > 0


@pytest.mark.parametrize(("field", "value"), [("steps", 0), ("warmup", 1.5), ("average", 1.0), ("batch_size", -1)])
def test_nonsense_configs_are_refused(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        TrainConfig(**{"steps": 10} | {field: value})  # type: ignore[arg-type]
