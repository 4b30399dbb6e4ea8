"""What people decide becomes training data: `capedit review --export-pairs`, then `capedit train`."""

import json
from pathlib import Path

import numpy as np
import pytest

from capedit.data import open_dataset, write_dataset
from capedit.editing import Bundle
from capedit.server.review.decisions import Author, Decision
from capedit.server.review.review import Review
from capedit.vision.store_writer import StoreWriter
from tests.calling import run
from tests.editing.tiny import MeanColours
from tests.server.runs import EDITS, write_run

ANN = Author("ann-browser", "Ann")
STREAM = {"width": 16, "layers": 2, "heads": 2, "inner": 32}
RECIPE = {
    "name": "reviewed",
    "min_count": 1,
    "shape": {
        "encoder": {
            "text": STREAM,
            "vision": STREAM,
            "co_width": 16,
            "co_heads": 2,
            "positions": 24,
            "vision_reads_text": False,
        },
        "shared": True,
        "matching": True,
    },
    "knobs": {"rounds": 2},
    "stages": [{"name": "edits", "train": {"steps": 3, "batch_size": 4}, "tiger": {"alignment": "shortest"}}],
}


def reviewed(folder: Path) -> Path:
    """A run of 24 captions on which all is decided: edits of the first half accepted, of the second rejected."""
    out = write_run(folder, [EDITS[number % len(EDITS)] for number in range(24)])
    review = Review(out)
    units = np.ones(len(review.index.deleted), bool)
    for half, verdict in ((review.index.unit_row < 12, True), (review.index.unit_row >= 12, False)):
        review.book.decide_many(ANN, "all", review.bulk(units & half, verdict).decisions)
    for row in (2, 8):  # those that the editor left alone are found to be right
        review.book.decide(ANN, row, 0, Decision(settled=True))
    review.close()
    return out


def test_decisions_train_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, pairs = reviewed(tmp_path), tmp_path / "pairs.json"
    assert run("review", out, "--export-pairs", pairs) == 0
    instances = list(open_dataset(pairs))
    assert len(instances) == 22
    assert sum(instance.reference == instance.target for instance in instances) == 12
    write_dataset(instances[:5], tmp_path / "val.json", "ee")
    encoder = MeanColours()
    with StoreWriter(tmp_path / "store", encoder) as store:
        for row in range(24):
            store.add(str(row), encoder.encode([tmp_path / f"{row}.png"])[0])
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps(RECIPE))
    data = {
        "--edits": pairs,
        "--val": tmp_path / "val.json",
        "--features": tmp_path / "store",
        "--out": tmp_path / "run",
    }
    capsys.readouterr()
    assert (
        run("train", recipe, *(part for item in data.items() for part in item), "--out", tmp_path / "run", "--json")
        == 0
    )
    assert "CIDEr-D" in json.loads(capsys.readouterr().out)
    assert Bundle.load(tmp_path / "run/model").name == "reviewed"
