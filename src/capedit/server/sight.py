"""Images as an editor has seen them, kept for the next caption."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capedit.editing import Editor
from capedit.models.runtime import Seen
from capedit.vision import ImageSource, VisualTokens, load_image
from capedit.vision.encoder import Encoder
from capedit.vision.square import SquareEncoder


@dataclass(frozen=True)
class Sight:
    """One image: its visual tokens, and what the model makes of them."""

    tokens: VisualTokens
    seen: Seen
    """Of a single row."""
    width: int
    height: int


class SightMemory:
    """The images seen last, by the hash of their bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[str, Sight] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: str) -> Sight | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: str, sight: Sight) -> None:
        self._kept[key] = sight
        self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)


def image_key(data: bytes) -> str:
    return sha256(data).hexdigest()


def look(editor: Editor, images: Sequence[bytes], max_pixels: int) -> list[Sight | Exception]:
    """See many images at once; one that cannot be read spoils no other."""
    found: list[Sight | Exception] = []
    readable: list[int] = []
    prepared: list[ImageSource] = []
    sizes: list[tuple[int, int]] = []
    for at, data in enumerate(images):
        try:
            image = load_image(data, max_pixels=max_pixels, name="image")
        except Exception as error:  # noqa: BLE001 (its own caller gets it)
            found.append(error)
            continue
        found.append(RuntimeError("not yet seen"))
        readable.append(at)
        sizes.append(image.size)
        prepared.append(_shrunk(editor.encoder, image))
    if readable:
        tokens = editor.encoder.encode(prepared)
        seen = editor.see(tokens)
        for row, at in enumerate(readable):
            found[at] = Sight(tokens[row], seen.rows(np.array([row])), *sizes[row])
    return found


def together(sights: Sequence[Sight]) -> Seen:
    """Single rows as one batch; images with fewer visual tokens are padded."""
    seen = [sight.seen for sight in sights]
    return Seen(
        _stacked([one.views for one in seen], -2),
        _stacked([one.mask for one in seen], 1),
        _stacked([one.concepts for one in seen], 1),
        _stacked([one.cells for one in seen], 1),
    )


def _stacked(parts: Sequence[NDArray[Any]], axis: int) -> NDArray[Any]:
    """One array of all parts, each made as long along `axis` as the longest."""
    length = max(part.shape[axis] for part in parts)
    return np.concatenate([_padded(part, axis, length) for part in parts])


def _padded(part: NDArray[Any], axis: int, length: int) -> NDArray[Any]:
    missing = length - part.shape[axis]
    if not missing:
        return part
    widths = [(0, 0)] * part.ndim
    widths[axis] = (0, missing)
    return np.pad(part, widths)


def _shrunk(encoder: Encoder, image: ImageSource) -> ImageSource:
    """What the network sees of an image, so that no batch of large pictures is ever held in memory."""
    return encoder.prepare(image) if isinstance(encoder, SquareEncoder) else image
