"""Visual tokens of many images on disk, read through memory maps.

A store is a folder: `store.json` says what is in it and by which encoder, `failures.jsonl` which images could not be
read, and each shard is one safetensors file. A shard appears by one atomic rename after it has reached the disk, and
there is no other index: a process killed at any moment loses the shard it was gathering and harms nothing. Any
number of processes may read while one writes.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from capedit.vision.shard import Precision, Shard, StoredTokens, StoreError
from capedit.vision.tokens import VisualTokens

FORMAT = 1
MAX_MAPPED = 256
"""Shards mapped at a time: each takes a file handle, of which a process may have few."""


@dataclass(frozen=True)
class StoreHeader:
    """The content of `store.json`."""

    encoder: str
    encoder_hash: str
    dim: int
    precision: Precision
    format: int = FORMAT


class TokenBatch(NamedTuple):
    """Several images side by side; images with fewer tokens end in zeros."""

    features: NDArray[np.float32]  # (B, N, D)
    boxes: NDArray[np.float32]  # (B, N, 5)
    counts: NDArray[np.int64]  # (B,)


class TokenSource(Protocol):
    """Whatever gives the visual tokens of images by their ids, and says by which encoder."""

    @property
    def header(self) -> StoreHeader: ...

    def batch(self, image_ids: Sequence[str]) -> TokenBatch: ...


@dataclass(frozen=True)
class Failure:
    """An image that has no tokens, and why."""

    image_id: str
    source: str
    reason: str


class FeatureStore:
    """Read a store. Opening is cheap; features are read from disk when they are used, and shared by processes.

    What a writer adds later is seen by opening the store again.
    """

    def __init__(self, path: str | Path, *, encoder_hash: str | None = None) -> None:
        """With `encoder_hash`, a store made by any other encoder is refused."""
        self.path = Path(path)
        self.header = read_header(self.path)
        if encoder_hash is not None and encoder_hash != self.header.encoder_hash:
            raise StoreError(
                f"{self.path}: made by encoder {self.header.encoder_hash} ({self.header.encoder}), "
                f"wanted {encoder_hash}"
            )
        self._files = shard_paths(self.path)
        self._mapped: dict[int, Shard] = {}
        self._places: dict[str, tuple[int, int]] = {}
        for number in range(len(self._files)):
            for row, image_id in enumerate(self._shard(number).ids):
                self._places.setdefault(image_id, (number, row))

    def __reduce__(self) -> tuple[type[FeatureStore], tuple[Path]]:
        return FeatureStore, (self.path,)  # a worker process maps the files itself

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, image_id: str) -> bool:
        return image_id in self._places

    @property
    def ids(self) -> list[str]:
        """Image ids in the order they were stored."""
        return list(self._places)

    def stored(self, image_id: str) -> StoredTokens:
        try:
            number, row = self._places[image_id]
        except KeyError:
            raise StoreError(f"{self.path}: no tokens for image {image_id!r}") from None
        return self._shard(number).row(row)

    def tokens(self, image_id: str) -> VisualTokens:
        stored = self.stored(image_id)
        return VisualTokens(stored.widen(), np.array(stored.boxes))

    def batch(self, image_ids: Sequence[str]) -> TokenBatch:
        rows = [self.stored(image_id) for image_id in image_ids]
        counts = np.array([len(row.features) for row in rows], dtype=np.int64)
        most = int(counts.max(initial=0))
        features = np.zeros((len(rows), most, self.header.dim), dtype=np.float32)
        boxes = np.zeros((len(rows), most, 5), dtype=np.float32)
        for index, row in enumerate(rows):
            count = counts[index]
            np.copyto(features[index, :count], row.features)
            if row.scales is not None:
                features[index, :count] *= row.scales[:, None]
            boxes[index, :count] = row.boxes
        return TokenBatch(features, boxes, counts)

    def _shard(self, number: int) -> Shard:
        """A mapped shard. One that is let go stays mapped for as long as views of it are in use."""
        shard = self._mapped.get(number)
        if shard is None:
            shard = Shard(self._files[number], self.header.dim, self.header.precision)
            self._mapped[number] = shard
            if len(self._mapped) > MAX_MAPPED:
                self._mapped.pop(next(iter(self._mapped)), None)
        return shard

    def failures(self) -> list[Failure]:
        """Images that were tried and are still missing, each with its last reason."""
        latest = {failure.image_id: failure for failure in _read_failures(self.path)}
        return [failure for image_id, failure in latest.items() if image_id not in self]


def read_header(path: Path) -> StoreHeader:
    file = path / "store.json"
    try:
        fields = json.loads(file.read_text(encoding="utf-8"))
        header = StoreHeader(**{**fields, "precision": Precision(fields["precision"])})
    except FileNotFoundError:
        raise StoreError(f"{path}: not a feature store (no store.json)") from None
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(f"{file}: cannot be understood ({error})") from error
    if header.format != FORMAT:
        raise StoreError(f"{file}: format {header.format}, this version reads {FORMAT}")
    return header


def shard_paths(path: Path) -> list[Path]:
    return sorted(path.glob("shard-*.safetensors"))


def _read_failures(path: Path) -> Iterator[Failure]:
    with contextlib.suppress(FileNotFoundError), (path / "failures.jsonl").open(encoding="utf-8") as file:
        for line in file:
            with contextlib.suppress(ValueError, TypeError):  # a line cut short by a crash
                yield Failure(**json.loads(line))
