"""`capedit train` through the real `main`, on made data: from captions and features to a model folder that edits."""

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
import torch

from capedit.editing import Bundle, Editor, Runtime
from capedit.editing.bundle import ENCODER
from capedit.editing.editor import load_modules
from capedit.errors import CapeditError
from capedit.models.concept_files import ConceptTable
from capedit.models.tiger_files import load_tiger
from capedit.training.checkpoint import load_checkpoint
from capedit.training.curves import read_curves
from capedit.training.material import ImageKeys, Material
from capedit.training.recipe import RECIPES, Recipe
from tests.calling import run
from tests.editing.tiny import DIM, WORDS, MeanColours
from tests.training.test_tiger import made_pairs, made_store

RECIPE: dict[str, Any] = {
    "name": "made",
    "min_count": 1,
    "shape": {
        "encoder": {
            "text": {"width": 16, "layers": 2, "heads": 2, "inner": 32},
            "vision": {"width": 16, "layers": 2, "heads": 2, "inner": 32},
            "co_width": 16,
            "co_heads": 2,
            "positions": 24,
            "segments": 1,
            "vision_reads_text": False,
        },
        "shared": True,
        "concepts_shown": 3,
        "concept_layers": 1,
        "matching": True,
        "grounding": {"width": 16, "heads": 2, "inner": 16, "space": 8},
    },
    "grounding": {"steps": 4, "batch_size": 8},
    "concepts": {"steps": 2, "batch_size": 8},
    "matching": {"steps": 2, "batch_size": 8},
    "knobs": {"rounds": 2},
    "stages": [
        {"name": "captions", "captions": True, "train": {"steps": 4, "batch_size": 8}, "tiger": {"holes": 1.0}},
        {
            "name": "edits",
            "train": {"steps": 4, "batch_size": 8},
            "tiger": {"alignment": "shortest", "right": 1.0, "slips": 1.0, "own_states": 0.5},
        },
    ],
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return made_files(tmp_path)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same files, and a model trained on them, the last stage for the most part: read it, or take a copy."""
    folder = made_files(tmp_path_factory.mktemp("grown"))
    (folder / "recipe.json").write_text(json.dumps(with_last_stage(taken=0.8)))
    assert run(*arguments(folder)) == 0
    return folder


def made_files(folder: Path) -> Path:
    pairs = made_pairs(24)
    made_store(folder / "store", pairs)
    for name, chosen in (("train", pairs), ("val", pairs[:6])):
        records = [
            {"image_id": int(image), "Ref-Cap": " ".join(r), "GT-Cap": " ".join(t), "sample_id": number}
            for number, (image, r, t) in enumerate(chosen)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder / "captions.jsonl").write_text(
        "".join(json.dumps({"image_id": int(image), "caption": " ".join(t)}) + "\n" for image, _, t in pairs)
    )
    torch.manual_seed(0)
    ConceptTable(
        tuple(WORDS[2:10]), MeanColours.hash, torch.randn(8, DIM), torch.zeros(8), torch.full((8,), -2.0)
    ).save(folder / "concepts.safetensors")
    (folder / "recipe.json").write_text(json.dumps(RECIPE))
    return folder


def with_last_stage(**changes: float) -> dict[str, object]:
    """The recipe, its last stage changed."""
    first, last = RECIPE["stages"]
    return RECIPE | {"stages": [first, last | changes]}


def arguments(folder: Path, out: str = "run") -> list[str]:
    options = {
        "--edits": "train.jsonl",
        "--captions": "captions.jsonl",
        "--features": "store",
        "--concepts": "concepts.safetensors",
        "--val": "val.jsonl",
        "--out": out,
    }
    told = [part for option, name in options.items() for part in (option, str(folder / name))]
    return ["train", str(folder / "recipe.json"), *told, "--json"]


def test_from_captions_to_a_model_that_edits(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments(files)) == 0
    marks = json.loads(capsys.readouterr().out)
    assert {"CIDEr-D", "AUC", "right unchanged"} <= marks.keys()
    assert {
        "concepts",
        "captions",
        "edits",
        "matching",
        "weights.safetensors",
        "vocabulary.json",
        "recipe.json",
        "reliability.png",
        "model",
    } <= {path.name for path in (files / "run").iterdir()}
    bundle = Bundle.load(files / "run/model")
    assert bundle.name == "made"
    assert bundle.knobs.rounds == 2
    editor = Editor(bundle, load_modules(bundle, Runtime.ONNX, 1), MeanColours())
    assert editor.edit(torch.zeros(20, 20, 3, dtype=torch.uint8).numpy(), "A dog on the sofa.").source


def test_without_wrong_captions_the_matching_head_stays_as_it_was(files: Path) -> None:
    (files / "recipe.json").write_text(json.dumps(RECIPE | {"stages": RECIPE["stages"][:1]}))
    right = [json.loads(line) for line in (files / "train.jsonl").read_text().splitlines()]
    told = [json.dumps(record | {"Ref-Cap": record["GT-Cap"]}) for record in right]
    (files / "train.jsonl").write_text("\n".join(told))
    assert run(*arguments(files)) == 0
    assert not (files / "run/matching").exists()


def test_a_stage_is_taken_part_of_the_way(grown: Path) -> None:
    ended = grown / "run"
    start, end = (load_checkpoint(ended / name / "best.safetensors").tensors for name in ("captions", "edits"))
    assert not torch.equal(start["words.bias"], end["words.bias"])
    for name, weight in load_tiger(ended / "weights.safetensors").named_parameters():
        if not name.startswith("match"):  # trained by itself, after all stages
            torch.testing.assert_close(weight.data, 0.2 * start[name] + 0.8 * end[name], rtol=1e-5, atol=1e-7)
    networks = {path: path.read_bytes() for path in (ended / "model").glob("*.onnx")}
    assert len(networks) == 2
    assert run(*arguments(grown)) == 0  # all is done: nothing is trained again
    assert networks == {path: path.read_bytes() for path in networks}


@pytest.mark.parametrize("taken", [0, 1.5])
def test_no_less_than_something_and_no_more_than_all_is_taken(tmp_path: Path, taken: float) -> None:
    (tmp_path / "recipe.json").write_text(json.dumps(with_last_stage(taken=taken)))
    with pytest.raises(CapeditError, match=r"not a recipe.*stage edits: taken must lie in"):
        Recipe.load(tmp_path / "recipe.json")


def test_a_recipe_without_a_stage_is_refused(tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text(json.dumps(RECIPE | {"stages": []}))
    with pytest.raises(CapeditError, match=r"not a recipe.*it needs a stage"):
        Recipe.load(tmp_path / "recipe.json")


def test_the_matching_head_of_a_trained_model_learns_alone_and_its_encoder_comes_along(
    grown: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = copytree(grown, tmp_path / "files")
    begun, made = files / "run/model", files / "matched/model"
    (begun / ENCODER).write_bytes(b"an encoder of its own")
    (files / "recipe.json").write_text(
        json.dumps({"name": "matched", "knobs": {}, "stages": [], "matching": {"steps": 2, "batch_size": 8}})
    )
    told = arguments(files, "matched")
    at = told.index("--concepts")
    del told[at : at + 2]
    assert run(*told) == 1  # nothing to go on from
    assert "--start" in capsys.readouterr().err
    assert run(*told, "--start", str(begun)) == 0
    before, after = (
        dict(load_tiger(files / name / "weights.safetensors").named_parameters()) for name in ("run", "matched")
    )
    changed = {name for name, weight in after.items() if not torch.equal(weight, before[name])}
    assert changed
    assert all(name.startswith("match") for name in changed)
    assert (made / ENCODER).read_bytes() == b"an encoder of its own"
    assert run("export", str(files / "matched"), "--out", str(files / "int8"), "--bits", "int8") == 0
    assert (files / "int8" / ENCODER).read_bytes() == b"an encoder of its own"


@pytest.mark.parametrize("bits", ["torch", "fp32", "int8"])
def test_a_trained_model_is_trained_further(
    grown: Path, tmp_path: Path, bits: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """From its weights or, as with the bundled model, from its ONNX files."""
    files = copytree(grown, tmp_path / "files")
    begun = files / "run/model"
    if bits != "torch":
        begun = files / bits
        assert run("export", str(files / "run"), "--out", str(begun), "--bits", bits) == 0
    stage = {"name": "more", "train": {"steps": 1, "batch_size": 8, "learning_rate": 1e-9}, "tiger": {"right": 1.0}}
    (files / "recipe.json").write_text(json.dumps({"name": "further", "knobs": {"keep_bias": 0.5}, "stages": [stage]}))
    told = arguments(files, "further")
    at = told.index("--concepts")
    assert run(*told) == 1  # nothing to go on from
    assert "--start" in capsys.readouterr().err
    assert run(*told, "--start", str(begun)) == 1
    assert "the model of --start has its own" in capsys.readouterr().err
    del told[at : at + 2]
    assert run(*told, "--start", str(begun)) == 0
    before, after = (load_tiger(files / name / "weights.safetensors") for name in ("run", "further"))
    for tensor, again in zip(before.state_dict().values(), after.state_dict().values(), strict=True):
        torch.testing.assert_close(tensor, again, atol=0.02 if bits == "int8" else 1e-6, rtol=1e-2)
    knobs = Bundle.load(files / "further/model").knobs
    assert (knobs.rounds, knobs.keep_bias) == (2, 0.5)  # the model's own, but for what the recipe says


def test_all_stages_in_sixteen_bits(files: Path) -> None:
    """In a process of its own, told to compute so in a way that every machine has."""
    told = json.loads((files / "recipe.json").read_text())
    told["stages"][1]["tiger"] |= {"own_states": 1.0, "flips": 2}
    (files / "recipe.json").write_text(json.dumps(told))
    command = [sys.executable, "-m", "capedit", *arguments(files), "--precision", "bf16", "--steps", "1"]
    subprocess.run(command, env=os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}, check=True, timeout=300)
    config = json.loads((files / "run/edits/config.json").read_text())
    assert config["train"]["precision"] == "bf16"
    curves = read_curves(files / "run/edits/curves.csv")
    assert np.isfinite([value for _, name, value in curves if name == "CIDEr-D"]).all()


def test_images_of_val_are_never_trained_on(files: Path) -> None:
    from capedit.training.material import read_questions
    from capedit.training.train_tiger import setup
    from capedit.vision import FeatureStore

    store = FeatureStore(files / "store")
    keys = ImageKeys(store)
    material = Material.read([files / "train.jsonl"], [files / "captions.jsonl"], keys)
    assert len(material.edits) == 24
    questions = read_questions([files / "val.jsonl"], keys)
    concepts = ConceptTable.load(files / "concepts.safetensors")
    ready = setup(Recipe.load(files / "recipe.json"), material, questions, store, concepts)
    held_out = {question.image for question in questions}
    assert len(ready.material.edits) == len(ready.material.right) == 18
    assert not held_out & {image for image, *_ in ready.material.edits}


def test_every_recipe_of_the_package_is_one() -> None:
    names = [path.stem for path in RECIPES.glob("*.json")]
    assert "tiger-small" in names
    recipes = [Recipe.load(name) for name in names]
    assert all(recipe.config(100, 1280, 50).encoder.vocabulary == 100 for recipe in recipes if recipe.shape)
    with pytest.raises(CapeditError, match="tiger-small"):
        Recipe.load("lion")


def test_torchrun_takes_no_option_for_its_own() -> None:
    """It reads what stands behind the module's name too, and what begins like an option of its own is ambiguous."""
    import typer.main
    from torch.distributed.run import get_args_parser

    from capedit.cli import application

    theirs = [name for action in get_args_parser()._actions for name in action.option_strings]
    command = typer.main.get_command(application(["train"])).commands["train"]  # type: ignore[attr-defined]
    for option in command.params:
        safe = [name for name in option.opts if not any(other.startswith(name) for other in theirs)]
        assert safe, option.opts
