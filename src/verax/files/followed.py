"""Times up to which rows were followed: which columns hold such, and which values cannot be times."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from verax.errors import InputError, Remedy, show
from verax.files.arrow import ValueOrigin
from verax.files.naming import TARGETS, spoken
from verax.inputs.arrays import Bools

Array = np.ndarray[Any, Any]

# Words in the names of events that are waited for.
_EVENT = frozenset(
    (
        *(
            "event",
            "events",
            "status",
            "died",
            "death",
            "dead",
            "deceased",
            "mortality",
            "arrest",
            "arrested",
        ),
        *("relapse", "relapsed", "recurrence", "recurred", "progression", "progressed", "failure", "failed"),
        *("uncensored", "fstat"),
    )
)
# Names of times that can only be those up to which rows were followed.
_FOLLOWED = re.compile(
    r".*follow_?up.*|fu_?(time|days|months|years)|(survival|surv|failure|event|censoring)_?time"
    r"|tte|(time|days|weeks|months|years)_to_.+|(os|pfs|dfs|efs)_?(time|days|months|years)|lenfol"
)
# Names that are times of events beside an event, and elsewhere anything.
_MAYBE_FOLLOWED = frozenset(
    (
        *("time", "times", "t", "duration", "durations", "lifetime", "survival", "tenure"),
        *("days", "weeks", "months", "years"),
    )
)
# Whole numbers in this range are years of the calendar; larger ones are dates or clocks of computers.
_YEARS, _CLOCK = (1900, 2100), 1e6
# The fewest rows whose equal steps look like numbers of rows.
_STEPS = 3
# Horizons that are shown as examples.
_ROUND = (1, 2, 5)


def impossible(times: Array) -> Bools:
    """Which numbers cannot be times up to which a row was followed."""
    return np.asarray(~(np.isfinite(times) & (times >= 0)))


def refuse_impossible(times: Array, place: ValueOrigin) -> None:
    """Refuse negative and infinite times, with the first row."""
    bad = np.flatnonzero(impossible(times))
    if len(bad):
        at, value = int(bad[0]), float(times[bad[0]])
        raise place.refusal(
            "must hold times, finite and not negative",
            f"holds {value:g}",
            at=at,
            value=value,
            kind="sign",
            count=len(bad),
        )


def is_event(name: str) -> bool:
    """Whether a column is called like an event that is waited for.

    >>> [is_event(name) for name in ("event", "death_observed", "os_status", "label", "eventful")]
    [True, True, True, False, False]
    """
    return not _EVENT.isdisjoint(spoken(name).split("_"))


def is_followup(name: str, target: str) -> bool:
    """Whether a column is called like a time up to which rows were followed for an outcome of some name.

    >>> [is_followup(name, "label") for name in ("follow-up", "days_to_death", "time", "sometimes")]
    [True, True, False, False]
    >>> [is_followup(name, "died") for name in ("time", "timestamp", "year")]
    [True, False, False]
    """
    called = spoken(name)
    event = is_event(target)
    clear = _FOLLOWED.fullmatch(called) is not None
    return (clear and (event or spoken(target) in TARGETS)) or (event and called in _MAYBE_FOLLOWED)


def event_column(columns: Collection[str], *, stated: bool) -> str | None:
    """The one column that is called like an event, where outcomes are events: as stated, or beside a time."""
    events = [name for name in columns if is_event(name)]
    beside = len(events) == 1 and (stated or any(is_followup(name, events[0]) for name in columns))
    return events[0] if beside else None


def _are_times(values: Array) -> bool:
    """Whether first values may be times of follow-up: no dates, clocks or numbers of rows."""
    if not len(values) or impossible(values).any() or values.max() > _CLOCK:
        return False
    steps = np.diff(values)
    if len(values) >= _STEPS and steps[0] > 0 and (steps == steps[0]).all():
        return False
    whole = bool((values == np.floor(values)).all())
    return not (whole and values.min() >= _YEARS[0] and values.max() <= _YEARS[1])


def refuse_unfollowed(
    target: str,
    columns: Sequence[str],
    numbers: Callable[[Sequence[str]], Array],
    *,
    stated: bool,
    where: str,
) -> None:
    """Refuse outcomes beside a time up to which rows were followed: those of censored rows are not known.

    Parameters
    ----------
    target : str
        The column of outcomes, which are of two classes.
    columns : sequence of str
        The columns of numbers that have no other role.
    numbers : Callable
        Gives the first rows of some columns as (n, m) numbers.
    stated : bool
        Whether the caller named the column of outcomes.
    where : str
        The file, for messages.
    """
    for name in columns:
        if name == target or not is_followup(name, target):
            continue
        values = numbers([name])[:, 0]
        values = values[~np.isnan(values)]
        if not _are_times(values):
            continue
        named: dict[str, object] = {} if stated else {"target": target}
        horizon = _example(values)
        raise InputError(
            f"Outcomes in {show(target)} may be censored: {show(name)} holds times up to which rows were "
            "followed",
            argument="horizon",
            kind="missing",
            found="those followed for less than the horizon of the probabilities would count as rows without "
            "the event",
            values=[name],
            remedies=[
                Remedy(
                    f"with the horizon of the probabilities in place of {horizon}",
                    {**named, "time": name, "horizon": horizon},
                    whole=True,
                ),
                Remedy("if all rows were followed to it", {**named, "complete": True}, whole=True),
            ],
            source=where,
        )


def _example(values: Array) -> int | float:
    """A round horizon within some times.

    >>> _example(np.array([1.0, 7.5, 11.0])), _example(np.array([100.0, 800.0, 2000.0]))
    (5, 500)
    """
    middle = float(np.median(values))
    if middle <= 0:
        return 1
    power = 10.0 ** np.floor(np.log10(middle))
    horizon = float(max(step for step in _ROUND if step * power <= middle * (1 + 1e-12)) * power)
    return int(horizon) if horizon.is_integer() else horizon
