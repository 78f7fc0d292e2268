"""The Brier score over a range of decision thresholds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import trapezoid

import verax as vx

RANGE = vx.rules.ThresholdBrier(0.1, 0.3)


def drawn(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3, n)
    return (rng.random(n) < p**1.2).astype(int), p


def integral(y: int, p: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """Twice the integral of the elementary score: of 1 - t from p up, or of t up to p, within the range."""
    if y:
        start = min(max(p, low), high)
        return (1 - start) ** 2 - (1 - high) ** 2
    end = min(max(p, low), high)
    return end**2 - low**2


def test_it_is_twice_the_integral_of_elementary_scores_in_rationals():
    low, high = Fraction(1, 8), Fraction(5, 8)
    rule = vx.rules.ThresholdBrier(float(low), float(high))
    for y in (0, 1):
        for sixteenth in range(17):
            p = Fraction(sixteenth, 16)
            assert rule([y], [float(p)]) == float(integral(y, p, low, high))


def test_it_is_the_area_under_the_murphy_curve():
    y, p = drawn()
    curve = vx.diagrams.murphy(y, p, thresholds=np.linspace(0.1, 0.3, 801)).curve()
    assert 2 * trapezoid(curve.values, curve.thresholds) == pytest.approx(RANGE(y, p), abs=1e-5)


def test_all_thresholds_make_half_the_brier_score():
    y, p = drawn()
    whole, half = vx.rules.ThresholdBrier(), vx.rules.Brier(scale="half")
    np.testing.assert_allclose(whole.samples(y, p), half.samples(y, p), atol=1e-15)


def test_ranges_side_by_side_add_up():
    y, p = drawn()
    parts = [vx.rules.ThresholdBrier(a, b) for a, b in ((0, 0.1), (0.1, 0.3), (0.3, 1))]
    total = sum(rule.samples(y, p) for rule in parts)
    np.testing.assert_allclose(total, vx.rules.Brier(scale="half").samples(y, p), atol=1e-15)


# As briertools 0.0.4 computes it: BrierScorer().score(y, p, threshold_range=...).
def test_it_agrees_with_briertools():
    y, p = [0, 0, 1, 1, 0], [0.05, 0.25, 0.2, 0.9, 0.6]
    for (low, high), expected in {(0.1, 0.3): 0.0565, (0.05, 0.2): 0.015, (0.5, 0.9): 0.07}.items():
        assert vx.rules.ThresholdBrier(low, high)(y, p) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("ends", [(0.1, 0.3), (0.25, 0.75), (0.0, 1.0)])
def test_what_it_promises_is_what_a_search_finds(ends):
    rule = vx.rules.ThresholdBrier(*ends)
    found = vx.certify(rule, 2)
    for name in ("proper", "strictly_proper", "local", "symmetric", "distance_sensitive", "superior"):
        assert getattr(rule.properties, name).at(2) == getattr(found, name), name


def test_every_way_to_the_mean_gives_the_same(tmp_path, change):
    y, p = drawn()
    rows = np.stack([1 - p, p], axis=1)
    expected = RANGE.samples(y, p).mean()
    change(compiled_from=0)
    assert RANGE(y, p) == pytest.approx(expected, rel=1e-14)
    card = vx.evaluate(y, rows, rules=["threshold_brier(0.1, 0.3)"])
    assert card.scores["threshold_brier(low=0.1, high=0.3)"].mean == pytest.approx(expected, rel=1e-14)
    assert RANGE(np.eye(2)[y], rows) == pytest.approx(expected, rel=1e-14)
    card.save(tmp_path / "card.verax")
    assert list(vx.load(tmp_path / "card.verax").scores) == list(card.scores)


def test_shares_of_raters_are_averaged():
    rows, shares = [[0.8, 0.2], [0.3, 0.7]], [[0.25, 0.75], [1.0, 0.0]]
    each = RANGE.by_outcome(rows)
    np.testing.assert_allclose(RANGE.samples(shares, rows), (np.array(shares) * each).sum(axis=1), atol=1e-15)


def test_other_numbers_of_classes_are_refused():
    with pytest.raises(vx.errors.InputError, match=r"for two\. For one class against the rest"):
        RANGE([0, 1, 2], np.eye(3))
    with pytest.raises(vx.errors.RuleError, match="looks at some thresholds only; decompose brier"):
        vx.decompose(*drawn(), rule=RANGE)


@pytest.mark.parametrize(
    "ends", [(0.3, 0.1), (0.2, 0.2), (-0.1, 0.5), (0, 1.5), ("a", 1), (True, 1), (0, float("nan"))]
)
def test_thresholds_are_two_increasing_probabilities(ends):
    with pytest.raises(vx.errors.InputError, match="two increasing probabilities"):
        vx.rules.ThresholdBrier(*ends)
