from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from capedit.data.builders.captions import CaptionTable
from capedit.models.efficientnet import LITE_CONFIGS, EfficientNetLite
from capedit.models.efficientnet_tail import Tail
from capedit.training import TrainConfig, fit
from capedit.training.caption_words import CaptionWordsTask, WordReader, WordTargets, concept_words
from capedit.training.maps import fill_maps, maps_of, mirror
from capedit.vision import FeatureStore
from capedit.vision.extraction import find_images

COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200)}
NAMES = [str(number) for number in range(24)]


@pytest.fixture
def table() -> CaptionTable:
    colours = [list(COLOURS)[number % 3] for number in range(24)]
    return CaptionTable.from_pairs(
        (number, tuple(caption.split()))
        for number, colour in enumerate(colours)
        for caption in (f"a {colour} square", f"the thing is {colour}")
    )


@pytest.fixture
def network() -> EfficientNetLite:
    """With batch statistics measured on plain colours; without any, a random network maps everything to zero."""
    torch.manual_seed(0)
    network = EfficientNetLite(replace(LITE_CONFIGS["lite0"], resolution=32)).train()
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None
    with torch.no_grad():
        network.features(torch.rand(48, 3, 1, 1).expand(-1, -1, 32, 32) * 255)
    return network.eval()


@pytest.fixture
def maps(table: CaptionTable, network: EfficientNetLite, tmp_path: Path) -> FeatureStore:
    for number in range(len(table)):
        noise = np.random.default_rng(number).integers(0, 40, (32, 32, 3))
        Image.fromarray((noise + np.array(list(COLOURS.values())[number % 3])).astype(np.uint8)).save(
            tmp_path / f"{number}.png"
        )
    return fill_maps(network, 5, find_images([tmp_path]), tmp_path / "maps")


def test_concept_words_are_those_that_say_something(table: CaptionTable) -> None:
    assert concept_words(table.captions, 5) == ["square", "thing", "blue", "green", "red"]


def test_targets_are_shares_of_captions(table: CaptionTable) -> None:
    targets = WordTargets(table, ["square", "red", "green"])
    assert targets.batch([0, 1]).tolist() == [[0.5, 1, 0], [0.5, 0, 1]]
    assert targets.mean([0, 1]).tolist() == [0.5, 0.5, 0.5]


def test_the_encoder_learns_words_it_was_not_told_for_held_out_images(
    table: CaptionTable, network: EfficientNetLite, maps: FeatureStore, tmp_path: Path
) -> None:
    words = concept_words(table.captions, 5)
    targets = WordTargets(table, words)
    held_out = [0, 1, 2, 3, 4, 5]
    model = WordReader(Tail(network, first_stage=5), 1280, targets.mean(range(6, 24)))
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    task = CaptionWordsTask(model, maps, NAMES, targets, held_out)
    config = TrainConfig(steps=120, batch_size=9, learning_rate=0.005, evaluate_every=10, checkpoint_every=120)
    figures = fit(task, config, tmp_path / "run")
    colours_are_worth = 3 * (np.log(3) - 2 / 3 * np.log(2))  # three words, each true of a third of the images
    assert figures["gain"] > 0.5 * colours_are_worth
    changed = [name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])]
    assert len(changed) == len(before)


def test_half_of_the_images_are_seen_in_a_mirror(
    table: CaptionTable, network: EfficientNetLite, maps: FeatureStore
) -> None:
    drawn = np.arange(2 * 9 * 4, dtype=np.float32).reshape(2, 9, 4)
    assert mirror(drawn)[0, :3].tolist() == drawn[0, 2::-1].tolist()
    np.testing.assert_array_equal(mirror(mirror(drawn)), drawn)

    targets = WordTargets(table, concept_words(table.captions, 5))
    model = WordReader(Tail(network, first_stage=5), 1280, targets.mean(range(6, 24)))
    task = CaptionWordsTask(model, maps, NAMES, targets, [0, 1, 2, 3, 4, 5])
    seen, plain = [], torch.from_numpy(maps_of(maps, NAMES[6:]))
    mirrored = torch.from_numpy(mirror(plain.numpy()))
    for seed in range(20):
        batch = task.batch(np.arange(18), np.random.default_rng(seed)).maps
        seen += [not torch.equal(one, other) for one, other in zip(batch, plain, strict=True)]
        assert all(torch.equal(a, b) or torch.equal(a, c) for a, b, c in zip(batch, plain, mirrored, strict=True))
    differing = float(np.mean([not torch.equal(a, b) for a, b in zip(plain, mirrored, strict=True)]))
    assert 0.4 < np.mean(seen) / differing < 0.6
