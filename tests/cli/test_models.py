"""`capedit models` and `capedit export`, as a user calls them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from capedit.editing import Bundle, Editor
from capedit.editing.editor import Runtime, load_modules
from capedit.editing.regions import BOTTOM_UP, RegionLookup
from capedit.models.word_pieces import WordPieces
from capedit.vision import VisualTokens
from capedit.vision.regions import RegionError
from capedit.vision.tokens import grid_corners
from tests.calling import run
from tests.editing.tiny import write_tiny_model
from tests.models.published_network import SHAPE, TINY, checkpoint, write_vocabulary

MODULES = ("delete", "add", "insert")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAPEDIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("run") / "model")


def write_published(folder: Path) -> list[object]:
    """Checkpoints, vocabulary and shape of a small network, as arguments of the import."""
    for seed, name in enumerate(MODULES):
        torch.save(checkpoint(seed), folder / f"{name}.bin")
    (folder / "tiger-tiny.json").write_text(json.dumps(SHAPE))
    files = [folder / f"{name}.bin" for name in MODULES]
    return [*files, "--vocabulary", write_vocabulary(folder), "--shape", folder / "tiger-tiny.json"]


def listed(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    assert run("models", *arguments, "--json") == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_models_are_listed(capsys: pytest.CaptureFixture[str], tiny: Path, cache: Path) -> None:
    in_cache = cache / "models" / "mine"
    in_cache.mkdir(parents=True)
    told = json.loads((tiny / "model.json").read_text())
    (in_cache / "model.json").write_text(json.dumps({**told, "name": "mine", "marks": {"CIDEr-D": 187.25}}))
    found = {one["name"]: one for one in listed(capsys, "--in", tiny.parent)}
    assert {"tiny", "mine", "tiger-base", "tiger-small"} <= found.keys()
    assert found["tiger-base"]["kind"] == "shape"
    assert found["tiger-base"]["parameters"] == 3 * 221_789_696 + 2 * 593_666 + 622_650
    assert found["tiger-small"]["kind"] == "recipe"
    assert found["tiny"]["kind"] == "folder"
    assert found["tiny"]["parameters"] == told["parameters"] > 1000
    assert found["tiny"]["bytes"] == sum(file.stat().st_size for file in tiny.iterdir())
    assert found["mine"]["score"] == 187.25
    assert run("models", "--in", tiny) == 0
    shown = capsys.readouterr().out
    assert "187.2" in shown
    assert "667.2 M" in shown


def test_what_is_no_model_is_told_but_does_not_hide_the_rest(
    capsys: pytest.CaptureFixture[str], tiny: Path, cache: Path
) -> None:
    broken = cache / "models" / "broken"
    broken.mkdir(parents=True)
    (broken / "model.json").write_text("{")
    assert "tiny" in {one["name"] for one in listed(capsys, "--in", tiny)}
    assert run("models") == 0
    assert "broken" in capsys.readouterr().err
    assert run("models", "--in", cache / "nowhere") == 1


class MadeRegions:
    """Regions of any image, the same each time."""

    def tokens(self, image_id: str) -> VisualTokens:
        chance = np.random.default_rng(int(image_id))
        return VisualTokens.from_regions(
            chance.normal(size=(6, TINY.feature_width)).astype(np.float32), grid_corners(2, 3)
        )


def test_the_published_network_is_imported_and_edits(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "imported"
    assert run("models", "import", *write_published(tmp_path), "--out", folder, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["model"].startswith("tiger-tiny@")
    assert told["used"] + sum(told["unused"].values()) == 3 * len(checkpoint(0))
    bundle = Bundle.load(folder)
    assert bundle.encoder == BOTTOM_UP
    assert isinstance(bundle.vocabulary, WordPieces)
    assert len(bundle.card["imported"]["add"]["sha256"]) == 64

    look_up = RegionLookup(MadeRegions(), dim=TINY.feature_width)
    editors = [Editor(bundle, load_modules(bundle, runtime, 1), look_up) for runtime in Runtime]
    pairs = [
        (str(image), c) for image in range(6) for c in ("A dog on the sofa.", "the bicyclists, on a red bicyclist")
    ]
    onnx, torch_ = ([edit.caption for edit in editor.edit_many(pairs)] for editor in editors)
    assert onnx == torch_
    edits = editors[0].edit_many(pairs)
    assert any(edit.changed for edit in edits)
    assert not any("##" in edit.caption or "[" in edit.caption for edit in edits)
    assert [list(edit.trace.source) for edit in edits[:2]] == [
        ["a", "dog", "on", "the", "sofa"],
        ["the", "bicyclists", "on", "a", "red", "bicyclist"],
    ]
    with pytest.raises(RegionError, match="id of an image"):
        editors[0].edit(Path("photo.jpg"), "a dog")


def test_an_import_that_cannot_be_says_why(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = write_published(tmp_path)
    (tmp_path / "add.bin").write_bytes(b"no checkpoint")
    assert run("models", "import", *arguments, "--out", tmp_path / "out") == 1
    assert "add.bin" in capsys.readouterr().err
    assert run("models", "import", *arguments[:-2], "--out", tmp_path / "out") == 1
    assert "has 18 pieces, the network 30522" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert run("models", "import", *arguments, "--out", tmp_path) == 1
    assert "not empty" in capsys.readouterr().err


@pytest.mark.parametrize("bits", ["fp32", "fp16", "int8"])
def test_a_model_is_exported_again(capsys: pytest.CaptureFixture[str], tmp_path: Path, tiny: Path, bits: str) -> None:
    out = tmp_path / "out"
    assert run("export", tiny.parent, "--out", out, "--bits", bits, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["bytes"] == sum(path.stat().st_size for path in out.iterdir())
    before, after = (json.loads((folder / "model.json").read_text()) for folder in (tiny, out))
    assert after == {**before, "bits": bits}
    again, first = Bundle.load(out), Bundle.load(tiny)
    assert again.vocabulary.words == first.vocabulary.words
    load_modules(again, Runtime.ONNX, 1)
    if bits != "fp32":
        wide = sum(path.stat().st_size for path in tiny.glob("*.onnx"))
        assert sum(path.stat().st_size for path in out.glob("*.onnx")) < wide * 1.6  # tiny networks are mostly graph


def test_exports_that_cannot_be_say_why(capsys: pytest.CaptureFixture[str], tmp_path: Path, tiny: Path) -> None:
    assert run("export", tiny, "--out", tiny, "--bits", "int8") == 1
    assert "not empty" in capsys.readouterr().err
    assert run("export", tmp_path, "--out", tmp_path / "out", "--bits", "int8") == 1
    assert "not a model folder" in capsys.readouterr().err
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("model.json", "vocabulary.json"):
        (bare / name).write_bytes((tiny / name).read_bytes())
    assert run("export", bare, "--out", tmp_path / "out", "--bits", "int8") == 1
    assert "has no weights.safetensors" in capsys.readouterr().err
