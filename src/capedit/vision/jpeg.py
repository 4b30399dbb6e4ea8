"""What a JPEG's header tells about the cost of decoding it, read without decoding anything."""

from __future__ import annotations

from dataclasses import dataclass

SIGNATURE = b"\xff\xd8\xff"

_START_OF_SCAN = 0xDA
_END_OF_IMAGE = 0xD9
_PROGRESSIVE_FRAMES = frozenset({0xC2, 0xC6, 0xCA, 0xCE})
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_STANDALONE = frozenset({0x01, *range(0xD0, 0xD8)})


@dataclass(frozen=True, slots=True)
class JpegHeader:
    """Size and coding of the main image of a JPEG file."""

    width: int
    height: int
    multi_scan: bool
    """Progressive, or one colour after another: the decoder must then hold every coefficient in memory, at full
    size even when asked for a smaller picture."""
    scans: int
    """Upper bound: start-of-scan markers in the file. Data bytes cannot imitate one; embedded thumbnails can."""


def read_header(data: bytes) -> JpegHeader | None:
    """Walk the segments up to the first scan; None where the file ends or breaks before it."""
    position, size = 2, len(data)
    frame: tuple[int, int, int, bool] | None = None
    while position + 4 <= size:
        if data[position] != 0xFF:
            return None
        marker = data[position + 1]
        if marker == 0xFF:  # fill byte
            position += 1
            continue
        if marker in _STANDALONE:
            position += 2
            continue
        if marker == _END_OF_IMAGE:
            return None
        length = int.from_bytes(data[position + 2 : position + 4], "big")
        if marker in _FRAMES and position + 10 <= size:
            height = int.from_bytes(data[position + 5 : position + 7], "big")
            width = int.from_bytes(data[position + 7 : position + 9], "big")
            frame = (width, height, data[position + 9], marker in _PROGRESSIVE_FRAMES)
        elif marker == _START_OF_SCAN:
            if frame is None or position + 5 > size:
                return None
            width, height, components, progressive = frame
            multi_scan = progressive or data[position + 4] < components
            return JpegHeader(width, height, multi_scan, data.count(bytes((0xFF, _START_OF_SCAN))))
        position += 2 + length
    return None
