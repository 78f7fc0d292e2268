"""Rows of weight zero are as if absent, rows elsewhere as those in memory, and rounding is no difference."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from scattered import Scattered

RNG = np.random.default_rng(3)
P = RNG.multinomial(64, RNG.dirichlet(np.ones(3), 20)) / 64
Y = RNG.integers(0, 3, 20)
W = np.repeat([0.0, 1.0, 2.0, 0.5], 5)
GROUPS = np.arange(20) // 5


def test_a_group_without_weight_is_no_group():
    for call in (vx.evaluate, lambda *a, **o: vx.decompose(*a, rule="brier", **o)):
        found = call(Y, P, weights=W, groups=GROUPS)
        assert (found.n_rows, found.n_groups) == (20, 3)
    with pytest.raises(vx.InputError, match="two groups"):
        vx.evaluate(Y[:10], P[:10], weights=W[:10], groups=GROUPS[:10])


def test_an_infinite_loss_without_weight_leaves_intervals_of_groups():
    p = P.copy()
    p[0] = np.eye(3)[(Y[0] + 1) % 3]
    p[1:] = 0.5 * p[1:] + 0.5 / 3
    models = {"a": p, "b": np.full((20, 3), 1 / 3)}
    found = vx.compare(Y, models, rule="log_score", weights=W, groups=GROUPS)
    without = vx.compare(
        Y[5:], {name: q[5:] for name, q in models.items()}, rule="log_score", weights=W[5:], groups=GROUPS[5:]
    )
    assert list(found.difference("a", "b").interval) == pytest.approx(
        list(without.difference("a", "b").interval)
    )


def test_parts_without_weight_merge():
    weights = np.zeros(20)
    weights[-5:] = 1
    handle = Scattered(Y, P, weights=weights, groups=GROUPS % 2, n_parts=12)
    found = vx.decompose(handle, rule="brier")
    assert found.whole.miscalibration == pytest.approx(
        vx.decompose(Y[-5:], P[-5:], rule="brier").whole.miscalibration
    )


@pytest.mark.parametrize("call", [vx.selective, vx.risk_coverage])
def test_a_ranking_is_no_column_when_rows_are_skipped(call):
    p = P.copy()
    p[3, 0] += 0.5
    found, left = call(Y, p, by="entropy", invalid="skip"), np.delete(np.arange(20), 3)
    wanted = call(Y[left], p[left], by="entropy")
    assert found.to_dict() == wanted.to_dict() | {"skipped": found.to_dict()["skipped"]} | {
        name: found.to_dict()[name] for name in ("stored",) if name in found.to_dict()
    }


FITS = {
    "fit_combination": lambda *a, **o: vx.fit_combination(*a, **o).fold_weights,
    "recalibrate": lambda *a, **o: [t.loss for t in vx.recalibrate(*a, method="temperature", **o).trials],
    "choose_thresholds": lambda *a, **o: vx.choose_thresholds(*a, bootstrap=2, **o).per_fold,
}


@pytest.mark.parametrize("name", FITS)
def test_fits_to_few_rows_elsewhere_are_those_in_memory_with_weightless_rows_or_without(name):
    forecasts = {"a": P, "b": P[::-1]} if name == "fit_combination" else P
    here = FITS[name](Y, forecasts, weights=W)
    there = FITS[name](Scattered(Y, forecasts, weights=W))
    some = {model: p[5:] for model, p in forecasts.items()} if name == "fit_combination" else P[5:]
    without = FITS[name](Y[5:], some, weights=W[5:])
    assert np.array(there) == pytest.approx(np.array(here), abs=1e-9)
    assert np.array(without) == pytest.approx(np.array(here), abs=1e-9)


def test_models_that_differ_by_rounding_do_not_differ():
    p = 0.5 * P + 0.5 / 3
    q = np.exp(np.log(p))
    q /= q.sum(axis=1, keepdims=True)
    assert vx.compare(Y, {"a": p, "b": q}, rule="log_score").difference("a", "b").p_value == 1.0
    lengths = vx.compare_lengths(Y % 2, np.stack([p[:, 0], 1 - p[:, 0]], axis=1), k=[1])
    # With two classes, the first and its probability say everything.
    assert [d.p_value for rule in lengths.means for d in [lengths.difference("top-1", "full", rule)]] == (
        [1.0] * len(lengths.means)
    )


def test_thresholds_of_few_rows_are_the_best_of_all():
    y = [1, 0, 1, 1, 1, 0, 0]
    parts = [[21, 2, 41], [5, 1, 58], [39, 5, 20], [2, 53, 9], [22, 25, 17], [34, 7, 23], [21, 42, 1]]
    chosen = vx.choose_thresholds(
        y, np.array(parts) / 64, metric="qwk", weights=[2, 3, 3, 1, 3, 2, 1], folds=2, bootstrap=2
    )
    assert chosen.in_sample == pytest.approx(1 / 11)
