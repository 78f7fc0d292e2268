"""Tallies merge: however the rows are cut, the sums are the same."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verax as vx
from cases import RULES, forecasts
from verax.engines.counts import CONFUSION_UP_TO, ROWS_KEPT
from verax.engines.sums import Moments, Sum
from verax.engines.tally import RuleSums

# With losses of all kinds: bounded, infinite, ordinal, and with a penalty.
FEW = [vx.brier, vx.log_score, vx.rps, vx.pll]


def tally(y, p, w=None, rules=RULES, *, groups=None, first_row=None):
    rows = vx.Forecasts(y, p, weights=w, groups=groups, first_row=first_row)
    return RuleSums(rules, np.shape(p)[1]).update(rows)


def assert_same(a, b):
    np.testing.assert_allclose(a.moments.mean, b.moments.mean, rtol=1e-13)
    np.testing.assert_allclose(a.moments.std, b.moments.std, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(a.moments.finite_mean, b.moments.finite_mean, rtol=1e-13)
    np.testing.assert_allclose(a.moments.infinite.high, b.moments.infinite.high, rtol=1e-14)
    np.testing.assert_allclose(a.counts.confusion, b.counts.confusion, rtol=1e-14)
    assert a.weight == pytest.approx(b.weight, rel=1e-15)
    assert a.spans == b.spans
    assert (a.n_rows, a.counts.n_zero, a.counts.zero_rows) == (b.n_rows, b.counts.n_zero, b.counts.zero_rows)


@pytest.mark.long
@given(
    n=st.integers(2, 60),
    k=st.integers(2, 6),
    cuts=st.lists(st.floats(0, 1), max_size=5),
    weighted=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_cutting_the_rows_anywhere_and_merging_in_any_order_changes_nothing(n, k, cuts, weighted, seed):
    y, p = forecasts(n, k, seed)
    rng = np.random.default_rng(seed)
    w = rng.exponential(size=n) if weighted else None
    edges = sorted({0, n, *(int(c * n) for c in cuts)})
    whole = tally(y, p, w, FEW)
    parts = [
        tally(y[a:b], p[a:b], None if w is None else w[a:b], FEW, first_row=a) for a, b in pairwise(edges)
    ]
    while len(parts) > 1:
        a, b = (parts.pop(rng.integers(len(parts))) for _ in range(2))
        parts.append(a.merge(b))
    assert_same(parts[0], whole)
    folded = RuleSums(FEW, k)
    for a, b in pairwise(edges):
        folded.update(vx.Forecasts(y[a:b], p[a:b], weights=None if w is None else w[a:b]))
    assert_same(folded, whole)


@pytest.mark.long
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_merging_is_commutative_and_associative(seed, placed, grouped):
    y, p = forecasts(30, 3, seed)
    p[::7] = np.eye(3)[(y[::7] + 1) % 3]
    w = 2.0 ** np.random.default_rng(seed).integers(-600, 600, 3)
    a, b, c = (
        tally(
            y[i : i + 10],
            p[i : i + 10],
            np.full(10, w[i // 10]),
            FEW,
            groups=np.arange(10) + i // 2 if grouped else None,
            first_row=i if placed else None,
        )
        for i in (0, 10, 20)
    )
    assert_same(a.merge(b), b.merge(a))
    assert_same(a.merge(b).merge(c), a.merge(b.merge(c)))
    assert_same(a.merge(b).merge(c), c.merge(a).merge(b))
    assert (a.merge(b).spans == ((0, 20),)) is placed
    assert bool(a.merge(b).counts.zero_rows) is placed
    if grouped:
        one, other = a.merge(b).merge(c).clusters, c.merge(b.merge(a)).clusters
        assert one.labels.tolist() == other.labels.tolist()
        np.testing.assert_allclose(one.sums.high, other.sums.high, rtol=1e-14)
        np.testing.assert_array_equal(one.cells.keys, other.cells.keys)
        np.testing.assert_allclose(one.cells.sums.high, other.cells.sums.high, rtol=1e-14)


def test_merging_changes_neither_side():
    y, p = forecasts(20, 3)
    a, b = tally(y[:9], p[:9]), tally(y[9:], p[9:])
    before = pickle.dumps((a, b))
    a.merge(b)
    assert pickle.dumps((a, b)) == before


def test_a_tally_of_no_rows_merges_with_any():
    y, p = forecasts(20, 3)
    grouped = tally(y, p, rules=FEW, groups=np.arange(20) % 4)
    for merged in (grouped.merge(RuleSums(FEW, 3)), RuleSums(FEW, 3).merge(grouped)):
        assert_same(merged, grouped)
        assert merged.clusters.labels.tolist() == grouped.clusters.labels.tolist()


def test_only_like_merges_with_like():
    y, p = forecasts(20, 3)
    with pytest.raises(vx.VeraxError, match="different rules"):
        tally(y, p).merge(tally(y, p, rules=[vx.brier]))
    with pytest.raises(vx.VeraxError, match="3 classes; the rows have 4"):
        tally(y, p).merge(tally(*forecasts(20, 4)))


def test_moments_are_those_of_the_losses():
    y, p = forecasts(500, 4, ties=False)
    w = np.random.default_rng(1).exponential(size=500)
    moments = tally(y, p, w).moments
    for i, rule in enumerate(RULES):
        losses = rule.samples(y, p)
        mean = np.average(losses, weights=w)
        assert moments.mean[i] == pytest.approx(mean, rel=1e-13)
        assert moments.std[i] == pytest.approx(
            math.sqrt(np.average((losses - mean) ** 2, weights=w)), rel=1e-10
        )


def test_the_spread_of_nearly_constant_losses_does_not_cancel():
    p = np.full((4000, 2), 0.5)
    p[:, 0] += np.random.default_rng(0).normal(scale=1e-9, size=4000)
    p[:, 1] = 1 - p[:, 0]
    y = np.zeros(4000, int)
    assert tally(y, p, rules=[vx.log_score]).moments.std[0] == pytest.approx(
        np.std(-np.log(p[:, 0])), rel=1e-5
    )


def test_many_small_updates_lose_nothing():
    rng = np.random.default_rng(0)
    total = Sum.zeros(1)
    terms = rng.exponential(size=20_000) * 10.0 ** rng.integers(-12, 12, 20_000)
    for term in terms:
        total = total.plus(np.array([term]))
    exact = sum(map(Fraction, terms.tolist()))
    assert abs(Fraction(float(total.high[0])) + Fraction(float(total.low[0])) - exact) < exact * Fraction(
        1, 2**90
    )


def test_float32_means_agree_with_fsum():
    rng = np.random.default_rng(0)
    streamed, exact = RuleSums([vx.brier, vx.log_score], 2, counts=False), []
    for _ in range(8):
        p1 = rng.random(500_000, dtype=np.float32)
        p = np.stack([1 - p1, p1], axis=1)
        streamed.update(vx.Forecasts(np.zeros(len(p), np.int8), p))
        miss = 1 - p[:, 0].astype(float)
        exact.append(math.fsum((miss**2 + p[:, 1].astype(float) ** 2).tolist()))
    assert streamed.moments.mean[0] == pytest.approx(math.fsum(exact) / 4_000_000, rel=1e-13)


def test_zero_probability_rows_are_counted_and_the_first_are_kept():
    n = 2 * ROWS_KEPT
    y, p = np.zeros(n, int), np.tile([0.0, 1.0], (n, 1))
    p[1::2] = 0.5
    counts = tally(y, p, rules=[vx.log_score]).counts
    assert counts.n_zero == ROWS_KEPT
    assert counts.zero_rows == list(range(0, n, 2))
    # Both parts say that they are the first rows, so which rows these are is not known.
    twice = tally(y, p, rules=[vx.log_score]).merge(tally(y, p, rules=[vx.log_score])).counts
    assert (twice.n_zero, twice.zero_rows) == (n, [])
    later = tally(y, p, rules=[vx.log_score], first_row=n)
    for merged in (
        later.merge(tally(y, p, rules=[vx.log_score])),
        tally(y, p, rules=[vx.log_score]).merge(later),
    ):
        assert (merged.counts.n_zero, merged.counts.zero_rows) == (n, counts.zero_rows)
    assert later.counts.zero_rows == list(range(n, 2 * n, 2))


def test_beyond_many_classes_only_totals_are_counted():
    k = CONFUSION_UP_TO + 1
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(k), 50)
    y = np.where(rng.random(50) < 0.5, p.argmax(axis=1), 0)
    for block in (p, np.tile(p, (20, 1))):
        counts = tally(np.resize(y, len(block)), block, rules=[vx.brier]).counts
        assert counts.confusion is None
        assert counts.n_correct / len(block) == np.mean(y == p.argmax(axis=1))
        assert counts.per_class.sum() == len(block)


@pytest.mark.parametrize("grouped", [False, True])
def test_threads_do_not_change_the_numbers(change, grouped):
    y, p = forecasts(300_000, 4, ties=False)
    rng = np.random.default_rng(0)
    w = rng.exponential(size=len(y))
    groups = rng.integers(0, 50, len(y)) if grouped else None
    results = []
    for n_threads in (1, 2, 5):
        change(cores=n_threads)
        results.append(tally(y, p, w, rules=[vx.brier, vx.pll, vx.rps], groups=groups))
    for other in results[1:]:
        assert other.moments.mean.tolist() == results[0].moments.mean.tolist()
        assert other.moments.m2.tolist() == results[0].moments.m2.tolist()
        assert other.counts.confusion.tolist() == results[0].counts.confusion.tolist()
        if grouped:
            assert other.clusters.sums.high.tolist() == results[0].clusters.sums.high.tolist()
            assert other.clusters.cells.sums.high.tolist() == results[0].clusters.cells.sums.high.tolist()


def test_infinite_losses_on_the_compiled_path():
    y, p = np.zeros(200_000, int), np.tile([0.5, 0.25, 0.25], (200_000, 1))
    p[[7, 150_000]] = [0.0, 0.5, 0.5]
    w = np.ones(200_000)
    w[7] = 0
    result = tally(y, p, w, rules=[vx.log_score, vx.brier])
    assert result.moments.mean[0] == np.inf
    assert result.moments.infinite.high.tolist() == [1, 0]
    assert result.moments.finite_mean[0] == pytest.approx(math.log(2), rel=1e-13)
    assert math.isnan(result.moments.std[0])
    assert result.counts.zero_rows == [150_000]


def test_empty_moments_merge():
    zero = Moments.zeros(2)
    assert np.isnan((zero + zero).mean).all()


# ---- numbers at the edges ----------------------------------------------------------------------


def exact_mean(losses, w=None):
    """The weighted mean in fractions; rows that are alike are counted, not added one by one."""
    w = np.ones(len(losses)) if w is None else np.asarray(w, dtype=float)
    # As complex numbers, pairs are sorted fast.
    pairs, counts = np.unique((w + 1j * losses)[w > 0], return_counts=True)
    rows = [
        (int(n) * Fraction(pair.real), Fraction(pair.imag))
        for pair, n in zip(pairs.tolist(), counts, strict=True)
    ]
    return float(sum(a * b for a, b in rows) / sum(a for a, _ in rows))


@pytest.mark.parametrize("n", [4, 300_000])
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_a_huge_first_loss_takes_no_digits_from_the_mean(n, weight):
    p = np.tile([1e-12, 1 - 1e-12], (n, 1))
    p[0] = [1 - 1e-300, 1e-300]
    w = np.ones(n)
    w[0] = weight
    y = np.ones(n, int)
    result = tally(y, p, w, rules=[vx.log_score])
    assert result.moments.mean[0] == pytest.approx(exact_mean(vx.log_score.samples(y, p), w), rel=1e-12)


def test_one_heavy_row_of_tiny_loss_decides():
    n = 300_000
    p = np.full((n, 2), 0.5)
    p[200_000] = [1 - 1e-13, 1e-13]
    w = np.full(n, 1e-250)
    w[200_000] = 1e250
    y = np.zeros(n, int)
    moments = tally(y, p, w, rules=[vx.log_score, vx.brier]).moments
    for i, rule in enumerate((vx.log_score, vx.brier)):
        assert moments.mean[i] == pytest.approx(exact_mean(rule.samples(y, p), w), rel=1e-12)


@pytest.mark.parametrize("n", [3, 300_000])
def test_a_mean_beside_very_heavy_infinite_rows(n):
    p, y, w = np.full((n, 2), 0.5), np.zeros(n, int), np.ones(n)
    p[1], w[1] = [0.0, 1.0], 1e30
    result = tally(y, p, w, rules=[vx.log_score])
    assert result.moments.finite_mean[0] == pytest.approx(math.log(2), rel=1e-13)
    assert (result.moments.mean[0], result.moments.infinite.high[0]) == (np.inf, 1e30)


def test_a_light_infinite_row_beside_very_heavy_rows_still_counts():
    p, y = np.array([[0.0, 1.0], [0.5, 0.5]]), np.zeros(2, int)
    result = tally(y, p, [1e-300, 1e300], rules=[vx.log_score])
    assert result.moments.mean[0] == np.inf
    assert (result.counts.n_zero, result.counts.zero_rows) == (1, [0])


@pytest.mark.long
@pytest.mark.parametrize("n", [3, 300_000])
@pytest.mark.parametrize("power", [-1000, -520, 520, 1000])
@pytest.mark.parametrize("grouped", [False, True])
def test_a_power_of_two_in_the_weights_changes_no_result(n, power, grouped):
    y, p = forecasts(n, 3, ties=False)
    w = np.random.default_rng(0).integers(1, 9, n).astype(float)
    groups = np.arange(n) % 3 if grouped else None
    plain, scaled = (tally(y, p, x, rules=[vx.brier, vx.pll], groups=groups) for x in (w, w * 2.0**power))
    assert scaled.moments.mean.tolist() == plain.moments.mean.tolist()
    assert scaled.moments.std.tolist() == plain.moments.std.tolist()
    assert scaled.weight == plain.weight * 2.0**power
    assert scaled.unscaled(scaled.counts.confusion).tolist() == (plain.counts.confusion * 2.0**power).tolist()
    if grouped:
        a, b = (t.clusters.errors()[0].tolist() for t in (plain, scaled))
        assert a == b


@pytest.mark.parametrize("w", [[8e307, 8e307, 1e307], [1.7e308] * 3, [5e-324, 1e-323, 5e-324]])
def test_weights_at_the_ends_of_the_numbers(w):
    y, p = forecasts(3, 3, ties=False)
    result = tally(y, p, w, rules=[vx.brier])
    assert result.moments.mean[0] == pytest.approx(exact_mean(vx.brier.samples(y, p), w), rel=1e-12)
    assert math.isfinite(result.moments.std[0])
    heavy = tally(y, p, w, rules=[vx.brier]).merge(tally(y, p, rules=[vx.brier]))
    assert math.isfinite(heavy.moments.mean[0])
    assert heavy.merge(tally(y, p, [0, 0, 1e-300], rules=[vx.brier])).n_rows == 9


def test_a_tally_of_sums_taken_elsewhere():
    sums = [[3.0, 6.0, 14.0, 2.0]]
    result = RuleSums.from_sums(
        [vx.log_score], 2, n_rows=5, weight=5.0, sums=np.array(sums), cells=np.arange(4.0), n_zero=2
    )
    assert (result.moments.finite_mean[0], result.moments.m2[0], result.moments.mean[0]) == (2, 2, np.inf)
    assert (result.n_rows, result.weight, result.spans) == (5, 5.0, None)
    assert result.counts.confusion.tolist() == [[0, 1], [2, 3]]
    assert result.merge(tally([0], [[0.0, 1.0]], rules=[vx.log_score])).counts.zero_rows == []


@pytest.mark.parametrize("apart", [False, True])
def test_a_light_finite_row_beside_a_heavy_infinite_one_has_its_mean(apart):
    y, p, w = np.zeros(2, int), np.array([[0.0, 1.0], [0.9, 0.1]]), np.array([1.0, 1e-300])
    if apart:
        first, second = (
            tally(y[i : i + 1], p[i : i + 1], w[i : i + 1], rules=[vx.log_score]) for i in (0, 1)
        )
        result = first.merge(second)
    else:
        result = tally(y, p, w, rules=[vx.log_score])
    assert result.moments.mean[0] == np.inf
    assert result.moments.finite_mean[0] == pytest.approx(-math.log(0.9), rel=1e-13)


def test_a_large_table_is_shared_by_the_threads(change):
    rng = np.random.default_rng(0)
    k, n = 120, 6000
    p, y, w = rng.dirichlet(np.ones(k), n), rng.integers(0, k, n), rng.exponential(size=n)
    expected = np.zeros((k, k))
    np.add.at(expected, (y, p.argmax(axis=1)), w)
    tables = []
    for n_threads in (1, 4):
        change(cores=n_threads)
        tables.append(tally(y, p, w, rules=[vx.brier]).counts.confusion)
        assert tally(y, p, rules=[vx.brier]).counts.per_class.tolist() == np.bincount(y, minlength=k).tolist()
    assert tables[0].tolist() == tables[1].tolist()
    np.testing.assert_allclose(tables[0], expected, rtol=1e-14)
