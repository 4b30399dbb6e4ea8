"""Tree -> graph: prepositions move onto the edges, conjuncts share edges, as in collapsed Stanford dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from capedit.metrics.spice.lemmas import lemma
from capedit.metrics.spice.tree import ROOT, Tree

_TWO_WORDS_TEXT = """
across from|along with|alongside of|apart from|as for|as of|as to|aside from|away from|based on|because of|close by
close to|compared to|compared with|due to|except for|far from|followed by|in between|inside of|instead of|near to
next to|off of|out of|outside of|prior to|such as|thanks to|together with|up to
"""
_THREE_WORDS_TEXT = """
by means of|in accordance with|in addition to|in case of|in front of|in lieu of|in place of|in spite of
on account of|on behalf of|on top of|with regard to|with respect to
"""
_QUANTIFIERS_TEXT = """
lot lots couple bunch pair number variety assortment array dozen dozens hundreds thousands handful multitude plethora
range ton tons form type bit some all one each both many few several most two three four five neither none any
"""
_TWO_WORDS = frozenset(_TWO_WORDS_TEXT.strip().replace("\n", "|").split("|"))
_THREE_WORDS = frozenset(_THREE_WORDS_TEXT.strip().replace("\n", "|").split("|"))
_QUANTIFIERS = frozenset(_QUANTIFIERS_TEXT.split())


@dataclass(frozen=True)
class Edge:
    governor: int
    relation: str  # "nsubj", "nmod:on", "nmod:in front of", "conj:and" ...
    dependent: int

    @property
    def kind(self) -> str:
        """The relation without its preposition."""
        return self.relation.split(":", 1)[0] if self.relation.startswith(("nmod:", "conj:")) else self.relation


@dataclass(frozen=True)
class Graph:
    """Words from 1 with tags and lemmas (index 0 is the root), and edges between them."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    lemmas: tuple[str, ...]
    edges: tuple[Edge, ...]
    counted: tuple[tuple[int, int], ...] = ()  # (noun, word that begins its quantifier): "a" of "a lot of dogs"

    @cached_property
    def below(self) -> list[list[Edge]]:
        found: list[list[Edge]] = [[] for _ in self.words]
        for edge in self.edges:
            found[edge.governor].append(edge)
        return found

    @cached_property
    def above(self) -> list[list[Edge]]:
        found: list[list[Edge]] = [[] for _ in self.words]
        for edge in self.edges:
            found[edge.dependent].append(edge)
        return found

    def is_noun(self, word: int) -> bool:
        return self.tags[word].startswith("NN")

    def nouns(self) -> list[int]:
        return [word for word in range(1, len(self.words)) if self.is_noun(word)]

    def dependents(self, word: int, *relations: str) -> list[int]:
        return [edge.dependent for edge in self.below[word] if edge.relation in relations]


def is_multiword_preposition(name: str) -> bool:
    return name in _TWO_WORDS or name in _THREE_WORDS


def collapse(tree: Tree) -> Graph:
    words = ("", *(word.lower() for word in tree.words))
    tags = ("ROOT", *tree.tags)
    edges = [Edge(*arc) for arc in tree.arcs()]
    edges = _three_word_prepositions(edges, words)
    edges = _two_word_prepositions(edges, words)
    edges = _prepositions(edges, words)
    direct = {(edge.governor, edge.dependent) for edge in edges}
    edges = _conjuncts(edges, words, tags)
    edges, counted = _quantifiers(edges, words, direct)
    lemmas = ("", *(lemma(word, tag) for word, tag in zip(words[1:], tags[1:], strict=True)))
    return Graph(words, tags, lemmas, tuple(edges), counted)


def _children(edges: Sequence[Edge], word: int, relation: str) -> list[int]:
    return [edge.dependent for edge in edges if edge.governor == word and edge.relation == relation]


def _three_word_prepositions(edges: list[Edge], words: tuple[str, ...]) -> list[Edge]:
    """stand -nmod-> front (case in) -nmod-> house (case of)  becomes  stand -nmod:in front of-> house."""
    found = list(edges)
    for edge in edges:
        if edge.relation != "nmod":
            continue
        middle, first = edge.dependent, edge.dependent - 1
        if first not in _children(edges, middle, "case") or middle + 1 >= len(words):
            continue
        preposition = " ".join(words[first : middle + 2])
        if preposition not in _THREE_WORDS:
            continue
        for lower in edges:
            if (
                lower.relation == "nmod"
                and lower.governor == middle
                and middle + 1 in _children(edges, lower.dependent, "case")
            ):
                found = [e for e in found if e != lower and e.dependent not in (first, middle, middle + 1)]
                found.append(Edge(edge.governor, f"nmod:{preposition}", lower.dependent))
                found.append(Edge(lower.dependent, "mwe", middle))
                break
    return found


