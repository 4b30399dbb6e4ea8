from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from capedit.models.search import rows, search

START, END, A, B, C = range(5)


class Told(NamedTuple):
    """What has been said so far, as a number to base five."""

    said: Tensor


class Table:
    """A speaker whose probabilities are written down: by caption and what was said before."""

    def __init__(self, *captions: dict[tuple[int, ...], dict[int, float]]) -> None:
        self.captions = captions
        self.steps = 0

    def step(self, last: Tensor, memory: Tensor, state: Told) -> tuple[Tensor, Told]:
        self.steps += 1
        said = torch.where(last == START, state.said, state.said * 5 + last)
        likely = torch.zeros(len(last), 5)
        for row, (caption, number) in enumerate(zip(memory.tolist(), said.tolist(), strict=True)):
            for symbol, p in self.captions[caption].get(_digits(number), {END: 1.0}).items():
                likely[row, symbol] = p
        return likely.log(), Told(said)


def _digits(number: int) -> tuple[int, ...]:
    return (*_digits(number // 5), number % 5) if number else ()


# The likeliest first word leads to nothing likely: A (0.6) then 0.4 at best, B (0.4) then 0.9.
TRAP = {(): {A: 0.6, B: 0.4}, (A,): {A: 0.3, B: 0.3, C: 0.4}, (B,): {C: 0.9, A: 0.1}}
PLAIN = {(): {C: 0.9, A: 0.1}, (C,): {END: 0.8, B: 0.2}}


def find(*captions: dict[tuple[int, ...], dict[int, float]], beams: int, longest: int = 8) -> list[list[int]]:
    number = len(captions)
    state = Told(torch.zeros(number, dtype=torch.long))
    speaker = Table(*captions)
    found = search(
        speaker, torch.arange(number), state, captions=number, start=START, end=END, longest=longest, beams=beams
    )
    return [said.symbols for said in found]


def test_beam_search_beats_greedy() -> None:
    assert find(TRAP, beams=1) == [[A, C]]  # 0.24
    assert find(TRAP, beams=2) == [[B, C]]  # 0.36


@pytest.mark.parametrize("beams", [1, 2, 5])
def test_captions_do_not_disturb_each_other(beams: int) -> None:
    together = find(TRAP, PLAIN, TRAP, beams=beams)
    assert together == [*find(TRAP, beams=beams), *find(PLAIN, beams=beams), *find(TRAP, beams=beams)]


def test_probabilities_are_those_of_the_symbols() -> None:
    (said,) = search(
        Table(TRAP),
        torch.zeros(1, dtype=torch.long),
        Told(torch.zeros(1, dtype=torch.long)),
        captions=1,
        start=START,
        end=END,
        longest=8,
        beams=3,
    )
    assert said.symbols == [B, C]
    assert said.probabilities == pytest.approx([0.4, 0.9, 1.0])  # the last is that of the end


def test_a_sequence_without_end_is_cut() -> None:
    endless = {(A,) * length: {A: 0.7, B: 0.3} for length in range(9)}
    assert find(endless, beams=1, longest=4) == [[A] * 4]


def test_a_sequence_that_ended_goes_before_a_likelier_one_that_did_not() -> None:
    rambling = {(): {A: 0.7, B: 0.3}, (A,): {A: 1.0}, (A, A): {A: 1.0}, (A, A, A): {A: 1.0}}
    assert find(rambling, beams=2, longest=3) == [[B]]


def test_the_search_ends_with_the_captions() -> None:
    speaker = Table(PLAIN)
    zero = torch.zeros(1, dtype=torch.long)
    search(speaker, zero, Told(zero), captions=1, start=START, end=END, longest=50)
    assert speaker.steps == 2


def test_rows_reach_into_nested_states() -> None:
    class Outer(NamedTuple):
        one: Told
        other: Tensor | None

    picked = rows(Outer(Told(torch.tensor([10, 20, 30])), None), torch.tensor([2, 0]))
    assert picked.one.said.tolist() == [30, 10]
    assert picked.other is None
