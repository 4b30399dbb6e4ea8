"""`capedit build` from end to end, on a toy world."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from capedit.cli.build import build
from capedit.data import open_dataset
from capedit.models.dual_encoder import DualEncoder, DualEncoderConfig, Vocabulary
from capedit.training import dual_encoder
from capedit.vision import StoreWriter, VisualTokens
from capedit.vision.tokens import grid_corners

ANIMALS = ["dog", "cat", "horse", "bird", "cow", "sheep"]
PLACES = ["grass", "beach", "street", "roof"]
HELD_OUT = {3, 17}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(build, list(map(str, arguments)), catch_exceptions=False)


def captions_of(image: int) -> list[str]:
    animal, place = ANIMALS[image % 6], PLACES[image // 6]
    return [f"A {animal} stands on the {place}.", f"There is a {animal} on the {place} today!"]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A folder with caption file, list of held-out images and feature store."""
    annotations = [{"image_id": image, "caption": text} for image in range(24) for text in captions_of(image)]
    (tmp_path / "captions.json").write_text(json.dumps({"annotations": annotations}), encoding="utf-8")
    (tmp_path / "held_out.txt").write_text("".join(f"{image}\n" for image in HELD_OUT), encoding="utf-8")
    encoder: Any = SimpleNamespace(name="toy", hash="toyhash", dim=10)
    with StoreWriter(tmp_path / "store", encoder) as writer:
        for image in range(24):
            cells = np.zeros((4, 10), np.float32)
            cells[:, [image % 6, 6 + image // 6]] = 1
            writer.add(f"{image:012d}", VisualTokens.from_regions(cells, grid_corners(2, 2)))
    return tmp_path


def world_options(world: Path) -> list[object]:
    held_out = world / "held_out.txt"
    return ["--captions", world / "captions.json", "--held-out", held_out, "--features", world / "store"]


def save_scorer(folder: Path) -> Path:
    words = Vocabulary.from_captions([text.lower().split() for image in range(24) for text in captions_of(image)], 1)
    DualEncoder(DualEncoderConfig(features=10, width=8, heads=2), words, "toyhash").save(folder / "scorer")
    return folder / "scorer"


def test_coco_ee_writes_instances_and_a_report_without_held_out_images(world: Path) -> None:
    out = world / "train.json"
    options = ["--meaning", "overlap", "--max-meaning", 0.6, "--candidates", 30, "--draw", 20, "--out", out, "--json"]
    result = run("coco-ee", *world_options(world), "--scorer", save_scorer(world), *options)
    assert result.exit_code == 0
    printed = json.loads(result.stdout)
    instances = list(open_dataset(out))
    assert 0 < len(instances) == printed["instances"]
    assert not {one.image_id for one in instances} & HELD_OUT
    texts = {" ".join(one.reference_tokens) for one in instances}
    assert not texts & {text.lower().strip(".!") for image in HELD_OUT for text in captions_of(image)}
    report = json.loads((world / "train.report.json").read_text(encoding="utf-8"))
    assert report["images"] == 22
    assert report["meaning"] == "content overlap"
    assert report["options"]["max_meaning"] == 0.6
    assert report["filters"][-1]["left"] == len(instances)


def test_coco_ee_says_what_each_filter_removed(world: Path) -> None:
    options = ["--meaning", "overlap", "--candidates", 30, "--out", world / "train.json"]
    result = run("coco-ee", *world_options(world), "--scorer", save_scorer(world), *options)
    assert "660 candidates of 22 images" in result.stdout
    assert "BLEU-3: " in result.stdout


def test_held_out_images_must_be_named(world: Path) -> None:
    options = ["--captions", world / "captions.json", "--features", world / "store", "--out", world / "train.json"]
    result = run("coco-ee", *options, "--scorer", save_scorer(world))
    assert result.exit_code == 2
    assert "held-out" in result.output


def test_the_dual_encoder_is_trained_and_saved(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dual_encoder, "HELD_OUT_IMAGES", 6)
    training = ["--steps", 3, "--batch-size", 8, "--out", world / "scorer", "--json"]
    result = run("dual-encoder", *world_options(world), *training)
    assert result.exit_code == 0
    assert 0 <= json.loads(result.stdout)["text to image R@1"] <= 100
    assert DualEncoder.load(world / "scorer").features_hash == "toyhash"


def test_flickr30k_ee(tmp_path: Path) -> None:
    source = tmp_path / "esnlive.csv"
    rows = ["a#1c,1.jpg,A dog.,contradiction", "a#1e,1.jpg,A cat.,entailment"]
    source.write_text("pairID,Flickr30kID,hypothesis,gold_label\n" + "\n".join(rows), encoding="utf-8")
    result = run("flickr30k-ee", source, "--mode", "as-released", "-o", tmp_path / "out.json")
    assert "1 instances (as-released)" in result.stdout
    assert [one.reference for one in open_dataset(tmp_path / "out.json")] == ["a dog"]


def test_examples(tmp_path: Path) -> None:
    source, page = tmp_path / "pairs.jsonl", tmp_path / "page.html"
    source.write_text('{"image_id": 1, "reference": "a dog", "target": "a cat"}\n', encoding="utf-8")
    assert run("examples", source, "-o", page).exit_code == 0
    assert "<del>dog</del> <ins>cat</ins>" in page.read_text(encoding="utf-8")
