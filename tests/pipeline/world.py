"""A small world to run in: a model that has learned nothing but is real in every part, photographs, captions."""

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import torch
from PIL import Image as Pillow

from capedit.data import ImageBytes, ImageFile, Instance, write_dataset
from capedit.models.decoding import Knobs
from capedit.models.efficientnet import EfficientNetLite, LiteConfig, Stage
from capedit.models.efficientnet_onnx import export_onnx
from capedit.pipeline import Treatment
from capedit.vision import load_encoder
from tests.editing.tiny import DIM, write_tiny_model

SIGHT = LiteConfig(
    name="sight",
    resolution=32,
    stages=(Stage(kernel=3, stride=2, expansion=1, width=8, repeats=1),),
    stem_width=8,
    dim=DIM,
)
WORDS = "a the dog cat man woman is on in with of sofa table grass red blue running sitting and two near".split()
PHOTOGRAPHS = Path(str(files("skimage"))) / "data"
LAYOUTS = [
    ("captions.json", "ee"),
    ("captions.jsonl", None),
    ("captions.jsonl.gz", None),
    ("coco.json", "coco"),
    ("captions.csv", None),
    ("captions.tsv", None),
    ("captions.parquet", None),
    ("inside.parquet", None),
    ("shard.tar", None),
    ("shards", "webdataset"),
    ("tables", "parquet"),
    ("arrow", "huggingface"),
    ("folder", "sidecar"),
]
"""Every format, in every shape: one file and many, images beside and inside."""


def make_treatment(folder: Path) -> Treatment:
    """A model folder and an encoder file, and how to use them."""
    torch.manual_seed(1)
    encoder = folder / "sight.onnx"
    export_onnx(EfficientNetLite(SIGHT).eval(), encoder, name="sight")
    # Without these biases a network that has learned nothing deletes nearly everything, and the guards step in.
    model = write_tiny_model(folder / "model", knobs=Knobs(rounds=1, keep_bias=16, stop_bias=11))
    described = json.loads((model / "model.json").read_text())
    described["encoder"] = load_encoder(str(encoder)).hash
    (model / "model.json").write_text(json.dumps(described))
    return Treatment(model=str(model), encoder=str(encoder))


def photos(folder: Path, count: int) -> list[ImageFile]:
    """Small pieces of real photographs."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = [np.asarray(Pillow.open(PHOTOGRAPHS / name)) for name in ("astronaut.png", "coffee.png", "chelsea.png")]
    found = []
    for number, source in zip(range(count), cycle(sources), strict=False):
        row, column = (37 * number) % (source.shape[0] - 64), (61 * number) % (source.shape[1] - 64)
        file = folder / f"photo{number:04d}.{'png' if number % 5 == 0 else 'jpg'}"
        Pillow.fromarray(source[row : row + 48, column : column + 64]).save(file)
        found.append(ImageFile(file, f"{folder.name}/{file.name}"))
    return found


def texts() -> Iterator[str]:
    """Captions in which no two are alike for long."""
    state = np.random.default_rng(7)
    while True:
        words = [WORDS[at] for at in state.integers(0, len(WORDS), state.integers(3, 11))]
        text = " ".join(words)
        yield text.capitalize() + "." if state.random() < 0.3 else text


def instances(folder: Path, count: int, *, captions_per_image: int = 2, scattered: bool = False) -> list[Instance]:
    """Captions of photographs in `folder`; the captions of an image follow one another, or are scattered."""
    images = photos(folder / "photos", -(-count // captions_per_image))
    order = [at % len(images) if scattered else at // captions_per_image for at in range(count)]
    return [
        Instance(
            id=1000 + at,
            reference=text,
            image_id=f"i{image}",
            image=images[image],
            extra={"source": "machine" if at % 3 else "human", "note": "é\u00a0\U0001f355"},
        )
        for at, (image, text) in enumerate(zip(order, islice(texts(), count), strict=True))
    ]


def write_world(folder: Path, name: str, format: str | None, count: int, *, scattered: bool = False) -> Path:
    """A dataset of a layout of `LAYOUTS`."""
    folder.mkdir(parents=True, exist_ok=True)
    made = instances(folder, count, scattered=scattered)
    if name in ("inside.parquet", "tables"):
        made = [replace(one, image=_inside(one)) for one in made]
    write_dataset(made, folder / name, format, shard_size=max(1, count // 3))
    return folder / name


def _inside(instance: Instance) -> ImageBytes:
    assert instance.image is not None
    return ImageBytes(instance.image.read(), instance.image.name)


def damaged_jpeg() -> bytes:
    buffer = io.BytesIO()
    Pillow.new("RGB", (64, 64), (200, 10, 10)).save(buffer, "JPEG")
    return buffer.getvalue()[:200]
