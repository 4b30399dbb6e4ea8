"""One shard of a feature store: a safetensors file of features, offsets, boxes and scales, its ids in the metadata."""

from __future__ import annotations

import json
import mmap
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as pack_arrays

from capedit.errors import CapeditError
from capedit.vision.tokens import VisualTokens


class StoreError(CapeditError):
    """A store that cannot be opened, or not with this encoder."""


class Precision(StrEnum):
    """How a feature is kept: two bytes, or one byte and a scale per token."""

    FLOAT16 = "float16"
    INT8 = "int8"


class StoredTokens(NamedTuple):
    """One image as it lies on the disk: views of the memory map, no copies."""

    features: NDArray[np.float16] | NDArray[np.int8]  # (N, D)
    scales: NDArray[np.float32] | None  # (N,), only with int8
    boxes: NDArray[np.float32]  # (N, 5)

    def widen(self) -> NDArray[np.float32]:
        features = self.features.astype(np.float32)
        return features if self.scales is None else features * self.scales[:, None]


def quantise(features: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """(N, D) to whole numbers in -127..127 and one scale per token."""
    scales = np.abs(features).max(axis=1) / np.float32(127)
    safe = np.where(scales > 0, scales, np.float32(1))
    return np.rint(features / safe[:, None]).astype(np.int8), scales.astype(np.float32)


def pack_shard(ids: Sequence[str], tokens: Sequence[VisualTokens], precision: Precision) -> bytes:
    offsets = np.cumsum([0, *map(len, tokens)], dtype=np.int64)
    features = np.concatenate([one.features for one in tokens])
    arrays: dict[str, NDArray[Any]] = {"offsets": offsets, "boxes": np.concatenate([one.boxes for one in tokens])}
    if precision is Precision.INT8:
        arrays["features"], arrays["scales"] = quantise(features)
    else:
        largest = np.finfo(np.float16).max
        arrays["features"] = features.clip(-largest, largest).astype(np.float16)
    return pack_arrays(arrays, {"ids": json.dumps(ids, ensure_ascii=False)})


_TYPES = {"F16": np.float16, "F32": np.float32, "I8": np.int8, "I64": np.int64}


class Shard:
    """A mapped safetensors file. Parsed here because the library's numpy reader copies what it reads."""

    def __init__(self, path: Path, dim: int, precision: Precision) -> None:
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            length = int.from_bytes(self._map[:8], "little")
            entries = json.loads(self._map[8 : 8 + length])
            self.ids: list[str] = json.loads(entries.pop("__metadata__")["ids"])
            arrays = {name: self._view(8 + length, entry) for name, entry in entries.items()}
            self._offsets, self._features, self._boxes = arrays["offsets"], arrays["features"], arrays["boxes"]
            self._scales = arrays["scales"] if precision is Precision.INT8 else None
            total = int(self._offsets[-1])
            if (
                len(self._offsets) != len(self.ids) + 1
                or self._features.shape != (total, dim)
                or self._boxes.shape != (total, 5)
            ):
                raise ValueError("arrays do not fit together")
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise StoreError(f"{path}: damaged shard ({error}); remove it and run again") from error

    def _view(self, start: int, entry: dict[str, Any]) -> NDArray[Any]:
        begin, end = entry["data_offsets"]
        kind = np.dtype(_TYPES[entry["dtype"]])
        count = int(np.prod(entry["shape"], dtype=np.int64))
        if count * kind.itemsize != end - begin:
            raise ValueError("sizes and offsets disagree")
        return np.frombuffer(self._map, kind, count, start + begin).reshape(entry["shape"])

    def row(self, row: int) -> StoredTokens:
        span = slice(int(self._offsets[row]), int(self._offsets[row + 1]))
        scales = None if self._scales is None else self._scales[span]
        return StoredTokens(self._features[span], scales, self._boxes[span])
