"""Properties of the forecasts of a model, which explain why rules may disagree about models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from verax.engines.scan import scan_rows
from verax.engines.stats import RowStats
from verax.engines.sums import relative
from verax.inputs.arrays import Floats, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.rows import RowBatch

if TYPE_CHECKING:
    pass


# Outcomes of a probability below this dominate the log score.
_RULED_OUT = 0.01
# The row statistics that traits are made of.
_NEEDS = frozenset({"top", "decision", "rest_sq", "p_true"})


@dataclass(frozen=True)
class Traits:
    """How often a model is right, how confident it is, and how large its mistakes are.

    Attributes
    ----------
    accuracy : float
        Share of rows whose most likely class happened.
    confidence : float
        Mean probability of the most likely class; above the accuracy means overconfident.
    sharpness : float
        Mean sum of squared probabilities: 1 for certainty, 1/K for uniform forecasts.
    ruled_out : float
        Share of rows whose outcome had a probability below 0.01.
    error_distance : float or None
        Mean distance between wrong decisions and outcomes, in classes; None without an order.
    """

    accuracy: float
    confidence: float
    sharpness: float
    ruled_out: float
    error_distance: float | None

    @classmethod
    def of(cls, forecasts: Forecasts, ordered: bool) -> Traits:
        """The traits of valid forecasts.

        Parameters
        ----------
        forecasts : Forecasts
            The forecasts and outcomes.
        ordered : bool, default False
            Whether the classes have an order.

        Returns
        -------
        Traits
            The traits.
        """
        given = forecasts.weights
        weights = None if given is None else relative(to_host(given).astype(float))
        visitors = scan_rows(forecasts, _NEEDS, lambda: _Sums(weights))
        # By chunk, so that the number of threads changes no rounding.
        chunks = sorted(item for visitor in visitors for item in visitor.sums.items())
        total, *sums = np.sum([found for _, found in chunks], axis=0)
        accuracy, confidence, sharpness, ruled_out, distance = (float(s / total) for s in sums)
        wrong = 1 - accuracy
        off = distance / wrong if ordered and wrong > 0 else None
        return cls(accuracy, confidence, sharpness, ruled_out, off)

    @property
    def overconfidence(self) -> float:
        """Mean confidence minus accuracy."""
        return self.confidence - self.accuracy


class _Sums:
    """The weight of each chunk of rows, and the weighted sums of what the traits are means of."""

    def __init__(self, weights: Floats | None) -> None:
        self._weights = weights
        self.sums: dict[int, Floats] = {}

    def visit(self, stats: RowStats, batch: RowBatch, chunk: int) -> None:
        """Take in a block of rows."""
        y, decision, p_true, rest_sq, top = (
            to_host(values) for values in (batch.y, stats.decision, stats.p_true, stats.rest_sq, stats.top)
        )
        w = np.ones(len(y)) if self._weights is None else self._weights[batch.start : batch.start + len(y)]
        columns = [
            np.ones(len(y)),
            decision == y,
            top,
            p_true**2 + rest_sq,
            p_true < _RULED_OUT,
            abs(decision - y),
        ]
        self.sums[chunk] = self.sums.get(chunk, 0.0) + np.array([(w * column).sum() for column in columns])
