"""Intervals of shares and of means of losses: against an independent implementation, and at their edges.

Expected numbers without another source come from a reference implementation in NumPy and SciPy, which solves
the same equations with vectorised bisection.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import verax as vx
from verax.inference.effects import GroupEffects, cr2, mean_freedom, satterthwaite
from verax.inference.estimated import MeanEstimate, ShareEstimate, gamma_limits
from verax.inference.shares import clopper_pearson_limits, effective_rows, mid_p_limits, mid_p_value


def over_groups(hits, rows, few=None):
    """A share over groups whose rows have no weights."""
    hits, rows = np.asarray(hits, float), np.asarray(rows, float)
    return ShareEstimate.over_groups([(hits, rows)], rows.sum(), np.count_nonzero(rows), few)


# ---- rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hits", "rows", "level", "low", "high"),
    [
        (0, 12, 0.05, 0.0, 0.22092219194555585),
        (3, 40, 0.05, 0.01943175193769022, 0.19067743804141177),
        (97.3, 100.5, 0.05, 0.9180530546678167, 0.9913818400200705),
        (291, 300, 0.1, 0.9500639038450291, 0.9832363891541828),
        (0.4, 0.9, 0.05, 0.0003378059775182801, 0.9983296666698934),
        (4915, 4916, 0.05, 0.9989971919840555, 0.9999898249933454),
    ],
)
def test_mid_p_limits_are_those_of_the_reference(hits, rows, level, low, high):
    assert mid_p_limits(hits / rows, rows, level / 2) == pytest.approx([low, high], rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("n", [5, 17, 60])
def test_mid_p_limits_solve_their_equation(n):
    counts = np.arange(n + 1)
    low, high = mid_p_limits(counts / n, n, 0.05)
    beyond = stats.binom.sf(counts, n, low) + stats.binom.pmf(counts, n, low) / 2
    below = stats.binom.cdf(counts - 1, n, high) + stats.binom.pmf(counts, n, high) / 2
    np.testing.assert_allclose(beyond[1:], 0.05, rtol=1e-9)
    np.testing.assert_allclose(below[:-1], 0.05, rtol=1e-9)
    # Of no rows, or of all, the chance is that of no other count: half of it, with half of the level.
    assert ((1 - high[0]) ** n, low[-1] ** n) == pytest.approx((0.1, 0.1))
    assert (low[0], high[-1]) == (0, 1)


def test_no_tail_misses_more_often_than_the_whole_level():
    """Wilson's intervals miss in one tail in up to 16 % of samples."""
    for n in (10, 30, 100, 300):
        counts = np.arange(n + 1)
        low, high = mid_p_limits(counts / n, n, 0.025)
        for share in np.linspace(0.8, 0.999, 80):
            chance = stats.binom.pmf(counts, n, share)
            assert chance[share > high].sum() <= 0.05
            assert chance[share < low].sum() <= 0.05
        assert (clopper_pearson_limits(counts / n, n, 0.025)[0] <= low).all()


def test_limits_of_clopper_and_pearson_are_those_of_scipy():
    for hits, n in ((0, 9), (3, 40), (40, 40), (199, 200)):
        theirs = stats.binomtest(hits, n).proportion_ci(method="exact")
        ours = clopper_pearson_limits(hits / n, n, 0.025)
        assert tuple(ours) == pytest.approx(tuple(theirs), abs=1e-9)


def test_a_limit_is_where_the_p_value_is_the_level():
    for hits, n in ((3, 40), (0, 12), (97.3, 100.5)):
        for limit in mid_p_limits(hits / n, n, 0.025):
            if 0 < limit < 1:
                assert mid_p_value(hits / n, n, limit) == pytest.approx(0.05)
    grouped = over_groups([80, 77, 90, 85, 60], [100] * 5).shares
    for limit in grouped.limits(0.025):
        assert grouped.p_value(float(limit)) == pytest.approx(0.05, rel=1e-5)
    assert 0 < grouped.p_value(1e-4) < 1e-2
    assert grouped.p_value(float(grouped.value)) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("n", [1e-9, 0.3, 1e6, 1e12, 1e20, 1e300])