def _two_word_prepositions(edges: list[Edge], words: tuple[str, ...]) -> list[Edge]:
    """sit -advmod-> next -nmod-> dog (case to)  becomes  sit -nmod:next to-> dog."""
    found = list(edges)
    for edge in edges:
        first = edge.dependent
        if edge.relation not in ("advmod", "amod", "dep") or edge.governor == ROOT:
            continue
        if " ".join(words[first : first + 2]) not in _TWO_WORDS:
            continue
        for lower in edges:
            if (
                lower.relation == "nmod"
                and lower.governor == first
                and first + 1 in _children(edges, lower.dependent, "case")
            ):
                found = [e for e in found if e not in (edge, lower) and e.dependent != first + 1]
                found.append(Edge(edge.governor, f"nmod:{' '.join(words[first : first + 2])}", lower.dependent))
                break
    return found


def _prepositions(edges: list[Edge], words: tuple[str, ...]) -> list[Edge]:
    """dog -nmod-> sofa (case on)  becomes  dog -nmod:on-> sofa; "by" of a passive makes an agent."""
    passive = {edge.governor for edge in edges if edge.relation in ("auxpass", "nsubjpass")}
    found = []
    for edge in edges:
        if edge.relation != "nmod":
            found.append(edge)
            continue
        name = preposition(edges, edge.dependent, words)
        if name == "by" and edge.governor in passive:
            name = "agent"
        found.append(Edge(edge.governor, f"nmod:{name}" if name else "nmod", edge.dependent))
    return found


def preposition(edges: Sequence[Edge], word: int, words: tuple[str, ...]) -> str:
    """The preposition before a word, "" if none: the last one, with the word before it where they are a pair."""
    marks = _children(edges, word, "case")
    if not marks:
        return ""
    last = marks[-1]
    pair = " ".join(words[last - 1 : last + 1])
    if pair in _TWO_WORDS and last - 1 in marks + _children(edges, word, "advmod"):
        return pair
    return " ".join(words[m] for m in (last, *_children(edges, last, "mwe")))


def _quantifiers(
    edges: list[Edge], words: tuple[str, ...], direct: set[tuple[int, int]]
) -> tuple[list[Edge], tuple[tuple[int, int], ...]]:
    """see -dobj-> lot -nmod:of-> dogs  becomes  see -dobj-> dogs."""
    counted = []
    for edge in list(edges):
        quantifier, noun = edge.governor, edge.dependent
        if edge.relation != "nmod:of" or words[quantifier] not in _QUANTIFIERS or (quantifier, noun) not in direct:
            continue
        counted.append((noun, max(quantifier - 1, 1)))
        edges = [Edge(e.governor, e.relation, noun) if e.dependent == quantifier else e for e in edges if e != edge]
    return edges, tuple(counted)


def _conjuncts(edges: list[Edge], words: tuple[str, ...], tags: tuple[str, ...]) -> list[Edge]:
    """The later conjunct takes the first one's edges from above; a verb also its subject."""
    found = []
    for edge in edges:
        if edge.relation == "conj":
            joining = _children(edges, edge.governor, "cc")
            before = [c for c in joining if c < edge.dependent]
            word = words[(before or joining or [0])[-1]]
            edge = Edge(edge.governor, f"conj:{word}" if word else "conj", edge.dependent)
        found.append(edge)
    shared = []
    for edge in found:
        if edge.kind != "conj":
            continue
        first, later = edge.governor, edge.dependent
        shared += [
            Edge(upper.governor, upper.relation, later)
            for upper in found
            if upper.dependent == first and upper.governor not in (ROOT, later) and upper.kind != "conj"
        ]
        if tags[later].startswith(("VB", "JJ")):
            subjects = ("nsubj", "nsubjpass", "csubj")
            if not any(e.governor == later and e.relation in subjects for e in found):
                shared += [
                    Edge(later, e.relation, e.dependent)
                    for e in found
                    if e.governor == first and e.relation in subjects
                ]
    return found + [edge for edge in shared if edge not in found]
