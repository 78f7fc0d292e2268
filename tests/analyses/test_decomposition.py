"""Decompositions: exact vectors, two oracles, brute force, laws, and what they must refuse."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_diagnostics.scoring import LogLoss, SquaredError
from model_diagnostics.scoring import decompose as oracle
from sklearn.isotonic import IsotonicRegression

import verax as vx
from cases import NAMESPACES, forecasts, number
from realdata import load
from verax.analyses.calibration.decomposition import COMPONENTS
from verax.analyses.calibration.events import events, recalibrate, split
from verax.analyses.table import RowTable
from verax.inference.bootstrap import multiplicities

VECTORS = [
    pytest.param(entry, id=entry["id"])
    for entry in json.loads((Path(__file__).parents[1] / "vectors.json").read_text())
    if entry["rule"] in ("corp_rps", "corp_brier_ovr")
]
RULES = [
    vx.brier,
    vx.Brier("half"),
    vx.Brier("mean"),
    vx.rps,
    vx.RPS(normalized=False),
    vx.log_score,
    vx.Log(base=2),
    vx.ranked_log,
]


def values(decomposition):
    return np.array([getattr(decomposition, name) for name in COMPONENTS])


def pieces(y, p, rule):
    forecast = vx.Forecasts(y, p, ordered=rule.ordinal)
    return list(events(forecast, RowTable.of(forecast, []), split(rule, forecast.n_classes)))


@pytest.mark.parametrize("entry", VECTORS)
def test_vectors(entry):
    rule = vx.rps if entry["rule"] == "corp_rps" else vx.brier
    p, expected = [[number(x) for x in row] for row in entry["p"]], entry["expected"]
    result = vx.decompose(entry["y"], p, rule=rule)
    wanted = [number(expected[key]) for key in ("score", "mcb", "dsc", "unc")]
    assert values(result) == pytest.approx(wanted, rel=1e-12, abs=1e-15)
    recalibrated = [recalibrate(e.cells(None)).values[e.pools] for e in pieces(entry["y"], p, rule)]
    wanted = [[number(x) for x in row] for row in expected["recalibrated"]]
    np.testing.assert_allclose(recalibrated, wanted, rtol=1e-12, atol=1e-15)


def test_all_vectors_are_used():
    assert len(VECTORS) == 16


# ---- oracles -----------------------------------------------------------------------------------


def binary(n, seed):
    """Forecasts with many ties, zeros and ones, never certain and wrong, and weights."""
    rng = np.random.default_rng(seed)
    p = np.where(rng.random(n) < 0.5, rng.random(n), rng.integers(0, 11, n) / 10)
    y = (rng.random(n) < p**2).astype(int)
    y[p == 0], y[p == 1] = 0, 1
    return y, p, rng.exponential(size=n)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("rule", "score"),
    [(vx.Brier("half"), SquaredError()), (vx.rps, SquaredError()), (vx.log_score, LogLoss())],
)
def test_model_diagnostics(rule, score, weighted):
    y, p, w = binary(400, 1)
    w = w if weighted else None
    row = oracle(y, p, weights=w, scoring_function=score).row(0, named=True)
    wanted = [row[key] for key in ("score", "miscalibration", "discrimination", "uncertainty")]
    assert values(vx.decompose(y, p, rule=rule, weights=w)) == pytest.approx(wanted, rel=1e-11, abs=1e-14)


def test_published_values():
    # reliabilitydiag (R), README: EMOS forecasts of rain at Niamey, printed to three digits.
    frame = pd.read_csv(load("weather-ordinal", "precip_Niamey_2016.csv"))
    result = vx.decompose(frame["obs"].to_numpy(), frame["EMOS"].to_numpy(), rule=vx.Brier("half"))
    assert [f"{v:.3g}" for v in values(result)] == ["0.232", "0.0183", "0.0305", "0.244"]


def brute_force(y, p, rule, w):
    """Every event with scikit-learn's isotonic regression, scored row by row."""
    k = p.shape[1]
    below = np.round(np.cumsum(p, axis=1), 12)
    if rule.ordinal:
        pairs = [(below[:, i], y <= i) for i in range(k - 1)]
    else:
        pairs = [(p[:, i], y == i) for i in range(k)]
    total = np.zeros(4)
    for x, z in pairs:
        fitted = IsotonicRegression(y_min=0, y_max=1).fit(x, z, sample_weight=w).predict(x)
        constant = np.full(len(x), np.average(z, weights=w))

        def loss(f, z=z):
            if isinstance(rule, (vx.Brier, vx.RPS)):
                return np.average((f - z) ** 2, weights=w)
            hit = np.where(z, f, 1 - f)
            return np.average(-np.log(hit, where=hit > 0, out=np.full(len(f), np.inf)), weights=w)

        total += [loss(x), loss(x) - loss(fitted), loss(constant) - loss(fitted), loss(constant)]
    return total


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_brute_force(rule, k, weighted):
    rng = np.random.default_rng(k)
    p = rng.integers(1, 5, (300, k)) / 1.0
    p /= p.sum(axis=1, keepdims=True)
    y = rng.integers(0, k, 300)
    w = rng.exponential(size=300) if weighted else None
    result = vx.decompose(y, p, rule=rule, weights=w)
    binary_log = isinstance(rule, vx.Log) and k == 2
    factor = {
        "brier": 1,
        "brier(scale='half')": 1 / 2,
        "brier(scale='mean')": 1 / k,
        "rps": 1 / (k - 1),
        "rps(normalized=False)": 1,
        "log": 1,
        "log(base=2)": 1 / math.log(2),
        "ranked_log": 1 / (k - 1),
    }[repr(rule)] * (0.5 if binary_log else 1)
    assert values(result) == pytest.approx(factor * brute_force(y, p, rule, w), rel=1e-10, abs=1e-12)


