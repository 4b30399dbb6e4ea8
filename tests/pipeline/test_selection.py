"""Which captions a run looks at."""

from pathlib import Path

import pytest

from capedit.data import Instance
from capedit.pipeline.selection import Selection, SelectionError

CAPTION = Instance(
    17, "A dog, on a sofa.", image_id="i3", extra={"source": "machine", "score": 0.5, "checked": True, "gone": None}
)


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ("words<=5", True),
        ("words<5", False),
        ("words = 5", True),
        ("chars>17", False),
        ("chars>=17", True),
        ("id=17", True),
        ("id=16,17,18", True),
        ("id!=16,17,18", False),
        ("image_id=i3", True),
        ("source=machine", True),
        ("source=human", False),
        ("source!=human", True),
        ("score>0.4", True),
        ("source>0.4", False),
        ("checked=true", True),
        ("missing=x", False),
        ("missing!=x", True),
        ("gone=None", False),
        ("missing<3", False),
    ],
)
def test_conditions(condition: str, taken: bool) -> None:
    assert Selection.parse([condition]).takes(CAPTION) is taken


def test_all_must_hold() -> None:
    assert Selection.parse([]).takes(CAPTION)
    assert Selection.parse(["words=5", "source=machine"]).takes(CAPTION)
    assert not Selection.parse(["words=5", "source=human"]).takes(CAPTION)


def test_ids_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("3\n\n 17 \n")
    assert Selection.parse([f"id=@{tmp_path / 'ids.txt'}"]).takes(CAPTION)
    with pytest.raises(SelectionError, match="no-such-file"):
        Selection.parse(["id=@no-such-file"])


@pytest.mark.parametrize("text", ["", "words", "words<few", "<3"])
def test_nonsense(text: str) -> None:
    with pytest.raises(SelectionError, match="condition"):
        Selection.parse([text])
