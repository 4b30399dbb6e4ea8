"""Add visual tokens to a feature store, shard by shard."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np

from capedit.vision.encoder import Encoder
from capedit.vision.shard import Precision, StoreError, pack_shard
from capedit.vision.store import Failure, FeatureStore, StoreHeader, read_header, shard_paths
from capedit.vision.tokens import VisualTokens

if sys.platform != "win32":
    import fcntl

SHARD_BYTES = 64 * 2**20
"""A shard is written once it is about this large: what a crash can cost, and what a writer holds in memory."""


class StoreWriter:
    """Add to a store, which is made if it is not there; one writer at a time. Use it as a context manager."""

    def __init__(
        self,
        path: str | Path,
        encoder: Encoder,
        precision: Precision = Precision.FLOAT16,
        *,
        shard_bytes: int = SHARD_BYTES,
    ) -> None:
        self.path = Path(path)
        self.header = StoreHeader(encoder.name, encoder.hash, encoder.dim, precision)
        self._shard_bytes = shard_bytes
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(self.path)
        try:
            self._check_or_write_header()
            for leftover in self.path.glob("*.partial"):  # of a writer that was killed; we hold its lock
                leftover.unlink()
            existing = FeatureStore(self.path)
        except BaseException:
            self._lock.close()
            raise
        self._known = set(existing.ids)
        self._failures = set(existing.failures())
        self._next = 1 + max((int(path.stem.split("-")[1]) for path in shard_paths(self.path)), default=-1)
        self._gathered: list[tuple[str, VisualTokens]] = []
        self._gathered_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __contains__(self, image_id: str) -> bool:
        """Stored already, or gathered for the next shard."""
        return image_id in self._known

    def __len__(self) -> int:
        return len(self._known)

    def add(self, image_id: str, tokens: VisualTokens) -> None:
        if image_id in self._known:
            raise StoreError(f"{self.path}: image {image_id!r} is there already")
        if tokens.dim != self.header.dim:
            raise StoreError(f"{self.path}: image {image_id!r} has features of {tokens.dim}, not {self.header.dim}")
        if not np.isfinite(tokens.features).all():
            raise StoreError(f"{self.path}: image {image_id!r} has features that are not finite")
        self._known.add(image_id)
        self._gathered.append((image_id, tokens))
        width = 2 if self.header.precision is Precision.FLOAT16 else 1
        self._gathered_bytes += tokens.features.size * width
        if self._gathered_bytes >= self._shard_bytes:
            self.flush()

    def fail(self, failure: Failure) -> None:
        """Put an unreadable image on record; it is tried again by the next run."""
        if failure in self._failures:
            return
        self._failures.add(failure)
        with (self.path / "failures.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(failure), ensure_ascii=False) + "\n")

    def flush(self) -> None:
        """Write what is gathered as a shard of its own, all of it or nothing."""
        if not self._gathered:
            return
        data = pack_shard(
            [image_id for image_id, _ in self._gathered],
            [tokens for _, tokens in self._gathered],
            self.header.precision,
        )
        write_atomically(self.path / f"shard-{self._next:06d}.safetensors", data)
        self._next += 1
        self._gathered = []
        self._gathered_bytes = 0

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._lock.close()

    def _check_or_write_header(self) -> None:
        if not (self.path / "store.json").exists():
            if shard_paths(self.path):
                raise StoreError(f"{self.path}: has shards but no store.json")
            text = json.dumps(asdict(self.header), indent=2, ensure_ascii=False)
            write_atomically(self.path / "store.json", (text + "\n").encode())
            return
        found = read_header(self.path)
        if (found.encoder_hash, found.precision) != (self.header.encoder_hash, self.header.precision):
            raise StoreError(
                f"{self.path}: holds {found.precision} features of encoder {found.encoder_hash} ({found.encoder}); "
                f"{self.header.precision} features of {self.header.encoder_hash} ({self.header.encoder}) cannot join"
            )


def write_atomically(path: Path, data: bytes) -> None:
    """The file is there with all its bytes, safely on disk, or not at all."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    if sys.platform != "win32":  # make the rename itself durable
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _lock(path: Path) -> IO[bytes]:
    """Hold the store for writing; the system lets go when the process ends, however it ends."""
    file = (path / "writer.lock").open("wb")
    if sys.platform != "win32":
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise StoreError(f"{path}: another process is writing to this store") from None
    return file
