"""The crash campaign: runs of `fix` killed with SIGKILL, resumed, and compared byte for byte with one left alone.

    python benchmarks/pipeline_crash.py --kills 200 --results crash.jsonl      # from the repository's root
    python benchmarks/pipeline_crash.py --every --results every.jsonl          # killed before each change to a file

Uses the small random-weight model of the tests. With `--kills` every trial kills a run one to three times at random
moments (half of them drawn from the time that an undisturbed run takes, half from its changes to files), lets it
finish, then has its undo killed and finished. Output and log must equal those of the undisturbed run, no caption may be
lost or doubled, no file left behind, and undo must give back the first captions: in place, the first bytes.

Trials go round the scenarios until there were so many kills. With `--results`, every trial is written down when it is
over, and the same command goes on behind the last one.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from capedit.pipeline import Treatment

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.pipeline.campaign import Campaign, Scenario, Trial, at_random, every, small_shards  # noqa: E402

SCENARIOS = [
    Scenario("jsonl, 2 workers", "captions.jsonl", None, "out.jsonl", 2),
    Scenario("jsonl", "captions.jsonl", None, "out.jsonl", 0),
    Scenario("jsonl in place", "captions.jsonl", None, None, 0),
    Scenario("coco in place", "coco.json", "coco", None, 0),
    Scenario("csv to tar", "captions.csv", None, "out.tar", 0),
    Scenario("parquet to sidecar", "inside.parquet", None, "out-folder", 0),
    Scenario("parquet tables in place", "tables", "parquet", None, 0),
    Scenario("tar shards, 2 workers", "shards", "webdataset", "out-shards", 2),
    Scenario("tar shards in place", "shards", "webdataset", None, 0),
    Scenario("hugging face in place", "arrow", "huggingface", None, 0),
    Scenario("sidecar", "folder", "sidecar", "out-folder", 0),
    Scenario("sidecar in place", "folder", "sidecar", None, 0),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--captions", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    asked = {"every": options.every, "captions": options.captions, "seed": options.seed}
    results = Results(options.results, asked)
    with tempfile.TemporaryDirectory(prefix="capedit-crash-") as name:
        folder = Path(name)
        treatment = prepared(folder, options.captions)
        small_shards()
        trials = {one.name: trials_of(one, folder, treatment, results, options) for one in SCENARIOS}
        while trials and (options.every or results.kills < options.kills):
            for scenario in list(trials):
                started = time.perf_counter()
                trial = next(trials[scenario], None)
                if trial is None:
                    del trials[scenario]
                else:
                    results.add(scenario, trial, time.perf_counter() - started)
                if not options.every and results.kills >= options.kills:
                    break
    results.tell()


def trials_of(
    scenario: Scenario, folder: Path, treatment: Treatment, results: "Results", options: argparse.Namespace
) -> Iterator[Trial]:
    """The trials of a scenario that have not been made yet."""
    home = folder / scenario.name.replace(" ", "-")
    home.mkdir()
    campaign = Campaign(folder / "worlds" / world_of(scenario.dataset), scenario, treatment, home)
    done = results.trials[scenario.name]
    yield from every(campaign, done + 1) if options.every else at_random(campaign, options.seed, done)


class Results:
    """What the trials came to; the first line of the file says what was asked."""

    def __init__(self, path: Path | None, asked: dict[str, Any]) -> None:
        self._path = path
        self.trials: Counter[str] = Counter()
        self._killed: Counter[str] = Counter()
        self._early: Counter[str] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        if lines and json.loads(lines[0]) != asked:
            raise SystemExit(f"{path}: of another campaign ({lines[0]})")
        if path is not None and not lines:
            path.write_text(json.dumps(asked) + "\n")
        for line in map(json.loads, lines[1:]):
            self._count(line["scenario"], Trial(line["kills"], line["finished_early"]), line["seconds"])

    @property
    def kills(self) -> int:
        return self._killed.total()

    def add(self, scenario: str, trial: Trial, seconds: float) -> None:
        self._count(scenario, trial, seconds)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps({"scenario": scenario, **asdict(trial), "seconds": round(seconds, 1)}) + "\n")

    def tell(self) -> None:
        print("| scenario | trials | kills | finished before the kill | seconds |\n|---|---|---|---|---|")
        for name, trials in self.trials.items():
            print(f"| {name} | {trials} | {self._killed[name]} | {self._early[name]} | {self._seconds[name]:.0f} |")
        print(
            f"\n{self.trials.total()} trials, {self.kills} kills: every end equal to the undisturbed one, byte for byte"
        )

    def _count(self, scenario: str, trial: Trial, seconds: float) -> None:
        self.trials[scenario] += 1
        self._killed[scenario] += trial.kills
        self._early[scenario] += trial.finished_early
        self._seconds[scenario] += seconds


def world_of(dataset: str) -> str:
    return dataset.replace(".", "-")


def prepared(folder: Path, captions: int) -> Treatment:
    """Model and datasets, made in another process: torch must not be loaded in one that forks."""
    layouts = sorted({(one.dataset, one.format, world_of(one.dataset)) for one in SCENARIOS}, key=str)
    code = (
        "from pathlib import Path\n"
        "from tests.pipeline.world import make_treatment, write_world\n"
        f"folder = Path({str(folder)!r})\n"
        "make_treatment(folder)\n"
        f"for name, format, world in {layouts!r}:\n"
        f"    write_world(folder / 'worlds' / world, name, format, {captions}, scattered=True)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    return Treatment(model=str(folder / "model"), encoder=str(folder / "sight.onnx"))


if __name__ == "__main__":
    main()
