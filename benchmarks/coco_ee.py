"""By which rules was the published COCO-EE made? And how does a set that we build compare?

    python benchmarks/coco_ee.py PUBLISHED_val.json captions_val2014.json \\
        [--original-spice spice_coco_val.json] [--spice] [--built train.json ...]

Prints, for the published pairs: BLEU against one and against all captions of the image, SPICE likewise (`--spice` runs
ours; `--original-spice` has the original's values against the GT), the stand-in for SPICE, how often the GT is the
nearest caption, and the statistics beside those of sets that were built here.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from capedit.data import Instance, open_dataset
from capedit.data.builders.captions import CaptionTable, Tokens, read_coco_captions
from capedit.data.builders.filters import Against, ContentOverlap, SpiceMeaning
from capedit.data.statistics import Statistics, collect_statistics
from capedit.edits import edit_distance
from capedit.metrics.bleu import bleu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("published", type=Path)
    parser.add_argument("captions", type=Path)
    parser.add_argument("--original-spice", type=Path)
    parser.add_argument("--spice", action="store_true")
    parser.add_argument("--built", type=Path, nargs="*", default=[])
    arguments = parser.parse_args()

    published = list(open_dataset(arguments.published))
    table = read_coco_captions([arguments.captions], frozenset())
    references = captions_of(published, table)
    report_rules(published, references, with_spice=arguments.spice, original=arguments.original_spice)
    report_statistics(
        {"published val": statistics(published)} | {p.name: statistics(open_dataset(p)) for p in arguments.built}
    )


def captions_of(instances: Sequence[Instance], table: CaptionTable) -> list[list[Tokens]]:
    position = {image_id: image for image, image_id in enumerate(table.image_ids.tolist())}
    return [[table.captions[c] for c in table.of_image(position[int(str(one.image_id))])] for one in instances]


def report_rules(
    pairs: Sequence[Instance], references: Sequence[Sequence[Tokens]], *, with_spice: bool, original: Path | None
) -> None:
    candidates = [one.reference_tokens for one in pairs]
    own = [[one.target_tokens or ()] for one in pairs]
    print(f"{len(pairs)} published pairs")
    for label, against in (("own GT alone", own), ("all captions", references)):
        scores = bleu(list(zip(candidates, against, strict=True)))[1]
        passed = (scores[:, 1] > 0.4) & (scores[:, 2] > 0.3)
        minima = f"minima {scores[:, 1].min():.5f} {scores[:, 2].min():.5f}"
        print(f"  BLEU-2 > 0.4 and BLEU-3 > 0.3, {label}: {100 * passed.mean():.2f} %, {minima}")
    if original:
        values = [record["f"] for record in json.loads(original.read_text(encoding="utf-8"))]
        report_meaning("original SPICE, own GT alone", values, 0.35)
    if with_spice:
        from capedit.metrics.spice import Spice

        spice = Spice()
        report_meaning("our SPICE, own GT alone", SpiceMeaning(spice).scores(candidates, own), 0.35)
        for way in Against:
            report_meaning(f"our SPICE against {way}", SpiceMeaning(spice, way).scores(candidates, references), 0.35)
    report_meaning("content overlap, all captions", ContentOverlap().scores(candidates, references), 0.40)
    distances = [[edit_distance(c, r) for r in several] for c, several in zip(candidates, references, strict=True)]
    chosen = [edit_distance(one.reference_tokens, one.target_tokens or ()) for one in pairs]
    nearest = [d == min(several) for d, several in zip(chosen, distances, strict=True)]
    print(f"  GT is the nearest caption (ties counted): {100 * np.mean(nearest):.2f} %")


def report_meaning(label: str, values: Sequence[float] | np.ndarray, limit: float) -> None:
    array = np.asarray(values)
    quantiles = " ".join(f"{q:.3f}" for q in np.quantile(array, [0.5, 0.9, 0.95, 0.99, 1]))
    below = 100 * (array < limit).mean()
    print(f"  {label}: below {limit} {below:.2f} %; mean {array.mean():.4f}; quantiles .5 .9 .95 .99 1: {quantiles}")


def statistics(instances: object) -> Statistics:
    assert hasattr(instances, "__iter__")
    return collect_statistics((one.image_id, one.reference_tokens, one.target_tokens or ()) for one in instances)


def report_statistics(columns: dict[str, Statistics]) -> None:
    rows = ("instances", "images", "mean_reference_length", "mean_target_length", "mean_edit_distance", "vocabulary")
    print("| | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for row in rows:
        values = [getattr(found, row) for found in columns.values()]
        print(f"| {row} | " + " | ".join(f"{v:,}" if isinstance(v, int) else f"{v:.2f}" for v in values) + " |")


if __name__ == "__main__":
    main()
