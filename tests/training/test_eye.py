"""The eye learns through an editor: `capedit build eye` through the real `main`, on pictures that are made up."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from capedit.editing import Bundle, Editor
from capedit.editing.export import Description, export_bundle
from capedit.models.efficientnet import EfficientNetLite, new_network
from capedit.models.efficientnet_onnx import export_onnx, load_onnx
from capedit.models.efficientnet_tail import Tail
from capedit.models.tiger import Tiger, TigerConfig
from capedit.models.vocabulary import Vocabulary
from capedit.pipeline.settings import Treatment
from capedit.training.concepts import ConceptTask
from capedit.training.eye import Eye, EyeTask, SeenThrough
from capedit.training.maps import fill_maps
from capedit.training.pairs import Lesson, Pair
from capedit.training.tiger import TigerTask, TigerTraining
from capedit.training.train_eye import EyeRecipe
from capedit.vision import FeatureStore, GridEncoder
from capedit.vision.extraction import find_images
from capedit.vision.grid import area_pooling
from tests.calling import run
from tests.editing.tiny import WORDS, tiny_config

COLOURS = {"red": (200, 30, 30), "blue": (30, 30, 200)}
FROZEN = EyeRecipe(frozen_stages=6)
WIDTH = 1280


def wide_config() -> TigerConfig:
    """A small editor that reads the tokens of a real encoder."""
    config = tiny_config()
    assert config.grounding is not None
    encoder, grounding = (replace(part, feature_width=WIDTH) for part in (config.encoder, config.grounding))
    return replace(config, encoder=encoder, grounding=grounding)  # type: ignore[arg-type]


def made_network(seed: int = 0) -> EfficientNetLite:
    """Random, but for features of an ordinary size."""
    torch.manual_seed(seed)
    network = new_network("lite0")
    for layer in network.layers():
        torch.nn.init.normal_(layer.norm.bias, std=0.5)
        torch.nn.init.constant_(layer.norm.weight, 2.0)
    return network


def write_encoder(network: EfficientNetLite, path: Path) -> GridEncoder:
    export_onnx(network, path, name="made", pooling=area_pooling(network.config.side, FROZEN.grid))
    return GridEncoder(path, threads=1)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures, captions, an encoder, and an editor of its tokens."""
    folder = tmp_path_factory.mktemp("eye")
    (folder / "pictures").mkdir()
    encoder = write_encoder(made_network(), folder / "encoder.onnx")
    model = Tiger(wide_config(), torch.arange(7, 15)).eval()
    export_bundle(model, Vocabulary(WORDS), Description("made", encoder.hash), folder / "editor", with_torch=True)
    edits, captions = [], []
    for at in range(8):
        colour, other = list(COLOURS)[at % 2], list(COLOURS)[1 - at % 2]
        noise = np.random.default_rng(at).integers(0, 40, (24, 24, 3))
        Image.fromarray((noise + np.array(COLOURS[colour])).astype(np.uint8)).save(folder / f"pictures/{at}.png")
        record = {"image_id": at, "sample_id": at, "Ref-Cap": f"a {other} sofa", "GT-Cap": f"a {colour} sofa"}
        edits.append(json.dumps(record))
        captions.append(json.dumps({"image_id": at, "caption": f"the {colour} sofa"}))
    (folder / "train.jsonl").write_text("\n".join(edits[:5]))  # two images have no edit, and one is asked about
    (folder / "val.jsonl").write_text("\n".join(edits[4:6]))
    (folder / "captions.jsonl").write_text("\n".join(captions))
    return folder


def arguments(world: Path, out: Path, *more: str) -> list[str]:
    told = {
        "--images": "pictures",
        "--edits": "train.jsonl",
        "--captions": "captions.jsonl",
        "--val": "val.jsonl",
        "--model": "editor",
        "--encoder": "encoder.onnx",
    }
    options = [part for option, name in told.items() for part in (option, str(world / name))]
    size = ["--variant", "lite0", "--frozen", "6", "--batch-size", "4", "--steps", "2", "--learning-rate", "0.01"]
    return ["build", "eye", *options, *size, "--out", str(out), *more]


