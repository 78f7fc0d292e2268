"""Comparing models: the right standard errors, the right p-values, and words that are true."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from operator import mul

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal, stats

import verax as vx
from cases import forecasts
from scattered import Scattered
from verax.analyses.comparison.paired import trait_rows
from verax.analyses.comparison.ranked import letter_display
from verax.analyses.comparison.reasons import FORMULAS, OVERCONFIDENCE, RULED_OUT_BELOW, error_column
from verax.analyses.comparison.references import ClassCounts, OtherGroups
from verax.engines.differences import PairedTally, with_differences
from verax.engines.pieces import all_pairs
from verax.engines.stats import RowStats
from verax.inference.estimates import Estimate, Units, bootstrap_means, bootstrapped, holm, sign_flips
from verax.inference.intervals import Resampling
from verax.inference.series import LongRun
from verax.inputs.groups import Groups
from verax.inputs.handles import Part


def models(n=300, k=3, seed=0, noise=(0.2, 0.5, 0.5)):
    """Outcomes and three models, the first better than the others."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return y, {
        f"m{i}": (1 - s) * np.eye(k)[y] * 0.7 + (1 - (1 - s) * 0.7) * rng.dirichlet(np.ones(k), n)
        for i, s in enumerate(noise)
    }


# ---- paired, independent rows ----------------------------------------------------------------


def test_against_scipys_paired_t_test():
    y, p = models()
    comparison = vx.compare(y, p, rule="brier")
    for a, b in itertools.combinations(p, 2):
        found = comparison.difference(a, b)
        x, z = vx.brier.samples(y, p[a]), vx.brier.samples(y, p[b])
        theirs = stats.ttest_rel(x, z)
        assert found.difference == pytest.approx((x - z).mean(), rel=1e-10)
        assert found.p_value == pytest.approx(theirs.pvalue, rel=1e-8)
        low, high = theirs.confidence_interval(0.95)
        assert found.interval == pytest.approx((low, high), rel=1e-9)
        back = comparison.difference(b, a)
        assert (back.difference, back.interval) == (
            -found.difference,
            (-found.interval[1], -found.interval[0]),
        )
    for model in comparison.models["brier"]:
        losses = vx.brier.samples(y, p[model.name])
        assert model.mean == pytest.approx(losses.mean())
        # Gamma limits, with the relative error and the degrees of freedom of the t interval.
        shrunk = stats.norm.ppf(0.975) / stats.t.ppf(0.975, len(losses) - 1)
        n = losses.mean() ** 2 / (losses.var(ddof=1) / len(losses)) * shrunk**2
        ends = stats.gamma.ppf(0.025, n), stats.gamma.ppf(0.975, n + 1)
        assert model.interval == pytest.approx([losses.mean() / n * end for end in ends], rel=1e-9)


def test_ranks_and_letters():
    y, p = models(n=2000)
    ranking = vx.compare(y, p, rule="rps").models["rps"]
    assert [m.rank for m in ranking] == [1, 2, 3]
    assert ranking[0].name == "m0"
    assert ranking[0].letters == "a"
    assert ranking[1].letters == ranking[2].letters == "b"
    assert vx.compare(y, p, rule="rps").best() == "m0"


@given(st.integers(0, 9), st.data())
def test_models_share_a_letter_if_and_only_if_no_difference_is_seen(m, data):
    names = [f"m{i}" for i in range(m)]
    pairs = list(itertools.combinations(names, 2))
    different = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    letters = letter_display(names, different)
    for a, b in pairs:
        assert bool(set(letters[a]) & set(letters[b])) == ((a, b) not in different)
    assert all(letters.values())


@pytest.mark.long
def test_many_letters_are_all_different():
    names = [f"m{i}" for i in range(60)]
    letters = letter_display(names, list(itertools.combinations(names, 2)))
    assert len(set(letters.values())) == 60


def test_models_that_are_the_same_differ_by_nothing():
    y, p = forecasts(100, 3, ties=False)
    found = vx.compare(y, {"a": p, "b": p}, rule="log_score").difference("a", "b")
    assert (found.difference, found.p_value, found.interval) == (0, 1, (0, 0))


def test_tiny_differences_keep_their_digits():
    y, p = forecasts(400, 3, ties=False)
    q = (
        p
        + 1e-9 * np.random.default_rng(1).normal(size=(400, 1)) * np.array([1, -1, 0]) * p[:, :1] * p[:, 1:2]
    )
    found = vx.compare(y, {"a": p, "b": q}, rule="brier").difference("a", "b")
    d = vx.brier.samples(y, p) - vx.brier.samples(y, q)
    assert found.p_value == pytest.approx(stats.ttest_1samp(d, 0).pvalue, rel=1e-3)


def test_weights_that_are_counts_are_rows():
    y, p = models(n=60)
    w = np.random.default_rng(0).integers(1, 4, 60)
    rows = np.repeat(np.arange(60), w)
    weighted = vx.compare(y, p, rule="brier", weights=w, weights_are="counts").difference("m0", "m1")
    repeated = vx.compare(y[rows], {n: q[rows] for n, q in p.items()}, rule="brier").difference("m0", "m1")
    assert weighted.difference == pytest.approx(repeated.difference)
    assert weighted.p_value == pytest.approx(repeated.p_value, rel=1e-6)


# ---- tallies -----------------------------------------------------------------------------------


