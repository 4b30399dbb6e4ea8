"""Scene graphs -> tuples of concepts -> precision, recall and F: words that share a synset count as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from capedit.metrics.spice.scene_graph import SceneGraph
from capedit.metrics.spice.wordnet import Synsets, WordNet


@dataclass(frozen=True)
class SpiceScore:
    """F, precision and recall of one caption, 0 to 1; all 0 where either side has no tuple."""

    f: float
    p: float
    r: float


@dataclass
class Concept:
    """A word, or several that mean the same."""

    words: list[str]
    synsets: Synsets

    @property
    def name(self) -> str:
        return "/".join(self.words)

    def overlap(self, word: str, synsets: Synsets) -> float:
        """How much a word means the same as this: 0 nothing, infinite for the same word."""
        return float("inf") if word in self.words else len(self.synsets & synsets)

    def matches(self, other: Concept) -> bool:
        return not self.synsets.isdisjoint(other.synsets) or any(word in other.words for word in self.words)


ConceptTuple = tuple[Concept, ...]


def merge_into(concepts: list[Concept], word: str, wordnet: WordNet) -> int:
    """Put a word to the concept it overlaps most, or behind all as a new one; returns the place."""
    synsets = wordnet[word]
    place, most = -1, 0.0
    for i, concept in enumerate(concepts):
        overlap = concept.overlap(word, synsets)
        if overlap > most:
            place, most = i, overlap
    if place < 0:
        concepts.append(Concept([word], synsets))
        return len(concepts) - 1
    if word not in concepts[place].words:
        concepts[place].words.append(word)
        concepts[place].synsets |= synsets
    return place


@dataclass
class MergedGraph:
    """Scene graphs of one or more captions of an image, synonyms merged."""

    wordnet: WordNet
    objects: list[Concept] = field(default_factory=list)
    attributes: dict[int, list[Concept]] = field(default_factory=dict)
    relations: dict[tuple[int, int], list[Concept]] = field(default_factory=dict)

    def add(self, scene: SceneGraph) -> None:
        place = {node: merge_into(self.objects, name, self.wordnet) for node, name in scene.objects.items()}
        for node, value in scene.attributes:
            merge_into(self.attributes.setdefault(place[node], []), value, self.wordnet)
        for subject, name, thing in scene.relations:
            between = self.relations.setdefault((place[subject], place[thing]), [])
            merge_into(between, name.removeprefix("be "), self.wordnet)

    def tuples(self) -> list[ConceptTuple]:
        objects = self.objects
        found: list[ConceptTuple] = [(concept,) for concept in objects]
        found += [(objects[i], value) for i, values in self.attributes.items() for value in values]
        found += [(objects[i], name, objects[j]) for (i, j), names in self.relations.items() for name in names]
        return found


def merged_tuples(scenes: Iterable[SceneGraph], wordnet: WordNet) -> list[ConceptTuple]:
    graph = MergedGraph(wordnet)
    for scene in scenes:
        graph.add(scene)
    return graph.tuples()


def score(hypothesis: Sequence[ConceptTuple], references: Sequence[ConceptTuple]) -> SpiceScore:
    """A hypothesis tuple counts once if some reference tuple of its length matches it slot by slot."""
    matched = sum(any(_same(ours, theirs) for theirs in references) for ours in hypothesis)
    if not matched:
        return SpiceScore(0.0, 0.0, 0.0)
    p, r = matched / len(hypothesis), matched / len(references)
    return SpiceScore(2 * p * r / (p + r), p, r)


def _same(ours: ConceptTuple, theirs: ConceptTuple) -> bool:
    return len(ours) == len(theirs) and all(a.matches(b) for a, b in zip(ours, theirs, strict=True))
