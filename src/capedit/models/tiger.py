"""TIger: three modules that edit a caption, from what to delete, over where to add, to which word.

Tagger_del looks at the caption once and says KEEP or DELETE of every token. Then, round after round, Tagger_add says
after which tokens a word is missing, a mask is put there, and the Inserter fills all masks at once. As published, each
module is a whole encoder of its own; `shared` gives them one encoder with three heads.
"""

from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor, nn

from capedit.models.concepts import ConceptBias, ConceptConfig, ConceptHead, ConceptHints, ConceptWords, image_feature
from capedit.models.layers import NORM_EPS
from capedit.models.vilbert import Hints, TextInput, Vilbert, VilbertConfig, VisionInput


class Module(StrEnum):
    """The three modules."""

    DELETE = "delete"
    ADD = "add"
    INSERT = "insert"


@dataclass(frozen=True)
class TigerConfig:
    """The shape of a TIger."""

    encoder: VilbertConfig
    shared: bool = False
    """One encoder for all three modules. Not so in the paper."""
    concepts: ConceptConfig | None = None
    """The concept channel. Not in the paper."""
    matching: bool = False
    """A head that tells whether caption and image belong together. Not in the paper."""


class TagHead(nn.Module):
    """KEEP or change, for every token."""

    def __init__(self, width: int, labels: int = 2) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width, eps=NORM_EPS), nn.Linear(width, labels)
        )

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.layers(x)
        return logits


class WordHead(nn.Module):
    """Which word stands behind a mask; the decoder is the embedding table."""

    def __init__(self, width: int, vocabulary: int) -> None:
        super().__init__()
        self.transform = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width, eps=NORM_EPS))
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, x: Tensor, table: Tensor) -> Tensor:
        return nn.functional.linear(self.transform(x), table, self.bias)


class Tiger(nn.Module):
    """The three modules behind one face. All of them take a batch of captions and a batch of images."""

    def __init__(self, config: TigerConfig, concept_tokens: Tensor | None = None) -> None:
        super().__init__()
        self.config = config
        encoder, width = config.encoder, config.encoder.text.width
        trunks = ["all"] if config.shared else [module.value for module in Module]
        self.encoders = nn.ModuleDict({name: Vilbert(encoder) for name in trunks})
        self.taggers = nn.ModuleDict({name.value: TagHead(width) for name in (Module.DELETE, Module.ADD)})
        self.words = WordHead(width, encoder.vocabulary)
        self.match = nn.Linear(width, 1) if config.matching else None
        self.role = nn.Embedding(len(Module), width) if config.shared else None  # tells a shared encoder its task
        if self.role is not None:
            nn.init.normal_(self.role.weight, std=0.02)
        if config.concepts is not None:
            if concept_tokens is None:
                concept_tokens = torch.arange(config.concepts.words)
            self.concepts = ConceptHead(encoder.feature_width, config.concepts.words)
            self.concept_words = ConceptWords(concept_tokens, encoder.vocabulary)
            self.hints = nn.ModuleDict({name: ConceptHints(config.concepts, encoder) for name in trunks})
            self.word_bias = ConceptBias()

    def delete(self, text: TextInput, vision: VisionInput) -> tuple[Tensor, Tensor | None]:
        """Logits of KEEP and DELETE (B, T, 2), and of caption and image belonging together (B,)."""
        x, _ = self._encode(Module.DELETE, text, vision)
        return self.taggers["delete"](x), None if self.match is None else self.match(x[:, 0]).squeeze(-1)

    def add(self, text: TextInput, vision: VisionInput) -> Tensor:
        """Logits of KEEP and ADD-after (B, T, 2)."""
        x, _ = self._encode(Module.ADD, text, vision)
        logits: Tensor = self.taggers["add"](x)
        return logits

    def insert(self, text: TextInput, vision: VisionInput, masks: Tensor) -> Tensor:
        """Logits of words (N, V) for the N places at which `masks` (B, T) is true, in reading order."""
        x, bias = self._encode(Module.INSERT, text, vision)
        rows = masks.nonzero()[:, 0]
        table = self.encoder(Module.INSERT).embed_text.word.weight
        logits: Tensor = self.words(x[masks], table)
        return logits if bias is None else logits + bias[rows]

    def encoder(self, module: Module) -> Vilbert:
        """The encoder that a module uses."""
        encoder = self.encoders["all" if self.config.shared else module.value]
        assert isinstance(encoder, Vilbert)
        return encoder

    def _encode(self, module: Module, text: TextInput, vision: VisionInput) -> tuple[Tensor, Tensor | None]:
        """Contextual tokens (B, T, D), and the image's bias on inserted words where there is a concept channel."""
        encoder = self.encoder(module)
        hints, bias = None, None
        if self.config.concepts is not None:
            channel = self.hints["all" if self.config.shared else module.value]
            assert isinstance(channel, ConceptHints)
            logits, prior = self.concepts(image_feature(vision)), self.concepts.prior
            hints = channel(logits, prior, text, self.concept_words, encoder.embed_text.word)
            if module is Module.INSERT:
                bias = self.word_bias(logits, prior, self.concept_words)
        if self.role is not None:
            hints = self._with_role(module, hints, text, vision)
        return encoder(text, vision, hints), bias

    def _with_role(self, module: Module, hints: Hints | None, text: TextInput, vision: VisionInput) -> Hints:
        assert self.role is not None
        role = self.role.weight[list(Module).index(module)]
        if hints is None:
            nothing = vision.features.new_zeros(vision.features.shape[0], 0, self.config.encoder.vision.width)
            return Hints(role.expand(*text.ids.shape, -1), nothing)
        return Hints(hints.text + role, hints.vision)