@given(
    n=st.integers(4, 40),
    m=st.integers(2, 5),
    cut=st.floats(0.1, 0.9),
    grouped=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_paired_tallies_merge(n, m, cut, grouped, seed):
    rng = np.random.default_rng(seed)
    losses, w = rng.exponential(size=(n, m)), rng.exponential(size=n)
    labels = rng.integers(0, 4, n) if grouped else None
    at = max(1, min(n - 1, int(cut * n)))

    def part(rows):
        return PairedTally(m).update(losses[rows], w[rows], None if labels is None else labels[rows])

    whole, merged = part(slice(None)), part(slice(0, at)).merge(part(slice(at, n)))
    np.testing.assert_allclose(merged.means, whole.means, rtol=1e-10, atol=1e-12)
    if not grouped or len(set(labels)) > 1:
        np.testing.assert_allclose(
            merged.standard_errors()[0], whole.standard_errors()[0], rtol=1e-8, atol=1e-12
        )
    assert merged.standard_errors()[1] == pytest.approx(whole.standard_errors()[1])


def test_only_like_tallies_merge():
    with pytest.raises(vx.VeraxError, match="cannot be merged"):
        PairedTally(2).merge(PairedTally(3))


@pytest.mark.parametrize("grouped", [False, True])
def test_tallies_with_and_without_differences_merge_to_one_without(grouped):
    losses, groups = np.arange(12.0).reshape(6, 2) ** 2, np.arange(6) % 3 if grouped else None
    first, second = (PairedTally(2, pairs=pairs).update(losses, None, groups) for pairs in (1, 0))
    both, expected = first.merge(second), second.merge(second)
    assert both.to_bytes() == second.merge(first).to_bytes() == expected.to_bytes()


def test_columns_are_models_then_pairs():
    losses = np.array([[1.0, 2.0, 4.0], [np.inf, np.inf, 0.0]])
    columns = with_differences(losses)
    assert columns[0].tolist() == [1, 2, 4, -1, -3, -2]
    assert np.isnan(columns[1, 3])
    assert all_pairs(3) == [(0, 1), (0, 2), (1, 2)]


# ---- groups ------------------------------------------------------------------------------------


def test_clustered_standard_errors_are_those_of_group_means():
    y, p = models(n=200)
    groups = np.repeat(np.arange(40), 5)
    found = vx.compare(y, p, rule="brier", groups=groups).difference("m0", "m1")
    d = (vx.brier.samples(y, p["m0"]) - vx.brier.samples(y, p["m1"])).reshape(40, 5).mean(axis=1)
    # Groups of one size: the sandwich is the t test of their means, but for Hall's term for their skewness.
    tally = PairedTally(1).update(np.repeat(d, 5)[:, None], None, groups)
    error, freedom = tally.standard_errors()
    t_test = Estimate(tally.means, error, freedom)
    assert t_test.p_values() == pytest.approx(stats.ttest_1samp(d, 0).pvalue, rel=1e-8)
    assert t_test.intervals(0.95)[0] == pytest.approx(
        tuple(stats.ttest_1samp(d, 0).confidence_interval()), rel=1e-8
    )
    own = Estimate(tally.means, error, freedom, None, stats.skew(d) / math.sqrt(39), 39.0)
    assert tuple(found.interval) == pytest.approx(tuple(own.intervals(0.95)[0]), rel=1e-6)
    assert found.interval.high + found.interval.low != pytest.approx(2 * found.difference, rel=1e-4)


def test_copies_are_no_evidence():
    y, p = models(n=50, noise=(0.4, 0.5))
    rows = np.repeat(np.arange(50), 20)
    alone = vx.compare(y, p, rule="brier").difference("m0", "m1")
    many = {name: q[rows] for name, q in p.items()}
    clustered = vx.compare(y[rows], many, rule="brier", groups=rows).difference("m0", "m1")
    # Copies of all rows are groups like single rows; groups also allow for skewness.
    single = vx.compare(y, p, rule="brier", groups=np.arange(50)).difference("m0", "m1")
    assert clustered.p_value == pytest.approx(single.p_value, rel=1e-6)
    assert clustered.interval == pytest.approx(single.interval, rel=1e-6)
    assert clustered.p_value == pytest.approx(alone.p_value, abs=0.05)
    assert vx.compare(y[rows], many, rule="brier").difference("m0", "m1").p_value < 0.01 * alone.p_value


# ---- time --------------------------------------------------------------------------------------


def test_long_run_errors_by_hand():
    x = np.random.default_rng(0).normal(size=50).cumsum()[:, None]
    found = LongRun.of(x, lags=3)
    t = np.arange(50) + 0.5
    waves = [math.sqrt(2 / 50) * np.cos(math.pi * j * t / 50) @ x[:, 0] for j in range(1, 50 // 7 + 1)]
    assert found.freedom[0] == len(waves)
    assert found.error[0] == pytest.approx(math.sqrt(np.mean(np.square(waves)) / 50))
    alone = LongRun.of(x, lags=0)
    assert (alone.error[0], alone.freedom[0]) == (pytest.approx(stats.sem(x[:, 0])), 49)


@pytest.mark.parametrize("n", [2, 3, 10, 16, 17])
def test_long_run_errors_of_a_few_rows(n):
    x = np.random.default_rng(n).normal(size=(n, 1))
    alone = LongRun.of(x, lags=0)
    assert (alone.error[0], alone.freedom[0]) == (pytest.approx(stats.sem(x[:, 0])), n - 1)
    unknown = LongRun.of(x, lags=None)
    assert unknown.error[0] > 0
    assert unknown.freedom[0] == min(n - 1, 4)


def autocorrelated(r, shape, seed):
    noise = np.random.default_rng(seed).normal(size=(shape[0] + 200, shape[1]))
    return signal.lfilter([1], [1, -r], noise, axis=0)[200:]


@pytest.mark.long
@pytest.mark.parametrize("n", [200, 400, 1000])
@pytest.mark.parametrize(("r", "least", "most"), [(0.0, 0.04, 0.065), (0.5, 0.04, 0.065), (0.9, 0.04, 0.09)])
def test_sizes_of_the_test_of_a_series(n, r, least, most):
    """Two thousand series at once; the Monte Carlo error is 0.005 at 0.05."""
    columns = autocorrelated(r, (n, 2000), seed=n)
    series = LongRun.of(columns, None)
    p = Estimate(columns.mean(axis=0), series.error, series.freedom, series.cautions).p_values()
    assert least - 0.01 < (p < 0.05).mean() < most + 0.01


def rejections(losses, units, seed):
    """Whether the bootstrap, its interval and the permutation test find a difference of two models."""
    plan = Resampling(replicates=200, seed=seed)
    estimate = Estimate.of(PairedTally(2).update(losses, None, units.codes), losses, units)
    intervals, p_values = bootstrapped(bootstrap_means(losses, units, plan), estimate, plan.confidence)
    low, high = intervals[2]
    permutation = sign_flips(losses, units, plan).p_value(0)
    return p_values[2] <= 0.05, not low <= 0 <= high, permutation <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "runs", "most"),
    [(200, 120, 0.1), *(pytest.param(n, 600, 0.085, marks=pytest.mark.long) for n in (200, 400))],
)
def test_sizes_of_resampling_of_a_series(n, runs, most):
    """Of independent rows they would be more than 50 %; of blocks that share nothing 8 to 11 %."""
    rejected = np.zeros(3)
    for seed in range(runs):
        losses = np.column_stack([autocorrelated(0.9, (n, 1), seed)[:, 0], np.zeros(n)])
        rejected += rejections(losses, Units("blocks"), seed)
    # Six percent of 600 runs has a standard error of one percent, of 120 runs two.
    assert (rejected / runs < most).all(), rejected / runs
    assert (rejected / runs > 0.01).all(), rejected / runs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_groups", "runs", "error"),
    [(8, 100, 0.022), *(pytest.param(n, 1000, 0.007, marks=pytest.mark.long) for n in (8, 20))],
)
def test_sizes_of_resampling_of_few_unequal_groups(n_groups, runs, error):
    """The bootstrap of groups without Student's spread rejects 14 % with 8 groups and 8 to 11 % with 20."""
    rng = np.random.default_rng(5)
    rejected = np.zeros(3)
    for seed in range(runs):
        sizes = np.maximum(2, (12 * rng.lognormal(0, 0.8, n_groups)).astype(int))
        codes = np.repeat(np.arange(n_groups), sizes)
        losses = rng.normal(size=(n_groups, 2))[codes] + rng.normal(size=(len(codes), 2))
        rejected += rejections(losses, Units("groups", codes=codes), seed)
    assert (rejected / runs < 0.065 + 2 * error).all(), rejected / runs
    # The more cautious of Student's and Hall's rejects 1.5 % with 8 unequal groups.
    assert (rejected / runs > 0.01).all(), rejected / runs


