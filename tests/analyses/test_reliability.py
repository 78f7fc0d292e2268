"""Reliability curves, their bands and figures; and calibration error in bins."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression
from sklearn.isotonic import IsotonicRegression

import verax as vx
from cases import forecasts, needs_numba
from scattered import Scattered


def calibrated(n, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 2, n)
    return (rng.random(n) < p).astype(int), p


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_curves_are_isotonic_fits(ordered, weighted):
    y, p = forecasts(150, 4)
    w = np.random.default_rng(1).integers(1, 4, 150) if weighted else None
    diagram = vx.reliability(y, p, ordered=ordered, weights=w, resamples=0)
    assert [c.name for c in diagram] == (["<= 0", "<= 1", "<= 2"] if ordered else ["0", "1", "2", "3"])
    decomposition = vx.decompose(y, p, rule="rps" if ordered else "brier", weights=w)
    for i, curve in enumerate(diagram):
        x = np.round(np.cumsum(p, axis=1)[:, i], 12) if ordered else p[:, i]
        z = y <= i if ordered else y == i
        fit = IsotonicRegression(y_min=0, y_max=1).fit(x, z, sample_weight=w)
        assert curve.forecast == pytest.approx(np.unique(x), abs=1e-15)
        assert curve.frequency == pytest.approx(fit.predict(curve.forecast), abs=1e-12)
        assert curve.weight.sum() == (150 if w is None else w.sum())
        assert curve.histogram.sum() == pytest.approx(1)
        assert curve.band is None
        assert curve.components.observed == pytest.approx(decomposition.parts[i].observed)


def test_two_classes_have_one_curve():
    y, p = calibrated(50)
    diagram = vx.reliability(y, p, classes=["dry", "wet"])
    assert [curve.name for curve in diagram] == ["wet"]
    assert diagram["wet"] is diagram.curves[0]
    with pytest.raises(KeyError, match="there are wet"):
        diagram["dry"]


def slow_band(y, p, w, n):
    """Bands the plain way: an outcome for every row, a fit by SciPy to the rows of each forecast."""
    rng = np.random.default_rng(7)
    at = np.unique(p, return_inverse=True)[1]
    w = np.ones(len(p)) if w is None else w
    mass = np.bincount(at, w)
    drawn = (np.bincount(at, w * (rng.random(len(p)) < p)) / mass for _ in range(n))
    return np.percentile([isotonic_regression(x, weights=mass).x for x in drawn], [2.5, 97.5], axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["none", "fractional"])
def test_bands_are_those_of_redrawn_outcomes(weights):
    rng = np.random.default_rng(0)
    p = rng.integers(1, 10, 300) / 10
    y = (rng.random(300) < p).astype(int)
    w = None if weights == "none" else rng.exponential(size=300)
    (curve,) = vx.reliability(y, p, weights=w, resamples=1500)
    assert curve.band == pytest.approx(slow_band(y, p, w, 1500), abs=0.025)


def test_weights_that_count_rows_give_the_bands_of_the_rows():
    rng = np.random.default_rng(0)
    p = np.arange(1, 10) / 10
    y, w = rng.integers(0, 2, 9), rng.integers(20, 60, 9)
    (weighted,) = vx.reliability(y, p, weights=w, seed=3, weights_are="counts")
    (repeated,) = vx.reliability(np.repeat(y, w), np.repeat(p, w), seed=3)
    assert weighted.band.tolist() == repeated.band.tolist()


def test_whole_weights_are_no_copies_unless_said_so():
    """A row with an importance weight of 50 is not 50 rows: calibrated forecasts are seldom rejected."""
    rejected = {"importance": 0, "counts": 0}
    for seed in range(20):
        y, p = calibrated(120, seed)
        w = np.random.default_rng(seed).integers(50, 100, 120)
        for meaning in rejected:
            found = vx.reliability(y, p, weights=w, weights_are=meaning, resamples=60, seed=seed)["1"]
            rejected[meaning] += found.components.p_value <= 0.05
    assert rejected["importance"] <= 4
    assert rejected["counts"] >= 14


def test_rows_without_weight_are_as_if_absent():
    y, p = calibrated(200)
    w = np.r_[np.ones(150), np.zeros(50)]
    found = vx.reliability(y, p, weights=w, resamples=20)["1"]
    alone = vx.reliability(y[:150], p[:150], weights=w[:150], resamples=20)["1"]
    handle = vx.reliability(Scattered(y, p_of(p), weights=w), resamples=0)["1"]
    for name in ("forecast", "frequency", "weight"):
        assert getattr(found, name) == pytest.approx(getattr(alone, name), abs=1e-12)
        assert getattr(handle, name) == pytest.approx(getattr(alone, name), abs=1e-12)
    assert found.band == pytest.approx(alone.band)
    for ask in (vx.reliability, vx.decompose):
        with pytest.raises(vx.InputError, match="must not all be zero"):
            ask(Scattered(y, p_of(p), weights=np.zeros(200)))


def p_of(q):
    return np.column_stack([1 - q, q])


def test_bands_of_groups_that_come_in_parts_are_those_in_memory():
    """Bands of groups are drawn by groups wherever rows are, and are wider than those of independent rows."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(25), 16)
    p = np.round(rng.uniform(0.1, 0.9, 400), 1)
    lean = rng.normal(0, 1.2, 25)[groups]
    y = (rng.random(400) < 1 / (1 + np.exp(-np.log(p / (1 - p)) - lean))).astype(int)
    exact, plain = (vx.reliability(y, p_of(p), groups=g)["1"] for g in (groups, None))
    handle = Scattered(y, p_of(p), groups=groups)
    found = vx.reliability(handle)["1"]
    widths = [np.diff(curve.band, axis=0).mean() for curve in (found, exact, plain)]
    assert widths[0] == pytest.approx(widths[1], rel=0.15)
    assert widths[1] > 1.15 * widths[2]
    assert found.components.p_value == pytest.approx(exact.components.p_value, abs=0.1)
    handle.has_rows = False
    saved = vx.reliability(handle)["1"]
    assert saved.band is None
    assert saved.components.p_value is None


