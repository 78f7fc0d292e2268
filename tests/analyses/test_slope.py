"""Calibration slope and intercept: against statsmodels, scikit-learn and the score equations."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.special import expit, logit, stdtrit
from sklearn.linear_model import LogisticRegression

import verax as vx
from cases import forecasts
from realdata import load
from verax.common.strictjson import plain


def errors(line, freedom, confidence=0.95):
    """The standard errors of intercept and slope that the intervals came from."""
    t = -stdtrit(freedom, (1 - confidence) / 2)
    intervals = (line.intercept_interval, line.slope_interval, line.in_the_large_interval)
    return [(interval.high - interval.low) / 2 / t for interval in intervals]


def test_statsmodels():
    y, p = forecasts(200, 2, 5, ties=False)
    w = np.random.default_rng(0).exponential(size=200)
    # Logit and GLM (Binomial) of statsmodels 0.15.0, tol=1e-14; standard errors HC0, and by cluster without
    # a correction. verax divides the square of each row, or group, by one minus its share of the weight.
    line = vx.calibration_slope(y, p)["1"]
    assert [line.intercept, line.slope] == pytest.approx([-0.05160397, -0.09605647], abs=1e-7)
    assert line.in_the_large == pytest.approx(-0.23708813, abs=1e-7)
    scale = math.sqrt(200 / 199)
    wanted = [0.14217092 * scale, 0.07396095 * scale, 0.26282535 * scale]
    # A rare event has the degrees of freedom of its occurrences.
    freedom = min(y.sum(), 200 - y.sum()) - 1
    assert errors(line, freedom) == pytest.approx(wanted, rel=1e-6)
    weighted = vx.calibration_slope(y, p, weights=w)["1"]
    assert [weighted.intercept, weighted.slope] == pytest.approx([-0.16151476, -0.22264775], abs=1e-7)
    grouped = vx.calibration_slope(y, p, groups=np.arange(200) // 5)["1"]
    scale = math.sqrt(40 / 39)
    wanted = [0.11815614 * scale, 0.08782964 * scale]
    assert errors(grouped, 39)[:2] == pytest.approx(wanted, rel=1e-6)
    assert grouped.slope_interval.method == "t, over 40 groups"


@pytest.mark.parametrize("ordered", [False, True])
def test_scikit_learn_for_every_class_and_threshold(ordered):
    y, p = forecasts(300, 4, 2, ties=False)
    found = vx.calibration_slope(y, p, ordered=ordered)
    for i, line in enumerate(found, start=int(ordered)):
        given, happened = (p[:, i:].sum(axis=1), y >= i) if ordered else (p[:, i], y == i)
        fit = LogisticRegression(C=math.inf, tol=1e-12, max_iter=10_000).fit(logit(given)[:, None], happened)
        assert line.slope == pytest.approx(fit.coef_[0, 0], abs=1e-4)
        assert line.intercept == pytest.approx(fit.intercept_[0], abs=1e-4)
        # With slope 1 the mean forecast is the frequency.
        assert expit(line.in_the_large + logit(given)).mean() == pytest.approx(happened.mean(), abs=1e-10)
    assert len(found) == (3 if ordered else 4)


def test_slopes_of_rare_events_are_not_called_different_from_1_by_chance():
    """Three events among 200 calibrated forecasts."""
    rng, found = np.random.default_rng(0), []
    for _ in range(200):
        z = -4.6 + 1.2 * rng.normal(size=200)
        line = vx.calibration_slope((rng.random(200) < expit(z)).astype(int), expit(z))["1"]
        found.append(line.slope_p <= 0.05)
        assert found[-1] == (
            line.slope_interval.defined and not line.slope_interval.low <= 1 <= line.slope_interval.high
        )
    # 20 % with the degrees of freedom of 200 rows; three Monte Carlo errors are 4.5 %.
    assert np.mean(found) < 0.1


def test_slopes_of_forecasts_near_0_and_1_are_not_called_different_from_1_by_chance():
    """Half of the events hardly ever happen, half nearly always: 1.5 of 300 calibrated rows surprise."""
    rng, found = np.random.default_rng(0), []
    for _ in range(100):
        p = np.where(rng.random(300) < 0.5, rng.beta(1, 200, 300), rng.beta(200, 1, 300))
        found.append(vx.calibration_slope((rng.random(300) < p).astype(int), p)["1"].slope_p <= 0.05)
    # 23 % with the degrees of freedom of the rarer outcome; three Monte Carlo errors are 6.5 %.
    assert np.mean(found) < 0.1


def test_what_was_done_to_the_odds_is_found():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200_000)
    y = (rng.random(200_000) < expit(0.4 + 0.7 * x)).astype(int)
    line = vx.calibration_slope(y, expit(x))["1"]
    assert line.intercept_interval.low < 0.4 < line.intercept_interval.high
    assert line.slope_interval.low < 0.7 < line.slope_interval.high
    assert line.p_value < 1e-6
    # Any other scale of the odds gives the same line.
    turned = vx.calibration_slope(y, expit(5 * x - 2))["1"]
    assert turned.slope == pytest.approx(line.slope / 5, rel=1e-6)
    assert turned.intercept == pytest.approx(line.intercept + 2 * line.slope / 5, rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("groups", [None, 40])
def test_intervals_and_the_test_hold_for_calibrated_forecasts(groups):
    rng = np.random.default_rng(1)
    covered = rejected = 0
    # `studies/covering.py` has more of them.
    for _ in range(80):
        codes = None if groups is None else rng.integers(0, groups, 400)
        p = rng.beta(1, 2, 400)
        y = (rng.random(400) < p).astype(int)
        line = vx.calibration_slope(y, p, groups=codes)["1"]
        covered += line.slope_interval.low <= 1 <= line.slope_interval.high
        rejected += line.p_value < 0.05
    assert 70 <= covered < 80
    assert rejected <= 9


def test_tiny_probabilities_keep_their_odds():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000) * 15
    y = (rng.random(2000) < expit(x)).astype(int)
    p = np.stack([expit(-x), expit(x)], axis=1)
    for ordered in (False, True):
        (line,) = vx.calibration_slope(y, p, ordered=ordered)
        assert line.certain == 0
        assert 0.8 < line.slope < 1.25


WRONG = "an event with a forecast of 0 happened, or one with a forecast of 1 did not"


@pytest.mark.parametrize(
    ("y", "p", "caution", "level"),
    [
        ([0, 0, 0], [0.2, 0.3, 0.4], "the event always or never happened", False),
        ([0, 1, 1], [0.2, 0.0, 0.4], WRONG, False),
        ([0, 1, 1], [0.0, 0.3, 0.4], "apart from forecasts of 0 and 1, the event always or never", False),
        ([0, 1, 1, 0], [0.3] * 4, "all forecasts are the same, so there is no slope", True),
        ([0, 1, 1, 0], [0.3, 0.4, 0.6, 0.3], "the forecasts separate the outcomes", True),
    ],
)
def test_where_there_is_no_slope(y, p, caution, level):
    found = vx.calibration_slope(y, p)
    (line,) = found
    assert math.isnan(line.slope)
    assert math.isnan(line.p_value)
    assert caution in line.slope_interval.caution
    assert caution in repr(found)
    # The level alone is known where forecasts other than 0 and 1 saw both outcomes.
    assert math.isfinite(line.in_the_large) == level


def test_certain_and_right_rows_change_nothing():
    y, p = forecasts(100, 2, 3, ties=False)
    sure = np.concatenate([p[:, 1], [0.0, 1.0, 1.0]])
    found = vx.calibration_slope(np.concatenate([y, [0, 1, 1]]), sure)
    plainly = vx.calibration_slope(y, p)["1"]
    assert found["1"].certain == 3
    assert found["1"].slope == pytest.approx(plainly.slope, abs=1e-8)
    assert found["1"].in_the_large == pytest.approx(plainly.in_the_large, abs=1e-8)
    assert "left out: up to 3 rows" in repr(found)


def test_weights_are_relative_and_rows_without_weight_are_no_rows():
    y, p = forecasts(120, 3, ties=False)
    w = np.random.default_rng(0).integers(0, 3, 120).astype(float)
    a = vx.calibration_slope(y, p, weights=1e100 * w)
    b = vx.calibration_slope(y[w > 0], p[w > 0], weights=w[w > 0])
    for first, second in zip(a, b, strict=True):
        assert first.slope == pytest.approx(second.slope, rel=1e-7)
        assert list(first.slope_interval) == pytest.approx(list(second.slope_interval), rel=1e-6)


def test_results_as_data():
    y, p = forecasts(100, 3, ties=False)
    found = vx.calibration_slope(y, p, classes=["a", "b", "c"])
    json.dumps(plain(found.to_dict()))
    assert found.to_frame().shape == (3, 12)
    assert "class a" in repr(found)
    assert "class a" in found._repr_html_()
    with pytest.raises(KeyError, match="there are a, b, c"):
        found["d"]
    with pytest.raises(vx.InputError):
        vx.calibration_slope(y, p, confidence=95)


def test_retinopathy_grades_are_too_timid():
    data = load("dr-aptos", "dr_aptos5.npz")
    found = vx.calibration_slope(data["labels"], data["probs"], ordered=True)
    assert [line.slope_interval.low > 1 for line in found] == [True] * 4


def test_slopes_are_corrected_for_having_looked_at_all_events():
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(4), 300)
    y = (rng.random((300, 1)) > np.cumsum(p, axis=1)).sum(axis=1).clip(0, 3)
    slopes = vx.calibration_slope(y, p)
    raw = np.sort([line.p_value for line in slopes])
    holm = np.minimum(np.maximum.accumulate(raw * [4, 3, 2, 1]), 1)
    assert np.sort(slopes.adjusted) == pytest.approx(holm)
    assert [line["p_adjusted"] for line in slopes.to_dict()["lines"]] == slopes.adjusted
    line, p_value = slopes.farthest
    assert (line.p_value, p_value) == (raw[0], pytest.approx(holm[0]))
    assert "corrected for having looked at all 4 events" in repr(slopes)


def test_slopes_of_very_unequal_weights_are_not_tested():
    """Of calibrated forecasts with weights exp(1.5 z), 24 % of the intervals at 60 rows exclude 1."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=300)
    p = 1 / (1 + np.exp(-z))
    y = (rng.random(300) < p).astype(int)
    uneven, even = (vx.calibration_slope(y, p, weights=np.exp(c * z)).lines[0] for c in (1.5, 0.3))
    assert np.isnan(uneven.slope_p)
    assert "the weights are very unequal" in uneven.slope_interval.caution
    assert 0 <= even.slope_p <= 1
    assert even.slope_interval.caution == ""
    sharp = 1 / (1 + np.exp(-4 * z))
    claims = vx.evaluate(y, sharp, weights=np.exp(1.5 * z)).verdict.claims
    assert not {"too_extreme", "too_timid"} & set(claims)
