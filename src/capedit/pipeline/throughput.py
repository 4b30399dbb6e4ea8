"""How fast whole datasets are edited, and what that takes, measured as a user would see it.

Every measurement is a run of `fix` in a process of its own, so that one does not see the memory of another.
"""

from __future__ import annotations

import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from capedit import __version__
from capedit.data import Dataset, ImageFile, Instance, open_dataset, write_dataset
from capedit.errors import MissingExtraError
from capedit.pipeline.engine import EngineName
from capedit.pipeline.errors import RunError
from capedit.pipeline.fixing import fix
from capedit.pipeline.progress import Progress, Stage
from capedit.pipeline.settings import Treatment
from capedit.pipeline.workbench import peak_memory

SIDE = (320, 240)
"""Pixels of made images."""
CURVE_POINTS = 100
"""Most moments of a run at which its memory is told."""
_NOUNS = "dog cat man woman child horse bicycle bus train boat table sofa street field beach kitchen window".split()
_VERBS = "sits stands runs lies waits plays sleeps walks".split()
_ADJECTIVES = "red blue small large old young white black wooden green happy quiet".split()
_PLACES = "on in near beside behind under above".split()


@dataclass(frozen=True)
class Measurement:
    """One run."""

    engine: str
    workers: int
    captions: int
    images: int
    """Encoded."""
    seconds: float
    """Of the whole run, from the first byte read to the last written; starting Python is not in it."""
    editing_seconds: float
    """Of looking at captions alone, starting the workers included."""
    captions_per_second: float
    """While captions were looked at."""
    images_per_second: float
    cpu_seconds: float
    """Of processors, spent by the workers: what the captions cost, whatever else the machine does."""
    stages: dict[str, float]
    """Seconds of each stage of the run."""
    run_cpu_seconds: dict[str, float]
    """Of a processor, spent by the process of the run in each stage: what no other worker can help with."""
    memory_run: int
    """Most bytes that the process of the run has held."""
    memory_worker: int
    """Most bytes that a worker has held."""
    curve: list[tuple[int, int, int]]
    """Captions done, and the most bytes that the run and a worker had held by then."""


def measure(
    dataset: Dataset | None,
    sizes: Sequence[int],
    workers: Sequence[int],
    *,
    treatment: Treatment | None = None,
    engine: EngineName = EngineName.LOCAL,
    per_image: int = 1,
    report: Callable[[Measurement], None] = lambda one: None,
) -> list[Measurement]:
    """Run `fix` on so many captions of a dataset (or made ones) with so many workers, each with each."""
    chosen = (treatment or Treatment()).settled()
    found = []
    with tempfile.TemporaryDirectory(prefix="capedit-bench-") as folder:
        for size in sizes:
            data = _subset(dataset, size, Path(folder, f"data-{size}"), per_image)
            for count in workers:
                out = Path(folder, f"out-{size}-{count}{data.suffix}")
                one = measure_once(data, out, chosen, engine, count)
                found.append(one)
                report(one)
    return found


