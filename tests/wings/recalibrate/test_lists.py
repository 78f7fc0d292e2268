"""Recalibration of top lists: held to that of padded distributions, to SciPy and to brute force."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import verax as vx
from verax.errors import InputError, RuleError
from verax.inputs.lists.ragged import Ragged
from verax.results import ListRecalibration
from verax.wings.recalibrate.lists import ListScaling

M = 6


def drawn(n=300, k=3, power=1.7, seed=1):
    """Outcomes, overconfident lists, groups and weights."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, M)) * 1.2
    q = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (rng.random(n)[:, None] > np.cumsum(q, axis=1)).sum(axis=1).clip(0, M - 1)
    p = q**power / (q**power).sum(axis=1, keepdims=True)
    return y, vx.TopLists.from_probabilities(p, k), rng.integers(0, 40, n), rng.random(n) + 0.1


def scaled(lists, slope, shift):
    """The formula written out, list by list."""
    rows = np.zeros((lists.n_rows, lists.n_classes))
    for i, row in enumerate(lists):
        t, k = np.array(list(row.values())), len(row)
        rest = 0.0
        if k < lists.n_classes:
            rest = math.exp(shift) * ((1 - t.sum()) / (lists.n_classes - k)) ** slope
            rest = min(rest, t[-1] ** slope) if k else rest
        total = (t**slope).sum() + (lists.n_classes - k) * rest
        rows[i] = rest / total
        rows[i, list(row)] = t**slope / total
    return rows


@pytest.mark.long
@pytest.mark.parametrize("k", [1, 3, M])
@pytest.mark.parametrize("rule", ["log_score", "brier", "spherical"])
def test_temperature_is_that_of_the_padded_distributions(k, rule):
    y, lists, groups, weights = drawn(k=k)
    how = {"method": "temperature", "rule": rule, "groups": groups, "weights": weights, "folds": 3}
    found, dense = vx.recalibrate(y, lists, **how), vx.recalibrate(y, lists.padded(), **how)
    assert isinstance(found, ListRecalibration)
    assert found.form.slope == pytest.approx(float(dense.form.slopes), rel=1e-9)
    assert found.apply(lists).padded() == pytest.approx(dense.apply(lists.padded()), abs=1e-9)
    # Groups are dealt to folds alike, so that gains and their intervals are the same as well.
    assert found.gain.value == pytest.approx(dense.gain.value, rel=1e-9)
    assert found.gain.interval == pytest.approx(dense.gain.interval, rel=1e-9)
    held_out = found.held_out.lists.confidences
    assert held_out == pytest.approx(
        np.take_along_axis(dense.held_out, lists.classes.reshape(len(lists), -1), axis=1).ravel(), abs=1e-9
    )


@pytest.mark.long
def test_the_smallest_loss_is_found():
    y, lists, _, _ = drawn(n=50)
    rule = vx.brier

    def objective(t):
        # The ridge is that of all fits.
        return rule.samples(y, scaled(lists, math.exp(t[0]), t[1])).sum() + 0.01 * float(t @ t)

    known = minimize(objective, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-11})
    form = vx.recalibrate(y, lists, method="temperature_rest", rule=rule).form
    assert objective(np.array([math.log(form.slope), form.shift])) == pytest.approx(known.fun, abs=1e-8)
    assert [form.slope, form.shift] == pytest.approx([math.exp(known.x[0]), known.x[1]], abs=1e-4)


@pytest.mark.long
def test_gains_are_those_of_losses_that_no_fit_has_seen():
    y, lists, _, _ = drawn(power=2.5)
    found = vx.recalibrate(y, lists, rule="brier", folds=3)
    assert [trial.method for trial in found.trials] == [*("none", "temperature", "rest", "temperature_rest")]
    assert found.trials[0].loss == pytest.approx(vx.brier(y, lists), abs=1e-12)
    assert found.method == "temperature"
    assert found.gain.interval.low > 0
    # Held out rows are scored as what each fold's fit makes of them.
    place = [list(row).index(k) if k in row else -1 for k, row in zip(y.tolist(), lists, strict=True)]
    rows = found.held_out.with_codes(np.array(place))
    assert np.mean(vx.brier.samples(y, _named(rows, lists))) == pytest.approx(found.trial("temperature").loss)


def _named(rows, lists):
    """The lists of rows whose classes are places, with the classes of others."""
    return vx.TopLists(lists.classes, rows.lists.confidences, lists.offsets, lists.n_classes)


def test_calibrated_lists_are_left_alone():
    y, lists, _, _ = drawn(n=500, power=1.0, seed=4)
    found = vx.recalibrate(y, lists, folds=3)
    assert found.method == "none"
    assert found.apply(lists) is lists
    assert found.verdict.startswith("No gain is shown: calibration is not rejected (score test p = ")


def test_full_lists_have_no_rest():
    y, lists, _, _ = drawn(n=60, k=M)
    assert [trial.method for trial in vx.recalibrate(y, lists).trials] == ["none", "temperature"]


