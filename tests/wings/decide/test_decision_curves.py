"""Decision curves and Murphy diagrams: against dcurves, model-diagnostics, Brier score and brute force."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_diagnostics.scoring import ElementaryScore
from scipy.special import expit, ndtri
from scipy.stats import beta
from scipy.stats import t as student

import verax as vx
from cases import forecasts
from realdata import load
from verax.analyses.binary import EventRows
from verax.analyses.units import SamplingUnits
from verax.common.strictjson import plain
from verax.inputs.groups import Groups
from verax.inputs.memory import open_rows
from verax.wings.decide.cells import Counted

GRID = [0.05, 0.2, 0.35, 0.5, 0.8]


# ---- net benefit ---------------------------------------------------------------------------------


def benefit_of_rows(given, happened, t):
    """What acting from t on adds in each row."""
    return (given >= t) * (happened - (1 - happened) * t / (1 - t))


def test_net_benefit_is_that_of_dcurves():
    # dca of dcurves 1.1.7 with thresholds=GRID.
    y, p = forecasts(120, 2, 5)
    (curve,) = vx.net_benefit(y, p, thresholds=GRID)
    assert curve.values.round(6).tolist() == [0.492982, 0.375, 0.192308, 0.058333, -0.35]
    assert curve.treat_all.round(6).tolist() == [0.508772, 0.416667, 0.282051, 0.066667, -1.333333]


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.booleans())
def test_net_benefit_is_its_definition(seed, k, ordered):
    y, p = forecasts(50, k, seed)
    w = np.random.default_rng(seed).exponential(size=50)
    curves = vx.net_benefit(y, p, thresholds=GRID, ordered=ordered, weights=w)
    if ordered:
        events = [(np.round(p[:, i:].sum(axis=1), 12), y >= i) for i in range(1, k)]
    else:
        events = [(p[:, i], y == i) for i in range(int(k == 2), k)]
    assert len(curves) == len(events)
    for curve, (forecast, happened) in zip(curves, events, strict=True):
        slow = [np.average(benefit_of_rows(forecast, happened, t), weights=w) for t in GRID]
        assert curve.values == pytest.approx(slow, abs=1e-12)
        everywhere = [np.average(benefit_of_rows(np.ones(50), happened, t), weights=w) for t in GRID]
        assert curve.treat_all == pytest.approx(everywhere, abs=1e-12)
        assert curve.prevalence == pytest.approx(np.average(happened, weights=w))


def test_a_forecast_that_equals_the_threshold_is_acted_on():
    p = np.array([[0.2, 0.1, 0.7], [0.3, 0.6, 0.1]])
    # 0.1 + 0.7 is below 0.8 in floating point.
    curve = vx.net_benefit([2, 0], p, ordered=True, thresholds=[0.8]).curve("> 0")
    assert curve.values.tolist() == [0.5]
    single = vx.net_benefit([1, 0], np.array([0.7, 0.1], np.float32), thresholds=[0.7])
    assert single.curves[0].values.tolist() == [0.5]


def limits_of_shares(tp, fp, n, t):
    """Net benefit from the Jeffreys limits of the shares of true and false alarms, combined by MOVER."""
    found, rows = [], n - 1
    for side in (-1, 1):
        away = []
        for share, factor in ((tp, 1.0), (fp, -t / (1 - t))):
            posterior = beta(share * rows + 0.5, (1 - share) * rows + 0.5)
            if side * factor > 0:
                end = posterior.isf(0.025) if share < 1 else 1.0
            else:
                end = posterior.ppf(0.025) if share > 0 else 0.0
            away.append(factor * (end - share))
        both = np.sqrt((1 - tp) * (1 - fp))
        # The states exclude each other, and their factors differ in sign.
        correlation = np.sqrt(tp * fp) / both
        squares = away[0] ** 2 + away[1] ** 2 + 2 * correlation * away[0] * away[1]
        found.append(tp - fp * t / (1 - t) + side * np.sqrt(squares))
    return found


def test_intervals_combine_those_of_shares():
    y, p = forecasts(200, 2)
    grid = [0.001, *GRID, 0.97, 0.999]
    (curve,) = vx.net_benefit(y, p, thresholds=grid)
    for i, t in enumerate(grid):
        tp, fp = ((p[:, 1] >= t) & (y == k) for k in (1, 0))
        wanted = limits_of_shares(tp.mean(), fp.mean(), 200, t)
        assert curve.interval[:, i] == pytest.approx(wanted, rel=1e-9)
    # Where counts are not small, they are those of a mean; with groups those of sums over groups.
    y, p = forecasts(6000, 2)
    values = np.array([benefit_of_rows(p[:, 1], y, t) for t in (0.35, 0.5)])
    (curve,) = vx.net_benefit(y, p, thresholds=[0.35, 0.5])
    half = 1.96034 * values.std(axis=1, ddof=1) / np.sqrt(6000)
    assert np.ptp(curve.interval, axis=0) / 2 == pytest.approx(half, rel=0.01)
    y, p, values = (
        np.repeat(y[:1200], 5),
        np.repeat(p[:1200], 5, axis=0),
        np.repeat(values[:, :1200], 5, axis=1),
    )
    (curve,) = vx.net_benefit(y, p, thresholds=[0.35, 0.5], groups=np.arange(6000) // 5)
    sums = 5 * values[:, :1200]
    half = 1.96195 * sums.std(axis=1, ddof=1) * np.sqrt(1200) / 6000
    assert np.ptp(curve.interval, axis=0) / 2 == pytest.approx(half, rel=0.03)
    assert (curve.band[0] <= curve.interval[0]).all()


def test_no_interval_is_without_width_where_nothing_or_everything_is_acted_on():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.3, 0.6, 100)
    y = (rng.random(100) < p).astype(int)
    models = {"p": p, "q": np.sqrt(p)}
    for standardized in (False, True):
        found = vx.net_benefit(y, models, standardized=standardized)
        for each in (*found.curves, *found.differences):
            assert (np.ptp(each.interval, axis=0) > 0).all()
            named = np.isfinite(each.band[0])
            assert (np.ptp(each.band[:, named], axis=0) > np.ptp(each.interval[:, named], axis=0)).all()
    curve = found.curve(model="p")
    at = np.flatnonzero(np.isfinite(curve.band[0]))
    assert curve.banded == (curve.thresholds[at[0]], curve.thresholds[at[-1]])
    assert at[0] == 0
    assert (p >= curve.thresholds[at[-1]]).sum() >= 10 > (p >= curve.thresholds[at[-1] + 1]).sum()
    assert all(0.3 < low <= high < 0.6 for low, high in curve.useful)
    for each in (*vx.diagrams.murphy(y, models).curves, *vx.diagrams.murphy(y, models).differences):
        assert (np.ptp(each.interval, axis=0) > 0).all()


def test_bands_cover_and_useful_is_true_of_an_overconfident_model():
    # Of logits that are twice the true ones; `studies/covering.py` has more designs and replications.
    x = ndtri((np.arange(100_000) + 0.5) / 100_000)
    chance, grid = expit(x), np.arange(1, 100) / 100
    odds = grid / (1 - grid)
    start = np.searchsorted(expit(2 * x), grid)
    true, false = (np.append(np.cumsum(q[::-1])[::-1], 0)[start] / len(x) for q in (chance, 1 - chance))
    truth = true - false * odds
    useless = (truth <= 0) | (truth <= 0.5 - 0.5 * odds)
    covered = wrong = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=300)
        y = (rng.random(300) < expit(x)).astype(int)
        (curve,) = vx.net_benefit(y, expit(2 * x))
        covered += not ((truth < curve.band[0]) | (truth > curve.band[1])).any()
        wrong += any(low <= t <= high for low, high in curve.useful for t in grid[useless])
    assert covered >= 16
    assert wrong <= 3


@pytest.mark.parametrize("grouped", [False, True])
def test_standardized_benefits_agree_with_the_jackknife(grouped):
    y, p = forecasts(300, 2, 4)
    q = forecasts(300, 2, 6)[1]
    w = 1 + np.random.default_rng(0).exponential(size=300)
    units = np.arange(300) // 4 if grouped else np.arange(300)
    options = {"thresholds": GRID, "standardized": True, "confidence": 0.6827}
    found = vx.net_benefit(y, {"p": p, "q": q}, weights=w, groups=units if grouped else None, **options)
    curve = found.curve(model="p")
    plainly = vx.net_benefit(y, p, weights=w, thresholds=GRID).curves[0]
    assert curve.values == pytest.approx(plainly.values / plainly.prevalence)
    assert curve.treat_all == pytest.approx(plainly.treat_all / plainly.prevalence)
    benefits = [[benefit_of_rows(x[:, 1], y, t) * w for t in GRID] for x in (p, q)]
    kept = (units != np.unique(units)[:, None]).astype(float)
    n = len(kept)
    values = np.array(benefits) @ kept.T / (kept @ (y * w))
    assert curve.values == pytest.approx(np.sum(benefits[0], axis=1) / (y @ w))
    left_out = np.array([values[0], values[0] - values[1]])
    error = np.sqrt((n - 1) * left_out.var(axis=2))
    # The intervals are not symmetric. Those of groups have a design effect, which makes them wider than the
    # jackknife where few rows are acted on, and never much narrower.
    gap = found.difference("p", "q")
    for shown, known, near in ((curve, error[0], 0.06), (gap, error[1], 0.12)):
        ratio = np.ptp(shown.interval, axis=0) / 2 / known
        assert ratio.min() > (0.94 if grouped else 1 - near)
        assert ratio.max() < (1.3 if grouped else 1 + near)
    back = found.difference("q", "p")
    assert back.interval.tolist() == (-gap.interval[::-1]).tolist()


def test_where_a_forecast_is_useful():
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    chance = 1 / (1 + np.exp(-2 * x))
    y = (rng.random(3000) < chance).astype(int)
    found = vx.net_benefit(y, {"model": chance, "noise": rng.random(3000)})
    low, high = found.curve(model="model").useful[0][0], found.curve(model="model").useful[-1][1]
    assert low < 0.2
    assert high > 0.8
    assert found.curve(model="noise").useful == []
    assert "noise: nowhere significantly better than" in repr(found)
    assert (found.difference("model", "noise").band[0] > 0).any()


# ---- Murphy diagrams -----------------------------------------------------------------------------


def elementary(given, happened, t):
    return np.where(happened, (given <= t) * (1 - t), (given > t) * t)


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.booleans())
def test_elementary_scores_are_their_definition(seed, k, ordered):
    y, p = forecasts(50, k, seed)
    w = np.random.default_rng(seed).exponential(size=50)
    found = vx.diagrams.murphy(y, p, thresholds=GRID, ordered=ordered, weights=w)
    if ordered:
        events = [(np.round(p[:, i:].sum(axis=1), 12), y >= i) for i in range(1, k)]
    else:
        events = [(p[:, i], y == i) for i in range(int(k == 2), k)]
    for curve, (forecast, happened) in zip(found, events, strict=True):
        slow = [np.average(elementary(forecast, happened, t), weights=w) for t in GRID]
        assert curve.values == pytest.approx(slow, abs=1e-12)


def test_elementary_scores_are_model_diagnostics():
    y, p = forecasts(100, 2, ties=False)
    (curve,) = vx.diagrams.murphy(y, p, thresholds=GRID)
    theirs = [ElementaryScore(eta=t, functional="mean")(y, p[:, 1]) for t in GRID]
    assert curve.values == pytest.approx(theirs, rel=1e-12)


def test_their_integral_is_half_the_brier_score_and_the_rps():
    y, p = forecasts(60, 4)
    fine = (np.arange(1000) + 0.5) / 1000
    thresholds = vx.diagrams.murphy(y, p, thresholds=fine, ordered=True)
    total = sum(curve.values.mean() for curve in thresholds)
    assert 2 * total == pytest.approx(vx.rules.RPS(normalized=False)(y, p), rel=2e-3)
    classes = vx.diagrams.murphy(y, p, thresholds=fine)
    assert 2 * sum(curve.values.mean() for curve in classes) == pytest.approx(vx.brier(y, p), rel=2e-3)


def test_the_exact_integral_of_a_difference():
    y, p = forecasts(80, 2, 1)
    q = forecasts(80, 2, 2)[1]
    rows = open_rows(y, {"p": p, "q": q})
    counted = Counted(rows, np.array(GRID), "left", ordered=False, stretches=True)
    low, high = np.split(counted.stretches(0, "p", "q"), 2)
    edges = np.concatenate([[0], np.unique(np.concatenate([p[:, 1], q[:, 1]])), [1]])
    integral = ((low + high) / 2 * np.diff(edges)).sum()
    halves = (vx.brier(y, p) - vx.brier(y, q)) / 4
    assert integral == pytest.approx(halves, abs=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_the_order_is_that_at_every_threshold(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 6)
    a, b = rng.integers(0, 6, (2, 6)) / 5
    fine = np.arange(1, 200) / 200
    gaps = elementary(a, y == 1, fine[:, None]) - elementary(b, y == 1, fine[:, None])
    at = gaps.mean(axis=1)
    better, worse = min(at) < -1e-9, max(at) > 1e-9
    wanted = "neither" if better and worse else "a" if better else "b" if worse else "same"
    found = vx.diagrams.murphy(y, {"a": a, "b": b})
    assert found.difference("a", "b").order == wanted
    assert found.dominates("a", "b") == (wanted in ("a", "same"))
    turned = {"a": "b", "b": "a"}.get(wanted, wanted)
    assert found.difference("b", "a").order == turned


def test_rankings_in_words():
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    chance = 1 / (1 + np.exp(-3 * x))
    y = (rng.random(4000) < chance).astype(int)
    flat = np.full(4000, y.mean())
    found = vx.diagrams.murphy(y, {"good": chance, "flat": flat, "again": chance})
    assert "good is significantly better at thresholds 0.02 to 0.95, flat nowhere" in found.sentences[0]
    assert found.difference("good", "again").order == "same"
    assert "good and again have the same elementary scores" in repr(found)
    # One is right about low chances, the other about high ones.
    low, high = np.where(chance < 0.5, chance, 0.75), np.where(chance < 0.5, 0.25, chance)
    (crossing,) = vx.diagrams.murphy(y, {"low": low, "high": high}).sentences
    assert crossing.startswith("class 1: the ranking depends on the score: low is better at")
    few = vx.diagrams.murphy(y[:6], {"p": chance[:6], "q": np.clip(chance[:6] + 0.01, 0, 1)})
    assert "no difference is significant; in these rows" in few.sentences[0]


@pytest.mark.long
@pytest.mark.slow
def test_simultaneous_bands_cover_everywhere_at_once():
    rng = np.random.default_rng(0)
    covered = inside = 0
    # `studies/covering.py` has more designs and replications.
    x = rng.normal(size=100_000)
    pa, pb = 1 / (1 + np.exp(-x)), 1 / (1 + np.exp(-1.5 * x + 0.3))
    grid = np.arange(10, 91, 5) / 100
    truth = []
    for t in grid:
        alarms, misses = (pa > t) * 1.0 - (pb > t), (pa <= t) * 1.0 - (pb <= t)
        truth.append(np.mean(pa * (1 - t) * misses + (1 - pa) * t * alarms))
    wanted = np.array(truth)
    for i in range(60):
        rows = rng.integers(0, len(x), 1000)
        y = (rng.random(1000) < pa[rows]).astype(int)
        pair = vx.diagrams.murphy(y, {"a": pa[rows], "b": pb[rows]}, thresholds=grid, seed=i).difference(
            "a", "b"
        )
        covered += bool(((pair.band[0] <= wanted) & (wanted <= pair.band[1])).all())
        inside += bool(((pair.interval[0] <= wanted) & (wanted <= pair.interval[1])).all())
    assert covered >= 52
    assert inside < 0.85 * covered


# ---- the grid --------------------------------------------------------------------------------------


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_covariances_are_those_of_the_rows(grouped, weighted):
    rng = np.random.default_rng(0)
    y, a, b = rng.integers(0, 2, 90), rng.random(90), rng.random(90)
    own = {"weights": rng.exponential(size=90) if weighted else None}
    own["groups"] = np.arange(90) // 4 if grouped else None
    grid = np.array(GRID)
    counted = Counted(open_rows(y, {"a": a, "b": b}, **own), grid, "right", ordered=False, stretches=False)
    states = counted.states(0, "a", "b")
    factors = rng.normal(size=states.share.shape)
    mixture = states.mixture(factors)
    of_row = 4 * y[:, None] + 2 * (a[:, None] >= grid) + (b[:, None] >= grid)
    rows = factors[of_row, np.arange(len(grid))]
    units, _ = SamplingUnits.of(90, own["weights"], Groups.of(own["groups"], 90) if grouped else None)
    assert mixture.mean == pytest.approx(units.share @ rows)

    def influences(columns):
        """What each unit adds to the deviations of the weighted means."""
        deviations = units.share[:, None] * (columns - units.share @ columns)
        return np.column_stack([units.sums(column) for column in deviations.T])

    influence = influences(rows)
    rest = 1 - units.sums(units.share)
    assert mixture.covariance == pytest.approx((influence / rest[:, None]).T @ influence, rel=1e-10)
    for t in range(len(grid)):
        of_states = np.eye(8)[of_row[:, t]]
        influence = influences(of_states)
        wanted = (influence / rest[:, None]).T @ influence
        assert states.covariance[:, :, t] == pytest.approx(wanted, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("function", [vx.net_benefit, vx.diagrams.murphy])
@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"thresholds": [0.0, 0.5]}, "thresholds"),
        ({"thresholds": [0.5, 1.0]}, "thresholds"),
        ({"thresholds": [0.5, 0.4]}, "thresholds"),
        ({"thresholds": []}, "thresholds"),
        ({"thresholds": ["half"]}, "thresholds"),
        ({"thresholds": np.linspace(0.01, 0.99, 1001)}, "thresholds"),
        ({"confidence": 95}, "confidence"),
        ({"seed": -1}, "seed"),
        ({"ordered": 1}, "ordered"),
    ],
)
def test_refusals(function, options, argument):
    with pytest.raises(vx.InputError) as refused:
        function(*forecasts(30, 3), **options)
    assert refused.value.argument == argument


@pytest.mark.parametrize("function", [vx.net_benefit, vx.diagrams.murphy])
def test_results_as_data_and_as_figures(function):
    import matplotlib.pyplot as plt

    y, p = forecasts(60, 3)
    q = forecasts(60, 3, 9)[1]
    found = function(y, {"p": p, "q": q}, ordered=True, classes=["low", "mid", "high"])
    json.dumps(plain(found.to_dict()))
    assert found.to_frame().shape[0] == 2 * 2 * 99
    assert found.to_frame("polars").columns[:3] == ["model", "event", "threshold"]
    frame = found.to_frame()
    name = "elementary_score" if function is vx.diagrams.murphy else "net_benefit"
    last = frame[(frame["model"] == "q") & (frame["event"] == "> mid")]
    assert last[name].tolist() == found.curve("> mid", "q").values.tolist()
    assert ("treat_all" in frame) == (function is vx.net_benefit)
    assert "y > mid" in repr(found)
    assert "> mid" in found._repr_html_().replace("&gt;", ">")
    figure = found.plot()
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    assert titles == ["y > low", "y > mid"]
    plt.close(figure)
    with pytest.raises(KeyError):
        found.difference("p", "r")
    alone = function(y, p)
    plt.close(alone.plot())
    assert len(alone) == 3


def test_results_that_hold_rows_are_read():
    # As version 0.2 wrote them of rows in memory.
    y, p = forecasts(30, 3)
    for function in (vx.net_benefit, vx.diagrams.murphy):
        found = function(y, p, thresholds=GRID)
        units, _ = SamplingUnits.of(30, None, None)
        older = replace(found, rows=EventRows(y, p, units, ("0", "1", "2"), False, 12))
        again = type(found).from_dict(json.loads(json.dumps(older.to_dict())))
        assert again == older
        assert repr(again) == repr(found)


def test_one_row_has_no_intervals():
    (curve,) = vx.net_benefit([1], [0.7], thresholds=[0.5])
    assert curve.values.tolist() == [1.0]
    assert np.isnan(curve.interval).all()
    assert curve.useful == []
    found = vx.diagrams.murphy([1], {"a": [0.7], "b": [0.2]}, thresholds=[0.5])
    assert found.difference("a", "b").order == "a"
    assert np.isnan(found.difference("a", "b").band).all()


def test_retinopathy():
    data = load("dr-aptos", "dr_aptos5.npz")
    y, p = data["labels"], data["probs"]
    found = vx.net_benefit(y, p, ordered=True)
    referable = found.curve("> 1")
    given = p[:, 2:].astype(float).sum(axis=1)
    slow = benefit_of_rows(given, y >= 2, 0.2).mean()
    assert referable.values[19] == pytest.approx(slow, abs=1e-12)
    assert referable.useful[0][0] < 0.1


@pytest.mark.parametrize(
    ("thresholds", "shown"),
    [
        ([0.01, 0.02, 0.03, 0.05, 0.1], ["0.01", "0.02", "0.03", "0.05", "0.1"]),
        (None, ["0.05", "0.1", "0.2", "0.3", "0.5"]),
        (np.linspace(0.001, 0.04, 40).tolist(), ["0.001", "0.011", "0.021", "0.03", "0.04"]),
    ],
)
def test_the_table_shows_the_thresholds_that_were_asked_for(thresholds, shown):
    text = repr(vx.net_benefit([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], thresholds=thresholds))
    heads = re.findall(r"at (\S+)", text.splitlines()[1])
    assert heads == shown


def test_intervals_over_few_groups_are_as_wide_as_those_of_student_over_their_means():
    """Six groups of one size, whose own net benefits differ far more than their rows tell."""
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(6), 3_000)
    shift = 1.2 * rng.normal(size=6)[groups]
    z = rng.normal(size=len(groups))
    y, p = (rng.random(len(z)) < expit(z + shift)).astype(int), expit(z)
    curve = vx.net_benefit(y, p, thresholds=[0.3, 0.5], groups=groups).curves[0]
    for k, threshold in enumerate((0.3, 0.5)):
        odds = threshold / (1 - threshold)
        value = (p >= threshold) * np.where(y == 1, 1.0, -odds)
        means = np.array([value[groups == g].mean() for g in range(6)])
        half = student.ppf(0.975, 5) * means.std(ddof=1) / 6**0.5
        low, high = curve.interval[:, k]
        assert curve.values[k] == pytest.approx(means.mean())
        assert 0.9 < (high - low) / (2 * half) < 1.25
