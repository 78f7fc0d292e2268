"""Smooth calibration error: against its definition, relplot, and rows wherever they are."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from verax.analyses.calibration.smooth_ece import CosineRecipe

RNG = np.random.default_rng(0)
Q = RNG.random(2000)
Y = (RNG.random(2000) < Q).astype(int)


def slow(q, y, w, bandwidth):
    """The integral of the absolute smoothed gaps, with the mirror images of every forecast."""
    t = (np.arange(2000) + 0.5) / 2000
    gaps = w * (q - y) / w.sum()
    images = [2 * k + sign * q for k in range(-3, 4) for sign in (1, -1)]
    kernel = sum(np.exp(-(((t[:, None] - at) / bandwidth) ** 2) / 2) for at in images)
    return np.abs(kernel @ gaps).mean() / (np.sqrt(2 * np.pi) * bandwidth)


@pytest.mark.parametrize("bandwidth", [0.02, 0.1, 0.5])
def test_the_error_is_its_definition(bandwidth):
    q, y = Q[:200], Y[:200]
    w = RNG.exponential(size=200)
    found = vx.smooth_ece(y, q, kind="classwise", bandwidth=bandwidth, weights=w)
    assert found == pytest.approx(slow(q, y, w, bandwidth), abs=1e-6)
    top = np.maximum(q, 1 - q)
    expected = slow(top, (q > 0.5) == y, w, bandwidth)
    assert vx.smooth_ece(y, q, bandwidth=bandwidth, weights=w) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("forecast", "theirs"),
    # relplot 1.0.3: smECE(q, y). It rounds forecasts to a grid of 1,001 points, whose ends are not mirrored
    # in full, takes 200 points of the integral, and stops after ten steps; hence the tolerance.
    [
        (Q, 0.025112201743306115),
        (Q**2, 0.17245916016633803),
        (np.round(Q, 1), 0.020419044390657295),
        (np.full(2000, 0.5), 0.003999999799902257),
    ],
)
def test_relplot_agrees_as_far_as_its_grid_goes(forecast, theirs):
    assert vx.smooth_ece(Y, forecast, kind="classwise") == pytest.approx(theirs, abs=0.002)


def test_the_bandwidth_is_the_error_itself():
    found = vx.smooth_ece(Y, Q, kind="classwise")
    assert vx.smooth_ece(Y, Q, kind="classwise", bandwidth=found) == pytest.approx(found, abs=1e-9)
    # Gaps of one sign: no smoothing changes their mean.
    assert vx.smooth_ece(np.zeros(50), Q[:50], kind="classwise") == pytest.approx(Q[:50].mean())
    assert vx.smooth_ece([0, 0, 0, 1], [[0.75, 0.25]] * 4) == pytest.approx(0, abs=1e-12)


def test_small_errors_ask_for_more_cosines(monkeypatch):
    asked = []
    take = CosineRecipe.take
    monkeypatch.setattr(
        CosineRecipe, "take", lambda self, part: (asked.append(self.terms), take(self, part))[1]
    )
    q = np.repeat([0.2, 0.8], 5000)
    y = np.r_[np.arange(5000) % 5 == 0, np.arange(5000) % 5 != 0].astype(int)
    y[:30] = 1
    assert 0.001 < vx.smooth_ece(y, q, kind="classwise") < 0.01
    assert asked == [64, 256, 1024]


def test_changes_of_forecasts_change_the_error_little():
    """Where forecasts are on an edge of bins, the error in bins jumps."""
    y, q = np.tile([0, 1], 50), np.full(100, 0.5)
    moved = q + 1e-6 * np.where(y == 1, -1, 1)
    assert vx.ece(y, moved, bins=2, kind="classwise") - vx.ece(y, q, bins=2, kind="classwise") > 0.4
    difference = vx.smooth_ece(y, moved, kind="classwise") - vx.smooth_ece(y, q, kind="classwise")
    assert abs(difference) < 0.001


def test_refusals():
    with pytest.raises(vx.InputError, match=r"`bandwidth` must be a number from 0\.001 to 1"):
        vx.smooth_ece(Y, Q, bandwidth=0)
    with pytest.raises(vx.InputError, match="`kind` must be one of 'confidence', 'classwise'"):
        vx.smooth_ece(Y, Q, kind="listed")
    empty = vx.TopLists.from_dicts([{}, {}], n_classes=3)
    with pytest.raises(vx.InputError, match="every list is empty"):
        vx.smooth_ece([0, 1], empty)
