"""Calibration slopes and intercepts as they are shown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.common.results import Result
from verax.display.tables import FrameKind, data_frame, html_table, text_table
from verax.inference.estimates import holm
from verax.inference.intervals import Interval
from verax.inputs.skipping import MaySkip


@dataclass(frozen=True, repr=False, eq=False)
class CalibrationLine(Result):
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

    def _as_dict(self) -> dict[str, Any]:
        return {k: v.to_dict() if isinstance(v, Interval) else v for k, v in vars(self).items()}


@dataclass(frozen=True, repr=False, eq=False)
class CalibrationSlopes(MaySkip):
    """Slopes and intercepts of all events; `slopes["name"]` is one of them.

    Attributes
    ----------
    lines : tuple of CalibrationLine
        Slope and intercept of each event.
    heading : str
        What the events are, in words.
    prefix : str
        What stands before the name of an event in a table.
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
        for line in self.lines:
            if line.name == str(name):
                return line
        raise KeyError(f"{name!r} has no slope; there are {', '.join(line.name for line in self.lines)}")

    def _as_dict(self) -> dict[str, Any]:
        return {
            "n_rows": self.n_rows,
            "n_groups": self.n_groups,
            "ordered": self.ordered,
            "confidence": self.confidence,
            "lines": [line._as_dict() for line in self.lines],
            **self._noted(),
        }

    def to_frame(self, kind: FrameKind = "pandas") -> Any:
        """One row per event, as a data frame of the kind named.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"}, default "pandas"
            The package of the data frame.

        Returns
        -------
        DataFrame or Table
            The table, as that package has it.
        """
        columns: dict[str, list[Any]] = {"event": [line.name for line in self.lines]}
        for name in ("slope", "intercept", "in_the_large"):
            intervals = [getattr(line, f"{name}_interval") for line in self.lines]
            columns[name] = [getattr(line, name) for line in self.lines]
            columns[f"{name}_low"] = [interval.low for interval in intervals]
            columns[f"{name}_high"] = [interval.high for interval in intervals]
        columns["p_value"] = [line.p_value for line in self.lines]
        columns["p_adjusted"] = self._adjusted
        return data_frame(columns, kind)

    @property
    def _adjusted(self) -> list[float]:
        """P-values with Holm's correction over the events."""
        found: list[float] = holm(np.array([line.p_value for line in self.lines])).tolist()
        return found

    def _cells(self) -> list[list[str]]:
        test = "p (calibrated)" if len(self.lines) == 1 else "p (calibrated, Holm)"
        header = ["", "slope", "intercept", "intercept if the slope is 1", test]
        lines = []
        for line, adjusted in zip(self.lines, self._adjusted, strict=True):
            values = [
                _text(getattr(line, name), getattr(line, f"{name}_interval"))
                for name in ("slope", "intercept", "in_the_large")
            ]
            p = "" if math.isnan(adjusted) else f"{adjusted:.2g}"
            lines.append([self.prefix + line.name, *values, p])
        return [header, *lines]

    def _notes(self) -> list[str]:
        notes = ["Slope below 1: too extreme; above 1: too timid. Intercept above 0: too low on the whole."]
        reasons = dict.fromkeys(x.slope_interval.caution for x in self.lines if x.slope_interval.caution)
        notes += [f"Caution: {reason}." for reason in reasons]
        certain = max(line.certain for line in self.lines)
        if certain:
            notes.append(f"Forecasts of 0 or 1, which were right, were left out: up to {certain:,} rows.")
        return notes

    def __repr__(self) -> str:
        table = text_table(self._cells(), right=(1, 2, 3, 4))
        return "\n".join([self.heading, *table, *self._notes(), *self._said()])

    def _repr_html_(self) -> str:
        return html_table(self._cells(), caption=self.heading, notes=self._notes())


def _text(value: float, interval: Interval) -> str:
    return f"{value:.3f} ({interval:.3f})" if interval.defined else f"{value:.3f}"
