"""Feature maps of many images on disk: what a frozen body computes once, for training what comes after it."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capedit.errors import CapeditError
from capedit.vision import GridEncoder

CHUNK = 1000


class MapCache:
    """Maps (cells, channels) in float16 by position in a list of images, in memory-mapped chunks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.header: dict[str, Any] = json.loads((folder / "header.json").read_text())
        self._chunks: dict[int, NDArray[np.float16]] = {}

    def __len__(self) -> int:
        return int(self.header["count"])

    def batch(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """(B, cells, channels)."""
        return np.stack([self._chunk(int(at) // CHUNK)[int(at) % CHUNK] for at in positions]).astype(np.float32)

    def _chunk(self, number: int) -> NDArray[np.float16]:
        if number not in self._chunks:
            self._chunks[number] = np.load(_chunk_path(self.folder, number), mmap_mode="r", allow_pickle=False)
        return self._chunks[number]


def fill_map_cache(
    images: Sequence[Path],
    body: GridEncoder,
    folder: Path,
    *,
    workers: int = 2,
    report: Callable[[int], None] = lambda done: None,
) -> MapCache:
    """Compute what is missing; chunks that are there stay, so that a broken run goes on where it was."""
    folder.mkdir(parents=True, exist_ok=True)
    header = {"count": len(images), "body": body.hash, "first": str(images[0].name), "last": str(images[-1].name)}
    path = folder / "header.json"
    if path.exists() and json.loads(path.read_text()) != header:
        raise CapeditError(f"{folder}: holds maps of other images or of another network")
    path.write_text(json.dumps(header))
    with ThreadPoolExecutor(workers) as pool:
        for number in range(-(-len(images) // CHUNK)):
            target = _chunk_path(folder, number)
            if not target.exists():
                part = images[number * CHUNK : (number + 1) * CHUNK]
                maps = np.stack(list(pool.map(lambda image: body.cells([image])[0].astype(np.float16), part)))
                unfinished = target.with_suffix(".unfinished")
                with unfinished.open("wb") as file:
                    np.save(file, maps, allow_pickle=False)
                unfinished.replace(target)
            report(min((number + 1) * CHUNK, len(images)))
    return MapCache(folder)


def _chunk_path(folder: Path, number: int) -> Path:
    return folder / f"{number:05d}.npy"