def test_a_calibrated_forecast_stays_in_its_band():
    inside = []
    for seed in range(15):
        (curve,) = vx.reliability(*calibrated(400, seed), resamples=100)
        low, high = curve.band
        inside.append(np.mean((low <= curve.frequency) & (curve.frequency <= high)))
    assert 0.9 < np.mean(inside) < 0.99
    y, p = calibrated(400)
    (curve,) = vx.reliability(1 - y, p, resamples=100)
    assert np.mean((curve.band[0] <= curve.frequency) & (curve.frequency <= curve.band[1])) < 0.5


def test_many_forecasts_are_drawn_in_cells(change):
    y, p = calibrated(3000)
    fine = vx.reliability(y, p, resamples=300)["1"].band
    change(fewest_cells=3000)
    coarse = vx.reliability(y, p, resamples=300)["1"].band
    assert coarse.shape == fine.shape
    middle = slice(100, -100)
    assert coarse[:, middle] == pytest.approx(fine[:, middle], abs=0.05)
    assert np.abs(coarse - fine)[:, middle].mean() < 0.01


def test_text_and_dict():
    y, p = forecasts(60, 3)
    diagram = vx.reliability(y, p, classes=["a", "b", "c"], resamples=10)
    assert (
        repr(diagram).splitlines()[0] == "verax reliability: 60 rows, 3 classes; squared error of each event"
    )
    assert len(repr(diagram).splitlines()) == 4
    assert repr(diagram["b"]).startswith("ReliabilityCurve of b: score")
    out = json.loads(json.dumps(diagram.to_dict()))
    assert out["curves"][2]["name"] == "c"
    assert out["bands"] == {"resamples": 10, "confidence": 0.95, "seed": 0}


