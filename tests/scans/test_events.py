"""Calibration of predictions that are not in memory: within its bounds of that of the rows."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import verax as vx
from scanned import alike
from scannedlists import OWN, in_memory
from scattered import Scattered, problem
from verax.analyses.calibration.claims import read_class_biases, read_overconfidence
from verax.analyses.calibration.recipes import EventRecipe
from verax.inputs.memory import InMemory


@pytest.mark.parametrize("rule", ["brier", "rps", "log_score", "ranked_log"])
@pytest.mark.parametrize("kind", ["plain", "weights", "certain"])
def test_components_are_those_of_the_rows(kind, rule):
    rng, y, p = problem(200, 3, 0)
    if kind == "certain":
        p[:4] = np.eye(p.shape[1])[y[:4]]
    weights = rng.integers(0, 3, len(y)) if kind == "weights" else None
    exact = vx.decompose(y, p, rule=rule, weights=weights)
    found = vx.decompose(Scattered(y, p, weights=weights), rule=rule)
    alike(found.to_dict(), exact.to_dict())
    assert repr(found) == repr(exact)


@pytest.fixture
def binned(change):
    """Rows are counted in bins, as where there are very many distinct forecasts."""
    change(exact_up_to=0)


@pytest.mark.long
@pytest.mark.parametrize("rule", ["brier", "rps", "log_score", "ranked_log"])
@pytest.mark.parametrize("kind", ["plain", "few values", "weights", "certain"])
def test_components_of_bins_lie_within_their_bounds_of_those_of_the_rows(kind, rule, binned):
    for seed in range(3):
        size = int(60 * 4**seed)
        rng, y, p = problem(size, 2 + seed, seed, decimals=1 if kind == "few values" else None)
        if kind == "certain":
            p[:4] = np.eye(p.shape[1])[y[:4]]
        weights = rng.integers(0, 3, len(y)) + 0.5 * (seed == 1) if kind == "weights" else None
        exact = vx.decompose(y, p, rule=rule, weights=weights)
        found = vx.decompose(Scattered(y, p, weights=weights, seed=seed), rule=rule)
        for ours, true in zip([found.whole, *found.parts], [exact.whole, *exact.parts], strict=True):
            assert ours.name == true.name
            np.testing.assert_allclose(ours.observed[[0, 3]], true.observed[[0, 3]], rtol=1e-11)
            if not np.isfinite(true.score):
                continue
            gap = true.observed[1:3] - ours.observed[1:3]
            assert (gap >= -1e-12).all(), (kind, rule, gap)
            assert (gap <= ours.within + 1e-12).all(), (kind, rule, gap, ours.within)
            assert kind != "few values" or ours.within < 1e-12
            assert ours.to_dict()["within"] == ours.within
        assert ("From bins" in repr(found)) == (found.within > 0)


def test_bounds_of_many_rows_are_small_and_the_test_of_calibration_is_that_of_the_rows(binned):
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1.0, 1.0, 1.0], 30_000)
    y = (rng.random(len(p))[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    found = vx.decompose(Scattered(y, p), rule="brier", bootstrap=40)
    assert found.whole.within < 1e-3
    assert found.p_value > 0.02
    some = slice(0, 4000)
    ours = vx.decompose(Scattered(y[some], p[some]), rule="brier", bootstrap=100)
    true = vx.decompose(y[some], p[some], rule="brier", bootstrap=100)
    assert ours.whole.expected_miscalibration == pytest.approx(true.whole.expected_miscalibration, rel=0.1)
    bent = np.sqrt(p) / np.sqrt(p).sum(axis=1, keepdims=True)
    assert vx.decompose(Scattered(y[some], bent[some]), rule="brier", bootstrap=100).p_value < 0.02


def test_compiled_events_are_those_of_array_calls(change, binned):
    pytest.importorskip("numba")
    _, y, p = problem(2000, 3, 8)
    p[:3] = np.eye(3)
    found = []
    for compiled in (False, True):
        change(compiled_from=0, kernels=compiled)
        found.append(EventRecipe("model", False).take(Scattered(y, p).part(np.arange(2000))))
    ours, theirs = found
    assert ours.forecasts.level == 0
    for i, own in ours.forecasts.tables.items():
        other = theirs.forecasts.tables[i].total
        np.testing.assert_array_equal(own.total.keys, other.keys)
        np.testing.assert_allclose(own.total.sums.high, other.sums.high, rtol=1e-13)
        np.testing.assert_array_equal(own.total.least, other.least)
    np.testing.assert_allclose(ours.totals.high[:-1], theirs.totals.high[:-1], rtol=1e-12)
    np.testing.assert_allclose(ours.totals.high[-1, :3], theirs.totals.high[-1, :3], rtol=1e-12)


@pytest.mark.parametrize("ordered", [False, True])
def test_reliability_curves_of_few_forecasts_are_exact(ordered):
    _, y, p = problem(3000, 3, 5, decimals=1)
    exact = vx.reliability(y, p, ordered=ordered, resamples=50)
    found = vx.reliability(Scattered(y, p), ordered=ordered, resamples=50)
    assert [curve.name for curve in found] == [curve.name for curve in exact]
    for ours, true in zip(found, exact, strict=True):
        for name in ("forecast", "frequency", "weight", "histogram"):
            np.testing.assert_allclose(getattr(ours, name), getattr(true, name), atol=1e-9)
        assert np.abs(ours.band - true.band).mean() < 0.02


@pytest.mark.parametrize("kind", ["plain", "weights", "groups"])
@pytest.mark.parametrize("thresholds", [False, True])
def test_claims_on_average_are_those_of_the_rows(kind, thresholds):
    rng, y, p = problem(400, 3, 7)
    weights = rng.random(400) if kind == "weights" else None
    groups = rng.integers(0, 12, 400) if kind == "groups" else None
    own = {"weights": weights, "groups": groups}
    handles = Scattered(y, p, **own), InMemory({"model": vx.Forecasts(y, p, **own)})
    ours, true = (h.summarise({"events": EventRecipe("model", thresholds)})["events"] for h in handles)
    assert read_overconfidence(ours).to_dict() == pytest.approx(read_overconfidence(true).to_dict(), rel=1e-9)
    biases = (read_class_biases(sums, 3, thresholds=thresholds) for sums in (ours, true))
    for one, other in zip(*biases, strict=True):
        assert one.to_dict() == pytest.approx(other.to_dict(), rel=1e-9)
    w, top = np.ones(400) if weights is None else weights, p.max(axis=1)
    found = read_overconfidence(true)
    assert found.claimed == pytest.approx(np.average(top, weights=w), rel=1e-12)
    assert found.right == pytest.approx(np.average(p.argmax(axis=1) == y, weights=w), rel=1e-12)
    for bias in read_class_biases(true, 3, thresholds=thresholds):
        i = bias.position
        given, hit = (np.cumsum(p, axis=1)[:, i], y <= i) if thresholds else (p[:, i], y == i)
        assert bias.gap == pytest.approx(np.average(given - hit, weights=w), rel=1e-9)
        if kind != "groups":
            # Each side of the outcome counts as often as was claimed.
            pairs = (given, hit), (1 - given, ~hit)
            sides = [np.average(a, weights=w) / np.average(b, weights=w) for a, b in pairs]
            observed = (w**2 * (given - hit) ** 2 * np.where(hit, *sides)).sum()
            error = np.sqrt(max((w**2 * given * (1 - given)).sum(), observed)) / w.sum()
            normal = math.erfc(abs(bias.gap) / error / math.sqrt(2))
            assert bias.p_value == pytest.approx(normal, abs=0.05)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("kind", ["confidence", "classwise"])
def test_calibration_errors_are_those_of_the_rows(kind, norm):
    rng, y, p = problem(500, 4, 3)
    weights = rng.random(500)
    options = {"kind": kind, "norm": norm, "debias": norm == "l2"}
    found = vx.ece(Scattered(y, p, weights=weights), **options)
    assert found == pytest.approx(vx.ece(y, p, weights=weights, **options), rel=1e-12)
    with pytest.raises(vx.InputError, match="order of the rows"):
        vx.ece(Scattered(y, p), binning="mass")


def test_event_sums_fit_into_memory_and_do_not_depend_on_the_parts(change):
    change(bins_up_to=400, exact_up_to=400)
    _, y, p = problem(3000, 3, 2)
    exact = vx.decompose(y, p, rule="brier")
    found = [vx.decompose(Scattered(y, p, n_parts=n, seed=n), rule="brier") for n in (2, 12)]
    np.testing.assert_allclose(found[0].whole.observed, found[1].whole.observed, atol=1e-13)
    assert found[0].whole.within == pytest.approx(found[1].whole.within, abs=1e-13)
    gap = exact.miscalibration - found[0].miscalibration
    assert 0 <= gap <= found[0].whole.within


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        *(("brier", kind) for kind in ("rows", "weights", "groups", "both", "counts")),
        *(("rps", kind) for kind in ("rows", "both")),
        *((vx.rules.Log(base=2), kind) for kind in ("groups", "counts")),
    ],
)
def test_components_have_the_intervals_of_those_of_the_rows(rule, kind):
    rng, y, p = problem(1500, 3, 4)
    weights = rng.integers(0, 4, len(y)) if kind in ("weights", "both", "counts") else None
    groups = rng.integers(0, 40, len(y)) if kind in ("groups", "both") else None
    asked = {"rule": rule, "bootstrap": 60}
    asked |= {"weights_are": "counts"} if kind == "counts" else {}
    found = vx.decompose(Scattered(y, p, weights=weights, groups=groups), **asked)
    exact = vx.decompose(y, p, weights=weights, groups=groups, **asked)
    agree(found, exact)
    assert found.n_rows == exact.n_rows
    assert (found.p_value is None) == (exact.p_value is None)
    assert found.p_value in (None, pytest.approx(exact.p_value, abs=0.05))


def agree(found, exact, near=0.12):
    """Hold intervals from histograms to those of the rows: scores are sums, the rest has draws of its own.

    Where classes are about equally frequent, chance alone makes the interval of the uncertainty, and events
    that are taken to rise and fall together widen it.
    """
    for ours, true in zip([found.whole, *found.parts], [exact.whole, *exact.parts], strict=True):
        assert list(ours.intervals["score"]) == pytest.approx(list(true.intervals["score"]), rel=1e-9)
        for name, interval in true.intervals.items():
            off = near * (interval.high - interval.low) + ours.within
            assert ours.corrected[name] == pytest.approx(true.corrected[name], abs=off)
            off *= 4 if name == "uncertainty" else 1
            assert list(ours.intervals[name]) == pytest.approx(list(interval), abs=off), name


@pytest.mark.parametrize("grouped", [False, True])
def test_components_of_lists_have_the_intervals_of_those_of_the_lists(grouped):
    y, models = in_memory()
    own = OWN if grouped else {}
    asked = {"rule": "brier", "bootstrap": 60, "seed": 4}
    found = vx.decompose(Scattered(y, models["a"], **own), **asked)
    exact = vx.decompose(y, models["a"], **asked, **own)
    agree(found, exact, near=0.2)
    assert found.p_value == pytest.approx(exact.p_value, abs=0.25)


def test_many_groups_are_told_apart_by_hashes(change):
    rng, y, p = problem(2000, 3, 4)
    groups = rng.integers(0, 400, len(y))
    asked = {"rule": "brier", "bootstrap": 60}
    exact = vx.decompose(y, p, groups=groups, **asked)
    change(group_slots=64)
    found = [vx.decompose(Scattered(y, p, groups=groups, n_parts=n, seed=n), **asked) for n in (2, 9)]
    agree(found[0], exact)
    np.testing.assert_allclose(*(each.whole.calibrated for each in found), rtol=0, atol=1e-12)
    with pytest.raises(vx.InputError, match="at least two groups"):
        vx.decompose(Scattered(y, p, groups=groups * 0), **asked)


@pytest.mark.parametrize("units", ["rows", "weights", "groups", "both"])
@pytest.mark.parametrize(("rule", "k", "n"), [("brier", 3, 150), ("rps", 4, 900), ("log_score", 3, 400)])
def test_draws_are_the_same_wherever_rows_are(rule, k, n, units, tmp_path):
    """P-values exactly, estimates and intervals to rounding: in memory, in parts, saved and merged."""
    rng, y, p = problem(n, k, 3)
    given = {"weights": rng.exponential(size=n), "groups": rng.integers(0, 40, n)}
    own = {} if units == "rows" else given if units == "both" else {units: given[units]}
    asked = {"rule": rule, "bootstrap": 99}
    exact = vx.decompose(y, p, **asked, **own)
    table = pa.table({"label": y, **{f"p_{i}": p[:, i] for i in range(k)}, **given})
    shards = [table.slice(0, n // 3), table.slice(n // 3)]
    columns = {"target": "label", "probs": "p_*", **{name: name for name in own}}
    for found in (
        vx.decompose(Scattered(y, p, n_parts=6, **own), **asked),
        vx.decompose(vx.scan(table, **columns), **asked),
    ):
        assert (found.p_value, exact.p_value is None) == (
            exact.p_value,
            rule == "log_score" and "groups" in own,
        )
        for ours, theirs in zip((found.whole, *found.parts), (exact.whole, *exact.parts), strict=True):
            assert ours.calibrated == pytest.approx(theirs.calibrated, abs=1e-12)
            assert ours.corrected == pytest.approx(theirs.corrected, abs=1e-12)
            for name, interval in theirs.intervals.items():
                assert list(ours.intervals[name]) == pytest.approx(list(interval), abs=1e-12)
    for i, shard in enumerate(shards):
        kept = vx.scan(shard, **columns, record="a")
        vx.decompose(kept, **asked)
        kept.save(tmp_path / f"{i}.verax")
    merged = vx.decompose(vx.scan([tmp_path / "0.verax", tmp_path / "1.verax"]), **asked)
    assert merged.intervals is None
    if "groups" in own:
        # The signs of groups take another pass over the rows.
        assert merged.p_value is None
    else:
        assert merged.p_value == exact.p_value
        assert merged.corrected == pytest.approx(exact.corrected, abs=1e-12)


def test_a_p_value_below_all_draws_is_a_bound():
    rng = np.random.default_rng(0)
    q = rng.random(2000)
    wrong = vx.decompose(rng.random(2000) < q, q**3, bootstrap=None)
    assert (wrong.p_value, wrong.whole.p_is_bound) == (1 / 1001, True)
    assert "p <= 0.001 from 1,000 draws." in repr(wrong)
    assert wrong.to_dict()["whole"]["p_is_bound"]
    right = vx.decompose(rng.random(2000) < q, q, bootstrap=50)
    assert not right.whole.p_is_bound
    assert f"p = {right.p_value:.2g} from 50 draws." in repr(right)


def test_a_curve_has_the_p_value_of_its_part():
    _, y, p = problem(500, 3, 6)
    for own in ({}, {"groups": np.arange(500) % 50}):
        parts = vx.decompose(y, p, rule="brier", bootstrap=60, seed=2, **own).parts
        curves = vx.reliability(y, p, resamples=60, seed=2, **own)
        assert [curve.components.p_value for curve in curves] == [part.p_value for part in parts]
        # Of two classes only one has a curve.
        y2, p2 = np.minimum(y, 1), 1 - p[:, 0]
        parts = vx.decompose(y2, p2, rule="brier", bootstrap=60, seed=2, **own).parts
        (curve,) = vx.reliability(y2, p2, resamples=60, seed=2, **own)
        assert curve.components.p_value == parts[1].p_value


def test_rows_that_are_alike_count_in_the_sample_by_their_number():
    """Copies of rows, weights that count them, and weights of another scale draw the same outcomes."""
    _, y, p = problem(60, 3, 7)
    times = np.arange(60) % 3 + 1
    rows = np.repeat(np.arange(60), times)
    asked = {"rule": "brier", "bootstrap": 99}
    repeated = vx.decompose(y[rows], p[rows], **asked)
    counted = vx.decompose(y, p, weights=times, weights_are="counts", **asked)
    assert counted.p_value == repeated.p_value
    assert counted.whole.calibrated == pytest.approx(repeated.whole.calibrated, abs=1e-12)
    even = [vx.decompose(y, p, weights=np.full(60, w), **asked).p_value for w in (0.1, 7.0)]
    assert even == [vx.decompose(y, p, **asked).p_value] * 2
