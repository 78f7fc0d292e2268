"""Pools of forecasters: their values and fitted weights against full distributions and other algorithms."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verax as vx
from verax.analyses.comparison.crossfits import fit_variance
from verax.analyses.dealing import dealt


def problem(n=400, m=6, seed=0, sharp=(1.0, 0.6, 0.3)):
    """Forecasters who see the truth through noise."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(m, 0.5), n)
    y = np.array([rng.choice(m, p=row) for row in truth])
    p = {f"f{i}": s * truth + (1 - s) * rng.dirichlet(np.full(m, 0.5), n) for i, s in enumerate(sharp)}
    return y, {name: row / row.sum(axis=1, keepdims=True) for name, row in p.items()}, rng


@pytest.mark.long
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 4))
def test_pools_of_lists_are_pools_of_full_distributions(seed, m, n_forecasters):
    rng = np.random.default_rng(seed)
    given_lists = []
    for _ in range(n_forecasters):
        rows = []
        for _ in range(4):
            k = int(rng.integers(0, m + 1))
            t = rng.dirichlet(np.ones(k + (k < m)))[:k] if k else []
            rows.append(dict(zip(rng.permutation(m)[:k].tolist(), t, strict=True)))
        given_lists.append(vx.TopLists.from_dicts(rows, n_classes=m))
    w = rng.dirichlet(np.ones(n_forecasters))
    dense = np.array([lists.padded() for lists in given_lists])
    geometric = np.exp(np.einsum("f,fnk->nk", w, np.log(dense)))
    expected = {"linear": np.einsum("f,fnk->nk", w, dense), "log": geometric / geometric.sum(axis=1)[:, None]}
    for kind, rows in expected.items():
        pooled = vx.combine(given_lists, weights=w, pool=kind)
        np.testing.assert_allclose(pooled.padded(), rows, rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(
            vx.combine(list(dense), weights=w, pool=kind), rows, rtol=1e-11, atol=1e-14
        )


def test_a_logarithmic_pool_of_contradictions_is_refused():
    ann, bob = (vx.TopLists.from_dicts([{0: 0.5}, {c: 1.0}], n_classes=3) for c in (1, 2))
    with pytest.raises(
        vx.InputError, match="no forecaster rules out; row 1 rules out 'every class'"
    ) as caught:
        vx.combine([ann, bob], pool="log")
    assert caught.value.rows == (1,)
    # A forecaster without weight rules out nothing.
    assert vx.combine([ann, bob], weights=[1, 0], pool="log").to_dicts()[1] == {1: 1.0, 2: 0.0}


@pytest.mark.parametrize("k", [6, 2])
def test_weights_by_brier_are_those_of_least_squares(k):
    y, p, rng = problem(sharp=(0.8, 0.5))
    weights = rng.random(len(y)) + 0.5
    models = p if k == 6 else {name: vx.TopLists.from_probabilities(row, k) for name, row in p.items()}
    a, b = (row if k == 6 else models[name].padded() for name, row in p.items())
    miss, gap = b - np.eye(6)[y], a - b
    share = np.clip(-(weights @ (miss * gap).sum(axis=1)) / (weights @ (gap * gap).sum(axis=1)), 0, 1)
    found = vx.fit_combination(y, models, rule="brier", weights=weights)
    assert found.weights["f0"] == pytest.approx(share, abs=1e-5)
    assert sum(found.weights.values()) == pytest.approx(1, rel=1e-12)


@pytest.mark.long
def test_weights_by_log_are_those_of_the_em_algorithm():
    y, p, _ = problem()
    likely = np.column_stack([row[np.arange(len(y)), y] for row in p.values()])
    w = np.full(3, 1 / 3)
    for _ in range(20_000):
        w = (w * likely / (likely @ w)[:, None]).mean(axis=0)
    found = vx.fit_combination(y, p, rule="log_score", folds=2)
    np.testing.assert_allclose(list(found.weights.values()), w, atol=1e-4)
    assert vx.log_score(y, found.apply(p)) <= -np.log(likely @ w).mean() + 1e-9


@pytest.mark.parametrize("pool", ["linear", "log"])
@pytest.mark.parametrize("rule", ["brier", "log_score", "spherical"])
def test_no_weights_on_a_grid_lose_less(pool, rule):
    y, p, _ = problem(200)
    lists = {name: vx.TopLists.from_probabilities(row, 3) for name, row in p.items()}
    found = vx.fit_combination(y, lists, rule=rule, pool=pool, folds=2)
    scored = vx.parse(rule)
    own = scored(y, found.apply(lists))
    steps = range(11)
    for i, j in itertools.product(steps, steps):
        if i + j <= 10:
            grid = vx.combine(list(lists.values()), weights=[i, j, 10 - i - j], pool=pool)
            assert own <= scored(y, grid) + 1e-9


def test_the_pool_is_compared_on_rows_that_no_fit_has_seen():
    y, p, _ = problem(300)
    groups = np.arange(300) // 3
    found = vx.fit_combination(y, p, folds=5, groups=groups, seed=3)
    folds = dealt(len(y), vx.Forecasts(y, p["f0"], groups=groups).groups, 5, 3)
    losses = np.empty(300)
    for fold, w in enumerate(found.fold_weights):
        pooled = np.tensordot(w, np.array(list(p.values())), 1)
        losses[folds == fold] = vx.brier.samples(y, pooled)[folds == fold]
    means = {model.name: model.mean for model in found.comparison.models["brier"]}
    assert means["combination"] == pytest.approx(losses.mean(), rel=1e-10)
    assert means["f1"] == pytest.approx(vx.brier(y, p["f1"]), rel=1e-12)
    assert means["equal weights"] == pytest.approx(vx.brier(y, sum(p.values()) / 3), rel=1e-12)
    assert found.against("f2").difference == pytest.approx(losses.mean() - vx.brier(y, p["f2"]), rel=1e-9)
    assert found.comparison.n_groups == 100


def test_what_a_pool_says():
    y, p, rng = problem(800, sharp=(0.5, 0.5))
    names = list("abcdef")
    found = vx.fit_combination(np.array(names)[y], p, classes=names)
    assert found.beats_all
    assert "better than each of its parts" in repr(found)
    json.dumps(found.to_dict())
    np.testing.assert_allclose(
        found.apply(p), np.tensordot(list(found.weights.values()), list(p.values()), 1)
    )
    useless = {"good": p["f0"], "noise": rng.dirichlet(np.ones(6), len(y))}
    other = vx.fit_combination(y, useless)
    assert not other.beats_all
    assert "The combination is significantly better than noise." in other.verdict
    assert "The combination is not significantly better than good." in other.verdict
    assert other.verdict.next_step.text == "keep good alone, which is simpler"
    lists = vx.TopLists.from_dicts([{0: 0.01}] * len(y), n_classes=6)
    fined = vx.fit_combination(y, {"good": vx.TopLists.from_probabilities(p["f0"], 2), "invalid": lists})
    assert fined.faults["invalid"].n_invalid == len(y)
    mixed = vx.fit_combination(
        y, {"rows": p["f0"], "lists": vx.TopLists.from_probabilities(p["f1"], 2)}, folds=2
    )
    assert isinstance(mixed.apply([p["f0"][:5], vx.TopLists.from_probabilities(p["f1"][:5], 2)]), vx.TopLists)


def test_pools_that_cannot_be_fitted():
    y, p, _ = problem(30)
    for call, reason in (
        (lambda: vx.fit_combination(y, p, rule="pbs"), "strictly proper rule without steps"),
        (lambda: vx.fit_combination(y, p, rule="zero_one"), "strictly proper rule without steps"),
        (lambda: vx.fit_combination(y, p, rule="rps"), "needs a symmetric rule"),
        (lambda: vx.fit_combination(y, {"a": p["f0"]}), "at least two forecasters"),
        (lambda: vx.fit_combination(y, {"a": p["f0"], "combination": p["f1"]}), "must not call a forecaster"),
        (lambda: vx.fit_combination(y, p["f0"]), "must be a mapping"),
        (lambda: vx.fit_combination(y, p, pool="mean"), "pool"),
        (
            lambda: vx.fit_combination(y, p, folds=2).apply([p["f0"]]),
            "must have the forecasts of f0, f1 and f2",
        ),
        (lambda: vx.fit_combination(y, p, groups=np.zeros(30)), "at least 2 groups"),
    ):
        with pytest.raises(vx.VeraxError, match=reason):
            call()


def test_intervals_allow_for_the_weights_that_were_fitted():
    y, p, _ = problem(150)
    found = vx.fit_combination(y, p, folds=5, seed=2)
    # In the rows of each fold, and in all rows, the losses of the weights that were fitted without it.
    fits = [
        vx.brier.samples(y, sum(w * p[name] for w, name in zip(own, p, strict=True)))
        for own in found.fold_weights
    ]
    equal = vx.brier.samples(y, sum(p.values()) / len(p))
    gaps = np.choose(dealt(150, None, 5, 2), fits) - equal
    assert found.against("equal weights").difference == pytest.approx(gaps.mean())
    # The variance of five fits adds 4.425 times their spread to that of the rows.
    variance = (gaps.var(ddof=1) + 4.425 * np.var(fits, axis=0, ddof=1).mean() * 150 / 149) / 150
    assert found.against("equal weights").standard_error ** 2 == pytest.approx(variance, rel=1e-6)


def test_the_variance_of_fits_is_that_of_quadratic_losses():
    """Gaussian scores of folds: the estimate minus the gain, against what its interval allows for."""
    rng = np.random.default_rng(3)
    for v in (2, 3, 5, 10):
        s = rng.normal(size=(200_000, v)) / np.sqrt(v)
        total, rest = s.sum(axis=1), s.sum(axis=1)[:, None] - s
        steps = rest * v / (v - 1)
        estimate = (s * steps - steps**2 / (2 * v)).sum(axis=1)
        of_interval, of_fits = (steps**2).mean(), steps.var(axis=1, ddof=1).mean()
        expected = (np.var(estimate + total**2 / 2) - of_interval) / of_fits
        assert fit_variance(v) == pytest.approx(expected, rel=0.05)
