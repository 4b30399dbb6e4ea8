"""Edits in place: nothing but the edited caption changes, and taking the edit back gives the same bytes."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capedit.data import DataError, Dataset, Instance, open_dataset, restore_instances, rewrite_dataset, write_dataset
from tests.data.samples import LAYOUT_IDS, LAYOUTS, nasty_instances

EDIT = "a dog — “größer” 🐕"
BYTE_STABLE = {"ee", "jsonl", "coco", "csv", "webdataset", "sidecar"}


def digest(path: Path) -> dict[str, str]:
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return {str(file.relative_to(path.parent)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def made(tmp_path: Path, name: str, format: str | None) -> Dataset:
    instances = [
        # A side file must not be what makes this work.
        Instance(i.id, i.reference, i.target, i.image_id, i.image, extra=i.extra)
        for i in nasty_instances(tmp_path / "pictures")
        if "\n" not in i.reference and "\ud83d" not in i.reference and len(i.reference) < 1000
    ]
    write_dataset(instances, tmp_path / "data" / name, format)
    return open_dataset(tmp_path / "data" / name, format, strict=True)


def edits(dataset: Dataset) -> Iterator[Instance]:
    for number, instance in enumerate(dataset):
        if number % 4 == 1:
            yield instance.revised(reference=f"{EDIT} {number}")


@pytest.mark.parametrize(("name", "format"), LAYOUTS, ids=LAYOUT_IDS)
def test_edits_in_place_and_back(tmp_path: Path, name: str, format: str | None) -> None:
    dataset = made(tmp_path, name, format)
    before, originals = digest(dataset.path), list(dataset)
    count = rewrite_dataset(dataset, edits(dataset))
    assert count == len(originals) // 4 + (len(originals) % 4 > 1)
    assert digest(dataset.path) != before
    for number, (new, old) in enumerate(zip(dataset, originals, strict=True)):
        assert new.reference == (f"{EDIT} {number}" if number % 4 == 1 else old.reference)
        assert (new.id, new.target, new.image_id, new.extra) == (old.id, old.target, old.image_id, old.extra)
        assert (new.image is None) == (old.image is None)
        if new.image and old.image and name not in ("shard.tar", "shards"):  # there, offsets have moved
            assert new.image.read() == old.image.read()
    assert restore_instances(dataset, [old for n, old in enumerate(originals) if n % 4 == 1]) == count
    assert [i.reference for i in dataset] == [i.reference for i in originals]
    if dataset.format.name in BYTE_STABLE:
        assert digest(dataset.path) == before


@pytest.mark.parametrize(("name", "format"), LAYOUTS, ids=LAYOUT_IDS)
def test_a_copy_without_edits_is_the_same_bytes(tmp_path: Path, name: str, format: str | None) -> None:
    dataset = made(tmp_path, name, format)
    assert rewrite_dataset(dataset, dataset, tmp_path / "copy" / name) == 0
    assert digest(tmp_path / "copy" / name) == digest(dataset.path)


@pytest.mark.parametrize(("name", "format"), LAYOUTS, ids=LAYOUT_IDS)
def test_a_copy_with_edits_leaves_the_source_alone(tmp_path: Path, name: str, format: str | None) -> None:
    dataset = made(tmp_path, name, format)
    before = digest(dataset.path)
    assert rewrite_dataset(dataset, edits(dataset), tmp_path / "copy" / name) > 0
    assert digest(dataset.path) == before
    assert sum(i.reference.startswith(EDIT) for i in open_dataset(tmp_path / "copy" / name, format)) > 0


SPELLED = {
    "a.jsonl": (
        b'\xef\xbb\xbf{ "caption" :"old" ,"n": 1.50e3, "big":1E400, "\\u0061": "\\/"}\r\n\r\nnot json\r\n'
        b'{"caption": "\\u00e9", "caption": "old"}\r\n{"no": "caption"}\r\n{"text":"last"}',
        (b'"caption" :"old"', b'"caption" :"new"'),
    ),
    "a.json": (
        b' [ {"Ref-Cap":"old","n":1.0} ,\n\n 5, {"GT-Cap": tru}, {"Ref-Cap": "x"}\n]\n ',
        (b'"old"', b'"new"'),
    ),
    "coco.json": (
        b'{"info": {"year": 2014.0}, "annotations": [{"id": 1, "image_id": 2, "caption": "old"},{"id": 3}],\n'
        b'"images": [{"id": 2,  "file_name": "x.jpg", "width": 1e2}], "other": [1, [2]]}',
        (b'"old"', b'"new"'),
    ),
    "a.csv": (
        b'\xef\xbb\xbfid;"caption";x\r\n1;"old";\'\r\n\r\n2;too;many;cells\r\n3;"two\nlines ""q""";\xff\r\n4;plain;"y"',
        (b'"old"', b"new"),
    ),
    "a.tsv": (b'id\tcaption\n1\told\n2\t5" tall\n', (b"old", b"new")),
}


