import pytest

from capedit.metrics import structure_kept


@pytest.mark.parametrize(
    ("source", "output", "share"),
    [
        ("a dog on a sofa", "a dog on a sofa", 1.0),
        ("a dog on a sofa", "a cat on a red sofa", 4 / 5),
        ("a dog on a sofa", "sofa on dog", 1 / 5),
        ("a dog", "", 0.0),
        ("", "a dog", 1.0),
        ("", "", 1.0),
    ],
)
def test_share_of_words_kept_in_order(source: str, output: str, share: float) -> None:
    assert structure_kept(source.split(), output.split()) == pytest.approx(share)
