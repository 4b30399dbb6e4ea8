"""Clashes: neighbours that almost never stand together, though both words are common.

The broken rate looks at pairs of function words only, and so passes "a toilet with a sitting in a room". A pair of a
function word (or start or end) and any other word clashes if it is seen far less often in COCO train2014 captions than
its two words would meet by chance. Some 1 % of true captions have a clash. Decoding closes such seams in what it edits.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from capedit.errors import CapeditError
from capedit.metrics.fluency import END, FUNCTION_WORDS, START, find_breaks

EXPECTED = 20.0
"""A pair must be expected so often by chance before its absence means something."""
SHARE = 0.03
"""A pair clashes if it is seen less than this share of what chance would give."""

_BUNDLED = Path(__file__).parent / "tables" / "clashes.json"
_FUNCTION = FUNCTION_WORDS | {START, END}


@dataclass(frozen=True, slots=True)
class Clashes:
    """Pairs (previous, next) that should not stand side by side."""

    source: str
    captions: int
    pairs: frozenset[tuple[str, str]]

    @classmethod
    def from_captions(cls, captions: Iterable[Sequence[str]], source: str) -> "Clashes":
        """Count tokenised captions."""
        seen: Counter[tuple[str, str]] = Counter()
        number = 0
        for tokens in captions:
            number += 1
            seen.update(pairwise([START, *tokens, END]))
        before, after = Counter[str](), Counter[str]()
        for (previous, following), times in seen.items():
            before[previous] += times
            after[following] += times
        total = seen.total()
        found = frozenset(
            (previous, following)
            for previous, following in _candidates(before, after)
            if (chance := before[previous] * after[following] / total) >= EXPECTED
            and seen[previous, following] < SHARE * chance
        )
        return cls(source, number, found)

    def save(self, path: Path) -> None:
        """Write JSON: {previous: "next next ..."} under `pairs`."""
        nested: dict[str, list[str]] = {}
        for previous, following in sorted(self.pairs):
            nested.setdefault(previous, []).append(following)
        told = {previous: " ".join(words) for previous, words in nested.items()}
        content = {"source": self.source, "captions": self.captions, "pairs": told}
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path = _BUNDLED) -> "Clashes":
        """Read what `save` wrote; the bundled table unless told otherwise."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            pairs = frozenset((previous, word) for previous, told in content["pairs"].items() for word in told.split())
            return cls(str(content["source"]), int(content["captions"]), pairs)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CapeditError(f"{path}: not a table of clashes ({error!r})") from error


def _candidates(before: Counter[str], after: Counter[str]) -> Iterable[tuple[str, str]]:
    """Every pair of a function word and another word, either way round."""
    for function in _FUNCTION:
        for word in after:
            if word not in _FUNCTION and function in before:
                yield function, word
        for word in before:
            if word not in _FUNCTION and function in after:
                yield word, function


@cache
def bundled_clashes() -> Clashes:
    """The table of COCO train2014 captions that the package brings."""
    return Clashes.load()


def find_clashes(tokens: Sequence[str], clashes: Clashes | None = None) -> list[int]:
    """Where neighbours clash: position i stands for the seam before token i, len(tokens) for the end."""
    pairs = (clashes or bundled_clashes()).pairs
    return [place for place, pair in enumerate(pairwise([START, *tokens, END])) if pair in pairs]


def find_open_seams(tokens: Sequence[str]) -> list[int]:
    """Where a caption is broken or clashes: what an editor must not leave behind."""
    return sorted({*find_breaks(tokens), *find_clashes(tokens)})
