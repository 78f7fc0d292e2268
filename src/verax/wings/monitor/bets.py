"""Bets of a monitor against claims about the loss and about events, on independent rows or groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from verax.inference.sequences import BETS, log_capital, log_factors
from verax.inputs.arrays import Floats
from verax.wings.monitor.loops import BINS
from verax.wings.monitor.steps import EXCESS, OF_EVENT, PER_EVENT, SHIFT, TILT, Step

# How forecasts of an event may be wrong, one bet for each; the last adapts to earlier steps.
TOO_LOW, TOO_HIGH, OVERCONFIDENT, UNDERCONFIDENT, ADAPTIVE = range(5)
DIRECTIONS = ("too low", "too high", "overconfident", "underconfident", "wrong in places")
# Number of rows without deviation added to each bin before bets adapt to it.
_CAUTIOUS = 10.0


@dataclass
class UnitBets:
    """The bets on independent rows or groups: of all, or of a subgroup.

    Attributes
    ----------
    loss : array of shape (24,)
        Logarithms of the capital of each stake against the claim about the loss.
    events : array of shape (E, 5, 24)
        Likewise against the probabilities of each event, by direction.
    bins : array of shape (E, 16, 2)
        Sums so far for each event: of outcome minus probability, and of its square.
    share : float
        The share of the initial capital that was bet on these rows.
    restarts : bool
        Whether new capital begins at every step.
    """

    loss: Floats
    events: Floats
    bins: Floats
    share: float
    restarts: bool

    @classmethod
    def fresh(cls, n_events: int, share: float, *, restarts: bool) -> Self:
        """The capital before the first bet; detectors that restart begin with none."""
        start = -np.inf if restarts else 0.0
        n = len(BETS)
        bins = np.zeros((n_events, BINS, 2))
        return cls(np.full(n, start), np.full((n_events, len(DIRECTIONS), n), start), bins, share, restarts)

    def bet(self, step: Step, *, opens: bool) -> None:
        """Take in a step, or more rows of it; if it `opens`, a detector that restarts adds capital first."""
        if opens:
            self.wait()
        self.loss = self.loss + log_factors(step.first[EXCESS], step.second[EXCESS], step.n_units)
        self.events = self.events + factors_of(step, self.bins)
        self.bins = self.bins + step.bins

    def wait(self) -> None:
        """Begin a step: a detector that restarts adds capital."""
        if self.restarts:
            self.loss, self.events = np.logaddexp(0.0, self.loss), np.logaddexp(0.0, self.events)

    @property
    def logs(self) -> Floats:
        """(1 + E, 5) logarithms of the capital of each direction; those of the loss are all equal."""
        return log_capital(
            np.concatenate([np.broadcast_to(self.loss, (1, *self.events.shape[1:])), self.events])
        )

    def to_values(self) -> dict[str, Any]:
        """The fields, for storing."""
        return dict(vars(self))

    @classmethod
    def from_values(cls, values: Mapping[str, Any], n_events: int, *, restarts: bool) -> Self:
        """The stored bets."""
        empty = cls.fresh(n_events, float(values["share"]), restarts=restarts)
        arrays: dict[str, Any] = {name: np.array(values[name], float) for name in ("loss", "events", "bins")}
        if any(arrays[name].shape != getattr(empty, name).shape for name in arrays):
            raise ValueError("capital of another shape")
        return replace(empty, **arrays)


def factors_of(step: Step, past: Floats) -> Floats:
    """(E, 5, 24) logarithms of the factors by which a step multiplies the capital of each bet on events."""
    first, second = (
        sums[OF_EVENT:].reshape(-1, PER_EVENT)[:, [SHIFT, TILT]] for sums in (step.first, step.second)
    )
    slope = adapted(past)
    sums_of_bets = np.empty((2, len(step.bins), len(DIRECTIONS)))
    sums_of_bets[0, :, [TOO_LOW, OVERCONFIDENT]], sums_of_bets[0, :, [TOO_HIGH, UNDERCONFIDENT]] = (
        first.T,
        -first.T,
    )
    sums_of_bets[1, :, [TOO_LOW, OVERCONFIDENT]] = sums_of_bets[1, :, [TOO_HIGH, UNDERCONFIDENT]] = second.T
    sums_of_bets[0, :, ADAPTIVE] = (slope * step.bins[:, :, 0]).sum(axis=1)
    sums_of_bets[1, :, ADAPTIVE] = (slope * slope * step.bins[:, :, 1]).sum(axis=1)
    return log_factors(sums_of_bets[0], sums_of_bets[1], step.n_units)


def adapted(bins: Floats) -> Floats:
    """(E, 16) stakes on each bin, from -1 to 1, given its earlier sums."""
    slope = bins[:, :, 0] / (bins[:, :, 1] + _CAUTIOUS)
    largest = np.abs(slope).max(axis=1, keepdims=True)
    return np.asarray(np.divide(slope, largest, out=np.zeros_like(slope), where=largest > 0))
