"""Decompositions: exact vectors, two oracles, brute force, laws, and what they must refuse."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_diagnostics.scoring import LogLoss, SquaredError
from model_diagnostics.scoring import decompose as oracle
from scipy.special import stdtrit
from sklearn.isotonic import IsotonicRegression

import references
import verax as vx
from cases import NAMESPACES, forecasts, needs_numba, number
from covers import calibration_tests
from covers import decomposition as promises
from realdata import load
from verax.analyses.calibration import sums
from verax.analyses.calibration.cells import smooth_frequencies
from verax.analyses.calibration.components import COMPONENTS
from verax.analyses.calibration.events import split
from verax.analyses.calibration.isotonic import isotonic_fit
from verax.analyses.calibration.recipes import EventRecipe
from verax.analyses.calibration.sources import RowEvents
from verax.analyses.calibration.sums import bins_of_rows
from verax.inputs.memory import InMemory, open_rows
from verax.kernels.ledger import spend
from verax.results import Interval

VECTORS = [
    pytest.param(entry, id=entry["id"])
    for entry in references.entries()
    if entry["rule"] in ("corp_rps", "corp_brier_ovr")
]
RULES = [
    vx.brier,
    vx.rules.Brier("half"),
    vx.rules.Brier("mean"),
    vx.rps,
    vx.rules.RPS(normalized=False),
    vx.log_score,
    vx.rules.Log(base=2),
    vx.ranked_log,
]


def values(decomposition):
    return np.array([getattr(decomposition, name) for name in COMPONENTS])


def pieces(y, p, rule):
    """The events of a rule, and how they are scored."""
    forecasts = vx.Forecasts(y, p, ordered=rule.ordinal)
    how = split(rule, forecasts.n_classes)
    part = InMemory({"model": forecasts}).kept
    return list(RowEvents("model", how).read(part).events()), how


@pytest.mark.parametrize("entry", VECTORS)
def test_vectors(entry):
    rule = vx.rps if entry["rule"] == "corp_rps" else vx.brier
    p, expected = [[number(x) for x in row] for row in entry["p"]], entry["expected"]
    result = vx.decompose(entry["y"], p, rule=rule)
    wanted = [number(expected[key]) for key in ("score", "mcb", "dsc", "unc")]
    assert values(result) == pytest.approx(wanted, rel=1e-12, abs=1e-15)
    recalibrated = [isotonic_fit(e.cells(None)).values[e.pools] for e in pieces(entry["y"], p, rule)[0]]
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
    [(vx.rules.Brier("half"), SquaredError()), (vx.rps, SquaredError()), (vx.log_score, LogLoss())],
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
    result = vx.decompose(frame["obs"].to_numpy(), frame["EMOS"].to_numpy(), rule=vx.rules.Brier("half"))
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
            if isinstance(rule, (vx.rules.Brier, vx.rules.RPS)):
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
    binary_log = isinstance(rule, vx.rules.Log) and k == 2
    factor = {
        "brier": 1,
        "brier(scale='half')": 1 / 2,
        "brier(scale='mean')": 1 / k,
        "rps": 1 / (k - 1),
        "rps(normalized=False)": 1,
        "log_score": 1,
        "log_score(base=2)": 1 / math.log(2),
        "ranked_log": 1 / (k - 1),
    }[repr(rule)] * (0.5 if binary_log else 1)
    assert values(result) == pytest.approx(factor * brute_force(y, p, rule, w), rel=1e-10, abs=1e-12)


# ---- laws --------------------------------------------------------------------------------------


@pytest.mark.long
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
    if not isinstance(rule, vx.rules.Log) or k == 2:
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
        _, threshold = pieces([0, 2], p.astype(dtype), vx.rps)[0]
        assert len(threshold.values) == 1


def test_tiny_probabilities_keep_their_digits():
    p = np.array([[1e-20, 1.0], [0.3, 0.7], [0.6, 0.4]])
    result = vx.decompose([0, 1, 0], p, rule=vx.log_score)
    assert result.score == pytest.approx(-math.log(1e-20 * 0.7 * 0.6) / 3, rel=1e-13)
    three = vx.decompose([1, 0, 2], [[1.0, 1e-20, 0], [0.5, 0.25, 0.25], [0.2, 0.2, 0.6]], rule="log_score")
    assert three.parts[0].score == pytest.approx(-math.log(1e-20 * 0.5 * 0.8) / 3, rel=1e-13)


def test_an_impossible_outcome():
    y, p = [0, 1, 1, 0], [0.0, 0.0, 1.0, 0.4]
    result = vx.decompose(y, p, rule="log_score", bootstrap=50)
    assert result.score == result.miscalibration == math.inf
    assert math.isfinite(result.discrimination)
    for name in ("score", "miscalibration"):
        assert not result.intervals[name].defined
        assert result.intervals[name].caution == "the score is infinite"
    assert result.intervals["discrimination"].defined
    json.dumps(result.to_dict())
    assert "probability zero" in repr(result)
    zero_weight = vx.decompose(y, p, rule="log_score", weights=[1, 0, 1, 1])
    assert math.isfinite(zero_weight.score)


def test_the_one_vs_rest_log_score_is_called_that():
    y, p = forecasts(50, 3, ties=False)
    result = vx.decompose(y, p, rule="log_score")
    assert result.quantity == "one-vs-rest log_score"
    assert "it is not the log score" in repr(result)
    truth = np.eye(3)[y]
    total = -np.mean(np.sum(truth * np.log(p) + (1 - truth) * np.log1p(-p), axis=1))
    assert result.score == pytest.approx(total, rel=1e-12)
    assert vx.decompose(y > 0, p[:, 1:].sum(axis=1), rule="log_score").quantity == "log_score"


@pytest.mark.long
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


# ---- intervals ---------------------------------------------------------------------------------


def test_intervals():
    y, p = simulated(100, 0)
    result = vx.decompose(y, p, rule="brier", bootstrap=99, confidence=0.9)
    for interval in result.intervals.values():
        assert isinstance(interval, Interval)
        assert 0 <= interval.low <= interval.high
        assert (interval.confidence, interval.caution) == (0.9, "")
    # The score is a mean, and has the interval of one.
    losses = vx.brier.samples(y, p)
    half = stdtrit(99, 0.95) * losses.std(ddof=1) / 10
    assert result.intervals["score"] == pytest.approx((losses.mean() - half, losses.mean() + half))
    # What the fit takes from noise is positive, and components without it add up, too.
    noise = values(result) - np.array(list(result.corrected.values()))
    assert noise[0] == 0
    assert noise[1] > noise[2] > 0 > noise[3]
    assert noise[1] - noise[2] + noise[3] == pytest.approx(0, abs=1e-15)
    again = vx.decompose(y, p, rule="brier", bootstrap=99, confidence=0.9)
    assert again.to_dict() == result.to_dict()
    wider = vx.decompose(y, p, rule="brier", bootstrap=99, confidence=0.99)
    assert wider.intervals["discrimination"].low < result.intervals["discrimination"].low


@pytest.mark.parametrize("rule", [vx.brier, vx.rps, vx.log_score], ids=repr)
def test_what_weights_and_groups_mean(rule):
    y, p = forecasts(120, 3, ties=False)
    w = np.random.default_rng(0).exponential(size=120)

    def found(rows=slice(None), **options):
        return vx.decompose(y[rows], p[rows], rule=rule, bootstrap=30, **options).intervals

    plain, weighted = found(), found(weights=w)
    more, equal = found(weights=10 * w), found(weights=np.full(120, 7))
    for name, interval in weighted.items():
        # Weights say how much a row counts, not how many rows there are.
        assert more[name] == pytest.approx(interval, rel=1e-9)
        assert equal[name] == pytest.approx(plain[name], rel=1e-9)
        assert interval.high - interval.low > 0.99 * (plain[name].high - plain[name].low)
    kept = np.arange(120) % 3 > 0
    left_out = found(weights=kept.astype(float))
    removed = found(kept)
    assert left_out["discrimination"] == pytest.approx(removed["discrimination"], rel=1e-9)
    # Groups of one row are rows; ten copies of each are no more evidence.
    assert found(groups=np.arange(120))["score"] == pytest.approx(plain["score"])
    copies = np.tile(np.arange(120), 10)
    assert found(copies, groups=copies)["score"] == pytest.approx(plain["score"])
    if rule is vx.log_score:
        return
    alone, ten = found(groups=np.arange(120)), found(copies, groups=copies)
    assert ten["discrimination"] == pytest.approx(alone["discrimination"], rel=1e-9)


def test_components_without_discrimination_have_finite_intervals():
    """A discrimination that is zero but for rounding has no variance that is proportional to it."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(100, 3))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    found = vx.decompose(rng.integers(0, 3, 100), p, rule="rps", bootstrap=20)
    for part in (found.whole, *found.parts):
        assert all(interval.high < 1 for interval in part.intervals.values())


