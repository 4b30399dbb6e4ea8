"""Any PIL mode or numpy array to plain 8-bit RGB, as a viewer on a white page would show it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

_WITH_ALPHA = frozenset({"RGBA", "LA", "PA", "RGBa", "La"})
_SIXTEEN_BIT = frozenset({"I;16", "I;16L", "I;16B", "I;16N"})


def to_rgb(image: Image.Image) -> Image.Image:
    """Convert a decoded image; raises ValueError with a reason where the pixels have no clear meaning as colours."""
    if image.mode in _SIXTEEN_BIT:
        return array_to_rgb(_native_uint16(image))
    if image.mode == "I":
        return array_to_rgb(_narrow_int32(np.asarray(image)))
    if image.mode == "F":
        return array_to_rgb(np.asarray(image))
    if image.mode in _WITH_ALPHA or "transparency" in image.info:
        with_alpha = image.convert("RGBA")
        page = Image.new("RGB", image.size, "white")
        page.paste(with_alpha, mask=with_alpha.getchannel("A"))
        return page
    return image.convert("RGB")  # a copy only where the mode differs


def array_to_rgb(array: NDArray[Any]) -> Image.Image:
    """(H, W) or (H, W, 1 | 3 | 4); bool, uint8, uint16, or floats in 0..1."""
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (3, 4))):
        raise ValueError(f"array of shape {array.shape}, expected (H, W) or (H, W, 1 | 3 | 4)")
    if 0 in array.shape:
        raise ValueError(f"array of shape {array.shape} has no pixels")
    return to_rgb(Image.fromarray(_to_uint8(array)))


def _to_uint8(array: NDArray[Any]) -> NDArray[np.uint8]:
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255)
    if array.dtype == np.uint16:
        upper: NDArray[np.uint8] = (array >> 8).astype(np.uint8)  # as decoders do with 16-bit colour
        return upper
    if np.issubdtype(array.dtype, np.floating):
        if not np.isfinite(array).all():
            raise ValueError("float pixels that are not finite")
        if array.min() < 0 or array.max() > 1:
            raise ValueError(f"float pixels in {array.min():.4g}..{array.max():.4g}, expected 0..1")
        scaled: NDArray[np.uint8] = np.rint(array * 255).astype(np.uint8)
        return scaled
    raise ValueError(f"pixels of type {array.dtype}, expected bool, uint8, uint16 or float")


def _native_uint16(image: Image.Image) -> NDArray[np.uint16]:
    return np.asarray(image).astype(np.uint16)


def _narrow_int32(array: NDArray[np.int32]) -> NDArray[np.uint16] | NDArray[np.uint8]:
    """PIL's 32-bit mode mostly holds 16-bit files; where no value exceeds 255 it holds 8-bit ones."""
    low, high = int(array.min()), int(array.max())
    if low < 0 or high > 65535:
        raise ValueError(f"32-bit pixels in {low}..{high}, expected 0..65535")
    return array.astype(np.uint8) if high <= 255 else array.astype(np.uint16)
