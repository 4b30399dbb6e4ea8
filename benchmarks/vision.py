"""How fast, how equal and how compact: the encoder and the feature store.

    python benchmarks/vision.py IMAGES --encoder lite0 --count 500

CPU time is printed beside wall time, because only the former means much on a busy machine. Decoding is included
unless the row says otherwise; each image is read from disk once before, so the disk is not measured.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from capedit.vision.extraction import ImageEntry, extract
from capedit.vision.image import load_image
from capedit.vision.registry import load_encoder
from capedit.vision.shard import Precision, quantise
from capedit.vision.store import FeatureStore
from capedit.vision.store_writer import StoreWriter

BATCH = 8


def timed(label: str, count: int, work: Callable[[], object]) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(
        f"{label:46s} {count / wall:8.1f} images/s  {1e3 * wall / count:7.2f} ms wall  {1e3 * cpu / count:7.2f} ms CPU"
    )


def speed(paths: list[Path], name: str, grid: int | None) -> None:
    encoder = load_encoder(name, grid=grid, threads=1)
    encoder.encode(paths[:BATCH])  # warm
    count = len(paths)
    batches = [paths[start : start + BATCH] for start in range(0, count, BATCH)]
    timed("1 core: decoding alone", count, lambda: [load_image(path) for path in paths])
    timed("1 core: single", count, lambda: [encoder.encode([path]) for path in paths])
    timed(f"1 core: batches of {BATCH}", count, lambda: [encoder.encode(batch) for batch in batches])
    with ThreadPoolExecutor(2) as pool:
        timed("2 cores: single, one thread each", count, lambda: list(pool.map(lambda p: encoder.encode([p]), paths)))
        timed(f"2 cores: batches of {BATCH}, one thread each", count, lambda: list(pool.map(encoder.encode, batches)))
    both = load_encoder(name, grid=grid, threads=2)
    both.encode(paths[:BATCH])
    timed("2 cores: single, two threads a call (latency)", count, lambda: [both.encode([path]) for path in paths])


def equality(paths: list[Path], name: str, grid: int | None, folder: Path) -> None:
    one, two = (load_encoder(name, grid=grid, threads=threads) for threads in (1, 2))
    batch = one.encode(paths)
    single = [one.encode([path])[0] for path in paths]
    threads = two.encode(paths)
    copies = []
    for path in paths:
        copies.append(folder / f"{path.stem}.png")
        load_image(path).save(copies[-1], compress_level=1)
    png = one.encode(copies)
    for label, others in (("single", single), ("two threads", threads), ("PNG of the same pixels", png)):
        worst = max(float(np.abs(a.features - b.features).max()) for a, b in zip(batch, others, strict=True))
        print(f"batch against {label:30s} largest difference {worst:g}")


def rounded(features: NDArray[np.float32], precision: Precision) -> NDArray[np.float32]:
    """What a store may keep of the features, worked out without one."""
    if precision is Precision.FLOAT16:
        return features.astype(np.float16).astype(np.float32)
    numbers, scales = quantise(features)
    return numbers.astype(np.float32) * scales[:, None]


def store(paths: list[Path], name: str, grid: int | None, folder: Path) -> None:
    encoder = load_encoder(name, grid=grid, threads=1)
    entries = [ImageEntry(path.stem, path) for path in paths]
    fresh = encoder.encode(paths)
    for precision in Precision:
        place = folder / precision
        with StoreWriter(place, encoder, precision) as writer:
            timed(f"{precision} store, 2 workers", len(paths), lambda w=writer: extract(entries, encoder, w, workers=2))  # type: ignore[misc]
        opened = FeatureStore(place, encoder_hash=encoder.hash)
        errors, exact = [], True
        for path, tokens in zip(paths, fresh, strict=True):
            read = opened.tokens(path.stem)
            errors.append(np.linalg.norm(read.features - tokens.features) / np.linalg.norm(tokens.features))
            exact &= np.array_equal(read.features, rounded(tokens.features, precision))
            exact &= np.array_equal(read.boxes, tokens.boxes)
        size = sum(file.stat().st_size for file in place.iterdir()) / len(paths)
        print(f"  {size / 1e3:.1f} kB an image; relative error {np.mean(errors):.2e}; read back as stored: {exact}")
        ids = opened.ids
        random.Random(0).shuffle(ids)
        blocks = [ids[start : start + 64] for start in range(0, len(ids), 64)]
        timed("  reading batches of 64 as float32", len(ids), lambda b=blocks, o=opened: [o.batch(one) for one in b])  # type: ignore[misc]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path)
    parser.add_argument("--encoder", default="default")
    parser.add_argument("--grid", type=int)
    parser.add_argument("--count", type=int, default=400)
    args = parser.parse_args()
    paths = random.Random(0).sample(sorted(args.images.glob("*.jpg")), args.count)
    for path in paths:
        path.read_bytes()
    encoder = load_encoder(args.encoder, grid=args.grid)
    print(f"{encoder.name} ({encoder.hash}), {len(paths)} images; load average {os.getloadavg()[0]:.1f} at the start")
    with tempfile.TemporaryDirectory() as folder:
        speed(paths, args.encoder, args.grid)
        equality(paths[:100], args.encoder, args.grid, Path(folder))
        store(paths, args.encoder, args.grid, Path(folder))
    print(f"load average {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
