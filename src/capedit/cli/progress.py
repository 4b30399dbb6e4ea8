"""The progress bar of long commands: how far, how long yet."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as Remaining

from capedit.cli.console import err

if TYPE_CHECKING:
    from capedit.training.loop import Progress as Step

_FIGURES = 4


def progress_bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        Remaining(),
        console=err,
    )


def show_training(progress: Progress, task: TaskID, name: str = "") -> "Callable[[Step], None]":
    """A watcher of a training run: moves the bar, and prints each evaluation above it."""

    def show(step: "Step") -> None:
        figures = ", ".join(f"{figure} {value:.4g}" for figure, value in list(step.figures.items())[:_FIGURES])
        if step.seconds_left is None:  # an evaluation
            progress.console.print(f"{name} step {step.step}: {figures}")
        else:
            progress.update(task, completed=step.step, total=step.steps, description=f"{name} {figures}")

    return show