# ---- laws --------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.sampled_from(RULES))
def test_components(seed, k, rule):
    y, p = forecasts(40, k, seed)
    w = np.random.default_rng(seed).integers(0, 4, 40)
    w[0] += 1
    result = vx.decompose(y, p, rule=rule, weights=w)
    score, mcb, dsc, unc = values(result)
    assert mcb >= -1e-14
    assert dsc >= -1e-14
    assert unc >= 0
    if math.isfinite(score):
        assert mcb - dsc + unc == pytest.approx(score, rel=1e-12)
    else:
        assert mcb == math.inf
        assert math.isfinite(dsc)
    if not isinstance(rule, vx.Log) or k == 2:
        assert score == pytest.approx(rule(y, p, weights=w), rel=1e-12)
    copies = np.repeat(np.arange(40), w)
    np.random.default_rng(seed).shuffle(copies)
    assert values(vx.decompose(y[copies], p[copies], rule=rule)) == pytest.approx(
        values(result), rel=1e-12, abs=1e-14
    )


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_parts_add_up(rule):
    y, p = forecasts(200, 4, ties=False)
    result = vx.decompose(y, p, rule=rule, classes=["a", "b", "c", "d"], bootstrap=10)
    parts = np.array([values(part) for part in result.parts])
    factor = {"sum": 1, "half": 0.5, "mean": 0.25}[getattr(rule, "scale", "sum")]
    if result.thresholds and getattr(rule, "normalized", True):
        factor = 1 / 3
    assert factor * parts.sum(axis=0) == pytest.approx(values(result), rel=1e-13)
    names = ["<= a", "<= b", "<= c"] if rule.ordinal else ["a", "b", "c", "d"]
    assert [part.name for part in result.parts] == names


def test_uncertainty_of_the_brier_score():
    y, p = forecasts(100, 3)
    shares = np.bincount(y) / 100
    assert vx.decompose(y, p, rule="brier").uncertainty == pytest.approx(1 - (shares**2).sum())


@pytest.mark.parametrize("rule", [vx.brier, vx.rps, vx.log_score], ids=repr)
def test_extreme_forecasts(rule):
    y, _ = forecasts(60, 3)
    constant = vx.decompose(y, np.tile(np.bincount(y) / 60, (60, 1)), rule=rule)
    assert values(constant)[1:3] == pytest.approx([0, 0], abs=1e-15)
    perfect = vx.decompose(y, np.eye(3)[y], rule=rule)
    assert perfect.score == perfect.miscalibration == 0
    assert perfect.discrimination == perfect.uncertainty > 0
    single = vx.decompose([1], [[0.2, 0.5, 0.3]], rule=rule)
    assert single.discrimination == single.uncertainty == 0
    assert single.miscalibration == single.score > 0


def test_sums_that_differ_by_rounding_are_ties():
    # .1 + .7 and .2 + .6 are different doubles, and further apart in single precision.
    p = np.array([[0.1, 0.7, 0.2], [0.2, 0.6, 0.2]])
    assert p[0, :2].sum() != p[1, :2].sum()
    for dtype in (np.float64, np.float32):
        (threshold,) = pieces([0, 2], p.astype(dtype), vx.rps)[1:]
        assert len(threshold.values) == 1


