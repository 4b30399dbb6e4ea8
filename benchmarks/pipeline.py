"""Whole datasets through both engines: equal output, speed, flat memory, and what a billion captions would take.

    python benchmarks/pipeline.py --captions 100000 --work WORK --dataset captions_train2014.json \
        --images 'train2014/{image_id:012d}.jpg' --out pipeline.json --plot pipeline.png
    python benchmarks/pipeline.py --captions 2000 --random-model          # no model, no data at hand

Captions and images are those of any dataset that `capedit` reads, else made ones; those of an image are put together,
and no image gets more than five. Measured are, one after the other: one worker on few captions, of few and of many
images (what a caption and an image cost apart), all workers on a quarter of the captions, and all of them on all
captions with each engine. Seconds want an idle machine; seconds of processors say nearly the same on a busy one.

What is measured is kept in `WORK`, and the same command goes on behind the last finished run. `--random-model` takes
the small random-weight model of the tests (run from the repository's root): the figures of the pipeline itself, without
those of a network.
"""

import argparse
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain, groupby, islice
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from capedit.data import ImageFile, Instance, open_dataset, write_dataset
from capedit.pipeline import EngineName, Treatment, edits_folder
from capedit.pipeline.throughput import Measurement, conditions, made, measure_once

PER_IMAGE = 5
BILLION = 1_000_000_000
MB = 2**20


@dataclass(frozen=True)
class Leg:
    """One run to measure."""

    engine: EngineName
    workers: int
    captions: int
    per_image: int

    @property
    def name(self) -> str:
        return f"{self.engine}-{self.workers}-{self.captions}-{self.per_image}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captions", type=int, default=2000)
    parser.add_argument("--work", type=Path, default=Path(gettempdir(), "capedit-bench"), help="kept between calls")
    parser.add_argument("--dataset", type=Path, help="real captions")
    parser.add_argument("--images", help="where their images are: a folder, or a pattern over ids")
    parser.add_argument("--model", default="default")
    parser.add_argument("--encoder", default="default")
    parser.add_argument("--random-model", action="store_true")
    parser.add_argument("--engines", default="local,ray")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--plot", type=Path, help="draw them to this file")
    options = parser.parse_args()
    os.environ["SOURCE_DATE_EPOCH"] = "1700000000"  # logs of different runs are compared byte for byte
    options.work.mkdir(parents=True, exist_ok=True)
    treatment = random_model(options.work) if options.random_model else Treatment(options.model, options.encoder)
    engines = [EngineName(part) for part in options.engines.split(",")]
    runs = [measured(leg, options, treatment.settled()) for leg in legs(options.captions, options.workers, engines)]
    figures = summary([Measurement(**run["measurement"]) for run in runs]) | {
        "captions and images": str(options.dataset.name if options.dataset else "made"),
        "model": treatment.bundle().label,
        "outputs equal": len({run["digest"] for run in runs[-len(engines) :]}) == 1,
        "runs": runs,
    }
    tell(figures)
    if options.out is not None:
        options.out.write_text(json.dumps(figures, indent=1) + "\n")
    if options.plot is not None:
        plot(figures, options.plot)


