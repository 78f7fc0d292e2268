"""Sums of weights by distinct time before a horizon: all that Kaplan-Meier estimates need of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from verax.common.packing import UnreadableError
from verax.common.specs import Array, Number, Whole
from verax.common.summaries import Summary, merges
from verax.errors import InputError, Remedy
from verax.inputs.arrays import Bools, Floats, to_host
from verax.inputs.handles import Part, Recipe

# Distinct times that fit in memory with their sums.
_MOST = 2**24


class TimeSums(Summary, kind="times of events"):
    """The rows of a part by their times, of which those from the horizon on count together.

    Attributes
    ----------
    times : array of shape (T,)
        The distinct times before the horizon, in increasing order.
    happened, censored : array of shape (T,)
        The weight of rows with the event at each time, and of those without it.
    beyond : float
        The weight of rows with a time at or after the horizon.
    last : float
        The largest time.
    n_rows, n_happened, n_censored : int
        The number of rows, of those with the event by the horizon, and of those censored before it.
    """

    times: Floats = merges(Array("f8", "times", how="join", least=0))
    happened: Floats = merges(Array("f8", "times", how="join", least=0))
    censored: Floats = merges(Array("f8", "times", how="join", least=0))
    beyond: float = merges(Number("add", least=0))
    last: float = merges(Number("most", least=0))
    n_rows: int = merges(Whole())
    n_happened: int = merges(Whole(most="n_rows"))
    n_censored: int = merges(Whole(most="n_rows"))

    @classmethod
    def of(cls, times: Floats, happened: Bools, weights: Floats | None, horizon: float) -> Self:
        """The sums of some rows, at least one."""
        w = np.ones(len(times)) if weights is None else np.asarray(weights, float)
        before = times < horizon
        return cls(
            times[before],
            np.where(happened, w, 0.0)[before],
            np.where(happened, 0.0, w)[before],
            float(w[~before].sum()),
            float(times.max()),
            len(times),
            int((happened & (times <= horizon)).sum()),
            int((before & ~happened).sum()),
        )._merged()

    def _merged(self) -> Self:
        """The same with each time once."""
        times, place = np.unique(self.times, return_inverse=True)
        if len(times) > _MOST:
            raise InputError(
                f"must have at most {_MOST:,} different values before the horizon",
                argument="time",
                found=f"there are {len(times):,}",
                remedies=[Remedy("Round the times, to days for instance.")],
            )
        happened = np.asarray(np.bincount(place, self.happened, len(times)), float)
        censored = np.asarray(np.bincount(place, self.censored, len(times)), float)
        return replace(self, times=times, happened=happened, censored=censored)

    def _check(self) -> None:
        if (np.diff(self.times) <= 0).any():
            raise UnreadableError("are not in increasing order", "times")


@dataclass(frozen=True)
class TimeRecipe(Recipe[TimeSums]):
    """The rows by their times before a horizon.

    Attributes
    ----------
    horizon : float
        The horizon.
    """

    horizon: float

    def take(self, part: Part) -> TimeSums:
        """The sums of some rows, whose outcomes and forecasts are checked."""
        part.rows.check()
        batch = part.rows.batch(0, part.n_rows)
        happened = np.asarray(to_host(batch.y)) == 1
        weights = None if batch.weights is None else np.asarray(to_host(batch.weights), float)
        assert part.times is not None
        return TimeSums.of(np.asarray(part.times, float), happened, weights, self.horizon)
