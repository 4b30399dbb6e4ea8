"""V-EditNTS: an editor that says one operation after another.

A programmer goes along the reference caption. At each step it sees the word that it stands at, the image, the
operations so far (one LSTM) and the words written so far (another LSTM, the interpreter), and says KEEP, DELETE, ADD of
a word, or STOP, which keeps what is left. KEEP and DELETE go one word on. Departures from EditNTS: no part-of-speech
tags; additive attention to the caption; the programmer may still ADD behind the last word; and plain cross-entropy,
as in the paper, where EditNTS weighs operations by how rare they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

import torch
from torch import Tensor, nn

from capedit.edits import Alignment, Op, Operation, Script, Trace, align
from capedit.models.attention_lstm import AdditiveAttention, Looked, Lstm, Read, RefCapEncoder, Words
from capedit.models.search import Said, search
from capedit.models.system import Exercise, Kind, Outcome, System, as_text
from capedit.models.vilbert import TextInput, VisionInput
from capedit.models.vocabulary import END, SPECIALS, START, Vocabulary

STOP = END
"""Symbols are the words of the vocabulary, for ADD; its end for STOP; and behind its last word KEEP and DELETE."""


@dataclass(frozen=True)
class EditNtsConfig:
    """The shape of the programmer; the defaults are those published for EditNTS."""

    feature_width: int
    """Width of a visual token."""
    width: int = 200
    """Width of the LSTMs."""
    word_width: int = 100
    attention_width: int = 200
    dropout: float = 0.3
    beams: int = 1
    """Hypotheses of the search; 1 is greedy."""
    added: int = 20
    """Most words that are added to a caption."""


def expert_program(source: Sequence[int], target: Sequence[int], keep: int, delete: int) -> list[int]:
    """The gold operations: where words are replaced, ADD comes before DELETE; the last KEEPs are one STOP."""
    program: list[int] = []
    i = j = 0
    for kept, found in [*align(source, target, Alignment.REFERENCE), (len(source), len(target))]:
        program += [*target[j:found], *[delete] * (kept - i)]
        if kept < len(source):
            program.append(keep)
        i, j = kept + 1, found + 1
    kept_at_end = sum(1 for _ in takewhile(lambda symbol: symbol == keep, reversed(program)))
    return [*program[: len(program) - kept_at_end], STOP]


class NtsMemory(NamedTuple):
    """The caption and the image, whichever word is edited."""

    ids: Tensor  # (B, T) framed
    end: Tensor  # (B,) where the end sentinel stands
    states: Tensor  # (B, T, D) of the encoder
    attended: Looked
    gist: Tensor  # (B, D)
    picture: Tensor  # (B, D)


class NtsState(NamedTuple):
    """Where the programmer stands, what it has said, and what stands written."""

    at: Tensor  # (B,) position in the framed caption
    programmer: Lstm
    interpreter: Lstm
    added: Tensor  # (B,) words added so far


class EditNts(System):
    """The explicit editor."""

    kind = Kind.EXPLICIT
    config: EditNtsConfig

    def __init__(self, config: EditNtsConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config, self.vocabulary = config, vocabulary
        self.keep, self.delete = len(vocabulary), len(vocabulary) + 1
        width = config.width
        self.symbols = Words(len(vocabulary) + 2, config.word_width, config.dropout)
        self.encoder = RefCapEncoder(config.word_width, width)
        self.attend = AdditiveAttention(width, width, config.attention_width)
        self.picture = nn.Linear(config.feature_width, width)
        self.programmer = nn.LSTMCell(config.word_width, width)
        self.interpreter = nn.LSTMCell(config.word_width, width)
        self.decide = nn.Linear(6 * width, width)
        self.dropout = nn.Dropout(config.dropout)
        self.score = nn.Linear(width, len(vocabulary) + 2)

    # --- the network ---

    def remember(self, vision: VisionInput, reference: TextInput) -> NtsMemory:
        read: Read = self.encoder(self.symbols(reference.ids), reference)
        picture = torch.tanh(self.picture(vision.features[:, 0]))
        end = reference.mask.sum(1) - 1
        attended = self.attend.project(read.hidden, read.mask)
        return NtsMemory(reference.ids, end, read.hidden, attended, read.gist, picture)

    def start(self, memory: NtsMemory) -> NtsState:
        """Both LSTMs begin with the gist of the caption."""
        begin = Lstm(memory.gist, torch.zeros_like(memory.gist))
        first = torch.zeros_like(memory.end)
        return NtsState(first, begin, begin, first)

    def advance(self, last: Tensor, memory: NtsMemory, state: NtsState) -> tuple[Tensor, NtsState]:
        """One operation (B,) further -> what the next is told from (B, D). START steps onto the first word."""
        here = memory.ids.gather(1, state.at.unsqueeze(1)).squeeze(1)
        writes_nothing = last == self.delete
        written = torch.where(last == self.keep, here, last).masked_fill(writes_nothing, START)
        programmer = Lstm(*self.programmer(self.symbols(last), state.programmer))
        interpreter = Lstm(*self.interpreter(self.symbols(written), state.interpreter))
        interpreter = interpreter.where(~writes_nothing, state.interpreter)
        steps_on = writes_nothing | (last == self.keep) | (last == START)
        at = torch.minimum(state.at + steps_on, memory.end)
        state = NtsState(at, programmer, interpreter, state.added + ~(steps_on | (last == STOP)))
        current = memory.states.gather(1, at[:, None, None].expand(-1, -1, memory.states.shape[-1])).squeeze(1)
        context = self.attend(programmer.hidden, memory.attended)
        seen = [programmer.hidden, context, current, interpreter.hidden, memory.picture, memory.gist]
        return torch.tanh(self.decide(torch.cat(seen, -1))), state

    def step(self, last: Tensor, memory: NtsMemory, state: NtsState) -> tuple[Tensor, NtsState]:
        """Log-probabilities of the next operation; what cannot be done is not said."""
        output, state = self.advance(last, memory, state)
        logits = self.score(output)
        logits[:, [special for special in range(len(SPECIALS)) if special != STOP]] = -torch.inf
        logits[:, self.keep :] = logits[:, self.keep :].masked_fill((state.at == memory.end).unsqueeze(1), -torch.inf)
        words = slice(len(SPECIALS), self.keep)
        full = (state.added >= self.config.added).unsqueeze(1)
        logits[:, words] = logits[:, words].masked_fill(full, -torch.inf)
        return logits.log_softmax(-1), state

    # --- learning and editing ---

    def exercise(self, source: Sequence[int], target: Sequence[int]) -> Exercise:
        program = expert_program(source, target, self.keep, self.delete)
        shown = {"reference": [START, *source, END], "before": [START, *program[:-1]]}
        return Exercise(shown, {"operations": program})

    def answers(
        self, vision: VisionInput, shown: Mapping[str, Tensor], asked: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        memory = self.remember(vision, as_text(shown["reference"]))
        state = self.start(memory)
        outputs = []
        for last in shown["before"].unbind(1):
            output, state = self.advance(last, memory, state)
            outputs.append(output)
        decisions = torch.stack(outputs, 1)[asked["operations"]]
        return {"operations": self.score(self.dropout(decisions))}

    @torch.no_grad()
    def edit(self, vision: VisionInput, captions: Sequence[Sequence[str]]) -> list[Outcome]:
        memory = self.remember(vision, self.read(captions))
        found = search(
            self,
            memory,
            self.start(memory),
            captions=len(captions),
            start=START,
            end=STOP,
            longest=max(map(len, captions)) + self.config.added + 1,
            beams=self.config.beams,
        )
        return [Outcome.edited(self.realise(caption, said)) for caption, said in zip(captions, found, strict=True)]

    def realise(self, caption: Sequence[str], said: Said) -> Trace:
        """Carry out operations; STOP, or their end, keeps the rest."""
        operations: list[Operation] = []
        rest = list(caption)
        for symbol, likely in zip(said.symbols, said.probabilities, strict=False):
            if symbol == self.keep:
                operations.append(Operation(Op.KEEP, rest.pop(0), likely))
            elif symbol == self.delete:
                operations.append(Operation(Op.DELETE, rest.pop(0), likely))
            else:
                operations.append(Operation(Op.ADD, self.vocabulary.words[symbol], likely))
        stopped = said.probabilities[-1] if len(said.probabilities) > len(said.symbols) else None
        operations += [Operation(Op.KEEP, token, stopped) for token in rest]
        script = Script(operations)
        return Trace(tuple(caption), (script,) if script.changes else ())
