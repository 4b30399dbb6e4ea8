"""Runs killed at random moments: nothing lost, nothing doubled, the end is the same. At length in benchmarks/."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from capedit.pipeline import Treatment
from tests.pipeline.world import write_world

SCENARIOS = [
    ("jsonl", "captions.jsonl", None, "out.jsonl", 2),
    ("parquet to csv", "inside.parquet", None, "out.csv", 0),
    ("tar shards in place", "shards", "webdataset", None, 0),
    ("sidecar in place", "folder", "sidecar", None, 0),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[name for name, *_ in SCENARIOS])
def test_a_short_campaign(
    tmp_path: Path, treatment: Treatment, scenario: tuple[str, str, str | None, str | None, int]
) -> None:
    name, dataset, format, out, workers = scenario
    write_world(tmp_path / "world", dataset, format, 80)
    # In a process that has loaded no more than it needs: this one may have threads that do not survive a fork.
    code = (
        "import sys; from pathlib import Path\n"
        "from capedit.pipeline import Treatment\n"
        "from tests.pipeline.campaign import Scenario, campaign, small_shards\n"
        f"scenario = Scenario({name!r}, {dataset!r}, {format!r}, {out!r}, {workers!r})\n"
        f"treatment = Treatment(model={treatment.model!r}, encoder={treatment.encoder!r})\n"
        "small_shards()\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "done = list(campaign(folder / 'world', scenario, treatment, folder, 4, 1))\n"
        "assert sum(trial.kills for trial in done) >= 3, done\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], cwd=root, env=os.environ | {"PYTHONPATH": str(root)}, check=True)
