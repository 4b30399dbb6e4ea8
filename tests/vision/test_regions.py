import base64
from pathlib import Path

import numpy as np
import pytest

from capedit.vision.regions import RegionError, RegionFolder, RegionFolderPair, RegionTable

CHANCE = np.random.default_rng(0)
FEATURES = CHANCE.random((3, 8), dtype=np.float32)
BOXES = np.array([[0, 0, 320, 240], [160, 120, 640, 480], [10, 20, 30, 40]], np.float32)


def line(image_id: str, features: np.ndarray = FEATURES, boxes: np.ndarray = BOXES, count: int | None = None) -> str:
    columns = [base64.b64encode(array.tobytes()).decode() for array in (boxes, features)]
    return "\t".join([image_id, "640", "480", str(len(boxes) if count is None else count), *columns])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lines = [line(str(number), FEATURES + number) for number in range(20)]
    path = tmp_path / "regions.tsv"
    path.write_text("\n".join([*lines, line("5", FEATURES - 99)]) + "\n")
    return path


def test_a_table_is_read_image_by_image(table: Path) -> None:
    regions = RegionTable(table)
    assert (len(regions), "19" in regions, "20" in regions) == (20, True, False)
    for number in (19, 0, 7):
        tokens = regions.tokens(str(number))
        np.testing.assert_array_equal(tokens.features[1:], FEATURES + number)
        np.testing.assert_allclose(tokens.features[0], (FEATURES + number).mean(axis=0), rtol=1e-6)
        assert tokens.boxes[:3].tolist() == [[0, 0, 1, 1, 1], [0, 0, 0.5, 0.5, 0.25], [0.25, 0.25, 1, 1, 0.5625]]
    np.testing.assert_array_equal(regions.tokens("5").features[1:], FEATURES + 5)  # the first of two lines


def test_the_index_is_kept_and_follows_the_file(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = RegionTable(table)
    with monkeypatch.context() as patch:
        patch.setattr(RegionTable, "_scan", lambda self: pytest.fail("scanned again"))
        assert RegionTable(table).ids == first.ids
    with table.open("a") as file:
        file.write(line("new") + "\n")
    assert "new" in RegionTable(table)


def test_a_header_line_and_no_last_newline(tmp_path: Path) -> None:
    path = tmp_path / "headed.tsv"
    path.write_text("image_id\timage_w\timage_h\tnum_boxes\tboxes\tfeatures\r\n" + line("7"))
    assert RegionTable(path).ids == ["7"]
    assert len(RegionTable(path).tokens("7")) == 4


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1\t640\t480\t3\tAAAA", "5 columns"),
        ("1\twide\t480\t3\tAAAA\tAAAA", "not a number"),
        (line("1", count=2), r"image 1: \(2, 12\) features|boxes|numbers"),
        (line("1", count=0), "for 0 boxes"),
        (line("1", boxes=BOXES * 2), "do not lie in an image of 640 x 480"),
        (line("1", boxes=BOXES[:, [2, 3, 0, 1]]), "do not lie"),
        (line("1", features=FEATURES * np.float32(np.nan)), "not finite"),
        ("1\t640\t480\t3\t***\tAAAA", "boxes: not base64"),
    ],
)
def test_wrong_lines_are_named(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "wrong.tsv"
    path.write_text(text + "\n")
    with pytest.raises(RegionError, match=reason) as caught:
        RegionTable(path).tokens("1")
    assert "wrong.tsv, image 1" in str(caught.value)


def test_missing_images_and_files(table: Path, tmp_path: Path) -> None:
    with pytest.raises(RegionError, match="no regions for image 'x'"):
        RegionTable(table).tokens("x")
    with pytest.raises(RegionError, match="cannot be read"):
        RegionTable(tmp_path / "none.tsv")
    (tmp_path / "words.tsv").write_text("no tabs at all\n")
    with pytest.raises(RegionError, match="line 1"):
        RegionTable(tmp_path / "words.tsv")


def test_a_folder_of_npz(tmp_path: Path) -> None:
    info = np.array({"objects": [1]}, dtype=object)  # published files carry a pickle beside the arrays
    np.savez(tmp_path / "42.npz", x=FEATURES, bbox=BOXES, image_w=640, image_h=480, info=info)
    folder = RegionFolder(tmp_path)
    assert (folder.ids, "42" in folder, "43" in folder) == (["42"], True, False)
    np.testing.assert_array_equal(folder.tokens("42").features[1:], FEATURES)
    with pytest.raises(RegionError, match=r"43\.npz"):
        folder.tokens("43")
    with pytest.raises(RegionError, match="plain image id"):
        folder.tokens("../42")
    np.savez(tmp_path / "44.npz", x=info, bbox=BOXES, image_w=640, image_h=480)
    with pytest.raises(RegionError, match=r"44\.npz: cannot be read .*allow_pickle"):
        folder.tokens("44")
    np.savez(tmp_path / "45.npz", x=FEATURES)
    with pytest.raises(RegionError, match="bbox"):
        folder.tokens("45")


def test_a_pair_of_folders(tmp_path: Path) -> None:
    features, boxes = tmp_path / "att", tmp_path / "box"
    features.mkdir()
    boxes.mkdir()
    np.savez(features / "1.npz", feat=FEATURES)
    np.save(features / "2.npy", FEATURES * 2)
    for image_id in "12":
        np.save(boxes / f"{image_id}.npy", BOXES)
    pair = RegionFolderPair(features, boxes)
    assert pair.ids == ["1", "2"]
    np.testing.assert_array_equal(pair.tokens("1", 640, 480).features[1:], FEATURES)
    np.testing.assert_array_equal(pair.tokens("2", 640, 480).features[1:], FEATURES * 2)
    with pytest.raises(RegionError, match="do not lie"):
        pair.tokens("1", 480, 640)