def test_a_series_that_is_too_short_is_said_to_be():
    losses = np.clip(0.5 + 0.02 * autocorrelated(0.99, (100, 1), 3)[:, 0], 0.01, 0.99)
    y = np.zeros(100, int)
    for method in ("moments", "bootstrap", "permutation"):
        found = vx.compare(
            y, {"a": losses, "b": losses.mean() + 0 * losses}, rule="brier", time_ordered=True, method=method
        )
        assert "too short" in found.difference("a", "b").interval.caution
        assert any("too short" in note for note in found.notes)
    # Slow drift does not show in a short series without signs of it; nor does it where it is said to be none.
    for n, lags, caution in (
        (400, None, "only 400 rows: slow drift may go unseen"),
        (400, 3, ""),
        (999, None, "only 999 rows: slow drift may go unseen"),
        (1000, None, ""),
    ):
        y, p = models(n=n, noise=(0.5, 0.6))
        found = vx.compare(y, p, rule="rps", time_ordered=True, lags=lags)
        assert found.difference("m0", "m1").interval.caution == caution
        assert all(caution in note for note in found.notes)
        assert bool(found.notes) == bool(caution)


def test_noise_does_not_hide_slow_drift():
    """Neighbours have an autocorrelation of 0.1; the test of lag 1 rejected 31 % at 5 %."""
    n, runs = 1000, 400
    columns = 3 * np.random.default_rng(1).normal(size=(n, runs)) + autocorrelated(0.98, (n, runs), 2)
    found = LongRun.of(columns, None)
    p_values = Estimate(columns.mean(axis=0), found.error, found.freedom).p_values()
    assert 0.01 < (p_values <= 0.05).mean() < 0.09


def test_lags_and_description():
    y, p = models(n=400)
    comparison = vx.compare(y, p, rule="rps", time_ordered=True)
    assert comparison.method == "Diebold-Mariano test, rows in order of time"
    again = vx.compare(y, p, rule="rps", time_ordered=True, lags=0)
    assert again.method == "Diebold-Mariano test, rows in order of time, 0 lags"
    alone = vx.compare(y, p, rule="rps").difference("m0", "m1")
    assert again.difference("m0", "m1").p_value == pytest.approx(alone.p_value)
    assert again.difference("m0", "m1").interval == pytest.approx(alone.interval)


# ---- resampling --------------------------------------------------------------------------------


@pytest.mark.parametrize("units", ["rows", "groups", "time"])
def test_resampling_agrees_with_moments(units):
    y, p = models(n=400, noise=(0.42, 0.5))
    options = {
        "rows": {},
        "groups": {"groups": np.repeat(np.arange(100), 4)},
        "time": {"time_ordered": True},
    }[units]
    plain = vx.compare(y, p, rule="brier", **options).difference("m0", "m1")
    for method in ("bootstrap", "permutation"):
        other = vx.compare(y, p, rule="brier", method=method, bootstrap=4000, **options).difference(
            "m0", "m1"
        )
        assert other.difference == pytest.approx(plain.difference)
        assert other.p_value == pytest.approx(plain.p_value, abs=0.03)
        assert other.interval == pytest.approx(
            plain.interval, abs=0.35 * (plain.interval[1] - plain.interval[0])
        )


def test_exact_permutation_of_a_few_rows():
    losses = np.array([0.3, 0.1, 0.2, 0.4])
    y, p = [0] * 4, np.column_stack([1 - losses, losses])
    q = np.full((4, 2), 0.5)
    d = vx.brier.samples(y, p) - vx.brier.samples(y, q)
    exact = np.mean([abs(np.dot(s, d)) >= abs(d.sum()) - 1e-12 for s in itertools.product([-1, 1], repeat=4)])
    found = vx.compare(y, {"a": p, "b": q}, rule="brier", method="permutation", bootstrap=20_000).difference(
        "a", "b"
    )
    assert found.p_value == pytest.approx(exact, abs=0.02)


