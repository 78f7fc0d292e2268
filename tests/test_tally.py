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
from verax import rowstats
from verax.tally import CONFUSION_UP_TO, ROWS_KEPT, Moments, Sum, Tally


def tally(y, p, w=None, rules=RULES):
    return Tally(rules, np.shape(p)[1]).update(vx.Forecasts(y, p, weights=w))


def assert_same(a, b):
    np.testing.assert_allclose(a.moments.mean, b.moments.mean, rtol=1e-13)
    np.testing.assert_allclose(a.moments.std, b.moments.std, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(a.moments.finite_mean, b.moments.finite_mean, rtol=1e-13)
    np.testing.assert_allclose(a.moments.infinite.high, b.moments.infinite.high, rtol=1e-14)
    np.testing.assert_allclose(a.counts.confusion, b.counts.confusion, rtol=1e-14)
    assert a.weight.high == pytest.approx(b.weight.high, rel=1e-15)
    assert (a.n_rows, a.counts.n_zero, a.counts.zero_rows) == (b.n_rows, b.counts.n_zero, b.counts.zero_rows)


@given(
    n=st.integers(2, 60),
    k=st.integers(2, 6),
    cuts=st.lists(st.floats(0, 1), max_size=5),
    weighted=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_cutting_the_rows_anywhere_changes_nothing(n, k, cuts, weighted, seed):
    y, p = forecasts(n, k, seed)
    w = np.random.default_rng(seed).exponential(size=n) if weighted else None
    edges = sorted({0, n, *(int(c * n) for c in cuts)})
    whole = tally(y, p, w)
    parts = [tally(y[a:b], p[a:b], None if w is None else w[a:b]) for a, b in pairwise(edges)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(part)
    assert_same(merged, whole)
    folded = Tally(RULES, k)
    for a, b in pairwise(edges):
        folded.update(vx.Forecasts(y[a:b], p[a:b], weights=None if w is None else w[a:b]))
    assert_same(folded, whole)


@given(st.integers(0, 2**32 - 1))
def test_merging_is_associative(seed):
    y, p = forecasts(30, 3, seed)
    a, b, c = (tally(y[i : i + 10], p[i : i + 10]) for i in (0, 10, 20))
    assert_same(a.merge(b).merge(c), a.merge(b.merge(c)))


def test_merging_changes_neither_side():
    y, p = forecasts(20, 3)
    a, b = tally(y[:9], p[:9]), tally(y[9:], p[9:])
    before = pickle.dumps((a, b))
    a.merge(b)
    assert pickle.dumps((a, b)) == before


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
    streamed, exact = Tally([vx.brier, vx.log_score], 2, counts=False), []
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
    twice = tally(y, p, rules=[vx.log_score]).merge(tally(y, p, rules=[vx.log_score])).counts
    assert twice.n_zero == n
    assert twice.zero_rows == counts.zero_rows


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


def test_threads_do_not_change_the_numbers(monkeypatch):
    y, p = forecasts(300_000, 4, ties=False)
    w = np.random.default_rng(0).exponential(size=len(y))
    results = []
    for n_threads in (1, 2, 5):
        monkeypatch.setattr(rowstats, "n_cores", lambda n=n_threads: n)
        results.append(tally(y, p, w, rules=[vx.brier, vx.pll, vx.rps]))
    for other in results[1:]:
        assert other.moments.mean.tolist() == results[0].moments.mean.tolist()
        np.testing.assert_allclose(other.counts.confusion, results[0].counts.confusion, rtol=1e-13)


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
