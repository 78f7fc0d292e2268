"""Monitoring: evidence is fair, alarms come where something changes, and nothing is lost on the way."""

from __future__ import annotations

import copy
import itertools
import json
import lzma
import math
import pickle
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from html import escape
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import beta, norm

import verax as vx
from verax.inputs.breakdown import Breakdown
from verax.wings.monitor.alarms import alarm_at
from verax.wings.monitor.bets import UnitBets
from verax.wings.monitor.evidence import Ledger
from verax.wings.monitor.page import monitor_page
from verax.wings.monitor.steps import StepRecipe


def draw(rng, n, k=3, spread=1.2):
    """Calibrated forecasts of k classes with their outcomes."""
    p = rng.dirichlet(np.full(k, spread), n)
    return np.minimum((p.cumsum(axis=1) <= rng.random((n, 1))).sum(axis=1), k - 1), p


def alike(one, other):
    assert json.dumps(one.to_dict()) == json.dumps(other.to_dict())


def near(a, b):
    """Whether two monitors have the same numbers to rounding."""
    first, second = (each.history.to_frame().drop(columns="time").to_numpy(float) for each in (a, b))
    assert np.allclose(first, second, rtol=1e-9, equal_nan=True)


# ---- evidence is fair: its expectation under the claims is at most one, by enumeration -------------------


@pytest.mark.long
@pytest.mark.parametrize("unit", ["row", "time", "group"])
@pytest.mark.parametrize("false_alarms", ["ever", "rate"])
def test_expected_evidence_of_calibrated_forecasts_is_at_most_one(unit, false_alarms):
    p = np.array([0.1, 0.35, 0.8])
    q = np.array([0.6, 0.2])
    total = 0.0
    for outcomes in itertools.product([0, 1], repeat=5):
        y = np.array(outcomes)
        x = np.concatenate([p, q])
        chance = float(np.prod(np.where(y == 1, x, 1 - x)))
        monitor = vx.Monitor(unit=unit, false_alarms=false_alarms)
        groups = [{"groups": [0, 1, 1]}, {"groups": [0, 0]}] if unit == "group" else [{}, {}]
        monitor.update(y[:3], p, time=1, **groups[0])
        monitor.update(y[3:], q, time=2, **groups[1])
        total += chance * monitor.evidence
    # The restarting detector puts in new capital at both steps; so few rows wait with most of it.
    assert total <= (2 if false_alarms == "rate" else 1) + 1e-12
    assert total > 0.3


@pytest.mark.parametrize("rule", ["brier", "log_score", "zero_one"])
def test_expected_evidence_of_a_loss_at_the_reference_is_at_most_one(rule):
    p = np.full(4, 0.3)
    reference = float(vx.parse(rule).entropy([0.7, 0.3]))
    total = 0.0
    for outcomes in itertools.product([0, 1], repeat=4):
        y = np.array(outcomes)
        monitor = vx.Monitor(reference, rule=rule)
        for step in range(2):
            monitor.update(y[2 * step :][:2], p[:2], time=step)
        total += float(np.prod(np.where(y == 1, 0.3, 0.7))) * monitor.evidence
    assert total <= 1 + 1e-12


def test_calibrated_forecasts_raise_no_alarm_and_the_history_shows_them():
    rng = np.random.default_rng(3)
    monitor = vx.Monitor(vx.evaluate(*draw(rng, 500)), alpha=0.1)
    for day in range(20):
        assert monitor.update(*draw(rng, 50), time=day) is None
    frame = monitor.history.to_frame()
    assert len(frame) == 20
    assert ((frame["low"] < frame["loss"]) & (frame["loss"] < frame["high"])).all()
    assert monitor.began is None
    assert "No alarm in 1,000 rows" in monitor.verdict


# ---- changes are found -----------------------------------------------------------------------------------


def changed(rng, n, how):
    y, p = draw(rng, n)
    if how == "shift":
        y = np.where(rng.random(n) < 0.35, 2, y)
    elif how == "confident":
        p = p**2.5 / (p**2.5).sum(axis=1, keepdims=True)
    return y, p


@pytest.mark.parametrize("false_alarms", ["ever", "rate"])
@pytest.mark.parametrize(
    ("how", "words"),
    [
        (
            "shift",
            "The frequenc(y|ies) of .*“2”.* ha(s|ve) shifted|“[02]” are miscalibrated",
        ),
        ("confident", "overconfident|miscalibrated"),
    ],
)
def test_changes_are_found_dated_and_named(how, words, false_alarms):
    rng = np.random.default_rng(5)
    monitor = vx.Monitor(vx.evaluate(*draw(rng, 5000)), false_alarms=false_alarms)
    start = date(2026, 1, 1)
    for day in range(40):
        rows = draw(rng, 200) if day < 15 else changed(rng, 200, how)
        if monitor.update(*rows, time=start + timedelta(day)) is not None:
            break
    assert monitor.alarm is not None
    assert 15 <= day <= 30
    likeliest, low, high = monitor.began
    assert low <= likeliest <= high
    assert abs((likeliest - start).days - 15) <= 2
    assert re.search(words, monitor.verdict)
    assert str(likeliest) in monitor.verdict
    # It stays, with the time at which it was raised.
    assert monitor.update(*draw(rng, 10), time=start + timedelta(50)).time == start + timedelta(day)
    monitor.acknowledge()
    assert monitor.alarm is None
    assert len(monitor.history.lines) == day + 2


