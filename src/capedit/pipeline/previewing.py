"""What a run would do, without doing it: how many captions would change, how surely, and how that would look."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from capedit import __version__
from capedit.data import Dataset
from capedit.pipeline.engine import EngineName
from capedit.pipeline.fixing import check_treatment, edit_shards, ignore
from capedit.pipeline.gather import gather
from capedit.pipeline.log import EditLog, EditRow, Status
from capedit.pipeline.plan import Plan, make_plan
from capedit.pipeline.progress import Progress, Report, Stage
from capedit.pipeline.refine import Stamp
from capedit.pipeline.selection import Selection
from capedit.pipeline.settings import Source, Treatment
from capedit.pipeline.workbench import Task

BINS = 10
_NUMBER = re.compile(r"\d+(\.\d+)?")
_FILE_GUESS = 10_000
"""Captions of a file that nobody has counted."""


@dataclass(frozen=True)
class Preview:
    captions: int
    """Looked at."""
    total: int | None
    """In the dataset, where that is known."""
    counts: dict[str, int]
    """By status."""
    confidence: tuple[int, ...]
    """How many edits, changed or held, have a confidence of 0 to 0.1, 0.1 to 0.2, ..."""
    steps: dict[int, int]
    """How many edits take so many steps."""
    reasons: dict[str, int]
    """Why captions are held or failed, the most frequent first; numbers in them are N."""
    samples: tuple[EditRow, ...]
    """Edits from the least to the most sure."""
    collapsed: dict[str, int]
    problems: int


def preview(
    dataset: Dataset,
    treatment: Treatment | None = None,
    *,
    sample: int | None = None,
    shown: int = 10,
    engine: EngineName = EngineName.LOCAL,
    workers: int | None = None,
    report: Report = ignore,
) -> Preview:
    """Look at all captions, or at about `sample` of them from all over the dataset; nothing is written anywhere."""
    treatment = (treatment or Treatment()).settled()
    bundle, encoder = check_treatment(treatment)
    with tempfile.TemporaryDirectory(prefix="capedit-preview-") as folder:
        work = Path(folder)
        stamp = Stamp(bundle.label, encoder.hash, __version__, datetime.now(UTC), Path.cwd())
        task = Task(Source.of(dataset), treatment, stamp, work)
        task.parts.mkdir()
        report(Progress(Stage.READING))
        whole = make_plan(task.source, Selection.parse(treatment.only), work / "plan")
        plan = whole if sample is None else _sampled(whole, sample)
        set_aside = edit_shards(plan.shards, plan.captions, task, engine, workers, report)
        gathered = gather(plan, task, set_aside, work / "log")
        log = EditLog(work / "log")
        confidence, steps, reasons = _distributions(log)
        return Preview(
            captions=len(log),
            total=whole.captions,
            counts={status.value: gathered.statuses[status] for status in sorted(gathered.statuses)},
            confidence=confidence,
            steps=steps,
            reasons=reasons,
            samples=_samples(log, shown),
            collapsed=gathered.collapsed,
            problems=plan.problems,
        )


def _sampled(plan: Plan, sample: int) -> Plan:
    """Shards at even distances, as many as hold so many captions."""
    total = plan.captions or _FILE_GUESS * len(plan.shards)
    count = min(len(plan.shards), max(1, -(-len(plan.shards) * sample // max(total, 1))))
    chosen = tuple(plan.shards[at * len(plan.shards) // count] for at in range(count))
    captions = None if plan.captions is None else sum(shard.captions or 0 for shard in chosen)
    return replace(plan, shards=chosen, captions=captions)


def _distributions(log: EditLog) -> tuple[tuple[int, ...], dict[int, int], dict[str, int]]:
    bins: Counter[int] = Counter()
    steps: Counter[int] = Counter()
    reasons: Counter[str] = Counter()
    for batch in log.batches(["status", "confidence", "steps", "reason"]):
        for one in batch.to_pylist():
            if one["status"] in (Status.CHANGED, Status.HELD):
                bins[min(int(one["confidence"] * BINS), BINS - 1)] += 1
                steps[one["steps"]] += 1
            if one["reason"] is not None:
                reasons[_NUMBER.sub("N", f"{one['status']}: {one['reason']}")] += 1
    return tuple(bins[at] for at in range(BINS)), dict(sorted(steps.items())), dict(reasons.most_common(10))


def _samples(log: EditLog, count: int) -> tuple[EditRow, ...]:
    table = log.table(["row", "status", "confidence"])
    status = np.array(table.column("status").to_pylist(), dtype=object)
    changed = np.flatnonzero((status == Status.CHANGED) | (status == Status.HELD))
    ranked = changed[np.argsort(table.column("confidence").to_numpy()[changed], kind="stable")]
    if not len(ranked):
        return ()
    places = np.unique(np.linspace(0, len(ranked) - 1, count).round().astype(int))
    return tuple(log[int(ranked[place])] for place in places)
