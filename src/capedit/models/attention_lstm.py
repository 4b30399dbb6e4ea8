"""Parts of captioners that generate word by word: top-down attention (UpDn) and an encoder of the reference caption."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from capedit.models.vilbert import TextInput, VisionInput


@dataclass(frozen=True)
class WriterConfig:
    """The shape of a captioner; the defaults are those published for UpDn."""

    feature_width: int
    """Width of a visual token."""
    width: int = 1000
    """Width of the LSTMs."""
    word_width: int = 1000
    attention_width: int = 512
    dropout: float = 0.5
    """On word embeddings and before the words are scored."""
    beams: int = 3
    """Hypotheses of the search; 1 is greedy."""
    longest: int = 30
    """Most words of a caption that is written."""


class Lstm(NamedTuple):
    """The state of an LSTM: hidden and cell, each (B, D)."""

    hidden: Tensor
    cell: Tensor

    @classmethod
    def zeros(cls, like: Tensor, width: int) -> "Lstm":
        """A fresh state for each row of `like`."""
        fresh = like.new_zeros(len(like), width)
        return cls(fresh, fresh)

    def where(self, there: Tensor, other: "Lstm") -> "Lstm":
        """This state in the rows that are true in `there` (B,), the other elsewhere."""
        rows = there.unsqueeze(-1)
        return Lstm(torch.where(rows, self.hidden, other.hidden), torch.where(rows, self.cell, other.cell))


class Words(nn.Module):
    """Word embeddings with dropout. They start at unit scale: started small, all the LSTMs here learn far slower."""

    def __init__(self, vocabulary: int, width: int, dropout: float) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Tensor) -> Tensor:
        embedded: Tensor = self.dropout(self.table(ids))
        return embedded


class Looked(NamedTuple):
    """What is attended to: values (B, S, D), their keys (B, S, A), and which of them are there."""

    values: Tensor
    keys: Tensor
    mask: Tensor | None


class AdditiveAttention(nn.Module):
    """A softmax over w · tanh(keys + query)."""

    def __init__(self, query_width: int, memory_width: int, width: int) -> None:
        super().__init__()
        self.key = nn.Linear(memory_width, width)
        self.query = nn.Linear(query_width, width)
        self.score = nn.Linear(width, 1, bias=False)

    def project(self, values: Tensor, mask: Tensor | None) -> Looked:
        """What can be computed before anyone looks."""
        return Looked(values, self.key(values), mask)

    def weights(self, query: Tensor, looked: Looked) -> Tensor:
        """(B, S), each row a share of one."""
        scores = self.score(torch.tanh(looked.keys + self.query(query).unsqueeze(1))).squeeze(-1)
        if looked.mask is not None:
            scores = scores.masked_fill(~looked.mask, -torch.inf)
        return torch.softmax(scores, -1)

    def forward(self, query: Tensor, looked: Looked) -> Tensor:
        """(B, D): the mean of the values by their weights."""
        return mixed(self.weights(query, looked), looked.values)


def mixed(weights: Tensor, values: Tensor) -> Tensor:
    """(B, S) and (B, S, D) -> (B, D)."""
    return (weights.unsqueeze(1) @ values).squeeze(1)


class Picture(NamedTuple):
    """An image as captioners see it: the whole of it (B, F), and what they may attend to.

    The whole-image token is the mean of the regions; it may be attended to like any of them.
    """

    whole: Tensor
    regions: Looked


def look(attention: AdditiveAttention, vision: VisionInput) -> Picture:
    """Captioners make nothing of the places of regions."""
    return Picture(vision.features[:, 0], attention.project(vision.features, vision.mask))


class Read(NamedTuple):
    """A caption as its encoder left it: hidden and cell states (B, T, D), their mask, and the gist (B, D)."""

    hidden: Tensor
    cells: Tensor
    mask: Tensor
    gist: Tensor


class RefCapEncoder(nn.Module):
    """A bi-directional LSTM over a caption; either direction gives half of each state.

    It is run by hand, for nn.LSTM does not tell the cell states that ETN copies.
    """

    def __init__(self, word_width: int, width: int) -> None:
        super().__init__()
        if width % 2:
            raise ValueError(f"a bi-directional encoder needs an even width, not {width}")
        self.forwards = nn.LSTMCell(word_width, width // 2)
        self.backwards = nn.LSTMCell(word_width, width // 2)
        self.gist = nn.Linear(width, width)

    def forward(self, words: Tensor, text: TextInput) -> Read:
        """`words` (B, T, E) are the embedded words of `text`."""
        length = words.shape[1]
        right, last = self._run(self.forwards, words, text.mask, range(length))
        left, first = self._run(self.backwards, words, text.mask, range(length - 1, -1, -1))
        hidden = torch.stack([torch.cat([a.hidden, b.hidden], -1) for a, b in zip(right, left, strict=True)], 1)
        cells = torch.stack([torch.cat([a.cell, b.cell], -1) for a, b in zip(right, left, strict=True)], 1)
        gist = torch.tanh(self.gist(torch.cat([last.hidden, first.hidden], -1)))
        return Read(hidden, cells, text.mask, gist)

    def _run(self, cell: nn.LSTMCell, words: Tensor, mask: Tensor, order: range) -> tuple[list[Lstm], Lstm]:
        """The state at each token in reading order, and the state in the end; padding changes nothing."""
        state = Lstm.zeros(words, cell.hidden_size)
        states = [state] * words.shape[1]
        for at in order:
            state = states[at] = Lstm(*cell(words[:, at], state)).where(mask[:, at], state)
        return states, state
