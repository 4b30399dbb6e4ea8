from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from capedit.errors import CapeditError
from capedit.models.accounting import parameters
from capedit.models.system import Kind, Outcome, System
from capedit.models.systems import (
    SYSTEMS,
    Described,
    SystemCard,
    describe_system,
    load_system,
    name_of,
    save_system,
)
from capedit.models.vilbert import VisionInput
from tests.training.made import images, made_pairs, made_store, made_system

PAIRS = made_pairs(9)
CAPTIONS = [source for _, source, _ in PAIRS]


@pytest.fixture(scope="module")
def vision(tmp_path_factory: pytest.TempPathFactory) -> VisionInput:
    return images(made_store(tmp_path_factory.mktemp("images") / "store", PAIRS), len(PAIRS))


def opinionated(name: str) -> System:
    """Random weights, but far from zero, so that captions come out different."""
    system = made_system(name, PAIRS)
    with torch.no_grad():
        for parameter in system.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)
    return system.eval()


def assert_same(ones: list[Outcome], others: list[Outcome]) -> None:
    for one, other in zip(ones, others, strict=True):
        assert one.tokens == other.tokens
        assert one.steps == other.steps
        if one.trace is not None and other.trace is not None:
            assert one.trace.script.operations
            for operation, same in zip(one.trace.script, other.trace.script, strict=True):
                assert (operation.op, operation.token) == (same.op, same.token)
                assert operation.probability == pytest.approx(same.probability, rel=1e-4)


@pytest.mark.parametrize("name", SYSTEMS)
def test_saved_and_loaded_it_says_the_same(name: str, vision: VisionInput, tmp_path: Path) -> None:
    system = opinionated(name)
    card = SystemCard("an-encoder", {"CIDEr-D": 12.5})
    save_system(system, tmp_path / "system.safetensors", card)
    assert describe_system(tmp_path / "system.safetensors") == Described(name, parameters(system), card)
    loaded = load_system(tmp_path / "system.safetensors")
    assert name_of(loaded) == name
    assert loaded.config == system.config
    assert loaded.vocabulary.words == system.vocabulary.words
    assert loaded.edit(vision, CAPTIONS) == system.edit(vision, CAPTIONS)


@pytest.mark.parametrize("name", SYSTEMS)
def test_batched_it_says_the_same_as_alone(name: str, vision: VisionInput) -> None:
    """Captions and images of different sizes, each with the padding that the others force on it and without."""
    system = opinionated(name)
    assert vision.mask is not None
    assert not vision.mask.all()
    together = system.edit(vision, CAPTIONS)
    assert len({tuple(outcome.tokens) for outcome in together}) > 1
    alone = []
    for row, caption in enumerate(CAPTIONS):
        there = vision.mask[row]
        own = VisionInput(vision.features[row : row + 1, there], vision.locations[row : row + 1, there])
        alone += system.edit(own, [caption])
    assert_same(together, alone)


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_image_matters(name: str, vision: VisionInput) -> None:
    system = opinionated(name)
    others = VisionInput(*(None if part is None else part.flip(0) for part in vision))  # type: ignore[arg-type]
    assert system.edit(vision, CAPTIONS) != system.edit(others, CAPTIONS)


@pytest.mark.parametrize("name", SYSTEMS)
def test_all_but_the_captioner_read_the_reference(name: str, vision: VisionInput) -> None:
    system = opinionated(name)
    said = [outcome.tokens for outcome in system.edit(vision, CAPTIONS)]
    again = [outcome.tokens for outcome in system.edit(vision, CAPTIONS[::-1])]
    assert (said == again) == (system.kind is Kind.CAPTIONER)


@pytest.mark.parametrize("name", SYSTEMS)
def test_unknown_words_stay_as_they_were(name: str, vision: VisionInput) -> None:
    captions = [["a", "zyzzyva", "dog"] for _ in PAIRS]
    outcomes = opinionated(name).edit(vision, captions)
    assert all("[" not in word for outcome in outcomes for word in outcome.tokens)
    if SYSTEMS[name].kind is Kind.EXPLICIT:
        assert all(outcome.trace and outcome.trace.source == ("a", "zyzzyva", "dog") for outcome in outcomes)


@pytest.mark.parametrize("name", ["v-lasertagger", "v-felix"])
def test_captions_too_long_for_the_encoder_are_left_alone(name: str, vision: VisionInput) -> None:
    system = opinionated(name)
    long = ["a"] * 29  # of 30 positions two are for sentinels
    captions = [CAPTIONS[0], long, *CAPTIONS[2:]]
    outcomes = system.edit(vision, captions)
    assert outcomes[1].tokens == long
    assert outcomes[1].steps.total == 0
    assert_same(outcomes[2:], system.edit(vision, CAPTIONS)[2:])
    assert system.edit(vision, [long] * len(CAPTIONS))[0].tokens == long


def test_a_file_that_is_no_system_is_named(tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    save_file({"x": torch.zeros(1)}, path, metadata={"system": "gpt"})
    with pytest.raises(CapeditError, match=r"other\.safetensors"):
        load_system(path)
    path.write_bytes(b"\x80\x04pickle?")
    with pytest.raises(CapeditError, match=r"other\.safetensors"):
        load_system(path)


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "updn.safetensors"
    save_system(made_system("updn", PAIRS), path)
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    metadata["config"] = metadata["config"].replace('"width": 48', '"width": 64')
    save_file(tensors, path, metadata=metadata)
    with pytest.raises(CapeditError, match="do not fit"):
        load_system(path)
