"""Thresholds chosen on data, and deferral: against brute force, and honest about how they were chosen."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verax as vx
from cases import forecasts
from realdata import load
from scanned import alike
from scattered import Scattered
from verax import Forecasts
from verax.analyses.dealing import dealt
from verax.analyses.sampled import sampled_rows
from verax.analyses.table import RowTable
from verax.common.strictjson import plain
from verax.inputs.groups import Groups
from verax.inputs.memory import open_rows
from verax.scores.decisions import count_decisions
from verax.scores.metrics import METRICS, find_metric
from verax.wings.decide.thresholds import _Sample

QUICK = {"bootstrap": 20}


def sample_of(y, p, metric="ec", weights=None):
    forecasts = Forecasts(y, p, ordered=True, weights=weights)
    return _Sample.of(RowTable.of(forecasts, []), find_metric(metric), 12)


def value(y, p, thresholds, metric, w=None):
    decisions = vx.decide(p, thresholds=thresholds)
    return float(METRICS[metric].of(count_decisions(y, decisions, n_classes=p.shape[1], weights=w)))


# ---- the search ----------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_tables_of_all_candidates_are_those_of_their_decisions(seed, k):
    y, p = forecasts(30, k, seed)
    rng = np.random.default_rng(seed)
    w = rng.exponential(size=30)
    sample = sample_of(y, p, weights=w)
    thresholds = rng.integers(1, 10, k - 1) / 10 + 0.001
    reached = sample.tails >= thresholds
    for i in range(k - 1):
        tried = np.array([0.0, 0.2002, 0.5003, 0.9004])
        for t, table in zip(tried, sample._tables(i, tried, reached), strict=True):
            decisions = vx.decide(p, thresholds=[*thresholds[:i], t, *thresholds[i + 1 :]])
            wanted = count_decisions(y, decisions, n_classes=k, weights=w / w.max())
            np.testing.assert_allclose(table, wanted, atol=1e-12)


def test_the_search_reaches_thresholds_within_half_a_unit_of_the_last_decimal():
    # The middle of 0.10 and 0.11 would be rounded to either.
    y, tails = np.array([0, 0, 1, 1]), np.array([[0.1], [0.1], [0.11], [0.11]])
    sample = _Sample(y, tails, np.ones(4), METRICS["ec"], 2)
    (chosen,), value = sample._improved(np.array([0.5]), [sample._candidates(0)])
    assert (0.105 < chosen < 0.115, value) == (True, 0.0)


@pytest.mark.long
@pytest.mark.parametrize("metric", ["ec", "qwk", "macro_f1", "balanced_accuracy"])
def test_of_two_classes_the_best_threshold_is_found(metric):
    for seed in range(4):
        y, p = forecasts(60, 2, seed)
        found = vx.choose_thresholds(y, p, metric=metric, **QUICK)
        every = [value(y, p, t, metric) for t in np.unique(np.append(p[:, 1], [0, 1]))]
        best = max(every) if METRICS[metric].higher_is_better else min(every)
        assert found.in_sample == pytest.approx(best, abs=1e-12)
        assert value(y, p, found.values, metric) == pytest.approx(found.in_sample, abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("metric", ["ec", "qwk", "macro_mae"])
def test_no_single_threshold_can_be_improved(metric):
    sign = 1 if METRICS[metric].higher_is_better else -1
    for seed in range(2):
        y, p = forecasts(50, 4, seed)
        found = vx.choose_thresholds(y, p, metric=metric, **QUICK)
        assert value(y, p, found.values, metric) == pytest.approx(found.in_sample, abs=1e-12)
        for start in (0.3, 0.5, 0.7):
            assert sign * found.in_sample >= sign * value(y, p, start, metric) - 1e-12
        for i, t in itertools.product(range(3), np.linspace(0, 1, 41)):
            other = found.values.copy()
            other[i] = t
            assert sign * value(y, p, other, metric) <= sign * found.in_sample + 1e-12


@pytest.mark.long
@pytest.mark.parametrize("metric", ["ec", "qwk", "balanced_accuracy"])
@pytest.mark.parametrize("k", [3, 4])
def test_of_few_rows_the_best_of_all_combinations_is_found(k, metric):
    sign = 1 if METRICS[metric].higher_is_better else -1
    for seed in range(2):
        y, p = forecasts(6, k, seed)
        # Single precision is compared to fewer decimals.
        p = p.astype(np.float32) if seed % 2 else p
        found = vx.choose_thresholds(y, p, metric=metric, **QUICK)
        tails = np.cumsum(p[:, ::-1], axis=1, dtype=float)[:, ::-1][:, 1:]
        # A threshold at each value, and one above all of them: others decide as one of these does.
        tried = [np.unique([*column, column.max() + 1e-5]) for column in tails.T]
        every = [value(y, p, t, metric) for t in itertools.product(*(t[t <= 1] for t in tried))]
        best = max(sign * v for v in every if not math.isnan(v))
        assert sign * found.in_sample == pytest.approx(best, abs=1e-12)
        assert value(y, p, found.values, metric) == pytest.approx(found.in_sample, abs=1e-12)


def test_all_tables_are_those_of_decisions():
    y, p = forecasts(50, 3, 1)
    w = np.random.default_rng(0).exponential(size=50)
    sample = _Sample.of(RowTable.of(Forecasts(y, p, weights=w), []), METRICS["ec"], 12)
    tried = [sample._candidates(0)[::7], sample._candidates(1)[::9]]
    tables = sample._all_tables(tried)
    for i, j in itertools.product(range(len(tried[0])), range(len(tried[1]))):
        decisions = vx.decide(p, thresholds=[tried[0][i], tried[1][j]])
        wanted = count_decisions(y, decisions, n_classes=3, weights=w / w.max())
        np.testing.assert_allclose(tables[i, j], wanted, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_rows_elsewhere_are_those_in_memory(dtype):
    for seed in range(4):
        y, p = forecasts(7, 3, seed)
        p = p.astype(dtype)
        found = vx.choose_thresholds(Scattered(y, p, n_parts=3), **QUICK)
        assert found == vx.choose_thresholds(y, p, **QUICK)


def test_the_order_of_rows_decides_on_no_fold_and_no_draw():
    y, p = forecasts(300, 3, 5)
    rng = np.random.default_rng(0)
    w, g, other = rng.random(300), rng.integers(0, 40, 300), rng.permutation(300)
    for ask in (vx.choose_thresholds, vx.operating_points):
        asked = QUICK if ask is vx.choose_thresholds else {"threshold": "youden"}
        found = ask(y, p, weights=w, groups=g, **asked)
        again = ask(y[other], p[other], weights=w[other], groups=g[other], **asked)
        alike(found.to_dict(stored=False), again.to_dict(stored=False))


def test_rows_without_weight_do_not_count():
    y, p = forecasts(12, 2, 2)
    w = np.repeat([1.0, 0.0], [2, 10])
    found = vx.choose_thresholds(y, p, weights=w, **QUICK)
    alone = vx.choose_thresholds(y[:2], p[:2], **QUICK)
    assert (found.values.tolist(), found.honest) == (alone.values.tolist(), alone.honest)


def test_three_classes_of_many_rows_have_the_best_pair():
    y, p = forecasts(300, 3, 1)
    found = vx.choose_thresholds(y, p, metric="qwk", **QUICK)
    grid = np.linspace(0, 1, 21)
    every = max(value(y, p, pair, "qwk") for pair in itertools.product(grid, grid))
    assert found.in_sample > every - 0.002


# ---- honesty -------------------------------------------------------------------------------------


def test_noise_gains_nothing_in_cross_validation():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 3, 400), rng.dirichlet(np.ones(3), 400)
    found = vx.choose_thresholds(y, p, metric="qwk")
    assert found.in_sample > 0.03
    assert found.honest < found.in_sample - 0.02
    assert found.interval.low < 0


def test_tilted_forecasts_gain():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 2000)
    p = np.exp(rng.normal(size=(2000, 3)) - np.abs(np.arange(3) - y[:, None])) * [1, 1, 4]
    p /= p.sum(axis=1, keepdims=True)
    for metric in ("ec", "qwk"):
        found = vx.choose_thresholds(y, p, metric=metric)
        assert found.gain > 0
        assert found.interval.low > 0
        assert found.per_fold.shape == (5, 2)
        assert abs(found.honest - found.in_sample) < 0.05
        again = vx.choose_thresholds(y, p, metric=metric)
        assert again.to_dict() == found.to_dict()
    costs = vx.choose_thresholds(y, p, costs="linear")
    assert costs.reference == pytest.approx(
        vx.expected_cost(y, vx.decide(p, costs="linear"), n_classes=3, costs="linear")
    )


def test_the_honest_value_is_that_of_decisions_without_the_own_fold():
    y, p = forecasts(100, 3, 3)
    groups = np.arange(100) // 7
    found = vx.choose_thresholds(y, p, metric="mae", folds=4, groups=groups, seed=3, **QUICK)
    order = sampled_rows(open_rows(y, p, groups=groups))[0].by_content().numbers
    y, p, groups = y[order], p[order], groups[order]
    fold = dealt(len(y), Groups.of(groups, 100), 4, 3)
    assert all(len(set(fold[groups == g])) == 1 for g in range(15))
    decisions = np.empty(100, int)
    for i in range(4):
        own = vx.choose_thresholds(y[fold != i], p[fold != i], metric="mae", **QUICK).values
        assert own.tolist() == found.per_fold[i].tolist()
        decisions[fold == i] = vx.decide(p[fold == i], thresholds=own)
    assert found.honest == pytest.approx(np.abs(y - decisions).mean())
    assert found.interval.method == "bootstrap of 15 groups"


def test_few_rows_that_are_decided_differently_are_a_caution():
    """The bootstrap cannot see decisions that did not occur, and covers 81 % with 300 rows."""
    y, p = [0, 0, 1, 1] * 10, [0.1, 0.6, 0.7, 0.9] * 10
    found = vx.choose_thresholds(y, p, metric="accuracy", **QUICK)
    assert found.interval.caution == "only 10 rows are decided differently"
    assert "Caution: only 10 rows are decided differently." in repr(found)
    found = vx.choose_thresholds(2 * y, 2 * p, metric="accuracy", groups=np.arange(80) // 4 % 8, **QUICK)
    assert found.interval.caution == "only 8 groups"


def test_weights_are_relative():
    y, p = forecasts(80, 3)
    w = np.random.default_rng(0).integers(0, 3, 80).astype(float)
    a = vx.choose_thresholds(y, p, weights=w, **QUICK)
    b = vx.choose_thresholds(y, p, weights=1e250 * w, **QUICK)
    assert a.values.tolist() == b.values.tolist()
    assert a.honest == pytest.approx(b.honest, rel=1e-12)
    assert list(a.interval) == pytest.approx(list(b.interval), rel=1e-9)


def test_results_as_data():
    y, p = forecasts(80, 3)
    found = vx.choose_thresholds(y, p, metric="qwk", **QUICK)
    json.dumps(plain(found.to_dict()))
    assert "in cross-validation" in repr(found)
    assert (found.decide(p) == vx.decide(p, thresholds=found.values)).all()
    line = vx.deferral(y, p, defer=[0.1, 0.3])
    json.dumps(plain(line.to_dict()))
    assert line.to_frame().shape == (2, 9)
    assert "deciding all costs" in repr(line)
    assert "<table>" in line._repr_html_()


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("folds", lambda y, p: vx.choose_thresholds(y, p, folds=1)),
        ("metric", lambda y, p: vx.choose_thresholds(y, p, metric="kapa")),
        ("costs", lambda y, p: vx.choose_thresholds(y, p, costs=[[0, 1], [1, 0]])),
        ("bootstrap", lambda y, p: vx.choose_thresholds(y, p, bootstrap=1)),
        ("groups", lambda y, p: vx.choose_thresholds(y, p, groups=["a"] * 30)),
        ("p", lambda y, p: vx.choose_thresholds(y, np.full((30, 65), 1 / 65))),
        ("defer", lambda y, p: vx.deferral(y, p, defer=-1)),
        ("defer", lambda y, p: vx.deferral(y, p, defer=[])),
        ("costs", lambda y, p: vx.deferral(y, p, defer=1, costs=[[0, 1], [1, 0]])),
    ],
)
def test_refusals(argument, call):
    with pytest.raises(vx.InputError) as refused:
        call(*forecasts(30, 3))
    assert refused.value.argument == argument


# ---- deferral ------------------------------------------------------------------------------------


@pytest.mark.parametrize("costs", ["zero_one", "linear", [[0, 1, 9], [2, 0, 1], [5, 3, 0]]])
def test_deferral_counts_what_decide_marks(costs):
    y, p = forecasts(200, 3)
    w = np.random.default_rng(0).exponential(size=200)
    found = vx.deferral(y, p, defer=[0, 0.3, 0.6, 50], costs=costs, weights=w)
    for line in found.lines:
        decisions = vx.decide(p, costs=costs, defer=line.defer)
        options = {"n_classes": 3, "costs": costs, "weights": w}
        assert line.deferred == (decisions == -1).sum()
        assert line.share == pytest.approx(np.average(decisions == -1, weights=w))
        assert line.cost == pytest.approx(vx.expected_cost(y, decisions, defer=line.defer, **options))
        usual = vx.decide(p, costs=costs)
        assert line.cost_of_deciding == pytest.approx(vx.expected_cost(y, usual, **options))
        assert line.saved == pytest.approx(line.cost_of_deciding - line.cost)
        kept = decisions != -1
        if kept.any():
            rest = vx.expected_cost(y[kept], usual[kept], **{**options, "weights": w[kept]})
            assert line.cost_of_decided == pytest.approx(rest)
    assert found.lines[-1].deferred == 0
    assert found.lines[-1].saved == 0


def test_intervals_of_what_is_saved():
    y, p = forecasts(300, 3)
    (line,) = vx.deferral(y, p, defer=0.4).lines
    decisions = vx.decide(p, defer=0.4)
    saved = np.where(decisions == -1, (vx.decide(p) != y) - 0.4, 0.0)
    # 1.967903 is the 97.5 % quantile of Student's t distribution with 299 degrees of freedom.
    half = 1.9679296 * saved.std(ddof=1) / math.sqrt(300)
    assert line.saved_interval.high - line.saved == pytest.approx(half, rel=1e-5)
    (grouped,) = vx.deferral(y, p, defer=0.4, groups=np.arange(300) // 6).lines
    assert grouped.saved_interval.method == "t, over 50 groups"


def test_retinopathy_by_kappa():
    data = load("dr-aptos", "dr_aptos5.npz")
    found = vx.choose_thresholds(data["labels"], data["probs"], metric="qwk")
    # The kappa of the most likely class that the data came with.
    assert found.reference == pytest.approx(0.9062, abs=5e-5)
    assert found.in_sample > found.honest
