import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import tests.training.made
from capedit.edits import count_implicit, count_trace
from capedit.models.system import Kind
from capedit.models.systems import SYSTEMS
from capedit.training import TrainConfig
from capedit.training.distributed import Workers
from capedit.training.loop import make_optimizer, train_step
from capedit.training.systems import SystemExamination
from tests.training.made import first_losses, made_pairs, made_store, made_task, questions

RATES = {"v-editnts": 0.01}
"""Where twice that is too much."""


@pytest.mark.parametrize("name", SYSTEMS)
def test_overfits_64_instances(name: str, tmp_path: Path) -> None:
    task = made_task(name, tmp_path, made_pairs(64))
    assert len(task) == 64
    assert task.skipped == 0
    config = TrainConfig(steps=300, batch_size=64, learning_rate=RATES.get(name, 0.02))
    optimizer = make_optimizer(task, config)
    losses = {"": 1.0}
    for step in range(config.steps):
        losses = train_step(task, config, optimizer, step, Workers())
        if max(losses.values()) < 0.015:
            break
    assert max(losses.values()) < 0.015
    task.model.eval()
    figures = task.evaluate()
    assert figures["CIDEr-D"] > 950  # of 1000
    assert figures["GPS"] > 0


def test_two_processes_give_the_same_losses_as_one(tmp_path: Path) -> None:
    """Four steps each; the losses of the later ones hang on the weights that the earlier ones made."""
    made_store(tmp_path / "store", made_pairs())
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([*command, tests.training.made.__file__, str(tmp_path)], check=True, env=environment, timeout=600)
    two = json.loads((tmp_path / "losses.json").read_text())
    for name in SYSTEMS:
        for one, other in zip(first_losses(name, tmp_path, Workers()), two[name], strict=True):
            assert one == pytest.approx(other, rel=1e-4)


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_parameter_is_there_for_a_reason(name: str, tmp_path: Path) -> None:
    task = made_task(name, tmp_path, made_pairs(8))
    losses = task.loss(task.batch(np.arange(8), np.random.default_rng(0)))
    torch.stack([term.total for term in losses.values()]).sum().backward()
    assert not [parameter for parameter, weight in task.model.named_parameters() if weight.grad is None]


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_loss_of_a_batch_is_that_of_its_parts(name: str, tmp_path: Path) -> None:
    task = made_task(name, tmp_path, made_pairs(6))
    rng = np.random.default_rng(0)
    whole = task.batch(np.arange(6), rng)
    parts = [task.batch(np.array([index]), rng) for index in range(6)]
    for loss, term in task.loss(whole).items():
        alone = [task.loss(part)[loss].total for part in parts]
        torch.testing.assert_close(term.total, torch.stack(alone).sum(), rtol=1e-4, atol=1e-4)
        assert task.loss_weights(whole)[loss] == sum(task.loss_weights(part)[loss] for part in parts)


def test_pairs_that_a_system_cannot_say_are_counted(tmp_path: Path) -> None:
    longer = [("0", ["a", "dog"], ["a", *["red"] * 12, "dog"]), ("1", ["a"], ["the"])]
    task = made_task("v-felix", tmp_path, longer, most=9)
    assert (len(task), task.skipped) == (1, 1)


def test_another_shape_is_another_run(tmp_path: Path) -> None:
    one, other = (made_task("updn", tmp_path, made_pairs(4), width=width) for width in (48, 50))
    assert one.fingerprint() != other.fingerprint()
    assert one.fingerprint() != made_task("mn", tmp_path, made_pairs(4)).fingerprint()


@pytest.mark.parametrize("name", SYSTEMS)
def test_steps_are_counted_by_kind(name: str, tmp_path: Path) -> None:
    pairs = made_pairs(5)
    task = made_task(name, tmp_path, pairs)
    task.model.eval()
    exam = SystemExamination(questions(pairs), made_store(tmp_path / "store", pairs))
    for (_, source, _), outcome in zip(pairs, exam.outcomes(task.model), strict=True):
        if SYSTEMS[name].kind is Kind.EXPLICIT:
            assert outcome.trace is not None
            assert list(outcome.trace.source) == source
            assert outcome.trace.target == outcome.tokens
            assert outcome.steps == count_trace(outcome.trace)
        else:
            assert outcome.trace is None
            assert outcome.steps == count_implicit(source, outcome.tokens)
