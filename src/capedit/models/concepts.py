"""The concept channel: which words an image speaks for, and three ways to tell the editor.

It stands in for the image-text alignment that the published model gets from pre-training on millions of captions. A
linear head on the whole-image token scores every concept word. The editor sees (1) for each caption token the evidence
for its word, (2) the most likely words as further tokens of the vision stream, (3) a bias on the words it may insert.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from capedit.models.vilbert import Hints, TextInput, VilbertConfig, VisionInput

START_SCALE = 0.03
"""The hints start small, or they drown the word embeddings."""


@dataclass(frozen=True)
class ConceptConfig:
    """The shape of the channel."""

    words: int = 2000
    """How many concept words there are."""
    shown: int = 16
    """How many of the likeliest become tokens."""


class ConceptHead(nn.Module):
    """Image feature -> a logit for each concept word; the prior is the logit without any image."""

    def __init__(self, feature_width: int, words: int) -> None:
        super().__init__()
        self.score = nn.Linear(feature_width, words)
        self.prior: Tensor
        self.register_buffer("prior", torch.zeros(words))

    def forward(self, feature: Tensor) -> Tensor:
        logits: Tensor = self.score(feature)
        return logits


class ConceptHints(nn.Module):
    """Concept logits as hints for one encoder."""

    def __init__(self, config: ConceptConfig, encoder: VilbertConfig) -> None:
        super().__init__()
        self.config = config
        self.from_evidence = nn.Linear(2, encoder.text.width)
        self.from_word = nn.Linear(encoder.text.width, encoder.vision.width)
        self.from_score = nn.Linear(2, encoder.vision.width)
        self.norm = nn.LayerNorm(encoder.vision.width)
        for layer in (self.from_evidence, self.from_score):
            nn.init.normal_(layer.weight, std=START_SCALE)

    def forward(
        self, logits: Tensor, prior: Tensor, text: TextInput, words: "ConceptWords", embedding: nn.Embedding
    ) -> Hints:
        """logits (B, C) -> hints for captions (B, T)."""
        scores = torch.stack([logits - prior, torch.sigmoid(logits)], -1)  # (B, C, 2): surprise and probability
        concept = words.of_token[text.ids]  # (B, T), -1 where the word is no concept
        known = (concept >= 0).unsqueeze(-1)
        evidence = scores.gather(1, concept.clamp(min=0).unsqueeze(-1).expand(-1, -1, 2)) * known
        best = logits.topk(self.config.shown, dim=1).indices  # (B, K)
        shown = self.from_word(embedding(words.token_of[best]))
        shown = shown + self.from_score(scores.gather(1, best.unsqueeze(-1).expand(-1, -1, 2)))
        return Hints(self.from_evidence(evidence), self.norm(shown))


class ConceptBias(nn.Module):
    """What the image adds to the logit of each word that may be inserted."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((2,), START_SCALE))

    def forward(self, logits: Tensor, prior: Tensor, words: "ConceptWords") -> Tensor:
        """(B, C) -> (B, V)."""
        lift = self.scale[0] * (logits - prior) + self.scale[1] * logits
        blank = logits.new_zeros(logits.shape[0], len(words.of_token))
        return blank.index_copy(1, words.token_of, lift)


class ConceptWords(nn.Module):
    """Which token of the vocabulary each concept is, both ways round."""

    def __init__(self, token_ids: Tensor, vocabulary: int) -> None:
        super().__init__()
        of_token = torch.full((vocabulary,), -1, dtype=torch.long)
        of_token[token_ids] = torch.arange(len(token_ids))
        self.token_of: Tensor
        self.of_token: Tensor
        self.register_buffer("token_of", token_ids.long())
        self.register_buffer("of_token", of_token)


def image_feature(vision: VisionInput) -> Tensor:
    """The whole-image token comes first."""
    return vision.features[:, 0]
