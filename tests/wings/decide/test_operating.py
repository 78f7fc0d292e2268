"""Rates at thresholds and their curves against scikit-learn, closed formulas and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

import verax as vx
from verax.analyses.rates import COMPARED, RATES

metrics = pytest.importorskip("sklearn.metrics")

RNG = np.random.default_rng(4)
N = 300
P = np.round(RNG.random(N), 2)
Q = np.clip(np.round(P + 0.25 * RNG.normal(size=N), 2), 0, 1)
Y = (RNG.random(N) < P).astype(int)
WEIGHTS = RNG.uniform(0.2, 3, N)
GROUPS = RNG.integers(0, 40, N)
THREE = RNG.dirichlet(np.ones(3), N)
GRADES = np.array([RNG.choice(3, p=row) for row in THREE])


def by_sklearn(y, acts, w=None):
    """All rates from scikit-learn's functions."""
    sens = metrics.recall_score(y, acts, sample_weight=w)
    spec = metrics.recall_score(1 - y, 1 - acts, sample_weight=w)
    positive, negative = metrics.class_likelihood_ratios(y, acts, sample_weight=w)
    return {
        "sensitivity": sens,
        "specificity": spec,
        "ppv": metrics.precision_score(y, acts, sample_weight=w),
        "npv": metrics.precision_score(1 - y, 1 - acts, sample_weight=w),
        "accuracy": metrics.accuracy_score(y, acts, sample_weight=w),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, acts, sample_weight=w),
        "f1": metrics.f1_score(y, acts, sample_weight=w),
        "youden": metrics.balanced_accuracy_score(y, acts, sample_weight=w, adjusted=True),
        "lr_positive": positive,
        "lr_negative": negative,
    }


def mid_p(hits, n, tail=0.025):
    """The mid-P limits of a share, from binomial probabilities."""

    def beyond(share, side):
        own = stats.binom(n, share)
        more = own.sf(hits) if side > 0 else own.cdf(hits - 1)
        return more + own.pmf(hits) / 2 - tail

    low = optimize.brentq(beyond, 0, 1, (1,), xtol=1e-13) if hits else 0.0
    return low, optimize.brentq(beyond, 0, 1, (-1,), xtol=1e-13) if hits < n else 1.0


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9])
def test_rates_are_those_of_scikit_learn(threshold, weights):
    point = vx.operating_points(Y, P, threshold=threshold, weights=weights).points[0]
    wanted = by_sklearn(Y, (threshold <= P).astype(int), weights)
    assert {each.name: each.value for each in point.rates} == pytest.approx(wanted, abs=1e-12)
    assert sum(point.shares) == pytest.approx(1)


def test_classes_and_thresholds_of_ordered_classes_are_events_of_their_own():
    classes = vx.operating_points(GRADES, THREE, threshold=0.4)
    for k, point in enumerate(classes):
        wanted = by_sklearn((k == GRADES).astype(int), (THREE[:, k] >= 0.4).astype(int))
        assert point["f1"] == pytest.approx(wanted["f1"])
    ordered = vx.operating_points(GRADES, THREE, threshold=0.4, ordered=True)
    assert [point.event for point in ordered] == ["> 0", "> 1"]
    wanted = by_sklearn((GRADES > 1).astype(int), (THREE[:, 2] >= 0.4).astype(int))
    assert ordered.point("> 1")["npv"] == pytest.approx(wanted["npv"])


# ---- intervals -----------------------------------------------------------------------------------


def test_shares_of_rows_have_mid_p_intervals():
    point = vx.operating_points(Y, P, threshold=0.6).points[0]
    acts = P >= 0.6
    counts = {
        "sensitivity": (acts & (Y == 1), Y == 1),
        "specificity": (~acts & (Y == 0), Y == 0),
        "ppv": (acts & (Y == 1), acts),
        "npv": (~acts & (Y == 0), ~acts),
        "accuracy": (acts == Y, np.ones(N, bool)),
    }
    for name, (hits, among) in counts.items():
        assert tuple(point.rate(name).interval) == pytest.approx(mid_p(hits.sum(), among.sum()), abs=1e-9)


