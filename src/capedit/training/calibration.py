"""Probabilities that mean what they say: scales fitted on validation captions, and how well they then do.

All three modules are asked at gold states (wrong captions and right ones alike), where the right answer is known. A
scale changes how sure the model says it is, never what it prefers: knobs act on logits as they are. A yes or no gets a
temperature and a shift (Platt), a choice of words a temperature alone, by which the likeliest is right as often as it
says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from capedit.edits import Alignment, Order
from capedit.models.decoding import Calibration, Scale, pad_rows, sigmoid
from capedit.models.runtime import Modules, Seen, Text
from capedit.models.vocabulary import END, MASK, START
from capedit.training.examination import BATCH, Examination, Question
from capedit.training.states import CHANGE, IGNORE, Sample, Sampler, Sentinels, find_path

BINS = 10
NEWTON_STEPS = 20
RIDGE = 1e-6
TINY = 1e-9
HOTTEST = 5.0
"""No temperature above this: a model that needs more knows nothing."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Reliability:
    """In bins of stated probability: how often it was so."""

    stated: Floats
    observed: Floats
    count: NDArray[np.int64]

    @classmethod
    def of(cls, probability: Floats, truth: NDArray[np.bool_]) -> "Reliability":
        places = np.minimum((probability * BINS).astype(int), BINS - 1)
        count = np.bincount(places, minlength=BINS)
        some = np.maximum(count, 1)
        return cls(
            np.bincount(places, probability, BINS) / some,
            np.bincount(places, truth, BINS) / some,
            count.astype(np.int64),
        )

    @property
    def error(self) -> float:
        """Expected calibration error: the mean gap between what was stated and what was so."""
        return float((self.count * np.abs(self.stated - self.observed)).sum() / self.count.sum())


@dataclass(frozen=True)
class Calibrated:
    """The scales, and the reliability with and without them."""

    calibration: Calibration
    before: dict[str, Reliability]
    after: dict[str, Reliability]


def calibrate(
    modules: Modules,
    examination: Examination,
    *,
    alignment: Alignment = Alignment.SHORTEST,
    order: Order = Order.LEFT_TO_RIGHT,
    seed: int = 0,
) -> Calibrated:
    """Fit scales on one half of the questions, and measure on the other."""
    halves = [_gather(modules, examination, part, alignment, order, seed) for part in (0, 1)]
    scales, before, after = {}, {}, {}
    for name, (logits, truth) in halves[0].items():
        scales[name] = fit_scale(logits, truth)
        held_logits, held_truth = halves[1][name]
        before[name] = _reliability(held_logits, held_truth, Scale())
        after[name] = _reliability(held_logits, held_truth, scales[name])
    return Calibrated(Calibration(**scales), before, after)


def fit_scale(logits: Floats, truth: NDArray[np.int64]) -> Scale:
    """The scale of least loss, for logits of a yes (N,) or of words (N, V)."""
    return fit_line(logits, truth) if logits.ndim == 1 else Scale(fit_temperature(logits, truth))


def fit_line(logits: Floats, truth: NDArray[np.int64]) -> Scale:
    """Logistic regression on one number, by Newton's method with steps that never lead uphill."""
    inputs = np.stack([logits, np.ones_like(logits)], 1)
    line = np.array([0.0, 0.0])  # slope and shift

    def loss(line: Floats) -> float:
        signed = np.where(truth == 1, -1.0, 1.0) * (inputs @ line)
        return float(np.logaddexp(0, signed).sum())

    for _ in range(NEWTON_STEPS):
        likely = sigmoid((inputs @ line).astype(np.float32)).astype(np.float64)
        gradient = inputs.T @ (likely - truth)
        curvature = (inputs * (likely * (1 - likely))[:, None]).T @ inputs + RIDGE * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        while loss(line - step) > loss(line) and np.abs(step).max() > TINY:
            step /= 2
        line = line - step
    slope, shift = line.tolist()
    return Scale(1 / max(slope, 1 / HOTTEST), shift)


def fit_temperature(logits: Floats, truth: NDArray[np.int64]) -> float:
    """The temperature at which the likeliest word is right as often as it says; by golden section over its logarithm.

    Of least loss for that one question, which is what users are told; rarer words would pull it elsewhere.
    """
    low, high, ratio = -np.log(HOTTEST), np.log(HOTTEST), (5**0.5 - 1) / 2
    for _ in range(40):
        first, second = high - ratio * (high - low), low + ratio * (high - low)
        if _loss(logits, truth, np.exp(first)) < _loss(logits, truth, np.exp(second)):
            high = second
        else:
            low = first
    return float(np.exp((low + high) / 2))


