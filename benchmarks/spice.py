"""How near `SPICE (capedit)` comes to the Java original, and how fast it is.

    python benchmarks/spice.py CAPTIONS.json SCORES.json [CAPTIONS.json SCORES.json ...]

CAPTIONS is a COCO-EE or Flickr30K-EE file (Ref-Cap is scored against GT-Cap), SCORES the original's values for it:
a list of objects with sample_id, f, test_tuples and ref_tuples. Times are of one process and one thread, loading
apart. The original cannot be run here (its CoreNLP grammar is not in the pycocoevalcap wheel); its speed, 7 to 12
captions per second of processor time, is a figure measured elsewhere.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from capedit.metrics.spice import Spice

ORIGINAL_SPEED = (7, 12)

Floats = npt.NDArray[np.float64]


def kendall(x: Floats, y: Floats) -> float:
    """Tau-b: pairs in order less pairs out of order, ties allowed for. Quadratic, one row at a time."""
    agree = 0.0
    untied_x = untied_y = 0
    for i in range(len(x) - 1):
        a, b = np.sign(x[i + 1 :] - x[i]), np.sign(y[i + 1 :] - y[i])
        agree += float(a @ b)
        untied_x += int(np.count_nonzero(a))
        untied_y += int(np.count_nonzero(b))
    return agree / float(np.sqrt(untied_x) * np.sqrt(untied_y))


def same_graph(ours: Sequence[tuple[str, ...]], theirs: Sequence[Sequence[str]]) -> bool:
    """Equal tuples, whatever the order of merged words ("toilet/bathroom")."""
    return {tuple(frozenset(slot.split("/")) for slot in t) for t in ours} == {
        tuple(frozenset(slot.split("/")) for slot in t) for t in theirs
    }


def compare(captions: Path, scores: Path) -> None:
    instances = {entry["sample_id"]: entry for entry in json.loads(captions.read_text(encoding="utf-8"))}
    original = json.loads(scores.read_text(encoding="utf-8"))
    chosen = [instances[entry["sample_id"]] for entry in original]
    hypotheses = [" ".join(entry["Ref-Cap_tokens"]) for entry in chosen]
    references = [[" ".join(entry["GT-Cap_tokens"])] for entry in chosen]

    begin = time.process_time()
    spice = Spice()
    loading = time.process_time() - begin
    begin = time.process_time()
    found = spice.scores(hypotheses, references)
    spent = time.process_time() - begin

    # Rounded, so that values equal but for the order of floating-point operations count as tied.
    ours = np.round([score.f for score in found], 9)
    theirs = np.round([entry["f"] for entry in original], 9)
    graphs = [
        same_graph(spice.scene_graph(caption), entry[side])
        for side, texts in (("test_tuples", hypotheses), ("ref_tuples", [r[0] for r in references]))
        for caption, entry in zip(texts, original, strict=True)
    ]
    distinct = len({*hypotheses, *(r[0] for r in references)})
    print(f"{captions.name}: {len(original)} instances, {distinct} distinct captions")
    print(f"  Kendall tau       {kendall(ours, theirs):.4f}")
    print(f"  Pearson           {np.corrcoef(ours, theirs)[0, 1]:.4f}")
    print(f"  mean x100         {100 * ours.mean():.2f}, original {100 * theirs.mean():.2f}", end="")
    print(f" (difference {100 * (ours.mean() - theirs.mean()):+.2f})")
    print(f"  equal F           {np.mean(ours == theirs):.1%} of instances")
    print(f"  equal graph       {np.mean(graphs):.1%} of captions")
    speed = distinct / spent
    low, high = ORIGINAL_SPEED
    print(f"  captions/s        {speed:.0f} distinct ({2 * len(original) / spent:.0f} in all); loading {loading:.2f} s")
    print(
        f"  against original  {speed / high:.0f} to {speed / low:.0f} times its {low}-{high} captions/s (not run here)"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("files", type=Path, nargs="+", help="captions, scores, captions, scores ...")
    files = arguments.parse_args().files
    if len(files) % 2:
        arguments.error("give captions and scores in pairs")
    for captions, scores in zip(files[::2], files[1::2], strict=True):
        compare(captions, scores)


if __name__ == "__main__":
    main()
