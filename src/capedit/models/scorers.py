"""Image-text scorers for building COCO-EE: our dual encoder over stored features, and CLIP through `open_clip`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capedit.errors import MissingExtraError
from capedit.models.dual_encoder import DualEncoder

FloatArray = NDArray[np.float32]
Features = Callable[[Sequence[int]], tuple[FloatArray, FloatArray]]
"""Visual tokens of images by id: features (B, N, F) and boxes (B, N, 5)."""


class DualEncoderScorer:
    """Our own scorer; it needs nothing but a feature store."""

    def __init__(self, model: DualEncoder, features: Features, can_see: Callable[[int], bool]) -> None:
        self._model, self._features, self.can_see = model, features, can_see

    @property
    def name(self) -> str:
        return f"dual encoder {self._model.hash}"

    def embed_captions(self, captions: Sequence[Sequence[str]]) -> FloatArray:
        return self._model.embed_captions(captions)

    def embed_images(self, image_ids: Sequence[int]) -> FloatArray:
        return self._model.embed_images(*self._features(image_ids))


class ClipScorer:
    """The paper's scorer, for those who can get its weights: the extra `[clip]`."""

    def __init__(self, image_path: Callable[[int], Path], model: str = "ViT-B-32", pretrained: str = "openai") -> None:
        try:
            import open_clip
            import torch
        except ImportError as error:
            raise MissingExtraError("CLIP needs open_clip", "clip", error) from error
        self._torch = torch
        network, _, self._prepare = open_clip.create_model_and_transforms(model, pretrained=pretrained)
        self._network: Any = network.eval()
        self._split: Any = open_clip.get_tokenizer(model)
        self._image_path = image_path
        self.name = f"open_clip {model} {pretrained}"

    def can_see(self, image_id: int) -> bool:
        return self._image_path(image_id).is_file()

    def embed_captions(self, captions: Sequence[Sequence[str]], batch: int = 256) -> FloatArray:
        parts = [np.zeros((0, 0), np.float32)]
        with self._torch.inference_mode():
            for start in range(0, len(captions), batch):
                texts = [" ".join(caption) for caption in captions[start : start + batch]]
                parts.append(self._unit(self._network.encode_text(self._split(texts))))
        return np.concatenate(parts[1:] or parts)

    def embed_images(self, image_ids: Sequence[int]) -> FloatArray:
        from PIL import Image

        pictures = []
        for image_id in image_ids:
            with Image.open(self._image_path(image_id)) as picture:
                pictures.append(self._prepare(picture.convert("RGB")))
        with self._torch.inference_mode():
            return self._unit(self._network.encode_image(self._torch.stack(pictures)))

    def _unit(self, vectors: Any) -> FloatArray:
        unit: FloatArray = (vectors / vectors.norm(dim=-1, keepdim=True)).float().numpy()
        return unit