def test_limits_of_any_number_of_rows_hold_the_share(n):
    for share in (1e-6, 0.3, 0.5, 0.999):
        low, high = mid_p_limits(share, n, 0.025)
        assert 0 <= low <= share <= high <= 1
        if n * share * (1 - share) >= 1e6:
            half = 1.959963984540054 * math.sqrt(share * (1 - share) / n)
            assert (share - low, high - share) == pytest.approx((half, half), rel=0.01, abs=1e-15)


def test_undefined_shares_have_no_limits():
    assert np.isnan(mid_p_limits([math.nan, 0.5], [10, 0], 0.025)).all()
    # A share that rounding put beyond one has the limits of one.
    assert mid_p_limits(1 + 1e-15, 10, 0.025)[1] == 1


def test_effective_rows_are_the_smaller_of_both_numbers():
    weights, right = np.arange(1, 11.0), np.array([1, 1, 1, 0, 1, 1, 1, 0, 1, 1])
    share = np.average(right, weights=weights)
    kish = weights.sum() ** 2 / (weights @ weights)
    variance = ((weights * (right - share)) ** 2).sum() / weights.sum() ** 2
    assert effective_rows(share, kish, variance) == pytest.approx(7.857142857142857)
    # The errors that were seen have the lightest weights: the variance alone would be far too small.
    light = np.average(np.arange(10) > 0, weights=weights)
    variance = ((weights * ((np.arange(10) > 0) - light)) ** 2).sum() / weights.sum() ** 2
    assert light * (1 - light) / variance > 2 * kish
    assert effective_rows(light, kish, variance) == kish
    few = ShareEstimate.of_rows(light, 4.0, variance, 60)
    assert few.interval(0.95).caution == "the share rests on few heavy rows: 60 tell as much as 4"


# ---- groups --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hits", "rows", "few", "low", "high", "effective", "freedom"),
    [
        ([95, 99, 88, 97], [100] * 4, None, 0.7419761956962536, 0.9983980930643349, 15.894737402871353, 3),
        ([100] * 8, [100] * 8, None, 0.9250670669373227, 1.0, 38.4615383684335, math.inf),
        (
            *([3, 1, 9, 40, 2, 7], [4, 1, 12, 60, 2, 9], None),
            *(0.5254819502649102, 0.8459005808690292, 30.129580316177595, 5),
        ),
        (
            *([198] * 9 + [190], [200] * 10, 0.05),
            *(0.9710224635140715, 0.9943344523220455, 424.5733006825927, 9.069642382834337),
        ),
        (
            *([20, 0, 13, 55], [20.5, 3.25, 17, 60], 0.4),
            *(0.07848860222214646, 0.9999999766411696, 1.4338282421894948, 2.19878626452145),
        ),
        (
            *([988] * 11 + [990], [1000] * 12, None),
            *(0.9839357524351774, 0.9915080380065849, 3178.240648455297, 13563.719962949006),
        ),
    ],
)
def test_shares_over_groups_are_those_of_the_reference(hits, rows, few, low, high, effective, freedom):
    found = over_groups(hits, rows, few)
    assert found.interval(0.95) == pytest.approx((low, high), rel=1e-8)
    assert found.shares.rows(0.025) == pytest.approx(effective, rel=1e-6)
    assert found.shares.freedom == pytest.approx(min(freedom, 1e9), rel=1e-6)


