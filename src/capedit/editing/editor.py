"""The editor: load a model, edit one caption or many."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capedit.editing.bundle import Bundle, find_bundle
from capedit.editing.edit import Edit
from capedit.edits.tokens import tokenize
from capedit.errors import CapeditError, MissingExtraError
from capedit.metrics.clashes import find_open_seams
from capedit.models.decoding import Knobs, decode, frame
from capedit.models.runtime import Images, Modules, Seen
from capedit.vision import ImageSource, VisualTokens, load_encoder
from capedit.vision.encoder import Encoder


class Runtime(StrEnum):
    """What computes the networks."""

    ONNX = "onnx"
    TORCH = "torch"


ROOM = 8
"""Words that a caption must be able to gain."""


class CaptionError(CapeditError):
    """A caption that cannot be edited."""


@dataclass(frozen=True, eq=False)
class Support:
    """How well each word is supported by each visual token, from -1 to 1, and where the tokens are."""

    words: list[str]
    values: NDArray[np.float32]  # (words, tokens); the first token is the whole image
    boxes: NDArray[np.float32]  # (tokens, 5)


class Editor:
    """Edits captions. Loading is the expensive part; one editor serves any number of calls and threads."""

    def __init__(self, bundle: Bundle, modules: Modules, encoder: Encoder) -> None:
        self.bundle, self.modules, self.encoder = bundle, modules, encoder

    @classmethod
    def load(
        cls,
        model: str | Path = "default",
        *,
        runtime: Runtime = Runtime.ONNX,
        threads: int = 0,
        device: str = "cpu",
    ) -> "Editor":
        """The bundled model, or the one in a folder. `threads` is that of the runtime; 0 means all cores.

        With the torch runtime, `device` may be `cuda`, or `cuda:1` and so on.
        """
        bundle = Bundle.load(find_bundle(model))
        encoder = load_encoder(bundle.own_encoder, threads=threads)
        if encoder.hash != bundle.encoder:
            raise CapeditError(
                f"{bundle.folder}: trained on the visual tokens of encoder {bundle.encoder}, not of "
                f"{encoder.hash} ({encoder.name})"
            )
        return cls(bundle, load_modules(bundle, runtime, threads, device), encoder)

    @property
    def model(self) -> str:
        """Name and hash of the model."""
        return self.bundle.label

    @property
    def knobs(self) -> Knobs:
        """The model's own operating point: what is used where a call does not say otherwise."""
        return self.bundle.knobs

    def edit(self, image: ImageSource, caption: str, **knobs: Any) -> Edit:
        """Edit one caption. `knobs` are those of `Knobs`."""
        return self.edit_many([(image, caption)], **knobs)[0]

    def edit_many(self, pairs: Iterable[tuple[ImageSource, str]], *, batch_size: int = 64, **knobs: Any) -> list[Edit]:
        """Edit many captions. Within a batch an image is encoded once, however many captions it has."""
        edits: list[Edit] = []
        for batch in _batches(pairs, batch_size):
            places: dict[int, int] = {}  # an image object -> its place among the distinct images of the batch
            images: list[ImageSource] = []
            for image, _ in batch:
                key = _image_key(image)
                if key not in places:
                    places[key] = len(images)
                    images.append(image)
            seen = self.see(self.encoder.encode(images))
            rows = np.array([places[_image_key(image)] for image, _ in batch], np.int64)
            edits += self.edit_seen(seen.rows(rows), [caption for _, caption in batch], **knobs)
        return edits

    def see(self, images: Sequence[VisualTokens]) -> Seen:
        """What the model makes of images before it reads any caption: compute it once, use it as often as you like."""
        counts = np.array([len(tokens) for tokens in images], np.int64)
        features = np.zeros((len(images), int(counts.max(initial=0)), self.encoder.dim), np.float32)
        boxes = np.zeros((*features.shape[:2], 5), np.float32)
        for at, tokens in enumerate(images):
            if tokens.dim != self.encoder.dim:
                raise CapeditError(f"visual tokens have {tokens.dim} numbers, the model expects {self.encoder.dim}")
            features[at, : counts[at]], boxes[at, : counts[at]] = tokens.features, tokens.boxes
        return self.modules.see(Images(features, boxes, counts))

    def edit_seen(self, seen: Seen, captions: Sequence[str], **knobs: Any) -> list[Edit]:
        """Edit captions, one for each row of `seen`."""
        if len(seen.views) != len(captions):
            raise CapeditError(f"{len(captions)} captions, but {len(seen.views)} images")
        if not captions:
            return []
        chosen = self._chosen(knobs)
        drafts = decode(
            self.modules,
            seen,
            [read_caption(caption, self.modules.max_words - ROOM) for caption in captions],
            chosen,
            calibration=self.bundle.calibration,
            breaks=find_open_seams,
        )
        return [
            Edit(caption, draft.trace(), draft.match, self.model)
            for caption, draft in zip(captions, drafts, strict=True)
        ]

    def support(self, image: ImageSource, caption: str) -> Support | None:
        """Where in the image each word of a caption can be seen, if the model can tell."""
        tokens = self.encoder.encode([image])[0]
        words = read_caption(caption, self.modules.max_words)
        found = self.modules.support(frame([words], self.modules.vocabulary), self.see([tokens]))
        return None if found is None else Support(words, found[0, 1:-1], tokens.boxes)

    def _chosen(self, knobs: dict[str, Any]) -> Knobs:
        try:
            return replace(self.knobs, **knobs)
        except TypeError as error:
            raise CapeditError(f"no such knob: {error}") from error


def read_caption(caption: str, max_words: int) -> list[str]:
    """The words of a caption, or an error that says why there are none to edit."""
    words = tokenize(caption)
    if not words:
        raise CaptionError("the caption is empty" if not caption.strip() else f"no words in caption {caption!r}")
    if len(words) > max_words:
        raise CaptionError(f"the caption has {len(words)} words; at most {max_words} can be edited")
    return words


def load_modules(bundle: Bundle, runtime: Runtime, threads: int, device: str = "cpu") -> Modules:
    """The networks of a model folder, computed by this runtime."""
    if runtime is Runtime.ONNX:
        if device != "cpu":
            raise CapeditError(f"device {device!r}: the ONNX runtime works on the CPU; choose the torch runtime")
        from capedit.editing.onnx_modules import OnnxModules

        return OnnxModules(bundle, threads=threads)
    try:
        from capedit.editing.torch_modules import load_torch_modules
    except ImportError as error:
        raise MissingExtraError("the torch runtime", "train", str(error)) from error
    return load_torch_modules(bundle, device)


def _batches(pairs: Iterable[tuple[ImageSource, str]], size: int) -> Iterator[list[tuple[ImageSource, str]]]:
    iterator = iter(pairs)
    while batch := list(islice(iterator, size)):
        yield batch


def _image_key(image: ImageSource) -> int:
    return hash(image) if isinstance(image, str | Path | bytes) else id(image)