def test_an_encoder_learns_through_its_editor_and_takes_its_place(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(*arguments(world, out, "--json")) == 0
    assert {"gain", "nats", "CIDEr-D"} <= json.loads(capsys.readouterr().out).keys()
    before, after = new_network("lite0"), new_network("lite0")
    load_onnx(before, world / "encoder.onnx")
    load_onnx(after, out / "model/encoder.onnx")
    moved = [
        not torch.allclose(old.conv.weight, new.conv.weight, rtol=2e-3, atol=1e-5)  # kept in 16 bits
        for old, new in zip(before.layers(), after.layers(), strict=True)
    ]
    assert not any(moved[:-4])  # six stages are frozen
    assert any(moved[-4:])

    made, first = Bundle.load(out / "model"), Bundle.load(world / "editor")
    assert made.encoder == GridEncoder(out / "model/encoder.onnx").hash != first.encoder
    assert (out / "model/weights.safetensors").read_bytes() == (world / "editor/weights.safetensors").read_bytes()
    editor = Editor.load(out / "model")  # with the encoder that lies in it
    assert editor.edit(world / "pictures/0.png", "a blue sofa").source
    assert Treatment(str(out / "model")).load_encoder().hash == made.encoder  # whole datasets as well


def test_another_encoder_than_the_editors_is_refused(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_encoder(made_network(seed=1), tmp_path / "other.onnx")
    assert run(*arguments(world, tmp_path / "out", "--encoder", str(tmp_path / "other.onnx"))) != 0
    assert "reads the tokens of another encoder" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def maps(world: Path) -> FeatureStore:
    """What the frozen stages make of the pictures."""
    return fill_maps(read_network(world), FROZEN.frozen_stages, find_images([world / "pictures"]), world / "maps")


def read_network(world: Path) -> EfficientNetLite:
    network = new_network("lite0")
    load_onnx(network, world / "encoder.onnx")
    return network


def made_eye(world: Path) -> Eye:
    torch.manual_seed(0)
    return Eye(Tail(read_network(world), FROZEN.frozen_stages), Tiger(wide_config(), torch.arange(7, 15)), FROZEN.grid)


def test_the_eye_sees_what_its_encoder_gives(world: Path, maps: FeatureStore) -> None:
    entries = find_images([world / "pictures"])
    seen = SeenThrough(made_eye(world), maps).batch([entry.image_id for entry in entries])
    given = GridEncoder(world / "encoder.onnx").encode([entry.path for entry in entries])
    assert seen.counts.tolist() == [len(tokens.features) for tokens in given]
    np.testing.assert_allclose(seen.boxes, [tokens.boxes for tokens in given], atol=1e-6)
    features = np.stack([tokens.features for tokens in given])
    assert np.abs(seen.features - features).max() < 5e-3 * np.abs(features).max()  # maps are kept in 16 bits


def test_images_without_edits_teach_words_alone_and_the_editor_learns_nothing(world: Path, maps: FeatureStore) -> None:
    eye, vocabulary = made_eye(world), Vocabulary(WORDS)
    edits = [("0", ["a", "blue", "sofa"], ["a", "red", "sofa"]), ("1", ["a", "red", "sofa"], ["a", "blue", "sofa"])]
    right = [(image, ["a", "dog", "on", "a", "sofa"]) for image in "0123"]
    lesson = Lesson.of(edits, right, vocabulary)
    editor = eye.editor
    task = EyeTask(
        eye,
        TigerTask(editor, vocabulary, lesson, maps, TigerTraining(), lambda _: {}),
        ConceptTask(editor.concepts, editor.concept_words, lesson, SeenThrough(eye, maps), [Pair("4", [], [7])]),
        lesson,
        maps,
        dict,
    )
    assert len(task) == 4  # two edits, and two images without
    lone, mixed = (task.batch(np.array(at), np.random.default_rng(0)) for at in ([2, 3], [2, 0]))
    assert {name for name, weight in task.loss_weights(lone).items() if weight} == {"words"}
    assert set(task.loss(lone)) == {"words"}
    assert task.loss_weights(mixed)["words"] == 2
    assert task.loss_weights(mixed)["delete"] > 0
    assert set(task.loss(mixed)) == {"delete", "add", "insert", "match", "words"}
    learning = {name for name, _ in eye.named_parameters() if task.rate_factor(name)}
    assert learning == {name for name, _ in eye.named_parameters() if name.startswith("tail.")} != set()