def test_satterthwaite_is_that_of_the_matrix():
    rng = np.random.default_rng(0)
    share, variances, factors = rng.dirichlet(np.ones(7)), rng.random(7), rng.random(7)
    total = variances.sum()
    covariance = np.diag(variances) - np.outer(share, variances) - np.outer(variances, share)
    covariance += total * np.outer(share, share)
    trace = (factors * np.diag(covariance)).sum()
    expected = trace**2 / (np.outer(factors, factors) * covariance**2).sum()
    found = satterthwaite(*(x[:, None] for x in (share, variances, factors)))
    assert found == pytest.approx(expected)


def test_cr2_is_unbiased_where_rows_are_independent():
    rng = np.random.default_rng(1)
    rows = np.array([40.0, 3, 9, 1, 1, 20])
    values = [cr2((np.sqrt(rows) * rng.normal(size=6))[:, None], rows[:, None])[0] for _ in range(20000)]
    assert np.mean(values) == pytest.approx(1 / rows.sum(), rel=0.03)
    assert mean_freedom(np.full((9, 1), 4.0)) == pytest.approx(8)


@pytest.mark.parametrize("heaviest", [1.0, 2.0**40, 2.0**300])
def test_a_heavy_group_does_not_cancel(heaviest):
    rng = np.random.default_rng(1)
    weight, mean = np.r_[heaviest, rng.random(5) + 0.5], rng.random(6)
    found = cr2((weight * mean)[:, None], weight[:, None])[0]
    light, rest = weight[1:] / weight.sum(), weight[1:].sum() / weight.sum()
    whole = np.average(mean, weights=weight)
    gap = light @ (mean[1:] - whole)
    expected = gap**2 / rest + ((light * (mean[1:] - whole)) ** 2 / (1 - light)).sum()
    assert found == pytest.approx(expected, rel=1e-7)


def test_groups_of_one_row_are_rows():
    right = np.r_[np.ones(80), np.zeros(20)]
    assert over_groups(right, np.ones(100)).interval(0.95) == pytest.approx((0.7131, 0.8698), abs=2e-3)


def test_groups_without_rows_do_not_count():
    some = over_groups([80, 77, 90], [100] * 3)
    assert over_groups([80, 0, 77, 90], [100, 0, 100, 100]).interval(0.95) == some.interval(0.95)


def test_equal_groups_have_an_interval():
    low, high = over_groups([90] * 6, [100] * 6).interval(0.95)
    assert low < 0.88 < 0.92 < high


def test_what_is_assumed_of_groups_can_be_stated():
    hits, rows = [198] * 9 + [190], [200] * 10
    widths = [np.ptp(over_groups(hits, rows, few).interval(0.95)) for few in (0, 0.05, 0.2, 0.6, 1, "unseen")]
    assert widths == sorted(widths)
    usual = over_groups(hits, rows)
    assert usual.interval(0.95) == over_groups(hits, rows, 0.2).interval(0.95)
    how = "mid-P over 10 groups (of one kind; errors of a group alike up to 0.2)"
    assert usual.interval(0.95).method == how
    assert usual.guaranteed(0.95).method == how.replace("mid-P", "Clopper-Pearson")
    assert "a quarter of a group may be unlike" in over_groups(hits, rows, "unseen").method
    # Repeats of a question resemble each other more than rows of a site.
    assert "alike up to 1)" in over_groups([3, 3, 0, 3], [3] * 4).method


def test_cautions_of_shares_over_groups():
    def caution(hits, rows, few=None):
        return over_groups(hits, rows, few).caution

    assert caution([9] * 9, [10] * 9) == "only 9 groups"
    few = "few independent errors: it is assumed that errors of a group are alike up to 0.2"
    assert caution([100] * 11 + [99], [100] * 12) == few
    alike = caution([200] * 9 + [0], [200] * 10)
    assert alike.startswith("errors of a group are alike by")
    assert alike.endswith("and up to 0.2 is assumed")
    assert caution([180] * 5 + [160] * 5, [200] * 10) == ""
    # With a correlation of one assumed there is nothing more to warn of than few errors.
    assert caution([200] * 9 + [0], [200] * 10, 1.0).startswith("few independent errors")