@pytest.mark.parametrize(
    ("k", "ordered", "panels", "places"),
    [
        (2, False, 1, 1),
        (3, True, 2, 2),
        (3, False, 3, 3),
        (5, False, 5, 6),
        (23, False, 20, 20),
    ],
)
def test_figures(k, ordered, panels, places, tmp_path):
    import matplotlib as mpl

    mpl.use("Agg")
    y, p = forecasts(200, k, ties=False)
    diagram = vx.reliability(y, p, ordered=ordered, resamples=20)
    figure = diagram.plot()
    assert len(figure.axes) == places
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert len(shown) == panels
    for ax in shown:
        assert len(ax.patches) == 20
        assert len(ax.lines) == 2
        assert len(ax.collections) == 1
        assert ax.texts[0].get_text().startswith("MCB 0.")
    titles = [ax.get_title() for ax in shown]
    prefix = "y " if ordered else "class "
    assert set(titles) <= {prefix + curve.name for curve in diagram}
    assert len(set(titles)) == panels
    if k == 23:
        assert "the 20 of 23 with the largest miscalibration" in figure.get_suptitle()
        worst = max(diagram, key=lambda c: c.components.miscalibration)
        assert f"class {worst.name}" in titles
    if k == 3:
        figure.savefig(tmp_path / "reliability.png")
    mpl.pyplot.close(figure)
    one = diagram.plot([diagram.curves[0].name])
    assert len(one.axes) == 1
    mpl.pyplot.close(one)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"resamples": -1}, "resamples"),
        ({"resamples": 2.0}, "resamples"),
        ({"confidence": 0}, "confidence"),
        ({"weights": np.zeros(30)}, "weights"),
        ({"logits": True, "normalize": True}, "normalize"),
    ],
)
def test_refusals(options, argument):
    y, p = forecasts(30, 3)
    with pytest.raises(vx.InputError) as caught:
        vx.reliability(y, p, **options)
    assert caught.value.argument == argument


# ---- calibration error in bins -----------------------------------------------------------------


def slow_ece(y, p, w, bins, kind, binning):
    """Bin by bin and row by row, as the definition reads."""
    if kind == "classwise":
        columns = [(p[:, k], y == k) for k in range(p.shape[1])]
    else:
        columns = [(p.max(axis=1), p.argmax(axis=1) == y)]
    errors = []
    for x, z in columns:
        if binning == "width":
            edges = [(b / bins, (b + 1) / bins) for b in range(bins)]
            masks = [(x > low) & (x <= high) | ((x == 0) & (low == 0)) for low, high in edges]
        else:
            order = np.argsort(x, kind="stable")
            masks = [np.isin(np.arange(len(x)), part) for part in np.array_split(order, bins)]
        error = 0.0
        for mask in masks:
            if w[mask].sum() > 0:
                gap = np.average(z[mask], weights=w[mask]) - np.average(x[mask], weights=w[mask])
                error += w[mask].sum() / w.sum() * abs(gap)
        errors.append(error)
    return np.mean(errors)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 4),
    st.sampled_from([1, 4, 10, 15]),
    st.sampled_from(["confidence", "classwise"]),
)
def test_ece_is_its_definition(seed, k, bins, kind):
    y, p = forecasts(60, k, seed)
    w = np.random.default_rng(seed).exponential(size=60)
    assert vx.ece(y, p, bins=bins, kind=kind, weights=w) == pytest.approx(
        slow_ece(y, p, w, bins, kind, "width"), abs=1e-12
    )
    y, p = forecasts(60, k, seed, ties=False)
    if 60 % bins == 0:
        assert vx.ece(y, p, bins=bins, kind=kind, binning="mass") == pytest.approx(
            slow_ece(y, p, np.ones(60), bins, kind, "mass"), abs=1e-12
        )


def test_equal_forecasts_share_a_bin_of_mass():
    p = np.repeat([0.2, 0.6, 0.7], [8, 1, 1])
    y = np.repeat([1, 0, 1, 0], [2, 6, 1, 1])
    p = np.column_stack([1 - p, p])
    wanted = (abs(8 * 0.2 - 2) + abs(0.6 + 0.7 - 1)) / 10
    assert vx.ece(y, p, kind="classwise", binning="mass", bins=2) == pytest.approx(wanted)


