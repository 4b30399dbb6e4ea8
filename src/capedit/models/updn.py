"""UpDn, the bottom-up and top-down captioner, and UpDn-E, which also reads the reference caption.

An attention LSTM sees the last word, the whole image and what the language LSTM last said, and decides where to look.
The language LSTM gets what was seen there, and says the next word. UpDn-E adds the reference caption's encoding (a
bi-directional LSTM, as in ETN) to what the attention LSTM sees.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from capedit.models.attention_lstm import (
    AdditiveAttention,
    Lstm,
    Picture,
    Read,
    RefCapEncoder,
    Words,
    WriterConfig,
    look,
)
from capedit.models.system import Kind
from capedit.models.vilbert import TextInput, VisionInput
from capedit.models.vocabulary import Vocabulary
from capedit.models.writer import Writer


class UpDnMemory(NamedTuple):
    """The image, and the gist of the reference caption (B, G), which is empty in UpDn."""

    picture: Picture
    gist: Tensor


class UpDnState(NamedTuple):
    """The two LSTMs."""

    attention: Lstm
    language: Lstm


class UpDn(Writer[UpDnMemory, UpDnState]):
    """The captioner: the reference caption is not read."""

    kind = Kind.CAPTIONER

    def __init__(self, config: WriterConfig, vocabulary: Vocabulary, *, gist_width: int = 0) -> None:
        super().__init__(config, vocabulary)
        width, features = config.width, config.feature_width
        self.seen_width = width + features + config.word_width + gist_width
        self.words = Words(len(vocabulary), config.word_width, config.dropout)
        self.look = AdditiveAttention(width, features, config.attention_width)
        self.attention = nn.LSTMCell(self.seen_width, width)
        self.language = nn.LSTMCell(features + width, width)

    def gist(self, reference: TextInput) -> Tensor:
        """The reference caption in one vector: here, nothing at all."""
        return self.words.table.weight.new_zeros(len(reference.ids), 0)

    def output(self, seen: Tensor, memory: UpDnMemory, before: UpDnState, after: UpDnState) -> Tensor:
        """What the next word is told from, (B, D)."""
        return after.language.hidden

    def remember(self, vision: VisionInput, reference: TextInput) -> UpDnMemory:
        return UpDnMemory(look(self.look, vision), self.gist(reference))

    def start(self, memory: UpDnMemory) -> UpDnState:
        fresh = Lstm.zeros(memory.gist, self.config.width)
        return UpDnState(fresh, fresh)

    def advance(self, words: Tensor, memory: UpDnMemory, state: UpDnState) -> tuple[dict[str, Tensor], UpDnState]:
        seen = torch.cat([state.language.hidden, memory.picture.whole, self.words(words), memory.gist], -1)
        attention = Lstm(*self.attention(seen, state.attention))
        there = self.look(attention.hidden, memory.picture.regions)
        language = Lstm(*self.language(torch.cat([there, attention.hidden], -1), state.language))
        after = UpDnState(attention, language)
        return {"words": self.output(seen, memory, state, after)}, after


class UpDnE(UpDn):
    """The implicit editor."""

    kind = Kind.IMPLICIT

    def __init__(self, config: WriterConfig, vocabulary: Vocabulary) -> None:
        super().__init__(config, vocabulary, gist_width=config.width)
        self.encoder = RefCapEncoder(config.word_width, config.width)

    def gist(self, reference: TextInput) -> Tensor:
        read: Read = self.encoder(self.words(reference.ids), reference)
        return read.gist
