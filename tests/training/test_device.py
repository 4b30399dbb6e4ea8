"""Training on a GPU, as far as that can be tried without one: see `pretend_device`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from capedit.editing.editor import Runtime, load_modules
from capedit.errors import CapeditError
from capedit.models.device import CPU, array, choose_device, tensor, working_on
from capedit.models.systems import SYSTEMS
from tests.editing.tiny import tiny_editor

TRAINED = (
    *SYSTEMS,
    "tiger published",
    "tiger ours",
    "grounding",
    "editors of the paper",
    "elsewhere than the default",
)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each trial found on either device."""
    folder = tmp_path_factory.mktemp("trials")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "tests.training.on_pretend_device", str(folder)]
    subprocess.run(command, check=True, env=environment, timeout=600, stdout=subprocess.DEVNULL)
    told: dict[str, Any] = json.loads((folder / "found.json").read_text())
    return told


@pytest.mark.parametrize("name", TRAINED)
def test_on_another_device_the_same_comes_out(name: str, found: dict[str, Any]) -> None:
    cpu, pretend = found[name]["cpu"], found[name]["pretend"]
    assert isinstance(cpu, dict), cpu
    assert isinstance(pretend, dict), pretend
    assert pretend == pytest.approx(cpu, rel=1e-4, nan_ok=True)


@pytest.mark.parametrize(("name", "complaint"), [("forgotten", "two devices"), ("not read back", ".numpy()")])
def test_the_pretended_device_catches_what_it_is_for(name: str, complaint: str, found: dict[str, Any]) -> None:
    assert isinstance(found[name]["cpu"], dict), found[name]["cpu"]
    assert complaint in found[name]["pretend"]


def test_on_a_cpu_nothing_is_copied_and_no_mode_is_set() -> None:
    numbers = np.arange(4)
    assert np.shares_memory(array(tensor(numbers)), numbers)
    with working_on(CPU):
        assert torch.overrides._get_current_function_mode() is None


def test_the_default_device_is_restored() -> None:
    with working_on(torch.device("meta")):
        assert torch.zeros(1).device.type == "meta"
        with working_on(CPU):
            assert torch.zeros(1).device == CPU
        assert torch.zeros(1).device.type == "meta"
    assert torch.get_default_device() == CPU


def test_each_process_of_a_machine_takes_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_device("cpu") == CPU
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device() == CPU
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device() == torch.device("cuda", 0)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert choose_device() == choose_device("cuda") == torch.device("cuda", 1)
    assert choose_device("cuda:0") == torch.device("cuda", 0)
    assert choose_device("cpu") == CPU
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(CapeditError, match="2 GPUs"):
        choose_device()


@pytest.mark.parametrize("name", ["gpu", "meta", "cuda:x"])
def test_other_devices_are_refused(name: str) -> None:
    with pytest.raises(CapeditError, match="expected cpu, cuda or cuda:N"):
        choose_device(name)


def test_the_onnx_runtime_has_no_device_to_choose(tmp_path: Path) -> None:
    bundle = tiny_editor(tmp_path).bundle
    with pytest.raises(CapeditError, match="torch runtime"):
        load_modules(bundle, Runtime.ONNX, 1, "cuda")
