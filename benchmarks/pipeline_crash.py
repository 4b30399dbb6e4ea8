"""The crash campaign: runs of `fix` killed with SIGKILL at random moments, resumed, and compared byte for byte.

    python benchmarks/pipeline_crash.py --trials 200            # from the repository's root

Uses the small random-weight model of the tests. Every trial kills a run one to three times, then lets it finish.
Half of the moments are drawn evenly from the time that an undisturbed run takes, half from its operations on
files. Output and log must equal those of the undisturbed run, no caption may be lost or doubled, no file left
behind; after a run in place, `undo` must give back the first bytes.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from capedit.pipeline import Treatment

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.pipeline.campaign import Scenario, campaign, small_shards  # noqa: E402


def scenarios() -> list[Scenario]:
    return [
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
        Scenario("sidecar in place", "folder", "sidecar", None, 0),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=22, help="in all; they are shared out among the scenarios")
    parser.add_argument("--captions", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chosen = scenarios()
    with tempfile.TemporaryDirectory(prefix="capedit-crash-") as name:
        treatment = prepared(Path(name), options.captions, chosen)
        small_shards()
        print("| scenario | trials | killed | finished before the kill | seconds |\n|---|---|---|---|---|")
        kills = 0
        for number, scenario in enumerate(chosen):
            trials = options.trials // len(chosen) + (number < options.trials % len(chosen))
            world, folder = Path(name, "worlds", scenario.dataset.replace(".", "-")), Path(name, f"trial{number}")
            started = time.perf_counter()
            done = list(campaign(world, scenario, treatment, folder, trials, options.seed + number, by_time=0.5))
            killed, early = sum(one.kills for one in done), sum(one.finished_early for one in done)
            kills += killed
            seconds = time.perf_counter() - started
            print(f"| {scenario.name} | {trials} | {killed} | {early} | {seconds:.0f} |", flush=True)
    print(f"\n{options.trials} trials, {kills} kills: every end equal to the undisturbed one, byte for byte")


def prepared(folder: Path, captions: int, chosen: list[Scenario]) -> Treatment:
    """Model and datasets, made in another process: torch must not be loaded in one that forks."""
    layouts = sorted({(one.dataset, one.format) for one in chosen}, key=str)
    code = (
        "from pathlib import Path\n"
        "from tests.pipeline.world import make_treatment, write_world\n"
        f"folder = Path({str(folder)!r})\n"
        "make_treatment(folder)\n"
        f"for name, format in {layouts!r}:\n"
        f"    write_world(folder / 'worlds' / name.replace('.', '-'), name, format, {captions}, scattered=True)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    return Treatment(model=str(folder / "model"), encoder=str(folder / "sight.onnx"))


if __name__ == "__main__":
    main()
