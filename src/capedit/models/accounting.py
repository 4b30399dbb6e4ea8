"""What a network costs: parameters, and multiply-accumulates of a forward.

Counted are the products of linear layers with the tokens that pass them. Norms, softmax, and the products of attention
itself are left out (under 1 % at these lengths).
"""

from dataclasses import dataclass, replace

import torch
from torch import nn

from capedit.models.tiger import TagHead, WordHead
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


@dataclass(frozen=True)
class Part:
    """A part of a published module."""

    name: str
    cost: Cost
    """Multiply-accumulates if all tokens of its stream pass it."""
    needed: bool
    """Whether what some module of TIger says depends on it."""
    run: bool
    """Whether the published code computes it at every forward, needed or not."""
    counted: bool
    """Whether it is in the sum that comes nearest to the paper's figure, which the paper does not explain."""


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


def tag_head_cost(config: VilbertConfig, tokens: int) -> Cost:
    with torch.device("meta"):
        head = TagHead(config.text.width)
    return Cost(parameters(head), tokens * _linear(head))


def word_head_cost(config: VilbertConfig, tokens: int) -> Cost:
    """With the product by the embedding table, whose parameters are the encoder's."""
    with torch.device("meta"):
        head = WordHead(config.text.width, config.vocabulary)
    return Cost(parameters(head), tokens * (_linear(head) + config.vocabulary * config.text.width))


def published_module(config: VilbertConfig, text: int, vision: int) -> list[Part]:
    """Everything that a published checkpoint of one module holds."""
    words, seen, co = config.text.width, config.vision.width, config.co_width
    with torch.device("meta"):
        reaching = encoder_cost(Vilbert(replace(config, whole=False)), text, vision)
        whole = encoder_cost(Vilbert(replace(config, whole=True)), text, vision)
    beyond = Cost(whole.parameters - reaching.parameters, whole.macs - reaching.macs)
    second = Cost(
        config.connections * (_size(co, seen) + _size(co, words)),
        config.connections * co * (vision * seen + text * words),
    )
    poolers = Cost(_size(words, co) + _size(seen, co), co * (words + seen))
    image_head = Cost(
        _size(seen, seen) + 2 * seen + _size(seen, PUBLISHED_CLASSES), vision * seen * (seen + PUBLISHED_CLASSES)
    )
    return [
        Part("encoder, as far as words can see", reaching, needed=True, run=True, counted=True),
        Part("end of the vision stream", beyond, needed=False, run=True, counted=True),
        Part("second projections of co-attention", second, needed=False, run=False, counted=True),
        Part("poolers of both streams", poolers, needed=False, run=True, counted=True),
        Part("tag head", tag_head_cost(config, text), needed=True, run=True, counted=True),
        Part("word head", word_head_cost(config, text), needed=True, run=True, counted=False),
        Part("image head", image_head, needed=False, run=True, counted=False),
        Part("alignment head", Cost(_size(co, 2), 2 * co), needed=False, run=True, counted=False),
    ]


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
