"""Outcomes at a horizon as a result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verax.common.results import Result
from verax.display.tables import Column, Table, Tabled
from verax.inputs.arrays import Floats, Ints


@dataclass(frozen=True, repr=False, eq=False)
class OutcomesAtHorizon(Tabled, Result):
    """Whether an event happened by a horizon, with weights for rows that were censored before it.

    Attributes
    ----------
    outcomes : array of shape (N,)
        1 where the event happened by the horizon, else 0; also 0, with weight 0, where that is not known.
    weights : array of shape (N,)
        Inverse probability of censoring weights, times the weights that were given.
    horizon : float
        The horizon.
    n_rows, n_happened, n_censored : int
        The number of rows, of those with the event by the horizon, and of those censored before it.
    risk : float
        The probability of the event by the horizon, by Kaplan-Meier.

    See Also
    --------
    at_horizon : How to get it.

    Examples
    --------
    >>> import verax as vx
    >>> found = vx.at_horizon([1, 2, 3, 6, 7], [1, 0, 1, 0, 1], horizon=5)
    >>> found.outcomes.tolist(), found.weights.round(3).tolist(), round(found.risk, 3)
    ([1, 0, 1, 0, 0], [1.0, 0.0, 1.333, 1.333, 1.333], 0.467)
    """

    outcomes: Ints
    weights: Floats
    horizon: float
    n_rows: int
    n_happened: int
    n_censored: int

    _facts = ("risk",)

    @property
    def risk(self) -> float:
        """The probability of the event by the horizon, by Kaplan-Meier."""
        return float(self.weights @ self.outcomes / np.sum(self.weights))

    def _tables(self) -> list[Table]:
        columns = [
            Column("n_happened", "events", ",d"),
            Column("n_censored", "censored before", ",d"),
            Column("risk", "risk (Kaplan-Meier)", ".4f"),
        ]
        return [Table(columns, [self])]

    def _heading(self) -> str:
        return f"outcomes at time {self.horizon:g}: {self.n_rows:,} rows"
