"""ROC and precision-recall curves with bands, and accuracy by confidence."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np

from verax.analyses.bands import States
from verax.analyses.binary import ScannedRows, event_names
from verax.analyses.discrimination.analysis import rank_events
from verax.analyses.discrimination.counts import Ranked
from verax.analyses.discrimination.ranking import AREA, PRECISION, over_events, scores_of
from verax.analyses.discrimination.result import RankScores
from verax.analyses.rates import Rates, tail_of, widest_of
from verax.common.checks import check_count, check_flag
from verax.inference.intervals import Interval, check_confidence, check_seed
from verax.inputs.arrays import Bools, Floats
from verax.inputs.handles import Handle
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.inputs.skipping import Skipped
from verax.wings.decide.cells import RIGHT, CellSums, GridRecipe, read_cells
from verax.wings.decide.rates.result import RateCurve, RateCurves

# Least probabilities of the most likely class at which confidence curves have points.
_CONFIDENCES = np.arange(100) / 100
# A band is for thresholds at which at least this number of rows, in effect, are acted on.
_ENOUGH = 10 - 1e-6
# Thresholds increase, and what is acted on decreases.
_BACKWARD = slice(None, None, -1)
_NO_AREA = "a confidence curve has no area"


@reads
def roc_curve(
    y: object,
    p: object = None,
    *,
    ordered: bool = False,
    points: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    **read: Unpack[RowOptions],
) -> RateCurves:
    """The ROC curve: sensitivity by false positive rate, with a confidence band and the area under it.

    Each point is exact: that of one threshold. Its sensitivity and its false positive rate have mid-P
    intervals. The band holds for the whole curve at once: it has all monotone curves that pass, at every
    threshold on it, through the rectangle of two simultaneous intervals (sup-t).

    Parameters
    ----------
    y
    p : array_like of shape (N, K) or (N,), or mapping of str to these, optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1 is
        enough. Or the forecasts of several models, by name, for paired differences of the areas.
    ordered : bool, default False
        Whether to draw a curve for each threshold of ordered classes, Y > class, instead of one for each
        class. Two classes have one curve, that of class 1.
    points : int, default 200
        Where there are more distinct forecasts, about this number of thresholds at equal steps along the
        curve.
    confidence : float, default 0.95
        Confidence level of intervals and bands.
    seed : int, default 0
        Random seed of the simultaneous bands.
    **read

    Returns
    -------
    RateCurves
        The curves, with their areas.

    See Also
    --------
    roc_auc : The area alone.
    operating_points : Sensitivity, specificity and predictive values at a threshold.

    References
    ----------
    Campbell (1994), doi:10.1002/sim.4780130511

    Examples
    --------
    >>> import verax as vx
    >>> curve = vx.roc_curve([0, 0, 1, 1, 1], [0.1, 0.4, 0.35, 0.8, 0.9]).curves[0]
    >>> curve.at(0.35)
    (0.5, 1.0)
    """
    _check(ordered, points, confidence, seed)
    handle = open_rows(y, p, ordered=ordered, dense=True, **read)
    return rate_curves("roc", handle, points, confidence, seed, ordered=ordered)


@reads
def precision_recall_curve(
    y: object,
    p: object = None,
    *,
    ordered: bool = False,
    points: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    **read: Unpack[RowOptions],
) -> RateCurves:
    """The precision-recall curve, with a confidence band and the average precision.

    Each point is exact: that of one threshold. Precision and recall have mid-P intervals. The band of the
    precision is simultaneous (sup-t) over all thresholds at which at least 10 rows are acted on. Nothing is
    interpolated between points.

    Parameters
    ----------
    y
    p : array_like of shape (N, K) or (N,), or mapping of str to these, optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1 is
        enough. Or the forecasts of several models, by name, for paired differences of the areas.
    ordered : bool, default False
        Whether to draw a curve for each threshold of ordered classes, Y > class, instead of one for each
        class. Two classes have one curve, that of class 1.
    points : int, default 200
        Where there are more distinct forecasts, about this number of thresholds at equal steps along the
        curve.
    confidence : float, default 0.95
        Confidence level of intervals and bands.
    seed : int, default 0
        Random seed of the simultaneous bands.
    **read

    Returns
    -------
    RateCurves
        The curves, with their average precision.

    Examples
    --------
    >>> import verax as vx
    >>> curve = vx.precision_recall_curve([0, 0, 1, 1, 1], [0.1, 0.4, 0.35, 0.8, 0.9]).curves[0]
    >>> curve.x.round(3).tolist(), curve.values.round(3).tolist()
    ([0.333, 0.667, 0.667, 1.0, 1.0], [1.0, 1.0, 0.667, 0.75, 0.6])
    """
    _check(ordered, points, confidence, seed)
    handle = open_rows(y, p, ordered=ordered, dense=True, **read)
    return rate_curves("precision_recall", handle, points, confidence, seed, ordered=ordered)


@reads
def confidence_curve(
    y: object,
    p: object = None,
    *,
    confidence: float = 0.95,
    seed: int = 0,
    **read: Unpack[RowOptions],
) -> RateCurves:
    """Accuracy among the rows whose most likely class has at least a given probability.

    The diagram of confidence against accuracy: if probabilities are calibrated, the accuracy from a
    confidence on is above that confidence. `acted` is the share of rows that are left. The most likely class
    is the lowest index where several are.

    Parameters
    ----------
    y
    p : array_like of shape (N, K) or (N,), or mapping of str to these, optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1 is
        enough. Or the forecasts of several models, by name.
    confidence : float, default 0.95
        Confidence level of intervals and bands.
    seed : int, default 0
        Random seed of the simultaneous bands.
    **read

    Returns
    -------
    RateCurves
        The curves, from a confidence of 0 to 0.99.

    See Also
    --------
    risk_coverage : The same by the share of rows that are kept, for any rule.

    References
    ----------
    Lakshminarayanan, Pritzel and Blundell (2017), arXiv:1612.01474

    Examples
    --------
    >>> import verax as vx
    >>> curve = vx.confidence_curve([0, 1, 1, 0], [0.1, 0.9, 0.4, 0.3]).curves[0]
    >>> curve.at(0.5), curve.at(0.8)
    ((0.5, 0.75), (0.8, 1.0))
    """
    check_confidence(confidence)
    check_seed(seed)
    return confidence_curves(open_rows(y, p, dense=True, **read), confidence, seed)


# ---- curves ------------------------------------------------------------------------------------


def confidence_curves(handle: Handle, confidence: float, seed: int) -> RateCurves:
    """The accuracy by confidence of every model."""
    recipes = {(name, 0): GridRecipe((name,), RIGHT, False, _CONFIDENCES, "right") for name in handle.models}
    cells, summaries = read_cells(handle, recipes)
    grid, curves = _CONFIDENCES, []
    for (name, _), sums in cells.items():
        rates = Rates(States(sums.as_cells(1, len(grid) + 1), len(grid)))
        band = _precision_band(rates, confidence, seed)
        curve = _curve(rates, grid, (grid, np.stack([grid, grid])), "ppv", band, confidence, slice(None))
        curves.append(replace(curve, model=name))
    rows = _rows(handle, next(iter(cells.values())), summaries.n_rows, ordered=False)
    return _result("confidence", curves, (), rows, confidence, summaries.skipped)


def _check(ordered: bool, points: int, confidence: float, seed: int) -> None:
    check_confidence(confidence)
    check_seed(seed)
    check_flag("ordered", ordered)
    check_count("points", points, least=2)


def rate_curves(
    kind: Literal["roc", "precision_recall"],
    handle: Handle,
    points: int,
    confidence: float,
    seed: int,
    *,
    ordered: bool,
) -> RateCurves:
    """The curves of one kind, of every model and event, with the areas below them."""
    metric = AREA if kind == "roc" else PRECISION
    ranks = rank_events(handle, ordered=ordered, precise=metric == PRECISION, weighted=False)
    average = over_events("macro", ordered)
    scores = scores_of(metric, ranks, average, confidence, several=handle.several)
    by_model = scores if isinstance(scores, RankScores) else {handle.models[0]: scores}
    events = event_names(handle.class_names, ordered=ordered)
    recipes = {}
    for name, cells_of_events in zip(handle.models, ranks.cells, strict=True):
        for i, ranked in enumerate(cells_of_events):
            grid = _thresholds(ranked, points)
            grid = np.append(grid, np.inf) if kind == "roc" else grid
            recipes[name, i] = GridRecipe((name,), i, ordered, grid, "right", ranked=True)
    cells, read_once = read_cells(handle, recipes)
    curves = []
    for (name, i), sums in cells.items():
        grid, part = recipes[name, i].grid, by_model[name].parts[i]
        rates = Rates(States(sums.as_cells(1, len(grid) + 1), len(grid)))
        draw = _roc if kind == "roc" else _precision_recall
        curve = draw(rates, grid, confidence, seed)
        curves.append(
            replace(curve, model=name, event=events[i], area=part.value, area_interval=part.interval)
        )
    rows = _rows(handle, next(iter(cells.values())), read_once.n_rows, ordered=ordered)
    gaps = scores.differences if isinstance(scores, RankScores) and len(scores) > 1 else ()
    return _result(kind, curves, tuple(gaps), rows, confidence, read_once.skipped)


def _result(
    kind: str,
    curves: list[RateCurve],
    gaps: tuple[Any, ...],
    rows: ScannedRows,
    confidence: float,
    skipped: Skipped | None,
) -> RateCurves:
    return RateCurves(kind, tuple(curves), gaps, rows, confidence).with_skipped(skipped)


def _thresholds(ranked: Ranked, points: int) -> Floats:
    """Distinct forecasts, increasing; of many those at equal steps along the curve."""
    if len(ranked.keys) <= points:
        return ranked.least
    rates = ranked.sizes
    steps = np.zeros(len(ranked.keys))
    for k in (0, 1):
        if rates[k] > 0:
            steps += np.bincount(ranked.place, ranked.share * (ranked.y == k), len(steps)) / rates[k]
    along = np.cumsum(steps) / steps.sum()
    at = np.searchsorted(along, np.arange(points) / points + 1e-12, side="left")
    chosen = np.unique(np.append(at, len(along) - 1).clip(0, len(along) - 1))
    return np.asarray(ranked.least[chosen])


def _acted(rates: Rates) -> Floats:
    return np.asarray((rates.states.share * rates.states.acts[0]).sum(axis=0))


def _roc(rates: Rates, grid: Floats, confidence: float, seed: int) -> RateCurve:
    x = 1 - rates.value("specificity")
    x = np.where(np.abs(x) < 1e-12, 0.0, x)
    of_x = 1 - rates.limits("specificity", (1 - confidence) / 2)[::-1]
    band = _roc_band(rates, x, confidence, seed)
    return _curve(rates, grid, (x, of_x), "sensitivity", band, confidence, _BACKWARD)


def _curve(
    rates: Rates,
    grid: Floats,
    x: tuple[Floats, Floats],
    y: str,
    band: Floats,
    confidence: float,
    order: slice,
) -> RateCurve:
    """A curve in the order in which `x` increases; `y` is the name of a rate. Names and areas follow."""
    limits = rates.limits(y, (1 - confidence) / 2)
    none = Interval.undefined(_NO_AREA, confidence=confidence)
    return RateCurve(
        "",
        "right",
        grid[order],
        x[0][order],
        rates.value(y)[order],
        _acted(rates)[order],
        x[1][:, order],
        limits[:, order],
        band[:, order],
        math.nan,
        none,
    )


def _roc_band(rates: Rates, x: Floats, confidence: float, seed: int) -> Floats:
    """The range at `x` of monotone curves through simultaneous rectangles around all points, (2, T)."""
    if np.isnan(rates.value("youden")).any() or rates.states.cells.units.n < 2:
        return np.full((2, len(x)), np.nan)
    everywhere = np.ones(len(x), np.bool_)
    quantile = widest_of(rates, ("sensitivity", "specificity"), everywhere, confidence, seed)
    tail = tail_of(rates.states, quantile)
    low, high = rates.limits("sensitivity", tail)
    left, right = 1 - rates.limits("specificity", tail)[::-1]
    below = right[None, :] <= x[:, None] + 1e-12
    above = left[None, :] > x[:, None] + 1e-12
    return np.stack(
        [
            np.where(below, low, 0.0).max(axis=1),
            np.where(above, high, 1.0).min(axis=1),
        ]
    )


def _precision_recall(rates: Rates, grid: Floats, confidence: float, seed: int) -> RateCurve:
    x = rates.value("sensitivity"), rates.limits("sensitivity", (1 - confidence) / 2)
    return _curve(rates, grid, x, "ppv", _precision_band(rates, confidence, seed), confidence, _BACKWARD)


def _precision_band(rates: Rates, confidence: float, seed: int) -> Floats:
    """Simultaneous limits of the precision where enough rows are acted on, (2, T); NaN elsewhere."""
    states = rates.states
    enough: Bools = states.effective(states.acts[0]) >= _ENOUGH
    enough = enough & ~np.isnan(rates.value("ppv"))
    if not enough.any() or states.cells.units.n < 2:
        return np.full((2, states.n_thresholds), np.nan)
    quantile = widest_of(rates, ("ppv",), enough, confidence, seed)
    return np.where(enough, rates.limits("ppv", tail_of(rates.states, quantile)), np.nan)


def _rows(handle: Handle, sums: CellSums, n_rows: int, *, ordered: bool) -> ScannedRows:
    """The facts on the rows, of which cells leave out those without weight."""
    n_places = int(sums.cells.total.keys.max()) // 2 + 2
    units = sums.as_cells(1, n_places).units
    n_groups = units.n if units.grouped else None
    return ScannedRows(n_rows, n_groups, handle.n_classes, ordered, units)
