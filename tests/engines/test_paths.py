"""The law of the paths: every kind of rows, by every rule, gives the same numbers however it is read."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from verax.engines import scan
from verax.inputs.columns import Columns
from verax.inputs.lists import ragged
from verax.kernels.loading import kernels

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


def lists(rng):
    return vx.TopLists.from_probabilities(rng.dirichlet(np.ones(30), N), 4), {}


KINDS = [dense, columns, separate, single, many, tied, rescaled, logits, binary, lists]
RULES = [*vx.RULES.values(), vx.penalized(vx.rps, "minimal"), vx.Log(base=2), vx.padded(vx.brier)]


def by_path(monkeypatch, threshold, call):
    """The result of a call in which inputs of at least `threshold` probabilities are compiled."""
    for module in (scan, ragged):
        monkeypatch.setattr(module, "COMPILED_FROM", threshold)
    return call()


@pytest.mark.skipif(kernels() is None, reason="numba is not installed")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_compiled_and_array_paths_agree(kind, rule, weighted, monkeypatch):
    rng = np.random.default_rng(3)
    p, options = kind(rng)
    n_classes = p.n_classes if kind is lists else 2 if kind is binary else p.shape[1]
    y = rng.integers(0, n_classes, N)
    weights = rng.integers(0, 3, N).astype(float) if weighted else None
    if kind is lists and not rule.properties.symmetric.at(3):
        for threshold in (0, 2**40):
            with pytest.raises(vx.RuleError):
                by_path(monkeypatch, threshold, lambda: rule(y, p))
        return
    compiled, plain = (
        by_path(
            monkeypatch,
            threshold,
            lambda: (rule(y, p, weights=weights, **options), rule.samples(y, p, **options)),
        )
        for threshold in (0, 2**40)
    )
    assert compiled[0] == pytest.approx(plain[0], rel=1e-12)
    np.testing.assert_allclose(compiled[1], plain[1], rtol=1e-12, atol=1e-15)
