"""What is particular to single formats: dialects, surroundings, members, sidecars."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from capedit.data import Instance, open_dataset, restore_instances, rewrite_dataset, write_dataset
from tests.data.samples import photo

TABLES = {
    "comma": 'id,caption,x\n1,"a, b",y\n',
    "semicolon": "id;caption;x\r\n1;a, b;y\r\n",
    "tab": "id\tcaption\tx\n1\ta, b\ty\n",
    "pipe_and_spaces": "id| caption| x\n1| a, b| y\n",
    "single_quotes": "'id','caption','x'\n'1','a, b','y'\n",
    "backslashes": 'id,caption,x\n1,"a, b",y\n2,"say \\"hi\\", he said",z\n',
    "all_quoted": '"id","caption","x"\n"1","a, b","y"\n',
    "old_mac": 'id,caption,x\r1,"a, b",y\r',
    "one_column": 'caption\n"a, b"\n',
    "apostrophes": "id\tcaption\tx\n1\ta, b\t'tis\n2\tit's\tdon't\n",
    "no_last_line_end": 'id,caption,x\n1,"a, b",y',
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", TABLES)
def test_tables_of_all_dialects(tmp_path: Path, name: str, encoding: str) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(TABLES[name].encode(encoding))
    dataset = open_dataset(file, strict=True)
    first = next(iter(dataset))
    assert first.reference == "a, b"
    if name != "one_column":
        assert first.id == "1"
        assert first.extra["x"] in ("y", "'tis")
    rewrite_dataset(dataset, [first.revised(reference="a;\t|\"'é")] if name != "tab" else [])
    if name not in ("tab", "apostrophes"):
        assert next(iter(dataset)).reference == "a;\t|\"'é"
    rewrite_dataset(dataset, [next(iter(dataset)).revised(reference="q")])
    assert "q" in file.read_bytes().decode(encoding)
    assert len(list(dataset)) == len([line for line in TABLES[name].replace("\r", "\n").split("\n") if line]) - 1


def test_the_dialect_of_a_template_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("\ufeffid;caption\r\n1;a\r\n".encode())
    template = open_dataset(tmp_path / "a.csv")
    more = [*template, Instance("2", "b; c")]
    write_dataset(more, tmp_path / "b.csv", template=template)
    assert (tmp_path / "b.csv").read_bytes() == '\ufeffid;caption\r\n1;a\r\n2;"b; c"\r\n'.encode()


def test_plain_tables_have_no_side_folder(tmp_path: Path) -> None:
    write_dataset([Instance("1", "a", "b", extra={"x": "y"}), Instance("2", "c", extra={"x": ""})], tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == "id,reference,target,x\n1,a,b,y\n2,c,,\n"
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]
    write_dataset([Instance(1, "a")], tmp_path / "a.csv")
    assert (tmp_path / "a.csv.capedit" / "notes.json").is_file(), "that the id is a number must be written somewhere"
    write_dataset([Instance("1", "a")], tmp_path / "a.csv")
    assert not (tmp_path / "a.csv.capedit").exists(), "no notes of an earlier file may stay"


COCO: dict[str, Any] = {
    "info": {"year": 2014, "n": 1.0},
    "images": [{"id": 9, "file_name": "x.jpg", "license": 3}, {"id": 4, "file_name": "unused.jpg"}],
    "licenses": [{"id": 3, "name": "CC"}],
    "annotations": [{"image_id": 9, "id": 1, "caption": "a"}, {"id": 2, "caption": "b", "image_id": 9, "seen": [1]}],
    "zeta": [1, [2]],
}


@pytest.mark.parametrize("indent", [None, 2])
def test_all_of_a_coco_file_survives_conversion(tmp_path: Path, indent: int | None) -> None:
    (tmp_path / "a.json").write_text(json.dumps(COCO, indent=indent), encoding="utf-8")
    write_dataset(open_dataset(tmp_path / "a.json", strict=True), tmp_path / "copy.json")
    assert (tmp_path / "copy.json").read_bytes() == (tmp_path / "a.json").read_bytes()
    last = tmp_path / "a.json"
    for name in ("b.jsonl", "c.csv", "d.parquet", "e.tar"):
        write_dataset(open_dataset(last), tmp_path / name)
        last = tmp_path / name
    write_dataset(open_dataset(last), tmp_path / "back.json", "coco")
    assert json.loads((tmp_path / "back.json").read_text(encoding="utf-8")) == COCO


def test_new_captions_and_images_for_a_coco_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(COCO), encoding="utf-8")
    template = open_dataset(tmp_path / "a.json")
    kept = [i for i in template if i.id == 2]
    write_dataset([*kept, Instance(3, "new", image_id=77)], tmp_path / "b.json", template=template)
    after = json.loads((tmp_path / "b.json").read_text(encoding="utf-8"))
    assert after["annotations"] == [COCO["annotations"][1], {"id": 3, "image_id": 77, "caption": "new"}]
    assert after["images"] == [*COCO["images"], {"id": 77}]
    assert after["licenses"] == COCO["licenses"]


def tar_of(members: dict[str, bytes], file: Path) -> None:
    with tarfile.open(file, "w", format=tarfile.GNU_FORMAT) as shard:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.uname = len(data), 1234567890, "someone"
            shard.addfile(info, io.BytesIO(data))


def test_members_of_a_shard_keep_their_bytes(tmp_path: Path) -> None:
    long_key = "folder/" + "k" * 150
    members = {
        "0001.jpg": photo((1, 2, 3)), "0001.txt": b"a cat\n", "0001.json": b'{"caption":"a cat", "n": 1.50}',
        "0002.seg.png": photo((9, 9, 9), "PNG"), "0002.webp": photo((3, 2, 1), "WEBP"), "0002.txt": "é".encode(),
        f"{long_key}.txt": b"long", f"{long_key}.cls": b"7", "README": b"no sample",
    }  # fmt: skip
    tar_of(members, tmp_path / "s.tar")
    before = (tmp_path / "s.tar").read_bytes()
    dataset = open_dataset(tmp_path / "s.tar", strict=True)
    first, second, third = dataset
    assert (first.id, first.reference, first.extra) == ("0001", "a cat", {"n": 1.5})
    assert second.image is not None
    assert second.image.read() == members["0002.webp"]
    assert (third.id, third.extra) == (long_key, {".cls": b"7"})

    edited = [i.revised(reference=i.reference + " and more " * 100) for i in (first, third)]
    rewrite_dataset(dataset, edited)
    with tarfile.open(tmp_path / "s.tar") as shard:
        after = {entry.name: shard.extractfile(entry).read() for entry in shard}  # type: ignore[union-attr]
        assert {entry.uname for entry in shard.getmembers()} == {"someone"}
    more = b" and more " * 100
    caption = '"a cat' + " and more " * 100 + '"'
    changed = {"0001.txt": b"a cat" + more + b"\n", "0001.json": f'{{"caption":{caption}, "n": 1.50}}'.encode()}
    assert after == {**members, **changed, f"{long_key}.txt": b"long" + more}
    restore_instances(dataset, [first, third])
    assert (tmp_path / "s.tar").read_bytes() == before


def test_sidecars_can_go_on_being_edited_by_hand(tmp_path: Path) -> None:
    instance = Instance(5, "a\ncat", "a dog", image_id=1, given_reference_tokens=("a", "cat"), extra={"x": 1})
    write_dataset([instance, Instance(6, "b", image_id=1)], tmp_path / "f", "sidecar")
    assert (tmp_path / "f" / "1.txt").read_bytes() == b"a cat\nb\n"
    assert list(open_dataset(tmp_path / "f", strict=True)) == [instance, Instance(6, "b", image_id=1)]
    (tmp_path / "f" / "1.txt").write_bytes(b"a red cat\nb\n")
    first, _ = open_dataset(tmp_path / "f", strict=True)
    assert (first.id, first.reference, first.target, first.extra) == (5, "a red cat", "a dog", {"x": 1})
    assert first.reference_tokens == ("a", "red", "cat")


def test_plain_folders_stay_plain(tmp_path: Path) -> None:
    (tmp_path / "f" / "sub").mkdir(parents=True)
    for name in ("b.jpg", "sub/a.png"):
        (tmp_path / "f" / name).write_bytes(photo((1, 1, 1), "PNG" if name.endswith("png") else "JPEG"))
    (tmp_path / "f" / "b.txt").write_bytes(b"one\ntwo\n")
    (tmp_path / "f" / "sub" / "a.caption").write_bytes(b"three\n")
    write_dataset(open_dataset(tmp_path / "f", strict=True), tmp_path / "g")
    files = sorted(str(file.relative_to(tmp_path / "g")) for file in (tmp_path / "g").rglob("*") if file.is_file())
    assert files == ["b.jpg", "b.txt", "sub/a.caption", "sub/a.png"]
    assert (tmp_path / "g" / "b.txt").read_bytes() == b"one\ntwo\n"


def test_two_images_of_one_name_are_both_kept(tmp_path: Path) -> None:
    for number, folder in enumerate(("one", "two")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.png").write_bytes(photo((number, 0, 0), "PNG"))
    lines = [json.dumps({"caption": folder, "image": f"{folder}/x.png", "image_id": "x"}) for folder in ("one", "two")]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    write_dataset(open_dataset(tmp_path / "a.jsonl"), tmp_path / "f", "sidecar")
    images = [i.image.read() for i in open_dataset(tmp_path / "f", strict=True) if i.image]
    assert images == [photo((0, 0, 0), "PNG"), photo((1, 0, 0), "PNG")]
