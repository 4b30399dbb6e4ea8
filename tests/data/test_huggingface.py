"""Hugging Face datasets: `datasets` reads what we write, and we read what it writes."""

from pathlib import Path

import datasets
import pytest

from capedit.data import Instance, open_dataset, rewrite_dataset, write_dataset
from tests.data.samples import facts, photo, photos


@pytest.fixture(autouse=True)
def no_progress_bars() -> None:
    datasets.disable_progress_bars()


def saved(folder: Path) -> datasets.DatasetDict:
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "caption": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["human", "machine"]),
            "boxes": [{"x": datasets.Value("int32"), "name": datasets.Value("string")}],
        }
    )
    rows = [
        {
            "image": {"bytes": photo((n, 0, 0)), "path": None},
            "caption": f"c{n}",
            "label": n % 2,
            "boxes": [{"x": n, "name": "b"}],
        }
        for n in range(5)
    ]
    made = datasets.Dataset.from_list(rows, features=features)
    both = datasets.DatasetDict({"train": made.select(range(3)), "validation": made.select(range(3, 5))})
    both.save_to_disk(folder)
    return both


def test_reading_and_editing_a_dataset_dict(tmp_path: Path) -> None:
    saved(tmp_path / "hf")
    dataset = open_dataset(tmp_path / "hf", strict=True)
    found = list(dataset)
    assert dataset.format.name == "huggingface"
    assert [i.reference for i in found] == ["c0", "c1", "c2", "c3", "c4"]
    assert [i.origin.split for i in found if i.origin] == ["train"] * 3 + ["validation"] * 2
    assert found[4].image is not None
    assert found[4].image.read() == photo((4, 0, 0))
    assert found[4].extra == {"label": 0, "boxes": [{"x": 4, "name": "b"}]}

    before = datasets.load_from_disk(tmp_path / "hf")
    fingerprints = {split: before[split]._fingerprint for split in before}
    rewrite_dataset(dataset, [found[3].revised(reference="new")])
    after = datasets.load_from_disk(tmp_path / "hf")
    assert after["validation"]["caption"][:] == ["new", "c4"]
    assert after["train"].features == before["train"].features
    # `datasets` caches results by fingerprint: what changed must not keep its own.
    assert after["train"]._fingerprint == fingerprints["train"]
    assert after["validation"]._fingerprint != fingerprints["validation"]


def test_a_dataset_dict_there_and_back(tmp_path: Path) -> None:
    original = saved(tmp_path / "hf")
    write_dataset(open_dataset(tmp_path / "hf"), tmp_path / "flat.jsonl")
    assert [i.extra["split"] for i in open_dataset(tmp_path / "flat.jsonl")] == ["train"] * 3 + ["validation"] * 2
    write_dataset(open_dataset(tmp_path / "flat.jsonl"), tmp_path / "back", "huggingface")
    back = datasets.load_from_disk(tmp_path / "back")
    for split in original:
        assert back[split].features["label"] == original[split].features["label"]
        assert back[split]["caption"][:] == original[split]["caption"][:]
        assert back[split]["boxes"][:] == original[split]["boxes"][:]
        assert sorted(back[split].column_names) == sorted(original[split].column_names)


def test_datasets_reads_what_we_write(tmp_path: Path) -> None:
    image = photos(tmp_path / "pictures")[0]
    rows = [
        Instance("a", "a cat", "a dog", image=image, extra={"n": 1, "nested": {"x": [1.5], "y": None}}),
        Instance("b", "", None, extra={"n": 2, "nested": {"x": [], "y": None}}),
    ]
    write_dataset(rows, tmp_path / "s.tar")
    write_dataset(open_dataset(tmp_path / "s.tar"), tmp_path / "hf", "huggingface")
    loaded = datasets.load_from_disk(tmp_path / "hf")
    assert loaded["reference"][:] == ["a cat", ""]
    assert loaded["n"][:] == [1, 2]
    assert loaded["nested"][0] == {"x": [1.5], "y": None}
    assert isinstance(loaded.features["image"], datasets.Image)
    assert loaded[0]["image"].size == (8, 6)
    back = list(open_dataset(tmp_path / "hf", strict=True))
    assert [facts(i, ordered=False) for i in back] == [facts(i, ordered=False) for i in rows]


def test_many_rows_make_several_arrow_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capedit.data.formats.huggingface.SHARD_ROWS", 1000)
    write_dataset((Instance(n, f"c{n}") for n in range(2500)), tmp_path / "hf", "huggingface")
    assert len(open_dataset(tmp_path / "hf").shards()) == 3
    assert [i.id for i in open_dataset(tmp_path / "hf")] == list(range(2500))
    assert datasets.load_from_disk(tmp_path / "hf").num_rows == 2500
