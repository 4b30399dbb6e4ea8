from __future__ import annotations

import pytest

from capedit.metrics.spice.collapse import collapse
from capedit.metrics.spice.matching import ConceptTuple, merged_tuples, score
from capedit.metrics.spice.scene_graph import SceneGraph
from capedit.metrics.spice.tree import Tree
from capedit.metrics.spice.wordnet import WordNet


def scene(adjective: str, noun: str) -> SceneGraph:
    return SceneGraph(collapse(Tree((adjective, noun), ("JJ", "NN"), (2, 0), ("amod", "root"))))


def names(tuples: list[ConceptTuple]) -> set[tuple[str, ...]]:
    return {tuple(slot.name for slot in found) for found in tuples}


def test_synonyms_match_in_every_slot(wordnet: WordNet) -> None:
    ours = merged_tuples([scene("large", "bicycle")], wordnet)
    theirs = merged_tuples([scene("big", "bike")], wordnet)
    assert score(ours, theirs).f == 1.0


def test_half_the_tuples(wordnet: WordNet) -> None:
    ours = merged_tuples([scene("small", "bicycle")], wordnet)
    theirs = merged_tuples([scene("big", "bicycle")], wordnet)
    found = score(ours, theirs)
    assert (found.p, found.r, found.f) == (0.5, 0.5, 0.5)


def test_references_are_merged_by_synonyms(wordnet: WordNet) -> None:
    merged = merged_tuples([scene("big", "bicycle"), scene("large", "bike"), scene("small", "cow")], wordnet)
    assert names(merged) == {("bicycle/bike",), ("bicycle/bike", "big/large"), ("cow",), ("cow", "small")}


def test_a_merged_object_matches_what_either_word_means(wordnet: WordNet) -> None:
    merged = merged_tuples([scene("big", "bicycle"), scene("large", "bike")], wordnet)
    assert score(merged_tuples([scene("big", "motorcycle")], wordnet), merged).f == 1.0
    apart = merged_tuples([scene("big", "bicycle")], wordnet)
    assert score(merged_tuples([scene("big", "motorcycle")], wordnet), apart).f == 0.0


def test_a_word_joins_the_concept_it_shares_most_with(wordnet: WordNet) -> None:
    # "bike" shares one synset with each; the first keeps it. The same word always wins.
    merged = merged_tuples([scene("big", w) for w in ("motorcycle", "bicycle", "bicycle")], wordnet)
    assert {("motorcycle",), ("bicycle",)} <= names(merged)


@pytest.mark.parametrize("side", ["ours", "theirs", "both"])
def test_an_empty_side_scores_zero(wordnet: WordNet, side: str) -> None:
    some = merged_tuples([scene("big", "cow")], wordnet)
    found = score([] if side != "theirs" else some, [] if side != "ours" else some)
    assert (found.f, found.p, found.r) == (0.0, 0.0, 0.0)
