import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capedit.edits import lcs_length
from capedit.metrics import rouge_l

CAPTIONS = st.one_of(
    st.lists(st.sampled_from("abc"), max_size=9),
    st.integers(60, 70).flatmap(lambda n: st.lists(st.sampled_from("abcdefgh"), min_size=n, max_size=n)),
)
PAIRS = st.lists(st.tuples(CAPTIONS, st.lists(CAPTIONS, min_size=1, max_size=3)), min_size=1, max_size=4)
TokenPairs = list[tuple[list[str], list[list[str]]]]


def by_definition(hypothesis: list[str], references: list[list[str]]) -> float:
    hypothesis = hypothesis or [""]  # as coco-caption: no word is one word, the empty one
    references = [each or [""] for each in references]
    precision = max(lcs_length(each, hypothesis) / len(hypothesis) for each in references)
    recall = max(lcs_length(each, hypothesis) / len(each) for each in references)
    if not precision or not recall:
        return 0.0
    return (1 + 1.2**2) * precision * recall / (recall + 1.2**2 * precision)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(PAIRS)
def test_every_instance_follows_the_definition(pairs: TokenPairs) -> None:
    corpus, each = rouge_l(pairs)
    expected = [by_definition(*pair) for pair in pairs]
    np.testing.assert_allclose(each, expected, rtol=0, atol=1e-12)
    assert corpus == pytest.approx(np.mean(expected), abs=1e-12)


@pytest.mark.parametrize("length", [63, 64, 65, 200])
def test_captions_around_and_beyond_a_machine_word(length: int) -> None:
    words = [f"w{i}" for i in range(length)]
    _, each = rouge_l([(words, [words]), (words[:10], [words]), (words, [words[-10:], ["x"]])])
    recall, precision = 10 / length, 10 / length
    assert each[0] == 1.0
    assert each[1] == pytest.approx((1 + 1.44) * 1.0 * recall / (recall + 1.44))
    assert each[2] == pytest.approx((1 + 1.44) * precision / (1.0 + 1.44 * precision))


def test_order_matters() -> None:
    (forward,), (backward,) = rouge_l([("a b c", ["a b c"])])[1], rouge_l([("c b a", ["a b c"])])[1]
    assert forward == 1.0
    assert backward == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("hypothesis", "references", "score"),
    [("", ["a"], 0.0), ("a", [""], 0.0), ("a", [], 0.0), ("", [""], 1.0), ("", [], 1.0), ("", ["", "a b"], 1.0)],
)
def test_empty_captions(hypothesis: str, references: list[str], score: float) -> None:
    assert rouge_l([(hypothesis, references)])[0] == score


def test_nothing_scores_nothing() -> None:
    corpus, each = rouge_l([])
    assert corpus == 0.0
    assert each.shape == (0,)
