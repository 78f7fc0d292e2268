"""Decision curves: what acting on a forecast is worth, for everybody's balance of benefit and harm."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Unpack

import numpy as np

from verax.analyses.binary import BinaryEvent, EventRows, read_models
from verax.analyses.decisions.grid import Cells, GridMeans, check_grid, in_words, plain_fields, runs
from verax.common.checks import check_flag
from verax.display.tables import FrameKind, data_frame, html_table, text_table
from verax.inference.intervals import check_confidence, check_seed, t_quantile
from verax.inputs.arrays import Floats, Ints
from verax.inputs.options import Reading, reads
from verax.inputs.skipping import MaySkip


@reads
def net_benefit(
    y: object,
    p: object,
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

    Parameters
    ----------
    y : array
        Outcomes as for `evaluate`.
    p : array or mapping
        Forecasts as for `evaluate`, or a mapping from names of models to the forecasts of each.
    thresholds : list of floats or None
        Increasing probabilities above 0 and below 1; by default 0.01, 0.02, ..., 0.99.
    ordered : bool
        A curve for each threshold of ordered classes, Y >= class, instead of one for each class. Two
        classes have one curve, that of class 1.
    standardized : bool
        Divide by the frequency of the event, so that 1 is the most that can be reached.
    confidence, seed
        Confidence of intervals and bands; random seed of the simultaneous bands.
    **read

    A forecast that equals the threshold is acted on. Net benefit is a mean over rows, so intervals come from
    its standard error, with groups from that of sums over groups. Bands cover the whole curve at once.

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
    models = read_models(y, p, check_flag("ordered", ordered), read)
    first = next(iter(models.values()))
    events = {name: rows.events() for name, rows in models.items()}
    curves = [
        _curve(name, rows, event, grid, scale, confidence, seed)
        for name, rows in models.items()
        for event in events[name]
    ]
    gaps = [
        _gap((a, events[a][i]), (b, events[b][i]), first, grid, scale, confidence, seed)
        for i in range(len(events[next(iter(models))]))
        for a, b in combinations(models, 2)
    ]
    return DecisionCurves(tuple(curves), tuple(gaps), first, scale, confidence)


# ---- results -----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, eq=False)
class DecisionCurve:
    """The net benefit of one model for one event.

    Attributes
    ----------
    model, event : str
        The name of the model, and the class or ">= class".
    prevalence : float
        How often the event happened.
    thresholds, values : (T,) arrays
        The thresholds and the net benefits.
    treat_all : (T,) array
        The net benefit of acting everywhere; that of acting nowhere is zero.
    interval : (2, T) array
        Confidence intervals of the values, each for itself.
    band : (2, T) array
        A band that holds for all thresholds at once.
    useful : list of pairs of floats
        Ranges of thresholds in which the forecast is better than acting everywhere and than acting nowhere,
        beyond chance for all thresholds at once.
    """

    model: str
    event: str
    prevalence: float
    thresholds: Floats
    values: Floats
    treat_all: Floats
    interval: Floats
    band: Floats
    useful: list[tuple[float, float]]


@dataclass(frozen=True, repr=False, eq=False)
class CurveGap:
    """Net benefit of model `a` minus that of model `b` for one event: positive where `a` is better.

    `interval` holds for each threshold, `band` for all at once. Only rows with a threshold between their two
    forecasts tell about it; to be on the safe side, two more rows that contradict each other are added.
    """

    a: str
    b: str
    event: str
    thresholds: Floats
    values: Floats
    interval: Floats
    band: Floats


@dataclass(frozen=True, repr=False, eq=False)
class DecisionCurves(MaySkip):
    """The decision curves of all models and events."""

    curves: tuple[DecisionCurve, ...]
    gaps: tuple[CurveGap, ...]
    rows: EventRows
    standardized: bool
    confidence: float

    def __iter__(self) -> Iterator[DecisionCurve]:
        return iter(self.curves)

    def __len__(self) -> int:
        return len(self.curves)

    def curve(self, event: object | None = None, model: str | None = None) -> DecisionCurve:
        """The curve of an event and a model; the first of those that fit."""
        for found in self.curves:
            fits = event is None or str(event) == found.event
            if fits and model in (None, found.model):
                return found
        raise KeyError(f"there is no curve of {event!r} and {model!r}")

    def gap(self, a: str, b: str, event: object | None = None) -> CurveGap:
        """The difference of two models for an event, in the direction asked for."""
        for found in self.gaps:
            if event is not None and str(event) != found.event:
                continue
            if (found.a, found.b) == (a, b):
                return found
            if (found.a, found.b) == (b, a):
                turned = -found.interval[::-1], -found.band[::-1]
                return CurveGap(a, b, found.event, found.thresholds, -found.values, *turned)
        raise KeyError(f"there is no difference of {a!r} and {b!r} for {event!r}")

    @property
    def sentences(self) -> list[str]:
        """What the curves show, in words."""
        return [_sentence(curve, self.rows.ordered) for curve in self.curves]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values."""
        return {
            "n_rows": len(self.rows.y),
            "n_groups": self.rows.n_groups,
            "ordered": self.rows.ordered,
            "standardized": self.standardized,
            "confidence": self.confidence,
            "curves": [plain_fields(curve) for curve in self.curves],
            "differences": [plain_fields(gap) for gap in self.gaps],
            "sentences": self.sentences,
            **self._noted(),
        }

    def to_frame(self, kind: FrameKind = "pandas") -> Any:
        """One row per model, event and threshold, as a data frame of the kind named."""
        columns: dict[str, list[Any]] = {
            name: [] for name in ("model", "event", "threshold", "net_benefit", "low", "high", "treat_all")
        }
        for curve in self.curves:
            n = len(curve.thresholds)
            parts = [[curve.model] * n, [curve.event] * n, curve.thresholds, curve.values, *curve.interval]
            for column, part in zip(columns.values(), [*parts, curve.treat_all], strict=True):
                column.extend(list(part) if isinstance(part, list) else part.tolist())
        return data_frame(columns, kind)

    def plot(self) -> Any:
        """Draw all curves, a panel for each event; returns the matplotlib figure."""
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
        return html_table(self._cells(), caption=self._heading(), notes=self.sentences)