def test_resampling_is_reproducible():
    y, p = models(n=100)
    first, second = (
        vx.compare(y, p, rule="rps", method="bootstrap", bootstrap=200, seed=5) for _ in range(2)
    )
    assert first.to_dict() == second.to_dict()


# ---- many models -------------------------------------------------------------------------------


def test_holm():
    p = np.array([0.01, 0.04, 0.03, np.nan, 0.005])
    assert holm(p) == pytest.approx([0.03, 0.06, 0.06, np.nan, 0.02], nan_ok=True)
    assert holm(np.array([0.6, 0.9])).tolist() == [1.0, 1.0]


# ---- skill -------------------------------------------------------------------------------------


def test_skill():
    y, p = models(n=500)
    uniform = vx.compare(y, p, rule="brier", reference="uniform")
    assert uniform.models["brier"][0].skill == pytest.approx(1 - vx.brier(y, p["m0"]) / (2 / 3))
    named = vx.compare(y, p, rule="brier", reference="m1")
    by_name = {m.name: m for m in named.models["brier"]}
    assert by_name["m1"].skill == 0
    assert by_name["m0"].skill == pytest.approx(1 - vx.brier(y, p["m0"]) / vx.brier(y, p["m1"]))
    low, high = by_name["m0"].skill_interval
    assert 0 < low < by_name["m0"].skill < high
    resampled = vx.compare(y, p, rule="brier", reference="m1", method="bootstrap", bootstrap=2000)
    again = {m.name: m for m in resampled.models["brier"]}["m0"].skill_interval
    assert again == pytest.approx((low, high), abs=0.02)
    assert "skill against m1" in repr(named)


def others(y, k, *, weights=None, groups=None):
    """For each row the class frequencies of all rows of other groups, with half a row more of each class."""
    w = np.ones(len(y)) if weights is None else weights
    belongs = np.arange(len(y)) if groups is None else groups
    found = np.full((len(y), k), 0.5 * w[w > 0].mean())
    for i in range(len(y)):
        for j in range(len(y)):
            if belongs[j] != belongs[i]:
                found[i, y[j]] += w[j]
    return found / found.sum(axis=1, keepdims=True)


# The last class happens in one group only, and one group has most rows.
RARE = np.append(np.random.default_rng(3).integers(0, 3, 58), [3, 3])
OWN = {
    "plain": {},
    "weights": {"weights": np.random.default_rng(4).exponential(1, 60) * (np.arange(60) % 7 > 0)},
    "groups": {"groups": np.array([0] * 40 + [1] * 9 + [2] * 9 + [5] * 2)},
}
OWN["both"] = OWN["weights"] | OWN["groups"]


@pytest.mark.long
@pytest.mark.parametrize("own", OWN.values(), ids=OWN)
@pytest.mark.parametrize("rule", ["brier", "log_score", "rps"])
def test_frequencies_are_those_of_all_other_groups(own, rule):
    p = np.random.default_rng(0).dirichlet(np.ones(4), 60)
    expected = vx.compare(RARE, {"a": p, "b": others(RARE, 4, **own)}, rule=rule, reference="b", **own)
    (expected,) = (m for found in expected.models.values() for m in found if m.name == "a")
    sources = [(RARE, {"a": p}, own)] + [
        (Scattered(RARE, {"a": p}, n_parts=n, seed=n, **own), None, {}) for n in (2, 9)
    ]
    for y, models, read in sources:
        (found,) = vx.compare(y, models, rule=rule, reference="frequencies", seed=1, **read).models.values()
        assert found[0].skill == pytest.approx(expected.skill, rel=1e-12)
        assert tuple(found[0].skill_interval) == pytest.approx(tuple(expected.skill_interval), rel=1e-11)


def test_frequencies_leave_out_the_first_of_two_kinds_of_groups():
    p = np.random.default_rng(0).dirichlet(np.ones(4), 60)
    kinds = [OWN["groups"]["groups"], np.arange(60) % 4]
    expected = vx.brier(RARE, others(RARE, 4, groups=kinds[0]))
    for y, models, read in (
        (RARE, {"a": p}, {"groups": kinds}),
        (Scattered(RARE, {"a": p}, groups=np.column_stack(kinds)), None, {}),
    ):
        found = vx.compare(y, models, rule="brier", reference="frequencies", **read).models["brier"][0]
        assert 1 - found.skill == pytest.approx(found.mean / expected, rel=1e-12)


def test_frequencies_depend_on_ratios_of_weights_or_on_copies():
    y, p, n = RARE[:30], np.random.default_rng(0).dirichlet(np.ones(4), 30), np.arange(30) % 3

    def skill(y, p, **read):
        (found,) = vx.compare(y, {"a": p}, rule="log_score", reference="frequencies", **read).models.values()
        return found[0].skill

    scaled = [skill(y, p, weights=n * factor) for factor in (1.0, 1e-200, 1e200)]
    assert scaled == pytest.approx([scaled[0]] * 3, rel=1e-12)
    assert skill(y[n > 0], p[n > 0], weights=n[n > 0]) == pytest.approx(scaled[0], rel=1e-12)
    again = skill(np.repeat(y, n), np.repeat(p, n, axis=0))
    assert skill(y, p, weights=n, weights_are="counts") == pytest.approx(again, rel=1e-12)


def test_class_counts_merge_and_keep_what_one_heavy_group_leaves():
    y, groups = np.array([0, 1, 0, 1, 1]), Groups.of(["a", "a", "b", "b", "c"], 5)
    weights = np.array([1e9, 1e9, 1e-9, 0.1, 3e-9])
    whole = OtherGroups(ClassCounts.of(y, 2, weights, groups))
    (found,) = whole.losses([vx.parse("brier")], y, weights, groups)
    half = 0.5 * math.fsum(weights) / 5
    # What is left without group a: class 0 has 1e-9.
    p = (half + np.array([1e-9, 0.1 + 3e-9])) / (2 * half + 0.1 + 4e-9)
    assert found[0] == pytest.approx(2 * p[1] ** 2, rel=1e-14)


# ---- several rules, and words ------------------------------------------------------------------