@pytest.mark.parametrize(
    ("evidence", "named", "located"), [((38, 39, 0.1), "b", False), ((1, 1, 90), "c", True)]
)
def test_claims_that_fail_only_together_are_told_by_the_strongest(evidence, named, located, monkeypatch):
    monkeypatch.setattr("verax.wings.monitor.alarms.since_onset", lambda *_, by_step: (0.5, 0.4, 0.3))
    ledger = Ledger(("a", "b", "c"), with_loss=False, columns=(), restarts=False, unit="row")
    ledger.capital["", None] = own = UnitBets.fresh(3, 1.0, restarts=False)
    own.events += np.log(evidence)[:, None, None]
    assert ledger.total() >= math.log(20)
    alarm = alarm_at(ledger, [SimpleNamespace(time=3)], SimpleNamespace(level=0.05, unit="row"))
    assert (alarm.time, alarm.targets, alarm.located) == (3, (("", None, named),), located)


def test_forecasts_that_tell_less_raise_the_loss_but_stay_calibrated():
    rng = np.random.default_rng(8)
    monitor = vx.Monitor(vx.evaluate(*draw(rng, 5000, spread=0.3)), tolerance=0.01)
    for day in range(30):
        if monitor.update(*draw(rng, 300, spread=0.3 if day < 10 else 3.0), time=day) is not None:
            break
    assert monitor.alarm.targets == (("", None, "loss"),)
    assert "less informative" in monitor.alarm.kind


def test_a_subgroup_that_changes_is_named_and_no_other():
    rng = np.random.default_rng(2)
    monitor = vx.Monitor(by="site", unit="row")
    for day in range(60):
        y, p = draw(rng, 150)
        site = np.array(["a", "b", "c"])[rng.integers(0, 3, 150)]
        wrong = (site == "b") & (rng.random(150) < 0.5)
        y = np.where(wrong, 0, y)
        if monitor.update(y, p, time=day, by={"site": site}) is not None and monitor.alarm.located:
            break
    scopes = {(column, label) for column, label, _ in monitor.alarm.targets}
    assert ("site", "b") in scopes
    assert not scopes & {("site", "a"), ("site", "c")}


def test_tolerated_changes_raise_no_alarm():
    rng = np.random.default_rng(4)
    y, p = draw(rng, 4000)
    loss = vx.brier(y, p)
    strict, tolerant = vx.Monitor(loss - 0.15), vx.Monitor(loss - 0.15, tolerance=0.2)
    for day in range(40):
        rows = slice(100 * day, 100 * day + 100)
        for each in (strict, tolerant):
            each.update(y[rows], p[rows], time=day)
    assert ("", None, "loss") in strict.alarm.targets
    assert tolerant.alarm is None


# ---- one analysis, wherever the rows are ----------------------------------------------------------------


def test_shards_of_a_step_merge_in_any_order_and_as_bytes():
    rng = np.random.default_rng(6)
    y, p = draw(rng, 300)
    groups, site = rng.integers(0, 40, 300), np.array(["x", "y"])[rng.integers(0, 2, 300)]
    for unit in ("row", "time", "group"):
        whole, parts = (vx.Monitor(0.5, unit=unit, by="site") for _ in range(2))

        def rows(a, b, monitor, unit=unit):
            more = {"groups": groups[a:b]} if unit == "group" else {}
            return monitor.observe(y[a:b], p[a:b], time=1, by={"site": site[a:b]}, **more)

        whole.add(rows(0, 300, whole))
        shards = [rows(200, 300, parts), rows(0, 120, parts), rows(120, 200, parts)]
        stored = [Breakdown.from_bytes(shard.to_bytes()) for shard in shards]
        parts.add(stored[0].merge(stored[1]).merge(stored[2]))
        near(whole, parts)
        assert whole.evidence == pytest.approx(parts.evidence, rel=1e-9)


@pytest.mark.parametrize("grouped", [False, True])
def test_scanned_predictions_say_what_arrays_say(grouped):
    rng = np.random.default_rng(7)
    y, p = draw(rng, 400)
    day, site = np.arange(400) // 100, np.array(["u", "v"])[rng.integers(0, 2, 400)]
    patient = rng.integers(0, 60, 400)
    columns = {"label": y, "day": day, "site": site, "patient": patient}
    table = pa.table({**columns, **{f"p_{i}": p[:, i] for i in range(3)}})
    more = {"groups": "patient"} if grouped else {}
    handle = vx.scan(table, target="label", by=["day", "site"], **more)
    unit = "group" if grouped else None
    ours, theirs = (vx.Monitor(0.5, by="site", unit=unit) for _ in range(2))
    theirs.update(handle, time="day")
    for each in range(4):
        own = day == each
        given = {"groups": patient[own]} if grouped else {}
        ours.update(y[own], p[own], time=each, by={"site": site[own]}, **given)
    near(ours, theirs)
    assert ours.evidence == pytest.approx(theirs.evidence, rel=1e-9)