def legs(captions: int, workers: int, engines: list[EngineName]) -> list[Leg]:
    few = max(captions // 20, 10 * PER_IMAGE)
    return [
        Leg(EngineName.LOCAL, 1, few, 1),
        Leg(EngineName.LOCAL, 1, few, PER_IMAGE),
        Leg(EngineName.LOCAL, workers, few, PER_IMAGE),
        Leg(EngineName.LOCAL, workers, captions // 4, PER_IMAGE),
        *(Leg(engine, workers, captions, PER_IMAGE) for engine in engines),
    ]


def measured(leg: Leg, options: argparse.Namespace, treatment: Treatment) -> dict[str, Any]:
    """Measure a run, unless that was done; one that was cut short begins anew."""
    done = options.work / f"{leg.name}.json"
    if not done.exists():
        data = options.work / f"data-{leg.captions}-{leg.per_image}" / "captions.jsonl"
        if not data.exists():
            shutil.rmtree(data.parent, ignore_errors=True)
            write_dataset(captions(stock(options), leg), data)
        folder = options.work / leg.name
        shutil.rmtree(folder, ignore_errors=True)
        out = folder / "captions.jsonl"
        before = conditions()
        found = measure_once(data, out, treatment, leg.engine, leg.workers)
        record = {
            "digest": digest(out),
            "log bytes": sum(file.stat().st_size for file in (edits_folder(out) / "log").iterdir()),
            "conditions": before,
            "measurement": asdict(found),
        }
        done.write_text(json.dumps(record) + "\n")
        shutil.rmtree(folder)
        print(f"{leg.name}: {found.captions_per_second:,.1f} captions/s", file=sys.stderr)
    record = json.loads(done.read_text())
    assert isinstance(record, dict)
    return record


def random_model(folder: Path) -> Treatment:
    treatment = Treatment(model=str(folder / "model"), encoder=str(folder / "sight.onnx"))
    if Path(treatment.model).exists():
        return treatment
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.pipeline.world import make_treatment

    return make_treatment(folder)


def stock(options: argparse.Namespace) -> Path:
    """All captions of the largest run, image by image; the others take theirs from here."""
    path: Path = options.work / "stock.jsonl"
    if not path.exists():
        if options.dataset is None:
            instances = made(options.work / "images", options.captions, PER_IMAGE)
        else:
            instances = islice(grouped(options), options.captions)
        if write_dataset(instances, path).count < options.captions:
            raise SystemExit(f"{options.dataset}: has fewer than {options.captions} captions of images that are there")
    return path


def grouped(options: argparse.Namespace) -> Iterator[Instance]:
    """The captions of images that are there, image by image; some datasets scatter them."""
    found: dict[Path, list[Instance]] = {}
    for one in open_dataset(options.dataset, images=options.images):
        if isinstance(one.image, ImageFile) and (one.image.path in found or one.image.path.exists()):
            plain = Instance(one.id, one.reference, image_id=one.image_id, image=one.image)
            found.setdefault(one.image.path, []).append(plain)
    return chain.from_iterable(instances[:PER_IMAGE] for instances in found.values())


def captions(path: Path, leg: Leg) -> Iterator[Instance]:
    images = groupby(open_dataset(path), key=lambda one: one.image_id)
    return islice(chain.from_iterable(islice(group, leg.per_image) for _, group in images), leg.captions)


def digest(out: Path) -> str:
    """Of the output and of its log."""
    found = hashlib.sha256(out.read_bytes())
    for file in sorted((edits_folder(out) / "log").iterdir()):
        found.update(file.read_bytes())
    return found.hexdigest()


def summary(runs: list[Measurement]) -> dict[str, Any]:
    """What the runs say together."""
    of_images, of_captions, few, quarter, *full = runs
    # As many captions of more images tell what an image costs, more captions what they cost; what is common cancels.
    image = (of_images.cpu_seconds - of_captions.cpu_seconds) / max(of_images.images - of_captions.images, 1)
    more = full[0].captions - quarter.captions
    whole = (full[0].cpu_seconds - quarter.cpu_seconds) / more
    caption = whole - image / PER_IMAGE
    own, less = full[0].run_cpu_seconds, quarter.run_cpu_seconds
    return {
        "CPU ms a caption": 1e3 * caption,
        "CPU ms an image": 1e3 * image,
        "CPU ms a caption of the run itself": {stage: 1e3 * (own[stage] - less[stage]) / more for stage in own},
        "speed-up": few.captions_per_second / of_captions.captions_per_second,
        "cores used": {one.engine: one.cpu_seconds / one.editing_seconds for one in full},
        "worker MB at a quarter and at the end": {one.engine: growth(one) for one in full},
        "worker MB, a quarter of the captions": quarter.memory_worker / MB,
        "core-days a billion": {
            f"{PER_IMAGE} captions an image": BILLION * whole / 86_400,
            "1 caption an image": BILLION * (caption + image) / 86_400,
        },
    }


def growth(run: Measurement) -> tuple[float, float]:
    at_a_quarter = next(worker for done, _, worker in run.curve if done >= run.captions / 4)
    return at_a_quarter / MB, run.memory_worker / MB


def tell(figures: dict[str, Any]) -> None:
    print("| engine | workers | captions | images | captions/s | CPU ms a caption | run MB | worker MB | seconds |")
    print("|---|---|---|---|---|---|---|---|---|")
    for one in (Measurement(**run["measurement"]) for run in figures["runs"]):
        speed = f"{one.captions_per_second:,.1f} | {1e3 * one.cpu_seconds / one.captions:.1f}"
        memory = f"{one.memory_run / MB:.0f} | {one.memory_worker / MB:.0f}"
        print(
            f"| {one.engine} | {one.workers} | {one.captions:,} | {one.images:,} | {speed} | {memory} "
            f"| {one.seconds:.1f} |"
        )
    print()
    for name, value in figures.items():
        if name != "runs":
            print(f"{name}: {json.dumps(value, default=str)}")


def plot(figures: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

    runs = [Measurement(**run["measurement"]) for run in figures["runs"]]
    largest = max(one.captions for one in runs)
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    memory, speed = figure.subplots(1, 2, width_ratios=[3, 2])
    for one in runs:
        if one.captions == largest:
            done = [at for at, _, _ in one.curve]
            memory.plot(done, [worker / MB for *_, worker in one.curve], "-", label=f"{one.engine}: a worker")
            memory.plot(done, [run / MB for _, run, _ in one.curve], "--", label=f"{one.engine}: the run")
    memory.set(xlabel="captions done", ylabel="most memory so far, MB", ylim=(0, None))
    memory.legend(fontsize="small")
    labels = [f"{one.engine} x {one.workers}: {one.captions:,} captions, {one.images:,} images" for one in runs]
    bars = speed.barh(range(len(runs)), [one.captions_per_second for one in runs])
    speed.bar_label(bars, fmt="%.0f", label_type="center", color="white")
    speed.set(xlabel="captions a second")
    speed.set_yticks(range(len(runs)), labels, fontsize="small")
    speed.invert_yaxis()
    for axes in (memory, speed):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
