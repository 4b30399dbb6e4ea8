"""One network out of two, one of which was trained on from the other: the mean of their weights.

They make different mistakes. The mean of their weights makes fewer, as few as the mean of their opinions, and costs no
more than one of them. Not in the paper.
"""

from collections.abc import Mapping

import torch
from torch import Tensor


def mean_weights(one: Mapping[str, Tensor], other: Mapping[str, Tensor], share: float) -> dict[str, Tensor]:
    """Weights by name, on the way from one network to the other: 0 is the one, 1 the other.

    Weights that both have in common stay as they are, to the bit, and so do numbers that are not real.
    """
    return {
        name: torch.lerp(weight, other[name], share) if weight.is_floating_point() else weight
        for name, weight in one.items()
    }
