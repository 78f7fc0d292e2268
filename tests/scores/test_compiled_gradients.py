"""Compiled gradients, expected Hessians and losses: those of exact vectors and of the array calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import verax as vx
from cases import GRADIENTS, RULES, SMOOTH, number
from verax.kernels.fewclasses import FEW
from verax.kernels.shared import FAR
from verax.scores.gradients.logits import (
    Scaling,
    _losses_with_gradient,
    derivatives,
    losses_with_gradient,
    run_compiled,
    run_with_losses,
)
from verax.scores.rules import OrdinalRule
from verax.wings.frameworks.rowslopes import compiles_rows, losses_with_slopes

pytest.importorskip("numba")


@dataclass(frozen=True, repr=False)
class OwnRule(OrdinalRule):
    """A rule of this test alone: every statistic that moves, every operation that can be traced.

    Not proper, as far as anybody knows; derivatives do not depend on it.
    """

    name = "own_rule"
    needs = frozenset({"log_true", "rest_sq", "cdf_l2", "cdf_l1", "cdf_log"})
    properties = vx.rps.properties

    def formula(self, stats):
        xp, p = stats.xp, stats.p_true
        ends = xp.maximum(p, 0.5) - 2 * xp.minimum(p, 0.5) + xp.minimum(stats.rest_sq, p)
        smooth = xp.exp(-p) + xp.sqrt(0.1 + stats.rest_sq) + xp.log(1 + stats.cdf_l2) / (2 - p)
        return ends + smooth + xp.abs(stats.cdf_l1 - 0.7) + (-stats.log_true + stats.cdf_log) * 0.1 + p**2

    def bounds(self, n_classes):
        return 0.0, float("inf")


@dataclass(frozen=True, repr=False)
class OfTheTop(OwnRule):
    """A rule of a statistic that the compiled loop does not know."""

    name = "of_the_top"
    needs = frozenset({"top"})

    def formula(self, stats):
        return (stats.top - stats.p_true) ** 2


@dataclass(frozen=True, repr=False)
class Untraced(OwnRule):
    """A rule with a function that cannot be traced."""

    name = "untraced"
    needs = frozenset({"rest_sq"})

    def formula(self, stats):
        return (1 - stats.p_true) ** 2 + stats.xp.where(stats.rest_sq < 2, stats.rest_sq, 2.0)


@pytest.fixture
def compiled(change):
    """Derivatives by the compiled loop and by array calls, however few rows there are."""

    def both(rule, y, z, floor=0.1, scaling=None):
        scaling = scaling or Scaling(weights=np.ones(len(y)))
        found = []
        for most in (0, 2**60):
            change(compiled_from=most)
            assert (run_compiled(rule, np.asarray(z), y, floor, scaling) is None) == (most > 0)
            found.append(derivatives(rule, y, z, floor=floor, scaling=scaling))
        return found

    return both


def same(found, rule):
    (g, h), (by_arrays, second) = found
    # Gradients are differences of terms of size one: what is left is right to the rounding of those. So are
    # the Hessians of rules that sum logarithms over thresholds, where a forecast is nearly certain.
    np.testing.assert_allclose(g, by_arrays, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(h, second, rtol=1e-12, atol=1e-14 if "cdf_log" in rule.needs else 1e-16)


def logits(k, seed=0):
    """Ordinary rows, equal logits, and logits so far apart that floats overflow."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(700, k)) * rng.choice([0.1, 3, 30], size=(700, 1))
    far = rng.choice([-1e4, -750, -710, -650, -40, 0, 1, 700, 1e4], size=(300, k))
    z = np.concatenate([z, far, np.zeros((20, k)), 1e4 * np.eye(k), -1e4 * np.eye(k)])
    return rng.integers(0, k, len(z)), z, rng.random(len(z))


def trains(rule, k):
    return rule == OwnRule() or (rule in SMOOTH and bool(rule.properties.proper.at(k)))


# A kernel takes a while to compile. How a rule is printed does not depend on the number of classes, so each
# has one number. How statistics are printed does, and OwnRule has them all.
CASES = [
    *((rule, 3 if trains(rule, 3) else 2) for rule in SMOOTH if trains(rule, 2)),
    *((OwnRule(), k) for k in (2, 3, 5, 10)),
    (vx.log_score, 2),
    (vx.rps, 5),
    (vx.ranked_log, 10),
]


