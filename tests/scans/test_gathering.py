"""Rows added to tables in place give what merging the summaries of parts gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import verax as vx
from scattered import Scattered, problem
from verax import parse
from verax.analyses.calibration.recipes import EventRecipe
from verax.analyses.cards.evaluation import CardRecipe
from verax.analyses.classsums import ClassRecipe
from verax.analyses.samples import SampleRecipe
from verax.analyses.uncertainty_scores import doubt
from verax.analyses.worst_rows import WorstRecipe
from verax.engines import tables
from verax.engines.keyed import Keyed, KeyedSums, Run
from verax.engines.keys import EXACT, forecast_keys, loss_keys, rank_keys
from verax.engines.tally import RuleSums
from verax.inference.intervals import Resampling
from verax.inputs.handles import Collector
from verax.report.analysis import DecisionRecipe
from verax.report.survey import SurveyRecipe
from verax.wings.retain.curves import as_metrics
from verax.wings.retain.summaries import CurveRecipe, Measures

pytest.importorskip("numba")


@pytest.fixture(autouse=True)
def kernels_at_once(change, monkeypatch):
    change(compiled_from=0)
    # Sums are moved several times.
    change(settled_after=500)


def both_ways(recipe, handle, parts):
    """The summary of parts by a collector, and that of each part merged."""
    collector = Collector({"it": recipe})
    merged = None
    for rows in parts:
        part = handle.part(rows)
        collector.add(part)
        taken = recipe.take(handle.part(rows))
        merged = taken if merged is None else merged.merge(taken)
    return collector.summaries()["it"], merged


def same_runs(ours, theirs):
    np.testing.assert_array_equal(ours.keys, theirs.keys)
    np.testing.assert_allclose(ours.sums.high, theirs.sums.high, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(ours.least, theirs.least, rtol=0, atol=1e-15)
    np.testing.assert_allclose(ours.most, theirs.most, rtol=0, atol=1e-15)


PARTS = np.split(np.arange(2000), [700, 701])


@pytest.mark.parametrize(
    ("k", "metrics", "weighted", "grouped"),
    [
        (2, ["accuracy"], False, False),
        (2, ["accuracy"], True, True),
        (4, ["qwk", "ec", vx.rps], False, False),
        (4, ["qwk", "ec", vx.rps], True, False),
        (4, ["qwk", "ec", vx.rps], True, True),
        (4, [vx.brier, vx.rps], False, True),
        (4, [vx.brier, vx.rps], True, False),
    ],
)
def test_curves(k, metrics, weighted, grouped, change):
    # Most rows are added in place, those of the first part once the second is there.
    change(exact_up_to=700)
    rng, y, p = problem(2000, k, seed=k)
    # Outcomes of probability zero have infinite losses: those parts are no longer added in place.
    p[700] = np.eye(k)[(y[700] + 1) % k]
    weights = rng.integers(1, 3, 2000).astype(float) if weighted else None
    keys = (parse("brier"), parse("log_score"), parse("rps"), doubt("max_probability"))
    measures = Measures.of(as_metrics(metrics, "quadratic"), k)
    recipe = CurveRecipe("model", keys, measures, None, 5, 0)
    groups = rng.integers(0, 40, 2000) if grouped else None
    ours, theirs = both_ways(recipe, Scattered(y, p, weights=weights, groups=groups), PARTS)
    assert ours.rows is theirs.rows is None
    for name, found in ours.orders.items():
        assert len(ours.replicates[name]) == (5 if grouped else 0)
        drawn = zip(ours.replicates[name], theirs.replicates[name], strict=True)
        for one, other in [(found, theirs.orders[name]), *drawn]:
            assert (one.level, one.whole) == (other.level, other.whole)
            same_runs(one.bins.total, other.bins.total)
            same_runs(one.cells.total, other.cells.total)


@pytest.mark.parametrize("thresholds", [False, True])
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("kind", ["plain", "weights", "groups", "weights and groups"])
def test_events_in_bins_are_those_of_exact_values(k, thresholds, kind, change):
    rng, y, p = problem(2000, k, seed=k)
    weights = np.where(rng.random(2000) < 0.1, 0.0, rng.random(2000)) if "weights" in kind else None
    # The third part has a group that has no weight.
    groups = np.array([f"g{i}" for i in rng.integers(0, 40, 2000)]) if "groups" in kind else None
    if kind == "weights and groups":
        weights[1990:], groups[1990:] = 0.0, "none"
    p[:50] = np.eye(k)[y[:50]]
    p[50] *= 1 + 9e-7
    handle = Scattered(y, p, weights=weights, groups=groups)
    theirs, _ = both_ways(EventRecipe("model", thresholds), handle, PARTS)
    assert theirs.exact
    change(exact_up_to=0)
    ours, _ = both_ways(EventRecipe("model", thresholds), handle, PARTS)
    binned = theirs.forecasts.at(0)
    assert ours.forecasts.tables.keys() == binned.tables.keys()
    for i, own in ours.forecasts.tables.items():
        other = binned.tables[i].total
        # Exact values are at most 1.
        same_runs(replace(own.total, most=np.minimum(own.total.most, 1.0)), other)
    np.testing.assert_allclose(ours.totals.high[:-1], theirs.totals.high[:-1], rtol=1e-12)
    # The event of the most likely class is not scored.
    np.testing.assert_allclose(ours.totals.high[-1, :3], theirs.totals.high[-1, :3], rtol=1e-12)
    np.testing.assert_allclose(ours.weight.high, theirs.weight.high, rtol=1e-13)
    assert (ours.whole, ours.groups is None) == (theirs.whole, theirs.groups is None)
    if ours.groups is not None:
        assert ours.labels.tolist() == theirs.labels.tolist()
        np.testing.assert_allclose(ours.groups, theirs.groups, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("in_tables", [False, True])
def test_events_without_the_most_likely_class(in_tables, change):
    """The other events are the same, and merge with sums that have it."""
    if in_tables:
        change(exact_up_to=0)
    rng, y, p = problem(2000, 4, seed=3)
    handle = Scattered(y, p, groups=rng.integers(0, 9, 2000))
    every, fewer = EventRecipe("model", False), EventRecipe("model", False, with_top=False)
    found = [part for recipe in (every, fewer) for part in both_ways(recipe, handle, PARTS)]
    assert repr(every) == repr(fewer)
    for sums in found[1:]:
        assert sums.forecasts.level == found[0].forecasts.level == (0 if in_tables else EXACT)
        for i in range(4):
            same_runs(sums.forecasts.tables[i].total, found[0].forecasts.tables[i].total)
        np.testing.assert_allclose(sums.totals.high[:4], found[0].totals.high[:4], rtol=1e-12)
        np.testing.assert_allclose(sums.groups[:, :5], found[0].groups[:, :5], atol=1e-12)
        assert sums.merge(found[0]).groups.shape == found[0].groups.shape
    assert [4 in sums.forecasts.tables for sums in found] == [True, True, False, False]


@pytest.mark.parametrize("layout", [forecast_keys, rank_keys, loss_keys])
def test_joined_bins_are_those_of_the_values(layout):
    rng = np.random.default_rng(0)
    q = np.concatenate([rng.random(3000), rng.beta(0.1, 3, 3000), [0.0, 0.5, 1.0]])
    columns = [None, rng.random(len(q))]
    runs = {level: Run.of_values(q, layout, level, columns) for level in (EXACT, 0, 3)}
    same_runs(runs[EXACT], Run.of_values(q[::-1], layout, EXACT, [None, columns[1][::-1]]))
    sums = KeyedSums(layout, EXACT, {7: Keyed((runs[EXACT],))})
    same_runs(sums.at(0).tables[7].total, runs[0])
    same_runs(sums.at(0).at(1).at(3).tables[7].total, runs[3])
    assert len(runs[EXACT]) > len(runs[0]) > 2 * len(runs[3])
    # As many bins are joined as is needed, once runs are added up.
    twice = sums.merge(sums)
    for most, level in ((len(runs[EXACT]), EXACT), (len(runs[0]), 0), (len(runs[3]), 3)):
        fitting = twice.fitting(lambda _, sizes, most=most: sizes[7] > most, range(11))
        assert (fitting.level, len(fitting.tables[7])) == (level, len(runs[level]))
        np.testing.assert_allclose(fitting.tables[7].total.sums.high, 2 * runs[level].sums.high, rtol=1e-13)


RULES = (vx.brier, vx.log_score, vx.rps)
RECIPES = [
    ClassRecipe("model", RULES),
    WorstRecipe("model", RULES, 20),
    SurveyRecipe(),
    SampleRecipe(150),
    DecisionRecipe("model", "quadratic"),
]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: type(recipe).__name__)
def test_what_kernels_and_earlier_parts_leave_out_does_not_matter(recipe, change, monkeypatch):
    change(hashes_kept=100)
    _, y, p = problem(2000, 4, seed=3, decimals=2)
    y[300:310], p[300:310] = y[0], p[0]
    handle = Scattered(y, p, ids=np.arange(len(y)) // 2)
    parts = np.split(np.arange(len(y)), range(200, len(y), 200))
    ours, _ = both_ways(recipe, handle, parts)
    # Without kernels, and each part on its own.
    change(compiled_from=2**60)
    _, theirs = both_ways(recipe, handle, parts)
    alike(ours, theirs)


def alike(ours, theirs):
    for name, value in vars(ours).items():
        other = getattr(theirs, name)
        if hasattr(value, "__dict__"):
            alike(value, other)
        elif name == "low":
            continue
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
            np.testing.assert_allclose(value, other, rtol=1e-12, atol=1e-13)
        else:
            np.testing.assert_array_equal(value, other)


@pytest.mark.parametrize("spread", [1.0, 1e-7])
@pytest.mark.parametrize("zeros", [0, 3])
def test_cards_from_losses_of_other_recipes(spread, zeros, monkeypatch):
    _, y, p = problem(2000, 4, seed=5)
    p = 0.25 + spread * (p - 0.25)
    p[:zeros] = np.eye(4)[(y[:zeros] + 1) % 4]
    handle, plan = Scattered(y, p), Resampling()
    card = CardRecipe("model", RULES, True, "quadratic", plan)
    both = Collector({"classes": ClassRecipe("model", RULES), "card": card})
    calls = []
    taken = RuleSums.update
    monkeypatch.setattr(RuleSums, "update", lambda self, rows: calls.append(rows) or taken(self, rows))
    for rows in PARTS:
        both.add(handle.part(rows))
    # Losses that hardly differ, and outcomes of probability zero, take a pass of their own.
    assert len(calls) == (len(PARTS) if spread < 1 else (zeros > 0) + 1)
    found, alone = both.summaries()["card"], vx.evaluate(y, p, ordered=True, rules=RULES)
    # Losses that hardly differ have less exact differences.
    for name, tolerance in (("mean", 1e-12), ("m2", 1e-12 if spread == 1 else 1e-9)):
        ours, theirs = (getattr(each.tally.moments, name) for each in (found, alone))
        np.testing.assert_allclose(ours, theirs, rtol=tolerance)
    np.testing.assert_array_equal(found.confusion, alone.confusion)
    assert (found.n_rows, found.tally.n_positive, found.tally.counts.n_zero) == (2000, 2000, zeros)
    one = Collector({"classes": ClassRecipe("model", RULES), "card": card})
    one.add(handle.part(np.arange(2000)))
    assert one.summaries()["card"].tally.spans == ((0, 2000),)


def test_counts_beyond_their_type_go_on(change):
    change(counted_up_to=5)
    table, kinds = tables.RankTable(0, 2), np.array([0, 1, 1], np.uint8)
    for scale in (1.0, 1e-9, 1e6):
        for _ in range(4):
            table.add(scale * np.array([1.0, 2.0, -3.0]), (), kinds)
    found = table.histogram([], 2)
    assert found.bins.total.sums.high[:, 0].sum() == 36
    assert found.cells.total.sums.high[:, 0].tolist() == [4.0] * 9


def test_results_are_those_in_memory():
    _, y, p = problem(3000, 4, seed=1)
    handle = Scattered(y, p, n_parts=7)
    curve = vx.retention(handle, rule="rps", metric="qwk")
    exact = vx.retention(y, p, rule="rps", metric="qwk")
    assert curve.to_dict() == exact.to_dict()
    found, memory = vx.decompose(handle, rule="rps"), vx.decompose(y, p, rule="rps")
    assert found.score == pytest.approx(memory.score, rel=1e-12)
    assert 0 <= memory.miscalibration - found.miscalibration + 1e-12 <= found.whole.within + 2e-12
