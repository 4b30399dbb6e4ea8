"""An editor's marks on a benchmark: how good its captions are, and whether it knows right from wrong.

Used to pick checkpoints while training, and to report a finished model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from capedit.edits import Trace, count_trace
from capedit.metrics import EditCosts, evaluate, is_broken
from capedit.metrics.clashes import find_clashes, find_open_seams
from capedit.models.decoding import Calibration, Knobs, decode
from capedit.models.draft import Draft
from capedit.models.runtime import Images, Modules, Seen
from capedit.vision.store import TokenSource

BATCH = 64


class Question(NamedTuple):
    """A wrong caption of an image, and a right one."""

    image: str
    reference: tuple[str, ...]
    target: tuple[str, ...]


@dataclass(frozen=True)
class Answers:
    """What an editor made of each caption, and how likely it thought that the caption fits."""

    traces: list[Trace]
    fits: NDArray[np.float64]

    @property
    def steps(self) -> float:
        return float(np.mean([count_trace(trace).total for trace in self.traces]))

    @property
    def unchanged(self) -> float:
        """Share of captions left as they were."""
        return float(np.mean([not trace.script.changes for trace in self.traces]))

    @cached_property
    def outputs(self) -> list[list[str]]:
        return [trace.target for trace in self.traces]


class Examination:
    """Questions about images of a feature store."""

    def __init__(self, questions: Sequence[Question], store: TokenSource, knobs: Knobs) -> None:
        self.questions, self._store, self.knobs = list(questions), store, knobs

    def __call__(self, modules: Modules, calibration: Calibration | None = None) -> dict[str, float]:
        """All marks."""
        wrong = self.answers(modules, [q.reference for q in self.questions], calibration=calibration)
        right = self.answers(modules, [q.target for q in self.questions], calibration=calibration)
        return self.marks(wrong, right)

    def marks(self, wrong: Answers, right: Answers) -> dict[str, float]:
        """From the answers to wrong captions and to right ones."""
        return {
            **self.scores(wrong),
            "broken": 100 * float(np.mean([is_broken(output) for output in wrong.outputs])),
            "clashing": 100 * float(np.mean([bool(find_clashes(output)) for output in wrong.outputs])),
            "steps on right": right.steps,
            "right unchanged": 100 * right.unchanged,
            "wrong unchanged": 100 * wrong.unchanged,
            "AUC": area_under_curve(right.fits, wrong.fits),
        }

    def answers(
        self,
        modules: Modules,
        captions: Sequence[Sequence[str]],
        *,
        knobs: Knobs | None = None,
        calibration: Calibration | None = None,
        images: Sequence[str] | None = None,
    ) -> Answers:
        """What the editor makes of these captions, one for each question; `images` puts other pictures before it."""
        shown = [q.image for q in self.questions] if images is None else list(images)
        order = sorted(range(len(captions)), key=lambda at: len(captions[at]))  # like lengths together
        drafts: dict[int, Draft] = {}
        for start in range(0, len(order), BATCH):
            part = order[start : start + BATCH]
            seen = self.see(modules, [shown[at] for at in part])
            made = decode(
                modules,
                seen,
                [captions[at] for at in part],
                knobs or self.knobs,
                calibration=calibration,
                breaks=find_open_seams,
            )
            drafts.update(zip(part, made, strict=True))
        ordered = [drafts[at] for at in range(len(captions))]
        fits = [np.nan if draft.match is None else draft.match for draft in ordered]
        return Answers([draft.trace() for draft in ordered], np.array(fits))

    def scores(self, wrong: Answers) -> dict[str, float]:
        """Caption metrics, in the words of `capedit score`."""
        pairs = [(output, [q.target]) for output, q in zip(wrong.outputs, self.questions, strict=True)]
        costs = EditCosts([count_trace(trace) for trace in wrong.traces], [q.reference for q in self.questions])
        return dict(evaluate(pairs, edits=costs).scores)

    def see(self, modules: Modules, images: Sequence[str]) -> Seen:
        """These images, each seen once."""
        distinct = list(dict.fromkeys(images))
        seen = modules.see(Images(*self._store.batch(distinct)))
        place = {image: at for at, image in enumerate(distinct)}
        return seen.rows(np.array([place[image] for image in images], np.int64))


def area_under_curve(higher: NDArray[np.float64], lower: NDArray[np.float64]) -> float:
    """How often a number of the first kind is above one of the second; ties count half."""
    if np.isnan(higher).any() or np.isnan(lower).any():
        return float("nan")
    everything = np.concatenate([higher, lower])
    _, inverse, counts = np.unique(everything, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2  # from 1; equal values share the mean of their ranks
    rank_sum = ranks[inverse[: len(higher)]].sum()
    return float((rank_sum - len(higher) * (len(higher) + 1) / 2) / (len(higher) * len(lower)))
