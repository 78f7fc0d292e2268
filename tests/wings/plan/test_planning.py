"""How many rows: against the power of t tests by statsmodels, brute force, and what pilots say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2, kurtosis, nct, norm

import verax as vx
from verax.inference.sequences import SHARES, STAKES
from verax.inference.sizes import Goal, MeanSpread, Sharing, rows_until_decided

RNG = np.random.default_rng(5)
N = 200
Y = RNG.integers(0, 3, N)
P = 0.2 * np.eye(3)[Y] + 0.8 * RNG.dirichlet(np.ones(3), N)
Q = 0.8 * P + 0.2 * RNG.dirichlet(np.ones(3), N)
MODELS = {"p": P, "q": Q}
GROUPS = np.arange(N) // 5
GAPS = vx.brier.samples(Y, P) - vx.brier.samples(Y, Q)


def freedom_of(x):
    """The degrees of freedom of a variance of rows, halved where tails are heavy."""
    n = len(x)
    found = min(n - 1, 2 * n / (kurtosis(x, fisher=False) - 1 + 2 / n))
    return found / 2 if found < 0.8 * (n - 1) else found


# statsmodels 0.14, TTestPower.solve_power, for effects in units of the standard deviation.
@pytest.mark.parametrize(
    ("effect", "power", "two_sided", "one_sided"),
    [
        (0.1, 0.8, 786.809, 619.611),
        (0.2, 0.9, 264.614, 215.456),
        (0.3, 0.8, 89.149, 70.068),
        (0.5, 0.9, 43.995, 35.653),
        (1.0, 0.9, 12.585, 10.081),
    ],
)
def test_sizes_are_those_of_statsmodels(effect, power, two_sided, one_sided):
    for sides, wanted in ((2, two_sided), (1, one_sided)):
        goal = Goal(effect, 0.05, power, sides)
        assert goal.units(MeanSpread.at_most(1.0)) == math.ceil(wanted)
    # Without a pilot, and from one whose spread is known.
    known = MeanSpread(0.1, 99.0, 100, certainty=math.inf)
    assert Goal(effect, 0.05, power).units(known) == math.ceil(two_sided)


def test_power_is_that_of_statsmodels():
    found = [Goal(0.2, 0.05, None).power_at(MeanSpread.at_most(1.0), n) for n in (20, 50, 200)]
    assert found == pytest.approx([0.13595628876736887, 0.2835924146674735, 0.8036666605857853], abs=1e-7)
    # Where the distribution is replaced by a normal one it does not jump.
    near = [Goal(0.02, 0.05, None).power_at(MeanSpread.at_most(1.0), n) for n in (10_000, 10_002)]
    assert near[0] == pytest.approx(near[1], abs=2e-4)


def test_a_pilot_gives_its_spread():
    found = vx.plan(Y, MODELS, rule="brier", difference=0.01)
    deviation = GAPS.std(ddof=1)
    freedom = freedom_of(GAPS)
    assert found.pilot.freedom == pytest.approx(freedom)
    # Julious and Owen: the quantile of the noncentral t distribution in place of the sum of normal ones.
    quantile = nct.ppf(0.9, freedom, norm.ppf(0.975))
    assert found.rows == pytest.approx((quantile * deviation / 0.01) ** 2, rel=0.002, abs=3)
    assert found.power_at(found.rows) >= 0.9 > found.power_at(found.rows - 1)
    assert found.more_rows == found.rows - N
    assert found.line.rows_low < found.rows < found.line.rows_high
    # The same from the result of a comparison, and in either direction.
    comparison = vx.compare(Y, MODELS, rule=["log_score", "brier"])
    same = vx.plan(comparison, rule="brier", models=("q", "p"), difference=0.01)
    quantile = nct.ppf(0.9, N - 1, norm.ppf(0.975))
    assert same.rows == pytest.approx((quantile * deviation / 0.01) ** 2, rel=0.002, abs=3)
    assert "normal distribution" in repr(same)
    seen = vx.plan(comparison, rule="brier")
    assert seen.goal.size == pytest.approx(abs(GAPS.mean()))
    assert "uncertain itself" in repr(seen)


def test_the_range_is_that_of_a_variance():
    low, high = MeanSpread(0.2, 30.0, 31).range(0.95)
    assert low.error == pytest.approx(0.2 * math.sqrt(30 / chi2.ppf(0.975, 30)))
    assert high.error == pytest.approx(0.2 * math.sqrt(30 / chi2.ppf(0.025, 30)))


def test_the_range_allows_for_heavy_tails():
    found = vx.plan(Y, MODELS, rule="brier", difference=0.01)
    freedom = freedom_of(GAPS)
    spread = MeanSpread.at_most(GAPS.std(ddof=1) * math.sqrt(freedom / chi2.ppf(0.025, freedom)))
    assert found.line.rows_high == found.goal.units(spread)
    # Weights are those of the distribution, and groups are units themselves.
    double = vx.plan(np.r_[Y, Y], {k: np.r_[p, p] for k, p in MODELS.items()}, rule="brier", difference=0.01)
    weighted = vx.plan(Y, MODELS, rule="brier", difference=0.01, weights=np.full(N, 2.0))
    assert double.pilot.spread.certainty == pytest.approx(2 * freedom, rel=2e-2)
    assert weighted.pilot.spread.certainty == pytest.approx(freedom)
    grouped = vx.plan(Y, MODELS, rule="brier", difference=0.01, groups=GROUPS)
    sums = np.bincount(GROUPS, GAPS - GAPS.mean())
    own = 40 * (sums**4).sum() / (sums**2).sum() ** 2
    assert grouped.pilot.spread.certainty == pytest.approx(min(39, 80 / (own - 1 + 2 / 40)))
    # A group without weight is none.
    light = vx.plan(Y, MODELS, rule="brier", difference=0.01, groups=GROUPS, weights=1.0 * (GROUPS > 0))
    kept = GROUPS > 0
    fewer = {name: p[kept] for name, p in MODELS.items()}
    without = vx.plan(Y[kept], fewer, rule="brier", difference=0.01, groups=GROUPS[kept])
    assert light.pilot.spread.certainty == pytest.approx(without.pilot.spread.certainty, rel=1e-12)
    rare = GAPS * 0
    rare[0] = 1.0
    p = np.where(rare[:, None] > 0, np.roll(P, 1, axis=1), P)
    assert "heavy tails: a few of 200 rows" in repr(
        vx.plan(Y, {"a": P, "b": p}, rule="brier", difference=0.1)
    )


def test_the_width_of_an_interval():
    card = vx.evaluate(Y, P, rules=["brier"])
    found = vx.plan(card, width=0.01)
    wanted = (1.96 * vx.brier.samples(Y, P).std(ddof=1) / 0.01) ** 2
    assert found.rows == pytest.approx(wanted, rel=0.01, abs=3)
    assert found.half_width_at(found.rows) <= 0.01 < found.half_width_at(found.rows - 1)
    assert vx.plan(Y, P, rule="brier", width=0.01).rows == found.rows
    # A share varies as shares do.
    share = vx.evaluate(Y, P).accuracy
    accuracy = vx.plan(Y, P, rule="accuracy", width=0.02)
    assert accuracy.rows == pytest.approx(1.96**2 * share * (1 - share) / 0.02**2, rel=0.04, abs=3)


def test_the_two_best_of_several_models_are_planned():
    third = 0.5 * P + 0.5 * RNG.dirichlet(np.ones(3), N)
    comparison = vx.compare(Y, {"worst": third, **MODELS}, rule=["log_score", "brier"])
    losses = {name: vx.brier(Y, p) for name, p in (("worst", third), *MODELS.items())}
    assert set(vx.plan(comparison, rule="brier").pilot.pair) == set(sorted(losses, key=losses.get)[:2])
    assert vx.plan(comparison).pilot.what.startswith("log_score, ")


def test_grades_and_their_confidences_are_planned():
    right, sure = (RNG.random((2, N)) < 0.7), RNG.random(N)
    card = vx.evaluate_grades(1.0 * right[0], sure)
    found = vx.plan(card, width=0.02)
    share = right[0].mean()
    assert found.rows == pytest.approx(1.96**2 * share * (1 - share) / 0.02**2, rel=0.02)
    assert vx.plan(card, rule="grade", width=0.02).rows == found.rows
    assert vx.plan(card, rule="brier", width=0.02).rows == vx.plan(card.card, rule="brier", width=0.02).rows
    with pytest.raises(vx.InputError, match="must be in the pilot, which has grade; it is 'brier'"):
        vx.plan(vx.evaluate_grades(1.0 * right[0]), rule="brier", width=0.02)


@pytest.mark.parametrize(("outlying", "cautious"), [(9, False), (8, True)])
def test_tails_are_heavy_where_a_few_rows_make_the_spread(outlying, cautious):
    """Of n losses of 0 and 1 with k of 1 the kurtosis is 1/s - 3 with s = k (n - k) / n^2."""
    n = 100
    s = outlying * (n - outlying) / n**2
    assert (1 / s - 3 - 3 > n / 15) == cautious
    y = np.r_[np.ones(outlying, int), np.zeros(n - outlying, int)]
    found = vx.plan(y, np.tile([1.0, 0.0], (n, 1)), rule="zero_one", width=0.1)
    assert ("heavy tails" in repr(found)) == cautious


def test_a_margin_is_tested_on_one_side():
    found = vx.plan(Y, MODELS, rule="brier", margin=0.02, difference=0.005)
    pilot = MeanSpread(GAPS.std(ddof=1) / math.sqrt(N), N - 1, N, freedom_of(GAPS))
    assert found.rows == Goal(0.015, 0.05, 0.9, 1).units(pilot)
    with pytest.raises(vx.InputError, match="must be below the margin"):
        vx.plan(Y, MODELS, rule="brier", margin=0.02, difference=0.02)


def test_groups_are_planned_as_they_are():
    found = vx.plan(Y, MODELS, rule="brier", difference=0.01, groups=GROUPS)
    gap = vx.compare(Y, MODELS, rule="brier", groups=GROUPS).difference("p", "q")
    assert found.pilot.freedom <= 39
    spread = MeanSpread(gap.standard_error, gap.freedom, 40, found.pilot.freedom)
    assert found.groups == Goal(0.01, 0.05, 0.9).units(spread)
    assert found.rows == 5 * found.groups
    assert "40 groups of the pilot" in repr(found)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 1.0])
def test_more_rows_per_group_help_as_far_as_they_differ(correlation):
    size, groups = 6, 50
    variance = correlation + (1 - correlation) / size
    sharing = Sharing.of(MeanSpread(math.sqrt(variance / groups), groups - 1, groups), 1.0, groups * size)
    assert sharing.correlation == pytest.approx(correlation)
    assert sharing.spread(size).error_at(groups) == pytest.approx(math.sqrt(variance / groups))
    goal = Goal(0.35, 0.05, 0.9)
    enough = sharing.rows_per_group(goal, groups)
    if correlation < 1:
        assert goal.reached(sharing.spread(enough), groups)
        assert not goal.reached(sharing.spread(enough - 1), groups)
    else:
        assert math.isinf(enough)


def test_rows_per_group_change_the_number_of_groups():
    few, many = (
        vx.plan(Y, MODELS, rule="brier", difference=0.01, groups=GROUPS, rows_per_group=m) for m in (2, 20)
    )
    assert few.groups > many.groups
    assert few.rows == 2 * few.groups
    with pytest.raises(vx.InputError, match="needs a pilot with groups"):
        vx.plan(Y, MODELS, rule="brier", difference=0.01, rows_per_group=3)


def test_without_a_pilot_the_rule_bounds_the_spread():
    assert vx.plan(rule="rps", width=0.05).rows == Goal(0.05, 0.05, None).units(MeanSpread.at_most(0.5))
    found = vx.plan(rule="brier", difference=0.5)
    assert found.rows == Goal(0.5, 0.05, 0.9).units(MeanSpread.at_most(math.sqrt(4 - 0.25)))
    assert "no pilot" in repr(found)
    with pytest.raises(vx.InputError, match="has none"):
        vx.plan(rule="log_score", difference=0.1)
    with pytest.raises(vx.InputError, match="largest that is possible"):
        vx.plan(rule="zero_one", difference=1.5)


def test_a_confidence_sequence_takes_about_as_many_rows_as_said():
    rng, stops = np.random.default_rng(2), []
    for _ in range(25):
        sequence = vx.ConfidenceSequence("brier", n_classes=3)
        while not sequence.decided:
            sequence.update_differences(np.clip(rng.normal(0.05, 0.2, 20), -2, 2))
        stops.append(sequence.n_rows)
    said = rows_until_decided(STAKES / 2, SHARES, 0.05, 0.2, 0.05)
    assert said == pytest.approx(np.mean(stops), rel=0.2)


def test_a_margin_of_a_comparison():
    from scipy import stats

    found = vx.compare(Y, MODELS, rule="brier", margin=0.1)
    tests = {(test.model, test.against): test for test in found.margin_tests}
    for pair, gaps in ((("p", "q"), GAPS), (("q", "p"), -GAPS)):
        student = stats.ttest_1samp(gaps, 0.1, alternative="less")
        t, skew = student.statistic, stats.skew(gaps) / math.sqrt(len(gaps) - 1)
        hall = stats.t.cdf(t + skew * (t * t / 3 + 1 / 6) + skew**2 * t**3 / 27, len(gaps) - 1)
        assert tests[pair].p_value == pytest.approx(max(student.pvalue, hall))
        assert tests[pair].bound >= student.confidence_interval(0.95).high * (1 - 1e-9)
        assert found.difference(*pair).not_worse(tests[pair].bound) == pytest.approx(0.05)
    gap = found.difference("p", "q")
    assert gap.alike(0.1) == pytest.approx(max(test.p_value for test in tests.values()))
    assert "worse by less than 0.1" in repr(found)
    # With groups the bound is where the p-value is five percent, skewness and all.
    grouped = vx.compare(Y, MODELS, rule="brier", margin=0.1, groups=GROUPS)
    gap, test = grouped.difference("p", "q"), grouped.margin_tests[0]
    assert gap.not_worse(test.bound) == pytest.approx(0.05)
    three = vx.compare(Y, {**MODELS, "r": P}, rule="brier", margin=0.1)
    assert all(test.p_adjusted == pytest.approx(min(1, 3 * test.p_value)) for test in three.margin_tests)
    # No row differs: if 5 % did, by the whole range of 2, that had a small chance.
    same = vx.compare(Y, {"p": P, "r": P}, rule="brier", margin=0.1).margin_tests[0]
    assert same.p_value == pytest.approx(0.95**N)
    with pytest.raises(vx.InputError, match="units of one rule"):
        vx.compare(Y, MODELS, margin=0.1)


def test_a_comparison_says_what_would_decide_it():
    near = {"p": P, "near": 0.97 * P + 0.03 * RNG.dirichlet(np.ones(3), N)}
    found = vx.compare(Y, near, rule="brier")
    (said,) = found.undecided
    rows = vx.plan(found).rows
    assert float(said.split("about ")[1].split(" more")[0].replace(",", "")) == pytest.approx(
        rows - N, rel=0.1
    )
    assert f"Next: {said[0].lower()}{said[1:]}" in repr(found)
    assert vx.compare(Y, {"p": P, "flat": np.full((N, 3), 1 / 3)}, rule="brier").undecided == []
    assert vx.compare(Y, {"p": P, "same": P}, rule="brier").undecided == []


@pytest.mark.parametrize("rule", ["brier", "log_score"])
def test_models_within_the_practical_size_are_equal_for_all_purposes(rule):
    """No number of rows is worth a gap in the seventh digit."""
    noise = np.random.default_rng(5).normal(size=P.shape)
    for size, said in (
        (1e-6, "equal for all purposes"),
        (1e-3, "the gap seen is below 0.01% of the mean loss"),
    ):
        again = P * np.exp(size * noise)
        found = vx.compare(Y, {"p": P, "again": again / again.sum(axis=1, keepdims=True)}, rule=rule)
        gap, mean = found.difference("p", "again"), found.models[rule][0].mean
        assert 1e-12 < abs(gap.difference) < 1e-4 * mean
        assert gap.p_value > 0.05
        (sentence,) = found.undecided
        assert said in sentence
        assert "more rows" not in sentence
        assert (max(map(abs, gap.interval)) < 1e-4 * mean) == ("equal" in sentence)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "`rule` must be given where there is no pilot"),
        ({"y": Y, "forecasts": P, "difference": 0.1}, "must have two models"),
        ({"y": Y, "forecasts": MODELS, "difference": 0.1, "width": 0.1}, "cannot be combined"),
        ({"y": Y, "forecasts": MODELS, "difference": 0}, "must be a number other than 0"),
        ({"y": Y, "forecasts": MODELS, "power": 90}, "must lie between 0 and 1"),
        ({"y": Y, "forecasts": {"a": P, "b": P}}, "their losses are identical"),
        ({"y": Y, "forecasts": MODELS, "models": ("p", "x")}, "must be two of 'p' and 'q'"),
        ({"y": vx.compare(Y, MODELS), "rule": "rps"}, "which has brier and log"),
        ({"y": vx.compare(Y, MODELS), "groups": GROUPS}, "cannot be used where the pilot is a result"),
        ({"y": vx.evaluate(Y, P), "rule": "nonsense", "width": 0.1}, "must be in the pilot"),
    ],
)
def test_what_cannot_be_planned_is_refused(options, message):
    with pytest.raises(vx.InputError, match=message):
        vx.plan(**options)


def test_the_plan_is_drawn():
    pytest.importorskip("matplotlib")
    axes = vx.plan(Y, MODELS, rule="brier", difference=0.01).plot().axes[0]
    assert axes.get_ylabel() == "power"
    assert vx.plan(Y, P, rule="brier", width=0.01).plot().axes[0].get_ylabel() == "half-width of the interval"


# ---- what the pilot leaves open ------------------------------------------------------------------


@pytest.mark.parametrize("freedom", [6.0, 19.0, 150.0])
@pytest.mark.parametrize("sides", [1, 2])
def test_power_is_averaged_over_the_variance_of_pilots(freedom, sides):
    """By quadrature over the chi-square distribution of the variance, for many rows."""
    goal, spread = Goal(0.05, 0.05, 0.9, sides), MeanSpread(1 / math.sqrt(freedom + 1), freedom, freedom + 1)
    units = goal.units(spread)
    limit = norm.ppf(1 - 0.05 / sides)
    u = (np.arange(4000) + 0.5) / 4000
    true = np.sqrt(freedom / chi2.ppf(u, freedom))
    assert norm.cdf(0.05 * math.sqrt(units) / true - limit).mean() == pytest.approx(0.9, abs=2e-3)
    assert goal.mean_power_at(spread, units) >= 0.9 > goal.mean_power_at(spread, units - 1)
    # For four pilots of five: in a fifth of them the true spread is larger than this one.
    assured = goal.units(spread.exceeded_in(0.2))
    reached = norm.cdf(0.05 * math.sqrt(assured) / true - limit) >= 0.9 - 1e-3
    assert reached.mean() == pytest.approx(0.8, abs=0.02)


def test_sizes_are_those_of_the_published_factors():
    """Factors on the size for power 0.9 and for 80 % of pilots, by the degrees of freedom."""
    for freedom, mean, assured in ((9, 1.340, 1.673), (29, 1.094, 1.290), (99, 1.026, 1.138)):
        goal, plain = Goal(0.02, 0.05, 0.9), Goal(0.02, 0.05, 0.9).units(MeanSpread.at_most(1.0))
        spread = MeanSpread(1 / math.sqrt(freedom + 1), freedom, freedom + 1)
        assert goal.units(spread) / plain == pytest.approx(mean, abs=0.002)
        assert goal.units(spread.exceeded_in(0.2)) / plain == pytest.approx(assured, abs=0.002)


def test_both_numbers_are_told_and_assurance_swaps_them():
    found, sure = (vx.plan(Y, MODELS, rule="brier", difference=0.01, assurance=a) for a in (None, 0.8))
    assert (found.rows, sure.rows) == (found.rows_on_average, found.rows_assured)
    assert (sure.rows_on_average, sure.rows_assured) == (found.rows, sure.rows)
    assert found.rows < sure.rows
    told = f"{found.rows:,} rows on average over what the pilot leaves open ({sure.rows:,} for 80% of such "
    assert told in str(found.verdict)
    assert f"{sure.rows:,} rows for 80% of such pilots ({found.rows:,} on average)" in str(sure.verdict)
    assert vx.plan(Y, MODELS, rule="brier", difference=0.01, assurance=0.95).rows > sure.rows
    wide, wider = (vx.plan(Y, P, rule="brier", width=0.01, assurance=a) for a in (None, 0.8))
    assert wide.rows < wider.rows == wide.rows_assured
    with pytest.raises(vx.InputError, match="`assurance` must lie between 0 and 1"):
        vx.plan(Y, MODELS, rule="brier", difference=0.01, assurance=80)
    with pytest.raises(vx.InputError, match="must be left out where there is no pilot"):
        vx.plan(rule="brier", difference=0.5, assurance=0.8)


def test_groups_of_unequal_size_have_fewer_degrees_of_freedom():
    sizes = np.repeat([1, 9], [30, 10])
    groups = np.repeat(np.arange(40), sizes)[:N]
    some = {name: p[: len(groups)] for name, p in MODELS.items()}
    found = vx.plan(Y[: len(groups)], some, rule="brier", difference=0.02, groups=groups)
    w = np.bincount(groups).astype(float)
    assert found.pilot.freedom <= (w**2).sum() ** 2 / (w**4).sum() - 1 + 1e-9
    assert found.pilot.freedom < 15


def test_small_pilots_and_spreads_of_one_row_are_told():
    small = vx.plan(Y[:7], {k: p[:7] for k, p in MODELS.items()}, rule="brier", difference=0.01)
    assert small.pilot.freedom < 8
    assert "degrees of freedom of its variance: " in repr(small)
    assert "degrees of freedom" in small.verdict.findings[0].caution
    p = np.where(np.arange(N)[:, None] == 0, np.roll(P, 1, axis=1), P)
    carried = vx.plan(Y, {"a": P, "b": p}, rule="brier", difference=0.1)
    assert math.isnan(carried.rows)
    assert "One row of the pilot carries the spread, so no single number holds." in str(carried.verdict)
    assert carried.line.rows_low < carried.line.rows_high
    assert carried.to_dict()["rows"] is None


@pytest.mark.parametrize("draw", ["normal", "t5", "zeros"])
def test_plans_of_pilots_reach_their_power(draw):
    """800 pilots, for a test of many rows; the Monte Carlo error of the mean power is 0.4 points."""
    rng, n, d = np.random.default_rng(8), 100, 0.02
    powers = []
    for _ in range(800):
        x = {
            "normal": lambda: rng.normal(size=n),
            "t5": lambda: rng.standard_t(5, n) / math.sqrt(5 / 3),
            "zeros": lambda: rng.normal(size=n) * (rng.random(n) < 0.5) * math.sqrt(2),
        }[draw]()
        spread = MeanSpread(x.std(ddof=1) / math.sqrt(n), n - 1, n, freedom_of(x))
        powers.append(norm.cdf(d * math.sqrt(Goal(d, 0.05, 0.9).units(spread)) - norm.ppf(0.975)))
    assert 0.885 < np.mean(powers) < 0.92
