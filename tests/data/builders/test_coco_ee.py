"""The whole pipeline on a toy world: what comes out, resuming, and the account of the filters."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from capedit.data import DataError
from capedit.data.builders import CocoEeBuild, CocoEeOptions, build_coco_ee, coco_ee
from capedit.data.builders.captions import CaptionTable
from capedit.data.builders.filters import ContentOverlap
from capedit.data.instance import Instance
from capedit.edits import edit_distance
from capedit.metrics.bleu import bleu

ANIMALS = ["dog", "cat", "horse", "bird", "cow", "sheep"]
PLACES = ["grass", "beach", "street", "roof"]
OPTIONS = CocoEeOptions(candidates=12, draw=8, min_bleu2=0.7, min_bleu3=0.65, max_meaning=0.6, seed=3)


def toy_table() -> CaptionTable:
    """Image i shows an animal in a place, and each of its captions says so in its own way."""
    pairs = []
    for image in range(24):
        animal, place = ANIMALS[image % 6], PLACES[image // 6]
        texts = [f"a {animal} stands on the {place}", f"there is a {animal} on the {place} today"]
        texts += [f"what {animal} visits that {place}"] * (image % 3 == 0)  # unlike any caption of another image
        pairs += [(100 + image, tuple(text.split())) for text in texts]
    return CaptionTable.from_pairs(pairs)


class ToyScorer:
    """Words in common with the image's animal and place; blind to image 105."""

    name = "toy"

    def __init__(self) -> None:
        self.captions_embedded = 0

    def can_see(self, image_id: int) -> bool:
        return image_id != 105

    def embed_captions(self, captions: Sequence[tuple[str, ...]]) -> np.ndarray:
        self.captions_embedded += 1
        seen = [[word in caption for word in (*ANIMALS, *PLACES)] for caption in captions]
        return np.array(seen, np.float32)

    def embed_images(self, image_ids: Sequence[int]) -> np.ndarray:
        vectors = np.zeros((len(image_ids), len(ANIMALS) + len(PLACES)), np.float32)
        for row, image_id in zip(vectors, image_ids, strict=True):
            assert self.can_see(image_id)
            row[(image_id - 100) % 6] = 1
            row[len(ANIMALS) + (image_id - 100) // 6] = 0.9
        return vectors


def build(work: Path, options: CocoEeOptions = OPTIONS, scorer: ToyScorer | None = None) -> CocoEeBuild:
    return build_coco_ee(toy_table(), scorer or ToyScorer(), ContentOverlap(), options, work)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coco_ee, "CHUNK_IMAGES", 7)
    monkeypatch.setattr(coco_ee, "BLOCK_IMAGES", 3)


def rows(built: CocoEeBuild) -> list[Instance]:
    return list(built.instances())


def test_every_instance_keeps_the_rules(tmp_path: Path) -> None:
    table, instances = toy_table(), rows(build(tmp_path / "work"))
    assert instances
    assert [one.id for one in instances] == list(range(1, len(instances) + 1))
    position = {image_id: image for image, image_id in enumerate(table.image_ids.tolist())}
    for one in instances:
        assert isinstance(one.image_id, int)
        own = [table.captions[c] for c in table.of_image(position[one.image_id])]
        scores = bleu([(one.reference_tokens, own)])[1][0]
        assert scores[1] > 0.7
        assert scores[2] > 0.65
        assert ContentOverlap().scores([one.reference_tokens], [own])[0] < 0.6
        assert one.target_tokens in own
        assert edit_distance(one.reference_tokens, one.target_tokens or ()) == min(
            edit_distance(one.reference_tokens, caption) for caption in own
        )
        assert one.reference_tokens not in own


