"""Two small benchmarks that are made up, so that a reproduction can be tried anywhere in a minute."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from capedit.experiments.reproduce.benchmark import Benchmark, BenchmarkFiles
from capedit.experiments.reproduce.paper import COCO, FLICKR
from capedit.vision import FeatureStore, ImageSource, StoreWriter, VisualTokens
from capedit.vision.tokens import grid_corners

THINGS = ["dog", "cat", "man", "woman", "horse", "bird"]
PLACES = ["sofa", "table", "street", "beach"]
COLOURS = ["red", "blue", "green"]
NOISE = 4


@dataclass(frozen=True)
class MadeEncoder:
    """Stands for an encoder: its tokens say outright what a caption should be about."""

    name: str = "made"
    hash: str = "made-0001"
    dim: int = len(THINGS) + len(PLACES) + len(COLOURS) + NOISE

    def encode(self, images: Sequence[ImageSource]) -> list[VisualTokens]:
        raise NotImplementedError("made images have no pixels")

    def tokens(self, thing: int, place: int, colour: int, rng: np.random.Generator) -> VisualTokens:
        features = rng.normal(scale=0.1, size=(4, self.dim)).astype(np.float32)
        features[:2, thing] += 2
        features[2:, len(THINGS) + place] += 2
        features[:, len(THINGS) + len(PLACES) + colour] += 1
        return VisualTokens.from_regions(features, grid_corners(2, 2))


def make_benchmarks(folder: Path, *, train: int = 48, asked: int = 16, seed: int = 0) -> list[Benchmark]:
    """Write both benchmarks and the features of their images, unless they are there, and read them."""
    rng = np.random.default_rng(seed)
    store, sides = folder / "store", [(COCO, "coco"), (FLICKR, "flickr")]
    if not store.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with StoreWriter(store, MadeEncoder()) as writer:
            for number, (_, short) in enumerate(sides):
                for split, count in (("train", train), ("val", asked)):
                    first = 10_000 * number + 5_000 * (split == "val")
                    records = [_record(first + at, writer, rng) for at in range(count)]
                    (folder / f"{short}-{split}.json").write_text(json.dumps(records), encoding="utf-8")
    opened = FeatureStore(store)
    files = [
        BenchmarkFiles(name, (folder / f"{short}-train.json",), folder / f"{short}-val.json") for name, short in sides
    ]
    return [Benchmark.read(each, opened) for each in files]


def _record(image: int, writer: StoreWriter, rng: np.random.Generator) -> dict[str, object]:
    """An image, a caption that fits it, and one that does not."""
    thing, other = rng.permutation(len(THINGS))[:2].tolist()
    place, colour = int(rng.integers(len(PLACES))), int(rng.integers(len(COLOURS)))
    writer.add(str(image + 1), MadeEncoder().tokens(thing, place, colour, rng))
    target = f"a {COLOURS[colour]} {THINGS[thing]} is on the {PLACES[place]}"
    wrong = f"a {THINGS[other]} sitting on the {PLACES[place]}"
    if rng.random() < 0.5:
        wrong = f"two {THINGS[other]} near a {COLOURS[colour]} {PLACES[place]}"
    return {
        "image_id": image + 1,
        "Ref-Cap": wrong,
        "Ref-Cap_tokens": wrong.split(),
        "GT-Cap": target,
        "GT-Cap_tokens": target.split(),
        "sample_id": image,
    }
