"""The visual tokens of the images of a run, each computed once: looked up in a store, or encoded."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import PurePosixPath

import numpy as np
from PIL.Image import Image as Picture

from capedit.data import DataError, Image, ImageFile
from capedit.errors import CapeditError
from capedit.pipeline.items import Item
from capedit.vision import FeatureStore, ImageError, Precision, VisualTokens, load_image
from capedit.vision.encoder import Encoder
from capedit.vision.shard import quantise

_CHUNK = 8
_CHUNK_PIXELS = 32_000_000
"""Decoded pictures that are held before they are encoded."""


class Visuals:
    """Gives the tokens of one window of captions after the other.

    What the last window saw is still known to the next, so captions of one image that follow one another, in however
    many windows, have it encoded once. Between shards all is forgotten: images are encoded several at a time, and which
    ones keep company must not depend on what a worker did before.
    """

    def __init__(self, encoder: Encoder, store: FeatureStore | None) -> None:
        self._encoder, self._store = encoder, store
        self._known: dict[str, VisualTokens | str] = {}
        self.encoded = 0
        """Images encoded so far."""

    def forget(self) -> None:
        self._known = {}

    def of(self, items: Sequence[Item]) -> list[VisualTokens | str]:
        """For each item the tokens of its image, or the reason why there are none."""
        keys: list[str] = []
        known: dict[str, VisualTokens | str] = {}
        missing: dict[str, tuple[bytes, str]] = {}
        for item in items:
            if item.image is None:
                known[""] = "the record has no image"
                keys.append("")
                continue
            key = str(item.image.path) if isinstance(item.image, ImageFile) else ""
            if key and key in self._known:
                known[key] = self._known[key]
            elif not key or not (key in known or key in missing):
                key = self._look(key, item, item.image, known, missing)
            keys.append(key)
        self._encode(missing, known)
        self._known = known
        return [known[key] for key in keys]

    def _look(
        self,
        key: str,
        item: Item,
        image: Image,
        known: dict[str, VisualTokens | str],
        missing: dict[str, tuple[bytes, str]],
    ) -> str:
        """Find an image in the store or read it; images without a path are known by their content."""
        if self._store is not None and (found := next((n for n in _names(item, image) if n in self._store), None)):
            known[key or f"stored {found}"] = self._store.tokens(found)
            return key or f"stored {found}"
        try:
            data = image.read()
        except DataError as error:
            failed = key or str(error)
            known[failed] = str(error)
            return failed
        key = key or blake2b(data, digest_size=16).hexdigest()
        if key in self._known:
            known[key] = self._known[key]
        elif key not in known:
            missing[key] = (data, image.name or item.place)
        return key

    def _encode(self, missing: dict[str, tuple[bytes, str]], known: dict[str, VisualTokens | str]) -> None:
        ready: list[tuple[str, Picture]] = []

        def encode_ready() -> None:
            tokens = self._encoder.encode([picture for _, picture in ready])
            for (key, _), one in zip(ready, tokens, strict=True):
                known[key] = one if self._store is None else as_stored(one, self._store.header.precision)
            self.encoded += len(ready)
            ready.clear()

        for key, (data, name) in missing.items():
            try:
                ready.append((key, load_image(data, name=name)))
            except ImageError as error:
                known[key] = str(error)
            if len(ready) >= _CHUNK or sum(p.width * p.height for _, p in ready) > _CHUNK_PIXELS:
                encode_ready()
        if ready:
            encode_ready()


def open_store(path: str | None, encoder: Encoder) -> FeatureStore | None:
    return None if path is None else FeatureStore(path, encoder_hash=encoder.hash)


def as_stored(tokens: VisualTokens, precision: Precision) -> VisualTokens:
    """Tokens as a store would give them back: what a run sees must not depend on which images the store holds."""
    if not np.isfinite(tokens.features).all():
        raise CapeditError("the encoder gave features that are not finite")
    if precision is Precision.INT8:
        codes, scales = quantise(tokens.features)
        return VisualTokens(codes.astype(np.float32) * scales[:, None], tokens.boxes)
    largest = np.finfo(np.float16).max
    return VisualTokens(tokens.features.clip(-largest, largest).astype(np.float16).astype(np.float32), tokens.boxes)


def _names(item: Item, image: Image) -> list[str]:
    """What a store may call an image: its path in the dataset, its file name, its id."""
    names = []
    if image.name:
        path = PurePosixPath(image.name)
        names = [path.with_suffix("").as_posix(), path.stem]
    return [*names, item.image_id] if item.image_id is not None else names
