"""Differences over groups: few that differ, skewed effects, resampling; intervals agree with p-values."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import verax as vx
from verax.engines.differences import PairedTally
from verax.inference.estimates import Estimate, Units, bootstrap_means, bootstrapped
from verax.inference.intervals import Resampling, straightened
from verax.inference.signflips import SignFlips

METHODS = ("moments", "bootstrap", "permutation")


def compared(effects, rows=1, **how):
    """Two models whose losses differ by these effects in groups of some rows."""
    # The Brier score of a forecast 1 - a of what happened is 2 a^2.
    a = np.repeat(np.sqrt(0.3 + np.asarray(effects) / 2), rows)
    forecasts = {"a": 1 - a, "b": np.full(len(a), 1 - math.sqrt(0.3))}
    groups = np.repeat(np.arange(len(effects)), rows)
    found = vx.compare(np.ones(len(a), int), forecasts, rule="brier", groups=groups, **how)
    return found, found.difference("a", "b")


@pytest.mark.parametrize(("n", "expected"), [(1, 1.0), (2, 0.5), (3, 0.25), (6, 2**-5)])
@pytest.mark.parametrize("method", METHODS)
def test_a_few_groups_of_a_thousand_have_the_p_value_of_a_sign_test(n, expected, method):
    found, gap = compared(0.2 * (np.arange(1000) < n), method=method)
    # All patterns of n signs are equally likely: the sign test.
    assert expected == stats.binomtest(n, n).pvalue
    assert gap.p_value == pytest.approx(expected, abs=0.05 if method == "permutation" else 1e-12)
    assert f"only {n} of 1,000 groups differ" in gap.interval.caution
    assert any(f"only {n} of 1,000 groups differ" in note for note in found.notes)


def test_the_exact_test_tries_all_signs():
    effects = np.zeros(200)
    effects[:7] = [0.2, -0.1, 0.15, 0.3, 0.05, 0.25, -0.02]
    gap = compared(effects, rows=2)[1]
    sums = [abs(np.dot(signs, effects[:7])) for signs in itertools.product([-1, 1], repeat=7)]
    exact = np.mean(np.array(sums) >= effects.sum() - 1e-12)
    assert exact > stats.ttest_1samp(effects, 0).pvalue
    assert gap.p_value == pytest.approx(exact, rel=1e-12)
    effects = 0.2 * (np.arange(200) < 5)
    gap = compared(effects)[1]
    assert stats.ttest_1samp(effects, 0).pvalue < 0.05 < gap.p_value == 2**-4
    assert gap.interval.low == 0.0 < gap.interval.high


def test_models_that_agree_in_all_groups_do_not_differ():
    gap = compared(np.zeros(40))[1]
    assert (gap.p_value, tuple(gap.interval)) == (1.0, (0.0, 0.0))
    assert gap.interval.caution == "none of 40 groups differs"


@pytest.mark.parametrize("kind", ["few differ", "skewed", "normal"])
@pytest.mark.parametrize("method", METHODS)
def test_an_interval_holds_zero_exactly_if_the_test_does_not_reject_it(kind, method):
    rng = np.random.default_rng(0)
    decided = set()
    for _ in range(12):
        n = int(rng.integers(12, 60))
        if kind == "few differ":
            effects = 0.2 * (rng.random(n) < 8 / n) * (rng.random(n) - 0.2)
        else:
            effects = 0.05 * (rng.exponential(size=n) - 0.6 if kind == "skewed" else rng.normal(0.35, 1, n))
            effects = np.clip(effects, -0.2, 0.6)
        gap = compared(effects, method=method, bootstrap=200)[1]
        decided.add(gap.p_value <= 0.05)
        assert (gap.interval.low <= 0 <= gap.interval.high) == (gap.p_value > 1 - 0.95)
    assert decided == {True, False}


@pytest.mark.parametrize("method", ["bootstrap", "permutation"])
@pytest.mark.parametrize("options", [{}, {"time_ordered": True, "lags": 2}])
def test_resampled_rows_and_blocks_agree_with_their_intervals_as_well(method, options):
    rng = np.random.default_rng(1)
    decided = set()
    for _ in range(12):
        p = {"a": rng.uniform(0.3, 0.9, 60), "b": rng.uniform(0.3, 0.75, 60)}
        found = vx.compare(np.ones(60, int), p, rule="brier", method=method, bootstrap=200, **options)
        gap = found.difference("a", "b")
        decided.add(gap.p_value <= 0.05)
        assert (gap.interval.low <= 0 <= gap.interval.high) == (gap.p_value > 1 - 0.95)
    assert decided == {True, False}


def test_the_method_is_named_and_can_be_done_again():
    effects = 0.1 * (np.random.default_rng(3).exponential(size=30) - 0.5)
    found, gap = compared(effects)
    assert found.method.startswith("paired t test (the more cautious of Student's and Hall's)")
    t, skew = gap.difference / gap.standard_error, gap.skewness
    assert skew == pytest.approx(stats.skew(effects) / math.sqrt(29), rel=1e-6)
    hall = t + skew * (t * t / 3 + 1 / 6) + skew**2 * t**3 / 27
    student, corrected = (2 * stats.t.sf(abs(x), 29) for x in (t, hall))
    assert gap.p_value == pytest.approx(max(student, corrected), rel=1e-9)
    # Turned around, the skewness shrinks the statistic.
    assert corrected < student
    gap = compared(-effects + 2 * effects.mean())[1]
    assert gap.p_value > stats.ttest_1samp(-effects + 2 * effects.mean(), 0).pvalue


def test_four_groups_are_few_in_a_comparison_as_in_a_card():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(4), 30)
    y, p = rng.integers(0, 2, 120), rng.uniform(0.1, 0.9, (2, 120))
    found = vx.compare(y, {"a": p[0], "b": p[1]}, rule="brier", groups=groups)
    card = vx.evaluate(y, p[0], groups=groups)
    assert card.scores["brier"].interval.caution == "only 4 groups"
    assert any("only 4 groups" in note for note in found.notes)


def sparse(n, share):
    return lambda rng: (rng.random(n) < share) * rng.choice([-1.0, 1.0], n)


DESIGNS = {
    "40 groups, 6 % differ": sparse(40, 0.06),
    "100 groups, 3 % differ": sparse(100, 0.03),
    "60 questions, 8 repeats": lambda rng: (
        (rng.random(60) < 0.06) * np.diff(rng.binomial(8, 0.5, (2, 60)), axis=0)[0]
    ),
    "20 log-normal groups": lambda rng: rng.lognormal(size=20) - math.exp(0.5),
}


@pytest.mark.parametrize("design", DESIGNS)
def test_equal_models_are_seldom_told_apart(design):
    """At 5 %: Hall's test alone rejects 17 to 21 % where few differ, Student's 11 % of skewed groups."""
    rng = np.random.default_rng(7)
    rejected, n = np.zeros(2), 120
    for seed in range(n):
        effects = DESIGNS[design](rng)
        losses, codes = np.column_stack([effects, 0 * effects]), np.arange(len(effects))
        units = Units("groups", codes=codes)
        estimate = Estimate.of(PairedTally(2).update(losses, None, codes), losses, units)
        draws = bootstrap_means(losses, units, Resampling(replicates=100, seed=seed))
        rejected += estimate.p_values()[2] <= 0.05, bootstrapped(draws, estimate, 0.95)[1][2] <= 0.05
    # 7 % of 120 has a standard error of 2.3 %.
    assert (rejected / n <= 0.07 + 2 * 0.023).all()


def test_the_statistic_of_swapped_groups_is_that_of_groups_with_these_signs():
    rng = np.random.default_rng(0)
    weight, columns = rng.integers(1, 9, 7).astype(float), rng.exponential(size=(7, 2))
    flips = SignFlips.drawn(np.arange(7), weight, columns, np.ones(2), 5, 3, skewed=True)
    signs = np.vstack([np.ones(7), np.random.default_rng(3).choice([-1.0, 1.0], size=(5, 7))])
    for at in (0.0, 0.2):
        for c in range(2):
            shifted = columns[:, c] - at * weight
            for s, value in zip(signs, flips._statistic(c, at), strict=True):
                mean = (s * shifted).sum() / weight.sum()
                rest = (s * shifted - weight * mean) / weight.sum()
                error = np.sqrt((rest**2).sum())
                skewness = np.clip((rest**3).sum() / error**3, -1, 1)
                assert value == pytest.approx(abs(straightened(mean / error, skewness)), rel=1e-9)


def test_a_permutation_interval_holds_what_is_not_rejected():
    effects = np.random.default_rng(2).normal(0.1, 0.15, 25)
    gap = compared(effects, method="permutation")[1]
    low, high = gap.interval
    # Fisher's permutation interval is close to Student's where effects are normal.
    student = stats.ttest_1samp(effects, 0).confidence_interval()
    assert (low, high) == pytest.approx(tuple(student), abs=0.25 * gap.standard_error)
    for at, inside in ((low - 1e-3, False), (low + 1e-3, True), (high - 1e-3, True), (high + 1e-3, False)):
        p = compared(effects - at, method="permutation")[1].p_value
        assert (p > 0.05) == inside


def test_groups_that_all_agree_are_the_most_extreme():
    # Two of 64 patterns of signs are as extreme.
    gap = compared(np.full(6, 0.2), rows=2, method="permutation", bootstrap=4000)[1]
    assert gap.p_value == pytest.approx(2 / 64, abs=0.01)
    assert compared(np.zeros(6), method="permutation")[1].p_value == 1.0
    # With 4 groups no pattern is rare enough to be rejected.
    assert compared(np.full(4, 0.2), method="permutation")[1].interval.low == 0.0
