"""The captions of many images, tokenised and side by side, so that an image or a caption is a number."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from capedit.data.builders.split import read_json_list
from capedit.data.errors import DataError
from capedit.edits.tokens import tokenize

Tokens = tuple[str, ...]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class CaptionTable:
    """Images in the order of their ids; the captions of image i are `captions[first[i]:first[i + 1]]`."""

    image_ids: IntArray  # (images,)
    captions: Sequence[Tokens]
    first: IntArray  # (images + 1,)

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[int, Tokens]]) -> "CaptionTable":
        """A table of (image id, caption); an image's captions keep their order, empty ones are left out."""
        captions: dict[int, list[Tokens]] = {}
        for image_id, caption in pairs:
            if caption:
                captions.setdefault(image_id, []).append(caption)
        ids = sorted(captions)
        return cls(
            image_ids=np.array(ids, np.int64),
            captions=[caption for image_id in ids for caption in captions[image_id]],
            first=np.cumsum([0, *(len(captions[image_id]) for image_id in ids)], dtype=np.int64),
        )

    def __len__(self) -> int:
        """The number of images."""
        return len(self.image_ids)

    def of_image(self, image: int) -> range:
        """The captions of the image at a position."""
        return range(int(self.first[image]), int(self.first[image + 1]))

    @cached_property
    def image_of(self) -> IntArray:
        """(captions,): the image each caption describes."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    def only(self, keep: Callable[[int], bool]) -> "CaptionTable":
        """The table of those images whose id passes."""
        kept = [image for image, image_id in enumerate(self.image_ids.tolist()) if keep(image_id)]
        return CaptionTable.from_pairs(
            (int(self.image_ids[image]), self.captions[c]) for image in kept for c in self.of_image(image)
        )

    def fingerprint(self) -> str:
        """A hash of every id and word."""
        digest = sha256(self.image_ids.tobytes() + self.first.tobytes())
        for caption in self.captions:
            digest.update("\t".join(caption).encode() + b"\n")
        return digest.hexdigest()[:16]


def read_coco_captions(
    paths: Iterable[Path], held_out: frozenset[int], split: Callable[[str], Iterable[str]] = tokenize
) -> CaptionTable:
    """The captions in COCO caption files, less those of held-out images, which are never even tokenised."""
    pairs: list[tuple[int, Tokens]] = []
    for path in paths:
        for number, annotation in enumerate(read_json_list(path, "annotations"), start=1):
            place = f"{path}, annotations, record {number}"
            if not isinstance(annotation, dict) or not isinstance(annotation.get("image_id"), int):
                raise DataError(f"{place}, field 'image_id': missing or not a number")
            if not isinstance(annotation.get("caption"), str):
                raise DataError(f"{place}, field 'caption': missing or not text")
            if annotation["image_id"] not in held_out:
                pairs.append((annotation["image_id"], tuple(split(annotation["caption"]))))
    return CaptionTable.from_pairs(pairs)
