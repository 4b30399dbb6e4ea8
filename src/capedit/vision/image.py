"""Open any image, safely: whatever comes in, an upright 8-bit RGB picture goes out, or an `ImageError` says why not.

Memory is bounded before anything is decoded: the header gives the size, and only what fits the limit goes on. A
JPEG beyond the limit is decoded at a half, a quarter or an eighth of its size where the decoder can do that
without holding the whole picture.
"""

from __future__ import annotations

import io
import struct
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, JpegImagePlugin, UnidentifiedImageError

from capedit.errors import CapeditError
from capedit.vision import jpeg
from capedit.vision.rgb import array_to_rgb, to_rgb

ImageSource: TypeAlias = str | Path | bytes | Image.Image | NDArray[Any]

MAX_PIXELS = 64_000_000
"""Decoded, 256 MB: above any phone's ordinary photographs."""
MAX_FILE_BYTES = 256 * 2**20
MAX_JPEG_SCANS = 500
"""Progressive files have about ten scans; a hostile one can make the decoder cross the picture thousands of times."""
URL_TIMEOUT = 20.0
"""Seconds for the whole download."""

IMAGE_SUFFIXES = frozenset(
    (".avif", ".bmp", ".gif", ".jfif", ".jp2", ".jpe", ".jpeg", ".jpg", ".png", ".tga", ".tif", ".tiff", ".webp")
)

# EPS and other formats that start an outside program are left out on purpose.
_FORMATS = ("JPEG", "MPO", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM", "JPEG2000", "AVIF", "TGA", "ICO")

# Everything decoders have been seen to raise on damaged files. Warnings are here for those who run with -W error.
_DECODER_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    EOFError,
    RuntimeError,
    AttributeError,
    MemoryError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
    Warning,
)

