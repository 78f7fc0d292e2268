"""ROC AUC, average precision and c-index: against scikit-learn, DeLong's formula and all pairs of rows."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

import verax as vx
from cases import forecasts
from verax import Forecasts
from verax.analyses.discrimination import analysis
from verax.analyses.unitsums import means_of
from verax.common.strictjson import plain
from verax.inputs.handles import Part
from verax.inputs.memory import ONLY

FUNCTIONS = {"auc": vx.roc_auc, "precision": vx.average_precision, "c": vx.c_index}


def weights_of(n, seed=0):
    return np.random.default_rng(seed).exponential(size=n)


# ---- values --------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.booleans())
def test_values_are_scikit_learns(seed, k, weighted):
    y, p = forecasts(60, k, seed)
    y[:k] = range(k)
    w = weights_of(60, seed) if weighted else None
    scores = p[:, 1] if k == 2 else p
    options = {"sample_weight": w, "average": "macro"}
    auc = roc_auc_score(y, scores, multi_class="ovr", **options)
    assert vx.roc_auc(y, p, weights=w).value == pytest.approx(auc, rel=1e-10)
    truth = y if k == 2 else np.eye(k, dtype=int)[y]
    precision = average_precision_score(truth, scores, **options)
    assert vx.average_precision(y, p, weights=w).value == pytest.approx(precision, rel=1e-10)
    options["average"] = "weighted"
    if k > 2:
        auc = roc_auc_score(y, scores, multi_class="ovr", **options)
        assert vx.roc_auc(y, p, weights=w, average="weighted").value == pytest.approx(auc, rel=1e-10)
        precision = average_precision_score(truth, scores, **options)
        found = vx.average_precision(y, p, weights=w, average="weighted")
        assert found.value == pytest.approx(precision, rel=1e-10)


def test_thresholds_of_ordered_classes():
    y, p = forecasts(200, 4)
    w = weights_of(200)
    for function, theirs in ((vx.roc_auc, roc_auc_score), (vx.average_precision, average_precision_score)):
        found = function(y, p, ordered=True, weights=w)
        tails = [np.round(p[:, k:].sum(axis=1), 12) for k in range(1, 4)]
        parts = [theirs(y >= k, tails[k - 1], sample_weight=w) for k in range(1, 4)]
        assert [part.name for part in found.parts] == ["> 0", "> 1", "> 2"]
        assert [part.value for part in found.parts] == pytest.approx(parts, rel=1e-10)
        assert found.value == pytest.approx(np.mean(parts), rel=1e-10)


def all_pairs(y, score, w, classes=None):
    right = total = 0.0
    for i, j in itertools.permutations(range(len(y)), 2):
        if y[i] < y[j] and (classes is None or (y[i], y[j]) == classes):
            total += w[i] * w[j]
            right += w[i] * w[j] * (score[i] < score[j]) + 0.5 * w[i] * w[j] * (score[i] == score[j])
    return right / total


@pytest.mark.long
@given(st.integers(0, 2**32 - 1), st.integers(2, 9))
@settings(deadline=None, max_examples=30)
def test_the_c_index_looks_at_all_pairs(seed, k):
    y, p = forecasts(40, k, seed)
    w = weights_of(40, seed)
    score = np.round(p @ np.arange(k), 12)
    assert vx.c_index(y, p, weights=w).value == pytest.approx(all_pairs(y, score, w), rel=1e-10)
    pairs = [(a, b) for a, b in itertools.combinations(np.unique(y).tolist(), 2)]
    by_class = [all_pairs(y, score, w, pair) for pair in pairs]
    found = vx.c_index(y, p, weights=w, average="classes")
    assert [part.value for part in found.parts] == pytest.approx(by_class, rel=1e-10)
    assert found.value == pytest.approx(np.mean(by_class), rel=1e-10)


def test_of_two_classes_the_c_index_is_the_auc():
    y, p = forecasts(100, 2)
    a, b, c = vx.roc_auc(y, p), vx.c_index(y, p), vx.c_index(y, p, average="classes")
    assert a.value == pytest.approx(b.value, rel=1e-12)
    assert list(a.interval) == pytest.approx(list(b.interval), rel=1e-12)
    assert list(a.interval) == pytest.approx(list(c.interval), rel=1e-12)


# ---- variances -----------------------------------------------------------------------------------


def delong(y, score):
    """The variance by DeLong's formula, from all pairs."""
    above = (score[y == 1][:, None] > score[y == 0]) + 0.5 * (score[y == 1][:, None] == score[y == 0])
    return above.mean(axis=1).var(ddof=1) / (y == 1).sum() + above.mean(axis=0).var(ddof=1) / (y == 0).sum()


