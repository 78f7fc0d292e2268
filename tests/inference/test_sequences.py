"""Confidence sequences: right at all times at once, and not for ever undecided."""

from __future__ import annotations

import math

import numpy as np
import pytest

import verax as vx
from cases import forecasts


def test_the_interval_is_hardly_ever_wrong_at_any_time():
    rng = np.random.default_rng(0)
    runs, n, step = 300, 1500, 25
    sequence_wrong = ordinary_wrong = 0
    for _ in range(runs):
        q = rng.random(n)
        y = (rng.random(n) < q).astype(int)
        a, b = (np.clip(q + 0.15 * rng.normal(size=n), 0, 1) for _ in range(2))
        d = vx.brier.samples(y, a) - vx.brier.samples(y, b)
        expected = np.cumsum(2 * ((a - q) ** 2 - (b - q) ** 2)) / np.arange(1, n + 1)
        sequence = vx.ConfidenceSequence(vx.brier, n_classes=2)
        wrong, fooled = False, False
        for start in range(0, n, step):
            low, high = sequence.update_differences(d[start : start + step])
            t = start + step
            wrong |= not low <= expected[t - 1] <= high
            half = 1.96 * d[:t].std(ddof=1) / math.sqrt(t)
            fooled |= abs(d[:t].mean() - expected[t - 1]) > half
        sequence_wrong += wrong
        ordinary_wrong += fooled
    assert sequence_wrong <= 0.05 * runs
    # What looking again and again does to an ordinary interval.
    assert ordinary_wrong > 0.15 * runs


def test_batches_do_not_matter():
    y, a = forecasts(200, 3, ties=False)
    _, b = forecasts(200, 3, seed=1, ties=False)
    whole, bits = (vx.ConfidenceSequence("rps", n_classes=3) for _ in range(2))
    whole.update(y, a, b)
    for start in range(0, 200, 7):
        part = slice(start, start + 7)
        bits.update(y[part], a[part], b[part])
    assert bits.interval == pytest.approx(whole.interval, rel=1e-12)
    assert bits.difference == pytest.approx(vx.rps(y, a) - vx.rps(y, b))
    assert bits.n_rows == 200


def test_it_decides_when_there_is_something_to_decide():
    rng = np.random.default_rng(0)
    sequence = vx.ConfidenceSequence("brier", n_classes=2)
    assert not sequence.decided
    widths = []
    for _ in range(30):
        y = (rng.random(100) < 0.9).astype(int)
        low, high = sequence.update(y, np.full(100, 0.9), np.full(100, 0.5))
        widths.append(high - low)
    assert sequence.decided
    assert sequence.interval[1] < 0
    assert widths[-1] < 0.2 * widths[0]
    assert "at all times" in repr(sequence)


def test_the_boundary_by_hand():
    # Howard et al. (2021), Theorem 1: eta = 2.04, s = 1.4, m = c^2, a tail of 2.5 % on each side.
    sequence = vx.ConfidenceSequence("rps", n_classes=3)
    c, v = 2.0, 50.0
    zeta = 3.1055
    ell = 1.4 * math.log(math.log(v / 4) / math.log(2.04) + 1) + math.log(zeta) - math.log(0.025)
    k1, k2 = (2.04**0.25 + 2.04**-0.25) / math.sqrt(2), (math.sqrt(2.04) + 1) / 2
    expected = math.sqrt(k1**2 * v * ell + k2**2 * c**2 * ell**2) + k2 * c * ell
    assert sequence._boundary(v) == pytest.approx(expected, rel=1e-4)


def test_refusals():
    with pytest.raises(vx.RuleError, match="log_score has no upper bound"):
        vx.ConfidenceSequence("log", n_classes=3)
    with pytest.raises(vx.InputError, match="`confidence` must lie"):
        vx.ConfidenceSequence("brier", n_classes=3, confidence=95)
    sequence = vx.ConfidenceSequence("brier", n_classes=3)
    for bad in ([np.nan], [[0.1]], [2.5], ["a"], None, 0.5):
        with pytest.raises(vx.InputError) as caught:
            sequence.update_differences(bad)
        assert caught.value.argument == "differences"
    for n_classes in (0, 1, -3, 2.5, "3", None, 2**901):
        with pytest.raises(vx.InputError) as caught:
            vx.ConfidenceSequence("brier", n_classes=n_classes)
        assert caught.value.argument == "n_classes"
    with pytest.raises(vx.InputError) as caught:
        sequence.update([0], [[0.5, 0.25, 0.25]], [[0.5, 0.5]])
    assert (caught.value.argument, caught.value.kind) == ("b", "length")
    assert sequence.interval == (-2, 2)
    assert sequence.interval.method == "confidence sequence"
    assert math.isnan(sequence.difference)
