"""Images of a feature store as networks take them."""

import numpy as np

from capedit.models.device import tensor
from capedit.models.vilbert import VisionInput
from capedit.vision.store import TokenBatch


def vision_of(tokens: TokenBatch) -> VisionInput:
    """Stored tokens as a batch of images; no mask where nothing is padded."""
    there = np.arange(tokens.features.shape[1]) < tokens.counts[:, None]
    return VisionInput(tensor(tokens.features), tensor(tokens.boxes), None if there.all() else tensor(there))
