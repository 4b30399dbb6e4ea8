"""`open_dataset` finds out what it is given."""

import gzip
from pathlib import Path

import pytest

from capedit.data import FORMATS, DataError, Instance, open_dataset, write_dataset
from tests.data.samples import LAYOUT_IDS, LAYOUTS, photo, photos


@pytest.mark.parametrize(("name", "format"), LAYOUTS, ids=LAYOUT_IDS)
def test_what_was_written_is_recognised(tmp_path: Path, name: str, format: str | None) -> None:
    image = photos(tmp_path / "pictures")[0]
    written = write_dataset([Instance("a", "a caption", image=image)], tmp_path / name, format)
    assert open_dataset(tmp_path / name).format.name == written.format
    assert open_dataset(str(tmp_path / name)).format.name == written.format


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("a.json", b'[{"Ref-Cap": "x"}]', "ee"),
        ("a.json", b'\xef\xbb\xbf \n[{"caption": "x"}]', "ee"),
        ("a.json", b'{"caption": "x"}\n{"caption": "y"}\n', "jsonl"),
        ("a.json", b'{"info": {},\n "images": [], "annotations": []}', "coco"),
        ("a.json", b'{"annotations": [{"caption": "x"}]}', "coco"),
        ("a.json.gz", gzip.compress(b'[{"caption": "x"}]', mtime=0), "ee"),
        ("a.dat", b'{"caption": "x"}\n', "jsonl"),
        ("a.TSV", b"caption\tx\na\tb\n", "csv"),
    ],
)
def test_files_are_told_apart_by_content(tmp_path: Path, name: str, content: bytes, format: str) -> None:
    (tmp_path / name).write_bytes(content)
    dataset = open_dataset(tmp_path / name)
    assert dataset.format.name == format
    list(dataset)
    assert len(dataset.problems) == 0


def test_files_without_a_telling_name(tmp_path: Path) -> None:
    for name, format in (("captions.parquet", "parquet"), ("shard.tar", "webdataset")):
        write_dataset([Instance("a", "x")], tmp_path / name)
        (tmp_path / name).rename(tmp_path / "unnamed")
        assert open_dataset(tmp_path / "unnamed").format.name == format


def test_patterns(tmp_path: Path) -> None:
    for number in range(12):
        write_dataset([Instance(f"k{number}", f"caption {number}")], tmp_path / f"s-{number:03d}.tar")
    some = open_dataset(f"{tmp_path}/s-{{003..010}}.tar", strict=True)
    assert [i.id for i in some] == [f"k{n}" for n in range(3, 11)]
    assert [i.id for i in open_dataset(tmp_path / "s-00*.tar")] == [f"k{n}" for n in range(10)]
    assert [i.id for i in open_dataset(f"{tmp_path}/s-{{001,000}}.tar")] == ["k1", "k0"]
    assert len(list(open_dataset(tmp_path))) == 12


def test_a_missing_shard_does_not_stop_the_others(tmp_path: Path) -> None:
    write_dataset([Instance("a", "x")], tmp_path / "s-0.parquet")
    write_dataset([Instance("c", "x")], tmp_path / "s-2.parquet")
    (tmp_path / "s-3.parquet").write_bytes(b"PAR1 no")
    dataset = open_dataset(f"{tmp_path}/s-{{0..3}}.parquet")
    assert [i.id for i in dataset] == ["a", "c"]
    assert [problem.file.name for problem in dataset.problems] == ["s-1.parquet", "s-3.parquet"]
    with pytest.raises(DataError, match=r"s-1\.parquet"):
        list(open_dataset(f"{tmp_path}/s-{{0..3}}.parquet", strict=True))


def test_folders_of_images_in_subfolders(tmp_path: Path) -> None:
    (tmp_path / "b" / "deep").mkdir(parents=True)
    (tmp_path / "a.JPG").write_bytes(photo((1, 2, 3)))
    (tmp_path / "a.txt").write_text("one\n\ntwo\n", encoding="utf-8")
    (tmp_path / "b" / "deep" / "c.png").write_bytes(photo((1, 2, 3), "PNG"))
    (tmp_path / "b" / "deep" / "c.png.caption").write_text("three", encoding="utf-8")
    (tmp_path / ".hidden.txt").write_text("no", encoding="utf-8")
    (tmp_path / "empty.webp").write_bytes(photo((1, 2, 3), "WEBP"))
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    dataset = open_dataset(tmp_path, strict=True)
    assert dataset.format.name == "sidecar"
    assert [(i.id, i.image_id, i.reference) for i in dataset] == [
        ("a#1", "a", "one"),
        ("a#2", "a", "two"),
        ("empty", "empty", ""),
        ("b/deep/c", "b/deep/c", "three"),
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "no such file or folder"),
        (lambda path: path.mkdir(), "no dataset of any known format"),
        (lambda path: path.write_bytes(b"\x00\x01"), "cannot tell the format"),
        (lambda path: path.write_bytes(b'{"a":\n 1}'), "without 'annotations'"),
    ],
)
def test_what_is_no_dataset_is_refused(tmp_path: Path, make: object, message: str) -> None:
    path = tmp_path / "thing"
    make(path)  # type: ignore[operator]
    with pytest.raises(DataError, match=message) as error:
        open_dataset(path)
    assert str(path) in str(error.value)


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"caption": "x"}')
    with pytest.raises(DataError, match=r"unknown format 'xml'.*parquet"):
        open_dataset(tmp_path / "a.jsonl", "xml")
    with pytest.raises(DataError, match=r"unknown role 'captoin'.*reference"):
        open_dataset(tmp_path / "a.jsonl", fields={"captoin": "x"})
    with pytest.raises(DataError, match="cannot tell the format"):
        write_dataset([], tmp_path / "out")
    assert set(FORMATS) == {"ee", "jsonl", "coco", "csv", "parquet", "webdataset", "huggingface", "sidecar"}