def plot_reliability(calibrated: Calibrated, path: Path) -> None:
    """Stated against observed, for each module."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(calibrated.after), 3.4), layout="constrained")
    axes = figure.subplots(1, len(calibrated.after), sharey=True, squeeze=False)[0]
    for axis, (name, after) in zip(axes, calibrated.after.items(), strict=True):
        axis.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        for reliability, label in ((calibrated.before[name], "as trained"), (after, "calibrated")):
            there = reliability.count > 0
            axis.plot(reliability.stated[there], reliability.observed[there], marker="o", markersize=4, label=label)
        gap = f"{100 * calibrated.before[name].error:.1f} → {100 * after.error:.1f} %"
        axis.set(title=f"{name}: ECE {gap}", xlabel="stated probability", xlim=(0, 1), ylim=(0, 1))
    axes[0].set_ylabel("share that was so")
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=150)


def _gather(
    modules: Modules, examination: Examination, half: int, alignment: Alignment, order: Order, seed: int
) -> dict[str, tuple[Floats, NDArray[np.int64]]]:
    """(logits, truth) of every module on every second question; truth is 0 or 1, or which word was right."""
    rng = np.random.default_rng([seed, half])
    sampler = Sampler(Sentinels(START, END, MASK))
    found: dict[str, list[tuple[Floats, NDArray[np.int64]]]] = {}
    questions = examination.questions[half::2]
    for start in range(0, len(questions), BATCH):
        part = questions[start : start + BATCH]
        seen = examination.see(modules, [question.image for question in part])
        rows = [_samples(question, modules, sampler, alignment, order, rng) for question in part]
        both = seen.rows(np.repeat(np.arange(len(part)), 2))
        deletions = [sample for row in rows for sample in row[:2]]
        logits, match = modules.delete(_text(deletions), both)
        found.setdefault("delete", []).append(_at_labels(logits, deletions))
        if match is not None:
            found.setdefault("match", []).append((match.astype(np.float64), np.tile([0, 1], len(part))))
        additions = [row[2] for row in rows]
        found.setdefault("add", []).append(_at_labels(modules.add(_text(additions), seen), additions))
        found.setdefault("insert", []).append(_words(modules, seen, [row[3] for row in rows]))
    return {
        name: (np.concatenate([one for one, _ in parts]), np.concatenate([two for _, two in parts]))
        for name, parts in found.items()
    }


def _samples(
    question: Question,
    modules: Modules,
    sampler: Sampler,
    alignment: Alignment,
    order: Order,
    rng: np.random.Generator,
) -> tuple[Sample, Sample, Sample, Sample]:
    """The wrong caption and the right one for Tagger_del, and a state for each of the other two."""
    source, target = (modules.vocabulary.encode(caption) for caption in (question.reference, question.target))
    path = find_path(source, target, alignment, order)
    addition = sampler.addition(path, int(rng.integers(path.rounds + 1)))
    insertion = sampler.insertion(path, int(rng.integers(max(path.rounds, 1))) + 1)
    return sampler.deletion(path), sampler.deletion(find_path(target, target, alignment, order)), addition, insertion


def _text(samples: Sequence[Sample]) -> Text:
    return pad_rows([sample.tokens for sample in samples])


def _at_labels(logits: NDArray[np.float32], samples: Sequence[Sample]) -> tuple[Floats, NDArray[np.int64]]:
    values, truth = [], []
    for row, sample in zip(logits, samples, strict=True):
        for logit, label in zip(row, sample.labels, strict=False):  # rows are padded
            if label != IGNORE:
                values.append(float(logit))
                truth.append(int(label == CHANGE))
    return np.array(values), np.array(truth, np.int64)


def _words(modules: Modules, seen: Seen, samples: Sequence[Sample]) -> tuple[Floats, NDArray[np.int64]]:
    places = [
        (row, at) for row, sample in enumerate(samples) for at, label in enumerate(sample.labels) if label != IGNORE
    ]
    rows, columns = np.array(places, np.int64).reshape(-1, 2).T
    logits = modules.insert(_text(samples), seen, rows, columns)
    return logits.astype(np.float64), np.array([samples[row].labels[at] for row, at in places], np.int64)


def _loss(logits: Floats, truth: NDArray[np.int64], temperature: float) -> float:
    stated = np.clip(_of_likeliest(logits / temperature), TINY, 1 - TINY)
    return float(-np.mean(np.log(np.where(logits.argmax(1) == truth, stated, 1 - stated))))


def _reliability(logits: Floats, truth: NDArray[np.int64], scale: Scale) -> Reliability:
    """Of a yes, or of the likeliest word."""
    scaled = logits / scale.temperature + scale.shift
    if scaled.ndim == 1:
        return Reliability.of(sigmoid(scaled.astype(np.float32)).astype(np.float64), truth == 1)
    return Reliability.of(_of_likeliest(scaled), scaled.argmax(1) == truth)


def _of_likeliest(logits: Floats) -> Floats:
    """The probability of the likeliest of some words (N, V) -> (N,)."""
    likeliest: Floats = 1 / np.exp(logits - logits.max(1, keepdims=True)).sum(1)
    return likeliest
