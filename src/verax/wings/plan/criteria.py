"""Sizes of validation studies: rows that make each interval of a risk model's performance narrow enough."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from verax.inputs.arrays import Floats

# The criteria with the widths of their intervals that are planned for by default, and their names in words.
SPANS: dict[str, float] = {"observed_to_expected": 0.2, "slope": 0.2, "auc": 0.1, "net_benefit": 0.2}
WORDS: dict[str, str] = {
    "observed_to_expected": "O:E",
    "in_the_large": "calibration in the large",
    "slope": "calibration slope",
    "auc": "AUC",
    "net_benefit": "standardized net benefit",
}
# Points of a stated distribution, and how far it reaches: in standard deviations, and in decays of its tails.
_POINTS, _FAR, _DECAYS = 40_001, 10.0, 40.0
# Steps of the search for the mean of two normal distributions; each halves an interval of 60 logits.
_HALVINGS = 80


@dataclass(frozen=True)
class Risks:
    """Distributions of a risk model's forecasts, with what happened or is expected to.

    Attributes
    ----------
    chance : Floats
        (B,) increasing forecasts.
    happened, spared : Floats
        (D, B) in each distribution the weight of rows with and without the event.
    """

    chance: Floats
    happened: Floats
    spared: Floats

    @classmethod
    def expected(cls, chance: Floats, weight: Floats) -> Risks:
        """One distribution of forecasts that are calibrated."""
        return cls(chance, (weight * chance)[None], (weight * (1 - chance))[None])

    @property
    def share(self) -> Floats:
        """(D, B) the share of rows at each forecast."""
        weight = self.happened + self.spared
        return np.asarray(weight / weight.sum(axis=1, keepdims=True))

    @property
    def prevalence(self) -> Floats:
        """(D,) the share of events."""
        total = self.happened.sum(axis=1)
        return np.asarray(total / (total + self.spared.sum(axis=1)))

    @property
    def auc(self) -> Floats:
        """(D,) the probability that a row with the event has the higher forecast; ties count half."""
        below = np.cumsum(self.spared, axis=1) - self.spared / 2
        pairs = self.happened.sum(axis=1) * self.spared.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((self.happened * below).sum(axis=1) / pairs)

    def information(self) -> tuple[Floats, Floats]:
        """(D,) what a row tells of the intercept given the slope, and of the slope beside an intercept."""
        spread = self.chance * (1 - self.chance)
        # Forecasts of 0 and 1 tell nothing of either.
        logit = np.where(spread > 0, _logit(np.where(spread > 0, self.chance, 0.5)), 0.0)
        share = self.share * spread
        level = share.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            middle = (share @ logit) / level
        # About the middle, because sums of squares of equal logits would cancel.
        return level, (share * (logit - middle[:, None]) ** 2).sum(axis=1)

    def rates(self, threshold: float) -> tuple[Floats, Floats]:
        """(D,) the sensitivity and the specificity of calibrated forecasts at a threshold."""
        share, acts = self.share, self.chance >= threshold
        event, none = share * self.chance, share * (1 - self.chance)
        with np.errstate(divide="ignore", invalid="ignore"):
            sensitivity = event[:, acts].sum(axis=1) / event.sum(axis=1)
            return sensitivity, none[:, ~acts].sum(axis=1) / none.sum(axis=1)


def rows_for(
    risks: Risks,
    spans: Mapping[str, float],
    z: float,
    *,
    prevalence: float | None = None,
    auc: float | None = None,
    threshold: float | None = None,
) -> dict[str, Floats]:
    """(D,) the number of rows that each criterion takes; infinite where no number is enough.

    The prevalence and the AUC are those of the distributions where they are not stated.
    """
    ones = np.ones(len(risks.happened))
    rate = risks.prevalence if prevalence is None else prevalence * ones
    rank = risks.auc if auc is None else auc * ones
    level, slope = risks.information()
    found = {}
    with np.errstate(divide="ignore", invalid="ignore"):
        for name, span in spans.items():
            error = error_of(name, span, z)
            if name == "observed_to_expected":
                needed = (1 - rate) / (rate * error**2)
            elif name == "in_the_large":
                needed = 1 / (level * error**2)
            elif name == "slope":
                needed = 1 / (slope * error**2)
            elif name == "auc":
                needed = _ranking(rank, rate, error)
            else:
                assert threshold is not None
                needed = _benefit(*risks.rates(threshold), rate, threshold) / error**2
            found[name] = np.where(np.isnan(needed), np.inf, np.ceil(np.maximum(needed, 2.0)))
    return found


def error_of(name: str, span: float, z: float) -> float:
    """The standard error with which an interval is as wide as this; that of O:E is of its logarithm."""
    return math.asinh(span / 2) / z if name == "observed_to_expected" else span / (2 * z)


def _ranking(auc: Floats, rate: Floats, error: float) -> Floats:
    """The rows whose AUC has this standard error by Newcombe's variance (2006, method 4).

    It is c(1 - c)(1 + (n/2 - 1) k) / (n^2 f(1 - f)) with k = (1 - c)/(2 - c) + c/(1 + c): an equation in n.
    """
    k = (1 - auc) / (2 - auc) + auc / (1 + auc)
    square, whole = error**2 * rate * (1 - rate), auc * (1 - auc)
    linear = whole * k / 2
    return np.asarray((linear + np.sqrt(linear**2 + 4 * square * whole * (1 - k))) / (2 * square))


def _benefit(sensitivity: Floats, specificity: Floats, rate: Floats, threshold: float) -> Floats:
    """The variance of the standardized net benefit of one row (Marsh et al. 2020)."""
    odds = (1 - rate) / rate * threshold / (1 - threshold)
    alarms = 1 - specificity
    variance = sensitivity * (1 - sensitivity) / rate + odds**2 * specificity * alarms / (1 - rate)
    return np.asarray(variance + odds**2 * alarms**2 / (rate * (1 - rate)))


# ---- stated distributions ----------------------------------------------------------------------


def normal_risks(mean: float, deviation: float) -> Risks:
    """Risks whose logits have a normal distribution."""
    logit = np.linspace(mean - _FAR * deviation, mean + _FAR * deviation, _POINTS)
    return _of_logits(logit, _bell(logit, mean, deviation))


def beta_risks(a: float, b: float) -> Risks:
    """Risks that have a beta distribution."""
    from scipy.special import digamma, expit, polygamma

    middle, deviation = float(digamma(a) - digamma(b)), float(np.sqrt(polygamma(1, a) + polygamma(1, b)))
    low, high = middle - _FAR * deviation - _DECAYS / a, middle + _FAR * deviation + _DECAYS / b
    logit = np.linspace(low, high, _POINTS)
    height = -a * np.logaddexp(0.0, -logit) - b * np.logaddexp(0.0, logit)
    weight = np.exp(height - height.max())
    return Risks.expected(expit(logit), weight / weight.sum())


def binormal_risks(auc: float, prevalence: float) -> Risks:
    """Calibrated risks with this AUC and prevalence, whose logits are normal with and without the event.

    With a common variance s the means are s apart, and the AUC is the normal probability of (s / 2)^(1/2).
    """
    from scipy.special import expit, ndtri

    apart = 2 * float(ndtri(auc)) ** 2
    deviation = math.sqrt(apart)
    low, high = -30.0 - apart, 30.0
    steps = np.linspace(-_FAR * deviation, _FAR * deviation + apart, _POINTS)
    weight = (1 - prevalence) * _bell(steps, 0.0, deviation) + prevalence * _bell(steps, apart, deviation)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if float(weight @ expit(middle + steps)) > prevalence:
            high = middle
        else:
            low = middle
    return _of_logits((low + high) / 2 + steps, weight)


def _bell(x: Floats, mean: float, deviation: float) -> Floats:
    """Weights of equally spaced points by a normal density: sums of smooth functions converge at once."""
    weight = np.exp(-(((x - mean) / deviation) ** 2) / 2)
    return np.asarray(weight / weight.sum())


def _of_logits(logit: Floats, weight: Floats) -> Risks:
    from scipy.special import expit

    return Risks.expected(np.asarray(expit(logit)), weight)


def _logit(chance: Floats) -> Floats:
    return np.asarray(np.log(chance) - np.log1p(-chance))
