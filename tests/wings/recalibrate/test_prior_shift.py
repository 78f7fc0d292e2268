"""Recalibration to other frequencies of the classes."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from recalibrations import drawn, softmax


def shifted_sample(n, seed, prior):
    """Rows of three classes with these frequencies, and forecasts that hold for equal ones."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=prior)
    x = rng.normal(size=(n, 2)) + np.array([[0, 0], [1.5, 0], [0, 1.5]])[y]
    means = np.array([[0, 0], [1.5, 0], [0, 1.5]])
    return y, softmax(-0.5 * ((x[:, None] - means) ** 2).sum(axis=2))


def test_known_new_frequencies_are_bayes_rule():
    y, p = shifted_sample(6000, 0, [1 / 3] * 3)
    new = np.array([0.7, 0.2, 0.1])
    y2, p2 = shifted_sample(6000, 1, new)
    found = vx.recalibrate(y, p, method="none")
    moved = found.apply(p2, frequencies=new)
    expected = p2 * new / found.frequencies
    np.testing.assert_allclose(moved, expected / expected.sum(axis=1, keepdims=True), atol=1e-12)
    assert vx.log_score(y2, moved) < vx.log_score(y2, p2) - 0.1
    np.testing.assert_allclose(found.apply(p2, frequencies=found.frequencies), p2, atol=1e-12)
    named = vx.recalibrate(np.array(list("abc"))[y], p, method="none", classes=list("abc"))
    by_name = named.apply(p2, frequencies={"c": 0.1, "a": 0.7, "b": 0.2})
    np.testing.assert_allclose(by_name, moved)


def test_new_frequencies_are_estimated_from_forecasts_alone():
    y, p = shifted_sample(6000, 2, [1 / 3] * 3)
    new = np.array([0.7, 0.2, 0.1])
    y2, p2 = shifted_sample(6000, 3, new)
    found = vx.recalibrate(y, p, method="none")
    estimate = found.estimate_frequencies(p2)
    np.testing.assert_allclose(estimate, new, atol=0.03)
    # The maximum of the likelihood of the forecasts, found by a general optimiser.
    from scipy.optimize import minimize

    def minus_log_likelihood(t):
        q = softmax(np.append(0, t)[None])[0]
        return -np.log((p2 * q / found.frequencies).sum(axis=1)).mean()

    by_force = softmax(np.append(0, minimize(minus_log_likelihood, [0, 0], tol=1e-10).x)[None])[0]
    np.testing.assert_allclose(estimate, by_force, atol=1e-4)
    assert vx.log_score(y2, found.apply(p2, frequencies="estimate")) < vx.log_score(y2, p2) - 0.1


@pytest.mark.parametrize(
    "frequencies",
    [
        [0.5, 0.5],
        [0.5, 0.6, 0.2],
        [1.2, -0.1, -0.1],
        "guess",
        {"a": 1.0},
        [np.nan, 0.5, 0.5],
        ["a", "b", "c"],
    ],
)
def test_frequencies_that_are_none_are_refused(frequencies):
    y, p, _ = drawn(100, 3)
    with pytest.raises(vx.InputError) as error:
        vx.recalibrate(y, p, method="temperature").apply(p, frequencies=frequencies)
    assert error.value.argument == "frequencies"


def test_a_class_that_was_never_seen_has_no_new_frequency():
    y, p, _ = drawn(100, 3)
    found = vx.recalibrate(np.minimum(y, 1), p, method="temperature")
    with pytest.raises(vx.InputError, match="never happened"):
        found.apply(p, frequencies=[0.4, 0.4, 0.2])
    assert (found.apply(p, frequencies=[0.5, 0.5, 0])[:, 2] == 0).all()
    assert found.estimate_frequencies(p)[2] == 0
