"""ETN, the edit-and-tell network: an editor that copies memories of the reference caption, and a denoiser beside it.

The editor attends to the words of the reference caption. Selective copy memory attention takes the one memory (the
encoder's cell state) of the word that it attends to most, and a Copy-LSTM mixes that memory into its own by a gate. The
denoising auto-encoder reads the reference caption as a noisy form of the target and writes it anew without the image.
The caption is written by the mean of their probabilities; they share no weights, so training them side by side is the
same as training them one after the other. As in the paper there is no reinforcement learning.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from capedit.models.attention_lstm import (
    AdditiveAttention,
    Looked,
    Lstm,
    Picture,
    Read,
    RefCapEncoder,
    Words,
    WriterConfig,
    look,
    mixed,
)
from capedit.models.system import Kind
from capedit.models.vilbert import TextInput, VisionInput
from capedit.models.vocabulary import Vocabulary
from capedit.models.writer import Writer


class CopyLstm(nn.Module):
    """An LSTM cell whose new memory is part its own, part one that it is given."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.gates = nn.Linear(inputs + width, 4 * width)
        self.copy = nn.Linear(width + width, width)

    def forward(self, inputs: Tensor, state: Lstm, given: Tensor) -> Lstm:
        enter, forget, leave, new = self.gates(torch.cat([inputs, state.hidden], -1)).chunk(4, -1)
        own = torch.sigmoid(forget) * state.cell + torch.sigmoid(enter) * torch.tanh(new)
        copied = torch.sigmoid(self.copy(torch.cat([own, given], -1)))
        cell = copied * given + (1 - copied) * own
        return Lstm(torch.sigmoid(leave) * torch.tanh(cell), cell)


def select(weights: Tensor) -> Tensor:
    """All weight (B, T) on the greatest; gradients reach that one as if it had been weighed."""
    chosen = torch.zeros_like(weights).scatter(1, weights.argmax(1, keepdim=True), 1.0)
    return chosen * (1 + weights - weights.detach())


class Caption(NamedTuple):
    """The reference caption as one of the two has read it."""

    words: Looked
    cells: Tensor
    gist: Tensor


class Pen(NamedTuple):
    """The two LSTMs of the editor, or of the denoiser."""

    attention: Lstm
    language: Lstm


class CaptionReader(nn.Module):
    """Words, their encoder, and attention to them: the same parts, twice."""

    def __init__(self, config: WriterConfig, vocabulary: int) -> None:
        super().__init__()
        self.words = Words(vocabulary, config.word_width, config.dropout)
        self.encoder = RefCapEncoder(config.word_width, config.width)
        self.attend = AdditiveAttention(config.width, config.width, config.attention_width)

    def forward(self, reference: TextInput) -> Caption:
        read: Read = self.encoder(self.words(reference.ids), reference)
        return Caption(self.attend.project(read.hidden, read.mask), read.cells, read.gist)


class EditNet(nn.Module):
    """The editor: one word further, with the image and the reference caption in sight."""

    def __init__(self, config: WriterConfig, vocabulary: int) -> None:
        super().__init__()
        width, features = config.width, config.feature_width
        self.reader = CaptionReader(config, vocabulary)
        self.look = AdditiveAttention(width, features, config.attention_width)
        self.attention = nn.LSTMCell(config.word_width + width + width + features, width)
        self.gate = nn.Linear(config.word_width + width + width, width)
        self.from_caption = nn.Linear(width, width)
        self.from_sentence = nn.Linear(config.word_width + width, width)
        self.language = CopyLstm(width + width + features, width)

    def forward(self, words: Tensor, caption: Caption, picture: Picture, pen: Pen) -> Pen:
        word = self.reader.words(words)
        seen = torch.cat([word, caption.gist, pen.language.hidden, picture.whole], -1)
        attention = Lstm(*self.attention(seen, pen.attention))
        weights = self.reader.attend.weights(attention.hidden, caption.words)
        context = self._gated(word, attention.hidden, mixed(weights, caption.words.values))
        there = self.look(attention.hidden, picture.regions)
        copied = mixed(select(weights), caption.cells)
        language = self.language(torch.cat([attention.hidden, context, there], -1), pen.language, copied)
        return Pen(attention, language)

    def _gated(self, word: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        """The reference caption's context, as far as the sentence so far does not speak for itself."""
        sentence = torch.cat([word, hidden], -1)
        gate = torch.sigmoid(self.gate(torch.cat([sentence, context], -1)))
        return gate * torch.tanh(self.from_caption(context)) + (1 - gate) * torch.tanh(self.from_sentence(sentence))


class DenoiseNet(nn.Module):
    """The denoising auto-encoder: one word further, with the reference caption alone."""

    def __init__(self, config: WriterConfig, vocabulary: int) -> None:
        super().__init__()
        width = config.width
        self.reader = CaptionReader(config, vocabulary)
        self.attention = nn.LSTMCell(config.word_width + width + width, width)
        self.language = nn.LSTMCell(width + width, width)

    def forward(self, words: Tensor, caption: Caption, pen: Pen) -> Pen:
        seen = torch.cat([self.reader.words(words), caption.gist, pen.language.hidden], -1)
        attention = Lstm(*self.attention(seen, pen.attention))
        context = self.reader.attend(attention.hidden, caption.words)
        language = Lstm(*self.language(torch.cat([attention.hidden, context], -1), pen.language))
        return Pen(attention, language)


class EtnMemory(NamedTuple):
    """The image, and the reference caption as both have read it."""

    picture: Picture
    edited: Caption
    denoised: Caption


class EtnState(NamedTuple):
    edit: Pen
    denoise: Pen


class Etn(Writer[EtnMemory, EtnState]):
    """The implicit editor, with two voices."""

    kind = Kind.IMPLICIT
    voices = ("edit", "denoise")

    def __init__(self, config: WriterConfig, vocabulary: Vocabulary) -> None:
        super().__init__(config, vocabulary)
        self.editor = EditNet(config, len(vocabulary))
        self.denoiser = DenoiseNet(config, len(vocabulary))

    def remember(self, vision: VisionInput, reference: TextInput) -> EtnMemory:
        picture = look(self.editor.look, vision)
        return EtnMemory(picture, self.editor.reader(reference), self.denoiser.reader(reference))

    def start(self, memory: EtnMemory) -> EtnState:
        fresh = Lstm.zeros(memory.edited.gist, self.config.width)
        return EtnState(Pen(fresh, fresh), Pen(fresh, fresh))

    def advance(self, words: Tensor, memory: EtnMemory, state: EtnState) -> tuple[dict[str, Tensor], EtnState]:
        edit = self.editor(words, memory.edited, memory.picture, state.edit)
        denoise = self.denoiser(words, memory.denoised, state.denoise)
        said = {"edit": edit.language.hidden, "denoise": denoise.language.hidden}
        return said, EtnState(edit, denoise)
