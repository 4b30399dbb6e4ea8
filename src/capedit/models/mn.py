"""MN, the Modification Network: UpDn that models what should differ from the reference caption.

A deep averaging network encodes the reference caption. A gate, worked by what the attention LSTM remembers, says how
much of that encoding still holds; the language LSTM adds the rest. Departures: the published averaging network was
pre-trained elsewhere (Universal Sentence Encoder), ours learns with the rest; the top attributes of the caption that
the original also feeds to the language LSTM are left out, for the paper does not mention them.
"""

import torch
from torch import Tensor, nn

from capedit.models.attention_lstm import WriterConfig, mixed
from capedit.models.system import Kind
from capedit.models.updn import UpDn, UpDnMemory, UpDnState
from capedit.models.vilbert import TextInput
from capedit.models.vocabulary import END, START, Vocabulary


class DeepAveraging(nn.Module):
    """The mean of a caption's words, thought over twice."""

    def __init__(self, word_width: int, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(word_width, width), nn.ReLU(), nn.Linear(width, width), nn.Tanh())

    def forward(self, words: Tensor, text: TextInput) -> Tensor:
        """`words` (B, T, E) are the embedded words of `text`; sentinels do not count."""
        counted = (text.mask & (text.ids != START) & (text.ids != END)).float()
        shares = counted / counted.sum(1, keepdim=True).clamp(min=1)
        encoded: Tensor = self.layers(mixed(shares, words))
        return encoded


class ModificationNetwork(UpDn):
    """The implicit editor."""

    kind = Kind.IMPLICIT

    def __init__(self, config: WriterConfig, vocabulary: Vocabulary) -> None:
        super().__init__(config, vocabulary, gist_width=config.width)
        width = config.width
        self.encoder = DeepAveraging(config.word_width, width)
        self.sentinel = nn.Linear(self.seen_width + width, width)
        self.known = nn.Linear(width + width, width)
        self.residual = nn.Linear(width, width)

    def gist(self, reference: TextInput) -> Tensor:
        encoded: Tensor = self.encoder(self.words(reference.ids), reference)
        return encoded

    def output(self, seen: Tensor, memory: UpDnMemory, before: UpDnState, after: UpDnState) -> Tensor:
        """The residual that the language LSTM says, and what is known of the caption already."""
        remembered = torch.sigmoid(self.sentinel(torch.cat([seen, before.attention.hidden], -1)))
        sentinel = remembered * torch.tanh(after.attention.cell)
        gate = torch.sigmoid(self.known(torch.cat([memory.gist, sentinel], -1)))
        return torch.tanh(self.residual(after.language.hidden)) + gate * memory.gist