def test_sums_of_one_and_zeros_count_as_little():
    y, lists, _, _ = drawn(n=80, k=2)
    certain = vx.TopLists.from_dicts(
        [{k: t / sum(row.values()) for k, t in row.items()} for row in lists], n_classes=M
    )
    found = vx.recalibrate(y, certain, method="temperature_rest")
    # The log score of an unlisted outcome is infinite.
    assert found.rule == "brier"
    better = found.apply(certain)
    assert better.valid.all()
    assert (better.unaccounted > 0).all()
    assert vx.brier(y, better) < vx.brier(y, certain) - 0.05


def test_invalid_lists_are_taken_as_they_are_scored():
    y, lists, _, _ = drawn(n=60)
    spoiled = [dict(row) for row in lists]
    spoiled[0] = {0: 0.5, 1: 0.01}
    some = vx.TopLists.from_dicts(spoiled, n_classes=M)
    found = vx.recalibrate(y, some, method="temperature")
    assert found.n_invalid == 1
    assert "1 of 60 lists is invalid" in found.notes[0]
    assert found.trials[0].loss == pytest.approx(vx.brier(y, some.largest_valid()))
    assert found.apply(some).to_dicts()[0].keys() == {0}


@given(st.integers(0, 10**6), st.floats(-4, 4), st.floats(-8, 8), st.sampled_from([2, 7, 10**5, 2**900]))
def test_valid_lists_stay_valid(seed, power, shift, m):
    rng = np.random.default_rng(seed)
    rows = [
        np.sort(rng.dirichlet(np.full(k + 1, 0.5))[:k])[::-1]
        for k in rng.integers(0, min(m, 5) + 1, 8).tolist()
        if k < m
    ]
    lists = vx.TopLists.from_dicts([dict(enumerate(t.tolist())) for t in rows], n_classes=m).largest_valid()
    given_lists = Ragged(lists.classes, lists.confidences, lists.offsets)
    form = ListScaling(math.exp(power), shift, -math.log(m) - 3)
    values = form.confidences(given_lists, lists.unaccounted, m)
    better = vx.TopLists(lists.classes, values, lists.offsets, m)
    assert better.valid.all()
    assert better.classes.tolist() == lists.classes.tolist()


def test_it_is_saved_and_loaded(tmp_path: Path):
    y, lists, _, _ = drawn(n=60)
    found = vx.recalibrate(y, lists, method="temperature_rest")
    found.save(tmp_path / "a.json")
    again = vx.results.Recalibration.load(tmp_path / "a.json")
    assert type(again) is ListRecalibration
    # The lists held out are not in the file.
    assert again.to_dict(stored=False) == found.to_dict(stored=False)
    assert again.apply(lists).confidences.tolist() == found.apply(lists).confidences.tolist()
    for key, wrong in {"form": {"kind": "log-linear"}, "of_lists": {"n_classes": 1, "n_invalid": 0}}.items():
        stored = json.loads((tmp_path / "a.json").read_text())
        (tmp_path / "b.json").write_text(json.dumps({**stored, key: wrong}))
        with pytest.raises(InputError, match="must be a recalibration"):
            vx.results.Recalibration.load(tmp_path / "b.json")


def test_mistakes_are_named():
    y, lists, _, _ = drawn(n=60)
    found = vx.recalibrate(y, lists, method="temperature")
    with pytest.raises(InputError, match="must be top lists"):
        found.apply(lists.padded())
    with pytest.raises(InputError, match="must be lists of 6 classes"):
        found.apply(vx.TopLists.from_dicts([{0: 0.5}], n_classes=7))
    with pytest.raises(InputError, match="must be full distributions"):
        vx.recalibrate(y, lists.padded(), method="temperature").apply(lists)
    with pytest.raises(InputError, match="must be one of 'none', 'temperature', 'rest'"):
        vx.recalibrate(y, lists, method="isotonic")
    with pytest.raises(RuleError, match="no cumulative probabilities"):
        vx.recalibrate(y, lists, ordered=True)
    with pytest.raises(RuleError, match="symmetric"):
        vx.recalibrate(y, lists, rule="rps")
    with pytest.raises(RuleError, match="no gradient"):
        vx.recalibrate(y, lists, rule="zero_one")
    with pytest.raises(InputError, match="how frequent"):
        found.estimate_frequencies(lists)


def test_of_two_kinds_of_groups_the_fewer_stay_together():
    """As the report does it: the same recalibration as with that kind alone, and a note."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=(120, 3))
    p = np.exp(2 * z) / np.exp(2 * z).sum(axis=1, keepdims=True)
    y, lists = rng.integers(0, 3, 120), vx.TopLists.from_probabilities(p, 2)
    many, few = np.arange(120) // 3, np.arange(120) % 9
    found = vx.recalibrate(y, lists, groups=[many, few], method="temperature")
    alone = vx.recalibrate(y, lists, groups=few, method="temperature")
    assert (found.gain, found.n_groups) == (alone.gain, 9)
    assert "the one with fewer groups" in found.notes[-1]
