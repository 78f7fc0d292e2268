"""Periods of time: hours to years of the calendar in a time zone, and spans of numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from zoneinfo import ZoneInfo

import numpy as np

from verax.common.checks import check_choice, check_number
from verax.errors import InputError, Remedy, show

Span = Literal["hour", "day", "week", "month", "quarter", "year"]
_UNITS = {"hour": "h", "day": "D", "month": "M", "quarter": "M", "year": "Y"}
# Clocks of time zones change at multiples of this number of seconds.
_QUARTER = 900
# Spans in which the rows of a monitor may be joined.
SPANS = ("hour", "day", "week")


def moments_of(times: Any, remedies: tuple[Remedy, ...] = ()) -> Any:
    """Dates, datetimes or ISO texts of them as datetimes; other times are refused."""
    try:
        if times.dtype.kind in "biuf":
            raise ValueError
        texts = times if times.dtype.kind == "M" else times.astype(str)
        return texts.astype("datetime64[us]")
    except ValueError:
        raise InputError(
            "must be dates or datetimes, as such or as ISO texts",
            argument="time",
            kind="type",
            found=f"the first is {show(times.tolist()[0])}",
            remedies=remedies,
        ) from None


def start_of(moments: Any, span: Span) -> Any:
    """The beginning of the hour, day, week, month, quarter or year of each moment.

    >>> start_of(np.array(["2026-03-05T10:20", "2026-12-31"], "datetime64[us]"), "quarter").tolist()
    [datetime.date(2026, 1, 1), datetime.date(2026, 10, 1)]
    """
    days = moments.astype("datetime64[D]")
    if span == "week":
        # 1970-01-01 was a Thursday: weeks begin on Mondays.
        return days - (days.astype(np.int64) + 3) % 7
    starts = moments.astype(f"datetime64[{_UNITS[span]}]")
    return starts - starts.astype(np.int64) % 3 if span == "quarter" else starts


def local(moments: Any, zone: str) -> Any:
    """What clocks in a time zone show at moments in UTC.

    >>> winter = np.array(["2026-03-28T23:30", "2026-03-29T22:30"], "datetime64[s]")
    >>> local(winter, "Europe/Berlin").astype(str).tolist()
    ['2026-03-29T00:30:00', '2026-03-30T00:30:00']
    """
    clock = ZoneInfo(zone)
    seconds = moments.astype("datetime64[s]").astype(np.int64)
    quarters, place = np.unique(seconds // _QUARTER, return_inverse=True)
    known = (datetime.fromtimestamp(quarter * _QUARTER, UTC) for quarter in quarters.tolist())
    ahead = np.array([moment.astimezone(clock).utcoffset() for moment in known], "timedelta64[s]")
    return moments + ahead[place]


def checked_zone(zone: str | None) -> str | None:
    """The name of a time zone that is known here."""
    if zone is None:
        return None
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, TypeError, LookupError):
        raise InputError(
            "must be a time zone that this system knows, such as 'Europe/Berlin'",
            argument="zone",
            values=[zone],
        ) from None
    return zone


def checked_period(period: Any) -> str | float | None:
    """The name of a span, or a width of numbers."""
    if period is None or isinstance(period, str):
        check_choice("period", period, (None, *SPANS))
        return period
    return check_number(
        "period", period, "must be 'hour', 'day', 'week' or a positive number", lambda w: 0 < w < math.inf
    )


@dataclass(frozen=True)
class Periods:
    """How times are joined into time steps.

    Attributes
    ----------
    span : str or float
        A span of the calendar, or a width of numbers.
    zone : str or None
        The time zone of the calendar, for times in UTC; by default periods are as clocks of the times say.
    """

    span: str | float
    zone: str | None = None

    def of(self, times: Any) -> Any:
        """The period of each time: a date, a datetime of an hour, or the least number in it."""
        if not isinstance(self.span, str):
            if times.dtype.kind not in "iuf":
                raise InputError(
                    "must be 'hour', 'day' or 'week' for times that are not numbers",
                    argument="period",
                    found=f"it is {show(self.span)}",
                )
            return np.floor(times / self.span) * self.span
        moments = moments_of(times, (Remedy("Pass a width for times that are numbers, such as period=100."),))
        # A calendar day is the same day in every zone.
        if self.zone is not None and times.dtype != "datetime64[D]":
            moments = local(moments, self.zone)
        span: Any = self.span
        starts = start_of(moments, span)
        return starts.astype("datetime64[us]") if span == "hour" else starts