def test_the_variance_is_delongs():
    for seed in range(5):
        y, p = forecasts(50, 2, seed)
        assert vx.roc_auc(y, p).variance == pytest.approx(delong(y, p[:, 1]), rel=1e-10)


def test_the_paired_difference_has_delongs_covariance():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    a, b = rng.normal(size=(2, 80)) + 0.8 * y
    p = {"a": 1 / (1 + np.exp(-a)), "b": 1 / (1 + np.exp(-b - a / 2))}
    parts = {}
    for name, score in p.items():
        above = (score[y == 1][:, None] > score[y == 0]) * 1.0
        parts[name] = above.mean(axis=1), above.mean(axis=0)
    gaps = [x - z for x, z in zip(parts["a"], parts["b"], strict=True)]
    variance = gaps[0].var(ddof=1) / len(gaps[0]) + gaps[1].var(ddof=1) / len(gaps[1])
    found = vx.roc_auc(y, p).difference("a", "b")
    assert found.difference == pytest.approx(parts["a"][0].mean() - parts["b"][0].mean())
    half = (found.interval.high - found.interval.low) / 2
    # 1.9905 is the 97.5 % quantile of Student's t distribution with 79 degrees of freedom.
    assert half == pytest.approx(1.9904502 * math.sqrt(variance), rel=1e-6)
    back = vx.roc_auc(y, p).difference("b", "a")
    assert (back.difference, back.p_value) == (-found.difference, found.p_value)


def auc_of(happened, score):
    """ROC AUC from all pairs of rows, as a function of the weights."""
    above = np.outer(happened, ~happened).astype(float)
    right = above * ((score[:, None] > score) + 0.5 * (score[:, None] == score))
    return lambda w: (w @ right @ w) / (w @ above @ w)


def precision_of(happened, score):
    """Average precision from its definition, as a function of the weights."""
    at = np.unique(-score, return_inverse=True)[1]

    def value(w):
        found, taken = (np.cumsum(np.bincount(at, x)) for x in (w * happened, w))
        return (np.diff(found, prepend=0) * found / np.maximum(taken, 1e-300)).sum() / found[-1]

    return value


def by_hand(name, y, p, average="macro", ordered=False):
    """The value of ROC AUC, average precision or c-index, as a function of the weights."""
    k = p.shape[1]
    if name == "c":
        score = np.round(p @ np.arange(k), 12)
        higher = (score[:, None] > score) + 0.5 * (score[:, None] == score)
        pairs = [np.greater.outer(y, y).astype(float)]
        if average == "classes":
            pairs = [np.outer(y == j, y == i).astype(float) for i, j in itertools.combinations(range(k), 2)]
        right = [pair * higher for pair in pairs]
        return lambda w: np.mean([(w @ a @ w) / (w @ b @ w) for a, b in zip(right, pairs, strict=True)])
    events = [(y == i, p[:, i]) for i in range(k)]
    if ordered:
        events = [(y >= i, np.round(p[:, i:].sum(axis=1), 12)) for i in range(1, k)]
    parts = [(auc_of if name == "auc" else precision_of)(*event) for event in events]
    share = [happened if average == "weighted" else np.ones(len(y)) for happened, _ in events]
    return lambda w: np.average([part(w) for part in parts], weights=[w @ x for x in share])


def jackknife(value, w, units):
    """The delete-one variance of a function of the weights, over rows or groups."""
    values = [value(w * (units != u)) for u in np.unique(units)]
    return (len(values) - 1) * np.var(values)