def test_where_rules_disagree_it_says_why():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 4000)
    right = rng.random(4000) < 0.8
    said = np.where(right, y, (y + 1) % 3)
    bold = 0.002 + 0.994 * np.eye(3)[said]
    shy_right = rng.random(4000) < 0.75
    shy = 0.125 + 0.625 * np.eye(3)[np.where(shy_right, y, (y + 1) % 3)]
    comparison = vx.compare(y, {"bold": bold, "shy": shy}, rule=["zero_one", "brier", "log_score"])
    assert comparison.best("zero_one") == "bold"
    assert comparison.best("log_score") == "shy"
    (sentence,) = comparison.disagreements
    assert sentence.startswith("bold or shy? zero_one for bold; ")
    assert "log_score for shy" in sentence
    assert "bold is right more often than shy" in sentence
    assert "bold is overconfident: mean confidence 0.996, accuracy 0.797." in sentence
    assert "bold gave the outcome a probability below 0.01 in 20% of its rows, 0% of the other's" in sentence
    assert sentence in repr(comparison)


def test_one_rule_cannot_disagree():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    bold = 0.002 + 0.996 * np.eye(2)[np.where(rng.random(2000) < 0.8, y, 1 - y)]
    shy = 0.25 + 0.5 * np.eye(2)[np.where(rng.random(2000) < 0.7, y, 1 - y)]
    assert vx.compare(y, {"bold": bold, "shy": shy}, rule="log_score").disagreements == []
    rules = ["log_score", "zero_one"]
    (sentence,) = vx.compare(y, {"bold": bold, "shy": shy}, rule=rules, ordered=True).disagreements
    # Mistakes of two classes are one class off, whoever makes them.
    assert "classes off on average" not in sentence


def test_reasons_are_said_only_where_the_rows_support_them():
    """The true probabilities are neither over- nor underconfident, whatever their mean in a sample."""
    said = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        q = rng.dirichlet(np.ones(3), 300)
        y = (rng.random(300)[:, None] > q.cumsum(axis=1)).sum(axis=1)
        other = rng.dirichlet(np.ones(3), 300)
        claims = vx.compare(
            y, {"true": q, "other": 0.9 * q + 0.1 * other}, rule=["brier", "log_score"]
        ).claims
        said += claims.hold(OVERCONFIDENCE, "true")
    assert said <= 6


def test_claims_about_the_distance_of_errors_have_the_error_of_a_ratio():
    rng = np.random.default_rng(1)
    wrong = rng.random(500) < 0.3
    distance = wrong * rng.integers(1, 4, 500)
    columns = [~wrong, *np.zeros((3, 500)), distance.astype(float)]
    column = error_column(columns, np.mean(~wrong), distance.mean())
    assert column.mean() == pytest.approx(distance[wrong].mean())
    draws = rng.integers(0, 500, (2000, 500))
    ratios = distance[draws].sum(axis=1) / wrong[draws].sum(axis=1)
    assert column.std() / math.sqrt(500) == pytest.approx(ratios.std(), rel=0.08)


def test_infinite_means_are_ranked_by_how_many_rows_and_then_by_the_others():
    y, p = models(n=60)
    for name, count in (("m0", 3), ("m1", 1), ("m2", 1)):
        p[name][:count] = np.eye(3)[(y[:count] + 1) % 3]
    p["m2"][10:] = 0.9 * np.eye(3)[y[10:]] + 0.1 / 3
    for order in (["m0", "m1", "m2"], ["m2", "m1", "m0"]):
        ranking = vx.compare(y, {name: p[name] for name in order}, rule="log_score").models["log_score"]
        assert [m.name for m in ranking] == ["m2", "m1", "m0"]
        assert [m.infinite_rows for m in ranking] == [1, 1, 3]
    assert ranking[0].finite_mean == pytest.approx(vx.log_score(y[1:], p["m2"][1:]))
    comparison = vx.compare(y, p, rule="log_score")
    assert "inf (3 rows; else" in repr(comparison)
    assert "are ranked by the number of these rows" in comparison.notes[0]


def test_agreement_needs_no_words():
    y, p = models(n=2000, noise=(0.1, 0.6))
    assert vx.compare(y, p, rule=["brier", "log_score", "rps"]).disagreements == []


def test_infinite_losses_are_named():
    y, p = models(n=50, noise=(0.5, 0.6, 0.7))
    p["m1"][3] = np.eye(3)[(y[3] + 1) % 3]
    comparison = vx.compare(y, p, rule=["log_score", "brier"])
    (note,) = comparison.notes
    assert note.startswith("log_score is infinite for m1 (1 of 50 rows)")
    assert "are ranked by the number of these rows" not in note
    assert math.isnan(comparison.difference("m0", "m1", "log_score").p_value)
    assert comparison.difference("m0", "m2", "log_score").p_value < 1
    assert comparison.difference("m0", "m1", "brier").p_value < 1
    # What is known without that row, and a rule that has a floor.
    gap = comparison.difference("m0", "m1", "log_score")
    rest = np.arange(50) != 3
    known = vx.log_score(y[rest], p["m0"][rest]) - vx.log_score(y[rest], p["m1"][rest])
    assert gap.finite_difference == pytest.approx(known, rel=1e-12)
    assert (gap.infinite_a, gap.infinite_b) == (0, 1)
    assert f" at most {known:+.6f} over the finite rows, and 1 infinite" in repr(comparison)
    turned = comparison.difference("m1", "m0", "log_score")
    assert turned.infinite_words == f"at least {-known:+.6f} over the finite rows, and 1 infinite"
    assert "The rule log_score(clip=1e-06) scores such outcomes as if they had had probability 1e-06" in note
    floored = vx.compare(y, p, rule="log_score(clip=1e-06)")
    assert not any("infinite" in note for note in floored.notes)
    assert floored.difference("m0", "m1").difference == pytest.approx(
        (49 * known + vx.log_score(y[3:4], p["m0"][3:4]) + math.log(1e-6)) / 50, rel=1e-12
    )
    apart = vx.compare({"m0": y, "m1": y}, {name: p[name] for name in ("m0", "m1")}, rule="log_score")
    means = {m.name: m.finite_mean for m in apart.models["log_score"]}
    assert apart.difference("m0", "m1").finite_difference == pytest.approx(means["m0"] - means["m1"])
    assert "log_score is infinite for m1" in apart.notes[1]


