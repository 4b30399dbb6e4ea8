"""The concept channel: which words an image speaks for, and three ways to tell the editor.

It stands in for the image-text alignment that the published model gets from pre-training on millions of captions. A
linear head on the whole-image token scores every concept word, and what the cells say together may correct that. The
editor sees (1) for each caption token the evidence
for its word, (2) the most likely words as further tokens of the vision stream, (3) a bias on the words it may insert.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from capedit.models.layers import NORM_EPS, TransformerLayer
from capedit.models.vilbert import TextInput, VilbertConfig, VisionInput

START_SCALE = 0.03
"""The hints start small, or they drown the word embeddings."""
EVIDENCE = 3
"""Numbers that an image has for a word; see `evidence_of`."""
CONTEXT_WIDTH, CONTEXT_HEADS, CONTEXT_INNER = 256, 4, 512
LOCAL_SCALE = 4.0
"""Scores of single cells spread more widely than those of their mean."""


@dataclass(frozen=True)
class ConceptConfig:
    """The shape of the channel."""

    words: int = 2000
    """How many concept words there are."""
    shown: int = 16
    """How many of the likeliest become tokens."""
    layers: int = 0
    """Attention layers over the visual tokens whose outcome corrects the scores of the whole image; 0: none."""


class ConceptHead(nn.Module):
    """Visual tokens -> a logit for each concept word; the prior is the logit without any image.

    The linear scores were trained on the whole image, which is the mean of its cells. So the score of a cell says what
    that cell speaks for.
    """

    def __init__(self, feature_width: int, config: ConceptConfig) -> None:
        super().__init__()
        self.score = nn.Linear(feature_width, config.words)
        self.context = ConceptContext(feature_width, config) if config.layers else None
        self.prior: Tensor
        self.register_buffer("prior", torch.zeros(config.words))

    @torch.no_grad()
    def load(self, weight: Tensor, bias: Tensor, prior: Tensor) -> None:
        """Take over a head that was trained with the image encoder."""
        self.score.weight.copy_(weight)
        self.score.bias.copy_(bias)
        self.prior.copy_(prior)

    def forward(self, vision: VisionInput) -> Tensor:
        """(B, 2, C): the logits of the whole image, and the best of any one token."""
        logits: Tensor = self.score(vision.features)
        whole, best = logits[:, 0], _best(logits, vision.mask)
        if self.context is not None:
            whole = self.context(whole, best, vision)
        return torch.stack([whole, best], 1)


class ConceptContext(nn.Module):
    """Visual tokens look at each other; what they say together corrects the scores of the whole image."""

    def __init__(self, feature_width: int, config: ConceptConfig) -> None:
        super().__init__()
        width = CONTEXT_WIDTH
        self.feature = nn.Linear(feature_width, width)
        self.location = nn.Linear(5, width)
        self.norm = nn.LayerNorm(width, eps=NORM_EPS)
        self.layers = nn.ModuleList(
            TransformerLayer(width, CONTEXT_HEADS, CONTEXT_INNER, 0.0) for _ in range(config.layers)
        )
        self.correct = nn.Linear(2 * width, config.words)
        self.trust = nn.Parameter(torch.tensor([1.0, 0.0]))  # in the whole image, and in its best token
        for parameter in self.correct.parameters():
            nn.init.zeros_(parameter)  # it starts as the linear scores are

    def forward(self, whole: Tensor, best: Tensor, vision: VisionInput) -> Tensor:
        """Scores of the whole image and of the best token (B, C) -> those of the whole, corrected."""
        y: Tensor = self.norm(self.feature(vision.features) + self.location(vision.locations))
        for layer in self.layers:
            y = layer(y, vision.mask)
        correction: Tensor = self.correct(torch.cat([y[:, 0], _best(y, vision.mask)], -1))
        return self.trust[0] * whole + self.trust[1] * best + correction


def _best(values: Tensor, mask: Tensor | None) -> Tensor:
    """The greatest value of any token that is there, (B, V, D) -> (B, D)."""
    seen = values if mask is None else values.masked_fill(~mask.unsqueeze(-1), -torch.inf)
    return seen.amax(1)


class ConceptHints(nn.Module):
    """Concept logits as hints for one encoder."""

    def __init__(self, config: ConceptConfig, encoder: VilbertConfig) -> None:
        super().__init__()
        self.config = config
        self.from_evidence = nn.Linear(EVIDENCE, encoder.text.width)
        self.from_word = nn.Linear(encoder.text.width, encoder.vision.width)
        self.from_score = nn.Linear(EVIDENCE, encoder.vision.width)
        self.norm = nn.LayerNorm(encoder.vision.width)
        for layer in (self.from_evidence, self.from_score):
            nn.init.normal_(layer.weight, std=START_SCALE)

    def shown(self, evidence: Tensor, logits: Tensor, words: "ConceptWords", embedding: nn.Embedding) -> Tensor:
        """The likeliest words as tokens of the vision stream, (B, K, Dv)."""
        best = logits[:, 0].topk(self.config.shown, dim=1).indices  # (B, K)
        table = embedding(words.token_of)  # first of all concepts: an exported network keeps these rows alone
        tokens = self.from_word(nn.functional.embedding(best, table)) + self.from_score(_pick(evidence, best))
        normed: Tensor = self.norm(tokens)
        return normed

    def known(self, evidence: Tensor, text: TextInput, words: "ConceptWords") -> Tensor:
        """What the image says of each caption token, (B, T, Dt); of a word that is no concept, nothing."""
        concept = words.of_token[text.ids]  # (B, T), -1 where the word is no concept
        found = _pick(evidence, concept.clamp(min=0)) * (concept >= 0).unsqueeze(-1)
        hints: Tensor = self.from_evidence(found)
        return hints


def evidence_of(logits: Tensor, prior: Tensor) -> Tensor:
    """(B, 2, C) -> (B, C, 3): how much more than usual the image speaks for a word, how likely it is, and how much more
    than usual the best place speaks for it."""
    whole, best = logits[:, 0], logits[:, 1]
    return torch.stack([whole - prior, torch.sigmoid(whole), (best - prior) / LOCAL_SCALE], -1)


def _pick(evidence: Tensor, concepts: Tensor) -> Tensor:
    return evidence.gather(1, concepts.unsqueeze(-1).expand(-1, -1, evidence.shape[-1]))


class ConceptBias(nn.Module):
    """What the image adds to the logit of each word that may be inserted."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((2,), START_SCALE))

    def forward(self, logits: Tensor, prior: Tensor, words: "ConceptWords") -> Tensor:
        """(B, 2, C) -> (B, V)."""
        whole = logits[:, 0]
        lift = self.scale[0] * (whole - prior) + self.scale[1] * whole
        return lift[:, words.of_token.clamp(min=0)] * (words.of_token >= 0)


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
