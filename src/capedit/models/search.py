"""Greedy and beam search for every network that says one symbol after another."""

from typing import Any, NamedTuple, Protocol, TypeVar, cast

import torch
from torch import Tensor

_Tree = TypeVar("_Tree")
Memory = TypeVar("Memory", contravariant=True)
State = TypeVar("State")


class Speaker(Protocol[Memory, State]):
    """What is searched. `memory` is fixed for a caption, `state` changes with every symbol.

    Both are tensors, or named tuples of them, whose first dimension counts captions.
    """

    def step(self, last: Tensor, memory: Memory, state: State) -> tuple[Tensor, State]:
        """The last symbols (N,) -> log-probabilities of the next (N, symbols); -inf forbids one."""


class Said(NamedTuple):
    """A sequence that was found, without its end, and how likely each of its symbols was (the end's comes last)."""

    symbols: list[int]
    probabilities: list[float]


@torch.no_grad()
def search(
    speaker: Speaker[Memory, State],
    memory: Memory,
    state: State,
    *,
    captions: int,
    start: int,
    end: int,
    longest: int,
    beams: int = 1,
) -> list[Said]:
    """The likeliest sequence for each of so many captions, among those that `beams` hypotheses find.

    One beam is greedy search. Scores are sums of log-probabilities without a bonus for length, as in the published
    systems. A sequence that has not ended after `longest` symbols is cut there, if no other has ended.
    """
    first = torch.arange(captions).repeat_interleave(beams)
    memory, state = rows(memory, first), rows(state, first)
    offsets = (torch.arange(captions) * beams).unsqueeze(1)
    last = torch.full((captions * beams,), start)
    scores = torch.full((captions, beams), -torch.inf)
    scores[:, 0] = 0  # all hypotheses are the same at first: only one of them may speak
    ended = torch.zeros(captions, beams, dtype=torch.bool)
    symbols = torch.empty(captions, beams, 0, dtype=torch.long)
    gains = torch.empty(captions, beams, 0)
    for _ in range(longest):
        found, state = speaker.step(last, memory, state)
        found = found.view(captions, beams, -1).masked_fill(ended.unsqueeze(-1), -torch.inf)
        found[..., end] = found[..., end].masked_fill(ended, 0.0)  # what has ended stays as it is
        scores, best = (scores.unsqueeze(-1) + found).flatten(1).topk(beams, dim=1)  # (captions, beams)
        beam, symbol = best // found.shape[-1], best % found.shape[-1]
        state = rows(state, (offsets + beam).flatten())
        gain = found.flatten(1).gather(1, best)
        symbols = torch.cat([_pick(symbols, beam), symbol.unsqueeze(-1)], -1)
        gains = torch.cat([_pick(gains, beam), gain.unsqueeze(-1)], -1)
        ended = ended.gather(1, beam) | (symbol == end)
        last = symbol.flatten()
        if ended[:, 0].all():  # scores only fall, so nothing can overtake a first that has ended
            break
    winner = torch.where(ended, scores, scores - 1e9).argmax(1)  # one that has ended, if there is one
    return [
        _said(symbols[row, at].tolist(), gains[row, at].exp().tolist(), end) for row, at in enumerate(winner.tolist())
    ]


def rows(tree: _Tree, index: Tensor) -> _Tree:
    """These rows of a tensor, or of all tensors in a named tuple; None stays None."""
    if tree is None or isinstance(tree, Tensor):
        return cast(_Tree, None if tree is None else tree[index])
    parts = cast(tuple[Any, ...], tree)
    return type(tree)(*(rows(part, index) for part in parts))


def _pick(sequences: Tensor, beam: Tensor) -> Tensor:
    return sequences.gather(1, beam.unsqueeze(-1).expand(-1, -1, sequences.shape[-1]))


def _said(symbols: list[int], probabilities: list[float], end: int) -> Said:
    length = symbols.index(end) if end in symbols else len(symbols)
    return Said(symbols[:length], probabilities[: length + 1])