def _sentence(curve: DecisionCurve, ordered: bool) -> str:
    event = f"y {curve.event}" if ordered else f"class {curve.event}"
    if not curve.useful:
        return f"{event}, {curve.model}: nowhere better, beyond chance, than acting in all rows or in none."
    where = in_words(curve.useful)
    return f"{event}, {curve.model}: better than acting in all rows or in none at thresholds {where}."


# ---- curves ------------------------------------------------------------------------------------


def _places(event: BinaryEvent, grid: Floats, rows: EventRows) -> Ints:
    """How many thresholds each forecast reaches."""
    return np.asarray(np.searchsorted(grid, np.round(event.given, rows.decimals), side="right"))


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


def _curve(
    name: str,
    rows: EventRows,
    event: BinaryEvent,
    grid: Floats,
    standardized: bool,
    confidence: float,
    seed: int,
) -> DecisionCurve:
    units = rows.units
    cells = Cells.of([_places(event, grid, rows)], event.happened, len(grid) + 1)
    rate = float(units.share[event.happened].sum())
    acting = _values(cells.places[:, 0], cells.happened, grid)
    everywhere = _values(np.full(len(cells.happened), len(grid)), cells.happened, grid)
    weight = np.bincount(cells.codes, units.share)
    treat_all = weight @ everywhere
    if standardized:
        acting, everywhere = (_scaled(v, cells.happened, weight @ v, rate) for v in (acting, everywhere))
        treat_all = treat_all / (rate or math.nan)
    found = GridMeans.of(cells.codes, acting, units)
    gains = GridMeans.of(cells.codes, np.hstack([acting, acting - everywhere]), units)
    low = gains.band(gains.widest(confidence, seed))[0].reshape(2, -1)
    return DecisionCurve(
        name,
        event.name,
        rate,
        grid,
        found.mean,
        treat_all,
        found.band(t_quantile(units.freedom, confidence)),
        found.band(found.widest(confidence, seed)),
        runs((low > 0).all(axis=0), grid),
    )


def _gap(
    first: tuple[str, BinaryEvent],
    second: tuple[str, BinaryEvent],
    rows: EventRows,
    grid: Floats,
    standardized: bool,
    confidence: float,
    seed: int,
) -> CurveGap:
    (a, event), (b, other) = first, second
    places = [_places(event, grid, rows), _places(other, grid, rows)]
    cells = Cells.of(places, event.happened, len(grid) + 1)
    values = [_values(cells.places[:, i], cells.happened, grid) for i in range(2)]
    gap = values[0] - values[1]
    rate = float(rows.units.share[event.happened].sum())
    if standardized:
        weight = np.bincount(cells.codes, rows.units.share)
        gap = _scaled(gap, cells.happened, weight @ gap, rate)
    squares = rate + (1 - rate) * (grid / (1 - grid)) ** 2
    squares = squares / rate**2 if standardized and rate > 0 else squares
    found = GridMeans.of(cells.codes, gap, rows.units).doubted(squares)
    return CurveGap(
        a,
        b,
        event.name,
        grid,
        found.mean,
        found.band(t_quantile(rows.units.freedom, confidence)),
        found.band(found.widest(confidence, seed)),
    )
