"""Reliability curves: how often events happened, against the probability they had been given.

The curves are the isotonic fits that `decompose` is made of, so nothing depends on bins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.binary import event_in_words
from verax.analyses.calibration.cells import FORECAST, EventCells
from verax.analyses.calibration.claims import ListClaim
from verax.analyses.calibration.components import Components
from verax.analyses.calibration.events import Split
from verax.analyses.calibration.sums import SummedEvent
from verax.analyses.calibration.uncertainty import SecondLook
from verax.common.checks import as_name, check_names, in_digits, looked_up
from verax.common.faces import Hidden, Merged
from verax.common.results import Result
from verax.display.tables import NO_HEADING, Column, FrameKind, Table, Tabled, band_columns, stacked
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Floats
from verax.inputs.skipping import MaySkip

_HISTOGRAM_BINS = 20


def curve_of(
    i: int, event: SummedEvent, how: Split, plan: Resampling, look: SecondLook | None = None
) -> ReliabilityCurve:
    """The curve of event number `i`, with a band and a test of calibration where there are replicates.

    It is the isotonic regression on its distinct forecasts, or on its bins, each at its mean forecast. Draws
    are those behind the test of `decompose`. Bands of groups take a second look at the rows.
    """
    observed, within = event.components(how)
    bins = event.bins
    band, calibrated = None, np.zeros(0)
    grouped = event.sums.n_groups is not None
    if plan.replicates and (look is not None or not grouped):
        cells = EventCells.of(event, how, copies=plan.copies and not grouped)
        if look is None or not grouped:
            draws = list(cells.drawn(plan.replicates, [plan.seed, FORECAST, i]))
        else:
            cells = cells.wider(look.n_wide)[0]
            signs = look.random_signs(plan.replicates, [plan.seed, FORECAST])
            draws = list(cells.wild(look.wild(signs, i, 1, len(cells.size))))
        ends = cells.band(draws, plan.confidence)
        calibrated = cells.miscalibrations(draws, float(observed[1]))
        # Neighbouring forecasts share a cell.
        begins = np.searchsorted(bins.least, cells.starts)
        band = np.repeat(ends, np.diff(begins, append=len(bins.least)), axis=1)
    forecast, weight = bins.least, np.ascontiguousarray(bins.weight)
    if event.rows is None:
        forecast, weight = bins.forecast, bins.cells.sum(axis=1)
    components = Components(event.name, observed, None, calibrated, plan.confidence, within)
    histogram = shares_of(forecast, weight)
    return ReliabilityCurve(event.name, forecast, event.fit.values, weight, band, histogram, components)


def shares_of(forecast: Floats, weight: Floats) -> Floats:
    """Shares of the weight in bins from 0 to 1 of the forecast, which increases."""
    edges = np.searchsorted(forecast, np.linspace(0, 1, _HISTOGRAM_BINS + 1)[1:-1])
    return np.asarray([part.sum() for part in np.split(weight, edges)] / weight.sum())


@dataclass(frozen=True, repr=False, eq=False)
class ReliabilityCurve(Tabled, Result):
    """The frequency of one event, against the probability it had been given.

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

    name: Hidden[str]
    forecast: Floats
    frequency: Floats
    weight: Floats
    band: Floats | None
    histogram: Floats
    components: Merged[Components]

    def _heading(self) -> str:
        return f"ReliabilityCurve of {self.components!r}"

    def _frame(self) -> dict[str, list[Any]]:
        """One row per forecast: how often the event happened, and the band of a calibrated forecast."""
        n = len(self.forecast)
        columns = {"forecast": self.forecast, "frequency": self.frequency, "weight": self.weight}
        listed = {name: values.tolist() for name, values in columns.items()}
        return {"event": [self.name] * n, **listed, **band_columns(self.band, n)}


@dataclass(frozen=True, repr=False, eq=False)
class Reliability(Tabled, MaySkip):
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
    resamples: Hidden[int]
    confidence: Hidden[float]
    seed: Hidden[int]

    _facts = ("_bands",)

    @property
    def _bands(self) -> dict[str, float]:
        return {"resamples": self.resamples, "confidence": self.confidence, "seed": self.seed}

    def __getitem__(self, name: object) -> ReliabilityCurve:
        return looked_up({curve.name: curve for curve in self.curves}, as_name(name), "curve of")

    def __iter__(self) -> Iterator[ReliabilityCurve]:
        return iter(self.curves)

    def __len__(self) -> int:
        return len(self.curves)

    def _heading(self) -> str:
        kind = "ordered classes" if self.ordered else "classes"
        title = (
            f"verax reliability: {self.n_rows:,} rows, {self.n_classes:,} {kind}; squared error of each event"
        )
        return "\n".join([title, *(repr(curve.components) for curve in self.curves)])

    def _notes(self) -> list[str]:
        return self.remarks

    def _frame(self) -> dict[str, list[Any]]:
        """One row per event and forecast: frequency, weight and the band of a calibrated forecast."""
        return stacked(curve._frame() for curve in self.curves)

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
        return event_in_words(curve.name, ordered=self.ordered)

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
        from verax.display.plots import draw
        from verax.display.reliability import reliability_sheet

        curves = self.curves if names is None else [self[name] for name in check_names("names", names)]
        return draw(reliability_sheet(self, curves))


