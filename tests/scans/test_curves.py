"""Curves of predictions that are not in memory: those of the rows, or near them where there are many."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from scattered import Scattered, problem
from verax.analyses.sampled import poisson_copies
from verax.engines import histograms, keyed, keys
from verax.errors import InputError
from verax.inputs.groups import Groups
from verax.scans.saved import merge_saved
from verax.scores.metrics import METRICS as REGISTERED

METRICS = ["qwk", "kappa", "accuracy", "macro_f1", "balanced_accuracy", "macro_mae", "ec", vx.log_score]
METRICS += ["macro_ppv"]
RATES = [name for name, metric in REGISTERED.items() if metric.for_two]


@pytest.fixture
def binned(change):
    """Count rows in bins, however few they are."""
    change(exact_up_to=0)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["plain", "weights", "groups", "costs"])
def test_curves_are_those_of_the_rows(kind):
    rng, y, p = problem(700, 3, 5, decimals=1 if kind == "plain" else None)
    p[:2] = np.eye(3)[:2]
    n = len(y)
    columns = {"weights": rng.exponential(size=n), "groups": np.array(["a", "b", "c"])[rng.integers(0, 3, n)]}
    columns = {name: column for name, column in columns.items() if name == kind}
    shared = {"metric": METRICS, "removed": [0, 0.03, 0.1, 0.5, 0.9], "bootstrap": 20}
    shared |= {"decision_costs": "linear"} if kind == "costs" else {}
    for curves, order in (
        (vx.retention, {"rule": ["brier", "log_score"]}),
        (vx.selective, {"by": ["entropy", "max_probability"]}),
    ):
        exact = curves(y, p, **order, **shared, **columns)
        for n_parts in (2, 9):
            found = curves(Scattered(y, p, n_parts=n_parts, seed=n_parts, **columns), **order, **shared)
            assert found.to_dict() == exact.to_dict()


def test_saved_rows_merge_to_the_curves_of_all(tmp_path, change):
    _, y, p = problem(300, 3, 1)
    kinds, halves = [], (slice(0, 150), slice(150, 300))
    for most in (2**20, 200):
        change(exact_up_to=most)
        for i, rows in enumerate(halves):
            shard = vx.scan(Scattered(y[rows], p[rows]), record="m")
            vx.evaluate(shard)
            vx.retention(shard, rule="rps", bootstrap=10)
            shard.save(tmp_path / f"{i}.verax")
        paths = [tmp_path / f"{i}.verax" for i in range(2)]
        one, other = (
            vx.retention(vx.scan(list(each)), rule="rps", bootstrap=10) for each in (paths, paths[::-1])
        )
        merge_saved(paths, vx.evaluate(vx.scan(paths)), tmp_path / "all.verax")
        together = vx.retention(vx.scan(tmp_path / "all.verax"), rule="rps", bootstrap=10)
        exact = vx.retention(y, p, rule="rps")
        assert one.to_dict() == other.to_dict() == together.to_dict()
        kinds.append(one.within is None)
        off = 1e-12 if one.within is None else one.within + 1e-12
        assert (np.abs(one.values - exact.values) <= off).all()
    assert kinds == [True, False]


@pytest.mark.usefixtures("binned")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["plain", "few values", "weights", "whole weights", "costs"])
def test_curves_lie_within_their_bounds_of_those_of_the_rows(kind, seed):
    rng, y, p = problem(int(60 * 2.5**seed), 2 + seed, seed, decimals=1 if kind == "few values" else None)
    p[:2] = np.eye(p.shape[1])[:2]
    weights = {"weights": rng.exponential(size=len(y)), "whole weights": rng.integers(0, 3, len(y))}.get(kind)
    rates = RATES if p.shape[1] == 2 else []
    shared = {"metric": [*METRICS, *rates], "removed": [0, 0.03, 0.1, 0.5, 0.9]}
    shared |= {"decision_costs": "linear"} if kind == "costs" else {}
    handle = Scattered(y, p, weights=weights, seed=seed)
    rules, doubts = ["brier", "log_score", "rps"], ["max_probability", "entropy"]
    for curves, order in ((vx.retention, {"rule": rules}), (vx.selective, {"by": doubts})):
        exact, found = curves(y, p, weights=weights, **order, **shared), curves(handle, **order, **shared)
        assert list(exact) == list(found)
        for key, curve in found.items():
            ours, true, within = curve.values, exact[key].values, curve.within
            with np.errstate(invalid="ignore"):
                same = (ours == true) | (np.isnan(ours) & np.isnan(true)) | (within == np.inf)
                assert (same | (np.abs(ours - true) <= within + 1e-12)).all(), (key, ours, true, within)
            if kind == "few values":
                assert (within[np.isfinite(ours)] == 0).all()
            areas = curve.area, exact[key].area
            assert not np.isfinite(areas).all() or abs(areas[0] - areas[1]) <= curve.area_within + 1e-12
            assert curve.to_dict()["within"] == within.tolist()
            assert "from a histogram: within" in repr(curve)


@pytest.mark.usefixtures("binned")
def test_bounds_are_no_wider_than_the_losses_of_a_bin():
    losses = 0.18 + 1e-6 * np.random.default_rng(0).random(400)
    p = np.sqrt(losses / 2)
    handle = Scattered(np.zeros(400, int), np.stack([1 - p, p], axis=1))
    found = vx.retention(handle, rule="brier", metric=vx.brier)
    assert 0 < found.within.max() < 1e-6


@pytest.mark.usefixtures("binned")
def test_confident_forecasts_are_told_apart():
    p = 10 ** np.random.default_rng(0).uniform(-5.5, -4, 400)
    y, p = np.zeros(400, int), np.stack([1 - p, p], axis=1)
    asked = {"by": "max_probability", "metric": vx.log_score, "removed": [0.03, 0.1, 0.5]}
    found, exact = vx.selective(Scattered(y, p), **asked), vx.selective(y, p, **asked)
    assert found.values == pytest.approx(exact.values, rel=0.01)


@pytest.mark.usefixtures("binned")
def test_bounds_of_many_rows_are_small_and_intervals_those_of_the_rows():
    _, y, p = problem(30_000, 4, 0)
    shared = {"metric": ["qwk", "accuracy", vx.brier], "bootstrap": 100}
    exact, found = (
        vx.retention(y, p, rule="brier", **shared),
        vx.retention(Scattered(y, p), rule="brier", **shared),
    )
    for key, curve in found.items():
        assert curve.within.max() < 1e-3
        ours, true = np.ptp(curve.band, axis=0), np.ptp(exact[key].band, axis=0)
        assert np.abs(ours / true - 1).max() < 0.5
        assert abs(np.mean(curve.interval) - np.mean(exact[key].interval)) < 0.2 * np.ptp(curve.interval)
    both = vx.retention(Scattered(y[:500], p[:500]), rule=["brier", "log_score"], bootstrap=10)
    with pytest.raises(InputError, match="same order"):
        both.difference("brier", "log_score")


@pytest.mark.usefixtures("binned")
@pytest.mark.parametrize("grouped", [False, True])
def test_replicates_do_not_depend_on_how_rows_are_divided(grouped):
    rng, y, p = problem(600, 3, 1)
    groups = np.array(["a", "b", "c", "d", "e", "f"])[rng.integers(0, 6, 600)] if grouped else None
    found = [
        vx.retention(
            Scattered(y, p, groups=groups, n_parts=n, seed=n), rule="rps", metric="qwk", bootstrap=15
        )
        for n in (2, 9)
    ]
    np.testing.assert_allclose(found[0].areas, found[1].areas, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[0].values, found[1].values, rtol=0, atol=1e-12)
    assert np.ptp(found[0].interval) > 0.01


def test_groups_are_drawn_by_name():
    groups = Groups.of(np.array([f"g{i}" for i in range(20_000)]), 20_000)
    one, two = poisson_copies(groups, 2, seed=3)
    assert abs(one.mean() - 1) < 0.03
    assert abs(one.var() - 1) < 0.05
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.03
    few = Groups.of(np.array(["g7", "g3", "g7"]), 3)
    np.testing.assert_array_equal(next(poisson_copies(few, 1, seed=3)), one[[7, 3, 7]])


@pytest.mark.usefixtures("binned")
def test_histograms_fit_into_memory_and_do_not_depend_on_the_parts(change):
    change(bins_up_to=150)
    _, y, p = problem(4000, 4, 2)
    shared = {"rule": "rps", "metric": ["qwk", "accuracy"]}
    exact = vx.retention(y, p, **shared)
    found = [vx.retention(Scattered(y, p, n_parts=n, seed=n), **shared) for n in (2, 17)]
    for key, curve in found[0].items():
        np.testing.assert_allclose(curve.values, found[1][key].values, rtol=0, atol=1e-12)
        assert (np.abs(curve.values - exact[key].values) <= curve.within + 1e-12).all()
    assert found[0]["rps", "qwk"].within.max() > 1e-4


def test_what_needs_all_rows_is_refused(change):
    _, y, p = problem(50, 3, 0)
    handle = Scattered(y, p)
    for options, said in (
        ({"metric": lambda y, p: 0.0}, "needs all rows at once"),
        ({"weights": np.ones(50)}, "must not be given beside"),
    ):
        with pytest.raises(InputError, match=said):
            vx.retention(handle, rule="brier", **options)
    change(exact_up_to=49)
    for options, said in (
        ({"ties": "order"}, "their order is not kept"),
        ({"metric": "ec", "cost_scale": "naive"}, "no known bound"),
    ):
        with pytest.raises(InputError, match=said):
            vx.retention(handle, rule="brier", **options)


@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_histograms_are_those_of_array_calls(weighted, change):
    pytest.importorskip("numba")
    rng = np.random.default_rng(0)
    ranks = np.concatenate([rng.exponential(size=3000), [0.0, -0.0, np.inf, 1e30, -2.5, 1e-14]])
    n = len(ranks)
    values = [rng.random(n), np.where(ranks > 3, np.inf, ranks)]
    weights = rng.integers(0, 3, n).astype(float) if weighted else None
    chances = np.concatenate([rng.random(n), [0.0, 0.5, 1.0, 1 + 1e-9]])
    found = []
    for compiled in (False, True):
        change(compiled_from=0, kernels=compiled)
        histogram = histograms.Histogram.of(ranks, values, weights, rng.integers(0, 1, n), 1)
        found.append((histogram.bins.total, histogram.cells.total, keys.forecast_keys(chances, 0)))
    for ours, theirs in zip(*found, strict=True):
        if not isinstance(ours, keyed.Run):
            np.testing.assert_array_equal(ours, theirs)
            continue
        np.testing.assert_array_equal(ours.keys, theirs.keys)
        np.testing.assert_allclose(ours.sums.high, theirs.sums.high, rtol=1e-14)
        np.testing.assert_array_equal(ours.least, theirs.least)
        np.testing.assert_array_equal(ours.most, theirs.most)


def test_compiled_runs_merge_to_the_same_sums(change):
    pytest.importorskip("numba")
    rng = np.random.default_rng(0)
    runs = [
        keyed.Run.of(rng.integers(0, 500, 4000), [None, rng.random(4000)], [rng.random(4000)])
        for _ in range(6)
    ]
    found = {}
    for compiled in (False, True):
        change(compiled_from=0, kernels=compiled)
        found[compiled] = keyed.Run.merged(runs)
    for name in ("keys", "least", "most"):
        np.testing.assert_array_equal(getattr(found[True], name), getattr(found[False], name))
    np.testing.assert_array_equal(found[True].sums.high, found[False].sums.high)