def test_top_lists_are_monitored_by_their_answers():
    rng = np.random.default_rng(9)
    monitor = vx.Monitor(0.8)
    for day in range(30):
        y, p = draw(rng, 200, k=6, spread=0.4)
        y = y if day < 5 else rng.integers(0, 6, 200)
        if monitor.update(y, vx.TopLists.from_probabilities(p, 3), time=day) is not None:
            break
    assert day >= 5
    assert set(monitor.history.lines[0].events) == {"most likely class", "any listed class"}


def test_compiled_sums_are_those_of_array_calls(change):
    rng = np.random.default_rng(10)
    y, p = draw(rng, 5000)
    by = {"site": rng.integers(0, 3, 5000)}
    w = rng.random(5000)
    found = []
    for limit in (2**60, 1):
        change(compiled_from=limit)
        for more in ({}, {"weights": w}):
            monitor = vx.Monitor(0.5, by="site")
            monitor.update(y, p, time=0, by=by, **more)
            found.append(monitor)
    near(found[0], found[2])
    near(found[1], found[3])
    assert found[0].evidence == pytest.approx(found[2].evidence, rel=1e-9)


@pytest.mark.parametrize("ordered", [False, True])
def test_days_that_follow_each_other_are_summed_as_they_are_one_by_one(change, ordered):
    change(compiled_at_once=1)
    rng = np.random.default_rng(25)
    y, p = draw(rng, 3000, k=4)
    day = np.repeat([1, 2, 5], [700, 1300, 1000])
    found = []
    for limit in (2**60, 1):
        change(compiled_from=limit)
        monitor = vx.Monitor(0.2, ordered=ordered)
        monitor.update(y, p, time=day)
        found.append(monitor)
    near(*found)
    assert found[0].evidence == pytest.approx(found[1].evidence, rel=1e-11)
    stored = [np.array([step.second for step in m._state.periods[1].steps.values()]) for m in found]
    assert np.allclose(*stored, rtol=1e-12)


def test_many_classes_need_little_memory():
    rng = np.random.default_rng(26)
    p = rng.dirichlet(np.ones(1000), 200)
    monitor = vx.Monitor(0.99)
    monitor.update(rng.integers(0, 1000, 200), p, time=1)
    expected = monitor.history.lines[0].expected_loss
    assert expected == pytest.approx(float(np.mean(1 - (p * p).sum(axis=1))), rel=0.01)


def test_ordered_classes_are_monitored_by_thresholds():
    rng = np.random.default_rng(11)
    monitor = vx.Monitor(ordered=True)
    monitor.update(*draw(rng, 50), time=0, classes=None)
    assert monitor.rule == vx.rps
    assert list(monitor.history.lines[0].events) == ["most likely class", "> 0", "> 1"]


# ---- state ---------------------------------------------------------------------------------------------


def test_a_saved_monitor_goes_on_as_if_nothing_had_happened(tmp_path):
    rng = np.random.default_rng(12)
    kept, saved = (vx.Monitor(0.5, by="site", false_alarms="rate") for _ in range(2))
    for day in range(6):
        y, p = draw(rng, 60)
        by = {"site": np.array(["a", "b"])[rng.integers(0, 2, 60)]}
        time = date(2026, 3, 1) + timedelta(day)
        for monitor in (kept, saved):
            monitor.update(y, p, time=time, by=by)
        saved.save(tmp_path / "model.state")
        saved = vx.Monitor.load(tmp_path / "model.state")
    alike(kept, saved)
    assert kept.to_bytes() == saved.to_bytes()


def test_damaged_and_foreign_state_is_refused_with_its_name(tmp_path):
    monitor = vx.Monitor(0.5)
    monitor.update([0, 1], [[0.5, 0.5], [0.2, 0.8]], time=1)
    stored = monitor.to_bytes()
    path = tmp_path / "model.state"
    for content in (stored[:-3], stored[:60] + b"?" + stored[61:], b"nothing"):
        path.write_bytes(content)
        with pytest.raises(vx.InputError, match=r"model\.state"):
            vx.Monitor.load(path)
    vx.evaluate([0, 1], [0.2, 0.8]).save(path)
    with pytest.raises(vx.InputError, match="must hold a monitor"):
        vx.Monitor.load(path)


# ---- late outcomes -----------------------------------------------------------------------------------------


def test_late_outcomes_enter_when_they_come():
    rng = np.random.default_rng(13)
    late, direct = vx.Monitor(0.5), vx.Monitor(0.5)
    for day in range(5):
        y, p = draw(rng, 40)
        names = [f"{day}-{i}" for i in range(40)]
        late.predict(p, names, time=day)
        assert late.pending == 40
        assert 0 < late.expected_loss < 1
        late.outcomes(names, y, time=day)
        direct.update(y, p, time=day)
    near(late, direct)
    assert late.pending == 0
    assert math.isnan(late.expected_loss)
    # Given again: nothing changes. Another outcome: an error.
    before = late.to_bytes()
    late.outcomes(names, y, time=9)
    assert late.to_bytes() == before
    with pytest.raises(vx.InputError, match="must not change the outcome"):
        late.outcomes(names[:1], [(y[0] + 1) % 3], time=9)
    with pytest.raises(vx.InputError, match="'x' is not known"):
        late.outcomes(["x"], [0], time=9)
    with pytest.raises(vx.InputError, match="must be new rows"):
        late.predict(p[:1], names[:1])
    assert late.to_bytes() == before


