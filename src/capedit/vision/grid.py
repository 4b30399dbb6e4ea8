"""The default encoder: the last feature map of a convolutional network, each cell a region with its box."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from PIL import Image

from capedit.errors import CapeditError
from capedit.vision.image import ImageSource, load_image
from capedit.vision.tokens import VisualTokens, grid_corners

# Counted up whenever the same file would give other tokens: resizing, pooling, order of cells.
_TREATMENT = "squash-bicubic-1"
_BATCH = 8  # larger batches were no faster on a CPU and take memory


class GridEncoder:
    """Runs an ONNX file that maps uint8 pixels (B, S, S, 3) to features (B, h, w, D).

    The whole image is squashed to the square: nothing is cropped, and a cell's box is a plain share of the image.
    Safe to use from several threads at once; `threads` is how many cores a single call may take.
    """

    def __init__(self, path: str | Path, *, grid: int | None = None, threads: int = 0) -> None:
        """`grid` pools the map to grid x grid cells, by area where cells do not divide evenly."""
        path = Path(path)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise CapeditError(f"{path}: encoder cannot be read ({error.strerror or error})") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise CapeditError(f"{path}: not an ONNX file the runtime can load ({error})") from error
        self._side, rows, columns, self._dim = self._shapes(path)
        if grid is not None and not 1 <= grid <= min(rows, columns):
            raise CapeditError(f"{path}: grid {grid} does not fit a map of {rows} x {columns} cells")
        self._rows = _area_pooling(rows, grid) if grid else None
        self._columns = _area_pooling(columns, grid) if grid else None
        self._corners = grid_corners(grid or rows, grid or columns)
        self._name: str = self._session.get_modelmeta().custom_metadata_map.get("capedit.encoder", path.stem)
        if grid:
            self._name += f" pooled {grid} x {grid}"
        digest = hashlib.sha256(data)
        digest.update(f"{_TREATMENT} grid={grid}".encode())
        self._hash = digest.hexdigest()[:16]

    def _shapes(self, path: Path) -> tuple[int, int, int, int]:
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        taken, given = inputs[0].shape, outputs[0].shape
        fixed = (*taken[1:], *given[1:])
        if (
            len(inputs) != 1
            or inputs[0].type != "tensor(uint8)"
            or len(taken) != 4
            or len(given) != 4
            or not all(isinstance(size, int) for size in fixed)
            or taken[1] != taken[2]
            or taken[3] != 3
        ):
            raise CapeditError(f"{path}: maps {taken} to {given}, expected uint8 (B, S, S, 3) to (B, h, w, D)")
        return taken[1], given[1], given[2], given[3]

    @property
    def name(self) -> str:
        return self._name

    @property
    def hash(self) -> str:
        return self._hash

    @property
    def dim(self) -> int:
        return self._dim

    def encode(self, images: Sequence[ImageSource]) -> list[VisualTokens]:
        tokens: list[VisualTokens] = []
        for start in range(0, len(images), _BATCH):
            pixels = np.stack([self.prepare(image) for image in images[start : start + _BATCH]])
            tokens.extend(VisualTokens.from_regions(cells, self._corners) for cells in self._run(pixels))
        return tokens

    def prepare(self, image: ImageSource) -> NDArray[np.uint8]:
        """The pixels the network sees, (S, S, 3)."""
        rgb = load_image(image)
        square = rgb.resize((self._side, self._side), Image.Resampling.BICUBIC, reducing_gap=3.0)
        return np.asarray(square)

    def _run(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """(B, S, S, 3) -> (B, cells, D)."""
        maps = self._session.run(None, {self._session.get_inputs()[0].name: pixels})[0]
        if self._rows is not None and self._columns is not None:
            # One image at a time: the order of additions must not depend on the batch.
            maps = np.stack([_pool(one, self._rows, self._columns) for one in maps])
        cells: NDArray[np.float32] = maps.reshape(len(maps), -1, self._dim)
        return cells


def _pool(one: NDArray[np.float32], rows: NDArray[np.float32], columns: NDArray[np.float32]) -> NDArray[np.float32]:
    """(h, w, D) -> (rows, columns, D)."""
    by_rows: NDArray[np.float32] = np.tensordot(rows, one, axes=1)  # (r, w, D)
    pooled: NDArray[np.float32] = np.matmul(columns, by_rows)  # (r, c, D)
    return pooled


def _area_pooling(size: int, parts: int) -> NDArray[np.float32]:
    """(parts, size): how much of each of `size` cells lies in each of `parts` equal stretches; rows sum to one.

    Equal stretches keep the mean over the pooled map equal to the mean over the map, so that the whole-image token
    does not depend on the pooling.
    """
    edges = np.arange(parts + 1) * size / parts
    cells = np.arange(size)
    overlap = np.minimum(cells + 1, edges[1:, None]) - np.maximum(cells, edges[:-1, None])
    return (overlap.clip(min=0) * parts / size).astype(np.float32)
