"""Times of rows by their values: the same day is one day, however it is written.

    by_value(column) -> (values, kind)      days or moments of the calendar, numbers, or texts

A calendar day may be a date, a midnight of the clock that a time was written by, or an ISO text of either.
Other moments with a zone are instants, kept in UTC; those without one are what their clock showed.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from datetime import UTC, date, datetime
from typing import Any, Literal

import numpy as np

from verax.errors import InputError, Remedy, join, passing, show

Array = np.ndarray[Any, Any]
Kind = Literal["number", "text", "day", "clock", "instant"]
_CALLED = {
    "number": "a number",
    "text": "a text",
    "day": "a day",
    "clock": "a time without a zone",
    "instant": "a time with a zone",
}
_CLOCK, _OFFSET = r"[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?", r"\s?(Z|[+-]\d\d(:?\d\d)?)?"
_ISO = re.compile(rf"\d{{4}}-\d\d-\d\d({_CLOCK}{_OFFSET})?", re.IGNORECASE)
_DAY, _MOMENT = "datetime64[D]", "datetime64[us]"
# Clocks go back by at most this much.
_HOUR = np.timedelta64(1, "h")
# Years around those that clocks are looked up for.
_LAST_YEAR = 2200


def with_zones(column: Any) -> Any:
    """A column of times as an array would lose their zone, as a list; any other as it is."""
    kind = getattr(column, "dtype", getattr(column, "type", None))
    zone = getattr(kind, "tz", None) or getattr(kind, "time_zone", None)
    if zone is None:
        return column
    values = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    listed = np.empty(len(values), object)
    listed[:] = values
    return listed


def by_value(column: Any, argument: str = "time") -> tuple[Array, Kind]:
    """The times of a column in canonical form, and their kind.

    Days are of the type datetime64[D], other moments of datetime64[us]. Kinds that are mixed are refused.

    >>> values, kind = by_value(["2026-03-05T00:00:00+01:00", "2026-03-06T00:00+01:00"])
    >>> values.astype(str).tolist(), kind
    (['2026-03-05', '2026-03-06'], 'day')
    """
    values = np.asarray(column)
    if values.dtype.kind == "T":
        values = values.astype(str)
    if values.dtype.kind == "M":
        return _days_or(values.astype(_MOMENT), "clock")
    if values.dtype.kind not in "UO" or not len(values):
        return values, "text" if values.dtype.kind == "U" else "number"
    # Moments of one zone are equal by what its clock shows, before and after it is put back.
    distinct: dict[Any, int] = {}
    keys = ((value, getattr(value, "fold", 0)) for value in values.tolist())
    try:
        codes = np.array([distinct.setdefault(key, len(distinct)) for key in keys], np.int64)
    except TypeError:
        row, value = next((i, v) for i, v in enumerate(values.tolist()) if not isinstance(v, Hashable))
        found = f"row {row:,} has {show(value)}"
        raise InputError("must hold numbers, texts or dates", argument=argument, found=found) from None
    read = [_read(value) for value, _ in distinct]
    kinds = dict.fromkeys(kind for _, kind in read)
    if kinds.keys() <= {"text", "number"}:
        return values, "text" if "text" in kinds else "number"
    if len(kinds) > 1:
        _refuse_mixed(values.tolist(), codes.tolist(), [kind for _, kind in read], argument)
    kind: Any = next(iter(kinds))
    moments = [moment for moment, _ in read]
    if kind == "day":
        return np.array(moments, _DAY)[codes], "day"
    if kind == "instant":
        if all(_is_midnight(moment) for moment in moments):
            return np.array([moment.date() for moment in moments], _DAY)[codes], "day"
        moments = [moment.astimezone(UTC) for moment in moments]
    bare = [moment.replace(tzinfo=None) for moment in moments]
    return _days_or(np.array(bare, _MOMENT)[codes], kind)


def _days_or(moments: Array, kind: Kind) -> tuple[Array, Kind]:
    """Moments as days if all are midnights."""
    days = moments.astype(_DAY)
    return (days, "day") if len(moments) and bool((days == moments).all()) else (moments, kind)


def _is_midnight(moment: datetime) -> bool:
    return not (moment.hour or moment.minute or moment.second or moment.microsecond)


def _read(value: Any) -> tuple[Any, str]:
    """A time, and its kind; a text that is no ISO date is a text."""
    if isinstance(value, str):
        iso = value.strip()
        if not _ISO.fullmatch(iso):
            return value, "text"
        try:
            if len(iso) == len("2026-01-01"):
                return date.fromisoformat(iso), "day"
            value = datetime.fromisoformat(iso.replace(",", ".").replace(" +", "+").replace(" Z", "Z"))
        except ValueError:
            return value, "text"
    if isinstance(value, np.datetime64):
        value = value.astype(_MOMENT).item()
    if isinstance(value, datetime):
        return value, "clock" if value.tzinfo is None else "instant"
    return value, "day" if isinstance(value, date) else "number"


def _refuse_mixed(values: Sequence[Any], codes: Sequence[int], kinds: Sequence[str], argument: str) -> None:
    """Refuse times of several kinds with the first row of each."""
    first: dict[str, int] = {}
    for row, code in enumerate(codes):
        first.setdefault(kinds[code], row)
    rows = list(first.values())
    raise InputError(
        "must be of one kind",
        argument=argument,
        kind="type",
        found=join(f"row {row:,} has {show(values[row])}, {_CALLED[kind]}" for kind, row in first.items()),
        rows=rows,
        values=[values[row] for row in rows],
        remedies=[Remedy("Write all times alike, for example as 2026-03-05T10:00:00+01:00.")],
    )


def refuse_ambiguous(values: Array, kind: Kind, argument: str = "time") -> None:
    """Refuse clock times in order that go back by up to an hour where clocks are put back.

    The hour before and the hour after have the same times, so that rows would be put into a wrong order.
    """
    if kind != "clock" or len(values) < 2:
        return
    back = np.flatnonzero(values[1:] < values[:-1])
    if len(back) != 1:
        return
    before, after = values[back[0]], values[back[0] + 1]
    if before - after > _HOUR or not _put_back(after.item(), before.item()):
        return
    row = int(back[0]) + 1
    raise InputError(
        "must be unambiguous where clocks are put back",
        argument=argument,
        kind="order",
        found=f"row {row:,} has {show(str(after))} after {show(str(before))}, as at the end of summer time",
        rows=(row - 1, row),
        values=[str(before), str(after)],
        remedies=[
            Remedy("Write times with their offset, such as 2026-10-25T02:30:00+01:00."),
            passing("for times in UTC", zone=...),
        ],
    )


def _put_back(after: datetime, before: datetime) -> bool:
    """Whether the clocks of some time zone showed both times twice."""
    from zoneinfo import ZoneInfo, available_timezones

    if not 1900 < after.year < _LAST_YEAR:
        return False
    for name in available_timezones():
        zone = ZoneInfo(name)
        if all(
            moment.replace(tzinfo=zone).utcoffset() > moment.replace(tzinfo=zone, fold=1).utcoffset()  # type: ignore[operator]
            for moment in (after, before)
        ):
            return True
    return False


def read_again(times: Sequence[Any]) -> list[Any]:
    """Stored times, of which 0.3 kept ISO texts as texts, in canonical form; others as they are.

    >>> read_again(["2026-03-05", "2026-03-06T00:00Z"]), read_again(["2026-03-05", "later"])
    ([datetime.date(2026, 3, 5), datetime.date(2026, 3, 6)], ['2026-03-05', 'later'])
    """
    if not all(isinstance(time, str) for time in times):
        return list(times)
    values = [by_value([time])[0].tolist()[0] for time in times]
    return alike(values) if all(isinstance(value, date) for value in values) else list(times)


def alike(times: Sequence[Any]) -> list[Any]:
    """Labels of time steps of one kind: beside moments, a day is its midnight.

    >>> alike([date(2026, 3, 5), datetime(2026, 3, 5, 1)])
    [datetime.datetime(2026, 3, 5, 0, 0), datetime.datetime(2026, 3, 5, 1, 0)]
    """
    if not any(isinstance(time, datetime) for time in times):
        return list(times)
    return [
        datetime(time.year, time.month, time.day)
        if isinstance(time, date) and not isinstance(time, datetime)
        else time
        for time in times
    ]
