from pathlib import Path

import pytest

from capedit.errors import CapeditError
from capedit.models.systems import load_system, name_of
from capedit.training import TrainConfig
from capedit.training.images import vision_of
from capedit.training.material import Material
from capedit.training.train_system import SystemRecipe, train_system
from tests.training.made import VOCABULARY, made_pairs, made_store, questions

PAIRS = made_pairs(12)
MATERIAL = Material([(image, tuple(source), tuple(target)) for image, source, target in PAIRS[:8]], [])
TRAIN = TrainConfig(steps=2, batch_size=4, learning_rate=0.01, evaluate_every=2, checkpoint_every=2)
ENCODER = {
    "text": {"width": 16, "layers": 1, "heads": 2, "inner": 16},
    "vision": {"width": 16, "layers": 1, "heads": 2, "inner": 16},
    "co_width": 16,
    "co_heads": 2,
    "positions": 40,
}


def test_what_is_trained_can_be_loaded(tmp_path: Path) -> None:
    store, asked = made_store(tmp_path / "store", PAIRS), questions(PAIRS[8:])
    recipe = SystemRecipe("v-lasertagger", {"encoder": ENCODER}, TRAIN, phrases=1)
    redder = [(str(number), ("a", "dog"), ("a", "red", "dog")) for number in range(6)]  # one phrase tells these
    others = [("6", ("a",), ("a", "blue", "cat")), ("7", ("the",), ("two",))]
    trained = train_system(recipe, Material([*redder, *others], []), asked, VOCABULARY, store, tmp_path / "out")
    assert name_of(trained.system) == "v-lasertagger"
    assert trained.notes == {
        "phrases": 1,
        "% of pairs covered": 75,
        "% of phrases covered": 75,
        "pairs": 6,
        "pairs skipped": 2,
    }
    vision, captions = vision_of(store.batch(["9"])), [PAIRS[9][1]]
    loaded = load_system(tmp_path / "out" / "system.safetensors")
    assert loaded.edit(vision, captions) == trained.system.edit(vision, captions)


def test_images_of_the_questions_are_not_trained_on(tmp_path: Path) -> None:
    store = made_store(tmp_path / "store", PAIRS)
    recipe = SystemRecipe("updn", {"width": 8, "word_width": 8, "attention_width": 8}, TRAIN)
    notes = train_system(recipe, MATERIAL, questions(PAIRS[6:9]), VOCABULARY, store, tmp_path / "out").notes
    assert notes["pairs"] == 6
    with pytest.raises(CapeditError, match="no image of any edit"):
        train_system(recipe, MATERIAL, questions(PAIRS), VOCABULARY, store, tmp_path / "none")


def test_a_system_that_can_say_nothing_of_the_data_is_refused(tmp_path: Path) -> None:
    store = made_store(tmp_path / "store", PAIRS)
    recipe = SystemRecipe("v-lasertagger", {"encoder": ENCODER}, TRAIN, phrases=0)
    with pytest.raises(CapeditError, match="not one of 8 pairs can be said"):
        train_system(recipe, MATERIAL, questions(PAIRS[8:]), VOCABULARY, store, tmp_path / "out")


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    store = made_store(tmp_path / "store", PAIRS)
    with pytest.raises(CapeditError, match="'gpt': not one of updn"):
        train_system(SystemRecipe("gpt", {}, TRAIN), MATERIAL, questions(PAIRS[8:]), VOCABULARY, store, tmp_path)
