"""Runs killed at moments all over their course: nothing lost, nothing doubled, the end is the same. At length in
`benchmarks/pipeline_crash.py`."""

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
    ("sidecar", "folder", "sidecar", "out", 0),
    ("sidecar in place", "folder", "sidecar", None, 0),
]
TRIALS = 2


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[name for name, *_ in SCENARIOS])
def test_a_short_campaign(
    tmp_path: Path, treatment: Treatment, scenario: tuple[str, str, str | None, str | None, int]
) -> None:
    name, dataset, format, out, workers = scenario
    write_world(tmp_path / "world", dataset, format, 60)
    # In a process that has loaded no more than it needs: this one may have threads that do not survive a fork.
    code = (
        "from pathlib import Path\n"
        "from capedit.pipeline import Treatment\n"
        "from tests.pipeline.campaign import Campaign, Scenario, small_shards, spread\n"
        f"scenario = Scenario({name!r}, {dataset!r}, {format!r}, {out!r}, {workers!r})\n"
        f"treatment = Treatment(model={treatment.model!r}, encoder={treatment.encoder!r})\n"
        "small_shards()\n"
        f"folder = Path({str(tmp_path)!r})\n"
        f"done = list(spread(Campaign(folder / 'world', scenario, treatment, folder), {TRIALS}))\n"
        f"assert sum(trial.kills for trial in done) == {2 * TRIALS}, done\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], cwd=root, env=os.environ | {"PYTHONPATH": str(root)}, check=True)