@pytest.mark.long
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("grouped", [False, True])
def test_variances_agree_with_the_jackknife(name, grouped):
    y, p = forecasts(300, 3, 1)
    w = 1 + weights_of(300)
    units = np.arange(300) // 4 if grouped else np.arange(300)
    groups = units if grouped else None
    options = [{}] if name == "c" else [{}, {"average": "weighted"}, {"ordered": True}]
    options += [{"average": "classes"}] if name == "c" else []
    for option in options:
        found = FUNCTIONS[name](y, p, weights=w, groups=groups, **option)
        slow = by_hand(name, y, p, **option)
        assert found.value == pytest.approx(slow(w), rel=1e-10)
        # Precision among the first rows is far from linear.
        variance = jackknife(slow, w, units)
        assert found.variance == pytest.approx(variance, rel=0.15 if name == "precision" else 0.06)


@pytest.mark.long
@pytest.mark.parametrize("name", FUNCTIONS)
def test_influences_are_derivatives(name, monkeypatch):
    """A little more weight of a row changes the value by its influence."""
    asked = []
    monkeypatch.setattr(analysis, "means_of", lambda h, recipe: asked.append(recipe) or means_of(h, recipe))
    y, p = forecasts(40, 3, 2)
    w = 1 + weights_of(40)
    options = (
        [{}, {"average": "classes"}] if name == "c" else [{}, {"average": "weighted"}, {"ordered": True}]
    )
    for option in options:
        # Groups of one row each: without the correction for small classes of rows.
        FUNCTIONS[name](y, p, weights=w, groups=np.arange(40), **option)
        influence = asked[-1].take(Part({ONLY: Forecasts(y, p, weights=w, groups=np.arange(40))}, whole=True))
        influence = influence.groups[:, -1] / influence.groups[:, 0].sum()
        for row in range(0, 40, 3):
            values = []
            for step in (1e-5, -1e-5):
                more = w * (1 + step * (np.arange(40) == row))
                values.append(FUNCTIONS[name](y, p, weights=more, **option).value)
            slope = (values[0] - values[1]) / 2e-5
            assert influence[row] == pytest.approx(slope, abs=1e-8)


@pytest.mark.long
def test_intervals_cover():
    rng = np.random.default_rng(0)
    truth, covered, cases = 0.7602499, {"auc": 0, "precision": 0}, 100
    # The AUC of N(1, 1) against N(0, 1) is the normal distribution function at 1 / sqrt(2); their average
    # precision by numerical integration (scipy.integrate.quad).
    expected = 0.7529960
    for _ in range(cases):
        y = (rng.random(200) < 0.5).astype(int)
        p = 1 / (1 + np.exp(-rng.normal(size=200) - y))
        auc, precision = vx.roc_auc(y, p), vx.average_precision(y, p)
        covered["auc"] += auc.interval.low <= truth <= auc.interval.high
        covered["precision"] += precision.interval.low <= expected <= precision.interval.high
    assert 90 <= covered["auc"] < 100
    assert 90 <= covered["precision"] < 100


# ---- edges ---------------------------------------------------------------------------------------


def test_perfect_and_useless_forecasts():
    y = np.repeat([0, 1], 30)
    perfect = vx.roc_auc(y, y * 0.8 + 0.1)
    assert perfect.value == 1.0
    assert perfect.interval.high == 1.0
    assert 0.85 < perfect.interval.low < 0.95
    useless = vx.roc_auc(y, np.full(60, 0.5))
    assert useless.value == pytest.approx(0.5, abs=1e-12)
    assert vx.average_precision(y, np.full(60, 0.5)).value == pytest.approx(0.5, abs=1e-12)


def test_events_that_never_happen_are_left_out_and_named():
    y, p = forecasts(60, 4)
    y = np.where(y == 2, 1, y)
    found = vx.roc_auc(y, p)
    assert math.isnan(found.parts[2].value)
    assert not found.parts[2].interval.defined
    known = [part.value for i, part in enumerate(found.parts) if i != 2]
    assert found.value == pytest.approx(np.mean(known))
    assert "left out: 2" in repr(found)
    alone = vx.roc_auc(np.zeros(60, int), p)
    assert math.isnan(alone.value)
    assert math.isnan(vx.c_index(np.zeros(60, int), p).value)


