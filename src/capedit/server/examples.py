"""Pictures to try: our own drawings, or the first of a dataset of the user's."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from capedit.data import Image, ImageFile, open_dataset

DRAWN = Path(__file__).parent / "pictures"
MOST = 12
_MEDIA_TYPES = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG": "image/png",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


@dataclass(frozen=True)
class Example:
    """A picture and a caption that does not quite fit."""

    title: str
    caption: str
    image: Image

    def read(self) -> tuple[bytes, str]:
        """The file, and its media type."""
        data = self.image.read()
        return data, media_type_of(data)


Examples = list[Example]


def drawn_examples() -> Examples:
    """Those that come with the package."""
    listed = json.loads((DRAWN / "examples.json").read_text(encoding="utf-8"))
    return [
        Example(entry["title"], entry["caption"], ImageFile(DRAWN / entry["file"], entry["file"])) for entry in listed
    ]


def examples_from(dataset: Path) -> Examples:
    """The first captions, of as many images, in a dataset of any format."""
    found: dict[str, Example] = {}
    with_image: Iterable[Example] = (
        Example(instance.image.name or str(instance.id), instance.reference, instance.image)
        for instance in open_dataset(dataset)
        if instance.image is not None
    )
    for example in islice(with_image, 20 * MOST):
        found.setdefault(example.title, example)
        if len(found) == MOST:
            break
    return list(found.values())


def media_type_of(data: bytes) -> str:
    """By the first bytes; a browser is told never to guess."""
    return next((kind for start, kind in _MEDIA_TYPES.items() if data.startswith(start)), "application/octet-stream")