def test_sums_of_two_shares_have_newcombes_interval():
    """Youden's J is the difference of two independent shares: Newcombe (1998), method 10."""
    point = vx.operating_points(Y, P, threshold=0.6).points[0]
    acts, ill = P >= 0.6, Y == 1
    a, b = acts[ill].mean(), acts[~ill].mean()
    (la, ua), (lb, ub) = mid_p(acts[ill].sum(), ill.sum()), mid_p(acts[~ill].sum(), (~ill).sum())
    wanted = a - b - math.hypot(a - la, ub - b), a - b + math.hypot(ua - a, b - lb)
    assert tuple(point.rate("youden").interval) == pytest.approx(wanted, abs=1e-9)


def test_likelihood_ratios_have_the_published_limits():
    """Donner and Zou (2012), equations (9) and (10), from the limits of both shares."""
    point = vx.operating_points(Y, P, threshold=0.6).points[0]
    acts, ill = P >= 0.6, Y == 1
    a, b = acts[ill].mean(), acts[~ill].mean()
    (la, ua), (lb, ub) = mid_p(acts[ill].sum(), ill.sum()), mid_p(acts[~ill].sum(), (~ill).sum())
    low = (a * b - math.sqrt((a * b) ** 2 - la * ub * (2 * a - la) * (2 * b - ub))) / (ub * (2 * b - ub))
    high = (a * b + math.sqrt((a * b) ** 2 - ua * lb * (2 * a - ua) * (2 * b - lb))) / (lb * (2 * b - lb))
    assert tuple(point.rate("lr_positive").interval) == pytest.approx((low, high), abs=1e-9)


