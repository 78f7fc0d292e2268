"""Inverse probability of censoring weights, and where they cannot be had.

With the Kaplan-Meier estimate G of the probability of being followed beyond a time, a row with the event at
t up to the horizon T has the weight 1 / G(t-), one that was followed to T without it 1 / G(T-), and one that
was censored before T the weight 0. At a time with both, events come before censorings. The weights then sum
to the number of rows, and the weighted share of events is one minus the Kaplan-Meier estimate of the time to
event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.errors import InputError, Remedy
from verax.inputs.arrays import Bools, Floats
from verax.inputs.handles import Handle
from verax.inputs.reading import Reading
from verax.wings.horizon.times import TimeRecipe, TimeSums

NO_COMPETING = Remedy(
    "Competing events are not supported: treated as censored, they would make the risk too large."
)


@dataclass(frozen=True)
class Censoring:
    """How rows are weighted for their outcomes at a horizon.

    Attributes
    ----------
    horizon : float
        The horizon.
    times : array of shape (C,)
        The times before the horizon at which rows were censored, in increasing order.
    followed : array of shape (C + 1,)
        The probability of being followed beyond none, the first, ... of these times.
    n_rows, n_happened, n_censored : int
        The number of rows, of those with the event by the horizon, and of those censored before it.
    column : str
        The column of times; empty for arrays.
    """

    horizon: float
    times: Floats
    followed: Floats
    n_rows: int
    n_happened: int
    n_censored: int
    column: str = ""

    @classmethod
    def of(cls, sums: TimeSums, horizon: float, column: str = "", source: str = "") -> Censoring:
        """The weights for all rows, from their sums by time."""
        _check(sums, horizon, source)
        at_risk = sums.beyond + np.cumsum((sums.happened + sums.censored)[::-1])[::-1]
        some = sums.censored > 0
        # Those at risk of being censored are those without the event at the same time.
        steps = 1 - sums.censored[some] / (at_risk - sums.happened)[some]
        followed = np.append(1.0, np.cumprod(steps))
        numbers = (sums.n_rows, sums.n_happened, sums.n_censored)
        return cls(horizon, sums.times[some], followed, *numbers, column)

    @property
    def brief(self) -> str:
        """The horizon, and how many rows were censored before it."""
        return f" (horizon {self.horizon:g}, {self.n_censored:,} of {self.n_rows:,} rows censored before)"

    @property
    def sentence(self) -> str:
        """What became of rows that were censored."""
        if not self.n_censored:
            return f"None of {self.n_rows:,} rows was censored before {self.column} {self.horizon:g}."
        were = "was" if self.n_censored == 1 else "were"
        return (
            f"{self.n_censored:,} of {self.n_rows:,} rows {were} censored before {self.column} "
            f"{self.horizon:g} and have weight 0; the others have inverse probability of censoring weights, "
            "which intervals treat as known."
        )

    def judged(self, times: Floats, happened: Bools, weights: Floats | None) -> tuple[Bools, Floats]:
        """Whether the event happened by the horizon, and the weights of rows for that."""
        times = np.asarray(times, float)
        by = happened & (times <= self.horizon)
        place = np.searchsorted(self.times, np.minimum(times, self.horizon), side="left")
        known = happened | (times >= self.horizon)
        w = np.where(known, 1 / self.followed[place], 0.0)
        return by, w if weights is None else w * np.asarray(weights, float)

    def to_dict(self) -> dict[str, Any]:
        """The horizon with the numbers of rows, as plain Python values."""
        return {
            "at": self.horizon,
            "n_rows": self.n_rows,
            "n_happened": self.n_happened,
            "n_censored": self.n_censored,
        }


def _check(sums: TimeSums, horizon: float, source: str) -> None:
    """Refuse a horizon at which nothing can be judged."""
    if horizon > sums.last:
        raise InputError(
            "must not lie beyond the last time",
            argument="horizon",
            found=f"it is {horizon:g}, and the last time is {sums.last:g}",
            values=[horizon],
            source=source,
        )
    if not sums.n_happened:
        raise InputError(
            "must leave at least one event",
            argument="horizon",
            found=f"no event happened up to {horizon:g}",
            values=[horizon],
            source=source,
            remedies=[Remedy("1 is the event and 0 a row without it.")],
        )
    if not sums.beyond:
        raise InputError("must not all be zero", argument="weights", source=source)


def followup_of(handle: Handle, reading: Reading) -> Censoring:
    """How rows of a handle are weighted at the horizon of their reading, from one pass over their times."""
    assert reading.horizon is not None
    _check_handle(handle)
    try:
        summaries = handle.summarise({"times": TimeRecipe(reading.horizon)})
    except InputError as error:
        if error.kind != "label":
            raise
        raise error.replace(remedies=[*error.remedies, NO_COMPETING]) from None
    return Censoring.of(summaries["times"], reading.horizon, reading.time or "", handle.name)


def _check_handle(handle: Handle) -> None:
    """Refuse rows without an event to wait for, or without their times."""
    where: Mapping[str, Any] = {"argument": "horizon", "source": handle.name}
    if handle.lists or handle.graded is not None:
        raise InputError("does not apply to top lists and grades", **where)
    if handle.n_classes != 2:
        raise InputError(
            "is for outcomes of two classes",
            found=f"there are {handle.n_classes}",
            remedies=[NO_COMPETING],
            **where,
        )
    if not handle.has_rows:
        raise InputError(
            "needs rows that can be read twice: first their times, then all of them",
            kind="type",
            remedies=[Remedy("Pass a table, or write the rows to a file.")],
            **where,
        )