def measure_once(data: Path, out: Path, treatment: Treatment, engine: EngineName, workers: int) -> Measurement:
    """One run in a process of its own."""
    request = json.dumps([str(data), str(out), treatment.to_json(), engine, workers])
    command = [sys.executable, "-P", "-m", "capedit.pipeline.throughput"]
    done = subprocess.run(command, input=request, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"the measured run failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return Measurement(**json.loads(done.stdout))


def conditions() -> dict[str, Any]:
    """What the figures depend on."""
    return {
        "version": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
    }


def plot(measurements: Sequence[Measurement], path: Path) -> None:
    """Speed by workers and memory by size, as a picture."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("plots", "plot", error) from error
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    speed, memory = figure.subplots(1, 2)
    for size in sorted({one.captions for one in measurements}):
        runs = sorted((one for one in measurements if one.captions == size), key=lambda one: one.workers)
        speed.plot(
            [one.workers for one in runs], [one.captions_per_second for one in runs], "o-", label=f"{size:,} captions"
        )
    for count in sorted({one.workers for one in measurements}):
        runs = sorted((one for one in measurements if one.workers == count), key=lambda one: one.captions)
        sizes = [one.captions for one in runs]
        memory.plot(sizes, [one.memory_worker / 2**20 for one in runs], "o-", label=f"worker (of {count})")
        memory.plot(sizes, [one.memory_run / 2**20 for one in runs], "x--", label=f"run, {count} workers")
    speed.set(xlabel="workers", ylabel="captions a second", ylim=(0, None))
    memory.set(xlabel="captions", ylabel="most memory, MB", ylim=(0, None))
    for axes in (speed, memory):
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)


def _subset(dataset: Dataset | None, size: int, folder: Path, per_image: int) -> Path:
    """So many captions on disk: files with paths of images, or shards where images are inside."""
    folder.mkdir()
    if dataset is None:
        write_dataset(made(folder / "images", size, per_image), folder / "data.jsonl")
        return folder / "data.jsonl"
    first = next((one.image for one in islice(dataset, 100) if one.image is not None), None)
    path = folder / ("data.jsonl" if isinstance(first, ImageFile) else "data.tar")
    if write_dataset(islice(dataset, size), path, template=None).count < size:
        raise RunError(f"{dataset.path}: has fewer than {size} captions")
    return path


def made(folder: Path, count: int, per_image: int) -> Iterator[Instance]:
    """Captions and images for those who have none at hand; the same each time."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng(0)
    image = ImageFile(folder, "")
    for number in range(count):
        if number % per_image == 0:
            name = f"{number // per_image:08d}.jpg"
            image = ImageFile(folder / name, f"{folder.name}/{name}")
            image.path.write_bytes(_picture(chance))
        words = [chance.choice(kind) for kind in (_ADJECTIVES, _NOUNS, _VERBS, _PLACES, _ADJECTIVES, _NOUNS)]
        text = "a {} {} {} {} a {} {}".format(*words)
        yield Instance(number, text, image_id=number // per_image, image=image)


def _picture(chance: np.random.Generator) -> bytes:
    """Soft patches of colour: as costly to decode as a photograph of that size."""
    patches = Image.fromarray(chance.integers(0, 256, (12, 16, 3), np.uint8)).resize(SIDE, Image.Resampling.BICUBIC)
    buffer = io.BytesIO()
    patches.save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


@dataclass(frozen=True)
class _Moment:
    """A report, and how things stood when it came."""

    progress: Progress
    at: float = field(default_factory=time.perf_counter)
    cpu: float = field(default_factory=time.process_time)
    memory: int = field(default_factory=peak_memory)


def _measured_run(data: str, out: str, treatment: dict[str, Any], engine: str, workers: int) -> Measurement:
    moments: list[_Moment] = []
    started = time.perf_counter()
    fix(
        open_dataset(data),
        out,
        treatment=Treatment.from_json(treatment),
        engine=EngineName(engine),
        workers=workers,
        report=lambda now: moments.append(_Moment(now)),
    )
    ended = time.perf_counter()
    stages: dict[str, float] = {}
    cpu: dict[str, float] = {}
    for begin, end in zip(moments, [*moments[1:], _Moment(moments[-1].progress)], strict=True):
        stage = begin.progress.stage
        stages[stage] = stages.get(stage, 0.0) + end.at - begin.at
        cpu[stage] = cpu.get(stage, 0.0) + end.cpu - begin.cpu
    editing = [moment for moment in moments if moment.progress.stage is Stage.EDITING]
    last, span = editing[-1].progress, max(stages[Stage.EDITING], 1e-9)
    step = -(-len(editing) // CURVE_POINTS)
    return Measurement(
        engine,
        workers,
        last.captions,
        last.images,
        seconds=ended - started,
        editing_seconds=span,
        captions_per_second=last.captions / span,
        images_per_second=last.images / span,
        cpu_seconds=last.cpu,
        stages=stages,
        run_cpu_seconds=cpu,
        memory_run=peak_memory(),
        memory_worker=last.memory,
        curve=[(one.progress.captions, one.memory, one.progress.memory) for one in editing[::-step][::-1]],
    )


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(_measured_run(*json.load(sys.stdin)))))