def test_no_interval_collapses_at_perfect_decisions():
    y, p = [0] * 30 + [1] * 10, [0.1] * 30 + [0.9] * 10
    for groups in (None, np.arange(40) // 2):
        point = vx.operating_points(y, p, groups=groups).points[0]
        assert all(each.interval.high > each.interval.low for each in point.rates)
        assert point["lr_positive"] == math.inf
        assert point.rate("lr_positive").interval.low > 3
        assert point.rate("lr_negative").interval.low == 0


def test_undefined_rates_are_nan_and_say_so():
    point = vx.operating_points([0, 1, 1, 0], [0.1, 0.2, 0.3, 0.2], threshold=0.9).points[0]
    assert math.isnan(point["ppv"])
    assert not point.rate("ppv").interval.defined
    assert point["sensitivity"] == 0
    only = vx.operating_points([0, 0, 0], [0.1, 0.2, 0.9]).points[0]
    assert math.isnan(only["sensitivity"])
    assert math.isnan(only["youden"])


def test_groups_widen_intervals_and_copies_of_rows_do_not_narrow_them():
    once = vx.operating_points(Y, P, groups=np.arange(N)).points[0]
    thrice = vx.operating_points(np.repeat(Y, 3), np.repeat(P, 3), groups=np.repeat(np.arange(N), 3)).points[
        0
    ]
    plain = vx.operating_points(np.repeat(Y, 3), np.repeat(P, 3)).points[0]
    for name in RATES:
        own, copied = once.rate(name), thrice.rate(name)
        assert copied.value == pytest.approx(own.value)
        assert tuple(copied.interval) == pytest.approx(tuple(own.interval), rel=0.02)
        assert np.ptp(copied.interval) > 1.5 * np.ptp(plain.rate(name).interval)


def test_intervals_with_weights_and_groups_are_about_those_of_a_bootstrap():
    """Percentiles of 800 resamples of whole groups: limits agree to a quarter of the width."""
    rng = np.random.default_rng(0)
    point = vx.operating_points(Y, P, threshold=0.5, weights=WEIGHTS, groups=GROUPS).points[0]
    members = [np.flatnonzero(g == GROUPS) for g in range(40)]
    acts = P >= 0.5
    drawn = []
    for _ in range(800):
        rows = np.concatenate([members[g] for g in rng.integers(0, 40, 40)])
        w, a, y = WEIGHTS[rows], acts[rows], Y[rows] == 1
        tp, fp, fn, tn = ((w * m).sum() for m in (a & y, a & ~y, ~a & y, ~a & ~y))
        drawn.append([tp / (tp + fn), tn / (tn + fp), tp / (tp + fp), 2 * tp / (2 * tp + fp + fn)])
    for name, ends in zip(
        ("sensitivity", "specificity", "ppv", "f1"), np.quantile(drawn, [0.025, 0.975], axis=0).T, strict=True
    ):
        own = point.rate(name).interval
        assert np.abs(np.array(own) - ends).max() < 0.25 * np.ptp(ends), name


# ---- differences of models -----------------------------------------------------------------------


def test_differences_are_paired_and_agree_with_their_p_values():
    asked = {"threshold": 0.6, "groups": GROUPS}
    found = vx.operating_points(Y, {"a": P, "b": Q}, **asked)
    p_value = found.difference("a", "b", "ppv").p_value
    # The interval at the confidence 1 - p ends at zero.
    same = vx.operating_points(Y, {"a": P, "b": Q}, **asked, confidence=1 - p_value)
    assert min(map(abs, same.difference("a", "b", "ppv").interval)) == pytest.approx(0, abs=1e-6)
    for name in COMPARED:
        gap = found.difference("a", "b", name)
        assert gap.difference == pytest.approx(found.point(model="a")[name] - found.point(model="b")[name])
        assert (gap.p_value < 0.05) == (gap.interval.low > 0 or gap.interval.high < 0)
        turned = found.difference("b", "a", name)
        assert turned.difference == -gap.difference


def test_differences_are_about_those_of_a_paired_bootstrap():
    rng = np.random.default_rng(1)
    found = vx.operating_points(Y, {"a": P, "b": Q}, threshold=0.5)
    a, b, ill = P >= 0.5, Q >= 0.5, Y == 1
    rows = rng.integers(0, N, (800, N))
    gaps = ((a & ill)[rows].sum(1) - (b & ill)[rows].sum(1)) / ill[rows].sum(1)
    ends = np.quantile(gaps, [0.025, 0.975])
    own = found.difference("a", "b", "sensitivity").interval
    assert np.abs(np.array(own) - ends).max() < 0.25 * np.ptp(ends)


def test_three_models_are_corrected_for_all_pairs():
    found = vx.operating_points(Y, {"a": P, "b": Q, "c": 1 - P})
    p_values = sorted((gap.p_value, gap.p_adjusted) for gap in found.differences if gap.rate == "accuracy")
    assert [q for _, q in p_values] == pytest.approx(
        np.maximum.accumulate([min(1, (3 - i) * p) for i, (p, _) in enumerate(p_values)])
    )


# ---- chosen thresholds ---------------------------------------------------------------------------


def every_threshold(y, p):
    """The rates at all thresholds that differ, by brute force."""
    for t in [*np.unique(p), 1.1]:
        acts = p >= t
        tp, fp, fn, tn = ((acts & (y == 1)).sum(), (acts & (y == 0)).sum(), (~acts & (y == 1)).sum(), 0)
        tn = len(y) - tp - fp - fn
        yield t, tp, fp, fn, tn


def order_statistic(n, least, confidence):
    """The largest k at which Beta(n - k + 1, k) is at least a value with some confidence."""
    kept = [k for k in range(1, n + 1) if stats.beta.sf(least, n - k + 1, k) >= confidence]
    return max(kept, default=None)


@pytest.mark.parametrize("confidence", [0.95, 0.8])
@pytest.mark.parametrize(("aim", "least"), [("sensitivity>=0.9", 0.9), ("sensitivity>=75%", 0.75)])
def test_the_threshold_for_a_sensitivity_is_an_order_statistic_of_the_events(aim, least, confidence):
    p = RNG.permutation(N) / N
    events = np.sort(p[Y == 1])
    n, k = len(events), order_statistic(len(events), least, confidence)
    point = vx.operating_points(Y, p, threshold=aim, confidence=confidence).points[0]
    assert point.threshold == events[k - 1]
    tails = (1 - confidence) / 2, (1 + confidence) / 2
    rate = point.rate("sensitivity")
    assert tuple(rate.interval) == pytest.approx(stats.beta.ppf(tails, n - k + 1, k), rel=1e-9)
    assert rate.value == pytest.approx(stats.beta.mean(n - k + 1, k))
    acts = p[Y == 0] >= point.threshold
    assert tuple(point.rate("specificity").interval) == pytest.approx(
        mid_p((~acts).sum(), len(acts), tails[0]), abs=1e-9
    )
    assert "exact" in point.note


def test_a_promised_specificity_mirrors_a_promised_sensitivity():
    p = RNG.permutation(N) / N
    point = vx.operating_points(Y, p, threshold="specificity>=0.8").points[0]
    mirrored = vx.operating_points(1 - Y, 1 - p, threshold="sensitivity>=0.8").points[0]
    np.testing.assert_array_equal(p >= point.threshold, ~(1 - p >= mirrored.threshold))
    assert tuple(point.rate("specificity").interval) == pytest.approx(
        tuple(mirrored.rate("sensitivity").interval)
    )
    assert point["sensitivity"] == pytest.approx(mirrored["specificity"])


def test_promises_are_kept():
    """Forecasts of events are normal: the empirical quantile reaches 0.9 in half of all samples."""
    kept, covered = 0, 0
    for i in range(40):
        rng = np.random.default_rng([11, i])
        y = np.repeat([0, 1], 60)
        score = rng.normal(size=120) + 1.5 * y
        point = vx.operating_points(y, stats.norm.cdf(score), threshold="sensitivity>=0.9").points[0]
        at = stats.norm.ppf(point.threshold)
        kept += stats.norm.sf(at - 1.5) >= 0.9
        low, high = point.rate("specificity").interval
        covered += low <= stats.norm.cdf(at) <= high
    assert kept >= 35
    assert covered >= 34


def test_too_few_events_promise_nothing():
    p = np.linspace(0, 1, 100)
    for n, found in ((28, False), (29, True)):
        y = (np.arange(100) < n).astype(int)
        points = vx.operating_points(y, p, threshold="sensitivity>=0.9")
        assert math.isfinite(points.points[0].threshold) == found
        assert points["sensitivity"] >= 0.9 if found else math.isnan(points["sensitivity"])
    assert points.to_dict()["points"][0]["note"] == points.points[0].note
    few = vx.operating_points(
        (np.arange(100) < 28).astype(int), {"a": p, "b": p[::-1]}, threshold="sensitivity>=0.9"
    )
    assert "that takes 29 events, and there are 28 events" in repr(few)
    assert not few.points[0].rate("specificity").interval.defined
    assert math.isnan(few.difference("a", "b", "accuracy").p_value)
    everything = vx.operating_points(np.tile([0, 1], 50), p, threshold="sensitivity>=1")
    assert "however many rows" in everything.points[0].note


def test_groups_and_weights_promise_by_effective_numbers():
    p = RNG.permutation(N) / N
    plain = vx.operating_points(Y, p, threshold="sensitivity>=0.8").points[0]
    copies = vx.operating_points(
        np.repeat(Y, 3), np.repeat(p, 3), threshold="sensitivity>=0.8", groups=np.repeat(np.arange(N), 3)
    ).points[0]
    apart = vx.operating_points(np.repeat(Y, 3), np.repeat(p, 3), threshold="sensitivity>=0.8").points[0]
    rank = np.searchsorted(np.sort(p[Y == 1]), [copies.threshold, plain.threshold, apart.threshold])
    assert rank[1] - 2 <= rank[0] <= rank[1] < rank[2]
    assert "approximate" in copies.note
    weighted = vx.operating_points(Y, p, threshold="sensitivity>=0.8", weights=WEIGHTS).points[0]
    hits = WEIGHTS * (p >= weighted.threshold)
    n = WEIGHTS[Y == 1].sum() ** 2 / (WEIGHTS[Y == 1] ** 2).sum()
    share = hits[Y == 1].sum() / WEIGHTS[Y == 1].sum()
    # Clopper and Pearson's lower limit of the effective number of events (Korn and Graubard 1998).
    assert stats.beta.ppf(0.05, n * share, n * (1 - share) + 1) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(
    ("seed", "events", "groups", "least", "missed", "independent"),
    # From a reference implementation in NumPy and SciPy.
    [
        (5, 260, 12, 0.9, 9, 66.74911021526987),
        (6, 400, 20, 0.9, 19, 101.77613613239659),
        (7, 150, 9, 0.8, 14, 48.06445883691447),
        (8, 90, 8, 0.9, 1, 42.635630157202385),
    ],
)
def test_promises_over_groups_are_those_of_the_reference(seed, events, groups, least, missed, independent):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, events)
    score = 0.4 * rng.normal(size=groups)[group] + rng.normal(size=events)
    y = np.r_[np.ones(events, int), np.zeros(events, int)]
    p, both = stats.norm.cdf(np.r_[score, score - 1]), np.r_[group, group]
    point = vx.operating_points(y, p, threshold=f"sensitivity>={least}", groups=both).points[0]
    assert (p[:events] < point.threshold).sum() == missed
    assert f"from in effect {independent:,.1f} independent events" in point.note
    assert "it holds for groups of the kinds seen" in point.note
    # The other side of the promise: its own interval, with the same number of events.
    low, high = point.rate("sensitivity").interval
    assert low < 1 - missed / events < high
    mirrored = vx.operating_points(1 - y, 1 - p, threshold=f"specificity>={least}", groups=both).points[0]
    np.testing.assert_array_equal(p >= point.threshold, ~(1 - p >= mirrored.threshold))


