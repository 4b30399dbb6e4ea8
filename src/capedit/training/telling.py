"""How well wrong captions are told from right ones."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capedit.models.decoding import frame
from capedit.models.device import array, tensor
from capedit.models.vilbert import TextInput, VisionInput
from capedit.models.vocabulary import Vocabulary
from capedit.training.examination import Question, area_under_curve
from capedit.training.images import vision_of
from capedit.vision import FeatureStore

BATCH = 256

Judge = Callable[[TextInput, VisionInput], Tensor]
"""How well each caption fits its image, (B,)."""


@torch.no_grad()
def tell_apart(
    judge: Judge, questions: Sequence[Question], vocabulary: Vocabulary, store: FeatureStore
) -> dict[str, float]:
    """Over all captions (the area under the curve), and image by image."""

    def judged(captions: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        found = []
        for start in range(0, len(captions), BATCH):
            part = slice(start, start + BATCH)
            text = frame(captions[part], vocabulary)
            images = vision_of(store.batch([question.image for question in questions[part]]))
            found.append(array(judge(TextInput(tensor(text.ids), tensor(text.mask)), images)))
        return np.concatenate(found).astype(np.float64)

    wrong, right = judged([q.reference for q in questions]), judged([q.target for q in questions])
    return {"AUC": area_under_curve(right, wrong), "paired": float((right > wrong).mean())}