@dataclass(frozen=True, repr=False, eq=False)
class ListReliability(Reliability):
    """The reliability of top lists; `diagram["place 1"]`, `["any place"]`, `["whole list"]` are curves.

    Attributes
    ----------
    claims : tuple of ListClaim
        For each curve what was claimed on average, how often it happened, and a test of the difference.
    longest : int
        The length of the longest list.
    n_invalid : int
        How many lists are invalid; their confidences are taken as they were stated.
    in_cells : bool
        Whether confidences within 0.8 % of each other were pooled, because there were many lists.

    See Also
    --------
    Reliability : What it shares with other diagrams.

    Examples
    --------
    >>> import verax as vx
    >>> lists = vx.TopLists.from_dicts([{0: 0.6, 1: 0.2}, {1: 0.7, 2: 0.2}, {2: 0.5, 0: 0.3}], n_classes=4)
    >>> diagram = vx.reliability([0, 2, 2], lists, resamples=0)
    >>> round(diagram.claim("whole list").claimed, 3)
    0.833
    """

    claims: tuple[ListClaim, ...]
    longest: int
    n_invalid: int
    in_cells: bool = False

    _absent = ("ordered",)

    def claim(self, name: str) -> ListClaim:
        """The mean claim of one event, and how often it happened.

        Parameters
        ----------
        name : str
            "place 1", ..., "any place" or "whole list".

        Returns
        -------
        ListClaim
            The claim, with a test.
        """
        names = [claim.name for claim in self.claims]
        if name not in names:
            raise KeyError(f"{name!r} has no claim; there are {', '.join(names)}")
        return self.claims[names.index(name)]

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
        return curve.name

    def _tables(self) -> list[Table]:
        """One row per event: claimed, happened, the test of the gap, and the miscalibration of the curve."""
        curves = {claim.name: curve.components for claim, curve in zip(self.claims, self.curves, strict=True)}
        columns = [
            Column("name", NO_HEADING, right=False),
            Column("n_lists", "lists", ","),
            Column("share"),
            Column("claimed", "claimed", ".4f"),
            Column("happened", "happened", ".4f"),
            Column("p_value"),
            Column("p_adjusted"),
            Column("gap", "gap", "+.4f"),
            Column("", "p", lambda claim: _p(claim.p_adjusted)),
            Column(
                "miscalibration",
                "miscalibration",
                lambda claim: f"{curves[claim.name].miscalibration:z.5f}",
                lambda claim: curves[claim.name].miscalibration,
            ),
            Column(
                "p_miscalibration",
                "p",
                lambda claim: _p(curves[claim.name].p_value),
                lambda claim: curves[claim.name].p_value,
            ),
        ]
        return [Table(columns, self.claims)]

    def _heading(self) -> str:
        m = in_digits(self.n_classes)
        lists = f"{self.n_rows:,} lists of up to {self.longest} out of {m} classes"
        return f"verax reliability of top lists: {lists}"

    def _notes(self) -> list[str]:
        notes = [
            "Claimed: the mean confidence. Happened: how often it was right; of the whole list, how often "
            "the outcome was listed.",
            "First p: of the gap, after Holm's correction. Second p: of the miscalibration of the curve.",
        ]
        if self.n_invalid:
            some = "1 list is" if self.n_invalid == 1 else f"{self.n_invalid:,} lists are"
            notes.append(f"{some} invalid; the confidences are used as stated.")
        if self.in_cells:
            notes.append("Because of their number, confidences within 0.8% of each other are pooled.")
        return notes + self.remarks

    def claims_frame(self, kind: FrameKind = "pandas") -> Any:
        """One row per event: claimed, happened, the test of the gap, and the miscalibration of the curve.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"}, default "pandas"
            The package of the data frame.

        Returns
        -------
        DataFrame or Table
            The table, as that package has it.
        """
        return self._tables()[0].frame(kind)


def _p(p: float | None) -> str:
    return "" if p is None else "< 0.0001" if p < 1e-4 else f"{p:.2g}"