def test_cautions():
    y, p = forecasts(30, 3, ties=False)
    assert vx.decompose(y[:10], p[:10], rule="rps", bootstrap=5).intervals["score"].caution == "only 10 rows"
    few = vx.decompose(y, p, rule="rps", bootstrap=5, groups=np.arange(30) % 4)
    assert few.intervals["miscalibration"].caution == "only 4 groups"
    assert "Caution: only 4 groups." in repr(few)
    assert few.to_dict()["whole"]["caution"] == "only 4 groups"
    one = vx.decompose(y[:1], p[:1], rule="brier", bootstrap=5)
    assert not one.intervals["score"].defined
    assert one.intervals["miscalibration"].caution == "there is only one row"
    with pytest.raises(vx.InputError) as caught:
        vx.decompose(y, p, rule="brier", bootstrap=5, groups=np.zeros(30))
    assert caught.value.argument == "groups"
    # A certain forecast that has not failed yet.
    x = np.r_[0.0, np.linspace(0.02, 0.98, 59)]
    happened = np.r_[False, np.random.default_rng(0).random(59) < 0.5]
    sure = vx.decompose(happened, x, rule="log_score", bootstrap=5)
    assert sure.intervals["miscalibration"].defined
    assert "certain" in sure.intervals["miscalibration"].caution


