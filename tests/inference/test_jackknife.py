"""Variances over very many groups come from derivatives: as leaving out each group gives them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import verax as vx
from verax.engines.clusters import changes_without_each
from verax.scores.metrics import METRICS


def card(n_groups, k, seed=0, *, weighted=False, heavy=0, two_way=False):
    """Rows of a group resemble each other: they share half of what makes their decisions right."""
    rng = np.random.default_rng(seed)
    group = np.r_[rng.integers(0, n_groups, 3 * n_groups), np.zeros(heavy, int)]
    n = len(group)
    y = rng.integers(0, k, n)
    skill = rng.normal(size=n_groups)[group]
    p = rng.dirichlet(np.ones(k), n)
    p[np.arange(n), y] += np.maximum(skill, 0) / 3
    p /= p.sum(axis=1, keepdims=True)
    weights = rng.exponential(size=n) ** 2 if weighted else None
    groups = [group, rng.integers(0, 1500, n)] if two_way else group
    return vx.evaluate(y, p, groups=groups, weights=weights, ordered=True)


NAMES = [name for name, metric in METRICS.items() if not metric.for_two]


def errors(found):
    return np.array([np.diff(found.metric(name).interval)[0] for name in NAMES])


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        {"n_groups": 3000, "k": 3},
        {"n_groups": 2000, "k": 40},
        {"n_groups": 2000, "k": 5, "weighted": True},
        {"n_groups": 2000, "k": 5, "heavy": 3000},
        {"n_groups": 1500, "k": 3, "two_way": True},
    ],
)
def test_derivatives_give_what_leaving_out_each_group_gives(options, change):
    found = errors(card(**options))
    change(left_out_up_to=10**9)
    exact = errors(card(**options))
    # Of means over classes, a group is a larger share of a class than of all rows.
    by_class = np.array(["macro" in name or "balanced" in name for name in NAMES])
    np.testing.assert_allclose(found[~by_class], exact[~by_class], rtol=2e-3)
    np.testing.assert_allclose(found[by_class], exact[by_class], rtol=1e-2)


def test_a_heavy_group_is_left_out_not_approximated(change):
    exact = errors(card(2000, 5, heavy=3000))
    change(left_out_share=1.0)
    assert abs(errors(card(2000, 5, heavy=3000)) / exact - 1).max() > 0.001


def test_few_groups_are_left_out_one_by_one(monkeypatch):
    def refuse(*_):
        raise AssertionError("derivatives are for many groups")

    monkeypatch.setattr("verax.scores.metrics.DecisionMetric.slopes_at", refuse)
    assert errors(card(500, 3)).all()


@pytest.mark.parametrize("heaviest", [1.0, 2.0**20, 2.0**60, 2.0**300])
def test_without_a_group_that_has_nearly_all_the_weight_nothing_cancels(heaviest):
    rng = np.random.default_rng(1)
    weight, mean = np.r_[heaviest, rng.exponential(size=5)], rng.random(6)
    totals = (weight * mean)[:, None]
    exact_w, exact_t = ([Fraction(x) for x in column] for column in (weight, totals[:, 0]))
    whole = sum(exact_t) / sum(exact_w)
    expected = [
        float(whole - (sum(exact_t) - t) / (sum(exact_w) - w)) for w, t in zip(exact_w, exact_t, strict=True)
    ]
    np.testing.assert_allclose(changes_without_each(weight, totals)[:, 0], expected, rtol=1e-9)