def test_too_few_groups_promise_nothing():
    rng = np.random.default_rng(0)
    y, p = np.tile([0, 1], 300), rng.random(600)
    three = np.where(y == 1, np.arange(600) % 3, np.arange(600) % 40)
    note = vx.operating_points(y, p, threshold="sensitivity>=0.9", groups=three).points[0].note
    assert note.endswith("that takes at least 4 groups, and there are 3")
    heavy = np.where(rng.random(600) < 0.95, 0, np.arange(600) % 20)
    note = vx.operating_points(y, p, threshold="sensitivity>=0.9", groups=heavy).points[0].note
    assert "% of them are in one group" in note
    alike = vx.operating_points(
        y, np.full(600, 0.5), threshold="sensitivity>=0.9", groups=np.arange(600) % 20
    )
    assert alike.points[0].threshold == 0.5


def test_promises_over_groups_are_kept():
    kept = answers = 0
    for i in range(60):
        rng = np.random.default_rng([12, i])
        group = rng.integers(0, 12, 360)
        shift = 0.35 * rng.normal(size=12)[group]
        score = shift + rng.normal(size=360)
        y = np.r_[np.ones(240, int), np.zeros(120, int)]
        found = vx.operating_points(y, stats.norm.cdf(score), threshold="sensitivity>=0.9", groups=group)
        at = stats.norm.ppf(found.points[0].threshold)
        answers += not np.isnan(at)
        kept += np.isnan(at) or stats.norm.sf(at / math.hypot(1, 0.35)) >= 0.9
    assert answers >= 55
    assert kept >= 54


