"""Real photographs, those inside scikit-image's wheel."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from capedit.vision.grid import GridEncoder
from capedit.vision.image import load_image
from capedit.vision.registry import encoder_path

FOLDER = Path(str(files("skimage"))) / "data"
PHOTOGRAPHS = {
    "astronaut.png": (512, 512),
    "chelsea.png": (451, 300),
    "coffee.png": (600, 400),
    "rocket.jpg": (640, 427),
    "camera.png": (512, 512),  # grey
    "hubble_deep_field.jpg": (1000, 872),
    "color.png": (371, 370),
    "no_time_for_that_tiny.gif": (14, 25),  # animated
    "multipage.tif": (10, 15),  # of floats and of several pages
}


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_loading(name: str) -> None:
    image = load_image(FOLDER / name)
    assert image.mode == "RGB"
    assert image.size == PHOTOGRAPHS[name]


@pytest.mark.parametrize("which", ["tiny", "bundled"])
def test_tokens_do_not_depend_on_batch_or_file_format(which: str, encoder: GridEncoder, tmp_path: Path) -> None:
    encoder = encoder if which == "tiny" else GridEncoder(encoder_path(), threads=1)
    paths = [FOLDER / name for name in ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg", "camera.png")]
    batch = encoder.encode(paths)
    for path, tokens in zip(paths, batch, strict=True):
        copy = tmp_path / f"{path.stem}.png"
        load_image(path).save(copy)
        for source in (path, copy, np.asarray(load_image(path))):
            (other,) = encoder.encode([source])
            np.testing.assert_array_equal(tokens.features, other.features)


def test_a_photograph_on_its_side_is_set_upright(encoder: GridEncoder, tmp_path: Path) -> None:
    upright = load_image(FOLDER / "chelsea.png")
    exif = Image.Exif()
    exif[0x0112] = 6
    upright.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "held.png", exif=exif)
    held, straight = encoder.encode([tmp_path / "held.png", upright])
    np.testing.assert_array_equal(held.features, straight.features)
