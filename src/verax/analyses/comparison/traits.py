"""Properties of the forecasts of a model, which explain why rules may disagree about models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verax.engines.stats import Formula, RowStatistic, RowStats
from verax.inputs.arrays import Array, Floats, Ints

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
        """The traits from their means, in the order of `FORMULAS` and the size of the error.

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


@dataclass(frozen=True)
class _Overconfidence:
    """The largest probability minus 1 if its class happened."""

    needs = frozenset({"top", "hit_lowest"})

    def formula(self, stats: RowStats) -> Array:
        return stats.top - stats.hit_lowest


@dataclass(frozen=True)
class _Sharpness:
    """The sum of the squared probabilities."""

    needs = frozenset({"p_true", "rest_sq"})

    def formula(self, stats: RowStats) -> Array:
        return stats.p_true * stats.p_true + stats.rest_sq


@dataclass(frozen=True)
class _RuledOut:
    """1 where the outcome had a probability below the limit, else 0.

    A comparison has no trace, and no kernel would be made of it. A difference of two floats that is not zero
    is far more than 1 in units of the smallest ones.
    """

    needs = frozenset({"p_true"})

    def formula(self, stats: RowStats) -> Array:
        far = (RULED_OUT_BELOW - stats.p_true) * _BEYOND
        return stats.xp.minimum(stats.xp.maximum(far, 0.0), 1.0)


_BEYOND = 2.0**1000

# What traits are as formulas over row statistics; the size of an error needs the decision.
FORMULAS: tuple[Formula, ...] = (RowStatistic("hit_lowest"), _Overconfidence(), _Sharpness(), _RuledOut())


def distances(decision: Ints, y: Ints) -> Ints:
    """How many classes decisions are off."""
    return np.asarray(np.abs(decision - y))


def mean_traits(shares: Floats, p: Floats) -> list[Floats]:
    """For each row with shares of several classes the mean over its outcomes: right or not, confidence minus
    that, sharpness, outcome ruled out, size of the error.
    """
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
