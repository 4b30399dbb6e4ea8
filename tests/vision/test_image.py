import io
import random
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from capedit.vision.image import ImageError, load_image

GRADIENT = np.linspace(0, 255, 48 * 64 * 3).astype(np.uint8).reshape(48, 64, 3)
PICTURE = Image.fromarray(GRADIENT)
ORIENTATION = 0x0112


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def pixel(image: Image.Image, x: int, y: int) -> tuple[int, ...]:
    value = image.getpixel((x, y))
    assert isinstance(value, tuple)
    return value


def near(image: Image.Image, expected: np.ndarray, tolerance: int) -> bool:
    return bool(np.abs(np.asarray(image).astype(int) - expected.astype(int)).max() <= tolerance)


def test_every_kind_of_source_gives_the_same_picture(tmp_path: Path) -> None:
    data = encoded(PICTURE, "PNG")
    path = tmp_path / "picture.png"
    path.write_bytes(data)
    for source in (path, str(path), data, PICTURE, GRADIENT):
        image = load_image(source)
        assert image.mode == "RGB"
        assert np.array_equal(np.asarray(image), GRADIENT)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM", "TGA", "JPEG2000"])
def test_formats(kind: str) -> None:
    image = load_image(encoded(PICTURE, kind))
    assert (image.mode, image.size) == ("RGB", (64, 48))
    assert near(image, GRADIENT, 40)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_exif_orientation(kind: str, orientation: int) -> None:
    """Store a picture the way a camera held that way would, and get the upright one back."""
    upright = Image.new("RGB", (32, 16), "black")
    upright.paste((255, 255, 255), (0, 0, 16, 8))  # the upper left quarter is white
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    held = upright.transpose(undo[orientation]) if orientation in undo else upright
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    image = load_image(encoded(held, kind, exif=exif))
    assert image.size == (32, 16)
    assert [pixel(image, x, y)[0] > 128 for x, y in ((4, 4), (28, 4), (4, 12), (28, 12))] == [True, False, False, False]


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
def test_damaged_exif_does_not_cost_the_picture() -> None:
    data = encoded(PICTURE, "JPEG", exif=b"Exif\x00\x00II*\x00\xff\xff\xff\xff garbage")
    assert load_image(data).size == (64, 48)


def test_grey_and_bilevel() -> None:
    grey = load_image(encoded(PICTURE.convert("L"), "PNG"))
    assert pixel(grey, 63, 47)[0] == pixel(grey, 63, 47)[2] > 250
    stripes = Image.new("1", (10, 10))
    stripes.paste(1, (0, 0, 10, 5))
    bilevel = load_image(encoded(stripes, "PNG"))
    assert (pixel(bilevel, 3, 2), pixel(bilevel, 3, 8)) == ((255, 255, 255), (0, 0, 0))


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
def test_cmyk(kind: str) -> None:
    ink = Image.new("CMYK", (16, 16), (0, 255, 255, 0))  # magenta and yellow make red
    red, green, blue = pixel(load_image(encoded(ink, kind)), 8, 8)
    assert red > 240
    assert max(green, blue) < 15


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_alpha_is_laid_on_white(mode: str) -> None:
    image = Image.new(mode, (10, 10), (0, 0) if mode == "LA" else (0, 0, 0, 0))
    image.paste((0, 255) if mode == "LA" else (0, 0, 0, 255), (0, 0, 5, 10))
    image.paste((0, 128) if mode == "LA" else (0, 0, 0, 128), (0, 0, 2, 10))
    loaded = load_image(encoded(image, "PNG"))
    assert [pixel(loaded, x, 5)[0] for x in (1, 4, 9)] == [127, 0, 255]


