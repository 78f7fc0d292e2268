"""Whether confidences of top lists are right: held to full distributions, brute force and scikit-learn."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.isotonic import IsotonicRegression

import verax as vx
from verax.analyses.calibration.claims import read_claims
from verax.analyses.calibration.recipes import ListEventRecipe
from verax.analyses.calibration.summary import summarize
from verax.inputs.memory import InMemory

M = 5


def enumerated(n=40, k=2, seed=0, sharpened=1.0):
    """Every outcome of every row, with its probability as weight: what a sample of any size is a draw of."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(M, 0.6), n)
    stated = p**sharpened / (p**sharpened).sum(axis=1, keepdims=True)
    y, w = np.tile(np.arange(M), n), p.reshape(-1)
    lists = vx.TopLists.from_probabilities(np.repeat(stated, M, axis=0), k)
    return y, w, lists


def ragged(n=300, seed=0):
    """Lists of 0 to 4 classes in any order, some of them invalid, and outcomes."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        k = rng.integers(0, M)
        t = rng.dirichlet(np.full(k + 1, 0.7))[:k]
        rows.append(dict(zip(rng.permutation(M)[:k].tolist(), t.tolist(), strict=True)))
    return rng.integers(0, M, n), vx.TopLists.from_dicts(rows, n_classes=M)


@pytest.mark.parametrize("k", [1, 2, M])
def test_true_lists_are_calibrated_whatever_the_unlisted_classes_are(k):
    y, w, lists = enumerated(k=k)
    diagram = vx.reliability(y, lists, weights=w, resamples=0)
    assert [c.name for c in diagram] == [*(f"place {j + 1}" for j in range(k)), "any place", "whole list"]
    for curve, claim in zip(diagram, diagram.claims, strict=True):
        assert claim.gap == pytest.approx(0, abs=1e-12)
        assert curve.components.miscalibration == pytest.approx(0, abs=1e-12)
        assert curve.frequency == pytest.approx(curve.forecast, abs=1e-9)
    parts = vx.decompose(y, lists, rule="brier", weights=w)
    assert parts.miscalibration == pytest.approx(0, abs=1e-12)
    # Discrimination of calibrated statements is their variance; the rest is that of their means.
    share, total = np.repeat(w, k) / w.sum() / k, lists.confidences
    spread = np.average(total**2, weights=share) - np.average(total, weights=share) ** 2
    assert parts.parts[0].discrimination == pytest.approx(spread, abs=1e-12)


def test_overstated_lists_are_found_out():
    y, w, lists = enumerated(n=200, sharpened=2.0)
    diagram = vx.reliability(y, lists, weights=w, resamples=50, seed=1)
    assert diagram.claim("place 1").gap > 0.05
    assert diagram.claim("whole list").gap > 0.05
    first = diagram["place 1"].components
    assert first.p_value == pytest.approx(1 / 51)
    assert first.expected_miscalibration < first.miscalibration
    slopes = vx.calibration_slope(y, lists, weights=w)
    assert [line.name for line in slopes] == ["place 1", "place 2", "any place", "whole list"]
    # Two classes: sharpening by 2 doubles the log odds, so the slope is 1/2.
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 0.98, 400)
    stated = p**2 / (p**2 + (1 - p) ** 2)
    lists = vx.TopLists.from_arrays(np.zeros((800, 1), int), np.repeat(stated, 2)[:, None], n_classes=2)
    line = vx.calibration_slope([0, 1] * 400, lists, weights=np.column_stack([p, 1 - p]).ravel())["place 1"]
    assert line.slope == pytest.approx(0.5, abs=1e-8)
    assert line.intercept == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_curves_are_isotonic_fits_to_the_statements(weighted):
    y, lists = ragged()
    w = np.random.default_rng(1).integers(0, 3, len(y)).astype(float) if weighted else None
    diagram = vx.reliability(y, lists, weights=w, resamples=0, places=3)
    ones = np.ones(len(y)) if w is None else w
    events = {}
    rows = [list(row.items()) for row in lists]
    for place in (1, 2, 3):
        events[f"place {place}"] = [
            (row[place - 1][1], row[place - 1][0] == out, weight)
            for row, out, weight in zip(rows, y, ones, strict=True)
            if len(row) >= place
        ]
    events["any place"] = [(t, c == o, v) for r, o, v in zip(rows, y, ones, strict=True) for c, t in r]
    events["whole list"] = [
        (sum(t for _, t in r), o in dict(r), v) for r, o, v in zip(rows, y, ones, strict=True)
    ]
    assert [curve.name for curve in diagram] == list(events)
    for name, elements in events.items():
        given, happened, weight = (np.array(column, float) for column in zip(*elements, strict=True))
        given, happened, weight = (column[weight > 0] for column in (given, happened, weight))
        claim, curve = diagram.claim(name), diagram[name]
        assert claim.claimed == pytest.approx(np.average(given, weights=weight), rel=1e-12)
        assert claim.happened == pytest.approx(np.average(happened, weights=weight), rel=1e-12)
        fit = IsotonicRegression(y_min=0, y_max=1).fit(given, happened, sample_weight=weight)
        loss = np.average((given - happened) ** 2, weights=weight)
        least = np.average((fit.predict(given) - happened) ** 2, weights=weight)
        assert curve.components.score == pytest.approx(loss, rel=1e-12)
        assert curve.components.miscalibration == pytest.approx(loss - least, abs=1e-12)
    assert diagram.n_invalid == lists.n_invalid > 0
    assert f"{diagram.n_invalid} lists are invalid; the confidences are used as stated." in repr(diagram)
    json.dumps(diagram.to_dict())
    assert len(diagram.claims_frame()) == 5


@pytest.mark.parametrize("scale", ["sum", "half", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_events_and_what_they_leave_out_are_the_padded_score(scale, weighted):
    y, lists = ragged(seed=3)
    w = np.random.default_rng(1).exponential(size=len(y)) if weighted else None
    rule = vx.rules.Brier(scale)
    parts = vx.decompose(y, lists, rule=rule, weights=w)
    # By brute force: the events of the largest valid sublists, written out over all classes.
    scored = lists.largest_valid()
    dense = scored.padded()
    assert parts.padded == pytest.approx(rule(y, dense, weights=w), rel=1e-12)
    losses, pooled = [], []
    for row, outcome in zip(scored, y, strict=True):
        left = 1 - sum(row.values())
        hits = [(t, float(c == outcome)) for c, t in row.items()]
        pooled.append(hits)
        losses.append(sum((t - h) ** 2 for t, h in hits) + (left - (outcome not in row)) ** 2)
    factor = {"sum": 1, "half": 0.5, "mean": 1 / M}[scale]
    assert parts.score == pytest.approx(factor * np.average(losses, weights=w), rel=1e-12)
    listed, unlisted = parts.parts
    assert parts.whole.observed == pytest.approx(
        factor * (parts.mean_length * listed.observed + unlisted.observed), rel=1e-12
    )
    given, happened = np.array([hit for hits in pooled for hit in hits]).T
    weight = None if w is None else np.repeat(w, [len(hits) for hits in pooled])
    fit = IsotonicRegression(y_min=0, y_max=1).fit(given, happened, sample_weight=weight).predict(given)
    gained = np.average((given - happened) ** 2 - (fit - happened) ** 2, weights=weight)
    assert listed.miscalibration == pytest.approx(gained, abs=1e-12)
    assert f"{lists.n_invalid} lists are invalid, taken as the largest valid sublist" in repr(parts)
    assert vx.decompose(y, lists, rule=vx.padded(rule), weights=w).score == parts.score


def test_full_lists_leave_nothing_out():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 200)
    y = rng.integers(0, 4, 200)
    parts = vx.decompose(y, vx.TopLists.from_probabilities(p, 4), rule="brier")
    assert parts.left_out == 0
    assert parts.score == pytest.approx(vx.brier(y, p), rel=1e-12)
    assert parts.parts[1].observed == pytest.approx(0, abs=1e-12)


def test_intervals_and_tests_of_lists():
    rng = np.random.default_rng(5)
    rejected, covered = 0, 0
    for seed in range(20):
        p = rng.dirichlet(np.full(M, 0.6), 150)
        y = (rng.random((150, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, M - 1)
        lists = vx.TopLists.from_probabilities(p, 3)
        parts = vx.decompose(y, lists, rule="brier", bootstrap=39, seed=seed)
        rejected += parts.p_value <= 0.05
        # The score of the events of a true list is known: 1 - sum t^2 - r^2.
        t = lists.confidences.reshape(-1, 3)
        truth = np.mean(1 - (t**2).sum(axis=1) - lists.unaccounted**2)
        covered += parts.intervals["score"].low <= truth <= parts.intervals["score"].high
    assert binom.sf(rejected - 1, 20, 0.05) > 1e-3
    assert binom.cdf(covered, 20, 0.95) > 1e-3
    grouped = vx.decompose(y, lists, rule="brier", bootstrap=39, groups=np.arange(150) // 3)
    assert grouped.n_groups == 50
    assert grouped.score == parts.score
    own = vx.decompose(y, lists, rule="brier", bootstrap=39, groups=np.arange(150))
    assert own.intervals["score"] == pytest.approx(parts.intervals["score"], rel=1e-9)
    w = rng.integers(1, 4, 150)
    counts = vx.decompose(y, lists, rule="brier", bootstrap=20, weights=w, weights_are="counts")
    rows = np.repeat(np.arange(150), w)
    repeated = vx.decompose(y[rows], lists[rows], rule="brier", bootstrap=20)
    assert counts.intervals["score"] == pytest.approx(repeated.intervals["score"], rel=1e-12)
    assert counts.p_value == repeated.p_value


def test_calibration_errors_in_bins():
    y, lists = ragged(seed=2)
    rows = [list(row.items()) for row in lists]
    first = [(row[0][1], row[0][0] == out) for row, out in zip(rows, y, strict=True) if row]
    given, right = np.array(first, float).T
    # The first place of the lists is the binary problem of its confidence.
    assert vx.ece(y, lists) == pytest.approx(vx.ece(right, given, kind="classwise"), rel=1e-12)
    assert vx.ece(y, lists, kind="mass", bins=1) == pytest.approx(
        abs(vx.reliability(y, lists, resamples=0).claim("whole list").gap), rel=1e-12
    )
    assert 0 < vx.ece(y, lists, kind="listed", norm="l2", debias=True) < 1


def test_many_classes_cost_nothing_and_edges_are_refused():
    lists = vx.TopLists.from_dicts([{"a": 0.5, "b": 0.2}, {}, {"c": 0.9}], n_classes=2**100)
    diagram = vx.reliability(["a", "x", "x"], lists, resamples=0)
    assert [claim.n_lists for claim in diagram.claims] == [2, 1, 3, 3]
    assert vx.decompose(["a", "x", "x"], lists, rule="brier").padded == pytest.approx(
        vx.brier(["a", "x", "x"], lists)
    )
    empty = vx.TopLists.from_dicts([{}, {}], n_classes=3)
    assert [curve.name for curve in vx.reliability([0, 1], empty, resamples=5)] == ["whole list"]
    assert vx.decompose([0, 1], empty, rule="brier", bootstrap=20).padded == pytest.approx(2 / 3)
    with pytest.raises(vx.InputError, match="every list is empty"):
        vx.ece([0, 1], empty)
    with pytest.raises(vx.InputError, match="is for top lists"):
        vx.reliability([0, 1], [[0.5, 0.5]] * 2, places=2)
    with pytest.raises(vx.InputError, match="`kind`"):
        vx.ece([0, 1], empty, kind="classwise")
    with pytest.raises(vx.errors.RuleError, match="by brier only"):
        vx.decompose([0, 1], empty, rule="log_score")
    with pytest.raises(vx.errors.RuleError, match="no cumulative probabilities"):
        vx.decompose([0, 1], empty, rule="rps")


def claims(rows, places):
    found = InMemory({"model": rows}).summarise({"events": ListEventRecipe("model", places)})
    return read_claims(found["events"], places)


def test_reliability_of_lists_knows_groups():
    """Copies of lists are no evidence where they are known to belong together."""
    rng = np.random.default_rng(4)
    given = np.round(rng.uniform(0.3, 0.7, 12), 2)
    y = (rng.random(12) < given).astype(int)
    lists = vx.TopLists.from_dicts([{1: c} for c in given for _ in range(60)], n_classes=4)
    outcomes, groups = np.repeat(y, 60), np.repeat(np.arange(12), 60)
    alone, grouped = (vx.reliability(outcomes, lists, groups=g) for g in (None, groups))
    rows = lists.with_outcomes(outcomes, groups=groups)
    for name in ("place 1", "whole list"):
        assert alone[name].components.p_value < 0.01
        assert grouped[name].components.p_value > 0.05
        # The page about lists has the same.
        page = {claim.name: claim for claim in claims(rows, 10)}
        assert grouped.claim(name) == page[name]
    assert np.diff(grouped["place 1"].band, axis=0).mean() > 2 * np.diff(alone["place 1"].band, axis=0).mean()


def test_the_mean_of_each_place_is_tested_with_groups():
    y, _, lists = enumerated(n=60, seed=2)
    groups = np.arange(len(y)) // M
    found = claims(lists.with_outcomes(y, groups=groups), 2)
    assert all(0 <= claim.p_value <= claim.p_adjusted <= 1 for claim in found)
    alone = claims(lists.with_outcomes(y, groups=np.zeros(len(y))), 2)
    assert {claim.p_value for claim in alone} == {None}


@pytest.mark.parametrize("weighted", [False, True])
def test_very_many_lists_are_counted_in_cells(change, weighted):
    # Array calls count no cells.
    pytest.importorskip("numba")
    rng = np.random.default_rng(0)
    n, k = 90_000, 6
    p = rng.dirichlet(np.full(8, 0.5), n)
    y = rng.integers(0, 8, n)
    w = rng.integers(0, 3, n) * 1.5 if weighted else None
    lists = vx.TopLists.from_probabilities(p, k)
    exact = vx.reliability(y, lists, resamples=0, weights=w)
    change(entries_in_cells_from=2**19)
    cells = vx.reliability(y, lists, resamples=0, weights=w)
    assert (exact.in_cells, cells.in_cells) == (False, True)
    assert (exact.n_rows, exact.longest) == (cells.n_rows, cells.longest)
    for one, other in zip(exact.claims, cells.claims, strict=True):
        assert (one.name, one.n_lists) == (other.name, other.n_lists)
        for name in ("claimed", "happened", "p_value", "p_adjusted"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9, abs=1e-12)
    for one, other in zip(exact, cells, strict=True):
        assert one.components.observed == pytest.approx(other.components.observed, abs=2e-5)
        assert one.components.score == pytest.approx(other.components.score, rel=1e-12)
        assert len(other.forecast) < 3500
    assert "are pooled" in repr(cells)
    assert not vx.reliability(y, lists, resamples=2, weights=w).in_cells


def test_the_summary_of_lists_is_made_of_their_parts():
    y, lists = ragged()
    found, parts = summarize(y, lists), vx.decompose(y, lists, rule="brier")
    empty = vx.TopLists.from_dicts([{}] * len(lists), n_classes=M)
    assert found["skill"] == pytest.approx(1 - vx.brier(y, lists) / vx.brier(y, empty), abs=1e-12)
    assert found["miscalibration"] == parts.miscalibration
    # Gaps between the confidence of the first place and its accuracy, in 15 bins of equal width.
    rows = [(max(row.values()), max(row, key=row.get) == k) for row, k in zip(lists, y, strict=True) if row]
    t, right = np.array(rows).T
    bins = np.ceil(t * 15)
    gaps = [abs((t - right)[bins == b].sum()) for b in np.unique(bins)]
    assert found["ece"] == pytest.approx(sum(gaps) / len(t), abs=1e-12)
    assert found.to_dict()["reference"] == "uniform"
    assert np.isnan(summarize(y, empty)["ece"])