def test_weights_are_relative_and_rows_without_weight_are_no_rows():
    y, p = forecasts(90, 3)
    w = np.random.default_rng(0).integers(0, 3, 90).astype(float)
    groups = np.arange(90) // 3
    for function in FUNCTIONS.values():
        a = function(y, p, weights=1e200 * w, groups=groups)
        b = function(y[w > 0], p[w > 0], weights=w[w > 0], groups=groups[w > 0])
        assert a.value == pytest.approx(b.value, rel=1e-12)
        assert list(a.interval) == pytest.approx(list(b.interval), rel=1e-9)
        copies = function(np.repeat(y, w.astype(int)), np.repeat(p, w.astype(int), axis=0))
        assert a.value == pytest.approx(copies.value, rel=1e-12)


def test_few_rows_of_an_event_are_a_caution():
    y, p = forecasts(200, 2, ties=False)
    y = np.zeros(200, int)
    y[:5] = 1
    assert vx.roc_auc(y, p).interval.caution == "only 5 rows of the rarer outcome"
    y[1:5] = 0
    assert not vx.roc_auc(y, p).interval.defined


def test_many_rows_are_quick():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 200_000)
    p = rng.dirichlet(np.ones(10), 200_000)
    found = vx.c_index(y, p)
    assert abs(found.value - 0.5) < 0.01
    assert found.interval.low < 0.5 < found.interval.high


def test_results_as_data():
    y, p = forecasts(80, 3)
    models = vx.roc_auc(y, {"a": p, "b": p[:, ::-1]}, classes=["x", "y", "z"])
    json.dumps(plain(models.to_dict()))
    json.dumps(plain(models["a"].to_dict()))
    assert models.to_frame().shape == (2, 4)
    assert models["a"].to_frame("polars").shape == (4, 4)
    assert "p (Holm)" in repr(models)
    assert "class x" in repr(models["a"])
    assert "class x" in models["a"]._repr_html_()
    assert "a - b" in models._repr_html_()
    assert float(models["a"]) == models["a"].value


def test_a_confidence_may_be_any_number():
    from fractions import Fraction

    y, p = forecasts(60, 3, 8)
    level = Fraction(19, 20)
    assert list(vx.roc_auc(y, p, confidence=level).interval) == list(vx.roc_auc(y, p).interval)
    for function in (vx.net_benefit, vx.diagrams.murphy):
        models = {"p": p, "q": p[:, ::-1]}
        found = function(y, models, confidence=level).difference("p", "q")
        np.testing.assert_array_equal(found.band, function(y, models).difference("p", "q").band)
    slope = vx.calibration_slope(*forecasts(60, 2, 8, ties=False), confidence=level)["1"]
    assert slope.slope_interval.confidence == 0.95
    assert vx.deferral(y, p, defer=0.3, confidence=level).lines[0].saved_interval.confidence == 0.95


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("average", lambda y, p: vx.roc_auc(y, p, average="micro")),
        ("average", lambda y, p: vx.c_index(y, p, average="macro")),
        ("confidence", lambda y, p: vx.average_precision(y, p, confidence=95)),
        ("ordered", lambda y, p: vx.roc_auc(y, p, ordered="yes")),
        ("p", lambda y, p: vx.roc_auc(y, {})),
        ("p", lambda y, p: vx.roc_auc(y, {"a": p, "b": p[:, :2] / p[:, :2].sum(axis=1, keepdims=True)})),
        ("p", lambda y, p: vx.roc_auc(y, {"a": p, "b": p[:10]})),
    ],
)
def test_refusals(argument, call):
    y, p = forecasts(30, 3, ties=False)
    y = np.minimum(y, 1)
    with pytest.raises(vx.InputError) as refused:
        call(y, p)
    assert refused.value.argument == argument


def test_an_order_is_never_guessed():
    import pandas as pd

    y, p = forecasts(30, 3)
    names = np.array(["high", "low", "mid"])
    frame = pd.DataFrame(p, columns=names)
    for call in (lambda: vx.c_index(names[y], frame), lambda: vx.roc_auc(names[y], frame, ordered=True)):
        with pytest.raises(vx.InputError) as refused:
            call()
        assert refused.value.kind == "order"