def test_the_report_accounts_for_every_candidate(tmp_path: Path) -> None:
    built = build(tmp_path / "work")
    report = built.report
    assert report["images"] == 24
    assert report["images_without_picture"] == 1
    assert report["candidates_drawn"] == 23 * 8
    assert [step["step"] for step in report["filters"]] == ["BLEU-2", "BLEU-3", "meaning"]
    left = report["candidates_drawn"]
    for step in report["filters"]:
        assert step["given"] == left
        assert step["left"] == left - step["removed"]
        left = step["left"]
    assert left == report["instances"] == len(built) == len(rows(built))
    assert report["filters"][0]["removed"] > 0
    assert report["filters"][2]["removed"] > 0
    assert report["images_with_instances"] == len({one.image_id for one in rows(built)})


def test_chunks_and_blocks_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = rows(build(tmp_path / "small"))
    monkeypatch.setattr(coco_ee, "CHUNK_IMAGES", 1000)
    monkeypatch.setattr(coco_ee, "BLOCK_IMAGES", 1000)
    assert rows(build(tmp_path / "large")) == small


def test_the_seed_decides_the_draw(tmp_path: Path) -> None:
    assert rows(build(tmp_path / "one")) == rows(build(tmp_path / "two"))
    assert rows(build(tmp_path / "one")) != rows(build(tmp_path / "three", replace(OPTIONS, seed=4)))


def test_candidates_come_from_the_pool_of_their_image(tmp_path: Path) -> None:
    """With three pools of eight images, references of an image describe at most seven others."""
    table = toy_table()
    whole = build(tmp_path / "whole", replace(OPTIONS, candidates=8))
    built = build(tmp_path / "pools", replace(OPTIONS, candidates=8, pool=8))
    assert len(built)
    met: dict[int, set[int]] = {}
    for image, candidate, target in built.pairs.tolist():
        assert table.image_of[target] == image != table.image_of[candidate]
        met.setdefault(image, set()).add(int(table.image_of[candidate]))
    pools = [{image, *others} for image, others in met.items()]
    for one in pools:  # who shares anyone shares a pool
        assert len(set().union(*(other for other in pools if other & one))) <= 8
    assert rows(built) != rows(whole)
    alone = build(tmp_path / "alone", replace(OPTIONS, candidates=8, pool=1000))
    assert rows(alone) == rows(whole)


def test_a_pool_that_is_too_small_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"12 candidates of an image .* larger pools or fewer candidates"):
        build(tmp_path / "work", replace(OPTIONS, pool=2))


def test_a_stopped_build_goes_on(tmp_path: Path) -> None:
    whole = build(tmp_path / "whole")
    seen: list[int] = []

    def stop_in_the_middle(done: int, images: int) -> None:
        seen.append(done)
        if done >= 14:
            raise KeyboardInterrupt

    arguments = (toy_table(), ToyScorer(), ContentOverlap(), OPTIONS, tmp_path / "work")
    with pytest.raises(KeyboardInterrupt):
        build_coco_ee(*arguments, watch=stop_in_the_middle)
    assert seen == [0, 7, 14]
    seen.clear()
    again = build_coco_ee(*arguments, watch=lambda done, images: seen.append(done))
    assert seen == [14, 21, 24]
    assert rows(again) == rows(whole)
    assert {key: again.report[key] for key in ("filters", "images")} == {
        key: whole.report[key] for key in ("filters", "images")
    }


def test_a_finished_build_is_only_gathered(tmp_path: Path) -> None:
    first = build(tmp_path / "work")
    scorer = ToyScorer()
    assert rows(build(tmp_path / "work", scorer=scorer)) == rows(first)
    assert scorer.captions_embedded == 0


def test_a_work_folder_of_another_build_is_refused(tmp_path: Path) -> None:
    build(tmp_path / "work")
    with pytest.raises(DataError, match="holds another build \\(options differ\\)"):
        build(tmp_path / "work", replace(OPTIONS, min_bleu2=0.75))


def test_a_damaged_chunk_is_named(tmp_path: Path) -> None:
    build(tmp_path / "work")
    (tmp_path / "work" / "pairs-0000007.npz").write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"pairs-0000007.npz: damaged"):
        build(tmp_path / "work")
