"""Whole datasets through both engines: equal output, speed, flat memory, and what a billion captions would take.

    python benchmarks/pipeline.py --captions 100000 --text COCO_CAPTIONS.json [--images FOLDER] [--json OUT.json]
    python benchmarks/pipeline.py --captions 2000 --random-model          # no model, no data at hand

Captions are those of any dataset that `capedit` reads (`--text`), else made ones; images are those of a folder
(`--images`, used in turn), else made ones of 320 x 240. Every fifth caption has a new image. `--random-model` takes the
small random-weight model of the tests (run from the repository's root): the figures of the pipeline itself, without
those of a network. The engines run one after the other; give them an idle machine.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import cycle, islice
from pathlib import Path

from capedit.data import ImageFile, Instance, open_dataset, write_dataset
from capedit.pipeline import EngineName, Treatment, edits_folder
from capedit.pipeline.throughput import Measurement, conditions, made, measure_once

PER_IMAGE = 5
BILLION = 1_000_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captions", type=int, default=2000)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--model", default="default")
    parser.add_argument("--encoder", default="default")
    parser.add_argument("--random-model", action="store_true")
    parser.add_argument("--engines", default="local,ray")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.environ["SOURCE_DATE_EPOCH"] = "1700000000"  # logs of different runs are compared byte for byte
    with tempfile.TemporaryDirectory(prefix="capedit-bench-") as name:
        folder = Path(name)
        treatment = random_model(folder) if options.random_model else Treatment(options.model, options.encoder)
        found, equal = run_all(options, folder, treatment.settled())
    tell(found, equal)
    if options.json is not None:
        figures = {"conditions": conditions(), "equal": equal, "runs": [asdict(one) for one in found]}
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


def random_model(folder: Path) -> Treatment:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.pipeline.world import make_treatment

    return make_treatment(folder)


def run_all(options: argparse.Namespace, folder: Path, treatment: Treatment) -> tuple[list[Measurement], bool]:
    """A quarter, then all of the captions with each engine and number of workers."""
    workers = [int(part) for part in options.workers.split(",")]
    engines = [EngineName(part) for part in options.engines.split(",")]
    found, digests = [], set()
    for size in (options.captions // 4, options.captions):
        data = folder / f"data{size}" / "captions.jsonl"
        write_dataset(captions(options, folder / f"data{size}", size), data)
        for engine in engines:
            for count in workers if size == options.captions else workers[-1:]:
                out = folder / f"{engine}-{size}-{count}" / "captions.jsonl"
                one = measure_once(data, out, treatment, engine, count)
                found.append(one)
                print(
                    f"{engine}, {count} workers, {size:,} captions: {one.captions_per_second:,.1f}/s", file=sys.stderr
                )
                if size == options.captions:
                    digests.add(digest(out))
    return found, len(digests) == 1


def captions(options: argparse.Namespace, folder: Path, count: int) -> Iterator[Instance]:
    stock = made(folder / "images", count, PER_IMAGE)
    if options.images is not None:
        pictures = sorted(path for path in options.images.iterdir() if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
        # Under names of their own, so that each counts as an image of its own.
        linked = links(pictures, folder / "links")
        stock = (Instance(n, "", image_id=n // PER_IMAGE, image=one) for n, one in enumerate(repeated(linked)))
    texts = None if options.text is None else cycle(one.reference for one in open_dataset(options.text))
    for instance in islice(stock, count):
        yield instance if texts is None else replace(instance, reference=next(texts))


def links(pictures: list[Path], folder: Path) -> Iterator[ImageFile]:
    folder.mkdir(parents=True)
    for number, picture in enumerate(cycle(pictures)):
        link = folder / f"{number:08d}{picture.suffix}"
        link.symlink_to(picture.absolute())
        yield ImageFile(link, f"{folder.name}/{link.name}")


def repeated(images: Iterator[ImageFile]) -> Iterator[ImageFile]:
    for image in images:
        yield from [image] * PER_IMAGE


def digest(out: Path) -> str:
    """Of the output and of its log."""
    found = hashlib.sha256(out.read_bytes())
    for file in sorted((edits_folder(out) / "log").iterdir()):
        found.update(file.read_bytes())
    return found.hexdigest()


def tell(found: list[Measurement], equal: bool) -> None:
    print("\n| engine | workers | captions | captions/s | images/s | run MB | worker MB | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for one in found:
        memory = f"{one.memory_run / 2**20:.0f} | {one.memory_worker / 2**20:.0f}"
        speeds = f"{one.captions_per_second:,.1f} | {one.images_per_second:,.1f}"
        print(f"| {one.engine} | {one.workers} | {one.captions:,} | {speeds} | {memory} | {one.seconds:.1f} |")
    print(f"\noutputs and logs of all runs of the full size are {'equal' if equal else 'NOT EQUAL'}, byte for byte")
    largest = max(one.captions for one in found)
    for engine in dict.fromkeys(one.engine for one in found):
        runs = {one.workers: one for one in found if one.engine == engine and one.captions == largest}
        fewest, most = runs[min(runs)], runs[max(runs)]
        gain = most.captions_per_second / fewest.captions_per_second
        per_core = most.captions_per_second / most.workers
        days = BILLION / per_core / 86_400
        print(
            f"{engine}: {most.workers} workers are {gain:.2f} times as fast as {fewest.workers}; at {per_core:,.1f} "
            f"captions/s a core a billion captions are {days:,.0f} core-days"
        )


if __name__ == "__main__":
    main()
