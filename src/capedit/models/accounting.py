"""What a network costs: parameters, and multiply-accumulates of a forward.

Counted as the paper counts: the products of linear layers with the tokens that pass them. Norms, softmax, and the
products of attention itself are left out (under 1 % at these lengths).
"""

from dataclasses import dataclass

from torch import nn

from capedit.models.vilbert import CoAttentionSide, Vilbert, VilbertConfig

PUBLISHED_CLASSES = 1601
"""Object classes of the published image head."""


@dataclass(frozen=True)
class Cost:
    """Parameters, and multiply-accumulates a forward."""

    parameters: int
    macs: int

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.parameters + other.parameters, self.macs + other.macs)


def parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def encoder_cost(encoder: Vilbert, text: int, vision: int) -> Cost:
    """Of the two-stream encoder at so many text and visual tokens."""
    macs = vision * _linear(encoder.embed_vision)
    macs += text * _linear(encoder.text) + vision * _linear(encoder.vision)
    for sides, own, other in ((encoder.text_reads, text, vision), (encoder.vision_reads, vision, text)):
        for side in sides:
            macs += _side(side, own, other)
    return Cost(parameters(encoder), macs)


def unused_published_parts(config: VilbertConfig, text: int, vision: int) -> dict[str, Cost]:
    """Parts of the published network that nothing here builds, because no output of TIger depends on them."""
    words, seen, co = config.text.width, config.vision.width, config.co_width
    connections = config.connections
    return {
        "second projections of co-attention": Cost(
            connections * (_size(co, seen) + _size(co, words)), connections * co * (vision * seen + text * words)
        ),
        "poolers of both streams": Cost(_size(words, co) + _size(seen, co), co * (words + seen)),
        "image head": Cost(
            _size(seen, seen) + 2 * seen + _size(seen, PUBLISHED_CLASSES),
            0,  # not run when editing
        ),
        "alignment head": Cost(_size(co, 2), 0),
    }


def _side(side: CoAttentionSide, own: int, other: int) -> int:
    attention = side.attention
    memory = _linear(attention.key) + _linear(attention.value)
    return own * (_linear(side) - memory) + other * memory


def _linear(module: nn.Module | object) -> int:
    """Weights of all linear layers inside: multiply-accumulates for one token."""
    assert isinstance(module, nn.Module)
    return sum(layer.weight.numel() for layer in module.modules() if isinstance(layer, nn.Linear))


def _size(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs
