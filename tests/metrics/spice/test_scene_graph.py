"""The rules, on trees written out by hand."""

from __future__ import annotations

import pytest

from capedit.metrics.spice.collapse import collapse
from capedit.metrics.spice.lemmas import lemma
from capedit.metrics.spice.scene_graph import SceneGraph
from capedit.metrics.spice.tree import Tree


def tree(text: str) -> Tree:
    """From "word/TAG/head/relation" items."""
    words, tags, heads, relations = zip(*(item.rsplit("/", 3) for item in text.split()), strict=True)
    return Tree(words, tags, tuple(map(int, heads)), relations)


def tuples(text: str) -> set[tuple[str, ...]]:
    scene = SceneGraph(collapse(tree(text)))
    return {
        *((name,) for name in scene.objects.values()),
        *((scene.objects[node], value) for node, value in scene.attributes),
        *((scene.objects[a], name, scene.objects[b]) for a, name, b in scene.relations),
    }


def case(name: str, text: str, *expected: tuple[str, ...]) -> object:
    return pytest.param(text, set(expected), id=name)


CASES = [
    case(
        "subject, verb, object; adjective",
        "a/DT/3/det young/JJ/3/amod man/NN/4/nsubj holds/VBZ/0/root doughnuts/NNS/4/dobj",
        ("man",),
        ("doughnut",),
        ("man", "young"),
        ("man", "hold", "doughnut"),
    ),
    case(
        "compound read from a fragment",
        "a/DT/3/det man/NN/3/compound holding/NN/0/root an/DT/5/det umbrella/NN/3/dobj",
        ("holding",),
        ("umbrella",),
        ("holding", "man"),
    ),
    case(
        "participle with a preposition and a particle",
        "a/DT/2/det woman/NN/0/root sitting/VBG/2/acl down/RP/3/compound:prt at/IN/7/case a/DT/7/det table/NN/3/nmod",
        ("woman",),
        ("table",),
        ("woman", "sit down at", "table"),
    ),
    case(
        "preposition of three words",
        "dogs/NNS/2/nsubj sit/VBP/0/root on/IN/4/case top/NN/2/nmod of/IN/7/case a/DT/7/det car/NN/4/nmod",
        ("dog",),
        ("top",),
        ("car",),
        ("dog", "sit on top of", "car"),
    ),
    case(
        "preposition of two words",
        "an/DT/2/det umbrella/NN/0/root next/JJ/2/advmod to/TO/6/case a/DT/6/det herd/NN/3/nmod",
        ("umbrella",),
        ("herd",),
        ("umbrella", "next to", "herd"),
    ),
    case(
        "being next to something",
        "the/DT/2/det sink/NN/4/nsubj is/VBZ/4/cop next/JJ/0/root to/TO/7/case a/DT/7/det tub/NN/4/nmod",
        ("sink",),
        ("tub",),
        ("sink", "next to", "tub"),
    ),
    case(
        "being somewhere",
        "a/DT/2/det cat/NN/5/nsubj is/VBZ/5/cop on/IN/5/case sofas/NNS/0/root",
        ("cat",),
        ("sofa",),
        ("cat", "on", "sofa"),
    ),
    case(
        "predicate adjectives, joined",
        "the/DT/2/det ball/NN/4/nsubj is/VBZ/4/cop red/JJ/0/root and/CC/4/cc white/JJ/4/conj",
        ("ball",),
        ("ball", "red"),
        ("ball", "white"),
    ),
    case(
        "being in front of something",
        "a/DT/2/det man/NN/5/nsubj is/VBZ/5/cop in/IN/5/case front/NN/0/root of/IN/8/case a/DT/8/det bus/NN/5/nmod",
        ("man",),
        ("front",),
        ("bus",),
        ("man", "in front of", "bus"),
    ),
    case("there is", "there/EX/2/expl is/VBZ/0/root a/DT/4/det dog/NN/2/nsubj", ("dog",)),
    case(
        "verb without an object; a count",
        "two/CD/2/nummod dogs/NNS/3/nsubj sleep/VBP/0/root",
        ("dog",),
        ("dog", "two"),
        ("dog", "sleep"),
    ),
    case("a count before a singular", "one/CD/2/nummod dog/NN/0/root", ("dog",)),
    case(
        "conjuncts share subject and preposition",
        "men/NNS/2/nsubj run/VBP/0/root and/CC/2/cc jump/VBP/2/conj in/IN/6/case parks/NNS/2/nmod "
        "and/CC/6/cc streets/NNS/6/conj",
        ("man",),
        ("park",),
        ("street",),
        ("man", "run in", "park"),
        ("man", "run in", "street"),
        ("man", "jump"),
    ),
    case(
        "passive with an agent",
        "a/DT/2/det ball/NN/4/nsubjpass is/VBZ/4/auxpass thrown/VBN/0/root by/IN/7/case a/DT/7/det boy/NN/4/nmod",
        ("ball",),
        ("boy",),
        ("boy", "throw", "ball"),
    ),
    case(
        "possessive pronoun",
        "a/DT/2/det girl/NN/3/nsubj brushes/VBZ/0/root her/PRP$/5/nmod:poss teeth/NNS/3/dobj",
        ("girl",),
        ("tooth",),
        ("girl", "brush", "tooth"),
        ("girl", "have", "tooth"),
    ),
    case(
        "singular pronoun passes over a plural",
        "dogs/NNS/2/nsubj find/VBP/0/root a/DT/4/det bone/NN/2/dobj with/IN/7/case its/PRP$/7/nmod:poss wrap/NN/4/nmod",
        ("dog",),
        ("bone",),
        ("wrap",),
        ("dog", "find", "bone"),
        ("bone", "with", "wrap"),
        ("bone", "have", "wrap"),
    ),
    case(
        "quantifier",
        "a/DT/2/det lot/NN/5/nsubj of/IN/4/case dogs/NNS/2/nmod chase/VBP/0/root cats/NNS/5/dobj",
        ("lot",),
        ("dog",),
        ("cat",),
        ("dog", "a"),
        ("dog", "chase", "cat"),
    ),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_tuples(text: str, expected: set[tuple[str, ...]]) -> None:
    assert tuples(text) == expected


@pytest.mark.parametrize(
    ("word", "tag", "base"),
    [
        ("doughnuts", "NNS", "doughnut"),
        ("women", "NNS", "woman"),
        ("people", "NNS", "people"),
        ("shorts", "NNS", "shorts"),
        ("bus", "NN", "bus"),
        ("tennis", "NN", "tennis"),
        ("policemen", "NN", "policeman"),
        ("riding", "VBG", "ride"),
        ("sat", "VBD", "sit"),
        ("larger", "JJR", "larger"),
        ("wii", "NN", "wius"),  # the original's slip, kept so that the scores agree
    ],
)
def test_lemma(word: str, tag: str, base: str) -> None:
    assert lemma(word, tag) == base
