"""What systems share that write a caption word by word: teacher forcing when they learn, search when they edit."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from capedit.models.attention_lstm import WriterConfig
from capedit.models.search import search
from capedit.models.system import Exercise, Outcome, System, as_text
from capedit.models.vilbert import TextInput, VisionInput
from capedit.models.vocabulary import END, SPECIALS, START, Vocabulary

Memory = TypeVar("Memory")
State = TypeVar("State")


class Writer(System, Generic[Memory, State]):
    """Writes with one voice or with several; each has a head and a loss, and the caption is written by their mean."""

    config: WriterConfig
    voices: Sequence[str] = ("words",)

    def __init__(self, config: WriterConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config, self.vocabulary = config, vocabulary
        self.heads = nn.ModuleDict({voice: nn.Linear(config.width, len(vocabulary)) for voice in self.voices})
        self.dropout = nn.Dropout(config.dropout)

    @abstractmethod
    def remember(self, vision: VisionInput, reference: TextInput) -> Memory:
        """All that stays the same while a caption is written."""

    @abstractmethod
    def start(self, memory: Memory) -> State:
        """Before the first word."""

    @abstractmethod
    def advance(self, words: Tensor, memory: Memory, state: State) -> tuple[dict[str, Tensor], State]:
        """One word (B,) further: what each voice makes of it (B, D)."""

    def exercise(self, source: Sequence[int], target: Sequence[int]) -> Exercise:
        """Say the next word of the target, given all before it."""
        shown = {"reference": [START, *source, END], "before": [START, *target]}
        return Exercise(shown, {voice: [*target, END] for voice in self.voices})

    def answers(
        self, vision: VisionInput, shown: Mapping[str, Tensor], asked: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        memory = self.remember(vision, as_text(shown["reference"]))
        state = self.start(memory)
        said: dict[str, list[Tensor]] = {voice: [] for voice in self.voices}
        for words in shown["before"].unbind(1):
            outputs, state = self.advance(words, memory, state)
            for voice, output in outputs.items():
                said[voice].append(output)
        stacked = {voice: torch.stack(outputs, 1)[asked[voice]] for voice, outputs in said.items()}
        return {voice: self.heads[voice](self.dropout(outputs)) for voice, outputs in stacked.items()}

    def step(self, last: Tensor, memory: Memory, state: State) -> tuple[Tensor, State]:
        """Log-probabilities of the next word; sentinels and unknown words are never written."""
        outputs, state = self.advance(last, memory, state)
        likely = torch.stack([self.heads[voice](output).softmax(-1) for voice, output in outputs.items()]).mean(0)
        likely[:, [special for special in range(len(SPECIALS)) if special != END]] = 0
        return likely.log(), state

    @torch.no_grad()
    def edit(self, vision: VisionInput, captions: Sequence[Sequence[str]]) -> list[Outcome]:
        memory = self.remember(vision, self.read(captions))
        found = search(
            self,
            memory,
            self.start(memory),
            captions=len(captions),
            start=START,
            end=END,
            longest=self.config.longest,
            beams=self.config.beams,
        )
        written = [[self.vocabulary.words[symbol] for symbol in said.symbols] for said in found]
        return [Outcome.rewritten(caption, tokens) for caption, tokens in zip(captions, written, strict=True)]
