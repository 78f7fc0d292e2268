"""Reliability diagrams: how often events happened, against the probability they had been given.

The curves are the isotonic fits that `decompose` is made of, so nothing depends on bins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from verax.analyses.calibration.decomposition import Components
from verax.analyses.calibration.events import Event, events, recalibrate, split
from verax.analyses.table import RowTable
from verax.common.checks import check_flag
from verax.display.tables import FrameKind, band_columns, data_frame, stacked
from verax.inference.bootstrap import percentile_interval
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Floats
from verax.inputs.forecasts import Forecasts
from verax.inputs.options import Weighted, reads
from verax.inputs.skipping import MaySkip
from verax.scores.registry import brier, rps

# The largest number of values that a band is computed for. Beyond, neighbouring forecasts are drawn
# together in cells of a four-thousandth of the weight, which is far finer than the blocks of the fit.
_BAND_CELLS = 4096
_HISTOGRAM_BINS = 20


@reads
def reliability(
    y: object,
    p: object,
    *,
    ordered: bool = False,
    resamples: int = 200,
    seed: int = 0,
    confidence: float = 0.95,
    **read: Unpack[Weighted],
) -> Reliability:
    """The reliability curve of every class, or of every threshold of ordered classes.

    A curve is the isotonic regression of the event on its forecast (CORP): the frequencies of the
    event, forced to grow with the forecast. Where it follows the diagonal the forecast is calibrated;
    the band shows what a calibrated forecast with these values would do. Two classes without an order
    have one curve, that of class 1.

    Parameters
    ----------
    y, p
        Outcomes and forecasts as for `evaluate`.
    ordered : bool
        Curves of P(Y <= class), which the RPS is made of, instead of P(Y = class).
    resamples : int
        Number of draws for the consistency bands; 0 for none. Outcomes are drawn from the forecasts
        independently: where rows belong together, the bands are too narrow.
    seed, confidence
        Random seed and level of the bands.
    **read

    References
    ----------
    Dimitriadis, Gneiting and Jordan (2021), doi:10.1073/pnas.2016191118

    Examples
    --------
    >>> import verax as vx
    >>> diagram = vx.reliability([1, 0, 1, 1, 0, 0], [0.9, 0.6, 0.6, 0.3, 0.3, 0.1], resamples=0)
    >>> curve = diagram["1"]
    >>> curve.forecast.tolist(), curve.frequency.tolist()
    ([0.1, 0.3, 0.6, 0.9], [0.0, 0.5, 0.5, 1.0])
    >>> round(curve.components.miscalibration, 4)
    0.02
    """
    Resampling.checked(confidence, resamples, seed, or_none=True, argument="resamples")
    forecasts = Forecasts(y, p, ordered=check_flag("ordered", ordered), **read)
    rows = RowTable.of(forecasts, [])
    how = split(rps if ordered else brier, forecasts.n_classes)
    rng = np.random.default_rng(seed)
    only = None if ordered or forecasts.n_classes > 2 else [1]
    curves = [
        curve_of(event, rows, resamples, rng, confidence) for event in events(forecasts, rows, how, only)
    ]
    return Reliability(
        tuple(curves), ordered, forecasts.n_rows, forecasts.n_classes, resamples, confidence, seed
    )


def curve_of(
    event: Event, rows: RowTable, resamples: int, rng: np.random.Generator, confidence: float
) -> ReliabilityCurve:
    """The curve of one event, with a band where there are resamples."""
    cells = event.cells(rows.weights)
    fit = recalibrate(cells)
    all_kept = bool(fit.kept.all())
    forecast = event.values if all_kept else event.values[fit.kept]
    weight = cells[:, 0] + cells[:, 1] if all_kept else cells[fit.kept].sum(axis=1)
    del cells
    band = None
    if resamples:
        drawn, cell = _draws(event, forecast, weight, fit.kept, rows, resamples, rng)
        band = percentile_interval(drawn, confidence)[:, cell]
    # A forecast may exceed one by the tolerance for sums.
    histogram, _ = np.histogram(np.clip(forecast, 0, 1), _HISTOGRAM_BINS, (0, 1), weights=weight)
    observed = event.components_of(fit, rows.weights)
    components = Components(event.name, observed, None, np.zeros(0), confidence)
    return ReliabilityCurve(
        event.name, forecast, fit.values, weight, band, histogram / weight.sum(), components
    )


def _draws(
    event: Event,
    forecast: Floats,
    weight: Floats,
    kept: Any,
    rows: RowTable,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[Floats, Any]:
    """Curves that calibrated forecasts with these values would show, and which column each value has.

    Where there are very many values, neighbours are drawn together and share a column.
    """
    share = (np.cumsum(weight) - weight / 2) / weight.sum()
    cell = np.arange(len(weight)) if len(weight) <= _BAND_CELLS else (_BAND_CELLS * share).astype(np.int64)
    # They do not decrease, so those without any value are left out by counting.
    cell = np.cumsum(np.diff(cell, prepend=cell[:1]) > 0)
    del share
    size = np.bincount(cell, weight)
    chance = np.clip(np.bincount(cell, weight * forecast) / size, 0, 1)
    drawn = np.empty((resamples, len(size)))
    w = rows.weights
    if w is not None and not rows.whole:
        # Weights that are no numbers of copies: every row has one outcome, which counts by its weight.
        counting = np.flatnonzero(w > 0)
        place = np.cumsum(kept) - 1
        of_row, given, w = cell[place[event.pools[counting]]], event.given[counting], w[counting]
    for i in range(resamples):
        if w is None or rows.whole:
            happened = rng.binomial(size.astype(np.int64), chance).astype(float)
        else:
            hit = rng.random(len(w)) < given
            happened = np.bincount(of_row[hit], w[hit], len(size))
        drawn[i] = recalibrate(np.stack([np.maximum(size - happened, 0.0), happened], axis=1)).values
    return drawn, cell


@dataclass(frozen=True, repr=False, eq=False)
class ReliabilityCurve:
    """How often one event happened, against the probability it had been given.

    Attributes
    ----------
    name : str
        The class, or "<= class" for a threshold.
    forecast : (P,) array
        The different probabilities it was given, increasing.
    frequency : (P,) array
        The isotonic regression of the event on them. It is not a forecast: the curves of several events
        do not add up to one.
    weight : (P,) array
        The weight of the rows with each probability; their number without weights.
    band : (2, P) array or None
        Where curves of a calibrated forecast with these values lie.
    histogram : (20,) array
        Shares of the weight in bins from 0 to 1.
    components : Components
        Of the squared error of this event.
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

    def to_dict(self) -> dict[str, Any]:
        """The curve as plain Python values."""
        return {
            "forecast": self.forecast.tolist(),
            "frequency": self.frequency.tolist(),
            "weight": self.weight.tolist(),
            "band": None if self.band is None else self.band.tolist(),
            "histogram": self.histogram.tolist(),
            **self.components.to_dict(),
        }

    def columns(self) -> dict[str, list[Any]]:
        """The curve as columns of a table, with one row per forecast."""
        n = len(self.forecast)
        columns = {"forecast": self.forecast, "frequency": self.frequency, "weight": self.weight}
        listed = {name: values.tolist() for name, values in columns.items()}
        return {"event": [self.name] * n, **listed, **band_columns(self.band, n)}

    def to_frame(self, kind: FrameKind = "pandas") -> Any:
        """One row per forecast: how often the event happened, and the band of a calibrated forecast."""
        return data_frame(self.columns(), kind)


@dataclass(frozen=True, repr=False, eq=False)
class Reliability(MaySkip):
    """The reliability curves of all classes, or thresholds; `diagram["name"]` is one of them."""

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

    def to_dict(self) -> dict[str, Any]:
        """All curves as plain Python values."""
        return {
            "ordered": self.ordered,
            "n_rows": self.n_rows,
            "n_classes": self.n_classes,
            "bands": {"resamples": self.resamples, "confidence": self.confidence, "seed": self.seed},
            "curves": [curve.to_dict() for curve in self.curves],
            **self._noted(),
        }

    def to_frame(self, kind: FrameKind = "pandas") -> Any:
        """One row per event and forecast: frequency, weight and the band of a calibrated forecast."""
        return data_frame(stacked(curve.columns() for curve in self.curves), kind)

    def plot(self, names: Sequence[object] | None = None) -> Any:
        """Draw all curves, or those named, as small multiples; returns the matplotlib figure.

        Of more than 20 curves the 20 with the largest miscalibration are drawn.
        """
        from verax.display.reliability import draw_reliability

        return draw_reliability(self, self.curves if names is None else [self[name] for name in names])
