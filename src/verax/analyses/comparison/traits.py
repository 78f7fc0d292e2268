"""Properties of the forecasts of a model, which explain why rules may disagree about models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from verax.engines.sums import relative
from verax.inputs.arrays import to_host, widen
from verax.inputs.forecasts import Forecasts

if TYPE_CHECKING:
    pass


# Outcomes of a probability below this dominate the log score.
_RULED_OUT = 0.01


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
    error_distance : float, optional
        Mean distance between wrong decisions and outcomes, in classes; None without an order.
    """

    accuracy: float
    confidence: float
    sharpness: float
    ruled_out: float
    error_distance: float | None

    @classmethod
    def of(cls, forecasts: Forecasts, ordered: bool) -> Traits:
        """The traits of valid forecasts."""
        total, sums = 0.0, np.zeros(5)
        given = forecasts.weights
        weights = None if given is None else relative(to_host(given).astype(float))
        for batch in forecasts.batches(max(1, 2**18 // forecasts.n_classes)):
            p, y = to_host(widen(batch.p)), to_host(batch.y)
            w = np.ones(len(y)) if weights is None else weights[batch.start : batch.start + len(y)]
            decision = p.argmax(axis=1)
            p_true = p[np.arange(len(y)), y]
            columns = [
                decision == y,
                p.max(axis=1),
                (p * p).sum(axis=1),
                p_true < _RULED_OUT,
                abs(decision - y),
            ]
            sums += np.array([w @ column for column in columns])
            total += float(w.sum())
        accuracy, confidence, sharpness, ruled_out, distance = sums / total
        wrong = 1 - accuracy
        off = float(distance / wrong) if ordered and wrong > 0 else None
        return cls(float(accuracy), float(confidence), float(sharpness), float(ruled_out), off)

    @property
    def overconfidence(self) -> float:
        """Mean confidence minus accuracy."""
        return self.confidence - self.accuracy
