"""Rater disagreement: brute force over raters, rationals, named raters and intervals."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

import verax as vx
from verax.wings.raters.analysis import fieller


def labels(n=60, seed=2):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(3), n)
    y = np.array([[rng.choice(3, p=row) for _ in range(4)] for row in q], float)
    y[rng.random(y.shape) < 0.2] = np.nan
    y[np.isnan(y).all(axis=1), 0] = 0
    return y, 0.7 * q + 0.1


def test_disagreement_is_the_mean_loss_between_two_raters():
    """The unbiased disagreement of Brier is the mean of |e_a - e_b|^2 / 2 over all pairs of raters."""
    y, p = labels()
    for rule in (vx.brier, vx.rps):
        exact, losses = [], []
        for row, forecast in zip(y, p, strict=True):
            own = row[~np.isnan(row)].astype(int)
            if len(own) < 2:
                continue
            # Half the loss of one rater's label as a forecast of another.
            pairs = [rule([b], np.eye(3)[[a]]) / 2 for a, b in combinations(own.tolist(), 2)]
            exact.append(np.mean(pairs))
            losses.append(np.mean(rule.samples(own, np.repeat(forecast[None], len(own), axis=0))))
        found = vx.raters(y, p, rule=rule, raters="columns")
        assert found.n_rated == len(exact) < found.n_rows == len(y)
        assert found.disagreement.value == pytest.approx(np.mean(exact), rel=1e-12)
        assert found.excess.value == pytest.approx(np.mean(losses) - np.mean(exact), rel=1e-10)
        assert found.worth.value == pytest.approx(np.mean(exact) / found.excess.value, rel=1e-10)
        assert found.worth.interval.low < found.worth.value < found.worth.interval.high


def test_worth_in_rationals():
    counts, p = [[2, 1], [1, 3], [4, 0]], [[0.25, 0.75], [0.5, 0.5], [0.75, 0.25]]
    h = loss = Fraction(0)
    for votes, row in zip(counts, p, strict=True):
        m = sum(votes)
        g = [Fraction(v, m) for v in votes]
        h += Fraction(m, m - 1) * (1 - sum(x * x for x in g)) / 3
        errors = [sum((Fraction(x) - (j == k)) ** 2 for j, x in enumerate(row)) for k in range(2)]
        loss += sum(x * e for x, e in zip(g, errors, strict=True)) / 3
    found = vx.raters(counts, p, raters="counts")
    assert found.loss.value == pytest.approx(float(loss), rel=1e-14)
    assert found.worth.value == pytest.approx(float(h / (loss - h)), rel=1e-12)


def test_each_rater_against_the_others():
    y, p = labels()
    found = vx.raters(y, p, raters="columns")
    assert [rater.name for rater in found.raters] == ["0", "1", "2", "3"]
    for j, rater in enumerate(found.raters):
        given = ~np.isnan(y[:, j])
        assert rater.n_rows == given.sum()
        assert rater.against.value == pytest.approx(vx.brier(y[given, j].astype(int), p[given]))
        own, forecast = [], []
        for row, q in zip(y, p, strict=True):
            others = np.delete(row, j)
            others = others[~np.isnan(others)].astype(int)
            if np.isnan(row[j]) or not len(others):
                continue
            own.append(vx.brier(others, np.eye(3)[[int(row[j])] * len(others)]))
            forecast.append(vx.brier(others, np.repeat(q[None], len(others), axis=0)))
        assert rater.own.value == pytest.approx(np.mean(own))
        assert rater.gain.value == pytest.approx(np.mean(forecast) - np.mean(own))


def test_rules_without_a_correction_have_no_worth():
    y, p = labels()
    found = vx.raters(y, p, rule="log_score", raters="columns")
    assert math.isnan(found.worth.value)
    assert not found.unbiased
    assert "too small with few raters" in repr(found)
    assert found.loss.value == pytest.approx(vx.log_score(y, p, raters="columns"))
    with pytest.raises(vx.InputError, match="must be proper"):
        vx.raters(y, p, rule="abs_rps", raters="columns")


def test_an_excess_near_zero_has_no_upper_limit():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 500)
    counts = np.array([rng.multinomial(5, row) for row in q])
    found = vx.raters(counts, q, raters="counts")
    assert found.worth.interval.high == math.inf
    assert found.worth.interval.low > 5
    assert "no upper limit" in found.verdict
    grouped = vx.raters(counts, q, raters="counts", groups=np.arange(500) // 5)
    assert grouped.n_groups == 100
    assert grouped.worth.value == found.worth.value


def test_fieller_is_where_the_test_does_not_reject():
    a, b, of_a, of_b, cov, z = 0.3, 0.5, 0.01, 0.004, 0.002, 1.96
    for t in fieller(a, b, of_a, of_b, cov, z):
        assert (a - t * b) ** 2 == pytest.approx(z**2 * (of_a - 2 * t * cov + t * t * of_b))
    assert fieller(0.1, 0.01, 0.01, 0.004, 0.0, z) == (-math.inf, math.inf)


def test_shares_are_exact_and_single_outcomes_refused():
    q = np.random.default_rng(1).dirichlet(np.ones(3), 50)
    found = vx.raters(q, np.full((50, 3), 1 / 3))
    assert found.mean_raters is None
    assert found.disagreement.value == pytest.approx((1 - (q**2).sum(axis=1)).mean())
    with pytest.raises(vx.InputError, match="several raters"):
        vx.raters([0, 1, 2], q[:3])


def test_results_come_back_and_are_drawn():
    y, p = labels()
    found = vx.raters(y, p, raters="columns", n=3)
    assert vx.results.RaterStudy.from_dict(found.to_dict()) == found
    assert list(found.to_frame().name[:4]) == ["loss", "disagreement", "excess", "worth"]
    assert {case.source.partition(":")[0] for case in found.cases} <= {"raters disagree", "model is off"}
    assert found.plot().axes[0].get_ylabel().startswith("brier")


# ---- what the worth speaks for -------------------------------------------------------------------


def panel(n, n_raters, spread, seed, noise=0.5):
    """Labels of raters with leanings of their own, forecasts, and the worth among all such raters."""
    rng = np.random.default_rng(seed)

    def softmax(z):
        z = np.exp(z - z.max(axis=-1, keepdims=True))
        return z / z.sum(axis=-1, keepdims=True)

    z = 1.5 * rng.normal(size=(n, 3))
    p = softmax(z + noise * rng.normal(size=(n, 3)))
    q = softmax(z[:, None] + spread * rng.normal(size=(n_raters, 3)))
    y = (rng.random((n, n_raters, 1)) > np.cumsum(q, axis=2)).sum(axis=2).clip(0, 2)
    return y.astype(float), p


def worth_in_population(spread):
    """From 5,000 cases and 100 raters: the share of each class is nearly known."""
    y, p = panel(5_000, 100, spread, 99)
    q = np.stack([(y == k).mean(axis=1) for k in range(3)], axis=1)
    h = 100 / 99 * (1 - (q**2).sum(axis=1)).mean()
    return h / (((p - q) ** 2).sum(axis=1).mean() - h / 100)


def test_the_interval_for_raters_in_general_covers_where_that_of_the_panel_does_not():
    truth = worth_in_population(1.0)
    covered = {"worth": 0, "general": 0}
    for seed in range(16):
        y, p = panel(200, 6, 1.0, seed)
        found = vx.raters(y, p, raters="columns", classes=[0, 1, 2], n=1)
        for name in covered:
            low, high = getattr(found, name).interval
            covered[name] += low <= truth <= high
    assert covered["worth"] <= 12
    assert covered["general"] >= 14


def test_the_variance_between_raters_is_that_of_a_jackknife_over_raters():
    """Leave each rater out; subtract the noise of the cases, from the deviations of each of them."""
    y, p = panel(80, 6, 1.0, 3)
    found = vx.raters(y, p, raters="columns", classes=[0, 1, 2], n=1)

    def by_case(labels):
        m = labels.shape[1]
        g = np.stack([(labels == k).mean(axis=1) for k in range(3)], axis=1)
        h = m / (m - 1) * (1 - (g**2).sum(axis=1))
        return h, 1 - 2 * (g * p).sum(axis=1) + (p**2).sum(axis=1) - h

    h, excess = by_case(y)
    t = excess.mean() / h.mean()
    cases = (excess - t * h).var(ddof=1) / len(h)
    between = 0.0
    for j in range(6):
        less_h, less_excess = by_case(np.delete(y, j, axis=1))
        deviation = (less_excess - t * less_h) - (excess - t * h)
        between += 5 / 6 * (deviation.mean() ** 2 - deviation.var(ddof=1) / len(h))
    degrees = (cases + between) ** 2 / (cases**2 / 79 + between**2 / 5)
    # The limits of 1 / worth are where a t test of excess - ratio * disagreement does not reject.
    for limit in found.general.interval:
        spread = (excess - h / limit).var(ddof=1) / len(h) * (cases + between) / cases
        statistic = (excess.mean() - h.mean() / limit) / math.sqrt(spread)
        assert abs(statistic) == pytest.approx(stats.t.isf(0.025, degrees), rel=1e-6)


def test_results_say_what_the_worth_assumes_and_for_whom_it_speaks():
    y, p = panel(60, 3, 0.5, 0)
    named = vx.raters(y, p, raters="columns", classes=[0, 1, 2])
    assert "label independently given the case and are interchangeable" in repr(named)
    assert "for this panel of 3 raters" in named.verdict
    assert "for raters in general" in named.verdict
    assert "only 3 raters represent raters in general" in repr(named)
    assert named.to_dict()["general"]["name"] == "general"
    pair = vx.raters(y[:, :2], p, raters="columns", classes=[0, 1, 2])
    assert not pair.general.interval.defined
    counts = np.stack([(y == k).sum(axis=1) for k in range(3)], axis=1)
    unnamed = vx.raters(counts, p, raters="counts")
    assert unnamed.general is None
    assert "panel" not in unnamed.verdict
    assert "interchangeable" in repr(unnamed)


def test_an_excess_that_hangs_on_a_rare_class_has_a_caution():
    rng = np.random.default_rng(0)
    q = np.tile([0.5, 0.5, 0.0], (60, 1))
    q[:2] = [0.1, 0.1, 0.8]
    p = np.where(q[:, 2:] > 0, [0.45, 0.45, 0.1], [0.48, 0.48, 0.04])
    found = vx.raters(rng.multinomial(20, q), p, raters="counts", classes=["a", "b", "rare"])
    assert "rare class: raters chose rare in 2 of 60 cases" in found.excess.interval.caution
    assert "rare class" in found.worth.interval.caution
    assert "rare class" in repr(found)
    common = rng.multinomial(20, np.tile([0.3, 0.3, 0.4], (60, 1)))
    assert not vx.raters(common, p, raters="counts").excess.interval.caution


@pytest.mark.parametrize(
    "analysis",
    [
        vx.recalibrate,
        vx.refinement,
        vx.risk_coverage,
        vx.roc_curve,
        vx.roc_auc,
        vx.operating_points,
        vx.net_benefit,
    ],
    ids=lambda analysis: analysis.__name__,
)
def test_a_case_of_several_raters_is_one_row(analysis):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(2), 60)
    y = rng.integers(0, 2, (60, 3))
    result = analysis(y, p, raters="columns")
    assert "60 rows" in str(result)