@pytest.mark.parametrize("name", SPELLED)
def test_odd_spelling_and_bad_records_stay(tmp_path: Path, name: str) -> None:
    content, (old, new) = SPELLED[name]
    (tmp_path / name).write_bytes(content)
    dataset = open_dataset(tmp_path / name)
    first = next(iter(dataset))
    assert first.reference == "old"
    rewrite_dataset(dataset, [first.revised(reference="new")])
    assert (tmp_path / name).read_bytes() == content.replace(old, new, 1)


def test_new_fields_go_to_the_end_of_a_json_record(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"caption":"a","x":1}\n{"caption": "b" }\n')
    dataset = open_dataset(tmp_path / "a.jsonl")
    rewrite_dataset(dataset, [instance.revised(prediction="p") for instance in dataset])
    expected = b'{"caption":"a","x":1,"prediction":"p"}\n{"caption": "b", "prediction": "p" }\n'
    assert (tmp_path / "a.jsonl").read_bytes() == expected


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_new_fields_are_refused_where_there_is_no_column(tmp_path: Path, name: str) -> None:
    write_dataset([Instance(1, "a")], tmp_path / name)
    before = digest(tmp_path / name)
    dataset = open_dataset(tmp_path / name)
    with pytest.raises(DataError, match="prediction"):
        rewrite_dataset(dataset, [i.revised(prediction="p") for i in dataset])
    assert digest(tmp_path / name) == before
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_tokens_of_an_edited_caption_are_made_anew(tmp_path: Path) -> None:
    record = {"Ref-Cap": "a cat", "Ref-Cap_tokens": ["a", "cat"], "sample_id": 1}
    (tmp_path / "a.json").write_text(json.dumps([record]), encoding="utf-8")
    dataset = open_dataset(tmp_path / "a.json")
    rewrite_dataset(dataset, [i.revised(reference="a red dog") for i in dataset])
    after = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert after == [{"Ref-Cap": "a red dog", "Ref-Cap_tokens": ["a", "red", "dog"], "sample_id": 1}]


def test_edits_out_of_order_or_from_elsewhere_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"caption": "a"}\n{"caption": "b"}\n')
    (tmp_path / "b.jsonl").write_bytes(b'{"caption": "a"}\n')
    dataset = open_dataset(tmp_path / "a.jsonl")
    changed = [i.revised(reference="x") for i in dataset]
    with pytest.raises(DataError, match="out of order"):
        rewrite_dataset(dataset, reversed(changed))
    with pytest.raises(DataError, match="not a file of"):
        rewrite_dataset(open_dataset(tmp_path / "b.jsonl"), changed)
    with pytest.raises(DataError, match="was not read from"):
        rewrite_dataset(dataset, [Instance(1, "x")])
    assert (tmp_path / "a.jsonl").read_bytes() == b'{"caption": "a"}\n{"caption": "b"}\n'


def test_parquet_keeps_schema_metadata_row_groups_and_compression(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            pa.field("caption", pa.large_string(), nullable=False, metadata={"note": "mine"}),
            pa.field("n", pa.int8()),
            pa.field("when", pa.timestamp("ns", tz="UTC")),
            pa.field("tags", pa.list_(pa.struct([("k", pa.string()), ("v", pa.float32())]))),
            pa.field("kind", pa.dictionary(pa.int8(), pa.string())),
        ],
        metadata={"made by": "hand"},
    )
    rows = [
        {"caption": f"c{n}", "n": n, "when": 10**18 + n, "tags": [{"k": "a", "v": 0.5}], "kind": "x"} for n in range(7)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "a.parquet", row_group_size=3, compression="gzip")
    original = pq.ParquetFile(tmp_path / "a.parquet").schema_arrow
    dataset = open_dataset(tmp_path / "a.parquet", strict=True)
    rewrite_dataset(dataset, [i.revised(reference="new") for i in dataset if i.reference == "c4"])
    write_dataset(dataset, tmp_path / "copy.parquet")
    for name in ("a.parquet", "copy.parquet"):
        after = pq.ParquetFile(tmp_path / name)
        assert after.metadata.num_row_groups == 3
        assert after.metadata.row_group(0).column(0).compression == "GZIP"
        assert after.schema_arrow.metadata[b"made by"] == b"hand"
        assert after.schema_arrow.types == schema.types
        expected = [{**row, "caption": "new"} if row["caption"] == "c4" else row for row in rows]
        assert after.read().equals(pa.Table.from_pylist(expected, schema))
        assert after.schema_arrow.equals(original, check_metadata=True)


def test_shards_are_rewritten_alone(tmp_path: Path) -> None:
    instances = [Instance(f"k{n}", f"caption {n}") for n in range(10)]
    write_dataset(instances, tmp_path / "shards", "webdataset", shard_size=4)
    dataset = open_dataset(tmp_path / "shards")
    assert [len(list(shard)) for shard in dataset.shards()] == [4, 4, 2]
    before = digest(tmp_path / "shards")
    shard = dataset.shards()[1]
    rewrite_dataset(shard, [i.revised(reference="new") for i in shard])
    changed = [name for name, code in digest(tmp_path / "shards").items() if before[name] != code]
    assert changed == ["shards/00001.tar"]
    assert [i.id for i in dataset] == [f"k{n}" for n in range(10)]
