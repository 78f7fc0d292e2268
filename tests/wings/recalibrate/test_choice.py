"""The choice of a recalibration: one test of calibration, one gate, one sentence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, chi2, f

import verax as vx
from recalibrations import drawn, softmax
from verax.inputs.groups import Groups
from verax.wings.recalibrate.lists import _directions
from verax.wings.recalibrate.scoretest import Directions, ScoreSums, calibration_p


def p_of(y, p, *, ordered=False, weights=None, groups=None):
    labels = None if groups is None else Groups.of(groups, len(y))
    return calibration_p(Directions.of(p, ordered=ordered), np.asarray(y), weights, labels)


def wobbled(n, k, seed):
    """Outcomes of forecasts that are a little too sure of themselves."""
    return drawn(n, k, seed=seed, distort=lambda z: 1.15 * z)[:2]


# ---- the test of calibration -------------------------------------------------------------------


def residuals_by_hand(y, p, ordered=False):
    """Row by row, from the definition."""
    rows, k = [], p.shape[1]
    for outcome, q in zip(y, p, strict=True):
        happened = np.arange(k) == outcome
        if k == 2:
            t = np.clip(np.log(q[1] / q[0]), -6, 6)
            rows.append([(happened[1] - q[1]) * x for x in (t, t * t / 4, 1)])
        elif ordered:
            below, up_to = np.cumsum(q)[:-1], np.cumsum(happened)[:-1]
            t = np.clip(np.log(below / (1 - below)), -6, 6)
            rows.append([(t * (up_to - below)).sum(), *(up_to - below)])
        else:
            z = np.clip(np.log(q) - np.log(q.max()), -8, 0)
            rows.append([(z * (happened - q)).sum(), *(happened - q)[1:]])
    return np.array(rows)


def variance_by_hand(p, ordered=False):
    """The expected outer product of a row's residuals, over its outcomes."""
    total = 0
    for row in p:
        each = [residuals_by_hand([j], row[None], ordered)[0] for j in range(len(row))]
        total = total + sum(q * np.outer(u, u) for q, u in zip(row, each, strict=True))
    return total


@pytest.mark.parametrize(("k", "ordered"), [(2, False), (3, False), (4, True)])
def test_independent_rows_are_tested_by_raos_score_test(k, ordered):
    y, p = wobbled(400, k, seed=1)
    total = residuals_by_hand(y, p, ordered).sum(axis=0)
    statistic = total @ np.linalg.solve(variance_by_hand(p, ordered), total)
    assert p_of(y, p, ordered=ordered) == pytest.approx(chi2.sf(statistic, 3 if k == 2 else k), rel=1e-6)


