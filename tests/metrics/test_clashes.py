from pathlib import Path

import pytest

from capedit.errors import CapeditError
from capedit.metrics.clashes import Clashes, bundled_clashes, find_clashes, find_open_seams


@pytest.mark.parametrize(
    ("caption", "seams"),
    [
        ("a white toilet with a sitting in a bathroom", [5]),
        ("a baseball player on a holding a bat", [5]),
        ("a group of who are sitting together", [3]),
        ("a man wearing", [3]),
        ("a zebras on the grass", [1]),
        ("a man sitting on a bench", []),
        ("two dogs play with a frisbee in the grass", []),
        ("", []),
    ],
)
def test_clashes_and_where(caption: str, seams: list[int]) -> None:
    assert find_clashes(caption.split()) == seams


def test_open_seams_are_breaks_and_clashes() -> None:
    assert find_open_seams("a with a sitting sitting dog".split()) == [1, 3, 4]


def test_only_pairs_that_chance_would_give_can_clash() -> None:
    captions = [["a", "dog", "runs"]] * 200 + [["the", "cat", "runs"]] * 200 + [["a", "bird"]]
    clashes = Clashes.from_captions(captions, "test")
    assert clashes.captions == 401
    assert ("a", "runs") in clashes.pairs
    assert ("the", "dog") in clashes.pairs
    assert ("a", "dog") not in clashes.pairs
    assert ("the", "bird") not in clashes.pairs  # too rare to say


def test_a_table_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "clashes.json"
    bundled_clashes().save(path)
    assert Clashes.load(path) == bundled_clashes()
    path.write_text('{"pairs": 3}')
    with pytest.raises(CapeditError, match="not a table of clashes"):
        Clashes.load(path)
