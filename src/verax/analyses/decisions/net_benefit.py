"""Decision curves: what acting on a forecast is worth, for everybody's balance of benefit and harm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np

from verax.analyses.binary import read_models
from verax.analyses.decisions.curves import (
    Counted,
    CountedRows,
    CurveDifference,
    EventCurve,
    EventCurves,
    all_curves,
)
from verax.analyses.decisions.grid import GridMeans, check_grid, in_words, runs
from verax.analyses.decisions.gridsums import CountedHandle
from verax.common.checks import check_flag
from verax.display.tables import html_table, text_table
from verax.inference.intervals import check_confidence, check_seed, t_quantile
from verax.inputs.arrays import Floats, Ints
from verax.inputs.handles import Handle
from verax.inputs.options import Reading, reads


@reads
def net_benefit(
    y: object,
    p: object = None,
    *,
    thresholds: Sequence[float] | None = None,
    ordered: bool = False,
    standardized: bool = False,
    confidence: float = 0.95,
    seed: int = 0,
    **read: Unpack[Reading],
) -> DecisionCurves:
    """Decision curves: the net benefit of acting where the probability of an event reaches a threshold.

    Who acts from probability t on thinks a false alarm 1/t - 1 times less bad than a miss. The net benefit
    of doing so is the share of rows with the event that are acted on, minus t / (1 - t) times the share of
    rows without it that are. Acting nowhere has a net benefit of 0; acting everywhere is the other line to
    beat. Higher is better.

    A forecast that equals the threshold is acted on. Net benefit is a mean over rows, so intervals come from
    its standard error, with groups from that of sums over groups. Bands cover the whole curve at once.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K), or Handle
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows. Or predictions that
        `scan` has opened, in place of both `y` and `p`.
    p : array_like of shape (N, K) or (N,), or mapping of str to these, optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1 is
        enough. Or the forecasts of several models, by name.
    thresholds : sequence of floats, optional
        Increasing probabilities above 0 and below 1; by default 0.01, 0.02, ..., 0.99.
    ordered : bool, default False
        Whether to draw a curve for each threshold of ordered classes, Y >= class, instead of one for each
        class. Two classes have one curve, that of class 1.
    standardized : bool, default False
        Whether to divide by the frequency of the event, so that 1 is the most that can be reached.
    confidence : float, default 0.95
        Confidence level of intervals and bands.
    seed : int, default 0
        Random seed of the simultaneous bands.
    **read

    Returns
    -------
    DecisionCurves
        The curves and their differences.

    See Also
    --------
    murphy : The same as regret, for every proper score.
    choose_thresholds : Thresholds that are best by a metric.

    References
    ----------
    Vickers and Elkin (2006), doi:10.1177/0272989X06295361

    Examples
    --------
    >>> import verax as vx
    >>> curves = vx.net_benefit([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], thresholds=[0.2, 0.5])
    >>> curve = curves.curves[0]
    >>> curve.values.round(4).tolist(), curve.treat_all.round(4).tolist()
    ([0.4375, 0.0], [0.375, 0.0])
    """
    check_confidence(confidence)
    check_seed(seed)
    grid = check_grid(thresholds)
    scale = check_flag("standardized", standardized)
    check_flag("ordered", ordered)
    counted: Counted
    if isinstance(y, Handle):
        counted = CountedHandle.of(y, grid, "right", ordered=ordered)
    else:
        counted = CountedRows(read_models(y, p, ordered, read), grid, "right")
    plan = _Plan(counted, grid, scale, confidence, seed)
    curves, gaps = all_curves(counted, plan.curve, plan.gap)
    return DecisionCurves(curves, gaps, counted.rows, confidence, scale).with_skipped(counted.skipped)


# ---- results -----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, eq=False)
class DecisionCurve(EventCurve):
    """The net benefit of one model for one event.

    Attributes
    ----------
    band : array of shape (2, T)
        A band that holds for all thresholds at once.
    treat_all : array of shape (T,)
        The net benefit of acting in all rows; that of acting in none is zero.
    prevalence : float
        How often the event happened.
    useful : list of pairs of floats
        Ranges of thresholds in which the forecast is better than acting in all rows and than acting in none,
        beyond chance for all thresholds at once.
    model : str
        The name of the model.
    event : str
        The class, or "> class".
    thresholds : array of shape (T,)
        The thresholds.
    values : array of shape (T,)
        The net benefits.
    interval : array of shape (2, T)
        Confidence intervals of the values, each for its threshold.

    Examples
    --------
    >>> import verax as vx
    >>> curve = vx.net_benefit([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], thresholds=[0.2, 0.5]).curve()
    >>> curve.event, curve.prevalence
    ('1', 0.5)
    """

    band: Floats
    treat_all: Floats
    prevalence: float
    useful: list[tuple[float, float]]


@dataclass(frozen=True, repr=False, eq=False)
class DecisionCurves(EventCurves[DecisionCurve, CurveDifference]):
    """The decision curves of all models and events; differences are positive where `a` is better.

    Attributes
    ----------
    standardized : bool
        Whether values are divided by the frequency of the event.

    See Also
    --------
    net_benefit : How to get it.

    Examples
    --------
    >>> import verax as vx
    >>> curves = vx.net_benefit([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], thresholds=[0.2, 0.5])
    >>> curves.curve("1").values.round(4).tolist()
    [0.4375, 0.0]
    """

    standardized: bool

    quantity = "net_benefit"
    beside: ClassVar[tuple[str, ...]] = ("treat_all",)

    @property
    def sentences(self) -> list[str]:
        """Where each model is of use, in words."""
        return [f"{self.called(curve.event)}, {curve.model}: {_sentence(curve)}" for curve in self.curves]

    def _shown(self) -> dict[str, Any]:
        return {**super()._shown(), "standardized": self.standardized}

    def plot(self) -> Any:
        """Draw all curves, a panel for each event.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from verax.display.decision_curves import draw_decision_curves

        return draw_decision_curves(self, self.curves)

    def _cells(self) -> list[list[str]]:
        shown = [0.05, 0.1, 0.2, 0.3, 0.5]
        grid = self.curves[0].thresholds
        at = [i for t in shown for i in np.flatnonzero(np.isclose(grid, t))[:1]]
        at = at or list(range(min(len(grid), 5)))
        header = ["event", "model", *(f"at {grid[i]:g}" for i in at)]
        lines = [[c.event, c.model, *(f"{c.values[i]:z.4f}" for i in at)] for c in self.curves]
        return [header, *lines]

    def _heading(self) -> str:
        what = "standardized net benefit" if self.standardized else "net benefit"
        return self.rows.heading(what)

    def __repr__(self) -> str:
        table = text_table(self._cells(), right=range(2, 9))
        return "\n".join([self._heading(), *table, *self.sentences, *self._said()])

    def _repr_html_(self) -> str:
        return html_table(self._cells(), caption=self._heading(), notes=[*self.sentences, *self._said()])


