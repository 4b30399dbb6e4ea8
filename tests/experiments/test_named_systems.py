"""The compared systems by name: `capedit train`, `models`, `score --model` and `edit --model`, as a user calls them."""

import json
from pathlib import Path

import pytest
from PIL import Image

from capedit.cli.models import SYSTEM_FILE as LISTED_FILE
from capedit.editing.system_editor import trace_of
from capedit.edits import count_implicit, count_trace
from capedit.errors import CapeditError
from capedit.experiments.predicting import load_model
from capedit.models.system import Outcome
from capedit.models.systems import SYSTEM_FILE, SYSTEMS, SystemCard, save_system
from tests.calling import run
from tests.editing.tiny import MeanColours, write_tiny_model
from tests.training.made import Made, made_pairs, made_store, made_system

PAIRS = made_pairs(40)


def write_pairs(path: Path, pairs: list[Made]) -> Path:
    records = [
        {"image_id": image, "Ref-Cap": " ".join(source), "GT-Cap": " ".join(target)} for image, source, target in pairs
    ]
    path.write_text(json.dumps(records))
    return path


@pytest.fixture(autouse=True)
def _encoder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("capedit.editing.system_editor.load_encoder", lambda name: MeanColours())
    monkeypatch.setenv("CAPEDIT_CACHE", str(tmp_path / "cache"))


def test_a_system_is_trained_listed_scored_and_used_by_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    store = made_store(tmp_path / "store", PAIRS)
    edits, val = write_pairs(tmp_path / "edits.json", PAIRS[:32]), write_pairs(tmp_path / "val.json", PAIRS[32:])
    files = ["--edits", edits, "--val", val, "--features", store.path, "--out", tmp_path / "run"]
    assert run("train", "updn-e", *files, "--steps", 1, "--json") == 0
    marks = json.loads(capsys.readouterr().out)
    assert marks["pairs"] == 32

    assert run("models", "--in", tmp_path, "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    (found,) = (each for each in listed if each["where"] == str(tmp_path / "run"))
    assert (found["name"], found["kind"]) == ("updn-e", "implicit")
    assert found["parameters"] > 1e6
    assert found["bytes"] > 4 * found["parameters"]
    assert found["score"] == marks["CIDEr-D"]
    assert {each["name"]: each["kind"] for each in listed}["v-felix"] == "explicit recipe"

    assert run("score", val, "--model", tmp_path / "run", "--features", store.path, "--no-spice", "--json") == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert scores["CIDEr-D"] == pytest.approx(marks["CIDEr-D"])
    assert scores["ES"] == pytest.approx(marks["ES"])

    Image.new("RGB", (8, 8), "red").save(tmp_path / "photo.png")
    assert run("edit", tmp_path / "photo.png", "a dog", "--model", tmp_path / "run", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["steps"] == 2 + len(made["caption"].split())
    assert made["model"].startswith("updn-e@")
    assert run("edit", tmp_path / "photo.png", "a dog", "--model", tmp_path / "run", "--rounds", 2) == 1
    assert "has no rounds" in capsys.readouterr().err


def test_an_explicit_system_shows_its_path(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    save_system(made_system("v-editnts", PAIRS).eval(), tmp_path / SYSTEM_FILE, SystemCard(MeanColours.hash))
    Image.new("RGB", (8, 8), "red").save(tmp_path / "photo.png")
    assert run("edit", tmp_path / "photo.png", "a dog", "--model", tmp_path, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert [step["token"] for step in made["operations"] if step["op"] != "ADD"] == ["a", "dog"]


def test_a_model_folder_can_be_scored_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    store, model = made_store(tmp_path / "store", PAIRS), write_tiny_model(tmp_path / "model")
    val = write_pairs(tmp_path / "val.json", [*PAIRS[:3], ("no such image", ["a"], ["the"])])
    assert run("score", val, "--model", model, "--features", store.path, "--no-spice", "--json") == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert scores["ES"] > 0
    assert run("score", val, "--model", model) == 1
    assert "--features" in capsys.readouterr().err


def test_a_system_of_another_encoder_is_refused(tmp_path: Path) -> None:
    save_system(made_system("mn", PAIRS), tmp_path / SYSTEM_FILE, SystemCard("another"))
    with pytest.raises(CapeditError, match="reads visual tokens of another"):
        load_model(str(tmp_path), MeanColours.hash)
    Image.new("RGB", (8, 8)).save(tmp_path / "photo.png")
    assert run("edit", tmp_path / "photo.png", "a dog", "--model", tmp_path) == 1


def test_systems_take_no_more_than_edits(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["--edits", "e", "--val", "v", "--features", "f", "--captions", "c", "--out", tmp_path]
    assert run("train", "mn", *arguments) == 1
    assert "learns from --edits alone" in capsys.readouterr().err


def test_rewriting_is_deleting_and_adding_everything() -> None:
    trace = trace_of(Outcome.rewritten(["a", "dog"], ["two", "cats", "run"]), ["a", "dog"])
    assert trace.target == ["two", "cats", "run"]
    assert count_trace(trace) == count_implicit(["a", "dog"], ["two", "cats", "run"])


def test_the_list_of_models_knows_the_file() -> None:
    assert LISTED_FILE == SYSTEM_FILE
    assert len(SYSTEMS) == 7