def test_late_outcomes_keep_their_groups_weights_and_subgroups():
    rng = np.random.default_rng(21)
    y, p = draw(rng, 60)
    groups, weights = np.arange(60) // 3, rng.random(60)
    site, names = np.array(["a", "b"])[rng.integers(0, 2, 60)], np.arange(60)
    late, direct = (vx.Monitor(0.5, by="site") for _ in range(2))
    late.predict(p, names, time=date(2026, 1, 1), by={"site": site}, groups=groups, weights=weights)
    late.predict(p[:5], names[:5], by={"site": site[:5]})
    late = vx.Monitor.from_bytes(late.to_bytes())
    with pytest.raises(vx.InputError, match="must not change the forecast"):
        late.predict(p[1:2], names[:1], by={"site": site[:1]})
    day = np.where(names < 30, "2026-01-02", "2026-01-03").astype("datetime64[D]")
    late.outcomes(names, y, time=day)
    direct.update(y, p, time=day, by={"site": site}, groups=groups, weights=weights)
    near(late, direct)
    assert late.unit == "time"
    assert late.evidence == pytest.approx(direct.evidence, rel=1e-9)


def some_lists(p, kind):
    """The three most likely of five classes: by position, or by name, of all classes or of those listed."""
    if kind == "positions":
        return vx.TopLists.from_probabilities(p, 3), np.arange(5)
    rows = [{"abcde"[k]: row[k] for k in np.argsort(-row)[:3]} for row in p]
    names = {"names": list("abcde")} if kind == "complete" else {}
    return vx.TopLists.from_dicts(rows, n_classes=5, **names), np.array(list("abcde"))


@pytest.mark.parametrize(
    ("kind", "beside"), [("positions", "groups"), ("named", "weights"), ("complete", "")]
)
def test_outcomes_of_top_lists_may_come_late(kind, beside):
    rng = np.random.default_rng(22)
    y, p = draw(rng, 40, k=5, spread=0.5)
    lists, names = some_lists(p, kind)
    y, site = names[y], np.array(["a", "b"])[rng.integers(0, 2, 40)]
    more = {"groups": np.arange(40) // 4, "weights": rng.random(40)}
    more = {beside: more[beside]} if beside else {}
    late, direct = (vx.Monitor(0.6, by="site") for _ in range(2))
    for own in (slice(0, 15), slice(15, 40)):
        told = {name: column[own] for name, column in more.items()}
        late.predict(lists[own], np.arange(40)[own], time=1, by={"site": site[own]}, **told)
    late.predict(lists[:5], np.arange(5), by={"site": site[:5]})
    late = vx.Monitor.from_bytes(late.to_bytes())
    padded = lists.largest_valid().padded() if kind != "named" else None
    if padded is not None and not lists.n_invalid:
        assert late.expected_loss == pytest.approx(float(np.mean(vx.brier.entropy(padded))), rel=1e-9)
    before = late.to_bytes()
    with pytest.raises(vx.InputError, match="must not change the forecast"):
        late.predict(lists[1:2], [0], by={"site": site[:1]})
    with pytest.raises(vx.InputError, match="classes that the monitor began with"):
        late.predict(p[:1], [99], by={"site": site[:1]})
    assert late.to_bytes() == before
    for time, own in ((2, np.arange(3, 40, 2)), (3, np.setdiff1d(np.arange(40), np.arange(3, 40, 2)))):
        late.outcomes(own, y[own], time=time)
        late = vx.Monitor.from_bytes(late.to_bytes())
        told = {name: column[own] for name, column in more.items()}
        direct.update(y[own], lists[own], time=time, by={"site": site[own]}, **told)
    near(late, direct)
    assert late.evidence == pytest.approx(direct.evidence, rel=1e-9)
    assert late.pending == 0


def test_the_votes_of_several_raters_may_come_late():
    rng = np.random.default_rng(23)
    votes, p = rng.multinomial(3, [0.2, 0.3, 0.5], 30), draw(rng, 30)[1]
    late, direct = vx.Monitor(0.5), vx.Monitor(0.5)
    late.predict(p, np.arange(30))
    late.outcomes(np.arange(30), votes, time=1, raters="counts")
    direct.update(votes, p, time=1, raters="counts")
    near(late, direct)
    assert late.n_rows == direct.n_rows == 30
    late.outcomes(np.arange(5), votes[:5].astype(float), time=1, raters="counts")
    with pytest.raises(vx.InputError, match="must not change the outcome"):
        late.outcomes([0], votes[:1] + 1, time=2, raters="counts")


def test_classes_that_are_numbers_need_not_count_from_zero():
    rng = np.random.default_rng(24)
    y, p = draw(rng, 20)
    monitor = vx.Monitor(0.5)
    monitor.predict(p, np.arange(20), classes=[1, 2, 3])
    monitor.outcomes(np.arange(20), y + 1, time=1)
    assert monitor.history.lines[0].loss == pytest.approx(vx.brier(y, p))


def test_rows_known_by_name_are_taken_in_once():
    rng = np.random.default_rng(14)
    y, p = draw(rng, 30)
    names = np.arange(30)
    twice, once = vx.Monitor(0.5), vx.Monitor(0.5)
    twice.update(y[:20], p[:20], time=0, ids=names[:20])
    twice.update(y, p, time=1, ids=names)
    once.update(y[:20], p[:20], time=0)
    once.update(y[20:], p[20:], time=1)
    near(twice, once)


def test_outcomes_that_are_late_because_of_what_they_are_get_a_caution():
    rng = np.random.default_rng(15)
    monitor = vx.Monitor()
    held = []
    for day in range(30):
        y, p = draw(rng, 30, k=2)
        names = np.array([100 * day + i for i in range(30)])
        monitor.predict(p, names)
        wrong = p[np.arange(30), y] < 0.5
        monitor.outcomes(names[~wrong], y[~wrong], time=day)
        held.append((names[wrong], y[wrong]))
        if day >= 3:
            monitor.outcomes(*held[day - 3], time=day)
    assert "Losses are larger where outcomes came later" in monitor.lateness


# ---- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: vx.Monitor(-1.0), "must be a positive number"),
        (lambda: vx.Monitor(0.5, alpha=0), "between 0 and 1"),
        (lambda: vx.Monitor(0.5, unit="day"), "unit"),
        (lambda: vx.Monitor(vx.evaluate([0, 1, 1] * 9, [0.2, 0.8, 0.7] * 9), rule="rps"), "must have rps"),
        (
            lambda: vx.Monitor(vx.evaluate([0, 1, 1] * 9, [0.2, 0.8, 0.7] * 9), alpha=0.02),
            "larger than the error of the reference interval",
        ),
    ],
)
def test_settings_that_cannot_hold_are_refused(make, message):
    with pytest.raises(vx.InputError, match=message):
        make()