@pytest.mark.parametrize("rule", ["brier", "rps", "log_score"])
def test_samples_without_variation_have_intervals(rule):
    y, p = forecasts(40, 3, ties=False)
    constant = vx.decompose(y, np.tile([0.2, 0.3, 0.5], (40, 1)), rule=rule, bootstrap=20)
    assert constant.intervals["discrimination"] == pytest.approx((0, 0), abs=1e-12)
    one_class = vx.decompose(np.zeros(40, int), p, rule=rule, bootstrap=20)
    assert one_class.intervals["uncertainty"] == pytest.approx((0, 0), abs=1e-12)
    assert one_class.intervals["miscalibration"].low > 0


def test_smooth_frequencies_need_not_be_monotone():
    rng = np.random.default_rng(0)
    rank = (np.arange(4000) + 0.5) / 4000
    truth = 0.5 + 0.35 * np.sin(3 * np.pi * rank)
    n = np.full(4000, 1 / 4000)
    found = smooth_frequencies(n, n * (rng.random(4000) < truth), n**2)
    assert np.abs(found - truth).max() < 0.1
    # A straight line is kept, and so are the frequencies of few pools with many rows.
    assert smooth_frequencies(n, n * rank, n**2) == pytest.approx(rank, abs=0.01)
    few = np.array([0.2, 0.7, 0.3, 0.9])
    mass = np.full(4, 0.25)
    assert smooth_frequencies(mass, mass * few, mass / 1e5) == pytest.approx(few)
    assert smooth_frequencies(np.ones(1), np.array([0.3]), np.array([0.01])) == pytest.approx([0.3])


# ---- what the intervals and p-values promise ---------------------------------------------------


SURE = promises.too_sure(1.5)
# Seeds are fixed; Binomial(20, 0.95) is at least 16 in 997 of 1,000 cases.
DESIGNS = {
    "grid": promises.Design(promises.on_grid(SURE), "rps", n=500),
    "hump": promises.Design(promises.binary(promises.hump), n=300),
    "curved": promises.Design(promises.binary(promises.squared), "log_score", n=300),
    "groups": promises.Design(SURE, "rps", n=400, groups=40),
    "weights": promises.Design(promises.binary(promises.wave), n=400, weighted=True),
}


@pytest.mark.long
@pytest.mark.parametrize("name", DESIGNS)
def test_coverage_of_the_components(name):
    hits = promises.decompositions(DESIGNS[name], 20, 1, bootstrap=20)
    assert sum(hits["miscalibration"]) >= 16
    assert sum(hits["discrimination"]) >= 16


def test_estimates_without_noise_are_right_on_average():
    design = DESIGNS["hump"]
    found, raw = [], []
    for i in range(40):
        sample = design.sample([2, i])
        result = vx.decompose(sample["y"], sample["p"], rule="brier", bootstrap=20)
        found.append(list(result.corrected.values())[1:3])
        raw.append(values(result)[1:3])
    found, raw, truth = np.array(found), np.array(raw), np.array(design.truth())
    error = found.std(axis=0) / math.sqrt(40)
    assert (np.abs(found.mean(axis=0) - truth) < 3.5 * error).all()
    assert (raw.mean(axis=0) - truth > 2 * np.abs(found.mean(axis=0) - truth)).all()


