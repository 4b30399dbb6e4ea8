"""Broken rate: how many captions have lost their grammar, judged by pairs of function words.

N-gram scores forgive "a with a on a plate". A caption is broken if two equal words stand side by side, or if somewhere
a function word (or the start) is followed by a function word (or the end) that almost never follows it in COCO
train2014 captions. The empty caption is broken: its start is followed by its end.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from capedit.errors import CapeditError

_FUNCTION_WORDS = """
a an the and or of to in on at with by for from into onto over under near next is are was were be being has have
while that which his her its their some up down as it
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
START, END = "<start>", "<end>"
RARE = 0.002
"""A pair is a break where P(next | previous) is below this."""

_BUNDLED = Path(__file__).parent / "tables" / "word_pairs.json"
_PREVIOUS = FUNCTION_WORDS | {START}
_NEXT = FUNCTION_WORDS | {END}


@dataclass(frozen=True, slots=True)
class WordPairs:
    """P(next | previous) for function words, the start and the end; pairs that are not there have never been seen."""

    source: str
    captions: int
    probability: Mapping[tuple[str, str], float]

    @classmethod
    def from_captions(cls, captions: Iterable[Sequence[str]], source: str) -> "WordPairs":
        """Count tokenised captions."""
        pairs: Counter[tuple[str, str]] = Counter()
        singles: Counter[str] = Counter()
        number = 0
        for tokens in captions:
            number += 1
            padded = [START, *tokens, END]
            singles.update(padded[:-1])
            pairs.update(pairwise(padded))
        return cls(
            source=source,
            captions=number,
            probability={
                (previous, following): times / singles[previous]
                for (previous, following), times in sorted(pairs.items())
                if previous in _PREVIOUS and following in _NEXT
            },
        )

    def save(self, path: Path) -> None:
        """Write JSON: {previous: {next: probability}} under `probability`."""
        nested: dict[str, dict[str, float]] = {}
        for (previous, following), probability in self.probability.items():
            nested.setdefault(previous, {})[following] = float(f"{probability:.4g}")
        content = {"source": self.source, "captions": self.captions, "probability": nested}
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path = _BUNDLED) -> "WordPairs":
        """Read what `save` wrote; the bundled table unless told otherwise."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            probability = {
                (previous, following): float(value)
                for previous, row in content["probability"].items()
                for following, value in row.items()
            }
            return cls(str(content["source"]), int(content["captions"]), probability)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CapeditError(f"{path}: not a table of word pairs ({error!r})") from error


@cache
def bundled_word_pairs() -> WordPairs:
    """The table of COCO train2014 captions that the package brings."""
    return WordPairs.load()


def find_breaks(tokens: Sequence[str], pairs: WordPairs | None = None) -> list[int]:
    """Where a caption is broken: position i stands for the seam before token i, len(tokens) for the end."""
    table = (pairs or bundled_word_pairs()).probability
    return [
        position
        for position, (previous, token) in enumerate(pairwise([START, *tokens, END]))
        if previous == token or (previous in _PREVIOUS and token in _NEXT and table.get((previous, token), 0.0) < RARE)
    ]


def is_broken(tokens: Sequence[str], pairs: WordPairs | None = None) -> bool:
    """Whether a caption has a break."""
    return bool(find_breaks(tokens, pairs))
