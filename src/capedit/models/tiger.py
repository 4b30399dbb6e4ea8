"""TIger: three modules that edit a caption, from what to delete, over where to add, to which word.

Tagger_del looks at the caption once and says KEEP or DELETE of every token. Then, round after round, Tagger_add says
after which tokens a word is missing, a mask is put there, and the Inserter fills all masks at once. As published, each
module is a whole encoder of its own; `shared` gives them one encoder with three heads.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import torch
from torch import Tensor, nn

from capedit.models.concepts import (
    START_SCALE,
    ConceptBias,
    ConceptConfig,
    ConceptHead,
    ConceptHints,
    ConceptWords,
    evidence_of,
)
from capedit.models.grounding import Evidence, Grounding, GroundingConfig
from capedit.models.layers import NORM_EPS
from capedit.models.vilbert import Sight, TextInput, Vilbert, VilbertConfig, VisionInput

MATCH_START = 0.3
"""How much the grounding's own opinion counts in the matching head at the start."""


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
    grounding: GroundingConfig | None = None
    """Evidence for each word and for the caption. Not in the paper."""


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
        # Not one `linear`: the 8-bit quantiser would turn the table that embedding and decoder share on its side.
        logits: Tensor = self.transform(x) @ table.T + self.bias
        return logits


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
            self.concepts = ConceptHead(encoder.feature_width, config.concepts)
            self.concept_words = ConceptWords(concept_tokens, encoder.vocabulary)
            self.hints = nn.ModuleDict({name: ConceptHints(config.concepts, encoder) for name in trunks})
            self.word_bias = ConceptBias()
        if config.grounding is not None:
            self.grounding = Grounding(config.grounding)
            self.supports = nn.ModuleDict({name: _small(nn.Linear(2, width)) for name in trunks})
            self.match_fit = nn.Parameter(torch.tensor([MATCH_START, 0.0]))  # slope and offset

    def see(self, vision: VisionInput) -> "TigerSight":
        """All of the images that no caption changes; captions and rounds share it."""
        evidence, concepts = None, None
        if self.config.concepts is not None:
            concepts = self.concepts(vision)
            evidence = evidence_of(concepts, self.concepts.prior)
        sights = []
        for name in self.encoders:
            encoder, shown = self._encoder(name), None
            if evidence is not None and concepts is not None:
                shown = self._hints(name).shown(evidence, concepts, self.concept_words, encoder.embed_text.word)
            sights.append(encoder.see(vision, shown))
        cells = None if self.config.grounding is None else self.grounding.cells(vision)
        return TigerSight(torch.stack([sight.view for sight in sights], 1), sights[0].mask, concepts, cells)

    def delete(self, text: TextInput, sight: "TigerSight") -> tuple[Tensor, Tensor | None]:
        """Logits of KEEP and DELETE (B, T, 2), and of caption and image belonging together (B,)."""
        grounds = self.ground(text, sight)
        x = self._read(Module.DELETE, text, sight, grounds)
        return self.taggers["delete"](x), self.matching(x, grounds)

    def add(self, text: TextInput, sight: "TigerSight") -> Tensor:
        """Logits of KEEP and ADD-after (B, T, 2)."""
        logits: Tensor = self.taggers["add"](self._read(Module.ADD, text, sight, self.ground(text, sight)))
        return logits

    def insert(self, text: TextInput, sight: "TigerSight", rows: Tensor, columns: Tensor) -> Tensor:
        """Logits of words (N, V) for the N places (rows, columns) of the batch."""
        x = self._read(Module.INSERT, text, sight, self.ground(text, sight))
        return self.words_at(x, sight, rows, columns)

    def ground(self, text: TextInput, sight: "TigerSight") -> Evidence | None:
        """How the images support the captions."""
        return None if sight.cells is None else self.grounding.evidence(self.grounding.words(text), sight.cells)

    def matching(self, x: Tensor, grounds: Evidence | None) -> Tensor | None:
        """The logit of caption and image belonging together (B,), from what Tagger_del has read."""
        if self.match is None:
            return None
        logit: Tensor = self.match(x[:, 0]).squeeze(-1)
        return logit if grounds is None else logit + self.match_fit[0] * self._logits(grounds.fit) + self.match_fit[1]

    def words_at(self, x: Tensor, sight: "TigerSight", rows: Tensor, columns: Tensor) -> Tensor:
        """Logits of words (N, V), from what the Inserter has read."""
        table = self.encoder(Module.INSERT).embed_text.word.weight
        logits: Tensor = self.words(x[rows, columns], table)
        if sight.concepts is not None:
            logits = logits + self.word_bias(sight.concepts, self.concepts.prior, self.concept_words)[rows]
        return logits

    def encoder(self, module: Module) -> Vilbert:
        """The encoder that a module uses."""
        return self._encoder(self._trunk(module))

    def gaze(self, text: TextInput, sight: "TigerSight") -> Tensor:
        """Which visual tokens each caption token looks at, in Tagger_del: (B, T, V)."""
        trunk = self._trunk(Module.DELETE)
        known = self._known(trunk, self._role(Module.DELETE), text, sight, self.ground(text, sight))
        return self._encoder(trunk).gaze(text, self._sight(trunk, sight), known)

    def read(
        self, trunk: str, role: Tensor | None, text: TextInput, sight: "TigerSight", grounds: Evidence | None
    ) -> Tensor:
        """Contextual tokens (B, T, D) of one of `encoders`; `role` (D,) tells a shared one its task."""
        known = self._known(trunk, role, text, sight, grounds)
        return self._encoder(trunk).read(text, self._sight(trunk, sight), known)

    def _read(self, module: Module, text: TextInput, sight: "TigerSight", grounds: Evidence | None) -> Tensor:
        return self.read(self._trunk(module), self._role(module), text, sight, grounds)

    def _known(
        self, trunk: str, role: Tensor | None, text: TextInput, sight: "TigerSight", grounds: Evidence | None
    ) -> Tensor | None:
        """All that is known of each caption token beside its word and place."""
        parts = [] if role is None else [role.expand(*text.ids.shape, -1)]
        if sight.concepts is not None:
            evidence = evidence_of(sight.concepts, self.concepts.prior)
            parts.append(self._hints(trunk).known(evidence, text, self.concept_words))
        if grounds is not None:
            both = torch.stack([grounds.support, grounds.fit.unsqueeze(1).expand_as(grounds.support)], -1)
            parts.append(self.supports[trunk](self._logits(both)))
        return sum(parts[1:], parts[0]) if parts else None

    def _logits(self, similarity: Tensor) -> Tensor:
        """In units of the logits that the grounding was trained with."""
        return similarity * self.grounding.log_scale.exp()

    def _sight(self, trunk: str, sight: "TigerSight") -> Sight:
        return Sight(sight.views.unbind(1)[list(self.encoders).index(trunk)], sight.mask)

    def _role(self, module: Module) -> Tensor | None:
        return None if self.role is None else self.role.weight[list(Module).index(module)]

    def _encoder(self, name: str) -> Vilbert:
        encoder = self.encoders[name]
        assert isinstance(encoder, Vilbert)
        return encoder

    def _hints(self, name: str) -> ConceptHints:
        hints = self.hints[name]
        assert isinstance(hints, ConceptHints)
        return hints

    def _trunk(self, module: Module) -> str:
        return "all" if self.config.shared else module.value


def _small(layer: nn.Linear) -> nn.Linear:
    """Hints start small, or they drown the word embeddings."""
    nn.init.normal_(layer.weight, std=START_SCALE)
    return layer


class TigerSight(NamedTuple):
    """Images as TIger has seen them: a view for each encoder (B, encoders, …), a mask, and what the evidence needs:
    concept logits (B, 2, C) and the grounding's cells (B, V, S)."""

    views: Tensor
    mask: Tensor | None
    concepts: Tensor | None
    cells: Tensor | None

    def rows(self, images: Tensor) -> "TigerSight":
        """The images at these positions, one for each caption."""
        return TigerSight(*(None if part is None else part[images] for part in self))  # type: ignore[arg-type]
