from __future__ import annotations

from pathlib import Path

import pytest

from capedit.metrics.spice.wordnet import WordNet, WordNetMissingError


@pytest.mark.parametrize(
    ("word", "stems"),
    [
        ("bicycles", ("bicycle",)),
        ("riding", ("ride",)),
        ("geese", ("goose",)),
        ("running", ("run",)),
        ("clothing", ("clothe",)),  # -e is tried before nothing, so it is not "cloth"
        ("player", ("player",)),  # listed as irregular, so it is not "play"
        ("zebra", ()),
        ("", ()),
    ],
)
def test_stems(wordnet: WordNet, word: str, stems: tuple[str, ...]) -> None:
    assert wordnet.stems(word) == stems


def test_a_word_has_its_synsets_and_those_of_its_stem(wordnet: WordNet) -> None:
    assert wordnet["bike"] == {2834778, 3790512}
    assert wordnet["bikes"] == wordnet["bike"]
    assert wordnet["clothing"] == {3051540, 46534}


def test_words_of_all_parts_of_speech_and_at_both_ends_of_a_file_are_found(wordnet: WordNet) -> None:
    for word in ("bicycle", "player", "clothe", "run", "big", "small"):
        assert wordnet.synsets(word)


@pytest.mark.parametrize("word", ["", "zebra", "aardvark", "  1", "riding a bike", "naïve", "雪"])
def test_unknown_words_have_none(wordnet: WordNet, word: str) -> None:
    assert wordnet.synsets(word) == frozenset()


def test_a_folder_without_wordnet_is_named(tmp_path: Path) -> None:
    with pytest.raises(WordNetMissingError, match=r"index\.noun"):
        WordNet(tmp_path)