def test_a_list_that_leaves_nothing_has_a_floor():
    lists = vx.TopLists.from_dicts([{0: 0.7, 1: 0.3}, {0: 0.6}], n_classes=5)
    others = vx.TopLists.from_dicts([{2: 0.3}, {0: 0.6}], n_classes=5)
    models = {"a": lists, "b": others}
    found = vx.compare([2, 0], models, rule="log_score").difference("a", "b")
    assert (found.infinite_a, found.finite_difference) == (1, 0)
    gap = vx.compare([2, 0], models, rule="log_score(clip=1e-06)").difference("a", "b").difference
    assert gap == pytest.approx((-math.log(1e-6) + math.log(0.3)) / 2)


# ---- rows of their own -------------------------------------------------------------------------


def test_unpaired_models():
    y, p = models(n=300)
    z, q = models(n=200, seed=9)
    comparison = vx.compare({"a": y, "b": z}, {"a": p["m0"], "b": q["m1"]}, rule="brier")
    x, w = vx.brier.samples(y, p["m0"]), vx.brier.samples(z, q["m1"])
    theirs = stats.ttest_ind(x, w, equal_var=False)
    assert comparison.difference("a", "b").p_value == pytest.approx(theirs.pvalue, rel=0.05)
    assert "rows of its own" in repr(comparison)
    with pytest.raises(vx.InputError, match="`groups` cannot be used"):
        vx.compare({"a": y, "b": z}, {"a": p["m0"], "b": q["m1"]}, rule="brier", groups=y)
    with pytest.raises(vx.InputError, match="`y` must have the outcomes"):
        vx.compare({"a": y}, {"a": p["m0"], "b": q["m1"]}, rule="brier")


# ---- coverage ----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("grouped", [False, True])
def test_intervals_cover_what_they_should(grouped):
    # 500 runs at 95 %: the binomial standard deviation is 1 %.
    rng = np.random.default_rng(0)
    runs, units, size = 500, 60, 4 if grouped else 1
    covered = 0
    for _ in range(runs):
        effect = rng.normal(size=(units, 1)) * (0.5 if grouped else 0)
        d = (0.1 + effect + rng.normal(size=(units, size))).ravel()
        losses = np.column_stack([d, np.zeros_like(d)])
        labels = np.repeat(np.arange(units), size) if grouped else None
        tally = PairedTally(2).update(losses, None, labels)
        error, freedom = tally.standard_errors()
        half = stats.t.ppf(0.975, freedom) * error[2]
        covered += abs(tally.means[2] - 0.1) <= half
    assert 0.925 <= covered / runs <= 0.975


# ---- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"method": "magic"}, "method"),
        ({"confidence": 2}, "confidence"),
        ({"bootstrap": 3}, "bootstrap"),
        ({"seed": -1}, "seed"),
        ({"lags": 3}, "lags"),
        ({"time_ordered": True, "lags": 99}, "lags"),
        ({"time_ordered": True, "lags": 1.5}, "lags"),
        ({"time_ordered": True, "groups": [0, 1, 2] * 10}, "groups"),
        ({"time_ordered": True, "weights": np.ones(30)}, "weights"),
        ({"groups": [1] * 30}, "groups"),
        ({"reference": "m9"}, "reference"),
    ],
)
def test_refusals(options, argument):
    y, p = models(n=30)
    with pytest.raises(vx.InputError) as caught:
        vx.compare(y, p, **{"rule": "brier", **options})
    assert (caught.value.argument, caught.value.kind) == (argument, "value")


def test_a_remedy_names_the_option():
    y, p = models(n=30)
    with pytest.raises(vx.InputError) as caught:
        vx.compare(y, p, rule="brier", lags=3)
    assert dict(caught.value.remedies[0].options) == {"time_ordered": True}
    with pytest.raises(vx.VeraxError, match="at least one rule"):
        vx.compare(y, p, rule=[])
    with pytest.raises(vx.InputError) as caught:
        vx.compare(y, [p["m0"], p["m1"]], rule="brier")
    assert (caught.value.argument, caught.value.kind) == ("forecasts", "type")


def test_the_model_at_fault_is_named():
    y, p = models(n=30)
    for given_forecasts, argument, kind, source in (
        ({**p, "m2": p["m2"] * 2}, "p", "sum", "'m2'"),
        ({**p, "m1": p["m1"][:9]}, "p", None, "'m1'"),
        ({**p, "wide": np.full((30, 4), 0.25)}, "forecasts", "length", ""),
        ({"m0": p["m0"]}, "forecasts", "value", ""),
    ):
        with pytest.raises(vx.InputError) as caught:
            vx.compare(y, given_forecasts, rule="brier")
        error = caught.value
        assert (error.argument, error.source) == (argument, source)
        assert kind in (None, error.kind)
    with pytest.raises(KeyError, match="there is no pair of 'm0' and 'm7'"):
        vx.compare(y, p, rule="brier").difference("m0", "m7")


def test_out():
    y, p = models(n=100, noise=(0.6, 0.7, 0.9))
    comparison = vx.compare(y, p, rule=["rps", "log_score"], ordered=True)
    found = json.loads(json.dumps(comparison.to_dict()))
    assert set(found["models"]) == {"rps", "log_score"}
    assert len(found["differences"]["rps"]) == 3
    assert found["traits"]["m2"]["error_distance"] >= 1
    assert comparison._repr_html_().count("<table>") == 4


