"""Bad records: named with file, place and field, left out, and no reason to stop unless strict."""

import io
import json
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capedit.data import DataError, ImageFile, Instance, Problem, open_dataset, write_dataset
from tests.data.samples import photo

CASES: dict[str, tuple[str, bytes, list[str], list[tuple[str, str | None, str]]]] = {
    # name: file, content, captions that remain, problems as (place, field, part of the reason)
    "cut_off_line": (
        "a.jsonl",
        b'{"caption": "a"}\n{"caption": "b\n{"caption": "c"}\n',
        ["a", "c"],
        [("line 2", None, "not JSON: Unterminated string")],
    ),
    "wrong_type": (
        "a.jsonl",
        b'{"caption": 5}\n{"caption": "b"}\n[1]\n{"Ref-Cap": "c", "GT-Cap": 7}\n{"caption": null}\n',
        ["b"],
        [
            ("line 1", "caption", "expected text, found a number"),
            ("line 3", None, "expected an object with fields, found a list"),
            ("line 4", "GT-Cap", "expected text, found a number"),
            ("line 5", "caption", "expected text, found null"),
        ],
    ),
    "missing_field": (
        "a.jsonl",
        b'{"x": 1, "y": 2}\n{"caption": "b"}\n',
        ["b"],
        [("line 1", None, "no field holds a caption (such as 'caption', 'text' or 'Ref-Cap'); fields: x, y")],
    ),
    "bad_utf8": (
        "a.jsonl",
        b'{"caption": "a\xff"}\n{"caption": "b"}\n',
        ["b"],
        [("line 1", None, "not UTF-8 (byte 0xff at character 15)")],
    ),
    "bad_id_and_tokens": (
        "a.json",
        b'[{"Ref-Cap": "a", "sample_id": 1.5},\n{"Ref-Cap": "b", "Ref-Cap_tokens": "b"},\n{"Ref-Cap": "c"}]',
        ["c"],
        [
            ("record 1 (line 1)", "sample_id", "expected an id (text or whole number), found a number"),
            ("record 2 (line 2)", "Ref-Cap_tokens", "expected a list of words, found text"),
        ],
    ),
    "cut_off_array": (
        "a.json",
        b'[{"Ref-Cap": "a"},\n {"Ref-Cap": "b", "GT-C',
        ["a"],
        [("record 2 (line 2)", None, "the file ends inside this record"), ("line 2", None, "the file ends here")],
    ),
    "broken_element": (
        "a.json",
        b'[{"Ref-Cap": "a", },\n {"Ref-Cap": "b"}, oops, {"Ref-Cap": "c"}, {"Ref-Cap": "\xc3("}]',
        ["b", "c"],
        [
            ("record 1 (line 1)", None, "not JSON"),
            ("record 3 (line 2)", None, "not JSON"),
            ("record 5 (line 2)", None, "not UTF-8"),
        ],
    ),
    "text_after_the_end": (
        "a.json",
        b'[{"Ref-Cap": "a"}]\n[]',
        ["a"],
        [("line 2", None, "more text after the end")],
    ),
    "coco": (
        "a.json",
        b'{"images": [{"id": 1}],\n"annotations": [{"id": 1, "image_id": 1, "caption": "a"},\n'
        b'{"id": 2, "image_id": 1},\n{"id": 3, "image_id": 9, "caption": "c"}, '
        b'{"id": 3, "image_id": 1, "caption": "d"}]}',
        ["a", "c", "d"],
        [
            ("annotation 2 (line 3)", None, "no field holds a caption"),
            ("annotation 3 (line 4)", "image_id", "no image with id 9 in 'images'"),
            ("annotation 4 (line 4)", "id", "duplicate id 3"),
        ],
    ),
    "csv": (
        "a.csv",
        b'id,caption\n1,a\n2,"two\nlines"\n3,x,y\n4\n5,\xff\n5,b\n1,again\n',
        ["a", "two\nlines", "b", "again"],
        [
            ("line 5", None, "3 cells where the header has 2"),
            ("line 6", None, "1 cells where the header has 2"),
            ("line 7", None, "not UTF-8 (byte 0xff)"),
            ("line 9", "id", "duplicate id '1'"),
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_records_are_named_and_left_out(tmp_path: Path, case: str) -> None:
    name, content, captions, expected = CASES[case]
    file = tmp_path / name
    file.write_bytes(content)
    heard: list[Problem] = []
    dataset = open_dataset(file, on_error=heard.append)
    for _ in range(2):
        assert [i.reference for i in dataset] == captions
        assert [(p.file, p.place, p.field) for p in dataset.problems] == [(file, place, f) for place, f, _ in expected]
        for problem, (place, field, reason) in zip(dataset.problems, expected, strict=True):
            assert reason in problem.reason
            assert str(problem).startswith(f"{file}, {place}")
            assert field is None or f"field '{field}'" in str(problem)
    assert len(dataset.problems) == len(expected)
    assert len(heard) == 2 * len(expected)


@pytest.mark.parametrize("case", CASES)
def test_strict_stops_at_the_first(tmp_path: Path, case: str) -> None:
    name, content, _, expected = CASES[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as error:
        list(open_dataset(tmp_path / name, strict=True))
    assert str(error.value).startswith(f"{tmp_path / name}, {expected[0][0]}")
    assert expected[0][2] in str(error.value)


def test_optional_looking_fields_of_another_type_are_extra_fields(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"caption": "a", "target": 3, "image": "https://x/y.jpg", "id": {"a": 1}}\n')
    (instance,) = open_dataset(tmp_path / "a.jsonl", strict=True)
    assert (instance.target, instance.image, instance.id) == (None, None, "a.jsonl:1")
    assert instance.extra == {"target": 3, "image": "https://x/y.jpg", "id": {"a": 1}}
    with pytest.raises(DataError, match="field 'target': expected text"):
        list(open_dataset(tmp_path / "a.jsonl", fields={"target": "target"}, strict=True))


def test_csv_without_a_caption_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x,y\n1,2\n")
    with pytest.raises(DataError, match=r"a\.csv, line 1: no column for a caption among 'x', 'y'"):
        list(open_dataset(tmp_path / "a.csv"))
    with pytest.raises(DataError, match="no column for 'z'"):
        list(open_dataset(tmp_path / "a.csv", fields={"reference": "z"}))


def test_bad_rows_of_a_table(tmp_path: Path) -> None:
    table = pa.table({"caption": ["a", None, "c"], "id": [1, 2, 1]})
    pq.write_table(table, tmp_path / "a.parquet")
    dataset = open_dataset(tmp_path / "a.parquet")
    assert [i.reference for i in dataset] == ["a", "c"]
    assert [(p.place, p.field) for p in dataset.problems] == [("row 2", "caption"), ("row 3", "id")]
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    with pytest.raises(DataError, match=r"b\.parquet: cannot be read"):
        list(open_dataset(tmp_path / "b.parquet"))


def test_bad_samples_of_a_shard(tmp_path: Path) -> None:
    members = {
        "a.jpg": photo((1, 2, 3)), "a.txt": b"a", "b.jpg": photo((1, 2, 3)), "c.json": b"{", "d.json": b"[]",
        "e.txt": b"\xff", "f.txt": b"f", "f.npy": b"\x93NUMPY", "g.json": b'{"caption": 4}', "h.txt": b"h",
    }  # fmt: skip
    with tarfile.open(tmp_path / "s.tar", "w") as shard:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            shard.addfile(info, io.BytesIO(data))
    dataset = open_dataset(tmp_path / "s.tar")
    assert [i.reference for i in dataset] == ["a", "f", "h"]
    assert [i.extra for i in dataset] == [{}, {".npy": b"\x93NUMPY"}, {}]
    assert [(p.place, p.field) for p in dataset.problems] == [
        ("key b", None), ("key c", None), ("key d", "json"), ("key e", "txt"), ("key g", "caption"),
    ]  # fmt: skip


@pytest.mark.parametrize("damage", ["cut", "scrambled"])
def test_broken_shards_give_what_they_have(tmp_path: Path, damage: str) -> None:
    write_dataset([Instance(f"k{n}", f"caption {n}") for n in range(5)], tmp_path / "s.tar")
    data = bytearray((tmp_path / "s.tar").read_bytes())
    if damage == "cut":
        data = data[: 3 * 1024 + 600]
        data[3 * 1024 + 124 : 3 * 1024 + 136] = b"00000000777\0"
    else:
        data[3 * 1024 : 3 * 1024 + 512] = b"\x55" * 512
    (tmp_path / "s.tar").write_bytes(data)
    dataset = open_dataset(tmp_path / "s.tar")
    assert [i.id for i in dataset] == ["k0", "k1", "k2"]
    assert len(dataset.problems) == 1
    assert "broken tar shard" in str(dataset.problems[0])


def test_folders_with_gaps(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(photo((1, 2, 3)))
    (tmp_path / "a.txt").write_bytes(b"fine\nbad \xff\n")
    (tmp_path / "b.jpg").write_bytes(photo((1, 2, 3)))
    (tmp_path / "c.txt").write_bytes(b"no image")
    dataset = open_dataset(tmp_path)
    assert [i.reference for i in dataset] == ["fine"]
    assert [(p.file.name, p.place, p.field, p.reason) for p in dataset.problems] == [
        ("a.txt", "line 2", "caption", "not UTF-8 (byte 0xff)"),
        ("c.txt", "", "image", "no image beside this caption"),
        ("b.jpg", "", None, "image without a caption"),
    ]


@pytest.mark.parametrize(("name", "format"), [("s.tar", None), ("folder", "sidecar")])
def test_a_missing_image_costs_the_image_only(tmp_path: Path, name: str, format: str | None) -> None:
    missing = ImageFile(tmp_path / "gone.jpg", "gone.jpg")
    with pytest.raises(DataError, match=r"gone\.jpg: image cannot be read"):
        missing.read()
    written = write_dataset([Instance("a", "x", image=missing), Instance("b", "y")], tmp_path / name, format)
    assert written.count == 2
    assert [(p.place, p.field) for p in written.problems] == [("instance 'a'", "image")]
    assert "gone.jpg" in written.problems[0].reason
    first, second = open_dataset(tmp_path / name, strict=True)
    assert first.image is not None
    assert first.image.name == "gone.jpg"
    assert second.image is None


def test_a_flood_of_problems_is_counted_but_not_kept(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n' * 3000, encoding="utf-8")
    dataset = open_dataset(tmp_path / "a.jsonl")
    assert list(dataset) == []
    assert len(dataset.problems) == 3000
    assert len(list(dataset.problems)) == 1000


def test_nothing_is_left_behind_by_a_failed_write(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("before", encoding="utf-8")
    bad = Instance(1, "x", extra={"key": object()})
    for name, format in (("out.jsonl", None), ("o.parquet", None), ("o.tar", None), ("o.csv", None), ("f", "sidecar")):
        with pytest.raises(TypeError):
            write_dataset([Instance(0, "fine"), bad], tmp_path / name, format)
    assert [file.name for file in tmp_path.iterdir()] == ["out.jsonl"]
    assert (tmp_path / "out.jsonl").read_text(encoding="utf-8") == "before"


def test_a_folder_with_things_in_it_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("x", encoding="utf-8")
    with pytest.raises(DataError, match="exists and is not empty"):
        write_dataset([Instance(0, "x")], tmp_path / "out", "sidecar")
    assert (tmp_path / "out" / "precious").exists()


def test_published_keys_on_disk(tmp_path: Path) -> None:
    write_dataset([Instance(1, "a cat", "a dog", image_id=9)], tmp_path / "a.json")
    (record,) = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert list(record) == ["image_id", "Ref-Cap", "Ref-Cap_tokens", "GT-Cap", "GT-Cap_tokens", "sample_id"]
