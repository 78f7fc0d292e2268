"""Comparisons of cross-validated losses: intervals and p-values that allow for the chance of the fits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from verax.analyses.comparison.conclusions import lettered
from verax.analyses.comparison.records import Difference
from verax.analyses.comparison.result import Comparison
from verax.analyses.units import sums_at
from verax.inference.estimates import holm
from verax.inference.intervals import Interval
from verax.inputs.arrays import Floats
from verax.inputs.groups import Groups

# P-values below this are zero but for rounding.
_NO_CHANCE = 1e-12


def allowing_for_fits(
    found: Comparison,
    losses: Mapping[str, Floats],
    fits: Mapping[str, Floats],
    weights: Floats | None,
    groups: Groups | None,
) -> Comparison:
    """A comparison of cross-validated losses, about the fits to all rows.

    The interval of held-out losses takes the fits of the folds as they are. The fit to all rows differs from
    them by chance. The spread of the losses of the fits shows how much (`fit_variance`), so the variance of
    a difference is that of the rows plus a multiple of this spread.

    Parameters
    ----------
    losses : mapping of str to (N,) array
        The held-out losses, by the name of the model.
    fits : mapping of str to (V, N) array
        Of every model that was fitted: the losses in all rows of the fit without each fold.
    """
    (rule,) = found.differences
    n = len(next(iter(losses.values())))
    w = np.ones(n) if weights is None else weights / weights.max()
    units = np.arange(n) if groups is None else groups.first_kind

    def sums(column: Floats) -> Floats:
        return sums_at(units, np.where(w > 0, w * column, 0.0), int(units.max()) + 1)

    spread = {name: np.array([sums(column) for column in own]) for name, own in fits.items()}

    def factor(a: str, b: str) -> float:
        """How many times larger the standard error of a difference is."""
        folds = len(spread.get(a, spread.get(b, ())))
        with np.errstate(invalid="ignore"):
            gaps = losses[a] - losses[b]
            of_rows = sums(gaps - np.average(gaps[w > 0], weights=w[w > 0]))
            of_fits = spread.get(a, np.zeros(1)) - spread.get(b, np.zeros(1))
        if not folds or not np.isfinite(of_rows).all() or not np.isfinite(of_fits).all() or not of_rows.any():
            return 1.0
        extra = fit_variance(folds) * float(of_fits.var(axis=0, ddof=1).sum())
        return math.sqrt(1 + extra / float((of_rows**2).sum()))

    differences = [_less_certain(d, factor(d.a, d.b)) for d in found.differences[rule]]
    adjusted = holm(np.array([d.p_value for d in differences])).tolist()
    differences = [replace(d, p_adjusted=p) for d, p in zip(differences, adjusted, strict=True)]
    base = found.reference
    models = [
        model
        if base not in losses or model.name == base
        else replace(
            model, skill_interval=_widened(model.skill_interval, model.skill, factor(model.name, str(base)))
        )
        for model in found.models[rule]
    ]
    models = lettered(models, differences, 1 - found.confidence)
    return replace(found, differences={rule: differences}, models={rule: models})


def fit_variance(n_folds: int) -> float:
    """The variance of a cross-validated gain that comes from the fits, as a multiple of their spread.

    Near the optimum a loss is quadratic in what is fitted. Let s_v be what the rows of fold v contribute to
    the gradient there, standardised, and s their sum. In units of one row, the gain of the fit to all rows
    is -|s|^2 / 2 and, with a = V / (V - 1), its cross-validated estimate is the sum over the folds of

        a s_v (s - s_v) - a^2 |s - s_v|^2 / (2 V).

    Their difference is `up` |s|^2 - `down` sum |s_v|^2, and has the variance below for each number fitted.
    An interval of held-out losses has the variance a, and the losses of a row vary by a^2 / V over the fits.
    """
    v, a = n_folds, n_folds / (n_folds - 1)
    up, down = a - a * a * (v - 2) / (2 * v) + 0.5, a + a * a / (2 * v)
    of_difference = 2 * up * up + 2 * down * down / v - 4 * up * down / v
    return (of_difference - a) / (a * a / v)


def _less_certain(gap: Difference, factor: float) -> Difference:
    """A difference whose standard error is larger by a factor."""
    from scipy.special import stdtr, stdtrit

    if factor == 1 or not math.isfinite(gap.p_value):
        return gap
    freedom = gap.freedom if math.isfinite(gap.freedom) else 1e9
    # The quantile of a p-value near zero is lost in rounding.
    t = abs(stdtrit(freedom, gap.p_value / 2))
    if gap.p_value < _NO_CHANCE:
        t = abs(gap.difference) / gap.standard_error if gap.standard_error > 0 else math.inf
    return replace(
        gap,
        interval=_widened(gap.interval, gap.difference, factor),
        p_value=float(2 * stdtr(freedom, -t / factor)),
        standard_error=gap.standard_error * factor,
    )


def _widened(ends: Interval, around: float, factor: float) -> Interval:
    """An interval whose ends are farther from a value by a factor."""
    if factor == 1 or not ends.defined:
        return ends
    return Interval(
        around - factor * (around - ends.low),
        around + factor * (ends.high - around),
        method=f"{ends.method} with the variance of the fits",
        confidence=ends.confidence,
        caution=ends.caution,
    )
