"""Gradients of every rule in the logits: exact vectors, automatic differentiation, differences, laws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import ref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import verax as vx
from cases import GRADIENTS, RULES, SMOOTH, number
from verax.rules import Brier
from verax.scores.gradients.duals import Dual, DualNamespace
from verax.scores.gradients.logits import derivatives
from verax.scores.gradients.statistics import Block
from verax.scores.rules import OrdinalRule

TRAINABLE = [rule for rule in SMOOTH if rule.properties.strictly_proper == vx.rules.Holds.ALWAYS]


@dataclass(frozen=True, repr=False)
class Blend(OrdinalRule):
    """A rule of this test alone: nothing in the library knows it."""

    name = "blend"
    needs = frozenset({"cdf_l2", "rest_sq", "log_true"})
    properties = vx.rps.properties

    def formula(self, stats):
        xp = stats.xp
        norm = xp.sqrt(stats.p_true**2 + stats.rest_sq)
        return 0.5 * stats.cdf_l2 - 0.1 * stats.log_true + 1 - stats.p_true / norm

    def bounds(self, n_classes):
        return 0.0, float("inf")


@dataclass(frozen=True, repr=False)
class Everything(OrdinalRule):
    """Not proper: every function and operator that formulas may use, on every statistic."""

    name = "everything"
    needs = frozenset({"log_true", "rest_sq", "cdf_l2", "cdf_l1", "cdf_log", "top", "hit", "hit_lowest"})
    properties = vx.sa_rps.properties

    def formula(self, stats):
        xp, p = stats.xp, stats.p_true
        far = xp.where(stats.cdf_l1 > 1, stats.cdf_l1**3, 2 / (1 + stats.cdf_l2))
        smooth = xp.exp(-p) * xp.log1p(p) + xp.tanh(p) / (1 + xp.square(p)) + xp.expm1(p) - xp.atan(p)
        trig = xp.sin(p) - xp.cos(p) + xp.asin(0.5 * p) * xp.acos(0.5 * p) + xp.log2(1 + p) * xp.log10(2 + p)
        jumps = stats.hit * p + (1 - stats.hit_lowest) * stats.rest_sq * xp.sign(p - 2)
        extremes = xp.maximum(p, 0.3) + xp.minimum(p, stats.rest_sq) + xp.clip(p, 0.1, 0.6) + abs(p - 0.5)
        powers = 2**p + p**p + 1 / xp.sqrt(0.1 + p) - xp.divide(p, xp.add(1, p))
        logs = stats.cdf_log * stats.log_true * 0.1 + xp.abs(stats.log_true)
        return far + smooth + trig + jumps + extremes + powers + logs + p * stats.top**2

    def bounds(self, n_classes):
        return 0.0, float("inf")


def by_torch(rule, y, z):
    torch = pytest.importorskip("torch")

    leaf = torch.tensor(z, dtype=torch.float64, requires_grad=True)
    rule.samples(y, leaf, logits=True).sum().backward()
    return leaf.grad.numpy()


def rows(n, k, seed=0, spread=3.0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, k, n), rng.normal(size=(n, k)) * spread


# ---- oracles -----------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", GRADIENTS, ids=lambda e: e["id"])
def test_vectors(entry):
    rule, z = vx.parse(entry["params"]["base"]), [[number(x) for x in entry["params"]["logits"]]]
    expected = {name: [number(x) for x in entry["expected"][name]] for name in ("grad", "hess_expected")}
    # Where terms of size one cancel, what is left is right to the rounding of those terms.
    assert vx.gradient(rule, [entry["y"]], z)[0] == pytest.approx(expected["grad"], rel=1e-12, abs=3e-16)
    assert vx.rules.expected_hessian(rule, z)[0] == pytest.approx(
        expected["hess_expected"], rel=1e-12, abs=3e-16
    )


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("rule", [*SMOOTH, Blend(), Everything()], ids=repr)
def test_gradients_are_those_of_torch(rule, k):
    y, z = rows(200, k)
    np.testing.assert_allclose(vx.gradient(rule, y, z), by_torch(rule, y, z), rtol=1e-9, atol=1e-13)


@given(
    data=st.data(), k=st.integers(2, 6), rule=st.sampled_from([*TRAINABLE, vx.sa_rps, vx.abs_rps, Blend()])
)
def test_gradients_are_those_of_differences(data, k, rule):
    z = data.draw(arrays(np.float64, (1, k), elements=st.floats(-4, 4)))
    y = [data.draw(st.integers(0, k - 1))]
    step = 1e-5
    ahead, behind = z + step * np.eye(k), z - step * np.eye(k)
    # Near a change of mode the zero-one loss jumps, which is no slope.
    modes = {tuple(row == row.max()) for row in (*ahead, *behind, *z)}
    if len(modes) > 1:
        return
    loss = [rule.samples(y * k, at, logits=True) for at in (ahead, behind)]
    differences = (loss[0] - loss[1]) / (2 * step)
    np.testing.assert_allclose(vx.gradient(rule, y, z)[0], differences, rtol=1e-5, atol=1e-7)


@pytest.mark.long
@pytest.mark.parametrize("rule", [*TRAINABLE, Blend()], ids=repr)
def test_hessians_are_those_of_torch(rule):
    """The expectation over the outcome of the exact second derivatives, taken one by one."""
    torch = pytest.importorskip("torch")

    _, z = rows(4, 4, seed=1, spread=1.5)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    expected = np.zeros_like(z)
    for i, row in enumerate(z):
        for outcome in range(4):
            loss = lambda leaf, outcome=outcome: rule.samples([outcome], leaf[None, :], logits=True)[0]  # noqa: E731
            exact = torch.autograd.functional.hessian(loss, torch.tensor(row))
            expected[i] += p[i, outcome] * np.diag(exact.numpy())
    np.testing.assert_allclose(vx.rules.expected_hessian(rule, z), expected, rtol=1e-9, atol=1e-12)


# ---- laws --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [*RULES, Blend()], ids=repr)
def test_adding_a_number_to_all_logits_changes_nothing(rule):
    y, z = rows(50, 5)
    g = vx.gradient(rule, y, z)
    np.testing.assert_allclose(g.sum(axis=1), 0, atol=1e-14)
    np.testing.assert_allclose(vx.gradient(rule, y, z + 100), g, atol=1e-12)


@pytest.mark.parametrize("rule", [*TRAINABLE, Blend()], ids=repr)
def test_a_proper_rule_is_flat_at_the_truth(rule):
    _, z = rows(20, 5)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    expected = sum(p[:, [k]] * vx.gradient(rule, np.full(20, k), z) for k in range(5))
    np.testing.assert_allclose(expected, 0, atol=1e-13)
    assert (vx.rules.expected_hessian(rule, z) > 0).all()


@pytest.mark.parametrize("rule", [vx.pbs, vx.pll, vx.penalized(vx.rps), vx.padded(vx.brier)], ids=repr)
def test_jumps_have_no_gradient(rule):
    y, z = rows(50, 4)
    for ours, inner in zip(derivatives(rule, y, z), derivatives(rule.rule, y, z), strict=True):
        np.testing.assert_array_equal(ours, inner)
    assert not vx.gradient(vx.zero_one, y, z).any()


@pytest.mark.parametrize("rule", [*TRAINABLE, vx.sa_rps, vx.abs_rps, Blend()], ids=repr)
def test_extreme_logits_give_finite_numbers(rule):
    z = np.array([[0.0, -1000, -900, 5], [1e5, -1e5, 0, 3], [-800, 0, -800, -900], [0, 0, 0, 1e300]])
    for k in range(4):
        y = np.full(len(z), k)
        assert np.isfinite(vx.gradient(rule, y, z)).all()
        if rule in TRAINABLE:
            h = vx.rules.expected_hessian(rule, z)
            assert (np.isfinite(h) & (h >= 0)).all()


def test_log_scores_keep_their_pull_on_outcomes_that_were_ruled_out():
    z = [[-1000.0, -900.0, 0.0]]
    np.testing.assert_allclose(vx.gradient(vx.log_score, [0], z), [[-1, 0, 1]], atol=1e-15)
    # Below the first threshold is class 0 alone, below the second class 1 all but alone.
    np.testing.assert_allclose(vx.gradient(vx.ranked_log, [0], z), [[-0.5, -0.5, 1]], atol=1e-15)
    np.testing.assert_allclose(vx.gradient(vx.ranked_log, [2], [z[0][::-1]]), [[1, -0.5, -0.5]], atol=1e-15)


def test_ranked_log_by_logs_is_ranked_log():
    y, z = rows(500, 5)
    far = np.vstack([z, [[0, -700, 0, 0, 0]]])
    near, logs = derivatives(vx.ranked_log, y, z), derivatives(vx.ranked_log, [*y, 0], far)
    for plain, logged in zip(near, logs, strict=True):
        np.testing.assert_allclose(plain, logged[:-1], rtol=1e-12, atol=1e-15)


# ---- forms -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [*TRAINABLE, vx.sa_rps], ids=repr)
def test_log_odds_are_the_second_of_two_logits(rule):
    y, z = rows(30, 2)
    z[:, 0] = 0
    g, h = derivatives(rule, y, z[:, 1])
    assert g.shape == h.shape == (30,)
    np.testing.assert_array_equal(g, vx.gradient(rule, y, z)[:, 1])
    np.testing.assert_array_equal(h, vx.rules.expected_hessian(rule, z)[:, 1])


@pytest.mark.parametrize(("n", "k"), [(70_000, 3), (3_000, 40), (1, 2)])
def test_blocks_do_not_show(n, k):
    y, z = rows(n, k)
    g, h = derivatives(vx.rps, y, z)
    for part in (slice(0, 7), slice(-7, None), slice(n // 2, n // 2 + 7)):
        one, other = derivatives(vx.rps, y[part], z[part])
        np.testing.assert_allclose(g[part], one, rtol=1e-13, atol=1e-16)
        np.testing.assert_allclose(h[part], other, rtol=1e-13, atol=1e-16)


def test_outcomes_come_in_every_form():
    y, z = rows(20, 3)
    g = vx.gradient(vx.rps, y, z)
    names = np.array(["low", "middle", "high"])
    for same in (y.astype(np.float32), np.eye(3)[y], y.tolist()):
        np.testing.assert_array_equal(vx.gradient(vx.rps, same, z), g)
    np.testing.assert_array_equal(vx.gradient(vx.rps, names[y], z, classes=names.tolist()), g)
    np.testing.assert_allclose(vx.gradient(vx.rps, y, z.astype(np.float32)), g, atol=1e-6)


def test_columns_of_a_frame_follow_the_classes():
    import pandas as pd

    y, z = rows(20, 3)
    frame = pd.DataFrame(z, columns=["low", "middle", "high"])[["high", "low", "middle"]]
    labels = np.array(["low", "middle", "high"])[y]
    shuffled = vx.gradient(vx.rps, labels, frame, classes=["low", "middle", "high"])
    np.testing.assert_array_equal(shuffled, vx.gradient(vx.rps, y, z))


@pytest.mark.parametrize(
    ("y", "logits", "argument"),
    [
        ([0], [[0.0, np.inf]], "logits"),
        ([0, 1], [0.5, np.nan], "logits"),
        ([1, 2], [[0.0, 0.0], [1.0, 2.0]], "y"),
        ([0], [[0.0, 0.0], [1.0, 2.0]], "logits"),
        ([0], [[1.0]], "logits"),
        ([0], 0.5, "logits"),
        (None, [[0.0, 0.0]], "y"),
    ],
)
def test_what_is_no_logit_or_no_outcome_is_named(y, logits, argument):
    with pytest.raises(vx.InputError) as caught:
        vx.gradient(vx.rps, y, logits)
    assert caught.value.argument == argument


def test_what_is_no_rule_has_no_gradient():
    with pytest.raises(vx.InputError) as caught:
        vx.gradient("rps", [0], [[0.0, 0.0]])
    assert caught.value.argument == "rule"


# ---- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [vx.sa_rps, vx.abs_rps, vx.rules.Log(clip=0.01), Everything()], ids=repr)
def test_rules_that_are_not_proper_train_nothing(rule):
    with pytest.raises(vx.errors.RuleError, match="is not proper for 3 classes"):
        vx.rules.expected_hessian(rule, [[0.0, 0.0, 0.0]])


def test_rules_of_unknown_propriety_train_nothing():
    @dataclass(frozen=True, repr=False)
    class Unknown(Brier):
        name = "unknown"
        properties = replace(vx.brier.properties, proper=vx.rules.Holds.UNKNOWN)

    with pytest.raises(vx.errors.RuleError, match="is not known to be proper for 2 classes"):
        vx.rules.expected_hessian(Unknown(), [[0.0, 0.0]])


def test_a_rule_that_is_proper_for_two_classes_trains_two():
    assert vx.rules.expected_hessian(vx.sa_rps, [[0.0, 0.0]]).tolist() == [[0.125, 0.125]]


def test_a_rule_that_only_jumps_trains_nothing():
    with pytest.raises(vx.errors.RuleError, match="zero_one has no gradient"):
        vx.rules.expected_hessian(vx.zero_one, [[0.0, 0.0, 0.0]])


def test_formulas_that_cannot_be_differentiated_say_why():
    @dataclass(frozen=True, repr=False)
    class Odd(Brier):
        name = "odd"

        def formula(self, stats):
            return stats.xp.logaddexp(stats.p_true, 0.5)

    with pytest.raises(vx.errors.RuleError, match="the derivative of logaddexp is not known"):
        vx.gradient(Odd(), [0], [[0.0, 0.0]])

    @dataclass(frozen=True, repr=False)
    class Lists(Brier):
        name = "lists"
        needs = frozenset({"length"})

    with pytest.raises(vx.errors.RuleError, match="needs `length`, which only top lists and sets have"):
        vx.gradient(Lists(), [0], [[0.0, 0.0]])


def test_duals_compare_by_value():
    x, xp = Dual(np.array([1.0, 2.0]), {"x": 1.0}), DualNamespace()
    for value in (x < 2, x <= 1, x == 1, xp.less(x, 2)):
        assert value.tolist() == [True, False]
    for value in (x > 1, x >= 2, x != 1, xp.greater(x, 1.5)):
        assert value.tolist() == [False, True]
    assert (x - x).parts["x"] == 0
    assert (np.array([3.0, 4.0]) - x).parts["x"] == -1
    assert xp.ones_like(x).tolist() == [1, 1]
    assert xp.log(1.0) == 0
    assert xp.pi == np.pi


def test_blocks_are_freed_without_a_collection_of_garbage():
    block = Block(np.zeros((3, 4)), np.arange(4) % 3)
    _ = block.happened.rest_sq, block.values.rest_sq
    gone = ref(block)
    del block
    assert gone() is None