def test_the_p_value_with_groups():
    def p_values(factor):
        for i in range(16):
            y, p, groups = calibration_tests.grouped(300, 20, factor, [3, i])
            yield vx.decompose(y, p, rule="rps", groups=groups, bootstrap=19, seed=i).p_value

    # 5 percent nominal: Binomial(16, 0.07) exceeds 4 once in two hundred times.
    assert sum(p <= 0.05 for p in p_values(1.0)) <= 4
    assert sum(p <= 0.05 for p in p_values(2.0)) >= 9
    y, p, groups = calibration_tests.grouped(300, 20, 1.0, [3, 0])
    assert vx.decompose(y, p, rule="log_score", groups=groups, bootstrap=5).p_value is None


def simulated(n, seed, distort=1.0):
    """Forecasts with the outcomes they promise, then sharpened (distort > 1) beyond what is true."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    p = np.exp(distort * z)
    return y, p / p.sum(axis=1, keepdims=True)


def test_zero_is_in_the_interval_unless_draws_refute_it():
    """Eight classes and 60 calibrated rows: the interval alone excluded zero in 12 % of samples."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.ones(8), 60)
        y = np.minimum((rng.random((60, 1)) > np.cumsum(p, axis=1)).sum(axis=1), 7)
        whole = vx.decompose(y, p, rule="brier", bootstrap=60, seed=seed).whole
        interval = whole.intervals["miscalibration"]
        assert interval.low == 0 or (whole.calibrated >= whole.miscalibration).mean() <= 0.025
        assert interval.high > 0


@pytest.mark.parametrize("rule", [vx.brier, vx.rps], ids=repr)
@pytest.mark.parametrize("n", [200, 600])
def test_draws_have_the_distribution_of_outcomes_that_are_drawn_row_by_row(rule, n):
    """By brute force: outcomes of whole rows from the forecasts, scored and fitted again and again."""
    y, p = simulated(n, 2)
    found = vx.decompose(y, p, rule=rule, bootstrap=400).whole.calibrated
    rng = np.random.default_rng(1)
    drawn = (rng.random((300, n, 1)) > np.cumsum(p, axis=1)).sum(axis=2)
    exact = np.array([vx.decompose(own, p, rule=rule).miscalibration for own in drawn])
    assert found.mean() == pytest.approx(exact.mean(), rel=0.06)
    assert found.std() == pytest.approx(exact.std(), rel=0.2)
    assert np.quantile(found, 0.95) == pytest.approx(np.quantile(exact, 0.95), rel=0.1)


def test_threads_change_no_refit(change):
    y, p = simulated(2000, 0)
    alone = vx.decompose(y, p, rule="brier", bootstrap=20)
    change(threads_from=1)
    assert vx.decompose(y, p, rule="brier", bootstrap=20).to_dict() == alone.to_dict()


@pytest.mark.slow
def test_the_p_value_of_calibrated_forecasts_is_uniform():
    p_values = np.array(
        [vx.decompose(*simulated(60, seed), rule="rps", bootstrap=19).p_value for seed in range(40)]
    )
    # Binomial(40, share) lies within these bounds with probability above 0.998.
    assert (p_values <= 0.05).sum() <= 7
    assert 10 <= (p_values <= 0.5).sum() <= 30
    assert vx.decompose(*simulated(500, 0, 2.5), rule="rps", bootstrap=39).p_value == 1 / 40


# ---- out, and refusals -------------------------------------------------------------------------


def test_text_and_dict():
    y, p = forecasts(80, 3, ties=False)
    result = vx.decompose(y, p, rule="rps", classes=["low", "mid", "high"], bootstrap=20, groups=y % 3 + 1)
    text = repr(result)
    assert text.splitlines()[0] == "verax decomposition of rps: 80 rows, 3 groups, 3 ordered classes"
    assert "y <= mid" in text
    assert "95% intervals for independent groups" in text
    assert "<td>rps</td>" in result._repr_html_()
    out = json.loads(json.dumps(result.to_dict()))
    assert out["whole"]["score"] == result.score
    assert out["parts"][1]["name"] == "<= mid"
    assert out["whole"]["p_value"] == result.p_value
    assert out["whole"]["corrected"] == result.corrected
    assert repr(result.parts[0]).startswith("<= low: score 0.")


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("pbs", r"penalty that looks at all classes at once; decompose brier instead"),
        ("pll", r"decompose log_score instead"),
        ("spherical", "no sum of scores of binary events"),
        ("zero_one", "no sum of scores of binary events"),
        ("sa_rps", "not proper"),
        ("abs_rps", "not proper"),
        ("log_score(clip=0.01)", "not proper"),
    ],
)
@pytest.mark.parametrize("k", [2, 3])
def test_rules_that_have_no_such_parts(rule, reason, k):
    y, p = forecasts(30, k)
    with pytest.raises(vx.errors.RuleError, match=reason):
        vx.decompose(y, p, rule=rule)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"bootstrap": -1}, "bootstrap"),
        ({"bootstrap": True}, "bootstrap"),
        ({"confidence": 1}, "confidence"),
        ({"seed": -1}, "seed"),
        ({"groups": np.zeros(30), "bootstrap": 5}, "groups"),
        ({"weights": -np.ones(30)}, "weights"),
        ({"classes": ["a", "b"]}, "classes"),
    ],
)
def test_refusals(options, argument):
    y, p = forecasts(30, 3)
    with pytest.raises(vx.InputError) as caught:
        vx.decompose(y, p, **{"rule": "brier", **options})
    assert caught.value.argument == argument


