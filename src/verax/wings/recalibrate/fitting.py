"""Fits of the methods to rows whose outcomes are known, by any proper rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.analyses.calibration.isotonic import isotonic_fit
from verax.analyses.units import sums_at
from verax.inputs.arrays import Floats
from verax.scores.base import Rule
from verax.wings.recalibrate.curves import CURVES, MonotoneCurve, fit_curve
from verax.wings.recalibrate.forms import CalibrationMap, Isotonic, LogLinear, Unchanged, cumulative
from verax.wings.recalibrate.rows import Configuration, FittingRows
from verax.wings.recalibrate.scaling import (
    STRUCTURED,
    fit_log_linear,
    fit_structured,
    fit_temperature,
    with_best_floor,
)

# The strengths of the penalty on a matrix, among which cross-validation chooses; the stronger, the simpler.
STRENGTHS = (1.0, 0.1, 0.01)
_STRENGTHS: dict[str, tuple[float, ...]] = {"dirichlet": STRENGTHS, "spline": (10.0, 1.0, 0.1)}


def configurations_of(method: str) -> list[Configuration]:
    """A method with each strength of its penalty, the strongest first."""
    return [Configuration(method, strength) for strength in _STRENGTHS.get(method, (None,))]


def fit(
    how: Configuration,
    rows: FittingRows,
    rule: Rule,
    *,
    ordered: bool,
    seed: int = 0,
    near: CalibrationMap | None = None,
) -> CalibrationMap:
    """The form of a method that loses least on the rows; the search begins at `near`, if that is given."""
    if how.method == "none" or not len(rows.y):
        return Unchanged()
    if how.method == "isotonic":
        return fit_isotonic(rows, thresholds=ordered or rows.n_classes == 2)
    some = with_best_floor(rows.to_fit(seed), rule)
    if how.method in CURVES:
        return fit_curve(how, some, rule, near if isinstance(near, MonotoneCurve) else None)
    begin = near if isinstance(near, LogLinear) else None
    if how.method in STRUCTURED:
        return fit_structured(how, some, rule, begin)
    if how.method == "temperature":
        return fit_temperature(some, rule, None if begin is None else float(begin.slopes))
    return fit_log_linear(how, some, rule, begin)


# ---- isotonic ----------------------------------------------------------------------------------


def fit_isotonic(rows: FittingRows, *, thresholds: bool) -> Isotonic:
    """The non-decreasing functions of classes or thresholds that fit best, by every proper score."""
    columns = cumulative if thresholds else np.asarray
    # Contiguous columns: the rows of one are taken in the order of its values.
    given = np.ascontiguousarray(np.asarray(columns(rows.p), float).T)
    knots = []
    for i, order in enumerate(rows.orders(columns)):
        happened = rows.y <= i if thresholds else rows.y == i
        knots.append(_knots(given[i][order], happened[order], rows.weights[order]))
    # As if one more row had been seen, spread over all classes: no class is ruled out for good.
    spread = 1 / (len(rows.y) + 1)
    return Isotonic(thresholds, tuple(x for x, _ in knots), tuple(y for _, y in knots), spread)


def _knots(given: Floats, happened: Any, weights: Floats) -> tuple[Floats, Floats]:
    """The ends of the steps of an isotonic fit to rows in the order of `given`, and their heights."""
    begins = np.append(True, given[1:] != given[:-1])
    values, pools = given[begins], np.cumsum(begins) - 1
    cells = np.stack([sums_at(pools, weights * part, len(values)) for part in (~happened, happened)], axis=1)
    fitted = isotonic_fit(cells)
    heights = fitted.blocks[:, 1] / fitted.blocks.sum(axis=1)
    last = np.cumsum(fitted.sizes) - 1
    ends = np.stack([last - fitted.sizes + 1, last], axis=1).ravel()
    single = np.append(np.diff(ends) == 0, False)
    return values[fitted.kept][ends][~single], np.repeat(heights, 2)[~single]
