"""Decisions by thresholds of ordered classes and decisions that are deferred: against brute force."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verax as vx
from cases import NAMESPACES, forecasts
from verax.inputs.arrays import to_host
from verax.scores.metrics import cost_matrix

MATRIX = [[0, 1, 9], [2, 0, 1], [5, 3, 0]]


# ---- thresholds --------------------------------------------------------------------------------


def by_hand(row, thresholds):
    """The highest class whose probability from there on reaches its threshold, in exact arithmetic."""
    tail = [sum(row[k:]) for k in range(len(row))]
    reached = [k for k in range(1, len(row)) if tail[k] >= thresholds[k - 1]]
    return max(reached, default=0)


@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_thresholds_are_reached_exactly(seed, k):
    """Probabilities and thresholds in tenths: sums reach thresholds exactly, whatever floats make of them."""
    rng = np.random.default_rng(seed)
    tenths = rng.multinomial(10, np.ones(k) / k, size=20)
    limits = rng.integers(0, 11, k - 1)
    exact = [
        by_hand([Fraction(int(x), 10) for x in row], [Fraction(int(t), 10) for t in limits]) for row in tenths
    ]
    for dtype in (np.float64, np.float32):
        p = (tenths / 10).astype(dtype)
        assert vx.decide(p, thresholds=limits / 10).tolist() == exact


def test_one_threshold_for_all_and_the_median():
    _, p = forecasts(200, 5)
    median = (np.cumsum(p, axis=1) < 0.5 - 1e-12).sum(axis=1)
    assert vx.decide(p, thresholds=0.5 + 1e-9).tolist() == [min(m, 4) for m in median.tolist()]
    assert vx.decide(p, thresholds=[0.3] * 4).tolist() == vx.decide(p, thresholds=0.3).tolist()
    assert set(vx.decide(p, thresholds=0.0).tolist()) == {4}
    assert vx.decide([0.2, 0.7, 0.31], thresholds=0.3).tolist() == [0, 1, 1]


@pytest.mark.long
@pytest.mark.parametrize("library", NAMESPACES)
def test_every_namespace(library):
    _, p = forecasts(40, 4)
    wanted = vx.decide(p, thresholds=[0.6, 0.4, 0.2])
    found = vx.decide(library(p), thresholds=[0.6, 0.4, 0.2])
    assert np.asarray(to_host(found)).tolist() == wanted.tolist()
    deferred = vx.decide(p, costs="linear", defer=0.7)
    found = vx.decide(library(p), costs="linear", defer=0.7)
    assert np.asarray(to_host(found)).tolist() == deferred.tolist()


# ---- deferral ----------------------------------------------------------------------------------


@pytest.mark.parametrize("costs", ["quadratic", "linear", "zero_one", MATRIX])
@pytest.mark.parametrize("defer", [0, 0.3, 0.8, 100])
def test_rows_are_deferred_where_even_the_cheapest_decision_costs_more(costs, defer):
    _, p = forecasts(300, 3)
    expected = p @ cost_matrix(costs, 3)
    least = expected.min(axis=1)
    found = vx.decide(p, costs=costs, defer=defer)
    decided = vx.decide(p, costs=costs)
    assert found.tolist() == [
        -1 if a > defer + 1e-9 else d for a, d in zip(least, decided.tolist(), strict=True)
    ]


def test_chows_rule():
    _, p = forecasts(300, 4)
    decisions = vx.decide(p, defer=0.4)
    assert ((decisions == -1) == (p.max(axis=1) < 0.6 - 1e-12)).all()
    # No other choice of rows to defer, by the same order, is expected to cost less.
    least = 1 - p.max(axis=1)
    totals = [np.where(least > limit, 0.4, least).sum() for limit in np.linspace(0, 1, 101)]
    assert np.where(decisions == -1, 0.4, least).sum() <= min(totals) + 1e-9


def test_at_the_cost_of_deferring_a_row_is_decided():
    assert vx.decide([0.3, 0.7], defer=0.3).tolist() == [0, 1]
    assert vx.decide([[0.1, 0.7, 0.2]], defer=1 - 0.7).tolist() == [1]


def test_expected_cost_with_deferral():
    y = np.array([0, 0, 1, 2, 2, 1])
    d = np.array([0, -1, 2, -1, 0, 1])
    w = np.array([1.0, 2, 3, 4, 5, 6])
    costs = np.array([MATRIX[a][b] if b >= 0 else 0.7 for a, b in zip(y, d, strict=True)])
    options = {"n_classes": 3, "costs": MATRIX, "defer": 0.7}
    assert vx.expected_cost(y, d, **options) == pytest.approx(costs.mean())
    assert vx.expected_cost(y, d, weights=w, **options) == pytest.approx(np.average(costs, weights=w))
    priors = [0.2, 0.3, 0.5]
    by_class = [costs[y == k].mean() for k in range(3)]
    assert vx.expected_cost(y, d, priors=priors, **options) == pytest.approx(np.dot(priors, by_class))
    assert vx.expected_cost(y, d, normalize="max", **options) == pytest.approx(costs.mean() / 9)
    # Deferring everything is the best constant decision here.
    assert vx.expected_cost(y, d, normalize="naive", **options) == pytest.approx(costs.mean() / 0.7)
    nobody = vx.expected_cost(y, np.abs(d), **options)
    assert nobody == pytest.approx(vx.expected_cost(y, np.abs(d), n_classes=3, costs=MATRIX))


def test_deferred_labels():
    names = ["low", "mid", "high"]
    labels = np.array(["low", -1, "high"], dtype=object)
    options = {"n_classes": 3, "classes": names, "costs": "linear"}
    assert vx.expected_cost(["low", "mid", "mid"], labels, defer=0.5, **options) == pytest.approx(1.5 / 3)
    with pytest.raises(vx.InputError) as refused:
        vx.expected_cost(
            ["low", "mid", "mid"], np.array(["low", -1, "hi"], dtype=object), defer=0.5, **options
        )
    assert (refused.value.argument, refused.value.rows, refused.value.count) == ("decisions", (2,), 1)


@pytest.mark.parametrize(
    ("argument", "kind", "call"),
    [
        ("thresholds", "length", lambda: vx.decide([[0.2, 0.3, 0.5]], thresholds=[0.1, 0.2, 0.3])),
        ("thresholds", "length", lambda: vx.decide([[0.2, 0.3, 0.5]], thresholds=[])),
        ("thresholds", "value", lambda: vx.decide([0.5], thresholds=1.5)),
        ("thresholds", "value", lambda: vx.decide([0.5], thresholds=float("nan"))),
        ("thresholds", "type", lambda: vx.decide([0.5], thresholds="half")),
        ("thresholds", "value", lambda: vx.decide([0.5], thresholds=0.5, costs="linear")),
        ("thresholds", "value", lambda: vx.decide([0.5], thresholds=0.5, defer=0.1)),
        ("defer", "value", lambda: vx.decide([0.5], defer=-0.1)),
        ("defer", "type", lambda: vx.decide([0.5], defer="cheap")),
        ("defer", "value", lambda: vx.expected_cost([0], [0], n_classes=2, defer=float("inf"))),
        ("decisions", "label", lambda: vx.expected_cost([0], [-1], n_classes=2)),
        ("decisions", "label", lambda: vx.expected_cost([0], [-2], n_classes=2, defer=1)),
        ("y", "label", lambda: vx.expected_cost([-1], [0], n_classes=2, defer=1)),
        ("classes", "label", lambda: vx.expected_cost([-1], [0], n_classes=2, classes=[-1, 0], defer=1)),
    ],
)
def test_refusals(argument, kind, call):
    with pytest.raises(vx.InputError) as refused:
        call()
    assert (refused.value.argument, refused.value.kind) == (argument, kind)