def test_bad_rows_are_refused_and_change_nothing():
    monitor = vx.Monitor(0.5)
    monitor.update([0, 1], [0.2, 0.8], time=5)
    before = monitor.to_bytes()
    refused = [
        ({"y": [0], "p": [0.2], "time": 4}, "must not go back"),
        ({"y": [0], "p": [0.2], "time": "monday"}, "must be of one kind"),
        ({"y": [0], "p": [[0.2, 0.3, 0.5]], "time": 6}, "classes that the monitor began with"),
        ({"y": [0], "p": [1.2], "time": 6}, "p"),
        ({"y": [0], "p": [0.2], "time": 6, "by": {"site": ["a"]}}, "must name no subgroups"),
        ({"y": [0, 1], "p": [0.2, 0.3], "time": [6]}, "one value per row"),
        ({"y": [0, 1], "p": [0.2, 0.3], "time": 6, "ids": ["a", "a"]}, "repeats"),
    ]
    for given, message in refused:
        with pytest.raises(vx.InputError, match=message):
            monitor.update(**given)
        assert monitor.to_bytes() == before


def test_infinite_losses_are_capped_and_raise_an_alarm():
    monitor = vx.Monitor(0.5, rule="log_score")
    for day in range(40):
        monitor.update([1, 0], [0.0, 0.1], time=day)
    assert monitor.alarm is not None
    assert math.isfinite(monitor.history.lines[0].loss)


def test_the_figure_shows_losses_and_evidence():
    monitor = vx.Monitor(0.3)
    rng = np.random.default_rng(0)
    for day in range(12):
        monitor.update(rng.integers(0, 2, 50), rng.random(50), time=date(2026, 1, 1) + timedelta(day))
    losses, evidence = monitor.plot().axes
    assert losses.get_ylabel() == "mean brier"
    assert evidence.get_yscale() == "log"
    assert monitor.alarm is not None


def test_recipes_travel():
    assert StepRecipe.makes is Breakdown


def test_times_of_invalid_rows_are_left_out_with_them():
    p = np.linspace(0.1, 0.9, 40)
    p[7] = np.nan
    y, day = (np.arange(40) % 3 == 0).astype(int), np.arange(40) // 10
    kept, found = (vx.Monitor() for _ in range(2))
    found.update(y, p, time=day, invalid="skip")
    kept.update(np.delete(y, 7), np.delete(p, 7), time=np.delete(day, 7))
    assert found.history.to_dict() == kept.history.to_dict()
    found.update(y, p, time=4, invalid="skip")
    assert found.n_rows == 78


def test_raters_of_a_case_are_not_independent_rows():
    counts, p = np.array([[2, 1], [0, 3], [1, 1], [3, 0]]), np.full((4, 2), 0.5)
    monitor = vx.Monitor(reference=0.5)
    monitor.update(counts, p, time=[1, 1, 2, 2], raters="counts")
    assert monitor.unit == "time"
    with pytest.raises(vx.InputError, match="rows enter one by one") as caught:
        vx.Monitor(reference=0.5, unit="row").update(counts, p, time=1, raters="counts")
    assert caught.value.argument == "raters"


