"""Curves over thresholds for every event and model, and the differences of models: what results share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from verax.analyses.binary import EventRows, OfEvent, ScannedRows, event_in_words, first_of
from verax.analyses.comparison.records import pair_of
from verax.common.faces import Hidden, Record
from verax.common.results import Result
from verax.display.tables import Tabled, stacked
from verax.inputs.arrays import Floats
from verax.inputs.skipping import MaySkip
from verax.wings.decide.cells import Counted

if TYPE_CHECKING:
    from verax.display.figures import Sheet


@dataclass(frozen=True, repr=False, eq=False)
class EventCurve(Result):
    """Values of one model for one event at T thresholds.

    Attributes
    ----------
    model : str
        The name of the model.
    event : str
        The class, or "> class".
    thresholds : array of shape (T,)
        The thresholds.
    values : array of shape (T,)
        The values.
    interval : array of shape (2, T)
        Confidence intervals of the values, each for its threshold.
    """

    model: str
    event: str
    thresholds: Floats
    values: Floats
    interval: Floats


@dataclass(frozen=True, repr=False, eq=False)
class CurveDifference(Record):
    """Values of model `a` minus those of model `b` for one event at T thresholds.

    Attributes
    ----------
    a : str
        The name of a model.
    b : str
        The name of the other.
    event : str
        The class, or "> class".
    thresholds : array of shape (T,)
        The thresholds.
    values : array of shape (T,)
        The differences.
    interval : array of shape (2, T)
        Confidence intervals, each for its threshold.
    band : array of shape (2, T)
        A simultaneous confidence band from the first to the last threshold in `banded`; NaN at the others.
    """

    a: str
    b: str
    event: str
    thresholds: Floats
    values: Floats
    interval: Floats
    band: Floats

    _facts = ("banded",)

    @property
    def banded(self) -> tuple[float, float] | None:
        """The first and last threshold at which at least 10 rows are acted on by one model only."""
        return banded(self.band, self.thresholds)

    def turned(self) -> Self:
        """The same with the two models exchanged."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            values=-self.values,
            interval=-self.interval[::-1],
            band=-self.band[::-1],
        )


Shown = TypeVar("Shown", bound=OfEvent)


class CurvesOfEvents(Tabled, MaySkip, ABC, Generic[Shown]):
    """The curves of all models and events, one after the other or by name."""

    curves: tuple[Shown, ...]
    rows: Hidden[EventRows | ScannedRows]

    _facts: ClassVar[tuple[str, ...]] = ("rows.n_rows", "rows.n_groups", "rows.ordered")

    def __iter__(self) -> Iterator[Shown]:
        return iter(self.curves)

    def __len__(self) -> int:
        return len(self.curves)

    def curve(self, event: object | None = None, model: str | None = None) -> Shown:
        """The curve of an event and a model; the first of those that fit.

        Parameters
        ----------
        event : str, optional
            The class, or "> class"; by default the first.
        model : str, optional
            The name of a model; by default the first.

        Returns
        -------
        EventCurve or RateCurve
            The curve.
        """
        return first_of(self.curves, event, model, "curve")

    def called(self, event: str) -> str:
        """The name of an event in words.

        Parameters
        ----------
        event : str
            The class, or "> class".

        Returns
        -------
        str
            Its name in words.
        """
        return event_in_words(event, ordered=self.rows.ordered)

    def plot(self) -> Any:
        """Draw all curves, a panel for each event.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from verax.display.plots import draw

        return draw(self._sheet())

    @abstractmethod
    def _sheet(self) -> Sheet:
        """The curves, a figure for each event."""

    def _drawn(self, most: int) -> tuple[list[str], str]:
        """The events that a figure shows, and its title where there are more."""
        events = list(dict.fromkeys(curve.event for curve in self.curves))
        return events[:most], f"the first {most} of {len(events)} events" if len(events) > most else ""


Curve = TypeVar("Curve", bound=EventCurve)
Gap = TypeVar("Gap", bound=CurveDifference)


@dataclass(frozen=True, repr=False, eq=False)
class EventCurves(CurvesOfEvents[Curve], Generic[Curve, Gap]):
    """The curves of all models and events, and the differences of all pairs of models.

    Attributes
    ----------
    curves : tuple of EventCurve
        The curves of all models and events.
    differences : tuple of CurveDifference
        The differences of all pairs of models, for each event.
    rows : EventRows or ScannedRows
        The rows and the events.
    confidence : float
        Confidence level of intervals and bands.
    """

    curves: tuple[Curve, ...]
    differences: tuple[Gap, ...]
    rows: Hidden[EventRows | ScannedRows]
    confidence: float

    # The name of the values in a frame, and of the other columns.
    quantity: ClassVar[str] = "value"
    beside: ClassVar[tuple[str, ...]] = ()

    _facts = ("sentences",)

    def difference(self, a: str, b: str, event: object | None = None) -> Gap:
        """The difference of two models for an event, in the direction asked for.

        Parameters
        ----------
        a : str
            The name of a model.
        b : str
            The name of another.
        event : str, optional
            The class, or "> class"; by default the first.

        Returns
        -------
        CurveDifference
            The values of `a` minus those of `b`, with interval and band.
        """
        events = [gap for gap in self.differences if event is None or str(event) == gap.event]
        return pair_of(events, a, b, f" for {event!r}" if event is not None else "")

    @property
    @abstractmethod
    def sentences(self) -> list[str]:
        """The findings of the curves, in words."""

    def _frame(self) -> dict[str, list[Any]]:
        """One row per model, event and threshold."""
        parts = []
        for curve in self.curves:
            n, (low, high) = len(curve.thresholds), curve.interval.tolist()
            part = {
                "model": [curve.model] * n,
                "event": [curve.event] * n,
                "threshold": curve.thresholds.tolist(),
            }
            part |= {self.quantity: curve.values.tolist(), "low": low, "high": high}
            parts.append(part | {name: getattr(curve, name).tolist() for name in self.beside})
        return stacked(parts)

    def _notes(self) -> list[str]:
        return [*self.sentences, *self.remarks]


def banded(band: Floats, thresholds: Floats) -> tuple[float, float] | None:
    """The first and last threshold of a band; None where there is no band."""
    known = thresholds[~np.isnan(band).any(axis=0)]
    return (float(known[0]), float(known[-1])) if len(known) else None


def all_curves(
    counted: Counted, curve: Callable[[str, int], Curve], gap: Callable[[str, str, int], Gap]
) -> tuple[tuple[Curve, ...], tuple[Gap, ...]]:
    """The curves of all models and events, and the differences of all pairs of models for each event."""
    numbers = range(len(counted.events))
    curves = [curve(name, i) for name in counted.models for i in numbers]
    gaps = [gap(a, b, i) for i in numbers for a, b in combinations(counted.models, 2)]
    return tuple(curves), tuple(gaps)
