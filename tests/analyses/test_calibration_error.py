"""Calibration error in bins by every norm: against torchmetrics, netcal, Kumar's code and the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verax as vx
from cases import forecasts

NORMS = ("l1", "l2", "max")


def slow(y, p, w, bins, kind, norm, debias=False):
    """Bin by bin, as the definitions read."""
    if kind == "classwise":
        columns = [(p[:, k], y == k) for k in range(p.shape[1])]
    else:
        columns = [(p.max(axis=1), p.argmax(axis=1) == y)]
    values = []
    for x, z in columns:
        gaps, sizes = [], []
        for b in range(bins):
            inside = (x > b / bins) & (x <= (b + 1) / bins) | ((x == 0) & (b == 0))
            if not w[inside].sum() > 0:
                continue
            share = w[inside] / w[inside].sum()
            frequency = float(share @ z[inside])
            gap = abs(float(share @ x[inside]) - frequency)
            if norm == "l2":
                gap = gap**2
                left = 1 - float(share @ share)
                if debias:
                    gap = gap - frequency * (1 - frequency) * (1 - left) / left if left > 1e-9 else 0.0
            gaps.append(gap)
            sizes.append(w[inside].sum())
        values.append(max(gaps) if norm == "max" else np.average(gaps, weights=sizes))
    if norm == "max":
        return max(values)
    return math.sqrt(max(np.mean(values), 0)) if norm == "l2" else np.mean(values)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 4),
    st.sampled_from([1, 4, 15]),
    st.sampled_from(["confidence", "classwise"]),
    st.sampled_from([*((norm, False) for norm in NORMS), ("l2", True)]),
)
def test_every_norm_is_its_definition(seed, k, bins, kind, norm):
    y, p = forecasts(60, k, seed)
    w = np.random.default_rng(seed).exponential(size=60)
    norm, debias = norm
    found = vx.ece(y, p, bins=bins, kind=kind, norm=norm, debias=debias, weights=w)
    assert found == pytest.approx(slow(y, p, w, bins, kind, norm, debias), abs=1e-9)


@pytest.mark.parametrize("norm", NORMS)
def test_torchmetrics_where_no_forecast_lies_on_an_edge(norm, torch):
    tm = pytest.importorskip("torchmetrics.functional.classification")
    y, p = forecasts(400, 3, 3, ties=False)
    theirs = tm.multiclass_calibration_error(
        torch.tensor(p), torch.tensor(y), num_classes=3, n_bins=15, norm=norm
    )
    assert vx.ece(y, p, norm=norm) == pytest.approx(float(theirs), rel=1e-6)


def test_on_an_edge_torchmetrics_takes_the_bin_above(torch):
    tm = pytest.importorskip("torchmetrics.functional.classification")
    p = np.array([[0.5, 0.5], [0.55, 0.45], [0.25, 0.75]])
    y = np.array([0, 1, 0])
    theirs = tm.multiclass_calibration_error(torch.tensor(p), torch.tensor(y), num_classes=2, n_bins=2)
    # 0.5 closes the lower of verax's two bins and opens the upper one of torchmetrics.
    assert vx.ece(y, p, bins=2) == pytest.approx((0.5 + abs(0.55 + 0.75)) / 3)
    assert float(theirs) == pytest.approx(abs(0.5 + 0.55 + 0.75 - 1) / 3)


def test_kumars_debiased_error_and_netcal():
    # unbiased_square_ce(...)**0.5 and plugin_ce(power=2) of uncertainty-calibration 0.1.4 on 15 bins of equal
    # width; ECE(15) and MCE(15) of netcal 1.4.0. Its bins include their lower edges; no forecast lies on one.
    y, p = forecasts(400, 3, 3, ties=False)
    assert vx.ece(y, p, norm="l2", debias=True) == pytest.approx(0.3035719754574249, rel=1e-12)
    assert vx.ece(y, p, norm="l2") == pytest.approx(0.31163585019517176, rel=1e-12)
    assert vx.ece(y, p) == pytest.approx(0.2693466778364879, rel=1e-12)
    assert vx.ece(y, p, norm="max") == pytest.approx(0.9015080023224932, rel=1e-12)


def test_debiasing_takes_the_noise_of_calibrated_forecasts_away():
    rng = np.random.default_rng(0)
    plain, debiased = [], []
    for _ in range(100):
        p = rng.random(300)
        y = (rng.random(300) < p).astype(int)
        plain.append(vx.ece(y, p, norm="l2", kind="classwise"))
        debiased.append(vx.ece(y, p, norm="l2", kind="classwise", debias=True))
    assert np.mean(np.square(debiased)) < 0.4 * np.mean(np.square(plain))
    # Half of the debiased squares are below zero, and count as zero.
    assert 20 < sum(value == 0 for value in debiased) < 80


def test_weights_are_relative_and_rows_without_weight_are_no_rows():
    y, p = forecasts(80, 3, 1)
    w = np.random.default_rng(0).integers(0, 3, 80).astype(float)
    for norm, debias in [*((norm, False) for norm in NORMS), ("l2", True)]:
        kept = vx.ece(y[w > 0], p[w > 0], norm=norm, debias=debias, weights=w[w > 0])
        assert vx.ece(y, p, norm=norm, debias=debias, weights=1e300 * w) == pytest.approx(kept, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"norm": "l3"}, "norm"),
        ({"debias": 1}, "debias"),
        ({"debias": True}, "debias"),
        ({"debias": True, "norm": "max"}, "debias"),
    ],
)
def test_refusals(options, argument):
    with pytest.raises(vx.InputError) as refused:
        vx.ece(*forecasts(30, 3), **options)
    assert refused.value.argument == argument
