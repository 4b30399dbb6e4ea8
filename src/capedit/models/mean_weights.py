"""One network out of several that were trained from the same start: the mean of their weights.

Networks that went different ways from one place make different mistakes. The mean of their weights makes fewer, nearly
as few as the mean of their opinions, and costs no more than one of them. Not in the paper.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor


def mean_weights(states: Sequence[Mapping[str, Tensor]], shares: Sequence[float]) -> dict[str, Tensor]:
    """Weights by name, each the mean of the networks' by their shares; what is not a real number is the first's.

    Weights that all networks have in common stay as they are, to the bit.
    """
    first, *others = states
    found = dict(first)
    for name, one in first.items():
        if one.is_floating_point() and not all(torch.equal(one, other[name]) for other in others):
            parts = [share * state[name] for share, state in zip(shares, states, strict=True)]
            found[name] = torch.stack(parts).sum(0)
    return found
