"""How sure a score is: bootstrap confidence intervals, and tests whether two systems really differ.

A corpus score is a function of sums over instances (BLEU: of its n-gram counts; the others: of per-instance scores),
so a resample costs one weighted sum, not a new evaluation. CIDEr-D keeps its document frequencies in every resample.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from capedit.metrics.ngrams import FloatArray

_BLOCK = 1 << 22  # numbers drawn at a time, 32 MB


@dataclass(frozen=True, slots=True)
class Statistic:
    """A corpus score as a function of sums over instances."""

    rows: FloatArray  # (instances, columns)
    score: Callable[[FloatArray], FloatArray]  # sums (..., columns) -> scores (...)

    @property
    def value(self) -> float:
        """The score of the corpus itself."""
        return float(self.score(self.rows.sum(axis=0)))


def ratio_statistic(numerators: FloatArray, denominators: FloatArray | None = None, scale: float = 1.0) -> Statistic:
    """Sum over sum, times `scale`: the mean where no denominators are given. 0 where the denominators sum to 0."""
    below = np.ones(len(numerators)) if denominators is None else denominators
    return Statistic(np.stack([numerators, below], axis=1).astype(np.float64), lambda sums: _ratio(sums, scale))


def _ratio(sums: FloatArray, scale: float) -> FloatArray:
    above, below = sums[..., 0], sums[..., 1]
    return scale * np.divide(above, below, out=np.zeros_like(above), where=below != 0)


class Interval(NamedTuple):
    """A score and the interval in which it lies with the asked confidence."""

    value: float
    low: float
    high: float


class Comparison(NamedTuple):
    """Two systems on the same instances: the difference of their scores and how likely chance alone makes it."""

    difference: float
    low: float
    high: float
    p_value: float


def bootstrap(statistic: Statistic, *, resamples: int = 1000, level: float = 0.95, seed: int = 0) -> Interval:
    """The percentile interval over resamples of the instances; of one instance, or none, it is a point."""
    return bootstrap_all({"": statistic}, resamples=resamples, level=level, seed=seed)[""]


def bootstrap_all(
    statistics: Mapping[str, Statistic], *, resamples: int = 1000, level: float = 0.95, seed: int = 0
) -> dict[str, Interval]:
    """Intervals of several scores of one system, over the same resamples, which are drawn once."""
    sums = _resampled_sums([each.rows for each in statistics.values()], resamples, seed)
    return {
        name: Interval(each.value, *_percentiles(each.score(sums[id(each.rows)]), level))
        for name, each in statistics.items()
    }


def paired_bootstrap(
    one: Statistic, other: Statistic, *, resamples: int = 1000, level: float = 0.95, seed: int = 0
) -> Comparison:
    """`one` minus `other` over resamples that are the same for both.

    The interval is the percentile interval of the difference. The p-value is two-sided: how often the difference, its
    mean moved to 0, is at least as large as the observed one.
    """
    return paired_bootstrap_all({"": one}, {"": other}, resamples=resamples, level=level, seed=seed)[""]


def paired_bootstrap_all(
    ones: Mapping[str, Statistic],
    others: Mapping[str, Statistic],
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, Comparison]:
    """Two systems compared in every score that both have, over the same resamples, which are drawn once."""
    shared = {name: (one, others[name]) for name, one in ones.items() if name in others}
    for pair in shared.values():
        _check_paired(*pair)
    sums = _resampled_sums([each.rows for pair in shared.values() for each in pair], resamples, seed)
    comparisons = {}
    for name, (one, other) in shared.items():
        difference = one.value - other.value
        differences = one.score(sums[id(one.rows)]) - other.score(sums[id(other.rows)])
        p_value = _p_value(differences - differences.mean(), difference)
        comparisons[name] = Comparison(difference, *_percentiles(differences, level), p_value)
    return comparisons


def approximate_randomisation(one: Statistic, other: Statistic, *, trials: int = 1000, seed: int = 0) -> float:
    """The two-sided p-value of the difference if, on every instance, a coin may swap the two systems."""
    _check_paired(one, other)
    total_one, total_other = one.rows.sum(axis=0), other.rows.sum(axis=0)
    exchange = other.rows - one.rows
    generator = np.random.default_rng(seed)
    differences = [
        one.score(total_one + moved) - other.score(total_other - moved)
        for size in _block_sizes(trials, len(exchange))
        for moved in [generator.integers(0, 2, (size, len(exchange))).astype(np.float64) @ exchange]
    ]
    return _p_value(np.concatenate(differences), one.value - other.value)


def _check_paired(one: Statistic, other: Statistic) -> None:
    if one.rows.shape != other.rows.shape:
        raise ValueError(f"the systems were not scored on the same instances: {len(one.rows)} and {len(other.rows)}")


def _resampled_sums(tables: Sequence[FloatArray], resamples: int, seed: int) -> dict[int, FloatArray]:
    """For each table of rows, by its identity, the sums of its columns in every resample, (resamples, columns)."""
    different = {id(rows): rows for rows in tables}  # the four BLEUs share one
    instances = len(tables[0]) if tables else 0
    if not instances:
        return {key: np.zeros((resamples, rows.shape[1])) for key, rows in different.items()}
    generator = np.random.default_rng(seed)
    parts: dict[int, list[FloatArray]] = {key: [] for key in different}
    for size in _block_sizes(resamples, instances):
        # How often each instance is drawn, (size, instances), then all sums by one matrix product.
        drawn = generator.integers(0, instances, (size, instances)) + instances * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * instances).reshape(size, instances).astype(np.float64)
        for key, rows in different.items():
            parts[key].append(times @ rows)
    return {key: np.concatenate(several) for key, several in parts.items()}


def _block_sizes(total: int, instances: int) -> Iterator[int]:
    step = max(1, _BLOCK // max(instances, 1))
    for start in range(0, total, step):
        yield min(step, total - start)


def _percentiles(scores: FloatArray, level: float) -> tuple[float, float]:
    low, high = np.quantile(scores, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _p_value(under_chance: FloatArray, observed: float) -> float:
    """Counting the observed difference itself, so that no p-value is 0; a hair of slack for rounding."""
    reached = np.count_nonzero(np.abs(under_chance) >= abs(observed) - 1e-12)
    return float(reached + 1) / (len(under_chance) + 1)
