"""Properties of the forecasts of a model, which explain why rules may disagree about models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verax.engines.stats import RowStatistic
from verax.inputs.arrays import Floats

# Outcomes of a probability below this dominate the log score.
RULED_OUT_BELOW = 0.01


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
    def of(cls, means: Floats, *, ordered: bool) -> Traits:
        """The traits from the means of the columns of `trait_columns`.

        Parameters
        ----------
        means : array of shape (5,)
            The means.
        ordered : bool
            Whether the classes have an order.

        Returns
        -------
        Traits
            The traits.
        """
        accuracy, over, sharpness, ruled_out, distance = means.tolist()
        off = distance / (1 - accuracy) if ordered and accuracy < 1 else None
        return cls(accuracy, accuracy + over, sharpness, ruled_out, off)

    @property
    def overconfidence(self) -> float:
        """Mean confidence minus accuracy."""
        return self.confidence - self.accuracy


# The row statistics that traits are made of.
STATISTICS = tuple(map(RowStatistic, ("decision", "top", "p_true", "rest_sq")))


def trait_columns(y: Floats, decision: Floats, top: Floats, p_true: Floats, rest_sq: Floats) -> list[Floats]:
    """For each row: right or not, confidence less that, sharpness, outcome ruled out, size of the error."""
    right = (decision == y).astype(float)
    p = p_true.astype(float, copy=False)
    distance = np.abs(decision - y).astype(float)
    return [right, top - right, p * p + rest_sq, (p < RULED_OUT_BELOW).astype(float), distance]


def mean_traits(shares: Floats, p: Floats) -> list[Floats]:
    """The same of rows with shares of several classes: the mean over their outcomes."""
    classes, decision = np.arange(p.shape[1]), np.argmax(p, axis=1)
    right = shares[np.arange(len(p)), decision]
    distance = np.abs(classes - decision[:, None])
    return [
        right,
        p.max(axis=1) - right,
        (p * p).sum(axis=1),
        (shares * (p < RULED_OUT_BELOW)).sum(axis=1),
        (shares * distance).sum(axis=1),
    ]
