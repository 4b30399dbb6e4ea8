"""The whole way, with the bundled parser."""

from __future__ import annotations

from pathlib import Path

import pytest

from capedit.metrics.spice import LABEL, Spice
from capedit.metrics.spice.parser import LONGEST, Parser


@pytest.fixture(scope="module")
def spice(wordnet_folder: Path) -> Spice:
    return Spice(wordnet_folder)


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        (
            "two dogs are playing in the snow",
            {("dog",), ("dog", "two"), ("snow",), ("dog", "play in", "snow")},
        ),
        (
            "a man in a red shirt is riding a bicycle",
            {
                ("man",),
                ("shirt",),
                ("shirt", "red"),
                ("bicycle",),
                ("man", "in", "shirt"),
                ("man", "ride", "bicycle"),
            },
        ),
        ("the woman is tall", {("woman",), ("woman", "tall")}),
    ],
)
def test_what_a_caption_says(spice: Spice, caption: str, expected: set[tuple[str, ...]]) -> None:
    assert set(spice.scene_graph(caption)) == expected


def test_a_caption_equals_itself(spice: Spice) -> None:
    caption = "a man in a red shirt is riding a bicycle"
    assert spice.scores([caption], [[caption]])[0].f == 1.0


def test_case_and_punctuation_do_not_count(spice: Spice) -> None:
    plain = spice.scene_graph("two dogs are playing in the snow")
    assert spice.scene_graph("Two dogs are playing in the snow .") == plain


def test_synonyms_and_several_references(spice: Spice) -> None:
    found = spice.scores(
        ["a man is riding a bike"], [["the woman is tall", "a man is riding a bicycle", "a dog is running"]]
    )[0]
    assert found.p == 1.0
    assert 0 < found.r < 1


def test_a_batch_gives_what_single_captions_give(wordnet_folder: Path) -> None:
    captions = [
        "a dog runs",
        "two men are standing near a big bus",
        "a cat on a sofa",
        "a bird flies",
        "people sitting around a table with food on it",
        "a dog runs",
    ]
    references = [[caption] for caption in reversed(captions)]
    together = Spice(wordnet_folder).scores(captions, references)
    alone = [Spice(wordnet_folder).scores([c], [r])[0] for c, r in zip(captions, references, strict=True)]
    assert together == alone


@pytest.mark.parametrize("caption", ["", " ", ". , !", "雪", "ñandú 🐕 café", "a", "'s", "the of and", "1 2 3"])
def test_odd_captions_have_a_score(spice: Spice, caption: str) -> None:
    for hypothesis, references in [(caption, ["a dog runs"]), ("a dog runs", [caption]), (caption, [caption])]:
        found = spice.scores([hypothesis], [references])[0]
        assert 0 <= found.f <= 1
    assert spice.scores([""], [[caption]])[0].f == 0


def test_no_references_at_all(spice: Spice) -> None:
    assert spice.scores(["a dog runs"], [[]])[0].f == 0
    assert spice.scores([], []) == []


def test_a_very_long_caption(spice: Spice) -> None:
    caption = "a dog is playing with a red ball and " * 1200
    found = spice.scores([caption], [["a dog is playing with a red ball"]])[0]
    assert found.r > 0.5


def test_lists_of_different_lengths_are_refused(spice: Spice) -> None:
    with pytest.raises(ValueError, match="2 hypotheses but 1"):
        spice.scores(["a dog", "a cat"], [["a dog"]])


def test_the_parser_refuses_what_it_cannot_hold() -> None:
    with pytest.raises(ValueError, match=str(LONGEST)):
        Parser().parse([("dog",) * (LONGEST + 1)])


def test_the_label_tells_it_from_the_original(spice: Spice) -> None:
    assert spice.kind == LABEL == "SPICE (capedit)"