@pytest.mark.parametrize("aim", ["youden", "f1", "accuracy", "cost"])
def test_the_best_threshold_is_that_of_brute_force(aim):
    costs = {"costs": [[0, 1], [5, 0]]} if aim == "cost" else {}

    def goodness(tp, fp, fn, tn):
        return {
            "youden": tp / (tp + fn) + tn / (tn + fp),
            "f1": 2 * tp / (2 * tp + fp + fn),
            "accuracy": tp + tn,
            "cost": -fp - 5 * fn,
        }[aim]

    point = vx.operating_points(Y, P, threshold=aim, **costs).points[0]
    acts = point.threshold <= P
    own = ((acts & (Y == 1)).sum(), (acts & (Y == 0)).sum(), (~acts & (Y == 1)).sum())
    assert goodness(*own, N - sum(own)) == pytest.approx(
        max(goodness(*counts) for _, *counts in every_threshold(Y, P))
    )


def test_rates_of_chosen_thresholds_are_those_of_the_threshold_that_is_shown():
    """Forecasts without information: at a threshold t the sensitivity is 1 - t, and Youden's J is 0."""
    covered, honest, in_sample = [], [], []
    for i in range(12):
        rng = np.random.default_rng([3, i])
        y, p = rng.integers(0, 2, 60), rng.random(60)
        point = vx.operating_points(y, p, threshold="youden").points[0]
        truths = {"sensitivity": 1 - point.threshold, "specificity": point.threshold, "youden": 0.0}
        for name, truth in truths.items():
            low, high = point.rate(name).interval
            covered.append(low <= min(max(truth, 0), 1) <= high)
        honest.append(point["youden"])
        in_sample.append(vx.operating_points(y, p, threshold=min(point.threshold, 1))["youden"])
    assert np.mean(covered) > 0.9
    assert abs(np.mean(honest)) < 0.5 * np.mean(in_sample)
    assert len(point.per_fold) == 5