def test_palette_with_a_transparent_colour() -> None:
    image = Image.new("P", (10, 10), 1)
    image.putpalette([0, 0, 0, 200, 10, 10, 10, 200, 10])
    image.paste(2, (0, 0, 5, 10))
    loaded = load_image(encoded(image, "PNG", transparency=1))
    assert (pixel(loaded, 2, 5), pixel(loaded, 8, 5)) == ((10, 200, 10), (255, 255, 255))


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_of_an_animation_the_first_frame(kind: str) -> None:
    frames = [Image.new("RGB", (20, 20), colour) for colour in ("red", "blue", "green")]
    extra = {"lossless": True} if kind == "WEBP" else {}
    red, _, blue = pixel(load_image(encoded(frames[0], kind, save_all=True, append_images=frames[1:], **extra)), 9, 9)
    assert red > 240
    assert blue < 15


def png_chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width: int, height: int, depth: int, colour: int, rows: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    body = png_chunk(b"IHDR", header) + png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def test_sixteen_bits_keep_their_upper_eight() -> None:
    values = [0, 255, 256, 0x1234, 0x8000, 0xFFFF]
    grey = load_image(png(6, 1, 16, 0, b"\x00" + struct.pack(">6H", *values)))
    assert [pixel(grey, x, 0) for x in range(6)] == [(v >> 8,) * 3 for v in values]
    colour = load_image(png(2, 1, 16, 2, b"\x00" + struct.pack(">6H", *values)))
    assert [pixel(colour, x, 0) for x in range(2)] == [(0, 0, 1), (0x12, 0x80, 0xFF)]
    tiff = load_image(encoded(Image.fromarray(np.array([values], dtype=np.uint16)), "TIFF"))
    assert [pixel(tiff, x, 0)[0] for x in range(6)] == [v >> 8 for v in values]


@pytest.mark.parametrize(
    ("array", "first"),
    [
        (np.full((4, 5), 200, np.uint8), 200),
        (np.full((4, 5, 1), 200, np.uint8), 200),
        (np.full((4, 5, 4), 200, np.uint8), 255 - 200 * 55 // 255),
        (np.full((4, 5, 3), 0xC800, np.uint16), 200),
        (np.full((4, 5, 3), 0.5), 128),
        (np.ones((4, 5), np.bool_), 255),
        (np.full((4, 10), 200, np.uint8)[:, ::2], 200),
    ],
)
def test_arrays(array: np.ndarray, first: int) -> None:
    image = load_image(array)
    assert image.size == (5, 4)
    assert abs(pixel(image, 0, 0)[0] - first) <= 1


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros((4, 5, 2), np.uint8), "shape"),
        (np.zeros((4,), np.uint8), "no pixels"),
        (np.zeros((0, 5, 3), np.uint8), "no pixels"),
        (np.full((4, 5), 7.0), "expected 0..1"),
        (np.full((4, 5), np.nan), "not finite"),
        (np.zeros((4, 5), np.complex64), "complex64"),
    ],
)
def test_arrays_without_a_meaning_are_refused(array: np.ndarray, reason: str) -> None:
    with pytest.raises(ImageError, match=reason):
        load_image(array)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "BMP", "TIFF", "PPM", "WEBP"])
def test_truncated_files_are_refused(kind: str, tmp_path: Path) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8))
    data = encoded(noise, kind)
    path = tmp_path / "half.img"
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ImageError, match=r"half\.img: .+") as caught:
        load_image(path)
    assert caught.value.source == str(path)
    if kind not in ("WEBP", "TIFF"):
        assert "truncated" in caught.value.reason


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"", "is empty"), (b"<html></html>", "known format"), (b"\xff\xd8\xff\xe0", "before its first scan")],
)
def test_what_is_no_image(data: bytes, reason: str) -> None:
    with pytest.raises(ImageError, match=reason):
        load_image(data)


def test_files_that_are_none(tmp_path: Path) -> None:
    for source, reason in (
        (tmp_path, "is a folder"),
        (tmp_path / "none.jpg", "No such file"),
        ("/dev/zero", "regular"),
    ):
        with pytest.raises(ImageError, match=reason):
            load_image(source)
    large = tmp_path / "large.png"
    large.write_bytes(encoded(PICTURE, "PNG"))
    with pytest.raises(ImageError, match="limit 100"):
        load_image(large, max_bytes=100)


