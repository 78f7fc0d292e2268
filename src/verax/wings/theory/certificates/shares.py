"""Scores of the shares of several raters: whether the truth that raters are drawn from loses least.

With m raters the shares are a draw from a multinomial distribution, and the expected loss of a forecast is a
sum over all such draws. A score that is linear in the shares, as the mean loss over the raters, keeps the
properties that it has for single outcomes; a distance between shares and forecast may not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb, factorial, prod
from typing import Any

import numpy as np

from verax.errors import InputError
from verax.inputs.arrays import Bools, Floats, Ints
from verax.scores.base import Rule
from verax.wings.theory.certificates.probes import Probes, call, losses_function, probes
from verax.wings.theory.certificates.sweeps import compositions

# The most draws of raters, and the most forecasts, that all are compared.
_MOST_DRAWS, _MOST_FORECASTS = 1000, 250
# Forecasts nearer to each other than those with these denominators may lose the same by rounding.
_LARGEST = 100
_ROUNDING = 1e-9


@dataclass(frozen=True)
class SharePanel:
    """Expected losses of exact forecasts under exact truths.

    Attributes
    ----------
    name : str
        The name of the score.
    probes : Probes
        The forecasts.
    rows : array of shape (F,)
        Those that are compared, simplest first.
    expected : array of shape (F, F)
        The expected loss of each forecast (row) under each truth (column).
    linear : str
        A forecast and shares for which the score is not linear in the shares; empty if it is.
    """

    name: str
    probes: Probes
    rows: Ints
    expected: Floats
    linear: str

    @property
    def checked(self) -> int:
        """The number of compared pairs of a truth and a forecast."""
        return self.expected.size - len(self.rows)

    def worse(self, *, tied: bool) -> tuple[int, int, tuple[float, float]] | None:
        """The simplest truth that another forecast beats, or ties, with that forecast and both losses."""
        honest = self.expected.diagonal()
        room = _ROUNDING * np.maximum(1.0, np.abs(np.where(np.isfinite(honest), honest, 1.0)))
        with np.errstate(invalid="ignore"):
            gain = honest - self.expected
        wrong: Bools = gain > room
        if tied:
            wrong |= (np.abs(gain) <= room) & ~np.eye(len(honest), dtype=np.bool_)
        truths = np.flatnonzero(wrong.any(axis=0))
        if not len(truths):
            return None
        q = int(truths[0])
        p = int(np.argmax(np.where(wrong[:, q], np.round(gain[:, q], 9), -np.inf)))
        return int(self.rows[p]), int(self.rows[q]), (float(self.expected[p, q]), float(honest[q]))


def share_panel(rule: object, n_classes: int, raters: int, seed: int) -> SharePanel:
    """The expected losses by a rule, or by a function f(g, p) of the shares g of raters."""
    if comb(raters + n_classes - 1, n_classes - 1) > _MOST_DRAWS:
        raise InputError(
            f"must be few enough that there are at most {_MOST_DRAWS:,} shares of {n_classes} classes",
            argument="raters",
            found=f"{raters} raters have {comb(raters + n_classes - 1, n_classes - 1):,}",
            values=[raters],
        )
    counts = compositions(raters, n_classes)
    shares = counts / raters
    forecasts = probes(n_classes, seed)
    rows = np.flatnonzero(forecasts.core & (forecasts.totals <= _LARGEST))[:_MOST_FORECASTS]
    p = forecasts.p[rows]
    name, losses = _of_shares(rule)
    loss = losses(shares, p)
    ways = np.array([factorial(raters) // prod(map(factorial, row)) for row in counts.tolist()], float)
    chances = ways * np.prod(p[:, None, :] ** counts, axis=2)
    with np.errstate(invalid="ignore"):
        expected = np.where(chances[None] > 0, loss[:, None, :] * chances[None], 0.0).sum(axis=2)
    return SharePanel(name, forecasts, rows, expected, _bent(losses, shares, loss, p))


def _of_shares(rule: object) -> tuple[str, Callable[[Floats, Floats], Floats]]:
    """The name of a score, and the losses of forecasts (rows) for shares (columns)."""
    if isinstance(rule, (str, Rule)):
        name, by_class = losses_function(rule)

        def mean(shares: Floats, p: Floats) -> Floats:
            losses = by_class(p)
            with np.errstate(invalid="ignore"):
                return np.asarray(np.where(shares > 0, shares * losses[:, None, :], 0.0).sum(axis=2))

        return name, mean
    losses_function(rule)
    f: Any = rule
    called = getattr(f, "__name__", repr(f))
    return called, lambda shares, p: np.array(
        [[call(f, called, g.copy(), q.copy()) for g in shares] for q in p]
    )


def _bent(losses: Callable[[Floats, Floats], Floats], shares: Floats, loss: Floats, p: Floats) -> str:
    """The simplest forecast and shares whose loss is not the mean of those of the classes; empty if none."""
    of_classes = losses(np.eye(shares.shape[1]), p)
    with np.errstate(invalid="ignore"):
        mean = np.where(shares > 0, shares * of_classes[:, None, :], 0.0).sum(axis=2)
        bent = np.abs(loss - mean) > _ROUNDING * np.maximum(1.0, np.abs(mean))
    if not bent.any():
        return ""
    row, at = (int(places[0]) for places in np.nonzero(bent))
    shown = [", ".join(f"{x:.3g}" for x in values) for values in (p[row], shares[at])]
    return (
        f"({shown[0]}) loses {loss[row, at]:.4g} for the shares ({shown[1]}), and {mean[row, at]:.4g} on "
        "average over the classes with these shares"
    )
