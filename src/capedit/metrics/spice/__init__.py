"""SPICE without Java: scene graphs from a bundled parser, compared with WordNet synonyms.

Not bit-identical to the Java original, hence its own name in every output. How near it comes:
`benchmarks/spice.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from capedit.metrics.spice.collapse import collapse
from capedit.metrics.spice.matching import ConceptTuple, SpiceScore, merged_tuples, score
from capedit.metrics.spice.parser import LONGEST, Parser, Tokens
from capedit.metrics.spice.scene_graph import SceneGraph
from capedit.metrics.spice.wordnet import WordNet, WordNetMissingError

__all__ = ["LABEL", "Spice", "SpiceScore", "WordNetMissingError"]

LABEL = "SPICE (capedit)"

_CHUNK = 4096  # instances parsed together
_REMEMBERED = 100_000  # pieces of captions whose scene graphs are kept


class Spice:
    """Scores captions by the objects, attributes and relations they name.

    Captions are tokenised strings; case and tokens without a letter or digit are ignored. A caption beyond
    LONGEST words is read in pieces of that many. The files come with the package and its `spice` extra:
    nothing is fetched at run time. `wordnet` names another folder of WordNet's index files.
    """

    kind = LABEL

    def __init__(self, wordnet: Path | None = None, threads: int = 1) -> None:
        self._wordnet = WordNet(wordnet)
        self._parser = Parser(threads=threads)
        self._scenes: dict[Tokens, SceneGraph] = {}

    def scores(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[SpiceScore]:
        """One score for each hypothesis against all its references, whose graphs are merged into one.

        0 where the hypothesis or all references are empty or name nothing.
        """
        if len(hypotheses) != len(references):
            raise ValueError(f"{len(hypotheses)} hypotheses but {len(references)} lists of references")
        found = []
        for start in range(0, len(hypotheses), _CHUNK):
            ours, theirs = hypotheses[start : start + _CHUNK], references[start : start + _CHUNK]
            self._read(chain(ours, *theirs))
            found += [
                score(self._tuples([caption]), self._tuples(captions))
                for caption, captions in zip(ours, theirs, strict=True)
            ]
        return found

    def scene_graph(self, caption: str) -> list[tuple[str, ...]]:
        """What the caption says, for people to look at: (object,), (object, attribute), (object, relation, object)."""
        self._read([caption])
        return sorted(tuple(slot.name for slot in found) for found in self._tuples([caption]))

    def _read(self, captions: Iterable[str]) -> None:
        if len(self._scenes) >= _REMEMBERED:
            self._scenes.clear()
        new = (piece for caption in captions for piece in pieces(caption) if piece not in self._scenes)
        for piece, tree in self._parser.parse(new).items():
            self._scenes[piece] = SceneGraph(collapse(tree))

    def _tuples(self, captions: Sequence[str]) -> list[ConceptTuple]:
        return merged_tuples((self._scenes[piece] for caption in captions for piece in pieces(caption)), self._wordnet)


def pieces(caption: str) -> list[Tokens]:
    """The caption's words, in runs the parser takes; none for an empty caption."""
    words = [word for word in caption.lower().split() if any(map(str.isalnum, word))]
    return [tuple(words[start : start + LONGEST]) for start in range(0, len(words), LONGEST)]