def test_rows_of_a_handle_enter_as_they_depend_on_each_other(tmp_path):
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(2), 40)
    table = {"p_a": p[:, 0], "p_b": p[:, 1], "day": np.zeros(40, int), "who": np.arange(40) // 4}
    table |= {"y": np.where(rng.random(40) < 0.5, "a", "b"), "w": np.arange(40) % 3 + 1.0}
    table |= {"r1": table["y"], "r2": table["y"][::-1].copy()}
    frame = pa.table(table)
    given = {"probs": "p_*", "by": "day"}
    weighted, rated = {"weights": "w", "target": "y"}, {"raters": ["r1", "r2"]}
    for columns, argument in ((weighted, "weights"), (rated, "raters")):
        rows = vx.scan(frame, **columns, **given)
        with pytest.raises(vx.InputError) as refused:
            vx.Monitor(0.5, rule="brier", unit="row").update(rows, time="day")
        assert refused.value.argument == argument
        watched = vx.Monitor(0.5, rule="brier")
        watched.update(rows, time="day")
        # The variance of weighted rows is not known; raters of a case are one unit.
        assert watched.history.lines[0].interval.defined == (argument == "raters")
    rows = vx.scan(frame, target="y", groups="who", **given)
    watched = vx.Monitor(0.5, rule="brier", unit="group")
    watched.update(rows, time="day")
    assert watched.n_rows == 40
    with pytest.raises(vx.InputError, match="groups enter one by one"):
        vx.Monitor(0.5, rule="brier", unit="group").update(vx.scan(frame, target="y", **given), time="day")


# ---- what alarms may say, and what they assume ------------------------------------------------------------


@pytest.mark.parametrize("events", [0, 1, 3, 10])
def test_the_reference_is_bounded_above_where_few_events_happened(events):
    # No valid bound lies below that of Clopper and Pearson by more than their discreteness.
    y, p = np.arange(60) < events, np.full(60, 0.02)
    bound = vx.Monitor(vx.evaluate(y, p, rules=["zero_one"]), rule="zero_one").settings.reference
    exact = beta.ppf(0.975, events + 1, 60 - events)
    assert exact < bound < exact + 0.25
    with pytest.raises(vx.InputError, match="rows enough to bound the mean loss"):
        vx.Monitor(vx.evaluate(y[-2:], p[-2:], rules=["zero_one"]), rule="zero_one")


def test_the_reference_of_groups_is_bounded_by_groups():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(40), 25)
    y = (rng.random(40) < 0.1)[groups].astype(int)
    card = vx.evaluate(y, np.full(1000, 0.1), groups=groups, rules=["zero_one"])
    bound = vx.Monitor(card, rule="zero_one").settings.reference
    # Groups are all right or all wrong, so that forty of them tell as much as forty rows.
    assert bound > beta.ppf(0.975, y.sum() // 25 + 1, 40 - y.sum() // 25)


def test_cautions_of_the_reference_are_those_of_the_monitor(tmp_path):
    card = vx.evaluate((np.arange(60) < 1).astype(int), np.full(60, 0.02), rules=["brier"])
    caution = card.scores["brier"].interval.caution
    assert caution.startswith("heavy tails")
    monitor = vx.Monitor(card, rule="brier")
    monitor.update([0, 1], [0.2, 0.8], time=1)
    for each in (monitor, vx.Monitor.from_bytes(monitor.to_bytes())):
        assert each.cautions == (f"Caution about the reference: {caution}.",)
        assert each.to_dict()["cautions"] == list(each.cautions)
    assert escape(caution) in monitor_page(monitor)
    monitor.acknowledge(0.5)
    assert monitor.cautions == ()


def together(rng, n=100, rho=0.1):
    """Calibrated forecasts whose outcomes share a part of what is behind them."""
    p = rng.uniform(0.1, 0.9, n)
    shared, own = rng.normal(), rng.normal(size=n)
    return (norm.cdf(np.sqrt(rho) * shared + np.sqrt(1 - rho) * own) < p).astype(int), p


def test_rows_of_a_step_that_depend_on_each_other_raise_no_alarm():
    alarms = {"row": 0, None: 0}
    for seed, unit in itertools.product((2, 7, 12), alarms):
        rng, monitor = np.random.default_rng(seed), vx.Monitor(unit=unit)
        for day in range(25):
            monitor.update(*together(rng), time=day)
        alarms[unit] += monitor.alarm is not None
        (caution, *_) = monitor.cautions
        assert caution.startswith("Rows of a time step depend on each other (intraclass correlation 0.")
        assert ("alarms allow for it" in caution) == (unit is None)
        assert ("alarms assume that they do not" in caution) == (unit == "row")
    assert alarms == {"row": 3, None: 0}


def test_a_subgroup_that_has_always_been_harder_raises_no_alarm():
    rng, monitor = np.random.default_rng(3), vx.Monitor(0.3, rule="brier", by="site", unit="row")
    for day in range(30):
        site = np.arange(200) % 2
        p = np.where(site == 1, rng.uniform(0.3, 0.7, 200), rng.uniform(0.02, 0.1, 200))
        monitor.update(rng.random(200) < p, p, time=day, by={"site": site})
    assert monitor.alarm is None


def test_a_subgroup_that_appears_late_is_named():
    rng, monitor = np.random.default_rng(6), vx.Monitor(by="site")
    for day in range(60):
        y, p = draw(rng, 600)
        new = (np.arange(600) < 20) & (day >= 12)
        y = np.where(new, 0, y)
        if monitor.update(y, p, time=day, by={"site": np.where(new, "new", "old")}) is not None:
            break
    assert 12 <= day < 50
    assert ("site", "new") in {target[:2] for target in monitor.alarm.targets}
    assert ("site", "old") not in {target[:2] for target in monitor.alarm.targets}


@pytest.mark.parametrize("seed", range(4))
def test_a_shift_of_class_frequencies_is_not_called_a_change_of_one_class(seed):
    rng, monitor = np.random.default_rng([3, seed]), vx.Monitor(unit="row")
    for day in range(60):
        p = rng.dirichlet([1.2] * 3, 100)
        q = p * ([1, 1, 1] if day < 5 else [0.5, 1, 2])
        y = np.minimum(
            ((q / q.sum(axis=1, keepdims=True)).cumsum(axis=1) <= rng.random((100, 1))).sum(axis=1), 2
        )
        if monitor.update(y, p, time=day) is not None:
            break
    said = monitor.verdict
    assert "one class" not in said.lower()
    assert "“0” are too low" not in said
    assert "“2” are too high" not in said
    named = {name for _, _, name in monitor.alarm.targets} - {"most likely class"}
    assert ("others may have changed as well" in said) == (monitor.alarm.located and len(named) < 3)


def test_a_direction_that_is_not_certain_is_not_named():
    ledger = Ledger(("a", "b"), with_loss=False, columns=(), restarts=False, unit="row")
    ledger.capital["", None] = own = UnitBets.fresh(2, 1.0, restarts=False)
    own.events[0, 0] += np.log(400)
    own.events[1] += np.log(30)
    assert ledger.directions(20) == {("", None, "a"): "too low"}
    assert [target[2] for target, _ in ledger.against(20)] == ["a", "b"]


# ---- times, names, threads and states ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("time", "message"),
    [
        *((each, "must be finite numbers, dates or texts") for each in (math.nan, None, True, math.inf)),
        (np.datetime64("NaT", "D"), "must be finite numbers, dates or texts"),
        ([1.0, math.nan], "row 1 has nan"),
        ([date(2026, 1, 1), None], "row 1 has None"),
        *((each, "not in order as texts") for each in ("12/30/2025", "31.12.2025", "2026-1-5", "5 Jan 2026")),
    ],
)
def test_times_without_a_place_in_an_order_are_refused(time, message):
    monitor = vx.Monitor(0.5)
    before = monitor.to_bytes()
    with pytest.raises(vx.InputError, match=re.escape(message)):
        monitor.update([0, 1], [0.2, 0.8], time=time)
    assert monitor.to_bytes() == before
    # The times of forecasts are not compared with each other, and need not be known.
    if time is not None and "day 9" not in str(time):
        with pytest.raises(vx.InputError, match=re.escape(message)):
            monitor.predict([0.2, 0.8], [1, 2], time=time)