def test_two_kinds_of_groups_are_no_surer_than_either():
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 12, 600), rng.integers(0, 15, 600)
    p = np.clip(0.5 + rng.normal(size=12)[first] * 0.1 + rng.normal(size=15)[second] * 0.1, 0.05, 0.95)
    y = (rng.random(600) < p).astype(int)
    forecast = np.full(600, 0.6)
    widths = {}
    for name, groups in (("both", [first, second]), ("first", first), ("second", second)):
        interval = vx.evaluate(y, forecast, groups=groups).metric("accuracy").interval
        widths[name] = np.ptp(interval)
    assert widths["both"] > 0.97 * max(widths["first"], widths["second"])
    assert (
        "each of one kind"
        in vx.evaluate(y, forecast, groups=[first, second]).metric("accuracy").interval.method
    )


def test_design_effects_of_many_shares_are_those_of_each():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 30, (9, 40)).astype(float)
    hits = rng.binomial(rows.astype(int), 0.8).astype(float)
    together = GroupEffects.of(hits, rows)
    for t in range(40):
        alone = GroupEffects.of(hits[:, t : t + 1], rows[:, t : t + 1])
        for name in ("anova", "robust", "freedom", "size"):
            assert getattr(together, name)[t] == pytest.approx(getattr(alone, name)[0], rel=1e-12)


def test_one_group_tells_nothing():
    y, p = np.tile([0, 1], 20), np.full(40, 0.6)
    groups = np.zeros(40, int)
    groups[0] = 1
    weights = np.r_[0.0, np.ones(39)]
    card = vx.Tally.of(y, p, groups=groups, weights=weights)._card
    for line in (*card.scores.values(), *card.metrics.values()):
        assert not line.interval.defined
    assert card.metric("accuracy").interval.caution == "there is only one group to learn from"


@pytest.mark.parametrize("weights", [None, "even", "uneven"])
def test_a_card_and_a_comparison_have_one_interval(weights):
    rng = np.random.default_rng(5)
    p, q = rng.dirichlet(np.ones(3), 240), rng.dirichlet(np.ones(3), 240)
    y = (p.cumsum(axis=1) < rng.random((240, 1))).sum(axis=1)
    w = {None: None, "even": np.full(240, 3.0), "uneven": rng.exponential(size=240)}[weights]
    rules = ["brier", "log_score", "zero_one"]
    for groups in (None, np.arange(240) % 13, [np.arange(240) % 13, np.arange(240) // 24]):
        card = vx.evaluate(y, p, weights=w, groups=groups, rules=rules)
        models = vx.compare(y, {"a": p, "b": q}, rule=rules, weights=w, groups=groups).models
        for rule in rules:
            own = next(model for model in models[rule] if model.name == "a").interval
            assert own == pytest.approx(card.scores[rule].interval, rel=1e-10)
            assert own.method == card.scores[rule].interval.method
        # The share of errors is one minus that of right decisions.
        low, high = card.scores["zero_one"].interval
        assert card.metric("accuracy").interval == pytest.approx((1 - high, 1 - low), rel=1e-9)


def test_even_weights_are_no_weights():
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(2), 90)
    y = rng.integers(0, 2, 90)
    for groups in (None, np.arange(90) % 11):
        plain, even = (vx.evaluate(y, p, weights=w, groups=groups) for w in (None, np.full(90, 7.0)))
        for name, line in {**plain.scores, **plain.metrics}.items():
            other = {**even.scores, **even.metrics}[name].interval
            assert other == pytest.approx(line.interval, rel=1e-9)


# ---- means of losses -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mean", "variance", "freedom", "most", "low", "high"),
    [
        (0.3, 0.001, 9, 1.0, 0.23275822830934428, 0.38061304060539364),
        (0.9, 0.001, 9, 1.0, 0.7987868674365819, 0.9582324952475412),
        (0.01, 0.0001, 5, math.inf, 2.4798204887514922e-05, 0.08299547390081181),
        (2.0, 1e-07, 100000.0, math.inf, 1.9993802448259788, 2.000619899900566),
        (1.7, 0.02, 59, 2.0, 1.2565689904791668, 1.9128994912602424),
    ],
)
def test_gamma_limits_are_those_of_the_reference(mean, variance, freedom, most, low, high):
    assert gamma_limits(mean, variance, freedom, 0.95, most) == pytest.approx((low, high), rel=1e-9)