def test_top_lists_beside_full_distributions():
    y, p = models(n=200, k=4)
    lists = vx.TopLists.from_probabilities(p["m0"], k=2)
    comparison = vx.compare(
        y, {"full": p["m0"], "top 2": lists, "m1": p["m1"]}, rule=[vx.padded(vx.brier), "log_score"]
    )
    rule = "padded(brier)"
    assert comparison.difference("full", "m1", rule).difference == pytest.approx(
        vx.brier(y, p["m0"]) - vx.brier(y, p["m1"])
    )
    d = vx.brier.samples(y, p["m0"]) - vx.padded(vx.brier).samples(y, lists)
    found = comparison.difference("full", "top 2", rule)
    assert found.p_value == pytest.approx(stats.ttest_1samp(d, 0).pvalue, rel=1e-6)
    assert set(comparison.traits) == {"full", "m1"}
    with pytest.raises(vx.InputError, match="must be uniform or one of the models"):
        vx.compare(y, {"full": p["m0"], "top 2": lists}, rule="brier", reference="frequencies")
    with pytest.raises(vx.VeraxError):
        vx.compare(y, {"full": p["m0"], "top 2": lists}, rule="rps")


def test_one_model_has_skill_against_a_reference():
    y, p = models(n=200)
    alone = vx.compare(y, {"m0": p["m0"]}, rule="brier", reference="frequencies")
    among = vx.compare(y, p, rule="brier", reference="frequencies")
    (found,) = alone.models["brier"]
    expected = next(m for m in among.models["brier"] if m.name == "m0")
    assert (found.skill, found.skill_interval) == (expected.skill, expected.skill_interval)
    assert alone.differences["brier"] == []
    assert found.letters == "a"


def test_frequencies_of_weighted_rows_are_weighted():
    """Outcomes of one class weigh next to nothing, so knowing the frequencies is knowing the rest."""
    y = np.array([0, 1] * 100)
    weights = np.where(y == 0, 1.0, 1e-6)
    found = vx.compare(
        y, {"even": np.full((200, 2), 0.5)}, rule="brier", weights=weights, reference="frequencies"
    )
    assert found.models["brier"][0].skill < -100


def test_nothing_has_skill_against_a_reference_without_loss():
    y = np.zeros(40, int)
    found = vx.compare(y, {"wrong": np.tile([0.3, 0.7], (40, 1))}, rule="zero_one", reference="frequencies")
    assert np.isnan(found.models["zero_one"][0].skill)


# ---- numbers at the edges ----------------------------------------------------------------------


@pytest.mark.parametrize("power", [-1000, 600, 1000])
@pytest.mark.parametrize("grouped", [False, True])
def test_paired_tallies_of_extreme_weights(power, grouped):
    rng = np.random.default_rng(0)
    losses, w = rng.exponential(size=(40, 2)), rng.integers(1, 5, 40).astype(float)
    groups = np.arange(40) % 8 if grouped else None
    plain = PairedTally(2).update(losses, w, groups)
    scaled = PairedTally(2).update(losses, w * 2.0**power, groups)
    assert scaled.means.tolist() == plain.means.tolist()
    assert scaled.moments.std.tolist() == plain.moments.std.tolist()
    assert scaled.weight == plain.weight * 2.0**power
    if grouped:
        assert scaled.standard_errors()[0].tolist() == plain.standard_errors()[0].tolist()
        both = scaled.merge(scaled)
        np.testing.assert_allclose(both.standard_errors()[0], plain.standard_errors()[0], rtol=1e-12)


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("weights", ["none", "some", "zero"])
def test_pairs_of_many_models_are_summed_alike_by_a_compiled_loop(weights, lost, change, monkeypatch):
    pytest.importorskip("numba")
    rng = np.random.default_rng(0)
    # Nearly equal losses: a variance from sums of squares and products would lose its digits.
    alike = rng.exponential(size=(700, 1)) + 1e-6 * rng.exponential(size=(700, 4))
    losses = np.column_stack([alike, 10 + rng.exponential(size=(700, 4))])
    losses[:, 6] = losses[:, 4] + 1e-4 * rng.exponential(size=700)
    if lost:
        losses[3, [1, 2]], losses[3, 5], losses[690, 7] = np.inf, np.nan, np.inf
    w = {"none": None, "some": rng.integers(0, 3, 700) * 0.7, "zero": np.zeros(700)}[weights]
    plain = PairedTally(8).update(losses, w)
    change(compiled_from=0, compared_at_once=300)
    found = PairedTally(8).update(losses, w)
    for ours, theirs in ((found.moments, plain.moments), (found.squares, plain.squares)):
        np.testing.assert_allclose(ours.weight.high, theirs.weight.high, rtol=1e-14)
        np.testing.assert_allclose(ours.total.high, theirs.total.high, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(ours.m2, theirs.m2, rtol=1e-12)
        assert ours.n_infinite.tolist() == theirs.n_infinite.tolist()
    change(cores=3)
    again = PairedTally(8).update(losses, w)
    assert again.moments.to_values().tobytes() == found.moments.to_values().tobytes()


def test_models_are_compared_alike_by_pieces_of_rows(change, monkeypatch):
    pytest.importorskip("numba")
    rng = np.random.default_rng(0)
    y, q = rng.integers(0, 3, 700), rng.dirichlet(np.ones(3), (7, 700))
    q[1, 5] = np.eye(3)[(y[5] + 1) % 3]
    models = {f"m{i}": each for i, each in enumerate(q)} | {"same": q[0].copy()}
    models["m2"], models["m3"] = np.asfortranarray(q[2]), q[3].astype(np.float32)
    models["m3"].flags.writeable = False
    w = rng.integers(0, 3, 700) * 0.5
    asked = [{}, {"weights": w, "reference": "frequencies"}]
    plain = [vx.compare(y, models, ordered=True, **more) for more in asked]
    change(compiled_from=0, compared_at_once=300)
    for more, expected in zip(asked, plain, strict=True):
        found = vx.compare(y, models, ordered=True, **more)
        ours, theirs = (each.to_dict() for each in (found, expected))
        assert_alike(ours, theirs)
    models["m4"][650], models["m1"][20] = np.nan, -1.0
    with pytest.raises(vx.InputError, match=r"'m1'.*row 20"):
        vx.compare(y, models, ordered=True)


def assert_alike(ours, theirs):
    """The same numbers but for rounding, anywhere in what JSON holds."""
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for key, own in theirs.items():
            assert_alike(ours[key], own)
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_alike(a, b)
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=1e-10, abs=1e-13)
    else:
        assert ours == theirs