@pytest.mark.parametrize("k", [2, 3])
def test_groups_are_tested_by_hotellings_test_of_their_sums(k):
    y, p = wobbled(300, k, seed=2)
    labels, d = np.arange(300) % 40, 2 if k == 2 else k
    rows = residuals_by_hand(y, p)
    rows = rows[:, [0, 2]] if k == 2 else rows
    sums = np.array([rows[labels == g].sum(axis=0) for g in range(40)])
    t = 40 * sums.mean(axis=0) @ np.linalg.solve(np.cov(sums.T), sums.mean(axis=0))
    expected = f.sf(t * (40 - d) / (d * 39), d, 40 - d)
    assert p_of(y, p, groups=labels) == pytest.approx(expected, rel=1e-6)
    # A row of each group, with any weight for all: weights are relative, and those of zero are absent.
    w = np.random.default_rng(0).random(300) + 0.1
    one = p_of(y, p, weights=w, groups=np.arange(300))
    assert one == pytest.approx(p_of(y, p, weights=7 * w), rel=1e-9)
    more_y, more_p = np.append(y, [0] * 9), np.vstack([p, p[:9]])
    assert p_of(more_y, more_p, weights=np.append(w, np.zeros(9))) == pytest.approx(one, rel=1e-9)
    # Of two kinds of groups the more cautious one decides.
    crossed = p_of(y, p, groups=[labels, np.arange(300) // 10])
    assert crossed == max(p_of(y, p, groups=labels), p_of(y, p, groups=np.arange(300) // 10))
    assert math.isnan(p_of(y, p, groups=np.arange(300) % 3))


def test_of_rare_events_outcomes_are_drawn_from_the_forecasts():
    """All rows alike: the sums then depend on the number of events alone, whose distribution is known."""
    n, q = 150, 0.02
    p = np.tile([1 - q, q], (n, 1))
    for events in (0, 3, 6, 8):
        y = np.repeat([0, 1], [n - events, events])
        numbers = np.arange(n + 1)
        exact = binom.pmf(numbers, n, q)[np.abs(numbers - 3) >= abs(events - 3)].sum()
        assert p_of(y, p) == pytest.approx(exact, abs=0.03)
    assert p_of(y, p) == p_of(y, p)


def test_sums_of_parts_add_up():
    y, p = wobbled(500, 3, seed=3)
    whole = ScoreSums.of(Directions.of(p, ordered=False), y)
    both = ScoreSums.of(Directions.of(p[:200], ordered=False), y[:200])
    both = both + ScoreSums.of(Directions.of(p[200:], ordered=False), y[200:])
    for name in ("residual", "variance", "expected"):
        np.testing.assert_allclose(getattr(both, name), getattr(whole, name), rtol=1e-12, atol=1e-9)
    # More rows than one block has.
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 600_000)
    p = np.column_stack([1 - p, p])
    y = (rng.random(len(p)) < p[:, 1]).astype(int)
    sums = ScoreSums.of(Directions.of(p, ordered=False), y)
    statistic = sums.residual @ np.linalg.solve(sums.variance, sums.residual)
    assert p_of(y, p) == pytest.approx(chi2.sf(statistic, 3), rel=1e-6)


def test_directions_that_say_nothing_are_not_counted():
    # Forecasts that are all the same have a mean alone, and no slope.
    y = np.repeat([0, 1], [150, 50])
    p = np.tile([0.7, 0.3], (200, 1))
    assert p_of(y, p) == pytest.approx(chi2.sf((50 - 60) ** 2 / 42, 1), rel=1e-6)
    # Certain and right, or once wrong, which no calibrated forecast is.
    sure = np.eye(2)[y]
    assert p_of(y, sure) == 1
    assert p_of(np.append(y[1:], 1), sure) == 0


@pytest.mark.parametrize("ordered", [False, True])
def test_of_many_classes_the_commonest_have_offsets(ordered):
    rng = np.random.default_rng(4)
    q = softmax(rng.normal(size=(3000, 40)) + np.linspace(0, 3, 40))
    y = (rng.random((3000, 1)) > np.cumsum(q, axis=1)[:, :-1]).sum(axis=1)
    directions = Directions.of(q, ordered=ordered)
    assert directions.n_bins == 11
    if ordered:
        assert (np.diff(directions.bins) >= 0).all()
    assert p_of(y, q, ordered=ordered) > 0.01
    # The commonest class is forecast too often.
    p = q * np.append(np.ones(39), 1.8)
    assert p_of(y, p / p.sum(axis=1, keepdims=True), ordered=ordered) < 1e-4


@pytest.mark.parametrize(("k", "ordered"), [(2, False), (3, False), (5, True)])
def test_calibrated_forecasts_are_rejected_in_a_twentieth(k, ordered):
    rng, values = np.random.default_rng(5), []
    for _ in range(600):
        p = rng.dirichlet(np.full(k, 0.8), 250)
        p = 0.98 * p + 0.02 / k
        y = (rng.random((250, 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
        values.append(p_of(y, p, ordered=ordered))
    # Monte Carlo error 0.9 points.
    assert 0.025 < np.mean(np.array(values) <= 0.05) < 0.075
    assert 0.4 < np.mean(np.array(values) <= 0.5) < 0.6


def test_lists_are_tested_by_a_temperature_and_the_rest():
    """Lists of one class that leave the rest to four others are forecasts of two outcomes."""
    rng = np.random.default_rng(6)
    top = rng.uniform(0.3, 0.9, 400)
    y = np.where(rng.random(400) < 0.9 * top, 0, rng.integers(1, 5, 400))
    lists = vx.TopLists.from_dicts([{0: t} for t in top.tolist()], n_classes=5)
    sample = vx.recalibrate(y, lists)
    residual, slope = (y == 0) - top, np.clip(np.log(top / ((1 - top) / 4)), -8, 8)
    u = np.column_stack([residual * slope, -residual])
    v = np.einsum("n,ni,nj->ij", top * (1 - top), *[np.column_stack([slope, -np.ones(400)])] * 2)
    statistic = u.sum(axis=0) @ np.linalg.solve(v, u.sum(axis=0))
    assert sample.calibration_p == pytest.approx(chi2.sf(statistic, 2), rel=1e-6)


def test_the_outcomes_of_lists_sum_to_one():
    lists = vx.TopLists.from_dicts([{0: 0.6, 2: 0.2}, {1: 0.5}, {}], n_classes=4)
    many = vx.TopLists.from_dicts(lists.to_dicts() * 20, n_classes=4)
    rows = vx.recalibrate([0, 2, 3] * 20, many, method="none").held_out
    directions, y = _directions(rows)
    np.testing.assert_allclose(directions.p[:3], [[0.6, 0.2, 0.2], [0.5, 0, 0.5], [0, 0, 1]], atol=1e-12)
    assert y[:3].tolist() == [0, 2, 2]


# ---- the gate ------------------------------------------------------------------------------------


def chosen_by_hand(found, y, rule, weights=None):
    """The rule of the guide, from held-out losses of each method by itself."""
    names = [trial.method for trial in found.trials]
    loss = {"none": rule.samples(y, found.given)}
    for name in names[1:]:
        loss[name] = rule.samples(y, vx.recalibrate(y, found.given, method=name, rule=rule).held_out)
    best = min(names, key=lambda name: loss[name].mean())

    def error(d):
        return d.std(ddof=1) / np.sqrt(len(d))

    if best == "none":
        return "none"
    gaps = {name: loss[name] - loss[best] for name in names[1:]}
    pick = next(name for name, d in gaps.items() if name == best or d.mean() <= error(d))
    gain = loss["none"] - loss[pick]
    passes = found.calibration_p <= 0.05 and gain.mean() > error(gain)
    return pick if passes else "none"


@pytest.mark.parametrize("strength", [1.0, 1.1, 1.2, 1.4, 2.0])
def test_the_simplest_of_the_best_passes_one_gate(strength):
    tried = ["temperature", "prior", "bcts", "vector", "isotonic"]
    for seed in range(4):
        y, p, _ = drawn(200, 3, seed=40 + seed, distort=lambda z: strength * z)
        found = vx.recalibrate(y, p, method=tried, rule="brier")
        object.__setattr__(found, "given", p)
        assert found.method == chosen_by_hand(found, y, vx.brier)


def test_the_sentence_follows_the_choice():
    seen = set()
    for seed in range(12):
        y, p, _ = drawn(150, 3, seed=60 + seed, distort=lambda z, s=seed: (1.0 + 0.1 * (s % 5)) * z)
        found = vx.recalibrate(y, p, method=["temperature", "prior", "vector"])
        (finding,) = found.verdict.findings
        assert found.helps == (found.method != "none") == (finding.claim == "recalibration_helps")
        assert (finding.p_value, finding.level) == (found.calibration_p, 0.05)
        text = str(found.verdict)
        if found.helps:
            assert found.calibration_p <= 0.05
            assert text.startswith("The forecasts are not calibrated (score test p ")
            assert " off the Brier score of held-out rows (95% CI " in text
            assert found.gain == found.trial(found.method).gain
        else:
            rejected = found.calibration_p <= 0.05
            why = "the forecasts are miscalibrated" if rejected else "calibration is not rejected"
            assert text.startswith(f"No gain is shown: {why} (score test p ")
            seen.add(rejected)
        seen.add(found.method)
    assert {"none", "temperature", True, False} <= seen


def test_too_few_groups_are_left_alone_and_said():
    y, p, _ = drawn(400, 3, seed=7, distort=lambda z: 2 * z)
    found = vx.recalibrate(y, p, groups=np.arange(400) % 4, method=["temperature", "prior"])
    assert found.method == "none"
    assert found.verdict.startswith("No gain is shown: with 4 groups calibration cannot be tested.")
    assert vx.recalibrate(y, p, groups=np.arange(400) % 20, method=["temperature", "prior"]).helps


def test_a_method_by_name_is_taken_whatever_it_gains_and_not_tested():
    y, p, _ = drawn(300, 3, seed=8)
    found = vx.recalibrate(y, p, method="vector")
    assert (found.method, found.helps) == ("vector", True)
    assert math.isnan(found.calibration_p)
    (finding,) = found.verdict.findings
    assert finding.p_value is None
    assert finding.text.startswith("Vector scaling ")


def test_what_0_3_saved_is_read(tmp_path):
    """Its gain of a choice was that of repeating the choice without each fold, which is left out."""
    import json

    y, p, _ = drawn(300, 3, seed=9, distort=lambda z: 2 * z)
    found = vx.recalibrate(y, p, method=["temperature", "prior"])
    found.save(tmp_path / "new.json")
    stored = json.loads((tmp_path / "new.json").read_text())
    stored |= {"version": 1, "picks": ["temperature"] * 5}
    del stored["calibration_p"], stored["checksum"]
    for trial in stored["trials"]:
        trial["gain"]["p_value"] = 0.5
    stored["trials"].append({**stored["trials"][1], "method": "best"})
    (tmp_path / "old.json").write_text(json.dumps(stored))
    old = vx.results.Recalibration.load(tmp_path / "old.json")
    np.testing.assert_array_equal(old.apply(p), found.apply(p))
    assert [trial.method for trial in old.trials] == ["none", "temperature", "prior"]
    assert old.gain == found.gain
    assert old.verdict.startswith("Temperature scaling takes about ")
