"""The work itself: windows, obstacles, images encoded once."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from capedit.data import ImageBytes, ImageFile
from capedit.editing import Edit, Editor
from capedit.models.runtime import Seen
from capedit.pipeline import EditRow, Status, Treatment
from capedit.pipeline.errors import FatalError
from capedit.pipeline.items import Item
from capedit.pipeline.refine import Refiner, Stamp
from capedit.pipeline.visuals import Visuals
from capedit.vision import FeatureStore, ImageSource, Precision, StoreWriter, VisualTokens
from tests.pipeline.world import damaged_jpeg, instances

STAMP = Stamp("m@1", "e", "0", datetime(2024, 1, 1, tzinfo=UTC), Path("/data"))


class CountingEncoder:
    """An encoder that remembers how many images it was shown."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.name, self.hash, self.dim = inner.name, inner.hash, inner.dim
        self.seen = 0

    def encode(self, images: Sequence[ImageSource]) -> list[VisualTokens]:
        self.seen += len(images)
        found: list[VisualTokens] = self._inner.encode(images)
        return found


@pytest.fixture(scope="module")
def editor(treatment: Treatment) -> Editor:
    made = treatment.load_editor()
    made.encoder = CountingEncoder(made.encoder)
    return made


def items_of(folder: Path, count: int, captions_per_image: int) -> list[Item]:
    made = instances(folder, count, captions_per_image=captions_per_image)
    return [
        Item(row, "f", row, f"line {row + 1}", one.id, str(one.image_id), one.reference, one.image, True)
        for row, one in enumerate(made)
    ]


def refine(editor: Editor, items: list[Item], treatment: Treatment, store: FeatureStore | None = None) -> list[EditRow]:
    return list(Refiner(editor, Visuals(editor.encoder, store), treatment, STAMP).rows(items))


def encoded(editor: Editor) -> int:
    assert isinstance(editor.encoder, CountingEncoder)
    return editor.encoder.seen


def test_images_are_encoded_once(tmp_path: Path, editor: Editor, treatment: Treatment) -> None:
    items = items_of(tmp_path, 150, 25)  # windows of 64 end inside images
    before = encoded(editor)
    rows = refine(editor, items, treatment)
    assert encoded(editor) - before == 6
    assert [row.row for row in rows] == list(range(150))
    inside = [replace(item, image=ImageBytes(item.image.read())) for item in items if item.image]
    again = refine(editor, inside, treatment)
    assert encoded(editor) - before == 12  # known by their content where they have no path
    assert [row.refined for row in again] == [row.refined for row in rows]


def test_a_shard_sees_the_same_whatever_came_before(tmp_path: Path, editor: Editor, treatment: Treatment) -> None:
    """Even with an encoder that gives an image other numbers in other company."""
    items = items_of(tmp_path, 30, 3)
    shards = [items[:16], items[14:]]  # with an image in common, as stretches of a tar file may have

    class Sociable(CountingEncoder):
        def encode(self, images: Sequence[ImageSource]) -> list[VisualTokens]:
            return [replace(one, features=one.features * (1 + len(images))) for one in super().encode(images)]

    sociable = Sociable(editor.encoder)
    together = Refiner(editor, Visuals(sociable, None), treatment, STAMP)
    one_worker = [list(together.rows(shard)) for shard in shards]
    assert one_worker == [
        list(Refiner(editor, Visuals(sociable, None), treatment, STAMP).rows(shard)) for shard in shards
    ]


def test_the_editor_does_what_it_does_alone(tmp_path: Path, editor: Editor, treatment: Treatment) -> None:
    items = items_of(tmp_path, 20, 2)
    rows = refine(editor, items, treatment)
    for item, row in zip(items, rows, strict=True):
        assert isinstance(item.image, ImageFile)
        alone = editor.edit(item.image.path, item.text)
        assert row.original == item.text
        assert row.refined == alone.caption
        assert [(one.op, one.token) for one in row.operations] == [(one.op, one.token) for one in alone.operations]
        assert row.confidence == pytest.approx(alone.confidence, abs=1e-3)
        assert row.fits == pytest.approx(alone.fits, abs=1e-3)
        assert (row.steps, row.rounds) == (alone.steps, alone.rounds)
    assert {row.status for row in rows} >= {Status.CHANGED, Status.KEPT}