def test_refusals_of_rules_and_rows():
    y, p = forecasts(30, 3)
    with pytest.raises(vx.VeraxError, match="Did you mean 'brier'"):
        vx.decompose(y, p, rule="brayer")
    with pytest.raises(vx.InputError) as caught:
        vx.decompose(y, 2 * p, rule="brier")
    assert caught.value.argument == "p"
    with pytest.raises(vx.InputError) as caught:
        vx.decompose(np.array(["a", "b", "c"])[y], p, rule="rps")
    assert caught.value.argument == "y"


@needs_numba
@pytest.mark.parametrize(
    ("decimals", "rule"), [(12, "brier"), (1, "brier"), (12, "rps"), (12, "log_score"), (1, "ranked_log")]
)
def test_a_compiled_pass_gives_the_numbers_of_array_calls(decimals, rule, change):
    y, p = simulated(1100, 1)
    p = np.maximum(np.round(p, decimals), 0.05)
    p /= p.sum(axis=1, keepdims=True)
    found = []
    for compiled in (True, False):
        change(compiled_from=0, kernels=compiled)
        found.append(vx.decompose(y, p, rule=rule, bootstrap=30))
    for a, b in zip(*((each.whole, *each.parts) for each in found), strict=True):
        assert a.observed == pytest.approx(b.observed, abs=1e-12)
        assert a.calibrated == pytest.approx(b.calibrated, abs=1e-12)
        for name in ("bias", "variance", "plug_in", "noise"):
            assert getattr(a.accuracy, name) == pytest.approx(getattr(b.accuracy, name), rel=1e-9, abs=1e-14)


@needs_numba
def test_events_before_and_after_kernels_are_loaded_add_up(change):
    """Array calls answer until kernels are worth loading, which may be in the middle of the events."""
    y, p = simulated(1100, 1)
    change(compiled_from=0)
    compiled = vx.decompose(y, p, rule="brier", bootstrap=30).whole
    # One more row than the first event has.
    change(compiled_at_once=spend("draws in cells", 0) + sums._WORK * 1101)
    partly = vx.decompose(y, p, rule="brier", bootstrap=30).whole
    assert compiled.accuracy.variance == pytest.approx(partly.accuracy.variance, rel=1e-12, abs=0)


@needs_numba
@pytest.mark.parametrize("width", [1.0, 1e-2, 1e-7])
def test_every_forecast_finds_its_cell(width):
    """Cells that are as wide as the parts of the guide, narrower ones, and very narrow ones."""
    rng = np.random.default_rng(3)
    starts = np.unique(np.append(0.3 + 0.6 * width * rng.random(400), 1.0))
    values = np.concatenate([starts, np.nextafter(starts[1:], 0), rng.uniform(starts[0], 1, 30_000)])
    expected = np.searchsorted(starts, values, side="right") - 1
    assert np.array_equal(sums.cells_of(starts, values), expected)


@needs_numba
@pytest.mark.parametrize("ties", [False, True])
def test_bins_of_rows_that_the_pass_has_sorted_are_those_of_the_rows(ties, change):
    change(compiled_from=0)
    y, p = forecasts(3000, 3, ties=ties)
    handle = open_rows(y, p)
    model = handle.one_model()
    event = handle.summarise({"events": EventRecipe(model, False)})["events"].event(1, "b")
    assert event.walk is not None
    found, alone = event.bins, bins_of_rows(event.rows, None, None)
    for name in ("weight", "happened", "claimed", "squares", "least", "most"):
        np.testing.assert_array_equal(getattr(found, name), getattr(alone, name))
    # The pass keeps what it has found, and rows are as they were.
    np.testing.assert_array_equal(event.rows.given, p[:, 1])
    assert event.walk.size.sum() == len(y)
