"""Values that the coco-caption classes (pycocoevalcap 1.2) gave for these six instances; ours must equal them."""

import numpy as np
import pytest

from capedit.metrics import bleu, cider, rouge_l
from capedit.metrics.ngrams import Pair

PAIRS: list[Pair] = [
    (
        "a man rides a horse on the beach",
        ["a man riding a horse on a beach", "a person on a horse near the sea", "a man on a horse"],
    ),
    ("two dogs play play play in the snow", ["two dogs play in the snow"]),
    ("a cat", ["a cat sleeps on a sofa", "the cat is asleep"]),
    ("a plate of food on a table", ["a plate of food on a table"]),
    ("", ["a red bus on the street", "a bus"]),
    ("une pomme à côté du café", ["une pomme près du café"]),
]
BLEU = [0.8120862452941131, 0.7170246964752618, 0.5975312841164618, 0.4964761401708766]
BLEU_EACH = [
    [0.8749999997812503, 0.6123724355372341, 0.39685026288496356, 5.9460355733271294e-05],
    [0.7499999999062501, 0.7319250546133743, 0.6446159946012822, 0.481097729021564],
    [0.36787944080356333, 0.3678794407115936, 0.0036787944080356343, 0.0003678794408495482],
    [0.9999999997142859, 0.9999999997023811, 0.9999999996873018, 0.9999999996672622],
    [0.0, 0.0, 0.0, 0.0],
    [0.6666666665555557, 0.5163977793996495, 4.054801329548784e-06, 1.220947166871594e-08],
]
ROUGE_EACH = [0.7787234042553192, 0.8798076923076923, 0.45864661654135336, 1.0, 0.0, 0.7393939393939394]
CIDER_D_EACH = [2.3801830565489226, 5.292748821303799, 1.7480200367505947, 10.0, 0.0, 2.903172690509313]


def as_tokens(pairs: list[Pair]) -> list[Pair]:
    return [(str(hypothesis).split(), [str(each).split() for each in several]) for hypothesis, several in pairs]


@pytest.mark.parametrize("pairs", [PAIRS, as_tokens(PAIRS)], ids=["text", "tokens"])
def test_bleu(pairs: list[Pair]) -> None:
    corpus, each = bleu(pairs)
    np.testing.assert_allclose(corpus, BLEU, rtol=0, atol=1e-12)
    np.testing.assert_allclose(each, BLEU_EACH, rtol=0, atol=1e-12)


@pytest.mark.parametrize("pairs", [PAIRS, as_tokens(PAIRS)], ids=["text", "tokens"])
def test_rouge_l(pairs: list[Pair]) -> None:
    corpus, each = rouge_l(pairs)
    assert corpus == pytest.approx(0.6427619420830507, abs=1e-12)
    np.testing.assert_allclose(each, ROUGE_EACH, rtol=0, atol=1e-12)


@pytest.mark.parametrize("pairs", [PAIRS, as_tokens(PAIRS)], ids=["text", "tokens"])
def test_cider_d(pairs: list[Pair]) -> None:
    corpus, each = cider(pairs)
    assert corpus == pytest.approx(3.7206874341854377, abs=1e-12)
    np.testing.assert_allclose(each, CIDER_D_EACH, rtol=0, atol=1e-12)
