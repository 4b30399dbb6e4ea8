"""Each of the four steps of COCO-EE by itself."""

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capedit.data.builders.candidates import draw, rank_candidates
from capedit.data.builders.filters import Against, CaptionBleu, ContentOverlap, SpiceMeaning
from capedit.data.builders.pairing import nearest_caption
from capedit.metrics.bleu import bleu


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@pytest.mark.parametrize("captions", [70, 400, 6500])
def test_candidates_are_the_best_captions_of_other_images(captions: int) -> None:
    rng = np.random.default_rng(captions)
    # Whole numbers make many scores equal: of those the first come first.
    images = rng.integers(-2, 3, (3, 4)).astype(np.float32)
    vectors = rng.integers(-2, 3, (captions, 4)).astype(np.float32)
    own = [range(5), range(5, 10), range(60, 66)]
    found = rank_candidates(images, vectors, own, 20)
    scores = images @ vectors.T
    for row, mine, ranked in zip(scores, own, found, strict=True):
        row[mine.start : mine.stop] = -np.inf
        assert ranked.tolist() == np.argsort(-row, kind="stable")[:20].tolist()
        assert not set(ranked.tolist()) & set(mine)


def test_more_candidates_than_captions_are_refused() -> None:
    with pytest.raises(ValueError, match="8 candidates of 10 captions"):
        rank_candidates(np.ones((1, 2), np.float32), np.ones((10, 2), np.float32), [range(3)], 8)


def test_a_draw_depends_on_seed_and_image_alone() -> None:
    ranked = np.arange(100, 400)
    drawn = draw(ranked, 30, seed=1, image_id=7)
    assert len(set(drawn.tolist())) == 30
    assert drawn.tolist() == sorted(drawn.tolist())
    assert set(drawn.tolist()) <= set(ranked.tolist())
    assert drawn.tolist() == draw(ranked, 30, seed=1, image_id=7).tolist()
    assert drawn.tolist() != draw(ranked, 30, seed=2, image_id=7).tolist()
    assert drawn.tolist() != draw(ranked, 30, seed=1, image_id=8).tolist()
    assert draw(ranked, 300, seed=1, image_id=7).tolist() == ranked.tolist()


CAPTION = st.lists(st.sampled_from("abcd"), min_size=1, max_size=9).map(tuple)


@given(st.lists(CAPTION, min_size=2, max_size=12), st.data())
def test_bleu_equals_the_metric(captions: list[tuple[str, ...]], data: st.DataObject) -> None:
    numbers = st.integers(0, len(captions) - 1)
    candidates = data.draw(st.lists(numbers, min_size=1, max_size=6))
    references = data.draw(st.lists(numbers, min_size=1, max_size=5))
    index = CaptionBleu(captions)
    for _ in range(2):  # the second time shows that the tables of counts were cleared
        fast = index.scores(np.array(candidates), references)
        slow = bleu([(captions[c], [captions[r] for r in references]) for c in candidates])[1]
        assert np.array_equal(fast, slow[:, :3])


def test_bleu_is_multi_reference() -> None:
    captions = [words("a man rides a horse"), words("a man sits"), words("he rides a horse")]
    both, first = CaptionBleu(captions).scores(np.array([0]), [1, 2]), CaptionBleu(captions).scores(np.array([0]), [1])
    assert both[0, 1] > first[0, 1]


def test_content_overlap() -> None:
    references = [words("a black cat on a sofa"), words("the cat sleeps")]
    candidates = [words("a cat"), words("a cat and a dog"), words("a red bus"), words("on the")]
    same, half, none, empty = ContentOverlap().scores(candidates, [references] * 4)
    recall = (1 / 3 + 1 / 2) / 2
    assert same == pytest.approx(2 * recall / (1 + recall))
    assert half == pytest.approx(2 * 0.5 * recall / (0.5 + recall))
    assert none == 0
    assert empty == 0


def test_content_overlap_without_content_in_the_references() -> None:
    assert ContentOverlap().scores([words("a cat")], [[words("on the")]]).tolist() == [0]


class FirstLetters:
    """A SPICE that counts references which begin like the hypothesis."""

    kind = "toy SPICE"

    def scores(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[SimpleNamespace]:
        pairs = zip(hypotheses, references, strict=True)
        return [SimpleNamespace(f=sum(r[0] == h[0] for r in several) / len(several)) for h, several in pairs]


@pytest.mark.parametrize(("against", "expected"), [(Against.EACH, [1, 0, 1]), (Against.ALL, [0.5, 0, 1])])
def test_any_spice_serves_against_each_caption_or_all(against: Against, expected: list[float]) -> None:
    references = [[words("a cat"), words("two")], [words("three")], [words("a"), words("a b")]]
    meaning = SpiceMeaning(FirstLetters(), against)
    assert meaning.scores([words("a dog"), words("a dog"), words("a")], references).tolist() == expected
    assert meaning.scores([], []).tolist() == []
    assert meaning.name == f"toy SPICE against {against}"


def test_the_target_is_the_nearest_caption_by_deletions_and_additions() -> None:
    candidate = words("a dog on the grass")
    captions = [words("two men"), words("a cat on the grass"), words("a dog and a cat on the grass")]
    assert nearest_caption(candidate, captions) == 1  # 2 steps; replacing a word is a deletion and an addition
    assert nearest_caption(candidate, captions[::-1]) == 1
    assert nearest_caption(candidate, [words("a dog"), words("the grass")]) == 0  # equal: the first
