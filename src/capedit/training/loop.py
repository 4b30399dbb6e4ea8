"""The training loop: setup, then step after step, with checkpoints that resume exactly."""

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from capedit.models.precision import computing_in, require
from capedit.training.checkpoint import Checkpoint, CheckpointError, load_checkpoint, load_into, save_checkpoint
from capedit.training.config import TrainConfig, learning_rate_at
from capedit.training.curves import Curves, plot_curves
from capedit.training.distributed import Workers
from capedit.training.task import LossTerm, Task

LOG_EVERY = 50


@dataclass(frozen=True)
class Progress:
    """What a watcher of a run is told, every now and then."""

    step: int
    steps: int
    figures: Mapping[str, float]
    examples_per_second: float | None = None
    seconds_left: float | None = None


@dataclass
class Run:
    """The state of a run that changes from step to step."""

    step: int = 0
    best: float = -float("inf")
    best_step: int = 0
    stale: int = 0
    """Evaluations since the best one."""


def fit(
    task: Task,
    config: TrainConfig,
    out: Path,
    *,
    workers: Workers | None = None,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> dict[str, float]:
    """Train, or go on training, and return the figures of the best evaluation.

    `out` gets `config.json`, `last.safetensors` (to resume from), `best.safetensors` (weights alone, by the task's
    metric), `curves.csv` and, of what was measured more than once, `curves.png`. Calling it again on the same folder
    resumes; the result is the same, bit for bit, as if it had never stopped.
    """
    require(config.precision)
    workers = workers or Workers()
    optimizer = make_optimizer(task, config)
    average = {name: p.detach().clone() for name, p in task.model.named_parameters()} if config.average else {}
    run = resume(task, config, optimizer, average, out)
    if workers.leads:
        out.mkdir(parents=True, exist_ok=True)
        (out / "config.json").write_text(json.dumps(identity(task, config), indent=2) + "\n", encoding="utf-8")
    curves = Curves(out / "curves.csv", from_step=run.step) if workers.leads else None
    meter = Meter(config)

    with interrupts() as interrupted:
        while not finished(run, config):
            losses = train_step(task, config, optimizer, run.step, workers)
            run.step += 1
            update_average(average, task.model, config.average)
            meter.add(losses)

            if curves and run.step % LOG_EVERY == 0:
                progress = meter.report(run.step)
                curves.add(run.step, progress.figures)
                watch(progress)
            if run.step % config.evaluate_every == 0 or run.step == config.steps:
                if curves:
                    figures = evaluate(task, average, out, run)
                    curves.add(run.step, figures)
                    watch(Progress(run.step, config.steps, figures))
                run.stale = workers.from_leader(run.stale)
            stopping = workers.agree(bool(interrupted))
            if workers.leads and (run.step % config.checkpoint_every == 0 or stopping or finished(run, config)):
                save_checkpoint(snapshot(task, config, optimizer, average, run), out / "last.safetensors")
            if stopping:
                raise KeyboardInterrupt
    if curves:
        curves.close()
        plot_curves(out / "curves.csv", out / "curves.png")
    return {task.metric: run.best, "step": float(run.best_step)}


def finished(run: Run, config: TrainConfig) -> bool:
    return run.step >= config.steps or (config.patience > 0 and run.stale >= config.patience)


def train_step(
    task: Task, config: TrainConfig, optimizer: torch.optim.Optimizer, step: int, workers: Workers
) -> dict[str, float]:
    """One optimiser step; returns the mean loss of each term over the whole batch."""
    task.model.train()
    set_learning_rate(optimizer, learning_rate_at(step, config))
    torch.manual_seed(config.seed * 1_000_003 + step * workers.world + workers.rank)  # for dropout
    with computing_in(config.precision):  # a task may ask its model what to make a batch of
        parts = [
            task.batch(indices, np.random.default_rng([config.seed, step]))
            for indices in share_of_batch(len(task), config, step, workers)
        ]
    weights: dict[str, float] = {}
    for part in parts:
        for name, weight in task.loss_weights(part).items():
            weights[name] = weights.get(name, 0.0) + weight
    weights = workers.sum_figures(weights)

    optimizer.zero_grad(set_to_none=True)
    sums = dict.fromkeys(weights, 0.0)
    for part in parts:
        with computing_in(config.precision):
            terms = task.loss(part)
        objective(terms, weights).backward()
        for name, term in terms.items():
            sums[name] += float(term.total.detach())
    parameters = [p for p in task.model.parameters() if p.grad is not None]
    workers.sum_([p.grad for p in parameters if p.grad is not None])
    nn.utils.clip_grad_norm_(parameters, config.clip)
    optimizer.step()
    sums = workers.sum_figures(sums)
    return {name: sums[name] / weights[name] for name in sums if weights[name]}


def objective(terms: Mapping[str, LossTerm], weights: Mapping[str, float]) -> Tensor:
    """The sum of all terms, each a mean over the whole batch."""
    parts = [term.factor * term.total / weights[name] for name, term in terms.items() if weights[name]]
    return torch.stack(parts).sum()


def share_of_batch(examples: int, config: TrainConfig, step: int, workers: Workers) -> list[np.ndarray]:
    """The examples of a step for this process, in `accumulate` parts.

    An endless row of shuffled epochs is cut into batches, so that batches may span two epochs and no example is
    seen less often than another. The row depends on the seed alone, not on the number of processes.
    """
    positions = np.arange(step * config.batch_size, (step + 1) * config.batch_size)
    epochs = positions // examples
    indices = np.empty_like(positions)
    for epoch in np.unique(epochs):
        order = epoch_order(examples, config.seed, int(epoch))
        indices[epochs == epoch] = order[positions[epochs == epoch] % examples]
    mine = np.array_split(indices, workers.world)[workers.rank]
    return [part for part in np.array_split(mine, config.accumulate) if len(part)]


@lru_cache(maxsize=2)
def epoch_order(examples: int, seed: int, epoch: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(examples)


def make_optimizer(task: Task, config: TrainConfig) -> torch.optim.Optimizer:
    """AdamW with decay on matrices only, and one group for each rate that the task asks for."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in task.model.named_parameters():
        factor = task.rate_factor(name)
        parameter.requires_grad_(factor > 0)
        if factor > 0:
            decay = config.weight_decay if parameter.ndim > 1 else 0.0
            groups.setdefault((factor, decay), []).append(parameter)
    return torch.optim.AdamW(
        [{"params": ps, "weight_decay": decay, "factor": factor} for (factor, decay), ps in groups.items()],
        lr=config.learning_rate,
        betas=(0.9, 0.98),
        fused=True,
    )


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate * group["factor"]


def update_average(average: dict[str, Tensor], model: nn.Module, decay: float) -> None:
    for name, parameter in model.named_parameters():
        if name in average:
            average[name].lerp_(parameter.detach(), 1 - decay)


@contextmanager
def averaged_weights(model: nn.Module, average: dict[str, Tensor]) -> Iterator[None]:
    """The model with its averaged weights, for as long as the block lasts."""
    own = {name: parameter.detach().clone() for name, parameter in model.named_parameters() if name in average}
    model.load_state_dict(average, strict=False)
    try:
        yield
    finally:
        model.load_state_dict(own, strict=False)


def evaluate(task: Task, average: dict[str, Tensor], out: Path, run: Run) -> dict[str, float]:
    """Figures of the model as it would be used; the best so far is kept."""
    task.model.eval()
    with averaged_weights(task.model, average), torch.no_grad():
        figures = dict(task.evaluate())
        if figures[task.metric] > run.best:
            run.best, run.best_step, run.stale = figures[task.metric], run.step, 0
            state = {"step": run.step, "figures": figures}
            save_checkpoint(Checkpoint(dict(task.model.state_dict()), state), out / "best.safetensors")
        else:
            run.stale += 1
    return figures


def identity(task: Task, config: TrainConfig) -> dict[str, Any]:
    """What a run is: kept beside its checkpoints, and compared before one is resumed."""
    return {"task": task.name, "fingerprint": task.fingerprint(), "train": config.to_json()}


def snapshot(
    task: Task, config: TrainConfig, optimizer: torch.optim.Optimizer, average: dict[str, Tensor], run: Run
) -> Checkpoint:
    tensors = {f"model.{name}": tensor for name, tensor in task.model.state_dict().items()}
    tensors |= {f"average.{name}": tensor for name, tensor in average.items()}
    for index, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": torch.as_tensor(value) for name, value in values.items()}
    return Checkpoint(tensors, {"identity": identity(task, config), "run": asdict(run)})


def resume(
    task: Task, config: TrainConfig, optimizer: torch.optim.Optimizer, average: dict[str, Tensor], out: Path
) -> Run:
    """Take up the run in `out`, if there is one."""
    path = out / "last.safetensors"
    if not path.exists():
        return Run()
    checkpoint = load_checkpoint(path)
    if checkpoint.state.get("identity") != identity(task, config):
        raise CheckpointError(f"{path}: made with another config or other data; choose another folder, or remove it")
    load_into(task.model, checkpoint.part("model"), path)
    for name, tensor in checkpoint.part("average").items():
        average[name].copy_(tensor)
    moments: dict[int, dict[str, Tensor]] = {}
    for key, tensor in checkpoint.part("optimizer").items():
        index, name = key.split(".", 1)
        moments.setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict({"state": moments, "param_groups": optimizer.state_dict()["param_groups"]})
    return Run(**checkpoint.state["run"])


class Meter:
    """Mean losses and speed since the last report."""

    def __init__(self, config: TrainConfig) -> None:
        self._config = config
        self._reset()

    def _reset(self) -> None:
        self._sums: dict[str, list[float]] = {}
        self._steps, self._since = 0, time.perf_counter()

    def add(self, losses: Mapping[str, float]) -> None:
        self._steps += 1
        for name, value in losses.items():
            self._sums.setdefault(name, []).append(value)

    def report(self, step: int) -> Progress:
        seconds = (time.perf_counter() - self._since) / self._steps
        figures = {name: float(np.mean(values)) for name, values in self._sums.items()}
        self._reset()
        steps = self._config.steps
        return Progress(step, steps, figures, self._config.batch_size / seconds, (steps - step) * seconds)


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """Collects Ctrl-C and SIGTERM, so that the loop can end between two steps with a checkpoint."""
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield caught
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
