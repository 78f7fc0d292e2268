"""Rows with times of their own: joined into days, or what is stated, which count when they are over."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

import verax as vx
from verax.inputs.breakdown import Breakdown

START = np.datetime64("2026-03-01T00:00", "s")


def rows(n_days, per_day, seed=0, wrong_from=10**6):
    """Calibrated forecasts, each at its own second, in order; from a day on they are wrong."""
    rng = np.random.default_rng(seed)
    seconds = np.sort(rng.choice(86_400 * n_days, per_day * n_days, replace=False))
    p = rng.uniform(0.1, 0.9, len(seconds))
    right = seconds // 86_400 < wrong_from
    return (rng.random(len(p)) < np.where(right, p, 1 - p)).astype(int), p, START + seconds


def by_day(monitor):
    return [(line.time, line.n_rows) for line in monitor.history.lines]


def test_times_of_their_own_are_joined_into_days_which_count_when_they_are_over():
    y, p, time = rows(30, 60, wrong_from=15)
    whole, parts, stated = vx.Monitor(0.4), vx.Monitor(0.4), vx.Monitor(0.4, period="day")
    days = time.astype("datetime64[D]")
    whole.update(y, p, time=time)
    # Parts end in the middle of days; rows of a single day have times of their own as well.
    for some in np.array_split(np.arange(len(y)), 47):
        for monitor in (parts, stated):
            monitor.update(y[some], p[some], time=time[some])
        if parts.n_rows == 700:
            parts = vx.Monitor.from_bytes(parts.to_bytes())
    given = [(day, int((days == day).sum())) for day in np.unique(days).tolist()]
    for monitor in (whole, parts, stated):
        assert by_day(monitor) == given
        assert monitor.evidence == pytest.approx(whole.evidence, rel=1e-9)
        assert monitor.alarm.time == whole.alarm.time > date(2026, 3, 15)
    # The last day is not over: it is no evidence yet.
    told = vx.Monitor(0.4)
    before = days < days[-1]
    told.update(y[before], p[before], time=days[before])
    assert told.evidence == pytest.approx(whole.evidence, rel=1e-9)
    assert any("Rows have times of their own" in caution for caution in whole.cautions)
    assert not any("Rows have times of their own" in caution for caution in stated.cautions)


def test_rows_that_come_one_by_one_are_joined_too():
    y, p, time = rows(4, 20)
    single = vx.Monitor(0.4)
    for i in range(len(y)):
        single.update(y[i : i + 1], p[i : i + 1], time=time[i].item())
    assert [n for _, n in by_day(single)] == [
        int(n) for n in np.unique(time.astype("M8[D]"), return_counts=True)[1]
    ]
    dated = vx.Monitor(0.4)
    for i in range(40):
        dated.update(y[i : i + 1], p[i : i + 1], time=time[i].item().date())
    assert sum(n for _, n in by_day(dated)) == 40
    assert dated.history.lines[0].n_rows > 1


@pytest.mark.parametrize("texts", [False, True])
def test_a_handle_is_told_as_arrays_are(texts):
    y, p, time = rows(25, 40, wrong_from=10)
    column = time.astype(str) if texts else time
    table = pa.table({"label": y, "p_0": 1 - p, "p_1": p, "at": column})
    handle, array = vx.Monitor(0.4), vx.Monitor(0.4)
    handle.update(vx.scan(table, target="label", by="at"), time="at")
    array.update(y, p, time=column)
    assert by_day(handle) == by_day(array)
    assert len(by_day(array)) == 25
    assert handle.alarm.time == array.alarm.time
    assert handle.evidence == pytest.approx(array.evidence, rel=1e-9)


def test_parts_of_files_that_differ_in_their_times_are_joined_alike(tmp_path):
    y, p, time = rows(6, 30)
    # In the last file many rows share their times.
    time[120:] = time[120:].astype("M8[h]")
    for i, some in enumerate(np.array_split(np.arange(len(y)), 3)):
        lines = [f"{y[j]},{1 - p[j]:.6f},{p[j]:.6f},{time[j]}" for j in some]
        (tmp_path / f"part{i}.csv").write_text("\n".join(["label,p_0,p_1,at", *lines]))
    monitor = vx.Monitor(0.4)
    monitor.update(vx.scan(str(tmp_path / "part*.csv"), target="label", by="at"), time="at")
    assert [str(day) for day, _ in by_day(monitor)] == [f"2026-03-0{d}" for d in range(1, 7)]


def test_a_zone_says_when_days_begin():
    time = np.array(["2026-03-28T22:30", "2026-03-28T23:30", "2026-03-29T21:30", "2026-03-29T22:30"], "M8[s]")
    y, p = [0, 1, 0, 1], [0.2, 0.7, 0.3, 0.8]
    found = vx.Monitor(period="day", zone="Europe/Berlin")
    found.update(y, p, time=time)
    # Summer time begins on the 29th, which has 23 hours.
    assert by_day(found) == [(date(2026, 3, 28), 1), (date(2026, 3, 29), 2), (date(2026, 3, 30), 1)]
    plain = vx.Monitor(period="day")
    plain.update(y, p, time=time)
    assert by_day(plain) == [(date(2026, 3, 28), 2), (date(2026, 3, 29), 2)]
    assert found.to_dict()["zone"] == "Europe/Berlin"
    assert vx.Monitor.from_bytes(found.to_bytes()).settings == found.settings


@pytest.mark.parametrize(
    ("period", "steps"),
    [
        ("week", [date(2026, 2, 23), date(2026, 3, 2)]),
        ("hour", [datetime(2026, 3, 1), datetime(2026, 3, 1, 1)]),
    ],
)
def test_periods_of_the_calendar(period, steps):
    y, p, time = rows(9, 400)
    monitor = vx.Monitor(0.4, period=period)
    monitor.update(y, p, time=time)
    assert [step for step, _ in by_day(monitor)][:2] == steps
    assert any("Hours of one day" in caution for caution in monitor.cautions) == (period == "hour")


def test_numbers_are_joined_by_a_width_or_refused():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 60), rng.random(60)
    monitor = vx.Monitor(period=25)
    monitor.update(y, p, time=np.arange(60))
    assert by_day(monitor) == [(0.0, 25), (25.0, 25), (50.0, 10)]
    plain = vx.Monitor()
    before = plain.to_bytes()
    with pytest.raises(
        vx.InputError, match=r"most of the 60 times belong to a single row.*period=.*unit='row'"
    ):
        plain.update(y, p, time=np.arange(60))
    assert plain.to_bytes() == before
    vx.Monitor(unit="row").update(y, p, time=np.arange(60))
    # What is stated for each call is a step.
    plain.update(y[:1], p[:1], time=3)
    assert plain.history.lines[0].n_rows == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"period": "month"}, "period"),
        ({"period": 0}, "'hour', 'day', 'week' or a positive number"),
        ({"period": True}, "period"),
        ({"zone": "Mars/Olympus"}, "must be a time zone that this system knows"),
        ({"zone": 3}, "must be a time zone that this system knows"),
    ],
)
def test_periods_and_zones_that_are_none_are_refused(options, message):
    with pytest.raises(vx.InputError, match=message):
        vx.Monitor(**options)


@pytest.mark.parametrize(
    ("period", "time", "message"),
    [
        ("day", 3, "must be dates or datetimes"),
        ("week", "spring", "the first is 'spring'"),
        (7, date(2026, 1, 1), "for times that are not numbers"),
    ],
)
def test_times_without_such_a_period_are_refused(period, time, message):
    monitor = vx.Monitor(period=period)
    before = monitor.to_bytes()
    with pytest.raises(vx.InputError, match=message):
        monitor.update([0, 1], [0.2, 0.8], time=time)
    assert monitor.to_bytes() == before


def test_shards_of_a_day_merge_while_it_waits():
    y, p, time = rows(3, 50)
    one, other = vx.Monitor(0.4, period="day"), vx.Monitor(0.4, period="day")
    one.update(y, p, time=time)
    shards = [other.observe(y[i::3], p[i::3], time=time[i::3]) for i in (2, 0, 1)]
    other.add(Breakdown.from_bytes(shards[0].to_bytes()).merge(shards[1]).merge(shards[2]))
    assert by_day(one) == by_day(other)
    assert one.evidence == pytest.approx(other.evidence, rel=1e-9)


def test_later_rows_of_a_step_that_was_bet_on_are_counted_and_no_evidence():
    y, p, _ = rows(4, 50)
    monitor = vx.Monitor(0.4)
    for day in range(3):
        monitor.update(y[:50], p[:50], time=day)
    before = monitor.evidence
    monitor.update(y[50:80], p[50:80], time=2)
    assert (monitor.n_rows, monitor.evidence) == (180, before)
    (caution,) = (each for each in monitor.cautions if "cannot be bet on" in each)
    assert caution.startswith("30 rows came after bets on the time step were made")
    assert vx.Monitor.from_bytes(monitor.to_bytes()).cautions == monitor.cautions
    by_row = vx.Monitor(0.4, unit="row")
    for day in (1, 2, 2):
        by_row.update(y[:50], p[:50], time=day)
        assert by_row.evidence != before
        before = by_row.evidence
    assert by_row.cautions == ()


def test_outcomes_that_come_late_wait_for_the_end_of_their_day():
    y, p, time = rows(5, 40, wrong_from=0)
    late, direct = vx.Monitor(0.4, period="day"), vx.Monitor(0.4, period="day")
    late.predict(p, np.arange(len(y)), time=START.item())
    for some in np.array_split(np.arange(len(y)), 9):
        late.outcomes(some, y[some], time=time[some])
    direct.update(y, p, time=time)
    assert by_day(late) == by_day(direct)
    assert late.evidence == pytest.approx(direct.evidence, rel=1e-9)
    assert late.evidence > 1


def test_days_begin_again_after_an_alarm():
    y, p, time = rows(60, 40, wrong_from=20)
    monitor = vx.Monitor(0.4)
    for day in range(60):
        some = (time >= START + np.timedelta64(day, "D")) & (time < START + np.timedelta64(day + 1, "D"))
        if monitor.update(y[some], p[some], time=time[some]) is not None:
            break
    assert monitor.alarm.time == (START.item() + timedelta(days=day - 1)).date()
    monitor.acknowledge(0.9)
    assert monitor.evidence == 1
    later = time >= START + np.timedelta64(day + 1, "D")
    monitor.update(y[later], p[later], time=time[later])
    assert monitor.n_rows == len(y)
    assert len(monitor.history.lines) == 60
