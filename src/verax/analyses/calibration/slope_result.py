"""Calibration slopes and intercepts as they are shown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.common.checks import as_name, looked_up
from verax.common.results import Result
from verax.display.tables import NO_HEADING, Column, Table, Tabled, value_with_interval
from verax.inference.estimates import holm
from verax.inference.intervals import Interval
from verax.inputs.skipping import MaySkip


@dataclass(frozen=True, repr=False, eq=False)
class CalibrationLine(Tabled, Result):
    """Slope and intercept of one event.

    Attributes
    ----------
    name : str
        The class, or "> class".
    slope : float
        The slope of the regression; NaN where there is none, and the caution of its interval says why.
    intercept : float
        The intercept of the regression.
    in_the_large : float
        The intercept if the slope is 1.
    slope_interval : Interval
        The confidence interval of the slope.
    intercept_interval : Interval
        The confidence interval of the intercept.
    in_the_large_interval : Interval
        The confidence interval of `in_the_large`.
    p_value : float
        The p-value of slope 1 and intercept 0 together (Wald test), of this event alone.
    certain : int
        How many rows with a forecast of 0 or 1, which was right, were left out.
    slope_p : float
        The p-value of slope 1, whatever the intercept is: it is small where the interval excludes 1. NaN in
        results of older versions, and where weights are too unequal for a test.

    Examples
    --------
    >>> import verax as vx
    >>> line = vx.calibration_slope([1, 0, 1, 0, 1, 0], [0.9, 0.6, 0.4, 0.1, 0.8, 0.5])["1"]
    >>> line.name, line.certain
    ('1', 0)
    """

    name: str
    slope: float
    intercept: float
    in_the_large: float
    slope_interval: Interval
    intercept_interval: Interval
    in_the_large_interval: Interval
    p_value: float
    certain: int
    slope_p: float = math.nan

    def _heading(self) -> str:
        return f"{self.name}: {', '.join(f'{head} {self.text(name)}' for name, head in _ESTIMATES.items())}"

    def _frame(self) -> Table:
        """One row: slope and intercepts with the ends of their intervals, and the test."""
        return Table(_COLUMNS, [self])

    def text(self, name: str) -> str:
        """An estimate with its interval, for tables.

        Parameters
        ----------
        name : str
            "slope", "intercept" or "in_the_large".

        Returns
        -------
        str
            Its value, with the interval in brackets.
        """
        return value_with_interval(getattr(self, name), getattr(self, f"{name}_interval"), ".3f")


def _columns_of(name: str, head: str) -> tuple[Column, Column]:
    """An estimate, and the ends of its interval."""
    return (
        Column(name, head, lambda line: line.text(name)),
        Column(f"{name}_low {name}_high", value=f"{name}_interval"),
    )


_ESTIMATES = {"slope": "slope", "intercept": "intercept", "in_the_large": "intercept if the slope is 1"}
# Readers see the estimates with their intervals; frames have everything.
_COLUMNS = (
    Column("event", value="name"),
    *(column for name, head in _ESTIMATES.items() for column in _columns_of(name, head)),
    Column("p_value"),
)


@dataclass(frozen=True, repr=False, eq=False)
class CalibrationSlopes(Tabled, MaySkip):
    """Slopes and intercepts of all events; `slopes["name"]` is one of them.

    Attributes
    ----------
    lines : tuple of CalibrationLine
        Slope and intercept of each event.
    heading : str
        The kind of events, in words.
    prefix : str
        The words before the name of an event in a table.
    n_rows : int
        The number of rows.
    n_groups : int or None
        The number of groups; None without groups.
    ordered : bool
        Whether the events are thresholds of ordered classes.
    confidence : float
        Confidence level of the intervals.

    Examples
    --------
    >>> import verax as vx
    >>> slopes = vx.calibration_slope([1, 0, 1, 0, 1, 0], [0.9, 0.6, 0.4, 0.1, 0.8, 0.5])
    >>> [line.name for line in slopes.lines]
    ['1']
    """

    lines: tuple[CalibrationLine, ...]
    heading: str
    prefix: str
    n_rows: int
    n_groups: int | None
    ordered: bool
    confidence: float

    def __iter__(self) -> Iterator[CalibrationLine]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, name: object) -> CalibrationLine:
        return looked_up({line.name: line for line in self.lines}, as_name(name), "slope of")

    def _as_dict(self) -> dict[str, Any]:
        return {
            "n_rows": self.n_rows,
            "n_groups": self.n_groups,
            "ordered": self.ordered,
            "confidence": self.confidence,
            "lines": [
                {**line._as_dict(), "p_adjusted": adjusted}
                for line, adjusted in zip(self.lines, self.adjusted, strict=True)
            ],
            **self._noted(),
        }

    @property
    def adjusted(self) -> list[float]:
        """The p-value of each event after Holm's correction for having looked at all of them."""
        adjusted: list[float] = holm(np.array([line.p_value for line in self.lines])).tolist()
        return adjusted

    @property
    def farthest(self) -> tuple[CalibrationLine, float] | None:
        """The event that is the least likely of calibrated forecasts, with its corrected p-value; None where
        no event was tested.
        """
        known = [(p, line) for p, line in zip(self.adjusted, self.lines, strict=True) if not math.isnan(p)]
        if not known:
            return None
        p, line = min(known, key=lambda pair: pair[1].p_value)
        return line, p

    def _tables(self) -> list[Table]:
        """One row per event: slope and intercepts with their intervals, and the test."""
        adjusted = {line.name: p for line, p in zip(self.lines, self.adjusted, strict=True)}
        test = "p (calibrated)" if len(self.lines) == 1 else "p (calibrated, Holm)"
        columns = (
            Column("", NO_HEADING, lambda line: self.prefix + line.name, right=False),
            *_COLUMNS,
            Column(
                "p_adjusted", test, lambda line: _p(adjusted[line.name]), lambda line: adjusted[line.name]
            ),
        )
        return [Table(columns, self.lines)]

    def _heading(self) -> str:
        return self.heading

    def _notes(self) -> list[str]:
        notes = ["Slope below 1: overconfident; above 1: underconfident. Intercept above 0: too low overall."]
        if len(self.lines) > 1:
            notes.append(
                f"p-values are corrected for having looked at all {len(self.lines):,} events (Holm). "
                "Intervals are of each event alone."
            )
        reasons = dict.fromkeys(x.slope_interval.caution for x in self.lines if x.slope_interval.caution)
        notes += [f"Caution: {reason}." for reason in reasons]
        certain = max(line.certain for line in self.lines)
        if certain:
            notes.append(f"Correct forecasts of 0 or 1 were left out: up to {certain:,} rows.")
        return notes + self.remarks


def _p(p: float) -> str:
    return "" if math.isnan(p) else f"{p:.2g}"
