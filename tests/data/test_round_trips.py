"""Nothing is lost: through every format, and from every format to every other and back."""

import json
from itertools import product
from pathlib import Path

import pytest

from capedit.data import Instance, open_dataset, write_dataset
from tests.data.samples import JSON_FILES, LAYOUT_IDS, LAYOUTS, ONE_EACH, facts, nasty_instances, photos


@pytest.mark.parametrize(("name", "format"), LAYOUTS, ids=LAYOUT_IDS)
def test_hard_instances_survive(tmp_path: Path, name: str, format: str | None) -> None:
    instances = nasty_instances(tmp_path / "pictures")
    written = write_dataset(iter(instances), tmp_path / "out" / name, format)
    assert written.count == len(instances)
    assert len(written.problems) == 0
    dataset = open_dataset(tmp_path / "out" / name, strict=True)
    ordered = name in JSON_FILES
    for back, instance in zip(dataset, instances, strict=True):
        assert facts(back, ordered=ordered) == facts(instance, ordered=ordered)
    assert list(dataset) == list(dataset), "a dataset can be read again"


@pytest.mark.parametrize(
    ("first", "second"),
    list(product(ONE_EACH, ONE_EACH)),
    ids=[f"{one[0]}-{other[0]}" for one, other in product(ONE_EACH, ONE_EACH)],
)
def test_there_and_back(tmp_path: Path, first: tuple[str, str | None], second: tuple[str, str | None]) -> None:
    # The longest caption is left out here: it is covered above, and 64 conversions of it are slow.
    instances = [i for i in nasty_instances(tmp_path / "pictures") if len(i.reference) < 1000]
    ways = [(tmp_path / "1" / first[0], first[1]), (tmp_path / "2" / second[0], second[1])]
    ways.append((tmp_path / "3" / "again" / first[0], first[1]))
    source: object = instances
    for path, format in ways:
        written = write_dataset(source, path, format)  # type: ignore[arg-type]
        assert len(written.problems) == 0
        source = open_dataset(path, format, strict=True)
        assert [facts(i, ordered=False) for i in source] == [facts(i, ordered=False) for i in instances]


@pytest.mark.parametrize(("name", "format"), LAYOUTS, ids=LAYOUT_IDS)
def test_no_instances(tmp_path: Path, name: str, format: str | None) -> None:
    assert write_dataset([], tmp_path / name, format).count == 0
    assert list(open_dataset(tmp_path / name, format)) == []


@pytest.mark.parametrize("name", ["captions.jsonl", "captions.json", "captions.csv"])
def test_same_format_keeps_unknown_spelling_byte_for_byte(tmp_path: Path, name: str) -> None:
    content = {
        "captions.jsonl": b'{"caption":"a \\u00e9 caf\\u00e9","n":1.50,"big":1e400, "x" : null}\n\n{"text": "b"}\n',
        "captions.json": b'[\n  {\n    "Ref-Cap": "a\\/b",\n    "n": 1.50\n  },\n  {\n    "Ref-Cap": "c"\n  }\n]\n',
        "captions.csv": b'id,caption,x\r\n"1","a, b",\'q\r\n2,"say ""hi""",\r\n',
    }[name]
    (tmp_path / name).write_bytes(content)
    write_dataset(open_dataset(tmp_path / name, strict=True), tmp_path / "copy" / name)
    # Lines that are no records are the one thing that writing (unlike rewriting) does not take over.
    assert (tmp_path / "copy" / name).read_bytes() == content.replace(b"\n\n", b"\n")


def test_field_names_are_kept_where_the_format_has_none_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"zeta": 1, "text": "a cat", "uid": "u1", "alpha": [1]}\n', encoding="utf-8")
    source = open_dataset(tmp_path / "in.jsonl")
    for name in ("a.csv", "b.parquet", "c.tar", "d.json"):
        write_dataset(source, tmp_path / name)
        write_dataset(open_dataset(tmp_path / name), tmp_path / f"{name}.jsonl")
    original = json.loads((tmp_path / "in.jsonl").read_text(encoding="utf-8"))
    for name in ("a.csv", "b.parquet"):
        assert json.loads((tmp_path / f"{name}.jsonl").read_text(encoding="utf-8")) == original
    published = json.loads((tmp_path / "d.json").read_text(encoding="utf-8"))[0]
    assert published["Ref-Cap"] == "a cat"
    assert published["sample_id"] == "u1"
    assert published["Ref-Cap_tokens"] == ["a", "cat"]


def test_image_paths_still_lead_to_the_images(tmp_path: Path) -> None:
    image = photos(tmp_path / "pictures")[0]
    (tmp_path / "in.jsonl").write_text(
        json.dumps({"caption": "x", "image": image.name}) + '\n{"caption": "y", "image": "not/here.jpg"}\n',
        encoding="utf-8",
    )
    write_dataset(open_dataset(tmp_path / "in.jsonl"), tmp_path / "deep" / "er" / "out.csv")
    found, missing = open_dataset(tmp_path / "deep" / "er" / "out.csv")
    assert found.image is not None
    assert found.image.read() == image.read()
    assert missing.image is not None
    assert missing.image.name == "not/here.jpg"


def test_fields_can_be_assigned(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("alt,caption,no\nused,unused,5\n", encoding="utf-8")
    (instance,) = open_dataset(tmp_path / "in.csv", fields={"reference": "alt", "id": "no", "target": None})
    assert (instance.reference, instance.id, instance.extra) == ("used", "5", {"caption": "unused"})


def test_images_by_pattern_and_by_folder(tmp_path: Path) -> None:
    image = photos(tmp_path / "pictures")[0]
    image.path.rename(tmp_path / "pictures" / "000000000042.jpg")
    (tmp_path / "in.jsonl").write_text('{"caption": "x", "image_id": 42}\n', encoding="utf-8")
    dataset = open_dataset(tmp_path / "in.jsonl", images=tmp_path.as_posix() + "/pictures/{image_id:012d}.jpg")
    (instance,) = dataset
    assert instance.image is not None
    assert instance.image.read().startswith(b"\xff\xd8")
    write_dataset(dataset, tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "in.jsonl").read_bytes()
    (tmp_path / "named.jsonl").write_text('{"caption": "x", "image": "000000000042.jpg"}\n', encoding="utf-8")
    (instance,) = open_dataset(tmp_path / "named.jsonl", images=tmp_path / "pictures")
    assert instance.image is not None
    assert instance.image.read().startswith(b"\xff\xd8")


def test_tokens_are_computed_beside_the_text_where_a_file_has_none() -> None:
    instance = Instance(id=1, reference="A Man, In A Hat.", target="a hat")
    assert instance.reference == "A Man, In A Hat."
    assert [token.lower() for token in instance.reference_tokens][:2] == ["a", "man"]
    assert instance.target_tokens == ("a", "hat")
    revised = Instance(1, "x", given_reference_tokens=("x",)).revised(reference="a dog")
    assert revised.reference_tokens == ("a", "dog")
