import pytest

from capedit.models.phrase_vocabulary import PhraseVocabulary, added_phrases

SOURCE = "Turing was born in 1912 . Turing died in 1954 .".split()
FUSED = "Turing was born in 1912 and he died in 1954 .".split()


def test_the_lasertagger_example() -> None:
    assert added_phrases(SOURCE, FUSED) == [("and", "he")]
    found = PhraseVocabulary.from_pairs([(SOURCE, FUSED)], size=500)
    assert found.phrases == (("and", "he"),)
    assert found.pairs_covered == found.phrases_covered == 1.0


PAIRS = [
    ("a b".split(), "a x b".split()),
    ("a b".split(), "a x b y".split()),
    ("a b c".split(), "a x b z z c".split()),
    ("a b".split(), "a b".split()),
]


@pytest.mark.parametrize(
    ("size", "phrases", "pairs_covered", "phrases_covered"),
    [
        (0, (), 1 / 4, 0),
        (1, (("x",),), 2 / 4, 3 / 5),
        (2, (("x",), ("y",)), 3 / 4, 4 / 5),
        (None, (("x",), ("y",), ("z", "z")), 1.0, 1.0),
    ],
)
def test_the_most_frequent_phrases_and_what_they_cover(
    size: int | None, phrases: tuple[tuple[str, ...], ...], pairs_covered: float, phrases_covered: float
) -> None:
    found = PhraseVocabulary.from_pairs(PAIRS, size)
    assert found.phrases == phrases
    assert found.pairs_covered == pytest.approx(pairs_covered)
    assert found.phrases_covered == pytest.approx(phrases_covered)


def test_a_phrase_counts_once_for_a_pair() -> None:
    twice = ("a b c".split(), "a x b x c".split())
    others = [("a b".split(), "a y b".split())] * 2
    assert PhraseVocabulary.from_pairs([twice, *others], 1).phrases == (("y",),)


def test_phrases_with_barred_words_are_left_out() -> None:
    found = PhraseVocabulary.from_pairs(PAIRS, None, without=["x"])
    assert found.phrases == (("y",), ("z", "z"))
    assert found.pairs_covered == pytest.approx(1 / 4)


def test_no_pairs_no_phrases() -> None:
    assert PhraseVocabulary.from_pairs([], 10) == PhraseVocabulary((), 0.0, 0.0)
