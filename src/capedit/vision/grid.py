"""The default encoder: the last feature map of a convolutional network, each cell a region with its box."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from capedit.errors import CapeditError
from capedit.vision.square import SquareEncoder
from capedit.vision.tokens import grid_corners

# Counted up whenever the same file would give other tokens: resizing, pooling, order of cells.
_TREATMENT = "squash-bicubic-1"


class GridEncoder(SquareEncoder):
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
        side, rows, columns, dim = self._shapes(path)
        if grid is not None and not 1 <= grid <= min(rows, columns):
            raise CapeditError(f"{path}: grid {grid} does not fit a map of {rows} x {columns} cells")
        self._rows = area_pooling(rows, grid) if grid else None
        self._columns = area_pooling(columns, grid) if grid else None
        name: str = self._session.get_modelmeta().custom_metadata_map.get("capedit.encoder", path.stem)
        digest = hashlib.sha256(data)
        digest.update(f"{_TREATMENT} grid={grid}".encode())
        super().__init__(
            name=f"{name} pooled {grid} x {grid}" if grid else name,
            hash=digest.hexdigest()[:16],
            dim=dim,
            side=side,
            corners=grid_corners(grid or rows, grid or columns),
        )

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

    def _run(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """(B, S, S, 3) -> (B, cells, D)."""
        maps = self._session.run(None, {self._session.get_inputs()[0].name: pixels})[0]
        if self._rows is not None and self._columns is not None:
            # One image at a time: the order of additions must not depend on the batch.
            maps = np.stack([_pool(one, self._rows, self._columns) for one in maps])
        cells: NDArray[np.float32] = maps.reshape(len(maps), -1, self.dim)
        return cells


def _pool(one: NDArray[np.float32], rows: NDArray[np.float32], columns: NDArray[np.float32]) -> NDArray[np.float32]:
    """(h, w, D) -> (rows, columns, D)."""
    by_rows: NDArray[np.float32] = np.tensordot(rows, one, axes=1)  # (r, w, D)
    pooled: NDArray[np.float32] = np.matmul(columns, by_rows)  # (r, c, D)
    return pooled


def area_pooling(size: int, parts: int) -> NDArray[np.float32]:
    """(parts, size): how much of each of `size` cells lies in each of `parts` equal stretches; rows sum to one.

    Equal stretches keep the mean over the pooled map equal to the mean over the map, so that the whole-image token
    does not depend on the pooling.
    """
    edges = np.arange(parts + 1) * size / parts
    cells = np.arange(size)
    overlap = np.minimum(cells + 1, edges[1:, None]) - np.maximum(cells, edges[:-1, None])
    return (overlap.clip(min=0) * parts / size).astype(np.float32)
