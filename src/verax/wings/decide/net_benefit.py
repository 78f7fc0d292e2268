"""Decision curves: what acting on a forecast is worth, for everybody's balance of benefit and harm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Unpack

import numpy as np

from verax.analyses.bands import States
from verax.common.checks import check_flag
from verax.display.tables import Column, Table
from verax.inference.intervals import check_confidence, check_seed
from verax.inputs.arrays import Floats
from verax.inputs.handles import Handle
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.wings.decide.cells import Counted, check_grid, in_words, runs
from verax.wings.decide.curves import CurveDifference, EventCurve, EventCurves, all_curves, banded

if TYPE_CHECKING:
    from verax.display.figures import Figure, Sheet

# Thresholds that a table shows of many, and the most of which it shows each.
_USUAL, _MOST_COLUMNS = (0.05, 0.1, 0.2, 0.3, 0.5), 8


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
    **read: Unpack[RowOptions],
) -> DecisionCurves:
    """Decision curves: the net benefit of acting where the probability of an event reaches a threshold.

    Threshold t implies that a miss costs 1/t - 1 false alarms. The net benefit of acting at t is the share of
    rows with the event that are acted on, minus t / (1 - t) times the share of rows without it that are.
    Acting nowhere has a net benefit of 0; acting everywhere is the other line to beat. Higher is better.

    A forecast that equals the threshold is acted on. Net benefit is a sum of shares of rows: its confidence
    intervals combine their Jeffreys intervals (MOVER), with groups those of sums over groups. Bands are
    simultaneous (sup-t) over the thresholds at which at least 10 rows are acted on, those of differences from
    the first to the last threshold at which at least 10 rows are acted on by one model only.

    Parameters
    ----------
    y
    p : array_like of shape (N, K) or (N,), or mapping of str to these, optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1 is
        enough. Or the forecasts of several models, by name.
    thresholds : sequence of floats, optional
        Increasing probabilities above 0 and below 1; by default 0.01, 0.02, ..., 0.99.
    ordered : bool, default False
        Whether to draw a curve for each threshold of ordered classes, Y > class, instead of one for each
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
    handle = open_rows(y, p, ordered=ordered, dense=True, **read)
    return decision_curves(handle, grid, confidence, seed, ordered=ordered, standardized=scale)