def test_texts_without_an_order_are_refused():
    monitor = vx.Monitor(0.5)
    before = monitor.to_bytes()
    with pytest.raises(vx.InputError, match="as texts, 'day 10' comes before 'day 9'"):
        monitor.update([0, 1] * 2, [0.2, 0.8] * 2, time=["day 9", "day 9", "day 10", "day 10"])
    assert monitor.to_bytes() == before


def test_texts_in_order_are_times():
    monitor = vx.Monitor(0.5)
    for time in ("2026-01-09", "2026-01-10", "2026-01-11T00:00"):
        monitor.update([0, 1], [0.2, 0.8], time=time)
    with pytest.raises(vx.InputError, match="of one kind"):
        monitor.update([0, 1], [0.2, 0.8], time="2026-01-11T08:00")
    with pytest.raises(vx.InputError, match="looks like a date"):
        monitor.update([0, 1], [0.2, 0.8], time="2026-01-9")


def test_outcomes_do_not_come_before_their_forecasts():
    monitor = vx.Monitor(0.5)
    monitor.predict([0.2, 0.8], ["a", "b"], time=date(2026, 1, 5))
    before = monitor.to_bytes()
    with pytest.raises(vx.InputError, match="'a' has its outcome before its forecast"):
        monitor.outcomes(["a"], [0], time=date(2026, 1, 4))
    assert monitor.to_bytes() == before
    monitor.outcomes(["a"], [0], time=date(2026, 1, 5))
    assert monitor.n_rows == 1


def test_classes_come_with_the_first_rows_and_in_their_order():
    p, named = [[0.2, 0.8], [0.6, 0.4]], {"classes": ["x", "z"]}
    monitor = vx.Monitor(0.5)
    monitor.update([0, 1], p, time=1)
    table = {"label": ["x", "z"], "p_x": [0.2, 0.6], "p_z": [0.8, 0.4], "day": [2, 2]}
    with pytest.raises(vx.InputError, match="earlier rows had positions only; now there are 'x' and 'z'"):
        monitor.update(vx.scan(pd.DataFrame(table), by="day"), time="day")
    monitor.update(["x", "z"], p, time=2, **named)
    assert monitor.classes == ("x", "z")
    assert "z" in monitor.history.events
    monitor = vx.Monitor(0.5)
    monitor.update(["x", "z"], p, time=1, **named)
    with pytest.raises(vx.InputError, match="must be in the order that the monitor began with"):
        monitor.update(["x", "z"], p, time=2, classes=["z", "x"])
    monitor.update([0, 1], p, time=2)
    assert monitor.classes == ("x", "z")


