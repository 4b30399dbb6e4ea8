import json
from pathlib import Path

import numpy as np
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from capedit.cli.features import features
from capedit.vision.store import FeatureStore
from capedit.vision.tokens import WITHHELD

app = typer.Typer()
app.command()(features)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    chance = np.random.default_rng(0)
    for number in range(6):
        Image.fromarray(chance.integers(0, 256, (40, 60, 3), dtype=np.uint8)).save(folder / f"{number}.png")
    return folder


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def test_a_folder_becomes_a_store(folder: Path, tmp_path: Path, encoder_file: Path) -> None:
    store = tmp_path / "store"
    code, text = run(folder, "--out", store, "--encoder", encoder_file, "--grid", 3, "--dtype", "int8", "--workers", 2)
    assert code == 0
    assert "6 images: 6 stored, 0 already there, 0 failed" in text
    assert FeatureStore(store).tokens("4").features.shape == (10, 32)


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_a_store_may_hold_a_blank_image(folder: Path, tmp_path: Path, encoder_file: Path, dtype: str) -> None:
    arguments = (folder, "--out", tmp_path / "store", "--encoder", encoder_file, "--dtype", dtype)
    assert run(*arguments)[0] == 0
    assert WITHHELD not in FeatureStore(tmp_path / "store")
    for _ in range(2):  # once is enough, twice does no harm
        assert run(*arguments, "--withheld")[0] == 0
    blank = FeatureStore(tmp_path / "store").tokens(WITHHELD)
    assert blank.features.tolist() == [[0] * 32]
    assert blank.boxes.tolist() == [[0, 0, 1, 1, 1]]


def test_a_second_run_goes_on_and_bad_images_are_told(folder: Path, tmp_path: Path, encoder_file: Path) -> None:
    arguments = (folder, "--out", tmp_path / "store", "--encoder", encoder_file, "--json")
    assert run(*arguments)[0] == 0
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff no picture")
    code, text = run(*arguments)
    account = json.loads(text)
    assert code == 3
    assert (account["images"], account["stored"], account["already"], account["failed"]) == (7, 0, 6, 1)
    assert account["in_store"] == 6
    assert account["encoder"] == "tiny"
