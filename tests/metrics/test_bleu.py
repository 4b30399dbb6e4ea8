import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capedit.metrics import bleu

CAPTIONS = st.lists(st.sampled_from("abcd"), max_size=8)
PAIRS = st.lists(st.tuples(CAPTIONS, st.lists(CAPTIONS, min_size=1, max_size=4)), min_size=1, max_size=5)
TokenPairs = list[tuple[list[str], list[list[str]]]]


def by_definition(pairs: TokenPairs) -> list[float]:
    """Corpus BLEU written straight from its definition."""
    correct, guessed = [0] * 4, [0] * 4
    length = closest_length = 0
    for hypothesis, references in pairs:
        length += len(hypothesis)
        closest_length += min((abs(len(each) - len(hypothesis)), len(each)) for each in references)[1]
        for n in range(1, 5):
            counts = Counter(tuple(hypothesis[i : i + n]) for i in range(len(hypothesis) - n + 1))
            most: Counter[tuple[str, ...]] = Counter()
            for each in references:
                most |= Counter(tuple(each[i : i + n]) for i in range(len(each) - n + 1))
            correct[n - 1] += (counts & most).total()
            guessed[n - 1] += counts.total()
    scores, product = [], 1.0
    for n in range(4):
        product *= (correct[n] + 1e-15) / (guessed[n] + 1e-9)
        scores.append(product ** (1 / (n + 1)))
    ratio = (length + 1e-15) / (closest_length + 1e-9)
    return [score * math.exp(min(0.0, 1 - 1 / ratio)) for score in scores]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(PAIRS)
def test_corpus_and_instances_follow_the_definition(pairs: TokenPairs) -> None:
    corpus, each = bleu(pairs)
    np.testing.assert_allclose(corpus, by_definition(pairs), rtol=0, atol=1e-12)
    for row, pair in zip(each, pairs, strict=True):
        np.testing.assert_allclose(row, by_definition([pair]), rtol=0, atol=1e-12)


def test_the_shorter_of_two_equally_close_references_counts() -> None:
    _, each = bleu([(["a", "b", "c"], [["a", "b", "c", "d"], ["a", "b"]])])
    assert each[0, 0] == pytest.approx(1.0)  # no penalty: the closest length is 2, not 4


def test_repeated_words_are_clipped_at_the_richest_reference() -> None:
    _, each = bleu([(["the"] * 4, [["the", "cat"], ["the", "the", "dog"]])])
    assert each[0, 0] == pytest.approx(2 / 4)


@pytest.mark.parametrize(
    ("hypothesis", "references"), [("", ["a b"]), ("", [""]), ("", []), ("a b", [""]), ("a b", [])]
)
def test_an_empty_side_scores_nothing(hypothesis: str, references: list[str]) -> None:
    corpus, each = bleu([(hypothesis, references)])
    assert corpus == pytest.approx(0.0, abs=1e-9)
    assert each[0] == pytest.approx(0.0, abs=1e-9)


def test_identical_pairs_score_one() -> None:
    caption = "ein Vogel 鳥 auf dem Dach"
    assert bleu([(caption, [caption])])[0] == pytest.approx(1.0)


def test_nothing_scores_nothing() -> None:
    corpus, each = bleu([])
    assert corpus.tolist() == [0.0] * 4
    assert each.shape == (0, 4)