def test_a_rate_that_no_threshold_reaches_gets_the_nearest_threshold():
    y, p = np.array([0, 1, 1, 0, 0] * 20), np.tile([0.2, 0.2, 0.8, 0.8, 0.8], 20)
    point = vx.operating_points(y, p, threshold="ppv>=0.9").points[0]
    assert 0 <= point.threshold <= 0.2
    assert point["ppv"] == pytest.approx(0.4)
    assert "no threshold reaches ppv of 0.9" in point.note


@pytest.mark.parametrize(
    ("threshold", "options", "says"),
    [
        ("recall>=0.9", {}, "a rate to reach such as"),
        ("sensitivity>=90", {}, "a rate to reach such as"),
        ("cost", {}, "must hold the costs"),
        (0.5, {"costs": [[0, 1], [1, 0]]}, "the threshold is given"),
        (1.5, {}, "from 0 to 1"),
        ([0.5, 0.2], {}, "increasing"),
    ],
)
def test_thresholds_that_make_no_sense_are_refused(threshold, options, says):
    with pytest.raises(vx.InputError, match=says):
        vx.operating_points(Y, P, threshold=threshold, **options)


# ---- curves --------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
def test_curves_are_those_of_scikit_learn(weights):
    curve = vx.roc_curve(Y, P, weights=weights).curves[0]
    x, y, thresholds = metrics.roc_curve(Y, P, sample_weight=weights, drop_intermediate=False)
    np.testing.assert_allclose([curve.x, curve.values, curve.thresholds], [x, y, thresholds], atol=1e-12)
    assert curve.area == pytest.approx(metrics.roc_auc_score(Y, P, sample_weight=weights))
    curve = vx.precision_recall_curve(Y, P, weights=weights).curves[0]
    precision, recall, thresholds = metrics.precision_recall_curve(Y, P, sample_weight=weights)
    np.testing.assert_allclose(curve.values[::-1], precision[:-1], atol=1e-12)
    np.testing.assert_allclose(curve.x[::-1], recall[:-1], atol=1e-12)
    np.testing.assert_allclose(curve.thresholds[::-1], thresholds)
    assert curve.area == pytest.approx(metrics.average_precision_score(Y, P, sample_weight=weights))


def test_fewer_points_are_points_of_the_whole_curve():
    curve = vx.roc_curve(Y, P, points=20).curves[0]
    whole = set(zip(*metrics.roc_curve(Y, P, drop_intermediate=False)[:2], strict=True))
    assert len(curve.x) <= 22
    assert np.hypot(np.diff(curve.x), np.diff(curve.values)).max() < 0.15
    for point in zip(curve.x, curve.values, strict=True):
        assert min(math.dist(point, known) for known in whole) < 1e-9