def test_postscript_is_not_handed_to_an_outside_program() -> None:
    with pytest.raises(ImageError, match="known format"):
        load_image(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n")


def test_a_bomb_is_refused_by_its_header() -> None:
    """20 GB of black in 20 kB: refused without decoding; Pillow's own limit is never what saves us."""
    rows = zlib.compress(b"\x00" * 2**20)
    header = struct.pack(">IIBBBBB", 80_000, 80_000, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", rows)
    with pytest.raises(ImageError):
        load_image(data)
    with pytest.raises(ImageError, match=r"9,000 x 9,000 pixels, limit 64,000,000"):
        load_image(png(9000, 9000, 1, 0, b""))
    with pytest.raises(ImageError, match=r"64 x 48 pixels, limit 1,000"):
        load_image(PICTURE, max_pixels=1000)
    with pytest.raises(ImageError, match=r"64 x 48 pixels, limit 1,000"):
        load_image(GRADIENT, max_pixels=1000)


@pytest.mark.parametrize(("limit", "size"), [(640 * 480, (640, 480)), (100_000, (320, 240)), (5_000, (80, 60))])
def test_a_jpeg_beyond_the_limit_is_decoded_smaller(limit: int, size: tuple[int, int]) -> None:
    large = PICTURE.resize((640, 480), Image.Resampling.BICUBIC)
    image = load_image(encoded(large, "JPEG", quality=95), max_pixels=limit)
    assert image.size == size
    assert near(image, np.asarray(large.resize(size, Image.Resampling.BOX)), 24)


def test_a_jpeg_that_cannot_be_decoded_smaller_is_refused() -> None:
    large = PICTURE.resize((640, 480))
    with pytest.raises(ImageError, match="640 x 480 pixels, limit 4,000"):
        load_image(encoded(large, "JPEG"), max_pixels=4_000)
    with pytest.raises(ImageError, match="progressive"):
        load_image(encoded(large, "JPEG", progressive=True), max_pixels=100_000)
    assert load_image(encoded(large, "JPEG", progressive=True)).size == (640, 480)


def test_a_jpeg_that_claims_the_largest_size_is_refused_unread() -> None:
    data = bytearray(encoded(PICTURE, "JPEG", progressive=True))
    frame = data.index(b"\xff\xc2")
    data[frame + 5 : frame + 9] = struct.pack(">HH", 65_000, 65_000)
    with pytest.raises(ImageError, match="65,000 x 65,000"):
        load_image(bytes(data))


def test_a_jpeg_of_countless_scans_is_refused() -> None:
    data = encoded(PICTURE, "JPEG", progressive=True)
    scan = data.index(b"\xff\xda")
    with pytest.raises(ImageError, match="scans"):
        load_image(data[:-2] + data[scan : scan + 30] * 600 + data[-2:])


def test_addresses_are_fetched_only_when_asked() -> None:
    with pytest.raises(ImageError, match="allow_url"):
        load_image("http://127.0.0.1:9/picture.jpg")
    with pytest.raises(ImageError, match="download failed"):
        load_image("http://127.0.0.1:9/picture.jpg", allow_url=True)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::PIL.Image.DecompressionBombWarning")
def test_damaged_files_never_escape_as_other_errors() -> None:
    chance = random.Random(0)
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    files = [encoded(PICTURE, kind, exif=exif) for kind in ("JPEG", "PNG", "TIFF", "WEBP")]
    files += [encoded(PICTURE, kind) for kind in ("GIF", "BMP", "PPM", "TGA", "JPEG2000", "ICO")]
    refused = 0
    for _ in range(1500):
        data = bytearray(chance.choice(files))
        for _ in range(chance.choice((1, 3, 10))):
            data[chance.randrange(min(len(data), chance.choice((60, 10_000))))] = chance.randrange(256)
        try:
            assert load_image(bytes(data[: chance.choice((len(data), len(data) // 2))])).mode == "RGB"
        except ImageError:
            refused += 1
    assert 100 < refused < 1500