def test_an_edge_belongs_to_the_bin_below():
    # 0.6 closes the third of five bins, so it shares it with 0.55; the gaps cancel there.
    p = np.array([[0.4, 0.6], [0.45, 0.55]])
    assert vx.ece([1, 0], p, bins=5) == pytest.approx(abs(0.6 + 0.55 - 1) / 2)


def test_what_is_wrong_with_it():
    y, p = forecasts(300, 3, ties=False)
    rates = np.tile(np.bincount(y) / 300, (300, 1))
    for kind in ("confidence", "classwise"):
        for binning in ("width", "mass"):
            assert vx.ece(y, rates, kind=kind, binning=binning) == pytest.approx(0, abs=1e-15)
    # A calibrated forecast has an error all the same, and more of it with more bins.
    y, p = calibrated(200)
    errors = [vx.ece(y, p, bins=bins, kind="classwise") for bins in (1, 15, 100)]
    assert errors[0] < errors[1] < errors[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": 0}, "`bins` must be"),
        ({"bins": 2.5}, "`bins` must be"),
        ({"kind": "max"}, "`kind` must be"),
        ({"binning": "quantile"}, "`binning` must be"),
    ],
)
def test_refusals_of_ece(options, message):
    with pytest.raises(vx.VeraxError, match=message):
        vx.ece(*forecasts(30, 3), **options)


@pytest.mark.long
def test_groups_change_their_signs_together():
    """Against all patterns of signs of eight groups, with isotonic fits by scikit-learn."""
    rng = np.random.default_rng(8)
    groups = np.repeat(np.arange(8), 9)
    p = np.round(rng.uniform(0.1, 0.9, len(groups)), 3)
    lean = rng.normal(0, 1, 8)[groups]
    y = (rng.random(len(p)) < 1 / (1 + np.exp(-np.log(p / (1 - p)) - lean))).astype(int)
    order = np.argsort(p, kind="stable")
    stated, deviation, code = p[order], (y - p)[order], groups[order]

    def miscalibration(outcome):
        fit = np.clip(IsotonicRegression().fit_transform(stated, outcome), 0, 1)
        # Linear in the outcome, as wild outcomes are no zeros and ones.
        return np.mean(outcome * (1 - stated) ** 2 + (1 - outcome) * stated**2) - np.mean(
            outcome * (1 - fit) ** 2 + (1 - outcome) * fit**2
        )

    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=8)))
    drawn = np.array([miscalibration(stated + sign[code] * deviation) for sign in signs])
    observed = miscalibration(stated + deviation)
    exact = np.mean(drawn >= observed - 1e-12)
    found = vx.reliability(y, p, groups=groups, resamples=1000)["1"].components
    assert found.miscalibration == pytest.approx(observed, abs=1e-12)
    assert found.p_value == pytest.approx(exact, abs=0.05)
    named = vx.reliability(y, p, groups=[f"group {9 - g}" for g in groups], resamples=1000)
    assert named["1"].components.p_value == found.p_value


@needs_numba
@pytest.mark.parametrize("units", ["weights", "groups", "both"])
def test_compiled_bands_are_those_of_array_calls(units, change):
    rng = np.random.default_rng(3)
    p = rng.random(3000)
    y = (rng.random(3000) < p).astype(int)
    options = {"weights": rng.random(3000), "groups": rng.integers(0, 90, 3000)}
    options = options if units == "both" else {units: options[units]}
    found = []
    for compiled in (True, False):
        change(compiled_from=0, kernels=compiled)
        found.append(vx.reliability(y, p, resamples=20, **options)["1"])
    assert found[0].band == pytest.approx(found[1].band, abs=1e-14)
    assert found[0].components.calibrated == pytest.approx(found[1].components.calibrated, abs=1e-14)