# ---- results -----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, eq=False)
class DecisionCurve(EventCurve):
    """The net benefit of one model for one event.

    Attributes
    ----------
    band : array of shape (2, T)
        A simultaneous confidence band from the first to the last threshold in `banded`; NaN at the others.
    treat_all : array of shape (T,)
        The net benefit of acting in all rows; that of acting in none is zero.
    prevalence : float
        How often the event happened.
    useful : list of pairs of floats
        Ranges of thresholds in which the forecast is significantly better than acting in all rows and than
        acting in none, at all of these thresholds at once.
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

    _facts = ("banded",)

    @property
    def banded(self) -> tuple[float, float] | None:
        """The first and last threshold at which at least 10 rows are acted on."""
        return banded(self.band, self.thresholds)


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

    curves: tuple[DecisionCurve, ...]
    differences: tuple[CurveDifference, ...]
    standardized: bool

    quantity = "net_benefit"
    beside: ClassVar[tuple[str, ...]] = ("treat_all",)

    @property
    def sentences(self) -> list[str]:
        """The thresholds at which each model is of use, in words."""
        return [f"{self.called(curve.event)}, {curve.model}: {_sentence(curve)}" for curve in self.curves]

    def _sheet(self) -> Sheet:
        """The curves, a figure for each event."""
        from verax.display.figures import MOST_FIGURES, Sheet, widths

        events, title = self._drawn(MOST_FIGURES)
        drawn = [self._figure(event) for event in events]
        x, y = "threshold probability from which one acts", drawn[0].y.label
        size = widths(len(drawn), 5.6, 3.3, 2.6)[0], 2.8
        return Sheet([f.bare() for f in drawn], size=size, title=title, x=x, y=y, shared="x", key="above")

    def _figure(self, event: str) -> Figure:
        """The curves of an event, with those of acting in all rows and in none."""
        from verax.display.axes import Axis
        from verax.display.figures import Figure
        from verax.display.marks import Band, Guide, Line, Mark

        curves = [curve for curve in self.curves if curve.event == event]
        first = curves[0]
        x = first.thresholds
        marks: list[Mark] = [Guide("act in no row", "y", 0.0)]
        band = f"{100 * self.confidence:g}% simultaneous band"
        for i, curve in enumerate(curves):
            low, high = curve.band
            marks += [Line(curve.model, x, curve.values, i), Band(band, x, low, high, i)]
        marks.append(Line("act in all rows", x, first.treat_all, "soft"))
        # Below zero a model is of no use, however far.
        top = 1.0 if self.standardized else first.prevalence
        ends = (-0.1 * top, 1.08 * top) if top > 0 else (-0.1, 0.1)
        y = Axis("standardized net benefit" if self.standardized else "net benefit", *ends)
        says = " ".join(f"{curve.model}: {_sentence(curve)}" for curve in curves)
        return Figure(self.called(event), marks, Axis("threshold", 0, 1), y, says)

    def _tables(self) -> list[Table]:
        grid = self.curves[0].thresholds
        at = _columns(grid)
        columns = [Column(name, name, right=False) for name in ("event", "model")]
        columns += [Column("", f"at {grid[i]:g}", "z.4f", partial(_value_at, i)) for i in at]
        return [Table(columns, self.curves)]

    def _heading(self) -> str:
        what = "standardized net benefit" if self.standardized else "net benefit"
        return self.rows.heading(what)


def _columns(grid: Floats) -> list[int]:
    """The thresholds that the table shows: all if they are few, else usual ones, else some at equal steps."""
    if len(grid) <= _MOST_COLUMNS:
        return list(range(len(grid)))
    usual = [i for t in _USUAL for i in np.flatnonzero(np.isclose(grid, t))[:1]]
    return usual or np.linspace(0, len(grid) - 1, len(_USUAL)).round().astype(int).tolist()


def _value_at(i: int, curve: DecisionCurve) -> float:
    return float(curve.values[i])


def _sentence(curve: DecisionCurve) -> str:
    if not curve.useful:
        return "nowhere significantly better than acting in all rows or in none."
    return f"better than acting in all rows or in none at thresholds {in_words(curve.useful)}."


# ---- curves ------------------------------------------------------------------------------------


def decision_curves(
    handle: Handle,
    grid: Floats,
    confidence: float,
    seed: int,
    *,
    ordered: bool = False,
    standardized: bool = False,
) -> DecisionCurves:
    """The decision curves of every model and event at the thresholds of a grid."""
    counted = Counted(handle, grid, "right", ordered=ordered, stretches=False)
    plan = _Plan(counted, standardized, confidence, seed)
    curves, gaps = all_curves(counted, plan.curve, plan.gap)
    return DecisionCurves(curves, gaps, counted.rows, confidence, standardized).with_skipped(counted.skipped)


@dataclass(frozen=True)
class _Plan:
    """The options of all curves."""

    counted: Counted
    standardized: bool
    confidence: float
    seed: int

    def curve(self, name: str, event: int) -> DecisionCurve:
        grid, states = self.counted.grid, self.counted.states(event, name)
        (acts,), benefit = states.acts, _benefit(states, grid)
        mixture = states.mixture(acts * benefit, per_event=self.standardized)
        band = mixture.band(self.confidence, self.seed)
        # The sign is that of the standardized difference. Each band is false below with half the probability.
        over_all = states.mixture(~acts * -benefit).band(self.confidence, self.seed)
        rate = states.rate
        scale = (rate or math.nan) if self.standardized else 1.0
        return DecisionCurve(
            name,
            self.counted.events[event],
            grid,
            mixture.mean,
            mixture.interval(self.confidence),
            band,
            (rate - (1 - rate) * _odds(grid)) / scale,
            rate,
            runs((band[0] > 0) & (over_all[0] > 0), grid),
        )

    def gap(self, a: str, b: str, event: int) -> CurveDifference:
        grid, states = self.counted.grid, self.counted.states(event, a, b)
        first, second = states.acts
        factors = (first.astype(float) - second) * _benefit(states, grid)
        mixture = states.mixture(factors, per_event=self.standardized)
        interval, band = mixture.interval(self.confidence), mixture.band(self.confidence, self.seed)
        return CurveDifference(a, b, self.counted.events[event], grid, mixture.mean, interval, band)


def _odds(grid: Floats) -> Floats:
    """The number of true alarms that one false alarm takes back."""
    return grid / (1 - grid)


def _benefit(states: States, grid: Floats) -> Floats:
    """The addend of the net benefit by acting in each state, (S, T)."""
    return np.where(states.happened, 1.0, -_odds(grid))
