"""Means over folds that share training rows, and probabilities that two models hardly differ."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from verax.engines.differences import with_differences
from verax.inference.estimates import Estimate
from verax.inference.intervals import few
from verax.inputs.arrays import Floats


def over_folds(values: Floats, test_train: float) -> Estimate:
    """The mean over J folds of each column of (J, M) values, and of the difference of each pair of columns.

    Models of different folds share most of their training rows, so the mean varies more than that of J
    independent values: its variance is (1/J + n_test / n_train) s^2 (Nadeau and Bengio 2003,
    doi:10.1023/A:1024068626366), and Student's t distribution has J - 1 degrees of freedom.

    >>> found = over_folds(np.array([[0.2], [0.3], [0.4]]), 0.5)
    >>> found.mean.round(3), found.error.round(3), found.freedom
    (array([0.3]), array([0.091]), 2.0)
    """
    columns = with_differences(values)
    n = len(columns)
    with np.errstate(invalid="ignore"):
        spread = columns.var(axis=0, ddof=1)
        mean = columns.mean(axis=0)
    # A difference from an infinite mean is not known.
    pairs = np.arange(len(mean)) >= values.shape[1]
    mean = np.where(pairs & ~np.isfinite(mean), np.nan, mean)
    cautions = (few(n, "fold", "folds"),) * len(mean)
    return Estimate(mean, np.sqrt((1 / n + test_train) * spread), float(n - 1), cautions)


@dataclass(frozen=True)
class Practical:
    """Probabilities that model `a` is better than `b`, that they hardly differ, and that it is worse.

    Attributes
    ----------
    a : str
        The name of a model.
    b : str
        The name of the other.
    better : float
        The posterior probability that `a` is better by more than the region of practical equivalence.
    alike : float
        That the difference lies in the region; zero where its width is.
    worse : float
        That `a` is worse by more than that.
    """

    a: str
    b: str
    better: float
    alike: float
    worse: float

    @property
    def turned(self) -> Practical:
        """The probabilities with `a` and `b` exchanged."""
        return Practical(self.b, self.a, self.worse, self.alike, self.better)


def practical_t(a: str, b: str, difference: float, error: float, freedom: float, rope: float) -> Practical:
    """The Bayesian correlated t test of a difference of losses: its posterior is a t distribution.

    References
    ----------
    Corani and Benavoli (2015), doi:10.1007/s10994-015-5486-z

    >>> found = practical_t("a", "b", -0.02, 0.01, 9, 0.01)
    >>> round(found.better, 3), round(found.alike, 3), round(found.worse, 3)
    (0.828, 0.164, 0.007)
    """
    from scipy.special import stdtr

    if math.isnan(difference):
        return Practical(a, b, math.nan, math.nan, math.nan)
    if error > 0:
        better, worse = (float(stdtr(freedom, (-rope - side) / error)) for side in (difference, -difference))
    else:
        # All folds have the same difference; one that is zero is shared by both sides.
        better, worse = (
            float(side < -rope) + 0.5 * (side == 0 == rope) for side in (difference, -difference)
        )
    return Practical(a, b, better, max(0.0, 1 - better - worse), worse)