def _sentence(curve: DecisionCurve) -> str:
    if not curve.useful:
        return "nowhere better, beyond chance, than acting in all rows or in none."
    return f"better than acting in all rows or in none at thresholds {in_words(curve.useful)}."


# ---- curves ------------------------------------------------------------------------------------


def _values(places: Ints, happened: Floats, grid: Floats) -> Floats:
    """What acting adds to the net benefit in each cell, (C, T)."""
    odds = grid / (1 - grid)
    acted = np.arange(len(grid)) < places[:, None]
    return np.where(acted, happened[:, None] - (1 - happened[:, None]) * odds, 0.0)


def _scaled(values: Floats, happened: Floats, mean: Floats, rate: float) -> Floats:
    """Values whose mean is that of `values` over the frequency of the event, to first order in every row.

    NaN where the event never happened.
    """
    rate = rate or math.nan
    return np.asarray(values / rate - np.outer(happened - rate, mean / rate**2))


@dataclass(frozen=True)
class _Plan:
    """How all curves are computed."""

    counted: Counted
    grid: Floats
    standardized: bool
    confidence: float
    seed: int

    @property
    def quantile(self) -> float:
        return t_quantile(self.counted.rows.units.freedom, self.confidence)

    def curve(self, name: str, event: int) -> DecisionCurve:
        grid, (cells, units) = self.grid, self.counted.cells(event, name)
        acting = _values(cells.places[:, 0], cells.happened, grid)
        everywhere = _values(np.full(len(cells.happened), len(grid)), cells.happened, grid)
        weight = np.bincount(cells.codes, units.share)
        rate = float(weight @ cells.happened)
        treat_all = weight @ everywhere
        if self.standardized:
            acting, everywhere = (_scaled(v, cells.happened, weight @ v, rate) for v in (acting, everywhere))
            treat_all = treat_all / (rate or math.nan)
        found = GridMeans.of(cells.codes, acting, units)
        gains = GridMeans.of(cells.codes, np.hstack([acting, acting - everywhere]), units)
        low = gains.band(gains.widest(self.confidence, self.seed))[0].reshape(2, -1)
        return DecisionCurve(
            name,
            self.counted.events[event],
            grid,
            found.mean,
            found.band(self.quantile),
            found.band(found.widest(self.confidence, self.seed)),
            treat_all,
            rate,
            runs((low > 0).all(axis=0), grid),
        )

    def gap(self, a: str, b: str, event: int) -> CurveDifference:
        grid, (cells, units) = self.grid, self.counted.cells(event, a, b)
        values = [_values(cells.places[:, i], cells.happened, grid) for i in range(2)]
        gap = values[0] - values[1]
        weight = np.bincount(cells.codes, units.share)
        rate = float(weight @ cells.happened)
        squares = rate + (1 - rate) * (grid / (1 - grid)) ** 2
        if self.standardized:
            gap = _scaled(gap, cells.happened, weight @ gap, rate)
            squares = squares / (rate or math.nan) ** 2
        found = GridMeans.of(cells.codes, gap, units).doubted(squares)
        band = found.band(found.widest(self.confidence, self.seed))
        return CurveDifference(
            a, b, self.counted.events[event], grid, found.mean, found.band(self.quantile), band
        )
