"""The constants of rules for many classes."""

from __future__ import annotations

from fractions import Fraction

import pytest

import verax as vx


def largest_correct_rps(k):
    """The supremum by trying every number of classes at the far end (SPEC: y at an end is the worst)."""

    def total(b):
        return Fraction(b * (b + 1) * (2 * b + 1), 6) + b * b * (k - 1 - b)

    return max(total(b) / (b + 1) ** 2 for b in range(k))


@pytest.mark.parametrize("k", [*range(2, 60), 100, 999, 4096])
def test_the_largest_rps_of_a_correct_forecast(k):
    exact = largest_correct_rps(k)
    assert vx.rps.sup_correct(k) == float(exact / (k - 1))
    assert vx.rules.RPS(normalized=False).sup_correct(k) == float(exact)


@pytest.mark.parametrize("rule", [vx.pbs, vx.pll, vx.penalized(vx.rps), vx.penalized(vx.rps, "minimal")])
def test_constants_of_any_number_of_classes_take_no_time(rule):
    for k in (10**9, 10**30, 2**900):
        assert 0 < rule.constant(k) < 1000
        low, high = rule.bounds(k)
        assert low < high


def test_the_constant_approaches_one():
    distances = [1 - vx.rps.sup_correct(10**n) for n in range(1, 12)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] == pytest.approx(4 / (3 * 10**11) ** 0.5, rel=1e-3)
