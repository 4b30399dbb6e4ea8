"""Instances that are hard to keep, real small images, and ways to compare what came back."""

import io
import json
from pathlib import Path
from typing import Any

from PIL import Image as Pillow

from capedit.data import ImageFile, Instance

# Name, file (or folder) to write, and the format where the suffix does not tell it.
LAYOUTS: list[tuple[str, str | None]] = [
    ("captions.json", "ee"),
    ("captions.jsonl", None),
    ("captions.jsonl.gz", None),
    ("coco.json", "coco"),
    ("captions.csv", None),
    ("captions.tsv", None),
    ("captions.parquet", None),
    ("shard.tar", None),
    ("shards", "webdataset"),
    ("arrow", "huggingface"),
    ("folder", "sidecar"),
]
LAYOUT_IDS = [f"{format or 'by_suffix'}-{name}" for name, format in LAYOUTS]
ONE_EACH = [layout for layout in LAYOUTS if layout[0] not in ("captions.jsonl.gz", "captions.tsv", "shards")]
JSON_FILES = ("captions.json", "captions.jsonl", "captions.jsonl.gz", "coco.json")


def photo(colour: tuple[int, int, int], kind: str = "JPEG") -> bytes:
    buffer = io.BytesIO()
    Pillow.new("RGB", (8, 6), colour).save(buffer, kind)
    return buffer.getvalue()


def photos(folder: Path) -> list[ImageFile]:
    folder.mkdir(parents=True, exist_ok=True)
    images = []
    for number, (kind, suffix) in enumerate([("JPEG", ".jpg"), ("PNG", ".png"), ("WEBP", ".webp")]):
        file = folder / f"photo {number}{suffix}"
        file.write_bytes(photo((40 * number, 90, 200 - 30 * number), kind))
        images.append(ImageFile(file, f"{folder.name}/{file.name}"))
    return images


CAPTIONS = {
    "plain": "a man riding a wave on top of a surfboard",
    "unicode": "Ein Mann isst Käse in Genève — “naïve” 北京 Ωmega e\u0301 \u00a0 \u2028 \x85 end",
    "emoji": "👩‍👩‍👧 eating 🍕 near 🇨🇭",
    "right_to_left": "רוכב על סוס \u202bعربي\u202c mixed",
    "empty": "",
    "blank": "   ",
    "punctuation": "?!... -- ,, ''",
    "long": "word " * 9_999 + "word",
    "line_breaks": "first line\nsecond\r\nthird\rfourth\n",
    "tabs_and_quotes": "\ttab \"double\" 'single' back\\slash, semi; pipe| `",
    "nul_and_controls": "a\x00b\x01c\x1fd\x7f",
    "spaces": "  keep   my  spaces ",
    "surrogate": "half an emoji \ud83d here",
    "byte_order_mark": "\ufefffirst",
    "looks_like_json": '{"caption": [1, 2]}',
    "looks_like_number": "007",
    "looks_like_null": "null",
    "capital": "A Man, In A Hat.",
}

EXTRAS: list[dict[str, Any]] = [
    {"source": "human", "score": 0.1, "width": 640},
    {"nested": {"b": [1, 2.5, None, {"z": [], "a": {}}], "a": "text"}, "flag": True},
    {"big": 2**70, "small": -(2**63), "tiny": 5e-324, "minus": -0.0},
    {"nothing": None, "empty text": "", "empty list": [], "empty object": {}},
    {"mixed": 1},
    {"mixed": "1"},
    {"mixed": [1]},
    {"mixed": None},
    {"one": 1, "one as float": 1.0, "one as truth": True},
    {"Ünïcode näme 🍕": "ja", "quote\"and'name": "x,y;z|\t"},
    {},
]


def nasty_instances(folder: Path) -> list[Instance]:
    """One instance for every hard caption, with images, targets, tokens and extra fields of all kinds."""
    images = photos(folder)
    instances = []
    for number, (name, caption) in enumerate(CAPTIONS.items()):
        image = [*images, None][number % 4]
        spare_ids: list[str | int | None] = [7, "img one", None]
        instances.append(
            Instance(
                id=name if number % 2 else number,
                reference=caption,
                target=[None, "a target", "", "Ω\n2"][number // 2 % 4],
                image_id=spare_ids[number % 3] if image is None else f"i{number % 4}",
                image=image,
                prediction="a guess" if number % 5 == 0 else None,
                given_reference_tokens=("tokens", "as", "found", "''") if number % 3 else ("a",),
                given_target_tokens=("t",) if [None, "a target", "", "Ω\n2"][number // 2 % 4] is not None else None,
                extra=EXTRAS[number % len(EXTRAS)],
            )
        )
    return instances


def facts(instance: Instance, *, ordered: bool = True) -> tuple[Any, ...]:
    """All that must survive; `ordered` also the order of the extra fields, which tables have but once."""
    return (
        instance.id,
        type(instance.id),
        instance.image_id,
        instance.reference,
        instance.target,
        instance.prediction,
        instance.reference_tokens,
        instance.target_tokens,
        json.dumps(instance.extra, sort_keys=not ordered),
        instance.image.read() if instance.image else None,
    )
