"""Plans: every caption is in one shard, every image in one, and nothing but the dataset matters."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from capedit.data import open_dataset
from capedit.pipeline import plan as planning
from capedit.pipeline.items import Item, image_key, read_items
from capedit.pipeline.plan import Plan, _ImageTable, make_plan
from capedit.pipeline.reading import FileReader
from capedit.pipeline.selection import Selection
from capedit.pipeline.settings import Source
from capedit.pipeline.shards import FileShard, spool_file
from tests.pipeline.world import write_world


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SHARD_CAPTIONS", 10)


def plan_of(path: Path, folder: Path, only: tuple[str, ...] = ()) -> Plan:
    made = make_plan(Source.of(open_dataset(path)), Selection.parse(only), folder)
    assert Plan.load(folder) == made
    return made


def spooled(plan: Plan, folder: Path) -> list[list[Item]]:
    return [list(read_items(spool_file(folder, shard.number))) for shard in plan.shards]


@pytest.mark.parametrize("scattered", [False, True])
def test_captions_of_an_image_stay_together(tmp_path: Path, scattered: bool) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 100, scattered=scattered)
    plan = plan_of(path, tmp_path / "plan")
    shards = spooled(plan, tmp_path / "plan")
    assert plan.spooled
    assert [shard.captions for shard in plan.shards] == [len(items) for items in shards]
    homes = Counter(key for items in shards for key in {image_key(item.image) for item in items})
    assert set(homes.values()) == {1}
    rows = {item.row: item for items in shards for item in items}
    assert sorted(rows) == list(range(100))
    for row, instance in enumerate(open_dataset(path)):
        item = rows[row]
        assert (item.id, item.text, item.image, item.index) == (instance.id, instance.reference, instance.image, row)
    assert plan.captions == 100


def test_an_image_with_very_many_captions_is_spread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SHARD_MOST", 15)
    path = tmp_path / "one.jsonl"
    path.write_text("".join(f'{{"id": {n}, "caption": "a dog {n}", "image": "same.jpg"}}\n' for n in range(100)))
    plan = plan_of(path, tmp_path / "plan")
    assert sum(shard.captions or 0 for shard in plan.shards) == 100
    assert max(shard.captions or 0 for shard in plan.shards) <= 15


def test_the_plan_marks_what_is_selected(tmp_path: Path) -> None:
    path = write_world(tmp_path, "captions.jsonl", None, 30)
    plan = plan_of(path, tmp_path / "plan", ("source=human",))
    items = [item for shard in spooled(plan, tmp_path / "plan") for item in shard]
    assert plan.captions == len(items) == 30
    assert sum(item.selected for item in items) == 10


@pytest.mark.parametrize(("name", "format"), [("shards", "webdataset"), ("tables", "parquet"), ("shard.tar", None)])
def test_images_inside_are_read_in_stretches(tmp_path: Path, name: str, format: str | None) -> None:
    path = write_world(tmp_path, name, format, 50)
    plan = plan_of(path, tmp_path / "plan")
    assert not plan.spooled
    dataset = open_dataset(path)
    reader = FileReader(dataset, Selection())
    found = []
    for shard in plan.shards:
        assert isinstance(shard, FileShard)
        items = list(reader.items(shard.file, shard.start, shard.stop))
        assert len(items) == shard.captions
        assert len(items) <= 10
        found += [(item.id, item.text) for item in items]
    assert found == [(instance.id, instance.reference) for instance in dataset]
    # Out of order and again, as retries are.
    for shard in (plan.shards[-1], plan.shards[0], plan.shards[0]):
        assert isinstance(shard, FileShard)
        assert len(list(reader.items(shard.file, shard.start, shard.stop))) == shard.captions


def test_many_files_are_not_read_by_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "MANY_FILES", 3)
    plan = plan_of(write_world(tmp_path, "shards", "webdataset", 30), tmp_path / "plan")
    assert plan.captions is None
    assert plan.shards == tuple(FileShard(at, None, at, 0, None) for at in range(3))


def test_bad_records_are_written_down(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"caption": "a dog", "image": "a.jpg"}\nnot json\n{"no": 1}\n')
    plan = plan_of(path, tmp_path / "plan")
    assert (plan.captions, plan.problems, plan.broken) == (1, 2, {})
    lines = (tmp_path / "plan" / "problems.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert '"line 2"' in lines[0]


def test_the_table_of_images_is_a_dictionary() -> None:
    chance, table, known = Random(0), _ImageTable(), dict[str, int]()
    for shard in range(10_000):
        key = f"image {chance.randrange(4_000)}"
        assert table.shard_of(key, shard) == known.setdefault(key, shard)
        if chance.random() < 0.1:
            known[key] = table.move(key, -shard)
    assert all(table.shard_of(key, 0) == shard for key, shard in known.items())
