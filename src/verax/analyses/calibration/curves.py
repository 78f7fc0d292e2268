"""Reliability curves: how often events happened, against the probability they had been given.

The curves are the isotonic fits that `decompose` is made of, so nothing depends on bins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from verax.analyses.calibration.components import Components
from verax.analyses.calibration.events import Event, Recalibration, recalibrate
from verax.analyses.table import RowTable
from verax.common.results import Result
from verax.display.tables import FrameKind, band_columns, data_frame, stacked
from verax.inference.bootstrap import percentile_interval
from verax.inputs.arrays import Floats, Ints
from verax.inputs.skipping import MaySkip

# The largest number of values that a band is computed for. Beyond, neighbouring forecasts are drawn
# together in cells of a two-thousandth of the weight, which is far finer than the blocks of the fit.
_BAND_CELLS = 2048
_HISTOGRAM_BINS = 20


def curve_of(
    event: Event,
    fit: Recalibration,
    rows: RowTable,
    resamples: int,
    rng: np.random.Generator,
    confidence: float,
    drawing: Callable[[np.random.Generator], Ints] | None = None,
) -> ReliabilityCurve:
    """The curve of one event, with a band and a test of calibration where there are resamples.

    `drawing` says in which rows the event happens if the forecasts are right; by default all independently.
    With groups, the deviations of outcomes from forecasts change their signs group by group.
    """
    forecast = event.values
    forecast = forecast if fit.kept.all() else forecast[fit.kept]
    weight, with_event = fit.cells[:, 0] + fit.cells[:, 1], fit.cells[:, 1]
    band, calibrated = None, np.zeros(0)
    if resamples:
        drawn = _Draws.of(event, forecast, weight, with_event, fit.kept, rows, resamples, rng, drawing)
        band, calibrated = percentile_interval(drawn.curves, confidence)[:, drawn.cell], drawn.miscalibrations
    histogram = shares_of(forecast, weight)
    observed = event.components_of(fit, rows.weights)
    # Values that are drawn together have a little less miscalibration than they have one by one.
    if len(calibrated):
        calibrated = calibrated + (observed[1] - drawn.observed)
    components = Components(event.name, observed, None, calibrated, confidence)
    return ReliabilityCurve(event.name, forecast, fit.values, weight, band, histogram, components)


def shares_of(forecast: Floats, weight: Floats) -> Floats:
    """Shares of the weight in bins from 0 to 1 of the forecast, which increases."""
    # A forecast may exceed one by the tolerance for sums; it is in the last bin.
    edges = np.searchsorted(forecast, np.linspace(0, 1, _HISTOGRAM_BINS + 1)[1:-1])
    return np.asarray([part.sum() for part in np.split(weight, edges)] / weight.sum())


@dataclass(frozen=True)
class _Draws:
    """What calibrated forecasts with these values would show.

    Attributes
    ----------
    curves : array of shape (B, C)
        Their curves.
    cell : (P,) int array
        Which column each value has. Where there are very many values, neighbours share a column.
    miscalibrations : array of shape (B,)
        Their miscalibrations, by the squared error.
    observed : float
        The miscalibration of the outcomes themselves, in the same cells.
    """

    curves: Floats
    cell: Ints
    miscalibrations: Floats
    observed: float

    @classmethod
    def of(
        cls,
        event: Event,
        forecast: Floats,
        weight: Floats,
        with_event: Floats,
        kept: Any,
        rows: RowTable,
        resamples: int,
        rng: np.random.Generator,
        drawing: Callable[[np.random.Generator], Ints] | None,
    ) -> _Draws:
        """Draw outcomes from the forecasts and fit them, again and again."""
        cell = cell_of(weight)
        size: Floats = np.bincount(cell, weight).astype(np.float64, copy=False)
        chance = np.clip(np.bincount(cell, weight * forecast) / size, 0, 1)
        curves, found = np.empty((resamples, len(size))), np.empty(resamples)
        draw: Callable[[], Any]
        if rows.groups is not None:
            draw = _group_by_group(event, cell, kept, rows, rng)
        elif rows.whole and drawing is None:
            draw = partial(rng.binomial, size.astype(np.int64), chance)
        else:
            draw = _row_by_row(event, cell, kept, rows, rng, drawing)
        for i in range(resamples):
            curves[i], found[i] = _fitted(size, draw(), chance)
        return cls(curves, cell, found, _fitted(size, np.bincount(cell, with_event), chance)[1])


def cell_of(weight: Floats) -> Ints:
    """The cell of each value; neighbours share one where there are very many values."""
    if len(weight) <= _BAND_CELLS:
        return np.arange(len(weight))
    middle = np.cumsum(weight)
    middle -= weight / 2
    middle *= _BAND_CELLS / weight.sum()
    cell = middle.astype(np.int16)
    # They do not decrease, so those without any value are left out by counting.
    return np.cumsum(np.diff(cell, prepend=cell[:1]) > 0)


def _row_by_row(
    event: Event,
    cell: Ints,
    kept: Any,
    rows: RowTable,
    rng: np.random.Generator,
    drawing: Callable[[np.random.Generator], Ints] | None,
) -> Callable[[], Floats]:
    """What draws the weight of the event in each cell: every row has one outcome and counts by its weight."""
    w, of_row, n_cells = _cells_of_rows(event, cell, kept, rows)
    counting = np.flatnonzero(w > 0)
    given = event.given[counting]

    def draw() -> Floats:
        hit = counting[rng.random(len(given)) < given] if drawing is None else drawing(rng)
        return np.bincount(of_row[hit], w[hit], n_cells).astype(np.float64, copy=False)

    return draw


def _group_by_group(
    event: Event, cell: Ints, kept: Any, rows: RowTable, rng: np.random.Generator
) -> Callable[[], Floats]:
    """The same where the deviations of all rows of a group keep or change their signs (wild bootstrap)."""
    assert rows.groups is not None
    w, of_row, n_cells = _cells_of_rows(event, cell, kept, rows)
    codes, n_groups = rows.groups.as_seen, len(rows.groups.labels)
    given = np.clip(event.given, 0.0, 1.0)
    deviation = event.happened - given

    def draw() -> Floats:
        signs = rng.choice([-1.0, 1.0], n_groups)
        drawn = np.bincount(of_row, w * (given + signs[codes] * deviation), n_cells)
        return drawn.astype(np.float64, copy=False)

    return draw


def _cells_of_rows(event: Event, cell: Ints, kept: Any, rows: RowTable) -> tuple[Floats, Ints, int]:
    """The weight and the cell of each row, and the number of cells; rows of no weight may be in any."""
    w = np.ones(len(event.order)) if rows.weights is None else rows.weights
    place = np.maximum(np.cumsum(kept) - 1, 0)
    return w, cell[place[event.pools]], int(cell[-1]) + 1


def _fitted(size: Floats, happened: Any, chance: Floats) -> tuple[Floats, float]:
    """The isotonic fit to cells, and what it gains on their forecasts: the miscalibration.

    Wild outcomes may be less than nothing or more than all of a cell; frequencies are kept within 0 and 1.
    """
    fit = recalibrate(np.stack([size - happened, happened], axis=1))
    loss = float(((size - happened) * chance**2 + happened * (1 - chance) ** 2).sum())
    n, hits = fit.blocks.sum(axis=1), fit.blocks[:, 1]
    rate = np.clip(hits / n, 0.0, 1.0)
    least = float(((n - hits) * rate**2 + hits * (1 - rate) ** 2).sum())
    return np.clip(fit.values, 0.0, 1.0), (loss - least) / float(size.sum())


@dataclass(frozen=True, repr=False, eq=False)
class ReliabilityCurve(Result):
    """How often one event happened, against the probability it had been given.

    Attributes
    ----------
    name : str
        The class, or "<= class" for a threshold.
    forecast : array of shape (P,)
        The different probabilities it was given, increasing.
    frequency : array of shape (P,)
        The isotonic regression of the event on them. It is not a forecast: the curves of several events
        do not add up to one.
    weight : array of shape (P,)
        The weight of the rows with each probability; their number without weights.
    band : array of shape (2, P) or None
        Where curves of a calibrated forecast with these values lie.
    histogram : array of shape (20,)
        Shares of the weight in bins from 0 to 1.
    components : Components
        The parts of the squared error of this event.

    Examples
    --------
    >>> import verax as vx
    >>> curve = vx.reliability([1, 0, 1, 0], [0.9, 0.6, 0.4, 0.1], resamples=0)["1"]
    >>> curve.forecast.tolist(), curve.frequency.tolist()
    ([0.1, 0.4, 0.6, 0.9], [0.0, 0.5, 0.5, 1.0])
    """

    name: str
    forecast: Floats
    frequency: Floats
    weight: Floats
    band: Floats | None
    histogram: Floats
    components: Components

    def __repr__(self) -> str:
        return f"ReliabilityCurve of {self.components!r}"

    def _as_dict(self) -> dict[str, Any]:
        return {
            "forecast": self.forecast.tolist(),
            "frequency": self.frequency.tolist(),
            "weight": self.weight.tolist(),
            "band": None if self.band is None else self.band.tolist(),
            "histogram": self.histogram.tolist(),
            **self.components._as_dict(),
        }

    def columns(self) -> dict[str, list[Any]]:
        """The curve as columns of a table, with one row per forecast."""
        n = len(self.forecast)
        columns = {"forecast": self.forecast, "frequency": self.frequency, "weight": self.weight}
        listed = {name: values.tolist() for name, values in columns.items()}
        return {"event": [self.name] * n, **listed, **band_columns(self.band, n)}

    def to_frame(self, kind: FrameKind = "pandas") -> Any:
        """One row per forecast: how often the event happened, and the band of a calibrated forecast.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"}, default "pandas"
            The package of the data frame.

        Returns
        -------
        DataFrame or Table
            The table, as that package has it.
        """
        return data_frame(self.columns(), kind)


@dataclass(frozen=True, repr=False, eq=False)
class Reliability(MaySkip):
    """The reliability curves of all classes, or thresholds; `diagram["name"]` is one of them.

    Attributes
    ----------
    curves : tuple of ReliabilityCurve
        A curve for each event.
    ordered : bool
        Whether the events are thresholds of ordered classes.
    n_rows : int
        The number of rows.
    n_classes : int
        The number of classes, K.
    resamples : int
        Number of draws for the bands and the tests.
    confidence : float
        Confidence level of the bands.
    seed : int
        Random seed.

    Examples
    --------
    >>> import verax as vx
    >>> diagram = vx.reliability([1, 0, 1, 0], [0.9, 0.6, 0.4, 0.1], resamples=0)
    >>> [curve.name for curve in diagram.curves]
    ['1']
    """

    curves: tuple[ReliabilityCurve, ...]
    ordered: bool
    n_rows: int
    n_classes: int
    resamples: int
    confidence: float
    seed: int

    def __getitem__(self, name: object) -> ReliabilityCurve:
        found = next((curve for curve in self.curves if curve.name == str(name)), None)
        if found is None:
            raise KeyError(f"{name!r} has no curve; there are {', '.join(c.name for c in self.curves)}")
        return found

    def __iter__(self) -> Iterator[ReliabilityCurve]:
        return iter(self.curves)

    def __len__(self) -> int:
        return len(self.curves)

    def __repr__(self) -> str:
        kind = "ordered classes" if self.ordered else "classes"
        title = (
            f"verax reliability: {self.n_rows:,} rows, {self.n_classes:,} {kind}; squared error of each event"
        )
        return "\n".join([title, *(repr(curve.components) for curve in self.curves), *self._said()])

    def _as_dict(self) -> dict[str, Any]:
        return {
            "ordered": self.ordered,
            "n_rows": self.n_rows,
            "n_classes": self.n_classes,
            "bands": {"resamples": self.resamples, "confidence": self.confidence, "seed": self.seed},
            "curves": [curve._as_dict() for curve in self.curves],
            **self._noted(),
        }

    def to_frame(self, kind: FrameKind = "pandas") -> Any:
        """One row per event and forecast: frequency, weight and the band of a calibrated forecast.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"}, default "pandas"
            The package of the data frame.

        Returns
        -------
        DataFrame or Table
            The table, as that package has it.
        """
        return data_frame(stacked(curve.columns() for curve in self.curves), kind)

    def title_of(self, curve: ReliabilityCurve) -> str:
        """The title of a curve's panel.

        Parameters
        ----------
        curve : ReliabilityCurve
            One of the curves.

        Returns
        -------
        str
            The title.
        """
        return f"y {curve.name}" if self.ordered else f"class {curve.name}"

    def plot(self, names: Sequence[object] | None = None) -> Any:
        """Draw all curves, or those named, as small multiples.

        Of more than 20 curves the 20 with the largest miscalibration are drawn.

        Parameters
        ----------
        names : sequence of str, optional
            The curves to draw.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from verax.display.reliability import draw_reliability

        return draw_reliability(self, self.curves if names is None else [self[name] for name in names])
