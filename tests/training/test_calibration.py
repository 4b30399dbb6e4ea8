import numpy as np
import pytest

from capedit.models.decoding import Scale
from capedit.training.calibration import Reliability, fit_scale


def test_a_yes_that_is_too_sure_and_too_frequent_is_set_right() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, 20_000)
    truth = (rng.random(20_000) < 1 / (1 + np.exp(-(logits / 2 - 0.7)))).astype(np.int64)
    found = fit_scale(logits, truth)
    assert found.temperature == pytest.approx(2, rel=0.1)
    assert found.shift == pytest.approx(-0.7, abs=0.07)


def test_logits_that_are_far_too_sure_are_cooled() -> None:
    rng = np.random.default_rng(2)
    logits = np.concatenate([rng.normal(-30, 20, 5000), rng.normal(-10, 20, 5000)])
    truth = np.repeat([0, 1], 5000)
    found = fit_scale(logits, truth)
    assert found.temperature == pytest.approx(5.0)  # no hotter than it may be
    assert abs(found.shift) < 2


def test_words_that_are_too_sure_get_a_temperature() -> None:
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 2, (4000, 30))
    weights = np.exp(logits / 1.5)
    weights /= weights.sum(1, keepdims=True)
    truth = np.array([rng.choice(30, p=row) for row in weights])
    found = fit_scale(logits, truth)
    assert found.temperature == pytest.approx(1.5, rel=0.1)
    assert found.shift == 0


def test_the_likeliest_word_is_right_as_often_as_it_says_whatever_the_others_do() -> None:
    rng = np.random.default_rng(3)
    logits = np.concatenate([rng.normal(0, 3, (4000, 30)), np.full((4000, 300), -12.0)], 1)
    weights = np.exp(logits - logits.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    drawn = np.array([rng.choice(330, p=row) for row in weights])
    truth = np.where(rng.random(4000) < 0.2, rng.integers(30, 330, 4000), drawn)  # words that it never thinks of
    scaled = logits / fit_scale(logits, truth).temperature
    stated = np.exp(scaled.max(1)) / np.exp(scaled).sum(1)
    assert stated.mean() == pytest.approx((logits.argmax(1) == truth).mean(), abs=0.02)


def test_a_model_that_knows_nothing_is_no_cause_for_alarm() -> None:
    found = fit_scale(np.array([3.0, -3.0, 3.0, -3.0]), np.array([0, 1, 0, 1]))
    assert np.isfinite(found.shift)
    assert found.temperature > 0


def test_calibration_error_is_the_mean_gap() -> None:
    stated, truth = np.array([0.95, 0.95, 0.15, 0.15]), np.array([True, False, False, False])
    assert Reliability.of(stated, truth).error == pytest.approx((0.45 + 0.15) / 2)


def test_a_scale_is_applied_to_logits() -> None:
    assert Scale(2.0, 1.0)(np.array([4.0], np.float32)) == pytest.approx([3.0])
