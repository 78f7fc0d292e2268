"""Losses by class, from sums: against plain loops over the rows."""

import math
from fractions import Fraction

import numpy as np
import pytest

import verax as vx
from cases import needs_numba
from verax.analyses.classsums import ClassRecipe
from verax.inputs.memory import open_rows

RULES = (vx.brier, vx.log_score)


def summed(y, p, **given):
    handle = open_rows(y, p, **given)
    return handle.summarise({"classes": ClassRecipe(handle.models[0], RULES)})["classes"]


def losses_of(y, p):
    """The losses of each row by the same rules."""
    return ((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1), -np.log(p[np.arange(len(y)), y])


def rows(n=60, k=3):
    rng = np.random.default_rng(n)
    return rng.integers(0, k, n), rng.dirichlet(np.ones(k), n), rng.integers(0, 4, n) / 4 + 0.0


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_numba)])
@pytest.mark.parametrize("loose", [False, True])
def test_sums_of_weighted_rows_are_those_of_a_loop(compiled, loose, change):
    change(compiled_from=0, kernels=compiled)
    y, p, w = rows()
    y[y == 2] = 0 if loose else 2
    found = summed(y, p, weights=w)
    for r, loss in enumerate(losses_of(y, p)):
        for k in range(3):
            own = [(Fraction(a), Fraction(b)) for a, b, c in zip(w, loss.tolist(), y, strict=True) if c == k]
            expected = [
                sum((a * b for a, b in own), Fraction()),
                sum((a * b * b for a, b in own), Fraction()),
                sum((a * a * b for a, b in own), Fraction()),
                sum((a * a * b * b for a, b in own), Fraction()),
            ]
            assert found.losses.high[k, r, :4].tolist() == pytest.approx(
                list(map(float, expected)), rel=1e-13
            )


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=needs_numba)])
def test_infinite_losses_are_counted_and_rows_without_weight_are_not(compiled, change):
    change(compiled_from=0, kernels=compiled)
    y = np.array([0, 0, 1, 1])
    p = np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0], [0.25, 0.75]])
    found = summed(y, p, weights=np.array([2.0, 1.0, 0.0, 4.0]))
    assert found.losses.high[0, 1].tolist() == pytest.approx([math.log(2), math.log(2) ** 2] * 2 + [2, 1])
    first = -4 * math.log(0.75)
    second = 4 * math.log(0.75) ** 2
    assert found.losses.high[1, 1].tolist() == pytest.approx([first, second, 4 * first, 4 * second, 0, 0])


@pytest.mark.parametrize("weighted", [False, True])
def test_means_over_groups_are_those_of_the_jackknife(weighted):
    y, p, w = rows()
    groups = np.arange(len(y)) % 7
    found = summed(y, p, groups=groups, **({"weights": w} if weighted else {}))
    w = w if weighted else np.ones(len(y))
    for k in range(3):
        for loss, (mean, error, _) in zip(losses_of(y, p), found.means(k), strict=True):
            own = (y == k) & (w > 0)

            def of(rows, loss=loss):
                return np.average(loss[rows], weights=w[rows])

            present = np.unique(groups[own])
            without = np.array([of(own & (groups != g)) for g in present])
            variance = (len(present) - 1) / len(present) * ((without - of(own)) ** 2).sum()
            assert mean == pytest.approx(of(own), rel=1e-12)
            assert error == pytest.approx(math.sqrt(variance), rel=1e-9)