def test_bands_hold_the_curve_and_its_intervals():
    for curve in (vx.roc_curve(Y, P).curves[0], vx.roc_curve(Y, P, groups=GROUPS).curves[0]):
        low, high = curve.band
        assert (low <= curve.values + 1e-12).all()
        assert (high >= curve.values - 1e-12).all()
        assert (np.diff(low) >= -1e-12).all()
        assert (np.diff(high) >= -1e-12).all()
    curve = vx.precision_recall_curve(Y, P).curves[0]
    known = ~np.isnan(curve.band[0])
    assert (curve.acted[known] * N >= 10 - 1e-6).all()
    assert (curve.band[0] <= curve.interval[0] + 1e-12)[known].all()


def test_areas_of_models_have_delongs_paired_differences():
    """The variance from all pairs of rows, as DeLong, DeLong and Clarke-Pearson (1988) define it."""
    gap = vx.roc_curve(Y, {"a": P, "b": Q}).differences[0]
    parts = []
    for p in (P, Q):
        pairs = (p[Y == 1][:, None] > p[Y == 0]) + 0.5 * (p[Y == 1][:, None] == p[Y == 0])
        parts.append((pairs.mean(1), pairs.mean(0), pairs.mean()))
    (a1, a0, a), (b1, b0, b) = parts
    variance = np.var(a1 - b1, ddof=1) / len(a1) + np.var(a0 - b0, ddof=1) / len(a0)
    assert gap.difference == pytest.approx(a - b)
    half = np.ptp(gap.interval) / 2
    assert half / math.sqrt(variance) == pytest.approx(1.968, abs=0.005)


def test_confidence_curves_are_accuracies_of_confident_rows():
    curve = vx.confidence_curve(GRADES, THREE).curves[0]
    sure, right = THREE.max(axis=1), THREE.argmax(axis=1) == GRADES
    for t in (0.0, 0.4, 0.65, 0.9):
        i = round(100 * t)
        assert curve.values[i] == pytest.approx(right[sure >= t].mean())
        assert curve.acted[i] == pytest.approx((sure >= t).mean())
        assert tuple(curve.interval[:, i]) == pytest.approx(
            mid_p(right[sure >= t].sum(), (sure >= t).sum()), abs=1e-9
        )


def test_results_are_shown_and_drawn():
    pytest.importorskip("matplotlib")
    curves = vx.roc_curve(GRADES, {"a": THREE, "b": THREE[::-1]}, ordered=True, points=20)
    assert "sensitivity at FPR 0.1" in repr(curves)
    assert "y > 1" in curves.plot().axes[1].get_title()
    assert set(curves.to_frame().columns) >= {"threshold", "false_positive_rate", "sensitivity", "band_low"}
    points = vx.operating_points(GRADES, THREE, threshold=[0.2, 0.5])
    assert len(points.to_frame()) == 6 * len(RATES)
    assert "lr_positive" in repr(points)
    with pytest.raises(KeyError, match="there are sensitivity"):
        points["recall"]


def test_invalid_rows_are_left_out_where_asked():
    p = P.copy()
    p[3] = 2.0
    found = vx.operating_points(Y, p, invalid="skip")
    assert found.n_skipped == 1
    assert found["f1"] == vx.operating_points(np.delete(Y, 3), np.delete(P, 3))["f1"]


def test_a_promised_rate_of_tied_forecasts_is_that_of_the_rows():
    """Acting on every row has a sensitivity of 1; an interval of 0.9631 to 0.9997 left that out."""
    p = np.repeat([0.02, 0.1, 0.3, 0.6, 0.95], [160, 120, 60, 40, 20])
    y = (np.random.default_rng(0).random(400) < p).astype(int)
    for aim, rate in (("sensitivity>=0.9", "sensitivity"), ("specificity>=0.5", "specificity")):
        point = vx.operating_points(y, p, threshold=aim).points[0]
        acts = p >= point.threshold
        seen = acts[y == 1].mean() if rate == "sensitivity" else (~acts)[y == 0].mean()
        n = int((y == (rate == "sensitivity")).sum())
        assert point.rate(rate).value == pytest.approx(seen)
        missed = round(n * (1 - seen))
        high = 1.0 if not missed else stats.beta.ppf(0.975, n - missed + 1, missed)
        low = stats.beta.ppf(0.025, n - missed, missed + 1)
        assert list(point.rate(rate).interval) == pytest.approx([low, high])