def test_obstacles(tmp_path: Path, editor: Editor, treatment: Treatment) -> None:
    items = items_of(tmp_path, 12, 1)
    (tmp_path / "photos" / "photo0001.jpg").write_bytes(damaged_jpeg())
    (tmp_path / "photos" / "photo0002.jpg").unlink()
    (tmp_path / "photos" / "photo0003.jpg").write_bytes(b"")
    items[4] = replace(items[4], text="")
    items[5] = replace(items[5], text="...")
    items[6] = replace(items[6], text="word " * 500)
    items[7] = replace(items[7], text="half \ud83d")
    items[8] = replace(items[8], image=None)
    items[9] = replace(items[9], selected=False)
    rows = refine(editor, items, treatment)
    reasons = {
        1: "is truncated",
        2: "cannot be read",
        3: "is empty",
        4: "caption is empty",
        5: "no words",
        6: "500 words",
        7: "half a character",
        8: "no image",
    }
    for number, reason in reasons.items():
        row = rows[number]
        assert (row.status, row.refined, row.caption) == (Status.FAILED, None, items[number].text)
        assert reason in (row.reason or "")
        assert not row.operations
    assert (rows[9].status, rows[9].reason) == (Status.KEPT, "not selected")
    for number in (0, 10, 11):
        assert rows[number].status is not Status.FAILED
        assert rows[number].operations


def test_a_caption_that_breaks_the_editor_breaks_nothing_else(
    tmp_path: Path, editor: Editor, treatment: Treatment, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = items_of(tmp_path, 10, 2)
    expected = refine(editor, items, treatment)
    real = editor.edit_seen

    def touchy(seen: Seen, captions: Sequence[str], **knobs: Any) -> list[Edit]:
        if items[3].text in captions:
            raise RuntimeError("no such caption, please")
        return real(seen, captions, **knobs)

    monkeypatch.setattr(editor, "edit_seen", touchy)
    rows = refine(editor, items, treatment)
    assert rows[3].status is Status.FAILED
    assert rows[3].reason == "editor: RuntimeError: no such caption, please"
    assert [row.refined for row in rows if row.row != 3] == [row.refined for row in expected if row.row != 3]


def test_an_editor_that_is_broken_stops_the_run(
    tmp_path: Path, editor: Editor, treatment: Treatment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(seen: Seen, captions: Sequence[str], **knobs: Any) -> list[Edit]:
        raise RuntimeError("out of order")

    monkeypatch.setattr(editor, "edit_seen", broken)
    with pytest.raises(FatalError, match=r"fails on every caption.*out of order"):
        refine(editor, items_of(tmp_path, 20, 2), treatment)


@pytest.mark.parametrize("precision", list(Precision))
def test_what_a_store_holds_makes_no_difference(
    tmp_path: Path, editor: Editor, treatment: Treatment, precision: Precision
) -> None:
    """Tokens lose precision in a store; so do those that are not in it, or results would depend on luck."""
    items = items_of(tmp_path, 30, 3)
    images = [item.image.path for item in items[::3] if isinstance(item.image, ImageFile)]
    results = []
    for name, kept in (("none", images[:0]), ("some", images[:4]), ("all", images)):
        with StoreWriter(tmp_path / name, editor.encoder, precision) as writer:
            for path in kept:
                writer.add(f"photos/{path.stem}", editor.encoder.encode([path])[0])
        before = encoded(editor)
        results.append(refine(editor, items, treatment, FeatureStore(tmp_path / name)))
        assert encoded(editor) - before == len(images) - len(kept)
    assert results[0] == results[1] == results[2]
