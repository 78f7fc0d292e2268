"""A day is one day in every spelling, and kinds of times are not mixed."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

import verax as vx
from verax.common.times import by_value, refuse_ambiguous, with_zones

BERLIN = ZoneInfo("Europe/Berlin")
DAYS = pd.Series(pd.date_range("2026-03-05", periods=3))
SPELLINGS = {
    "dates": DAYS.dt.date,
    "date texts": DAYS.dt.strftime("%Y-%m-%d"),
    "datetimes": list(DAYS.dt.to_pydatetime()),
    "timestamps": DAYS,
    "days of numpy": DAYS.to_numpy().astype("datetime64[D]"),
    "nanoseconds of numpy": DAYS.to_numpy().astype("datetime64[ns]"),
    "timestamps with UTC": DAYS.dt.tz_localize("UTC"),
    "timestamps with a zone": DAYS.dt.tz_localize(BERLIN),
    "polars with a zone": pl.Series(DAYS).dt.replace_time_zone("Europe/Berlin"),
    "arrow with a zone": pa.array(DAYS.dt.tz_localize("Europe/Berlin")),
    "datetimes with a zone": [day.replace(tzinfo=BERLIN) for day in DAYS.dt.to_pydatetime()],
    "texts without a zone": DAYS.dt.strftime("%Y-%m-%dT%H:%M:%S"),
    "texts with a blank": DAYS.dt.strftime("%Y-%m-%d %H:%M"),
    "texts with Z": DAYS.dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "texts with an offset": DAYS.dt.strftime("%Y-%m-%dT%H:%M:%S+01:00"),
    "texts of arrow": DAYS.dt.strftime("%Y-%m-%d %H:%M:%S.000000000+0100"),
}


def rows(n=30):
    rng = np.random.default_rng(2)
    p = rng.uniform(0.1, 0.9, 3 * n)
    return (rng.random(3 * n) < p).astype(int), p


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_day_is_one_day_in_every_spelling(spelling):
    values, kind = by_value(np.asarray(with_zones(SPELLINGS[spelling])))
    assert (kind, values.tolist()) == ("day", [date(2026, 3, 5), date(2026, 3, 6), date(2026, 3, 7)])


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_monitor_takes_in_a_day_once_in_every_spelling(spelling):
    y, p = rows()
    monitor, code = vx.Monitor(rule="brier", unit="row"), np.repeat(np.arange(3), 30)
    monitor.update(y, p, time=DAYS.dt.strftime("%Y-%m-%d").to_numpy()[code])
    column = SPELLINGS[spelling]
    times = column.take(pa.array(code)) if isinstance(column, pa.Array) else [*column]
    times = times if isinstance(column, pa.Array) else [times[i] for i in code]
    times = type(column)(times) if isinstance(column, (pd.Series, pl.Series)) else times
    # The last day goes on, and the others are over.
    last = [i for i in range(90) if code[i] == 2]
    some = times.take(pa.array(last)) if isinstance(times, pa.Array) else [list(times)[i] for i in last]
    monitor.update(y[last], p[last], time=some)
    assert [line.time for line in monitor.history.lines] == [date(2026, 3, day) for day in (5, 6, 7)]
    assert [line.n_rows for line in monitor.history.lines] == [30, 30, 60]
    with pytest.raises(vx.errors.InputError, match="must not go back"):
        monitor.update(y, p, time=times)


@pytest.mark.parametrize(
    "kind", ["date32", "timestamp[s]", "timestamp[ns]", "UTC", "Europe/Berlin", "text", "csv"]
)
def test_files_write_a_day_in_any_type(tmp_path, kind):
    y, p = rows(1)
    column = pa.array(list(DAYS.dt.date))
    if kind.startswith("timestamp"):
        column = column.cast(pa.timestamp(kind[10:-1]))
    elif kind in ("UTC", "Europe/Berlin"):
        column = pa.array(DAYS.dt.tz_localize(kind))
    elif kind in ("text", "csv"):
        column = pa.array(DAYS.dt.strftime("%Y-%m-%d %H:%M:%S"))
    table = pa.table({"day": column, "label": y, "p_0": 1 - p, "p_1": p})
    papq.write_table(table, tmp_path / "a.parquet")
    if kind == "csv":
        table.to_pandas().to_csv(tmp_path / "a.csv", index=False)
    monitor = vx.Monitor(rule="brier", unit="row")
    monitor.update(vx.scan(tmp_path / ("a.csv" if kind == "csv" else "a.parquet"), by="day"), time="day")
    assert [line.time for line in monitor.history.lines] == list(DAYS.dt.date)


@pytest.mark.parametrize(
    ("column", "kinds"),
    [
        (["2026-03-05", "2026-03-05T10:00"], ("a day", "a time without a zone")),
        (["2026-03-05T10:00", "2026-03-05T10:00Z"], ("without a zone", "with a zone")),
        (["2026-03-05", "yesterday"], ("a day", "a text")),
        ([date(2026, 3, 5), datetime(2026, 3, 5, 10, tzinfo=UTC)], ("a day", "with a zone")),
        ([date(2026, 3, 5), 7], ("a day", "a number")),
    ],
)
def test_mixed_kinds_are_refused_with_a_row_of_each(column, kinds):
    values = np.empty(2, object)
    values[:] = column
    with pytest.raises(vx.errors.InputError, match="of one kind") as refused:
        by_value(values)
    assert refused.value.rows == (0, 1)
    assert all(words in str(refused.value) for words in kinds)


def test_instants_are_one_in_every_zone():
    for column in (
        ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"],
        ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"],
        [datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN), datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1)],
    ):
        values, kind = by_value(np.array(column))
        assert (kind, values.tolist()) == (
            "instant",
            [datetime(2026, 10, 25, 0, 30), datetime(2026, 10, 25, 1, 30)],
        )


def around(day, *clocks):
    return np.array([f"{day}T{clock}" for clock in clocks], "datetime64[us]")


@pytest.mark.parametrize("day", ["2026-10-25", "2025-10-26"])
def test_the_hour_that_is_there_twice_is_refused_without_an_offset(day):
    times = around(day, "01:30", "02:10", "02:50", "02:10", "02:50", "03:10")
    with pytest.raises(vx.errors.InputError, match="clocks are put back") as refused:
        refuse_ambiguous(times, "clock")
    assert refused.value.rows == (2, 3)
    refuse_ambiguous(times, "instant")
    y, p = rows(2)
    with pytest.raises(vx.errors.InputError, match="offset"):
        vx.Monitor(rule="brier", unit="row").update(y, p, time=times)
    # With a zone times are in UTC, where no hour is there twice.
    zoned = vx.Monitor(rule="brier", unit="row", zone="Europe/Berlin", period="hour")
    zoned.update(y, p, time=times)
    assert zoned.n_rows == 6


@pytest.mark.parametrize(
    "times",
    [
        around("2026-06-25", "02:50", "02:10"),
        around("2026-10-25", "02:10", "02:50"),
        around("2026-10-25", "13:50", "13:10"),
        around("2026-10-25", "03:50", "02:10"),
        around("2026-10-25", "02:50", "02:10", "02:50", "02:10"),
    ],
)
def test_other_clock_times_are_used_as_written(times):
    refuse_ambiguous(times, "clock")


def test_a_day_is_the_same_day_in_every_zone():
    y, p = rows()
    monitor = vx.Monitor(rule="brier", unit="row", zone="America/New_York", period="day")
    monitor.update(y, p, time=np.repeat(SPELLINGS["days of numpy"], 30))
    assert [line.time for line in monitor.history.lines] == list(DAYS.dt.date)


def test_a_midnight_among_hours_is_a_moment():
    y, p = rows(4)
    monitor = vx.Monitor(rule="brier", unit="row")
    hours = np.datetime64("2026-03-05T22:00", "us") + np.arange(3) * np.timedelta64(1, "h")
    for hour, at in zip(hours, range(0, 12, 4), strict=True):
        monitor.update(y[at : at + 4], p[at : at + 4], time=np.repeat(hour, 4))
    assert [line.time for line in monitor.history.lines] == hours.tolist()


def test_forecasts_of_questions_stand_from_times_in_any_spelling():
    y, p = {"a": [1, 1], "b": [1, 1]}, {"a": [0.6, 0.9], "b": [0.5, 0.8]}
    ids = {"a": ["q", "q"], "b": ["q", "q"]}
    found = []
    for times, close in (
        (["2026-03-05", "2026-03-06"], "2026-03-09"),
        (DAYS[:2], DAYS[2] + pd.Timedelta(days=2)),
    ):
        found.append(vx.compare(y, p, ids=ids, rule="brier", times=times, closes=[close] * 2).to_dict())
    assert found[0] == found[1]
