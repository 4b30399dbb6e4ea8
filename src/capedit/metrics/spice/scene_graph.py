"""Graph -> scene graph: objects, their attributes and the relations between them, as words of the caption."""

from __future__ import annotations

from collections.abc import Iterator

from capedit.metrics.spice.collapse import Edge, Graph, is_multiword_preposition, preposition

PLURAL = ("NNS", "NNPS")
_SINGULAR_PRONOUNS = ("it", "its", "he", "him", "his", "she", "her", "hers", "himself", "herself", "itself")
_NO_PREPOSITION = ("nmod", "nmod:agent", "nmod:poss")


class SceneGraph:
    """What one caption says. Objects are numbered by their word's place in the caption; names are lemmas."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        compounds = {edge.dependent for edge in graph.edges if edge.relation == "compound"}
        self.objects: dict[int, str] = {word: graph.lemmas[word] for word in graph.nouns() if word not in compounds}
        self.attributes: list[tuple[int, str]] = []
        self.relations: list[tuple[int, str, int]] = []
        self._pronouns = resolve_pronouns(graph)
        # "front -of-> house" of "is in front of a house": told by the subject instead
        self._places = {
            (edge.governor, thing)
            for edge in graph.edges
            if edge.relation == "nsubj"
            for _, thing in places_of(graph, edge.governor)
        }
        for noun, first in graph.counted:
            if graph.tags[noun] in PLURAL:
                self._describe(noun, "a" if graph.words[first] == "an" else graph.lemmas[first])
        for edge in graph.edges:
            self._read(edge)

    def _read(self, edge: Edge) -> None:
        graph, (governor, dependent) = self._graph, (edge.governor, edge.dependent)
        match edge.relation:
            case "compound" | "amod":
                self._describe(governor, graph.lemmas[dependent])
            case "nummod" if graph.tags[governor] in PLURAL:
                self._describe(governor, graph.lemmas[dependent])
            case "nmod:poss":
                self._relate(dependent, "have", governor)
            case "acl":
                for name, thing in objects_of(graph, dependent):
                    self._relate(governor, name, thing)
                for agent in graph.dependents(dependent, "nmod:agent"):
                    self._relate(governor, graph.lemmas[dependent], agent)
            case "nsubj":
                self._read_subject(governor, dependent)
            case "nsubjpass":
                for agent in graph.dependents(governor, "nmod:agent"):
                    self._relate(agent, graph.lemmas[governor], dependent)
            case relation if edge.kind == "nmod" and relation not in _NO_PREPOSITION and graph.is_noun(governor):
                if (governor, dependent) not in self._places:
                    self._relate(governor, relation.removeprefix("nmod:"), dependent)

    def _read_subject(self, predicate: int, subject: int) -> None:
        graph = self._graph
        place = next(places_of(graph, predicate), None)
        if place:
            self._relate(subject, *place)
        elif graph.is_noun(predicate) and (name := preposition(graph.edges, predicate, graph.words)):
            self._relate(subject, name, predicate)
        elif graph.tags[predicate].startswith(("NN", "JJ")):
            self._describe(subject, graph.lemmas[predicate])
        else:
            related = [self._relate(subject, name, thing) for name, thing in objects_of(graph, predicate)]
            if not any(related) and graph.lemmas[predicate] != "be":
                self._describe(subject, graph.lemmas[predicate])

    def _noun(self, word: int) -> int | None:
        """The noun a word is or, being a pronoun, stands for."""
        word = self._pronouns.get(word, word)
        return word if self._graph.is_noun(word) else None

    def _add_object(self, noun: int) -> None:
        """A compound's modifier becomes an object when something is said of it."""
        self.objects.setdefault(noun, self._graph.lemmas[noun])

    def _describe(self, word: int, attribute: str) -> None:
        noun = self._noun(word)
        if noun is not None:
            self._add_object(noun)
            self.attributes.append((noun, attribute))

    def _relate(self, subject: int, name: str, thing: int) -> bool:
        """Whether both sides are objects, so that the relation counts."""
        first, second = self._noun(subject), self._noun(thing)
        if first is None or second is None:
            return False
        self._add_object(first)
        self._add_object(second)
        self.relations.append((first, name, second))
        return True


def objects_of(graph: Graph, verb: int) -> Iterator[tuple[str, int]]:
    """("hold", ball) or ("stand up on", field) for each object, plain or after a preposition, of a verb."""
    name = " ".join([graph.lemmas[verb], *(graph.words[p] for p in graph.dependents(verb, "compound:prt"))])
    for edge in graph.below[verb]:
        if edge.relation in ("dobj", "iobj"):
            yield name, edge.dependent
        elif edge.kind == "nmod" and edge.relation not in _NO_PREPOSITION:
            yield f"{name} {edge.relation.removeprefix('nmod:')}", edge.dependent


def places_of(graph: Graph, predicate: int) -> Iterator[tuple[str, int]]:
    """("in front of", house) of "is in front of a house", ("next to", dog) of "is next to a dog"."""
    marks = [graph.words[m] for m in graph.dependents(predicate, "case")]
    for edge in graph.below[predicate]:
        if edge.kind == "nmod":
            name = " ".join([*marks, graph.words[predicate], edge.relation.removeprefix("nmod:")])
            if is_multiword_preposition(name):
                yield name, edge.dependent


def resolve_pronouns(graph: Graph) -> dict[int, int]:
    """The noun each pronoun but the first word stands for: the first, breadth first from the root, that fits in
    number; none if that one comes later in the caption."""
    order = [0]
    for word in order:
        order += [edge.dependent for edge in graph.below[word] if edge.dependent not in order]
    found = {}
    for word, tag in enumerate(graph.tags):
        if tag not in ("PRP", "PRP$") or word == 1:
            continue
        singular = graph.words[word] in _SINGULAR_PRONOUNS
        fitting = (c for c in order if graph.is_noun(c) and not (singular and graph.tags[c] in PLURAL))
        candidate = next(fitting, word)
        if candidate < word:
            found[word] = candidate
    return found
