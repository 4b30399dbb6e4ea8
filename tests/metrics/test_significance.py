import numpy as np
import pytest

from capedit.metrics import Statistic, approximate_randomisation, bootstrap, paired_bootstrap
from capedit.metrics.significance import ratio_statistic


def sample(mean: float, size: int = 400, seed: int = 1) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.random.default_rng(seed).normal(mean, 1.0, size)


def test_the_interval_of_a_mean_is_that_of_statistics_books() -> None:
    values = sample(5.0)
    interval = bootstrap(ratio_statistic(values), resamples=4000)
    half_width = 1.96 * values.std() / np.sqrt(len(values))
    assert interval.value == pytest.approx(values.mean())
    assert interval.low == pytest.approx(values.mean() - half_width, abs=0.02)
    assert interval.high == pytest.approx(values.mean() + half_width, abs=0.02)


def test_a_wider_level_gives_a_wider_interval() -> None:
    statistic = ratio_statistic(sample(0.0))
    narrow, wide = bootstrap(statistic, level=0.5), bootstrap(statistic, level=0.99)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_the_same_seed_gives_the_same_interval() -> None:
    statistic = ratio_statistic(sample(0.0))
    assert bootstrap(statistic, seed=3) == bootstrap(statistic, seed=3) != bootstrap(statistic, seed=4)


def test_a_ratio_is_resampled_as_a_ratio() -> None:
    gain, steps = sample(10.0), sample(20.0, seed=2)
    interval = bootstrap(ratio_statistic(gain, steps, scale=100.0))
    assert interval.value == pytest.approx(100 * gain.sum() / steps.sum())
    assert interval.low < interval.value < interval.high


def test_a_ratio_over_nothing_is_zero() -> None:
    assert ratio_statistic(np.ones(3), np.zeros(3)).value == 0.0


def test_a_real_difference_is_found_by_both_tests() -> None:
    noise = sample(0.0)
    one, other = ratio_statistic(noise + 0.2 + 0.1 * sample(0.0, seed=5)), ratio_statistic(noise)
    comparison = paired_bootstrap(one, other)
    assert comparison.difference == pytest.approx(0.2, abs=0.02)
    assert 0 < comparison.low < comparison.difference < comparison.high
    assert comparison.p_value < 0.01
    assert approximate_randomisation(one, other) < 0.01


def test_chance_is_not_taken_for_a_difference() -> None:
    """Over many pairs of equal systems both tests must reject about as rarely as they promise."""
    rejected = {"bootstrap": 0, "randomisation": 0}
    for seed in range(60):
        one, other = (ratio_statistic(sample(0.0, size=80, seed=2 * seed + each)) for each in (1000, 1001))
        rejected["bootstrap"] += paired_bootstrap(one, other, resamples=200).p_value < 0.05
        rejected["randomisation"] += approximate_randomisation(one, other, trials=200) < 0.05
    assert max(rejected.values()) <= 9  # 3 expected; 10 or more has a chance of 1 in 1000


def test_a_system_does_not_differ_from_itself() -> None:
    one = ratio_statistic(sample(0.0))
    assert paired_bootstrap(one, one) == (0.0, 0.0, 0.0, 1.0)
    assert approximate_randomisation(one, one) == 1.0


def test_different_instances_cannot_be_compared() -> None:
    one, other = ratio_statistic(np.ones(3)), ratio_statistic(np.ones(4))
    with pytest.raises(ValueError, match="3 and 4"):
        paired_bootstrap(one, other)
    with pytest.raises(ValueError, match="3 and 4"):
        approximate_randomisation(one, other)


@pytest.mark.parametrize("values", [[], [0.5]], ids=["none", "one"])
def test_few_instances_give_a_point(values: list[float]) -> None:
    one = ratio_statistic(np.array(values))
    expected = sum(values)
    assert bootstrap(one, resamples=10) == (expected, expected, expected)
    assert paired_bootstrap(one, one, resamples=10).p_value == 1.0


def test_a_score_need_not_be_a_mean() -> None:
    rows = np.abs(sample(3.0, 300)).reshape(100, 3)
    statistic = Statistic(rows, lambda sums: np.sqrt(sums[..., 0] * sums[..., 1]) / sums[..., 2])
    interval = bootstrap(statistic, resamples=50)
    assert interval.low < interval.value < interval.high