@pytest.mark.long
@pytest.mark.parametrize(("rule", "k"), CASES, ids=lambda value: repr(value))
def test_compiled_derivatives_are_those_of_array_calls(rule, k, compiled):
    y, z, w = logits(k)
    same(compiled(rule, y, z, scaling=Scaling(1.5, 2.0, 1e-16, w)), rule)


# Those whose kernels other tests compile, too.
VECTORS = [(e, (vx.parse(e["params"]["base"]), len(e["params"]["logits"]))) for e in GRADIENTS]
VECTORS = [entry for entry, case in VECTORS if case in CASES]


def test_every_rule_of_the_vectors_is_among_them():
    assert {e["params"]["base"] for e in VECTORS} == {e["params"]["base"] for e in GRADIENTS}


@pytest.mark.parametrize("entry", VECTORS, ids=lambda e: e["id"])
def test_vectors(entry, compiled):
    rule, z = vx.parse(entry["params"]["base"]), [[number(x) for x in entry["params"]["logits"]]]
    (g, h), _ = compiled(rule, np.array([entry["y"]]), z, floor=0.0)
    assert g[0] == pytest.approx([number(x) for x in entry["expected"]["grad"]], rel=1e-12, abs=4e-16)
    assert h[0] == pytest.approx(
        [number(x) for x in entry["expected"]["hess_expected"]], rel=1e-12, abs=4e-16
    )


def test_forms(compiled):
    """Types, orders in memory, log odds, no weights."""
    y, z, w = logits(3)
    frozen = z.copy()
    frozen.flags.writeable = False
    for given in (z.astype(np.float32), np.asfortranarray(z), z[:, ::-1], frozen, z.astype(">f8")):
        same(compiled(vx.rps, y, given, scaling=Scaling(weights=w)), vx.rps)
    whole = np.round(np.clip(z, -100, 100)).astype(np.int16)
    same(compiled(vx.rps, y, whole, scaling=Scaling(weights=w)), vx.rps)
    same(compiled(vx.rps, y, z, scaling=Scaling(0.5, 2.0)), vx.rps)
    y, z, w = logits(2)
    for odds in (z[:, 1], z[:, 1].astype(np.float32)):
        same(compiled(vx.rps, y, odds, scaling=Scaling(weights=w)), vx.rps)


def test_rows_of_many_parts(compiled):
    rng = np.random.default_rng(0)
    z, y, w = rng.normal(size=(200_003, 3)), rng.integers(0, 3, 200_003), rng.random(200_003)
    same(compiled(vx.rps, y, z, scaling=Scaling(weights=w)), vx.rps)


def test_only_rows_out_of_range_are_left_to_array_calls(change):
    change(compiled_from=0)
    y, z, w = logits(3)
    far = z.min(axis=1) - z.max(axis=1) < FAR
    assert 0 < far.sum() < len(z) / 2
    for rule, expected in ((vx.rps, np.zeros_like(far)), (vx.log_score, 0 & far), (vx.ranked_log, far)):
        left = run_compiled(rule, z, y, 0.1, Scaling(weights=w))[2]
        np.testing.assert_array_equal(left, expected)


def test_equal_operands_of_extremes_have_the_slope_of_the_first(compiled):
    # Half is a probability and a limit of this rule at once.
    same(compiled(OwnRule(), np.array([0, 1]), np.zeros((2, 2))), OwnRule())


@pytest.mark.filterwarnings("ignore:The formula of untraced is computed by array calls")
@pytest.mark.parametrize("rule", [Untraced(), OfTheTop(), vx.zero_one], ids=repr)
def test_other_formulas_are_left_to_array_calls(rule, change):
    change(compiled_from=0)
    y, z, w = logits(3)
    assert run_compiled(rule, z, y, 0.1, Scaling(weights=w)) is None


def test_few_rows_and_many_classes_are_left_to_array_calls(change):
    y, z, w = logits(3)
    assert run_compiled(vx.rps, z, y, 0.1, Scaling(weights=w)) is None
    change(compiled_from=0)
    assert run_compiled(vx.rps, z, y, 0.1, Scaling(weights=w)) is not None
    assert run_compiled(vx.rps, np.zeros((5, FEW + 1)), np.zeros(5, int), 0.1, Scaling()) is None
    change(kernels=False)
    assert run_compiled(vx.rps, z, y, 0.1, Scaling(weights=w)) is None


def test_every_registered_rule_that_trains_is_compiled(change):
    change(compiled_from=0)
    y, z, w = logits(3)
    scaling = Scaling(weights=w)
    for rule in RULES:
        if trains(rule, 3):
            assert run_compiled(rule, z, y, 0.1, scaling) is not None


