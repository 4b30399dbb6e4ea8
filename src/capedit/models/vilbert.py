"""The two-stream encoder of TIger (ViLBERT): a text stream and a vision stream that look at each other.

Order of layers, as published: the first text layers alone; then, again and again, one co-attention layer, one vision
layer and one text layer. Only the text stream is read by the heads. So what cannot reach it is not there: the last
vision layer and the vision side of the last co-attention (`VilbertConfig.whole` builds them, to account for the
published parameters).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from capedit.models.layers import NORM_EPS, Attention, FeedForward, Residual, TransformerLayer


@dataclass(frozen=True)
class StreamConfig:
    """The shape of one stream."""

    width: int
    layers: int
    heads: int
    inner: int
    """Width inside the feed-forward layers."""


@dataclass(frozen=True)
class VilbertConfig:
    """The shape of the encoder."""

    vocabulary: int
    text: StreamConfig
    vision: StreamConfig
    co_width: int
    """Width of the attention between the streams."""
    co_heads: int
    feature_width: int
    """Width of a visual token as the image encoder gives it."""
    positions: int = 512
    segments: int = 2
    """Rows of the segment table; a published relic: all captions are segment 0."""
    dropout: float = 0.1
    vision_reads_text: bool = True
    """Whether the vision stream attends to the caption. Without, an image's stream is computed once for all captions
    and rounds. On in the paper."""
    whole: bool = False
    """Also build the published parts that cannot affect the text."""

    @property
    def connections(self) -> int:
        """Co-attention layers: one for each vision layer."""
        return self.vision.layers


class TextInput(NamedTuple):
    """A batch of captions: token ids (B, T), and which of them are there."""

    ids: Tensor
    mask: Tensor


class VisionInput(NamedTuple):
    """A batch of images: features (B, V, F), locations (B, V, 5), and which tokens are there; None means all."""

    features: Tensor
    locations: Tensor
    mask: Tensor | None = None


class Sight(NamedTuple):
    """All of an image that can be computed before a caption is read; see `Vilbert.see`."""

    view: Tensor
    mask: Tensor | None


class TextEmbedding(nn.Module):
    """Word + position (+ segment 0), normalised."""

    def __init__(self, config: VilbertConfig) -> None:
        super().__init__()
        self.word = nn.Embedding(config.vocabulary, config.text.width)
        self.position = nn.Embedding(config.positions, config.text.width)
        self.segment = nn.Embedding(config.segments, config.text.width)
        self.norm = nn.LayerNorm(config.text.width, eps=NORM_EPS)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, ids: Tensor, extra: Tensor | None = None) -> Tensor:
        """ids (B, T) -> (B, T, D). `extra` (B, T, D) is what else is known of each token, added before the norm."""
        x = self.word(ids) + self.position.weight[: ids.shape[1]] + self.segment.weight[0]
        embedded: Tensor = self.dropout(self.norm(x if extra is None else x + extra))
        return embedded


class VisionEmbedding(nn.Module):
    """Feature and location, each projected, added and normalised."""

    def __init__(self, config: VilbertConfig) -> None:
        super().__init__()
        self.feature = nn.Linear(config.feature_width, config.vision.width)
        self.location = nn.Linear(5, config.vision.width)
        self.norm = nn.LayerNorm(config.vision.width, eps=NORM_EPS)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, features: Tensor, locations: Tensor) -> Tensor:
        embedded: Tensor = self.dropout(self.norm(self.feature(features) + self.location(locations)))
        return embedded


class CoAttentionSide(nn.Module):
    """One stream looks at the other, then thinks."""

    def __init__(self, own: StreamConfig, other: StreamConfig, config: VilbertConfig) -> None:
        super().__init__()
        self.attention = Attention(own.width, other.width, config.co_width, config.co_heads)
        self.attended = Residual(config.co_width, own.width, config.dropout)
        self.feed_forward = FeedForward(own.width, own.inner, config.dropout)

    def forward(self, x: Tensor, projected: Tensor, other_mask: Tensor | None) -> Tensor:
        """`projected` is the other stream as `Attention.project` gives it."""
        result: Tensor = self.feed_forward(self.attended(self.attention.attend(x, projected, other_mask), x))
        return result


class Vilbert(nn.Module):
    """Captions and images in, contextual caption tokens out."""

    def __init__(self, config: VilbertConfig) -> None:
        super().__init__()
        text, vision = config.text, config.vision
        if text.layers < config.connections:
            raise ValueError(f"{config.connections} co-attention layers need as many text layers, not {text.layers}")
        self.config = config
        self.embed_text = TextEmbedding(config)
        self.embed_vision = VisionEmbedding(config)
        self.text = nn.ModuleList(
            TransformerLayer(text.width, text.heads, text.inner, config.dropout) for _ in range(text.layers)
        )
        reaching = vision.layers if config.whole else vision.layers - 1
        self.vision = nn.ModuleList(
            TransformerLayer(vision.width, vision.heads, vision.inner, config.dropout) for _ in range(reaching)
        )
        readers = reaching if config.vision_reads_text else 0
        self.text_reads = _sides(CoAttentionSide(text, vision, config) for _ in range(config.connections))
        self.vision_reads = _sides(CoAttentionSide(vision, text, config) for _ in range(readers))
        self.apply(_initialise)

    def forward(self, text: TextInput, vision: VisionInput) -> Tensor:
        """(B, T, D) of the text stream."""
        return self.read(text, self.see(vision))

    def see(self, vision: VisionInput, shown: Tensor | None = None) -> Sight:
        """What of the vision stream does not hang on the caption; `shown` (B, K, Dv) are further tokens for it.

        If the vision stream reads the text, that is its embedding (B, V, Dv). If not, it is all that the text stream
        will look at: keys and values for every co-attention (B, connections, 2, V, width).
        """
        y: Tensor = self.embed_vision(vision.features, vision.locations)
        mask = vision.mask
        if shown is not None:
            y, mask = torch.cat([y, shown], 1), _extended(mask, shown.shape[1])
        if self.config.vision_reads_text:
            return Sight(y, mask)
        projected = []
        for i, side in enumerate(self.text_reads):
            projected.append(side.attention.project(y))
            if i < len(self.vision):
                y = self.vision[i](y, mask)
        return Sight(torch.stack(projected, 1), mask)

    def read(self, text: TextInput, sight: Sight, known: Tensor | None = None) -> Tensor:
        """(B, T, D) of the text stream; `known` (B, T, D) is what else is known of each token."""
        x: Tensor = self.embed_text(text.ids, known)
        alone = len(self.text) - self.config.connections
        for layer in self.text[:alone]:
            x = layer(x, text.mask)
        y = sight.view
        projected = () if self.config.vision_reads_text else sight.view.unbind(1)
        for i, (side, text_layer) in enumerate(zip(self.text_reads, self.text[alone:], strict=True)):
            if self.config.vision_reads_text:
                read = side(x, side.attention.project(y), sight.mask)
                if i < len(self.vision_reads):
                    reader = self.vision_reads[i]
                    y = reader(y, reader.attention.project(x), text.mask)
                if i < len(self.vision):
                    y = self.vision[i](y, sight.mask)
            else:
                read = side(x, projected[i], sight.mask)
            x = text_layer(read, text.mask)
        return x

    def gaze(self, text: TextInput, sight: Sight, known: Tensor | None = None) -> Tensor:
        """Which visual tokens each caption token looks at, mean over co-attention layers and heads: (B, T, V)."""
        looks: list[Tensor] = []
        hooks = [
            side.register_forward_hook(lambda module, args, _: looks.append(module.attention.weights(*args)))
            for side in self.text_reads
        ]
        try:
            self.read(text, sight, known)
        finally:
            for hook in hooks:
                hook.remove()
        return torch.stack(looks).mean(0)


def _sides(sides: Iterable[CoAttentionSide]) -> Sequence[CoAttentionSide]:
    """A module list that the type checker knows the modules of."""
    return cast(Sequence[CoAttentionSide], nn.ModuleList(sides))


def _extended(mask: Tensor | None, more: int) -> Tensor | None:
    return None if mask is None else torch.nn.functional.pad(mask, (0, more), value=True)


def _initialise(module: nn.Module) -> None:
    """The usual start of BERT: small normal weights, zero biases."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