def test_tiny_probabilities_keep_their_digits():
    p = np.array([[1e-20, 1.0], [0.3, 0.7], [0.6, 0.4]])
    result = vx.decompose([0, 1, 0], p, rule=vx.log_score)
    assert result.score == pytest.approx(-math.log(1e-20 * 0.7 * 0.6) / 3, rel=1e-13)
    three = vx.decompose([1, 0, 2], [[1.0, 1e-20, 0], [0.5, 0.25, 0.25], [0.2, 0.2, 0.6]], rule="log")
    assert three.parts[0].score == pytest.approx(-math.log(1e-20 * 0.5 * 0.8) / 3, rel=1e-13)


def test_an_impossible_outcome():
    y, p = [0, 1, 1, 0], [0.0, 0.0, 1.0, 0.4]
    result = vx.decompose(y, p, rule="log", bootstrap=50)
    assert result.score == result.miscalibration == math.inf
    assert math.isfinite(result.discrimination)
    assert result.intervals["score"][1] == math.inf
    assert "probability zero" in repr(result)
    zero_weight = vx.decompose(y, p, rule="log", weights=[1, 0, 1, 1])
    assert math.isfinite(zero_weight.score)


def test_the_one_vs_rest_log_score_is_called_that():
    y, p = forecasts(50, 3, ties=False)
    result = vx.decompose(y, p, rule="log")
    assert result.quantity == "one-vs-rest log"
    assert "it is not the log score" in repr(result)
    truth = np.eye(3)[y]
    total = -np.mean(np.sum(truth * np.log(p) + (1 - truth) * np.log1p(-p), axis=1))
    assert result.score == pytest.approx(total, rel=1e-12)
    assert vx.decompose(y > 0, p[:, 1:].sum(axis=1), rule="log").quantity == "log"


@pytest.mark.parametrize("array", NAMESPACES, ids=lambda f: f.__name__)
def test_arrays_of_every_kind(array):
    y, p = forecasts(60, 3)
    p = p.astype(np.float32)
    wanted = values(vx.decompose(y, p, rule="rps"))
    assert values(vx.decompose(array(y), array(p), rule="rps")) == pytest.approx(wanted, rel=1e-12)


def test_logits_and_rescaling():
    y, p = forecasts(60, 3, ties=False)
    wanted = values(vx.decompose(y, p, rule="brier"))
    assert values(vx.decompose(y, np.log(p), rule="brier", logits=True)) == pytest.approx(wanted)
    assert values(vx.decompose(y, 7 * p, rule="brier", normalize=True)) == pytest.approx(wanted)


# ---- resampling --------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [vx.brier, vx.rps, vx.ranked_log], ids=repr)
@pytest.mark.parametrize("grouped", [False, True])
def test_the_bootstrap_is_explicit_resampling(rule, grouped):
    y, p = forecasts(60, 3, ties=False)
    groups = np.arange(60) // 4 if grouped else None
    result = vx.decompose(y, p, rule=rule, bootstrap=8, seed=5, groups=groups)
    parsed = vx.Forecasts(y, p, groups=groups).groups
    for drawn, replicate in zip(multiplicities(60, parsed, 8, 5), result.whole.replicates, strict=True):
        rows = np.repeat(np.arange(60), drawn)
        wanted = values(vx.decompose(y[rows], p[rows], rule=rule))
        assert replicate == pytest.approx(wanted, rel=1e-11, abs=1e-14)
    assert result.n_groups == (15 if grouped else None)
    assert (result.p_value is None) == grouped


def test_intervals():
    y, p = forecasts(100, 3, ties=False)
    result = vx.decompose(y, p, rule="brier", bootstrap=99, confidence=0.9)
    drawn, seen = result.whole.replicates, values(result)
    low, high = np.percentile(drawn, [5, 95], axis=0)
    assert result.intervals["score"] == pytest.approx((low[0], high[0]))
    added = drawn.mean(axis=0) - seen
    for i in (1, 2):
        ends = np.maximum([2 * seen[i] - high[i] - added[i], 2 * seen[i] - low[i] - added[i]], 0)
        assert result.intervals[COMPONENTS[i]] == pytest.approx(ends)
    again = vx.decompose(y, p, rule="brier", bootstrap=99, confidence=0.9)
    assert again.to_dict() == result.to_dict()


