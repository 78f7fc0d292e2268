"""The law of the paths: every kind of rows, by every rule, gives the same numbers however it is read."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import verax as vx
from verax.engines.tally import RuleSums
from verax.inputs.arrays import Columns
from verax.inputs.memory import pair
from verax.kernels.ledger import kernels
from verax.scores.base import losses_of

N, K = 400, 5


def dense(rng):
    return rng.dirichlet(np.ones(K), N), {}


def columns(rng):
    return np.asfortranarray(rng.dirichlet(np.ones(K), N)), {}


def separate(rng):
    p = rng.dirichlet(np.ones(K), N)
    return Columns([p[:, 0].astype(np.float32).astype(float), *p[:, 1:].T]), {"normalize": True}


def single(rng):
    return rng.dirichlet(np.ones(K), N).astype(np.float32), {}


def many(rng):
    return rng.dirichlet(np.ones(40), N), {}


def tied(rng):
    p = rng.integers(0, 3, (N, K)) + (np.arange(K) == 0)
    return p / p.sum(axis=1, keepdims=True), {}


def rescaled(rng):
    return rng.exponential(size=(N, K)), {"normalize": True}


def logits(rng):
    return rng.normal(size=(N, K)) * 400, {"logits": True}


def binary(rng):
    return rng.random(N), {}


def binary_logits(rng):
    return rng.normal(size=N) * 300, {"logits": True}


def column_logits(rng):
    return np.asfortranarray(rng.normal(size=(N, K))), {"logits": True}


def impossible(rng):
    z = rng.normal(size=(N, K))
    z[rng.random((N, K)) < 0.2] = -np.inf
    z[:, 1] = 0.0
    return z, {"logits": True}


def half(rng):
    return rng.dirichlet(np.ones(K), N).astype(np.float16), {"normalize": True}


def strided(rng):
    return np.repeat(rng.dirichlet(np.ones(K), N), 2, axis=1)[:, ::2], {}


def zeros(rng):
    return rng.exponential(size=(N, K)) * (rng.random((N, K)) < 0.7) + 1e-12 * (np.arange(K) == 1), {
        "normalize": True
    }


def lists(rng):
    return vx.TopLists.from_probabilities(rng.dirichlet(np.ones(30), N), 4), {}


KINDS = [
    dense,
    columns,
    separate,
    single,
    many,
    tied,
    rescaled,
    zeros,
    logits,
    column_logits,
    impossible,
    binary,
    binary_logits,
    half,
    strided,
    lists,
]
RULES = [*vx.rules.RULES.values(), vx.penalized(vx.rps, "minimal"), vx.rules.Log(base=2), vx.padded(vx.brier)]
# A kernel with all rules takes long to compile. These read all statistics, which is enough where what differs
# is how rows are stored. Other kinds share their kernels with `dense`, `zeros` and `logits`.
STORED = [columns, separate, single, column_logits, binary, binary_logits]
EVERY_STATISTIC = [vx.brier, vx.log_score, vx.rps, vx.sa_rps, vx.ranked_log, vx.penalized(vx.rps, "minimal")]


def by_path(change, threshold, call):
    """The result of a call in which inputs of at least `threshold` probabilities are compiled."""
    change(compiled_from=threshold)
    return call()


def refused(kind, rule):
    return kind is lists and not rule.properties.symmetric.at(3)


def tally(y, p, rules, options):
    rows = pair(y, p, **options)
    return RuleSums(rules, rows.n_classes, decisions=not isinstance(p, vx.TopLists)).update(rows)


def assert_same(compiled, plain):
    """The sums of two tallies of the same rows."""
    for of in (lambda t: t.moments, lambda t: t.squared[1]):
        np.testing.assert_allclose(of(compiled).finite_mean, of(plain).finite_mean, rtol=1e-12)
        np.testing.assert_allclose(of(compiled).m2, of(plain).m2, rtol=1e-11)
        np.testing.assert_array_equal(of(compiled).n_infinite, of(plain).n_infinite)
    np.testing.assert_allclose(compiled.counts.cells.high, plain.counts.cells.high, rtol=1e-14)
    assert compiled.counts.n_zero == plain.counts.n_zero
    assert compiled.counts.zero_rows == plain.counts.zero_rows
    assert compiled.n_positive == plain.n_positive
    assert compiled.weight == pytest.approx(plain.weight, rel=1e-14)


@pytest.mark.skipif(kernels() is None, reason="numba is not installed")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_compiled_and_array_paths_agree(kind, weighted, change):
    rng = np.random.default_rng(3)
    p, options = kind(rng)
    n_classes = p.n_classes if kind is lists else 2 if p.ndim == 1 else p.shape[1]
    y = rng.integers(0, n_classes, N)
    weights = rng.integers(0, 3, N).astype(float) if weighted else None
    options |= {} if weights is None else {"weights": weights}
    chosen = EVERY_STATISTIC if kind in STORED else RULES
    rules = [rule for rule in chosen if not refused(kind, rule)]
    for rule in RULES:
        if refused(kind, rule):
            for threshold in (0, 2**40):
                with pytest.raises(vx.errors.RuleError):
                    by_path(change, threshold, lambda rule=rule: rule(y, p))
    compiled, plain = (
        by_path(change, threshold, lambda: tally(y, p, rules, options)) for threshold in (0, 2**40)
    )
    assert_same(compiled, plain)
    options.pop("weights", None)
    compiled, plain = (
        by_path(change, threshold, lambda: losses_of(rules, pair(y, p, **options)))
        for threshold in (0, 2**40)
    )
    np.testing.assert_allclose(compiled, plain, rtol=1e-12, atol=1e-15)


@pytest.mark.skipif(kernels() is None, reason="numba is not installed")
@pytest.mark.parametrize("k", [2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 100, 136, 1000, 1025])
def test_any_number_of_classes(k, change):
    rng = np.random.default_rng(k)
    p = extremes(rng, 1500, k)
    y = rng.integers(0, k, len(p))
    found = [
        by_path(change, threshold, lambda: tally(y, p, list(vx.rules.RULES.values()), {}))
        for threshold in (0, 2**40)
    ]
    assert_same(*found)


@pytest.mark.skipif(kernels() is None, reason="numba is not installed")
def test_light_rows_among_heavy_ones(change):
    rng = np.random.default_rng(2)
    p, y = rng.dirichlet(np.ones(3), 600), rng.integers(0, 3, 600)
    weights = np.where(rng.random(600) < 0.5, 1e300, 1e-300)
    weights[:5] = 0.0
    found = [
        by_path(change, threshold, lambda: tally(y, p, [vx.brier, vx.rps], {"weights": weights}))
        for threshold in (0, 2**40)
    ]
    assert_same(*found)
    assert found[0].n_positive == 595


def extremes(rng, n, k):
    """Rows with tiny, subnormal and zero probabilities, certain rows and ties."""
    p = rng.dirichlet(np.ones(k), n)
    for start, tiny in enumerate((1e-300, 5e-324, 0.0, 1e-20, 2.0**-1022)):
        p[start::10, rng.integers(k)] = tiny
    p[5::10] = np.eye(k)[rng.integers(0, k, len(p[5::10]))]
    p[6::10] = 1 / k
    p[7::10, -1] = p[7::10, 0]
    return p / p.sum(axis=1, keepdims=True)


@pytest.mark.skipif(kernels() is None, reason="numba is not installed")
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_the_compiled_path_is_exact(data, change):
    """Against sums in rational numbers, of ordinary and of extreme rows."""
    k = 4
    numbers = st.one_of(st.integers(0, 9), st.sampled_from([10**12, 10**16]))
    rows = data.draw(st.lists(st.lists(numbers, min_size=k, max_size=k).filter(any), min_size=1, max_size=9))
    p = np.array(rows, float)
    p /= p.sum(axis=1, keepdims=True)
    y = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=len(p), max_size=len(p))))
    rules = [vx.brier, vx.rules.RPS(normalized=False), vx.zero_one]
    found = by_path(change, 0, lambda: tally(y, p, rules, {}))
    exact = [[Fraction(v) for v in row] for row in p.tolist()]
    expected = [
        sum(_brier(row, o) for row, o in zip(exact, y.tolist(), strict=True)),
        sum(_rps(row, o) for row, o in zip(exact, y.tolist(), strict=True)),
        sum(_zero_one(row, o) for row, o in zip(exact, y.tolist(), strict=True)),
    ]
    assert found.moments.total.high == pytest.approx(
        [float(total) for total in expected], rel=1e-13, abs=1e-30
    )


def _brier(row, o):
    return sum((v - (j == o)) ** 2 for j, v in enumerate(row))


def _rps(row, o):
    # The side that the outcome is not on, as SPEC has it: rows need not sum to exactly 1.
    errors = [sum(row[j + 1 :]) if o <= j else sum(row[: j + 1]) for j in range(len(row) - 1)]
    return sum(error**2 for error in errors)


def _zero_one(row, o):
    modes = [j for j, v in enumerate(row) if v == max(row)]
    return 1 - (Fraction(1, len(modes)) if o in modes else 0)