def test_counts_have_the_exact_limits_of_poisson_means():
    """Garwood (1936): so many events have the variance of their number."""
    for events in (1, 7, 40):
        low, high = gamma_limits(float(events), float(events), math.inf, 0.95)
        assert stats.poisson.sf(events - 1, low) == pytest.approx(0.025)
        assert stats.poisson.cdf(events, high) == pytest.approx(0.025)


def test_limits_nearer_to_the_bound_are_turned():
    low, high = gamma_limits(0.1, 0.001, 9, 0.95, 1.0)
    assert gamma_limits(0.9, 0.001, 9, 0.95, 1.0) == pytest.approx((1 - high, 1 - low))
    assert gamma_limits(0.9, 0.001, 9, 0.95)[1] > 0.96


@pytest.mark.parametrize("variance", [1e-3, 1e-9, 1e-20, 1e-250])
def test_many_effective_losses_have_normal_limits(variance):
    low, high = gamma_limits(0.4, variance, math.inf, 0.95)
    half = 1.959963984540054 * math.sqrt(variance)
    assert low <= 0.4 <= high
    assert (0.4 - low, high - 0.4) == pytest.approx((half, half), rel=0.1, abs=1e-15)


def test_losses_that_are_all_at_a_bound_are_a_share_of_none():
    def ends(mean, most):
        return tuple(MeanEstimate(mean, 0.0, 49.0, (0.0, most), 50.0).interval(0.95))

    beyond = 1 - 0.05 ** (1 / 50)
    assert ends(0.0, 2.0) == pytest.approx((0, 2 * beyond))
    assert ends(2.0, 2.0) == pytest.approx((2 - 2 * beyond, 2))
    assert ends(0.0, math.inf) == (0, math.inf)
    equal = MeanEstimate(0.5, 0.0, 49.0, (0.0, 2.0), 50.0).interval(0.95)
    assert tuple(equal) == (0.5, 0.5)
    assert equal.caution == "all losses are equal: how much others differ is not known"


def test_losses_that_may_be_negative_have_t_limits():
    found = MeanEstimate(0.2, 0.04, 9.0, (-math.inf, math.inf), 10.0).interval(0.95)
    assert found == pytest.approx((0.2 - 0.2 * 2.2621571628, 0.2 + 0.2 * 2.2621571628))
    assert found.method == "t"


def test_a_least_loss_that_is_not_zero_is_where_limits_begin():
    moved = MeanEstimate(1.3, 0.001, 9, (1.0, 2.0), 10.0).interval(0.95)
    plain = MeanEstimate(0.3, 0.001, 9, (0.0, 1.0), 10.0).interval(0.95)
    assert moved == pytest.approx([end + 1 for end in plain])


def test_groups_whose_means_are_equal_take_the_variance_of_rows():
    y, p = np.tile([0, 1, 1, 0], 30), np.tile([0.2, 0.9, 0.6, 0.3], 30)
    card = vx.evaluate(y, p, groups=np.arange(120) // 4, rules=["brier"])
    rows = vx.evaluate(y, p, rules=["brier"])
    error, freedom = card.error_of(card.scores["brier"])
    assert error == pytest.approx(rows.error_of(rows.scores["brier"])[0])
    assert freedom == pytest.approx(29)
    assert card.scores["brier"].interval.method == "gamma over 30 groups"
