"""CLIP's patch tokens through `open_clip`, for those who have its weights: the extra `[clip]`."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capedit.errors import CapeditError, MissingExtraError
from capedit.vision.square import SquareEncoder
from capedit.vision.tokens import grid_corners

_TREATMENT = "clip-squash-bicubic-1"


class ClipEncoder(SquareEncoder):
    """The vision transformer of an `open_clip` model; each patch is a region.

    As in the grid encoder the whole image is squashed to the square, where CLIP itself would crop the middle. Batch
    and single agree to rounding (2e-6 was seen), not to the bit as the grid encoder does.
    """

    def __init__(self, model: str = "ViT-B-32", pretrained: str | None = "laion2b_s34b_b79k") -> None:
        """`pretrained` is a tag or a file that `open_clip` knows; None leaves the weights random."""
        try:
            import open_clip
            import torch
        except ImportError as error:
            raise MissingExtraError("CLIP needs open_clip", "clip", error) from error
        self._torch = torch
        self._visual: Any = open_clip.create_model(model, pretrained=pretrained).visual.eval()
        if not hasattr(self._visual, "output_tokens"):
            raise CapeditError(f"CLIP model {model}: its image tower gives no patch tokens; take a ViT")
        self._visual.output_tokens = True
        size = self._visual.image_size
        side = int(size[0] if isinstance(size, tuple | list) else size)
        mean = getattr(self._visual, "image_mean", None) or open_clip.OPENAI_DATASET_MEAN
        std = getattr(self._visual, "image_std", None) or open_clip.OPENAI_DATASET_STD
        self._mean, self._std = np.float32(mean), np.float32(std)
        digest = hashlib.sha256(_TREATMENT.encode())
        for key, value in sorted(self._visual.state_dict().items()):
            digest.update(key.encode())
            digest.update(value.detach().cpu().numpy().tobytes())
        probe = self._run(np.zeros((1, side, side, 3), dtype=np.uint8))
        patches, dim = int(probe.shape[1]), int(probe.shape[2])
        grid = math.isqrt(patches)
        if grid**2 != patches:
            raise CapeditError(f"CLIP model {model}: gives {patches} tokens, which are no square of patches")
        super().__init__(
            name=f"open_clip {model} {pretrained or 'random'}",
            hash=digest.hexdigest()[:16],
            dim=dim,
            side=side,
            corners=grid_corners(grid, grid),
        )

    def _run(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """(B, S, S, 3) -> (B, patches, D)."""
        normal = (pixels.astype(np.float32) / 255 - self._mean) / self._std
        with self._torch.inference_mode():
            _, patches = self._visual(self._torch.from_numpy(normal.transpose(0, 3, 1, 2).copy()))
        result: NDArray[np.float32] = patches.float().numpy()
        return result
