"""Grounding: how well each word of a caption is supported by some part of the image.

Words in context and cells of the image are put into one space, in which a word lies near a cell that shows it. A
caption fits an image as well as its words find support. Learned by contrast: of many captions, an image must know its
own, and above all tell it from the wrong captions that the editor is meant to repair. It is small, and TIger reads it
as evidence. Not in the paper, which gets its image-text alignment from pre-training on millions of captions.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from capedit.models.layers import NORM_EPS, TransformerLayer
from capedit.models.vilbert import TextInput, VisionInput

START_SCALE = 10.0
"""Similarities lie in [-1, 1]; a softmax over captions needs them wider."""


@dataclass(frozen=True)
class GroundingConfig:
    """The shape of the grounding."""

    vocabulary: int
    feature_width: int
    width: int = 256
    text_layers: int = 2
    vision_layers: int = 1
    heads: int = 4
    inner: int = 512
    space: int = 128
    """Dimensions of the common space."""
    positions: int = 64


class Words(NamedTuple):
    """Words of captions in the common space (B, T, S), and how much each counts (B, T); weights sum to one."""

    places: Tensor
    weights: Tensor


class Grounding(nn.Module):
    """Two small streams that meet only in their last product."""

    def __init__(self, config: GroundingConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.word = nn.Embedding(config.vocabulary, width)
        self.position = nn.Embedding(config.positions, width)
        self.text_norm = nn.LayerNorm(width, eps=NORM_EPS)
        self.text = nn.ModuleList(
            TransformerLayer(width, config.heads, config.inner, 0.0) for _ in range(config.text_layers)
        )
        self.feature = nn.Linear(config.feature_width, width)
        self.location = nn.Linear(5, width)
        self.vision_norm = nn.LayerNorm(width, eps=NORM_EPS)
        self.vision = nn.ModuleList(
            TransformerLayer(width, config.heads, config.inner, 0.0) for _ in range(config.vision_layers)
        )
        self.word_place = nn.Linear(width, config.space)
        self.cell_place = nn.Linear(width, config.space)
        self.weigh = nn.Linear(width, 1)
        self.log_scale = nn.Parameter(torch.tensor(START_SCALE).log())
        for table in (self.word, self.position):
            nn.init.normal_(table.weight, std=0.02)

    def cells(self, vision: VisionInput) -> Tensor:
        """Visual tokens in the common space, (B, V, S); a token that is not there is at zero, near to nothing."""
        y: Tensor = self.vision_norm(self.feature(vision.features) + self.location(vision.locations))
        for layer in self.vision:
            y = layer(y, vision.mask)
        places = nn.functional.normalize(self.cell_place(y), dim=-1)
        return places if vision.mask is None else places * vision.mask.unsqueeze(-1)

    def words(self, text: TextInput) -> Words:
        x: Tensor = self.text_norm(self.word(text.ids) + self.position.weight[: text.ids.shape[1]])
        for layer in self.text:
            x = layer(x, text.mask)
        weights = self.weigh(x).squeeze(-1).masked_fill(~text.mask, -torch.inf).softmax(-1)
        return Words(nn.functional.normalize(self.word_place(x), dim=-1), weights)

    def fit(self, words: Words, cells: Tensor) -> Tensor:
        """How well every caption fits every image: (captions, images)."""
        similar = torch.einsum("ctd,ivd->citv", words.places, cells).max(-1).values  # (C, I, T)
        return (similar * words.weights.unsqueeze(1)).sum(-1)

    def evidence(self, words: Words, cells: Tensor) -> "Evidence":
        """For captions and their own images."""
        similarity = words.places @ cells.transpose(1, 2)
        support = similarity.max(-1).values
        return Evidence(similarity, support, (support * words.weights).sum(-1))


class Evidence(NamedTuple):
    """How an image supports a caption."""

    similarity: Tensor
    """How near each word is to each visual token, (B, T, V), from -1 to 1: where it can be seen."""
    support: Tensor
    """Of each word, by the token that is nearest (B, T)."""
    fit: Tensor
    """Of the caption (B,)."""
