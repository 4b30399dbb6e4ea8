from pathlib import Path

import pytest

from capedit.metrics import WordPairs, find_breaks, is_broken
from capedit.metrics.fluency import END, FUNCTION_WORDS, START, bundled_word_pairs


@pytest.mark.parametrize(
    "caption",
    [
        "a man rides a horse",
        "a cat next to a dog on the bed",
        "two dogs in front of a house",
        "the kitchen has a stove and a sink",
        "people standing around",
    ],
)
def test_sound_captions(caption: str) -> None:
    assert find_breaks(caption.split()) == []


@pytest.mark.parametrize(
    ("caption", "breaks"),
    [
        ("a with a on a plate", [1, 3]),
        ("a bathroom with a", [4]),
        ("a red red bus", [2]),
        ("of a table", [0]),
        ("a dog on the the sofa", [4]),
        ("", [0]),
    ],
)
def test_broken_captions_and_where(caption: str, breaks: list[int]) -> None:
    assert find_breaks(caption.split()) == breaks
    assert is_broken(caption.split())


def test_content_words_never_break_however_odd() -> None:
    assert not is_broken(["zebra", "猫", "sofa", "walks"])


def test_probabilities_are_shares_of_the_word_before() -> None:
    captions = [["a", "dog"], ["a", "cat"], ["on", "a", "on"], ["the"]]
    pairs = WordPairs.from_captions(captions, "test")
    assert pairs.captions == 4
    assert pairs.probability == {
        (START, "a"): 0.5,
        (START, "on"): 0.25,
        (START, "the"): 0.25,
        ("a", "on"): 1 / 3,
        ("on", "a"): 0.5,
        ("on", END): 0.5,
        ("the", END): 1.0,
    }


def test_a_table_decides_what_is_rare() -> None:
    pairs = WordPairs("test", 1, {(START, "of"): 0.002, ("of", END): 0.0019})
    assert find_breaks(["of", "dogs"], pairs) == []
    assert find_breaks(["of"], pairs) == [1]


def test_a_table_survives_its_file(tmp_path: Path) -> None:
    pairs = WordPairs.from_captions([["a", "dog"], ["the", "dog"]], "test")
    pairs.save(tmp_path / "pairs.json")
    assert WordPairs.load(tmp_path / "pairs.json") == pairs


@pytest.mark.parametrize("content", ["", "[]", '{"source": "x", "captions": 1}', '{"probability": {"a": 3}}'])
def test_a_damaged_table_names_its_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "pairs.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"pairs\.json"):
        WordPairs.load(path)


def test_the_bundled_table_holds_function_words_only() -> None:
    pairs = bundled_word_pairs()
    assert pairs.captions == 414_113
    assert {previous for previous, _ in pairs.probability} <= FUNCTION_WORDS | {START}
    assert {following for _, following in pairs.probability} <= FUNCTION_WORDS | {END}
    assert all(0 < value <= 1 for value in pairs.probability.values())
    assert len(FUNCTION_WORDS) == 40
