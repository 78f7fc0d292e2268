"""Laws that every rule must keep, whatever its formula; every registered rule is held to all of them."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import verax as vx
from cases import COMPILED_FROM, NAMESPACES, RULES, forecasts
from verax.inputs.arrays import to_host
from verax.inputs.validity import Unity


def test_every_registered_rule_is_held_to_the_laws():
    assert set(vx.rules.RULES.values()) <= set(RULES)


def test_a_perfect_forecast_loses_nothing(rule):
    for k in (2, 3, 6):
        assert rule.samples(range(k), np.eye(k)).tolist() == [0.0] * k


def test_losses_stay_within_the_bounds(rule):
    for k in (2, 3, 7):
        y, p = forecasts(200, k)
        p[:k] = np.roll(np.eye(k), 1, axis=0)
        low, high = rule.bounds(k)
        losses = rule.samples(y, p)
        assert losses.min() >= low - 1e-15
        assert losses.max() <= high + 1e-15


@pytest.mark.long
@pytest.mark.parametrize("to", [np.asarray, *NAMESPACES[3:]])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_that_sum_to_a_little_more_than_one_lose_within_the_bounds(rule, to, dtype):
    # JAX compiles every operation for every shape, and has float32 alone.
    if to is NAMESPACES[-1] and dtype is np.float64:
        pytest.skip("JAX narrows float64 to float32")
    for k in (2, 3, 5) if to is np.asarray else (3,):
        corners = np.eye(k) * (1 + 0.99 * Unity.of(np.zeros(1, dtype)).tolerance)
        y, p = np.repeat(np.arange(k), k), np.tile(corners, (k, 1)).astype(dtype)
        losses = to_host(rule.samples(to(y), to(p))).astype(float)
        low, high = rule.bounds(k)
        # Rounding of losses in float32, which is what JAX has.
        slack = 1e-6 * high if losses.size and to is NAMESPACES[-1] and high < np.inf else 0.0
        assert losses.min() >= low
        assert losses.max() <= high + slack


# Every set of rules has a kernel of its own, which takes a second to compile; one has them all.
def test_so_they_do_when_compiled(change):
    pytest.importorskip("numba")
    change(compiled_from=0)
    for k in (3, 12):
        for outcome in (0, k - 1):
            for column in (0, k - 1):
                p = np.zeros((400, k))
                p[:, column] = 1 + 9e-7
                found = vx.evaluate([outcome] * 400, p, rules=RULES).scores.values()
                for rule, score in zip(RULES, found, strict=True):
                    low, high = rule.bounds(k)
                    # Means of many rows are rounded once more.
                    assert low <= score.mean <= high * (1 + 2**-52), rule


def test_the_upper_bound_is_attained(rule):
    for k in (2, 4):
        assert rule.by_outcome(np.eye(k)).max() == pytest.approx(rule.bounds(k)[1], rel=1e-14)


def test_the_call_is_the_weighted_mean_of_the_samples(rule):
    y, p = forecasts(101, 4, ties=False)
    w = np.random.default_rng(1).exponential(size=101)
    losses = rule.samples(y, p)
    assert rule(y, p) == pytest.approx(losses.mean(), rel=1e-13)
    assert rule(y, p, weights=w) == pytest.approx(np.average(losses, weights=w), rel=1e-13)


def test_the_order_of_the_rows_does_not_matter(rule):
    y, p = forecasts(60, 5, ties=False)
    order = np.random.default_rng(2).permutation(60)
    assert rule(y[order], p[order]) == pytest.approx(rule(y, p), rel=1e-14)
    assert rule.samples(y[order], p[order]).tolist() == rule.samples(y, p)[order].tolist()


def test_integer_weights_are_repeats_and_zero_weights_removals(rule):
    y, p = forecasts(40, 3)
    w = np.random.default_rng(3).integers(0, 4, 40)
    assert rule(y, p, weights=w) == pytest.approx(rule(np.repeat(y, w), np.repeat(p, w, axis=0)), rel=1e-13)
    assert rule(y, p, weights=w * 7.5) == pytest.approx(rule(y, p, weights=w), rel=1e-13)


def test_a_row_of_infinite_loss_without_weight_is_removed(rule):
    y, p = [0, 1], [[0.6, 0.4], [1.0, 0.0]]
    assert rule(y, p, weights=[1, 0]) == pytest.approx(rule(y[:1], p[:1]))


def test_relabelling_and_reversal(rule):
    y, p = forecasts(50, 4)
    losses = rule.samples(y, p)
    if rule.properties.at(4)["symmetric"]:
        for permutation in itertools.permutations(range(4)):
            relabelled = rule.samples(np.argsort(permutation)[y], p[:, permutation])
            assert relabelled == pytest.approx(losses, rel=1e-13)
    elif rule.ordinal and getattr(rule, "ties", None) != "lowest":
        assert rule.samples(3 - y, p[:, ::-1]) == pytest.approx(losses, rel=1e-13)
    else:
        assert rule.ties == "lowest"


def test_no_forecast_beats_the_truth_on_a_grid(rule):
    k, d = 3, 6
    grid = [c for c in itertools.product(range(d + 1), repeat=k) if sum(c) == d]
    p = np.array(grid) / d
    losses = rule.by_outcome(p)
    possible = np.where(p[:, None, :] > 0, losses[None, :, :], 0.0)
    expected = np.einsum("qk,qpk->qp", p, possible)
    own = np.diagonal(expected)[:, None]
    gap = expected - own
    if rule.properties.at(k)["proper"]:
        assert gap.min() >= -1e-14
    else:
        assert gap.min() < -1e-3
    if rule.properties.at(k)["strictly_proper"]:
        assert gap[~np.eye(len(grid), dtype=bool)].min() > 1e-3


def test_expected_score_entropy_and_divergence(rule):
    p, q = [0.5, 0.3, 0.2], [0.1, 0.6, 0.3]
    by_hand = sum(q[y] * rule.samples([y], [p])[0] for y in range(3))
    assert rule.expected(p, q) == pytest.approx(by_hand, rel=1e-14)
    assert rule.entropy(q) == rule.expected(q, q)
    assert rule.divergence(p, q) == pytest.approx(by_hand - rule.entropy(q), rel=1e-12)
    assert rule.divergence(q, q) == 0
    assert rule.expected([p, q], [q, q]) == pytest.approx([rule.expected(p, q), rule.entropy(q)])
    assert rule.entropy([0.0, 1.0, 0.0]) == 0


def test_labels_positions_and_one_hot_agree(rule):
    y, p = forecasts(30, 3)
    names = np.array(["low", "mid", "high"])
    losses = rule.samples(y, p).tolist()
    assert rule.samples(names[y], p, classes=names).tolist() == losses
    assert rule.samples(list(names[y]), p, classes=list(names)).tolist() == losses
    assert rule.samples(np.eye(3)[y], p).tolist() == losses
    assert rule.samples(y + 10, p, classes=[10, 11, 12]).tolist() == losses
    assert rule.samples(y.astype(float), p).tolist() == losses


@pytest.mark.parametrize("make", NAMESPACES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_array_library_gives_the_same_losses(rule, make, dtype):
    if make.__name__ == "jax" and dtype is np.float64:
        pytest.skip("JAX narrows float64 to float32")
    y, p = forecasts(64, 4, ties=False)
    p = p.astype(dtype)
    expected = rule.samples(y, p.astype(np.float64))
    array = make(p)
    got = rule.samples(make(y), array)
    assert type(got) is type(array) or isinstance(got, np.ndarray)
    tolerance = 2e-6 if make.__name__ == "jax" else 1e-13
    assert np.asarray(got) == pytest.approx(expected, rel=tolerance, abs=tolerance)
    mean = rule(make(y), array)
    assert isinstance(mean, float)
    assert mean == pytest.approx(expected.mean(), rel=tolerance)


def large(k=5):
    """As many rows as are compiled, with weights."""
    y, p = forecasts(COMPILED_FROM // k + 1001, k)
    return y, p, np.random.default_rng(4).exponential(size=len(y))


assert_close = partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-300)


def test_compiled_losses_of_rows_agree(rule):
    y, p, _ = large()
    block = slice(0, 5000)
    assert_close(rule.samples(y, p)[block], rule.samples(y[block], p[block]))


@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_means_agree(weighted):
    y, p, w = large()
    w = w if weighted else np.ones(len(y))
    given = {"weights": w} if weighted else {}
    found = {
        rule: score.mean
        for rule, score in zip(RULES, vx.evaluate(y, p, rules=RULES, **given).scores.values(), strict=True)
    }
    parts = [slice(start, start + 10_000) for start in range(0, len(y), 10_000)]
    for rule, mean in found.items():
        total = sum(w[part].sum() * rule(y[part], p[part], weights=w[part]) for part in parts)
        assert_close(mean, total / w.sum(), err_msg=repr(rule))
    for rule in (vx.ranked_log,) if weighted else (vx.brier, vx.penalized(vx.rps)):
        assert_close(rule(y, p, **given), found[rule])


def test_the_text_form_parses_back(rule):
    assert vx.parse(repr(rule)) == rule
    assert hash(vx.parse(str(rule))) == hash(rule)
    assert pickle.loads(pickle.dumps(rule)) == rule


def test_a_rule_says_what_it_is(rule):
    assert rule.summary
    assert rule.latex
    assert all(text.endswith(".") for text in (rule.description, rule.use, rule.avoid))
    assert rule.reference.startswith("doi:")
    assert "strictly proper" in str(rule.properties)


@pytest.mark.parametrize(
    ("rule", "exact"),
    [
        (vx.brier, lambda p, y: sum((q - (j == y)) ** 2 for j, q in enumerate(p))),
        (
            vx.rps,
            lambda p, y: sum((sum(p[: i + 1]) - (y <= i)) ** 2 for i in range(len(p) - 1)) / (len(p) - 1),
        ),
        (vx.sa_rps, lambda p, y: (sum(q * abs(j - y) for j, q in enumerate(p)) / (len(p) - 1)) ** 2),
        (vx.abs_rps, lambda p, y: sum(q * abs(j - y) for j, q in enumerate(p)) / (len(p) - 1)),
        (vx.zero_one, lambda p, y: 1 - Fraction(p[y] == max(p), p.count(max(p)))),
    ],
    ids=lambda x: repr(x) if isinstance(x, vx.rules.Rule) else "",
)
def test_exact_fractions(rule, exact):
    rng = np.random.default_rng(5)
    for _ in range(50):
        k = int(rng.integers(2, 9))
        counts = [int(c) for c in rng.integers(0, 2**20, k)]
        # A power of two as the denominator, so that the floats are the fractions.
        total = 2**25
        counts[int(rng.integers(k))] += total - sum(counts)
        p, y = [Fraction(c, total) for c in counts], int(rng.integers(k))
        assert rule([y], [[float(q) for q in p]]) == pytest.approx(float(exact(p, y)), rel=1e-14, abs=1e-300)


def test_nearly_certain_forecasts_keep_their_digits():
    e = Fraction(1, 2**30)
    p = [[1 - float(e), float(e / 2), float(e / 2)]]
    assert vx.brier([0], p) == pytest.approx(float(e**2 + e**2 / 2), rel=1e-14)
    assert vx.rps([0], p) == pytest.approx(float((e**2 + e**2 / 4) / 2), rel=1e-14)
    assert vx.log_score([0], p) == pytest.approx(float(e), rel=1e-8)
    assert vx.spherical([0], p) == pytest.approx(float(e**2 / 4), rel=1e-8)
    tiny = [[1 - 1e-9, 5e-10, 5e-10]]
    assert vx.brier([0], tiny) == pytest.approx(1.5e-18, rel=1e-6)
    assert vx.rps([0], tiny) == pytest.approx(6.25e-19, rel=1e-6)
