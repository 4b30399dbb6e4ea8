"""Bottom-up region features as published, read one image at a time."""

from __future__ import annotations

import base64
import binascii
import hashlib
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from capedit.errors import CapeditError
from capedit.paths import cache_dir
from capedit.vision.tokens import VisualTokens

_COLUMNS = ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features")


class RegionError(CapeditError):
    """A region file that does not hold what it should: which, where, and what is wrong."""


class RegionTable:
    """A published tsv (`trainval_36.tsv`, 24 GB): columns image_id, image_w, image_h, num_boxes, boxes, features.

    One pass over the file finds where each image's line starts; that index is kept in the cache, and from then on
    an image costs one seek.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._offsets = self._index()

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, image_id: str) -> bool:
        return image_id in self._offsets

    @property
    def ids(self) -> list[str]:
        return list(self._offsets)

    def tokens(self, image_id: str) -> VisualTokens:
        if image_id not in self._offsets:
            raise RegionError(f"{self.path}: no regions for image {image_id!r}")
        with self.path.open("rb") as file:
            file.seek(self._offsets[image_id])
            line = file.readline()
        where = f"{self.path}, image {image_id}"
        fields = dict(zip(_COLUMNS, line.rstrip(b"\r\n").split(b"\t"), strict=False))
        if len(fields) != len(_COLUMNS):
            raise RegionError(f"{where}: {len(fields)} columns, expected {len(_COLUMNS)}")
        try:
            width, height, count = (float(fields["image_w"]), float(fields["image_h"]), int(fields["num_boxes"]))
        except ValueError as error:
            raise RegionError(f"{where}: image_w, image_h or num_boxes is not a number ({error})") from error
        boxes, features = (_floats(fields[column], count, f"{where}, {column}") for column in ("boxes", "features"))
        return _region_tokens(features, boxes, width, height, where)

    def _index(self) -> dict[str, int]:
        try:
            facts = self.path.stat()
        except OSError as error:
            raise RegionError(f"{self.path}: cannot be read ({error.strerror or error})") from error
        key = f"{self.path.resolve()} {facts.st_size} {facts.st_mtime_ns}"
        kept = cache_dir("region-indexes") / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.npz"
        try:
            with np.load(kept, allow_pickle=False) as arrays:
                return dict(zip(arrays["ids"].tolist(), arrays["offsets"].tolist(), strict=True))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            pass  # not made yet, or damaged: make it
        offsets = self._scan()
        partial = kept.with_suffix(".partial.npz")
        np.savez(partial, ids=np.array(list(offsets), dtype=np.str_), offsets=np.array(list(offsets.values())))
        partial.replace(kept)
        return offsets

    def _scan(self) -> dict[str, int]:
        offsets: dict[str, int] = {}
        position = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                image_id, tab, _ = line.partition(b"\t")
                if line.strip():
                    if not tab:
                        raise RegionError(f"{self.path}, line {number}: not a tab-separated line")
                    if not (number == 1 and image_id == b"image_id"):
                        # Published files repeat some images, with equal content.
                        offsets.setdefault(image_id.decode("utf-8", "replace"), position)
                position += len(line)
        return offsets


class RegionFolder:
    """One `ID.npz` per image, with arrays `x` (N, D), `bbox` (N, 4) in pixels, `image_w` and `image_h`."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise RegionError(f"{self.path}: not a folder")

    def __contains__(self, image_id: str) -> bool:
        return self._file(image_id).is_file()

    @property
    def ids(self) -> list[str]:
        return sorted(file.stem for file in self.path.glob("*.npz"))

    def tokens(self, image_id: str) -> VisualTokens:
        arrays = _read_npz(self._file(image_id), ("x", "bbox", "image_w", "image_h"))
        width, height = float(arrays["image_w"]), float(arrays["image_h"])
        return _region_tokens(arrays["x"], arrays["bbox"], width, height, str(self._file(image_id)))

    def _file(self, image_id: str) -> Path:
        return _member(self.path, image_id, ".npz")


class RegionFolderPair:
    """The layout of captioning code: `features/ID.npz` (array `feat`) or `ID.npy`, and `boxes/ID.npy` in pixels.

    These files do not tell the image's size, which the caller must know.
    """

    def __init__(self, features: str | Path, boxes: str | Path) -> None:
        self.features, self.boxes = Path(features), Path(boxes)
        for folder in (self.features, self.boxes):
            if not folder.is_dir():
                raise RegionError(f"{folder}: not a folder")

    def __contains__(self, image_id: str) -> bool:
        return _member(self.boxes, image_id, ".npy").is_file()

    @property
    def ids(self) -> list[str]:
        return sorted(file.stem for file in self.boxes.glob("*.npy"))

    def tokens(self, image_id: str, width: float, height: float) -> VisualTokens:
        single = _member(self.features, image_id, ".npy")
        if single.is_file():
            features = _read_npy(single)
        else:
            features = _read_npz(_member(self.features, image_id, ".npz"), ("feat",))["feat"]
        boxes_file = _member(self.boxes, image_id, ".npy")
        return _region_tokens(features, _read_npy(boxes_file), width, height, str(boxes_file))


def _member(folder: Path, image_id: str, suffix: str) -> Path:
    if Path(image_id).name != image_id:
        raise RegionError(f"{folder}: {image_id!r} is not a plain image id")
    return folder / (image_id + suffix)


def _read_npz(file: Path, names: tuple[str, ...]) -> dict[str, NDArray[np.generic]]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in names}
    except KeyError as error:
        raise RegionError(f"{file}: {error.args[0]}") from error
    except (OSError, ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise RegionError(f"{file}: cannot be read ({error})") from error


def _read_npy(file: Path) -> NDArray[np.generic]:
    try:
        array = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise RegionError(f"{file}: cannot be read ({error})") from error
    if not isinstance(array, np.ndarray):
        raise RegionError(f"{file}: not a single array")
    return array


def _floats(field: bytes, rows: int, where: str) -> NDArray[np.float32]:
    try:
        values = np.frombuffer(base64.b64decode(field, validate=True), dtype="<f4")
    except (binascii.Error, ValueError) as error:
        raise RegionError(f"{where}: not base64 of float32 ({error})") from error
    if rows < 1 or not len(values) or len(values) % rows:
        raise RegionError(f"{where}: {len(values)} numbers for {rows} boxes")
    return values.reshape(rows, -1)


def _region_tokens(
    features: NDArray[np.generic], boxes: NDArray[np.generic], width: float, height: float, where: str
) -> VisualTokens:
    if features.ndim != 2 or not len(features) or boxes.shape != (len(features), 4):
        raise RegionError(f"{where}: {features.shape} features with {boxes.shape} boxes, expected (N, D) and (N, 4)")
    if not (width >= 1 and height >= 1):
        raise RegionError(f"{where}: image of {width:g} x {height:g}")
    shares = boxes.astype(np.float64) / (width, height, width, height)
    if not np.isfinite(shares).all() or not np.isfinite(features.astype(np.float32)).all():
        raise RegionError(f"{where}: numbers that are not finite")
    # Half a per cent: detectors round, and boxes reach a pixel over the edge.
    if shares.min() < -0.005 or shares.max() > 1.005 or (shares[:, 2:] < shares[:, :2]).any():
        raise RegionError(f"{where}: boxes do not lie in an image of {width:g} x {height:g}")
    return VisualTokens.from_regions(
        np.ascontiguousarray(features, dtype=np.float32), shares.clip(0, 1).astype(np.float32)
    )
