from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capedit.edits import tokens
from capedit.edits.ptb import Token


@pytest.mark.parametrize(
    ("caption", "words"),
    [
        ("Two men, one dog - and a cat.", "two men one dog and a cat"),
        ("The dr. paid $1.", "the dr. paid $ 1"),
        ("A 'stop' sign says \"go\"; why?!", "a stop sign says go why ?!"),
        ("It can't... or won't", "it ca n't or wo n't"),
        ("A line\nbreak", "a line break"),
        ("...", ""),
        ("", ""),
    ],
)
def test_captions_lose_case_and_punctuation(caption: str, words: str) -> None:
    assert tokens.tokenize(caption) == words.split()


def test_bracket_names_survive_as_in_the_published_data() -> None:
    assert tokens.tokenize("a (red) {dog}") == ["a", "-lrb-", "red", "-rrb-", "-lcb-", "dog", "-rcb-"]


def test_a_token_with_a_blank_becomes_two_words_with_their_own_spans() -> None:
    assert tokens.spans("1 1/2 cups") == [Token("1", 0, 1), Token("1/2", 2, 5), Token("cups", 6, 10)]


def test_spans_keep_spelling_and_case() -> None:
    caption = "A Dog's “Red” ball."
    assert [caption[word.start : word.end] for word in tokens.spans(caption)] == ["A", "Dog", "'s", "Red", "ball"]


@given(st.text(max_size=60))
def test_words_and_spans_agree_for_any_text(caption: str) -> None:
    words = tokens.tokenize(caption)
    spans = tokens.spans(caption)
    assert words == [word.text for word in spans]
    assert words == " ".join(words).split()
    assert not tokens.DROPPED.intersection(words)
    assert all(left.end <= right.start for left, right in pairwise(spans))
    assert all(0 <= word.start < word.end <= len(caption) for word in spans)


@given(st.lists(st.from_regex(r"[A-Za-z]{2,8}(?:-[a-z]{2,4})?(?:'s|n't|,|!)?", fullmatch=True), max_size=8))
def test_words_of_plain_english_are_read_again_unchanged(parts: list[str]) -> None:
    """Not so for all text: an opening quote is written `` and a bracket -lrb-, which are read as something else."""
    words = tokens.tokenize(" ".join(parts))
    assert tokens.tokenize(" ".join(words)) == words