# ---- losses with gradients ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "k"),
    [
        (OwnRule(), 3),
        (vx.brier, 2),
        (vx.rps, 5),
        (vx.log_score, 3),
        (vx.ranked_log, 4),
        (vx.spherical, 10),
        (vx.pbs, 5),
        (vx.pll, 3),
        (vx.penalized(vx.ranked_log, 1.0, ties="lowest"), 4),
    ],
    ids=repr,
)
def test_losses_with_gradients_are_those_of_array_calls(rule, k, change):
    change(search_compiled_from=0)
    y, z, _ = logits(k)
    z = np.ascontiguousarray(z.T)
    losses, g = losses_with_gradient(rule, z, y)
    left = run_with_losses(rule, z, y)[2]
    assert np.count_nonzero(left) < len(y) / 2
    expected, by_arrays = _losses_with_gradient(rule, z, y)
    np.testing.assert_allclose(losses, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(g, by_arrays, rtol=1e-12, atol=1e-14)


def test_where_losses_with_gradients_are_left_to_array_calls(change, monkeypatch):
    y, z, _ = logits(3)
    z = np.ascontiguousarray(z.T)
    assert run_with_losses(vx.rps, z, y) is None
    change(search_compiled_from=0)
    assert run_with_losses(vx.rps, z, y) is not None
    for rule in (Untraced(), OfTheTop(), vx.zero_one):
        assert run_with_losses(rule, z, y) is None
    assert run_with_losses(vx.rps, np.zeros((FEW + 1, 5)), np.zeros(5, int)) is None
    change(kernels=False)
    assert run_with_losses(vx.rps, z, y) is None


# ---- rows of many classes ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "k"),
    [
        (OwnRule(), 11),
        (vx.brier, 12),
        (vx.rps, 40),
        (vx.sa_rps, 17),
        (vx.abs_rps, 23),
        (vx.log_score, 1000),
        (vx.ranked_log, 37),
        (vx.spherical, 100),
        (vx.pbs, 13),
        (vx.penalized(vx.ranked_log, 1.0, ties="lowest"), 14),
    ],
    ids=repr,
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_losses_of_rows_of_many_classes_are_those_of_array_calls(rule, k, dtype, change):
    change(loss_compiled_after=0)
    rng = np.random.default_rng(0)
    y, z = rng.integers(0, k, 150), (3 * rng.normal(size=(150, k))).astype(dtype)
    y[:5], y[5:10] = 0, k - 1
    # Equal largest logits, impossible classes, a certain forecast, and rows that are left to array calls.
    z[10:20] = np.round(z[10:20])
    z[20:30, ::3], y[20:30] = -np.inf, 1
    z[np.arange(30, 40), y[30:40]] = 60
    z[40:45, 2], y[40:45] = 900, 5
    factors = rng.random(150)
    assert compiles_rows(rule, *z.shape)
    losses, g = losses_with_slopes(rule, z, y, factors, 1)
    expected, slopes = _losses_with_gradient(rule, np.ascontiguousarray(z.T, np.float64), y)
    assert g.dtype == dtype
    limit = {"rtol": 1e-10, "atol": 1e-13} if dtype == np.float64 else {"rtol": 1e-6, "atol": 1e-9}
    np.testing.assert_allclose(losses, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(g, (slopes * factors).T, **limit)


def test_threads_share_rows_of_many_classes(change):
    change(loss_compiled_after=0)
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(3001, 100)), rng.integers(0, 100, 3001)
    assert compiles_rows(vx.brier, *z.shape)
    one, three = (losses_with_slopes(vx.brier, z, y, np.ones(len(y)), n) for n in (1, 3))
    for alone, shared in zip(one, three, strict=True):
        np.testing.assert_array_equal(alone, shared)


@pytest.mark.filterwarnings("ignore:The formula of untraced")
def test_which_rows_have_a_loop(change):
    assert not compiles_rows(vx.rps, 100, 30)
    # A large batch counts as many calls.
    assert compiles_rows(vx.rps, 10**6, 30)
    change(loss_compiled_after=0)
    for rule, k in ((Untraced(), 30), (OfTheTop(), 30), (vx.rps, FEW)):
        assert not compiles_rows(rule, 100, k)
    change(kernels=False)
    assert not compiles_rows(vx.rps, 10**6, 30)
