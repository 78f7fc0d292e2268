"""Risk and coverage: against torch-uncertainty, all orders of ties, and the selective curve."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

import verax as vx
from cases import forecasts
from realdata import load
from verax.common.strictjson import plain


def test_the_numbers_of_torch_uncertainty():
    # AURC, AUGRC, CovAtxRisk(0.6), CovAtxRisk(0.3), RiskAtxCov(0.8) and RiskAtxCov(0.333) of
    # torch-uncertainty 0.13.0, whose coverages are in single precision.
    y, p = forecasts(150, 3, 7, ties=False)
    curve = vx.risk_coverage(y, p)
    assert curve.aurc == pytest.approx(0.6487256644946109, rel=1e-7)
    assert curve.augrc == pytest.approx(0.33621923977852414, rel=1e-7)
    assert curve.coverage_at(0.6) == pytest.approx(1 / 3, rel=1e-12)
    assert math.isnan(curve.coverage_at(0.3))
    assert curve.risk_at(0.8) == pytest.approx(0.7, rel=1e-12)
    assert curve.risk_at(0.333) == pytest.approx(0.6, rel=1e-12)


def areas(losses):
    """AURC and AUGRC of losses in order, as their definitions read."""
    n = len(losses)
    coverage = np.arange(1, n + 1) / n
    risk = np.cumsum(losses) / np.arange(1, n + 1)
    width = 1 - 1 / n
    return np.trapezoid(risk, coverage) / width, np.trapezoid(risk * coverage, coverage) / width


def test_ties_count_as_the_mean_over_all_their_orders():
    top = np.array([0.9, 0.7, 0.7, 0.7, 0.7, 0.6, 0.6, 0.5])
    p = np.stack([top, 1 - top], axis=1)
    y = np.array([0, 1, 0, 0, 1, 1, 0, 1])
    orders = itertools.product(itertools.permutations([1, 2, 3, 4]), itertools.permutations([5, 6]))
    every = [areas(y[[0, *four, *two, 7]]) for four, two in orders]
    curve = vx.risk_coverage(y, p)
    assert [curve.aurc, curve.augrc] == pytest.approx(np.mean(every, axis=0).tolist(), rel=1e-12)
    shuffled = np.array([4, 7, 1, 0, 6, 3, 2, 5])
    again = vx.risk_coverage(y[shuffled], p[shuffled])
    assert again.aurc == pytest.approx(curve.aurc, rel=1e-14)


def test_the_risk_is_what_the_selective_curve_shows():
    y, p = forecasts(200, 3, ties=False)
    curve = vx.risk_coverage(y, p)
    removed = [0, 0.1, 0.25, 0.5]
    accuracy = vx.selective(y, p, removed=removed).values
    assert [curve.risk_at(1 - r) for r in removed] == pytest.approx((1 - accuracy).tolist(), rel=1e-12)
    by_rps = vx.risk_coverage(y, p, by="rps", rule="rps")
    shown = vx.selective(y, p, by="rps", metric=vx.rps, removed=removed).values
    assert [by_rps.risk_at(1 - r) for r in removed] == pytest.approx(shown.tolist(), rel=1e-12)


def test_costs_are_those_of_the_cheapest_decisions():
    y, p = forecasts(100, 4)
    curve = vx.risk_coverage(y, p, costs="quadratic")
    assert curve.risk_at(1) == pytest.approx(
        vx.expected_cost(y, vx.decide(p, costs="quadratic"), n_classes=4), rel=1e-12
    )
    assert curve.loss == "mean cost"


def test_weights_are_relative_and_rows_without_weight_are_no_rows():
    y, p = forecasts(80, 3)
    w = np.random.default_rng(0).integers(0, 3, 80).astype(float)
    a = vx.risk_coverage(y, p, weights=1e300 * w)
    b = vx.risk_coverage(y[w > 0], p[w > 0], weights=w[w > 0])
    assert (a.aurc, a.augrc) == pytest.approx((b.aurc, b.augrc), rel=1e-12)
    assert a.coverage[-1] == 1.0


def test_intervals_come_from_resampled_rows_or_groups():
    y, p = forecasts(300, 3, ties=False)
    curve = vx.risk_coverage(y, p, bootstrap=200)
    rng = np.random.default_rng(5)
    drawn = []
    for _ in range(200):
        rows = rng.integers(0, 300, 300)
        drawn.append(vx.risk_coverage(y[rows], p[rows]).aurc)
    width = curve.aurc_interval.high - curve.aurc_interval.low
    slow = np.subtract(*np.percentile(drawn, [97.5, 2.5]))
    assert width == pytest.approx(slow, rel=0.25)
    assert curve.aurc_interval.low < curve.aurc < curve.aurc_interval.high
    assert curve.augrc_interval.low < curve.augrc < curve.augrc_interval.high
    low, high = curve.risk_interval(0.8)
    assert low < curve.risk_at(0.8) < high
    assert curve.coverage_interval(0.7).low <= curve.coverage_at(0.7) <= curve.coverage_interval(0.7).high
    # Rows that are copies of each other, as groups: wider than independent rows.
    twice = np.repeat(np.arange(300), 2)
    alone = vx.risk_coverage(y[twice], p[twice], bootstrap=200).aurc_interval
    grouped = vx.risk_coverage(y[twice], p[twice], bootstrap=200, groups=twice).aurc_interval
    assert grouped.high - grouped.low > 1.2 * (alone.high - alone.low)
    assert not vx.risk_coverage(y, p).aurc_interval.defined


def test_results_as_data_and_as_figures():
    import matplotlib.pyplot as plt

    y, p = forecasts(60, 3)
    curve = vx.risk_coverage(y, p, bootstrap=10, rule="log_score")
    json.dumps(plain(curve.to_dict()))
    assert curve.to_frame().shape == (60, 2)
    assert "AURC" in repr(curve)
    for drawn in (curve, vx.risk_coverage(y, p, rule="brier"), vx.risk_coverage([0, 1], [[1, 0], [0, 1.0]])):
        (ax,) = drawn.plot().axes
        assert "coverage" in ax.get_xlabel()
        plt.close(ax.figure)


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("costs", lambda y, p: vx.risk_coverage(y, p, rule="brier", costs="linear")),
        ("costs", lambda y, p: vx.risk_coverage(y, p, costs=[[0, 1], [1, 0]])),
        ("bootstrap", lambda y, p: vx.risk_coverage(y, p, bootstrap=1)),
        ("coverage", lambda y, p: vx.risk_coverage(y, p).risk_at(0)),
        ("coverage", lambda y, p: vx.risk_coverage(y, p).risk_at(80)),
        ("risk", lambda y, p: vx.risk_coverage(y, p).coverage_at("low")),
    ],
)
def test_refusals(argument, call):
    with pytest.raises(vx.InputError) as refused:
        call(*forecasts(30, 3))
    assert refused.value.argument == argument


def test_one_row_has_a_risk_and_no_area():
    curve = vx.risk_coverage([0], [[0.3, 0.7]])
    assert curve.risk_at(1) == 1.0
    assert math.isnan(curve.aurc)


def test_retinopathy():
    data = load("dr-aptos", "dr_aptos5.npz")
    curve = vx.risk_coverage(data["labels"], data["probs"])
    # One minus the accuracy of 0.8373 that the data came with.
    assert curve.risk_at(1) == pytest.approx(1 - 0.8373, abs=5e-5)
    assert curve.risk_at(0.5) < 0.05