def test_a_huge_first_loss_takes_no_digits_from_a_difference():
    losses = np.full((1000, 2), 1e-9) + np.arange(1000)[:, None] * [1e-12, 2e-12]
    losses[0] = [700.0, 1.0]
    w = np.ones(1000)
    w[0] = 0.0
    tally = PairedTally(2).update(losses, w)
    expected = [math.fsum(column[1:]) / 999 for column in with_differences(losses).T]
    np.testing.assert_allclose(tally.means, expected, rtol=1e-12)


def test_intervals_of_a_comparison_say_how_they_were_made():
    y, p = models(n=60, noise=(0.5, 0.6))
    for method, how in (("moments", "t"), ("bootstrap", "bootstrap"), ("permutation",) * 2):
        comparison = vx.compare(y, p, rule="brier", method=method, bootstrap=100, confidence=0.9)
        found = comparison.difference("m0", "m1")
        assert (found.interval.method, found.interval.confidence, found.interval.caution) == (how, 0.9, "")
        turned = comparison.difference("m1", "m0").interval
        assert (turned.low, turned.high, turned.method) == (-found.interval.high, -found.interval.low, how)
        assert comparison.models["brier"][0].skill_interval.caution == "there is no reference"
    few = vx.compare(y[:6], {name: q[:6] for name, q in p.items()}, rule="brier").difference("m0", "m1")
    assert few.interval.caution == "only 6 independent units"
    p["m0"][0], y[0] = [0.0, 0.5, 0.5], 0
    infinite = vx.compare(y, p, rule="log_score").difference("m0", "m1").interval
    assert (infinite.defined, infinite.caution) == (False, "some losses are infinite")


def test_intervals_of_means_stay_in_the_range_of_the_rule():
    rng = np.random.default_rng(4)
    y, who = rng.integers(0, 2, 12), np.arange(12) // 4
    p = {"a": np.clip(np.where(y == 1, 0.95, 0.05) + rng.normal(0, 0.1, 12), 0.01, 0.99), "b": rng.random(12)}
    found = vx.compare(y, p, rule="brier", groups=who)
    card = vx.evaluate(y, p["a"], groups=who)
    own = {model.name: model.interval for model in found.models["brier"]}["a"]
    assert 0 < own.low < own.high <= 2
    assert list(own) == pytest.approx(list(card.scores["brier"].interval))
    apart = vx.compare({"a": y[:2], "b": y}, {"a": p["a"][:2], "b": p["b"]}, rule="brier")
    assert all(model.interval.low >= 0 and model.interval.high <= 2 for model in apart.models["brier"])


@pytest.mark.parametrize("groups", [None, np.arange(300) // 10], ids=["rows", "groups"])
def test_models_that_hardly_ever_fail_carry_a_caution(groups):
    """In the 22 % of samples without a surprise, a reckless model led one of the same log score."""
    y, p = np.ones(300, int), {"a": np.full(300, 0.9), "b": np.linspace(0.99, 0.9999, 300)}
    found = vx.compare(y, p, rule="log_score", groups=groups)
    said = "the most likely class failed in none of 300 rows: what failures cost is hardly known"
    assert found.difference("a", "b").interval.caution == said
    assert found.models["log_score"][0].interval.caution == said
    assert found.verdict.findings[0].caution == said
    assert said in str(found)
    assert vx.evaluate(y, p["b"], groups=groups).scores["brier"].interval.caution == said
    # Nothing to say of decisions, or with enough failures.
    y[::40] = 0
    assert (
        "failed"
        not in vx.compare(y, p, rule="log_score", groups=groups).difference("a", "b").interval.caution
    )
    assert "failed" not in vx.compare(y, p, rule="zero_one").difference("a", "b").interval.caution


def test_traits_of_a_row_are_what_they_are_called():
    y, p = np.array([0, 2]), np.array([[0.0, 0.5, 0.5], [0.125, 0.125, 0.75]])
    part = Part.divisible({"a": vx.Forecasts(y, p)}, None, {}, None)
    right, overconfidence, sharpness, ruled_out, distance = (
        column.tolist() for column in trait_rows(part, "a")
    )
    assert (right, overconfidence, sharpness) == ([0, 1], [0.5, -0.25], [0.5, 0.59375])
    assert (ruled_out, distance) == ([1, 0], [1, 0])


def test_outcomes_are_ruled_out_below_the_limit_only():
    limit = RULED_OUT_BELOW
    p_true = np.array([0.0, 5e-324, np.nextafter(limit, 0), limit, np.nextafter(limit, 1), 1.0])
    assert FORMULAS[3].formula(RowStats(np, 2, p_true=p_true)).tolist() == [1, 1, 1, 0, 0, 0]


def test_compiled_sums_of_columns_and_pairs_are_exact(change):
    """Far from zero, in order of size, with weights, against sums of 30 digits."""
    change(compiled_from=1, compiled_at_once=1)
    rng = np.random.default_rng(0)
    losses = np.sort(rng.exponential(1, (3000, 3)), axis=0) + np.array([0, 1000, 5])
    weights = rng.random(3000)
    for w in (None, weights, np.where(np.arange(3000) < 2990, 0, weights)):
        found = PairedTally(3).update(losses, w)
        own = [Fraction(1)] * 3000 if w is None else list(map(Fraction, w.tolist()))
        columns = [list(map(Fraction, column)) for column in losses.T.tolist()]
        columns += [[x - z for x, z in zip(columns[a], columns[b], strict=True)] for a, b in all_pairs(3)]
        means = [sum(map(mul, own, column)) / sum(own) for column in columns]
        assert found.means.tolist() == pytest.approx(list(map(float, means)), rel=1e-14)
        m2 = [
            float(sum(u * (x - mean) ** 2 for u, x in zip(own, column, strict=True)))
            for column, mean in zip(columns, means, strict=True)
        ]
        assert found.moments.m2[1:].tolist() == pytest.approx(m2, rel=1e-11)