def simulated(n, seed, distort=1.0):
    """Forecasts with the outcomes they promise, then sharpened (distort > 1) beyond what is true."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    p = np.exp(distort * z)
    return y, p / p.sum(axis=1, keepdims=True)


def test_outcomes_are_drawn_jointly_from_the_forecast():
    y, p = simulated(20_000, 0)
    uniform = np.random.default_rng(1).random(20_000)
    for rule in (vx.brier, vx.rps):
        drawn = [event.redrawn(uniform) for event in pieces(y, p, rule)]
        happened = np.array([event.happened for event in drawn])
        chance = np.array([event.given for event in drawn])
        assert happened.mean(axis=1) == pytest.approx(chance.mean(axis=1), abs=0.012)
        if rule is vx.brier:
            assert (happened.sum(axis=0) == 1).all()
        else:
            assert (happened[0] <= happened[1]).all()


@pytest.mark.slow
def test_the_p_value_of_calibrated_forecasts_is_uniform():
    p_values = np.array(
        [vx.decompose(*simulated(60, seed), rule="rps", bootstrap=39).p_value for seed in range(200)]
    )
    # Binomial(200, share) lies within these bounds with probability above 0.9999.
    assert 1 <= (p_values <= 0.05).sum() <= 25
    assert 65 <= (p_values <= 0.5).sum() <= 135
    assert vx.decompose(*simulated(500, 0, 2.5), rule="rps", bootstrap=39).p_value == 1 / 40


@pytest.mark.slow
def test_coverage_of_the_score():
    big = simulated(400_000, 999, 1.5)
    truth = {rule: vx.parse(rule)(*big) for rule in ("brier", "rps")}
    for rule, expected in truth.items():
        hits = 0
        for seed in range(100):
            low, high = vx.decompose(
                *simulated(150, seed, 1.5), rule=rule, bootstrap=99, seed=seed
            ).intervals["score"]
            hits += low <= expected <= high
        # 95 percent nominal; Binomial(100, 0.94) is below 86 once in a thousand times.
        assert hits >= 86


@pytest.mark.slow
def test_coverage_of_the_components():
    # The population's values, from so many rows that the fit follows no noise to speak of.
    for distort in (1.0, 2.0):
        truth = vx.decompose(*simulated(400_000, 999, distort), rule="rps")
        hits = np.zeros(2)
        for seed in range(100):
            result = vx.decompose(*simulated(250, seed, distort), rule="rps", bootstrap=60, seed=seed)
            for i, name in enumerate(("miscalibration", "discrimination")):
                low, high = result.intervals[name]
                hits[i] += low - 1e-4 <= getattr(truth, name) <= high
        assert (hits >= 80).all(), (distort, hits)


# ---- out, and refusals -------------------------------------------------------------------------


def test_text_and_dict():
    y, p = forecasts(80, 3, ties=False)
    result = vx.decompose(y, p, rule="rps", classes=["low", "mid", "high"], bootstrap=20, groups=y % 3 + 1)
    text = repr(result)
    assert text.splitlines()[0] == "verax decomposition of rps: 80 rows, 3 groups, 3 ordered classes"
    assert "y <= mid" in text
    assert "20 replicates of the groups" in text
    assert "<td>rps</td>" in result._repr_html_()
    out = json.loads(json.dumps(result.to_dict()))
    assert out["whole"]["score"] == result.score
    assert out["parts"][1]["name"] == "<= mid"
    assert out["whole"]["p_value"] is None
    assert repr(result.parts[0]).startswith("<= low: score 0.")


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("pbs", r"penalty that looks at all classes at once; decompose brier instead"),
        ("pll", r"decompose log instead"),
        ("spherical", "no sum of scores of binary events"),
        ("zero_one", "no sum of scores of binary events"),
        ("sa_rps", "not proper"),
        ("abs_rps", "not proper"),
        ("log(clip=0.01)", "not proper"),
    ],
)
@pytest.mark.parametrize("k", [2, 3])
def test_rules_that_have_no_such_parts(rule, reason, k):
    y, p = forecasts(30, k)
    with pytest.raises(vx.RuleError, match=reason):
        vx.decompose(y, p, rule=rule)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bootstrap": -1}, "`bootstrap` must be"),
        ({"bootstrap": True}, "`bootstrap` must be"),
        ({"confidence": 1}, "`confidence` must lie"),
        ({"rule": "brayer"}, "Did you mean 'brier'"),
        ({"groups": np.zeros(30), "bootstrap": 5}, "at least two groups"),
        ({"weights": -np.ones(30)}, "`weights` must be finite and not negative"),
        ({"classes": ["a", "b"]}, "`classes` must name the 3 columns"),
    ],
)
def test_refusals(options, message):
    y, p = forecasts(30, 3)
    with pytest.raises(vx.VeraxError, match=message):
        vx.decompose(y, p, **{"rule": "brier", **options})
    with pytest.raises(vx.InputError, match="sum to 1"):
        vx.decompose(y, 2 * p, rule="brier")
    with pytest.raises(vx.InputError, match="lowest first"):
        vx.decompose(np.array(["a", "b", "c"])[y], p, rule="rps")