_ORIENTATION_TAG = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class ImageError(CapeditError):
    """An image that cannot be used: which one, and the reason."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(source, reason)
        self.source = source
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"


def load_image(
    source: ImageSource,
    *,
    max_pixels: int = MAX_PIXELS,
    max_bytes: int = MAX_FILE_BYTES,
    allow_url: bool = False,
    name: str | None = None,
) -> Image.Image:
    """Load an image as upright RGB; `name` is what errors call it, by default the path, address or kind of source.

    Alpha is laid on white, of an animation the first frame is taken, 16-bit pixels keep their upper eight bits.
    """
    if isinstance(source, Image.Image):
        return _finish(source, name or "PIL image", max_pixels)
    if isinstance(source, np.ndarray):
        name = name or "array"
        _check_size(name, source.shape[1] if source.ndim > 1 else 0, len(source) if source.ndim else 0, max_pixels)
        try:
            return array_to_rgb(source)
        except ValueError as error:
            raise ImageError(name, str(error)) from error
    if isinstance(source, bytes):
        return _decode(source, name or f"{len(source)} bytes", max_pixels, max_bytes)
    name = name or str(source)
    if isinstance(source, str) and urllib.parse.urlsplit(source).scheme in ("http", "https"):
        if not allow_url:
            raise ImageError(name, "addresses are only fetched when asked for (allow_url=True)")
        data = _download(source, name, max_bytes)
    else:
        data = _read_file(Path(source), name, max_bytes)
    return _decode(data, name, max_pixels, max_bytes)


def _read_file(path: Path, name: str, max_bytes: int) -> bytes:
    try:
        if path.is_dir():
            raise ImageError(name, "is a folder")
        if path.exists() and not path.is_file():
            raise ImageError(name, "is not a regular file")
        if path.stat().st_size > max_bytes:
            raise ImageError(name, f"file of {path.stat().st_size:,} bytes, limit {max_bytes:,}")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, ImageError):
            raise
        raise ImageError(name, f"cannot be read ({getattr(error, 'strerror', None) or error})") from error


def _download(address: str, name: str, max_bytes: int) -> bytes:
    deadline = time.monotonic() + URL_TIMEOUT
    parts = []
    length = 0
    request = urllib.request.Request(address, headers={"User-Agent": "capedit"})
    try:
        with urllib.request.urlopen(request, timeout=URL_TIMEOUT) as response:
            while part := response.read1(2**16):
                parts.append(part)
                length += len(part)
                if length > max_bytes:
                    raise ImageError(name, f"download beyond {max_bytes:,} bytes")
                if time.monotonic() > deadline:
                    raise ImageError(name, f"download took longer than {URL_TIMEOUT:g} s")
    except (OSError, ValueError) as error:
        if isinstance(error, ImageError):
            raise
        raise ImageError(name, f"download failed ({getattr(error, 'reason', None) or error})") from error
    return b"".join(parts)


def _decode(data: bytes, name: str, max_pixels: int, max_bytes: int) -> Image.Image:
    if not data:
        raise ImageError(name, "is empty")
    if len(data) > max_bytes:
        raise ImageError(name, f"{len(data):,} bytes, limit {max_bytes:,}")
    try:
        image = _open_jpeg(data, name, max_pixels) if data.startswith(jpeg.SIGNATURE) else _open(data)
    except UnidentifiedImageError as error:
        raise ImageError(name, "is not an image of a known format, or its header is damaged") from error
    except ImageError:
        raise
    except _DECODER_ERRORS as error:
        raise ImageError(name, _damage(error, "header is damaged")) from error
    with image:
        return _finish(image, name, max_pixels)


def _open(data: bytes) -> Image.Image:
    Image.init()
    return Image.open(io.BytesIO(data), formats=[format for format in _FORMATS if format in Image.OPEN])


def _open_jpeg(data: bytes, name: str, max_pixels: int) -> Image.Image:
    """Open a JPEG, set to be decoded at a reduced size if it is beyond the limit."""
    header = jpeg.read_header(data)
    if header is None:
        raise ImageError(name, "is truncated or damaged before its first scan")
    if header.scans > MAX_JPEG_SCANS:
        raise ImageError(name, f"JPEG of {header.scans} scans, limit {MAX_JPEG_SCANS}")
    # Not Image.open: that refuses by full size, before the reduced size can be asked for.
    image = JpegImagePlugin.JpegImageFile(io.BytesIO(data))
    width, height = image.size
    if width * height > max_pixels:
        if header.multi_scan:
            raise ImageError(
                name,
                f"{_size_words(width, height, max_pixels)}, and a progressive JPEG cannot be decoded smaller "
                "within bounded memory",
            )
        for divisor in (2, 4, 8):
            if -(-width // divisor) * -(-height // divisor) <= max_pixels:
                image.draft(None, (width // divisor, height // divisor))
                break
    return image


def _finish(image: Image.Image, name: str, max_pixels: int) -> Image.Image:
    """Decode, turn upright, convert; the size is checked before and, for formats whose frames may grow, after."""
    _check_size(name, *image.size, max_pixels)
    try:
        image.load()
        _check_size(name, *image.size, max_pixels)
        turn = _UPRIGHT.get(_orientation(image))
        rgb = to_rgb(image)
        return rgb.transpose(turn) if turn is not None else rgb
    except ImageError:
        raise
    except _DECODER_ERRORS as error:
        raise ImageError(name, _damage(error, "cannot be decoded")) from error


def _orientation(image: Image.Image) -> int:
    """The EXIF orientation; a picture with damaged EXIF data is still a picture."""
    try:
        value = image.getexif().get(_ORIENTATION_TAG, 1)
        return int(value)
    except _DECODER_ERRORS:
        return 1


def _check_size(name: str, width: int, height: int, max_pixels: int) -> None:
    if width < 1 or height < 1:
        raise ImageError(name, f"has no pixels ({width} x {height})")
    if width * height > max_pixels:
        raise ImageError(name, _size_words(width, height, max_pixels))


def _size_words(width: int, height: int, max_pixels: int) -> str:
    return f"{width:,} x {height:,} pixels, limit {max_pixels:,} in all"


def _damage(error: BaseException, otherwise: str) -> str:
    """The decoder's complaint as a reason, said to be truncation where it is."""
    words = str(error) or type(error).__name__
    truncated = "truncated" in words or isinstance(error, EOFError)
    return f"{'is truncated' if truncated else otherwise} ({words})"