def test_labels_of_subgroups_must_be_named():
    monitor = vx.Monitor(by="site")
    monitor.update([0], [0.2], time=1, by={"site": ["a"]}, ids=["x"])
    for ids in (None, ["x", "z"]):
        with pytest.raises(vx.InputError, match=re.escape("Pass by={'site': labels}.")):
            monitor.update([0, 1], [0.2, 0.8], time=1, by=np.array(["a", "b"]), ids=ids)


def test_threads_lose_no_rows():
    rng, monitor = np.random.default_rng(5), vx.Monitor(0.5)
    batches = [(rng.integers(0, 2, 20), rng.random(20)) for _ in range(48)]
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda rows: monitor.update(*rows, time=1), batches))
    finally:
        sys.setswitchinterval(switch)
    assert monitor.n_rows == 960


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_has_a_state_of_its_own(copied):
    monitor = vx.Monitor(0.5)
    monitor.update([0, 1], [0.2, 0.8], time=1)
    other = copied(monitor)
    alike(monitor, other)
    other.update([0, 1], [0.2, 0.8], time=2)
    assert (monitor.n_rows, other.n_rows) == (2, 4)


def test_a_state_that_another_process_has_changed_is_not_replaced(tmp_path):
    path = tmp_path / "model.state"
    first = vx.Monitor(0.5)
    first.save(path)
    second = vx.Monitor.load(path)
    second.update([0, 1], [0.2, 0.8], time=1)
    second.save(path)
    second.save(path)
    kept = path.read_bytes()
    with pytest.raises(vx.InputError, match="must not have changed since this monitor was loaded"):
        first.save(path)
    assert path.read_bytes() == kept
    first.save(tmp_path / "other.state")


def test_rows_that_a_handle_names_are_taken_in_once():
    rng = np.random.default_rng(7)
    y, p = draw(rng, 60)
    names = np.array(["a", "b", "c"])
    columns = {"label": names[y], "day": np.arange(60) // 30, "case": np.arange(60)}
    table = pa.table({**columns, **{f"p_{c}": p[:, i] for i, c in enumerate(names)}})

    def handle(rows, table=table):
        return vx.scan(table.take(rows), target="label", by="day", id="case", classes=["a", "b", "c"])

    once, twice = vx.Monitor(0.5), vx.Monitor(0.5)
    once.update(handle(np.arange(60)), time="day")
    twice.update(handle(np.arange(40)), time="day")
    twice.update(handle(rng.permutation(60)), time="day")
    for ours, theirs in zip(once.history.lines, twice.history.lines, strict=True):
        assert (ours.n_rows, ours.loss) == (theirs.n_rows, pytest.approx(theirs.loss, rel=1e-12))
    before = twice.to_bytes()
    twice.update(handle(rng.permutation(60)), time="day")
    assert twice.to_bytes() == before
    # The same rows as arrays are known by the same names, and another outcome is an error.
    twice.update(names[y], p, time=1, ids=np.arange(60), classes=names)
    assert twice.n_rows == 60
    other = table.set_column(0, "label", pa.array(np.roll(names[y], 1)))
    with pytest.raises(vx.InputError, match="must not change the outcome of a row"):
        twice.update(handle(np.arange(60), other), time="day")
    with pytest.raises(vx.InputError, match="must be different in all rows"):
        vx.Monitor(0.5).update(handle([0, 1, 1]), time="day")
    with pytest.raises(vx.InputError, match="must not be given beside predictions that `scan` has opened"):
        twice.update(handle([0, 1]), time="day", ids=["x", "y"])


def test_a_state_of_an_earlier_version_goes_on():
    stored = lzma.decompress((Path(__file__).parents[2] / "saved" / "monitor-0.2.0.state.xz").read_bytes())
    monitor = vx.Monitor.from_bytes(stored)
    assert monitor.verdict.startswith("Alarm at 2026-01-07 in 480 rows from 2026-01-01 to 2026-01-08")
    assert (monitor.pending, monitor.classes, monitor.unit) == (20, ("a", "b", "c"), "time")
    assert monitor.settings.reference == pytest.approx(0.5364, abs=0.05)
    assert monitor.evidence == 1
    (caution,) = monitor.cautions
    assert "the evidence begins again" in caution
    monitor.outcomes([f"w{i}" for i in range(20)], ["a", "b"] * 10, time=date(2026, 1, 9))
    assert monitor.n_rows == 500
    alike(monitor, vx.Monitor.from_bytes(monitor.to_bytes()))
    with pytest.raises(vx.InputError, match="must not change the outcome"):
        monitor.outcomes(["w0"], ["b"], time=date(2026, 1, 9))
    monitor.acknowledge()
    assert monitor.alarm is None
    assert monitor.cautions == ()
