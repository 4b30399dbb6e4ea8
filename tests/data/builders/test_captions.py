"""Caption tables and the splits that keep held-out images away."""

import json
from pathlib import Path

import pytest

from capedit.data import DataError
from capedit.data.builders.captions import CaptionTable, read_coco_captions
from capedit.data.builders.split import read_held_out, read_id_list, read_karpathy_split


def write_captions(path: Path, captions: list[tuple[object, object]]) -> Path:
    annotations = [{"id": n, "image_id": image, "caption": caption} for n, (image, caption) in enumerate(captions)]
    path.write_text(json.dumps({"images": [], "annotations": annotations}), encoding="utf-8")
    return path


def test_captions_are_grouped_by_image() -> None:
    table = CaptionTable.from_pairs([(7, ("a", "b")), (3, ("c",)), (7, ()), (7, ("d",))])
    assert table.image_ids.tolist() == [3, 7]
    assert [list(table.of_image(i)) for i in range(2)] == [[0], [1, 2]]
    assert list(table.captions) == [("c",), ("a", "b"), ("d",)]
    assert table.image_of.tolist() == [0, 1, 1]


def test_held_out_images_do_not_get_in(tmp_path: Path) -> None:
    train = write_captions(tmp_path / "train.json", [(1, "A dog."), (2, "A cat.")])
    val = write_captions(tmp_path / "val.json", [(3, "A bird."), (4, "A Fish, swimming!")])
    table = read_coco_captions([train, val], frozenset({3}))
    assert table.image_ids.tolist() == [1, 2, 4]
    assert list(table.captions) == [("a", "dog"), ("a", "cat"), ("a", "fish", "swimming")]


def test_a_table_of_some_images() -> None:
    table = CaptionTable.from_pairs([(1, ("a",)), (2, ("b",)), (2, ("c",)), (3, ("d",))])
    assert table.only(lambda image_id: image_id > 1).captions == [("b",), ("c",), ("d",)]


def test_fingerprints_differ_by_word_and_by_image() -> None:
    base = CaptionTable.from_pairs([(1, ("a", "b")), (2, ("c",))])
    others = [
        CaptionTable.from_pairs([(1, ("a", "b")), (2, ("d",))]),
        CaptionTable.from_pairs([(1, ("a", "b")), (3, ("c",))]),
        CaptionTable.from_pairs([(1, ("a", "b")), (1, ("c",))]),
        CaptionTable.from_pairs([(1, ("a b",)), (2, ("c",))]),
    ]
    assert base.fingerprint() not in {other.fingerprint() for other in others}


@pytest.mark.parametrize(
    ("image_id", "caption", "field"), [("7", "a dog", "image_id"), (7, None, "caption"), (None, "a dog", "image_id")]
)
def test_a_bad_annotation_is_named(tmp_path: Path, image_id: object, caption: object, field: str) -> None:
    path = write_captions(tmp_path / "captions.json", [(1, "fine"), (image_id, caption)])
    with pytest.raises(DataError, match=rf"captions\.json, annotations, record 2, field '{field}'"):
        read_coco_captions([path], frozenset())


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text("[1, 2", encoding="utf-8")
    with pytest.raises(DataError, match=r"other\.json, line 1: not JSON"):
        read_coco_captions([path], frozenset())
    path.write_text("[1, 2]", encoding="utf-8")
    with pytest.raises(DataError, match="'annotations'"):
        read_coco_captions([path], frozenset())


def test_id_lists(tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    path.write_text("42\n\n000359\n", encoding="utf-8")
    assert read_id_list(path) == {42, 359}
    assert read_held_out(path) == {42, 359}
    path.write_text("42\nCOCO_7\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 2: expected an image id, got 'COCO_7'"):
        read_id_list(path)
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(DataError, match="no image ids"):
        read_id_list(path)


def test_karpathy_split_file(tmp_path: Path) -> None:
    path = tmp_path / "dataset_coco.json"
    images = [{"cocoid": n, "split": split} for n, split in enumerate(["train", "val", "restval", "test", "val"])]
    path.write_text(json.dumps({"images": images, "dataset": "coco"}), encoding="utf-8")
    assert read_karpathy_split(path)["val"] == {1, 4}
    assert read_held_out(path) == {1, 3, 4}
    path.write_text(json.dumps({"images": images[:3]}), encoding="utf-8")
    with pytest.raises(DataError, match="no image of split 'test'"):
        read_held_out(path)
    path.write_text(json.dumps({"images": [{"split": "val"}]}), encoding="utf-8")
    with pytest.raises(DataError, match="record 1, field 'cocoid'"):
        read_held_out(path)
