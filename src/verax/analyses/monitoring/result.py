"""What a monitor has seen: time steps, alarms, and when a change began."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax.analyses.monitoring.evidence import OF_LOSS, Scope, Target, began
from verax.analyses.monitoring.steps import (
    ASKED,
    BINS,
    CLAIMED,
    EXCESS,
    HAPPENED,
    LOSS,
    OF_EVENT,
    PER_EVENT,
    SHIFT,
    STATED,
    TILT,
    Step,
)
from verax.display.tables import data_frame, html_table, text_table
from verax.inference.intervals import Interval, t_quantile
from verax.inputs.arrays import Floats

# Steps from which bets gain at most this much less than from the likeliest one are plausible beginnings.
_PLAUSIBLE = 3.0
_NO_BINS: Floats = np.zeros((0, BINS, 2))
FrameKind = Any


@dataclass(frozen=True)
class Alarm:
    """An alarm: when, and why.

    Attributes
    ----------
    time : object
        The time step that raised it.
    targets : tuple
        The claims that fail, strongest evidence first, as (column of subgroups or "", label or None, "loss"
        or the name of an event).
    reasons : tuple of str
        The same in words.
    kind : str
        What kind of change it is, in words.
    located : bool
        Whether these claims fail by themselves. If not, only all claims together do, and the one with the
        strongest evidence is named.

    Examples
    --------
    >>> Alarm(3, (("", None, "loss"),), ("brier is above 0.2",), "unknown", True)
    verax alarm at 3: brier is above 0.2
    """

    time: Any
    targets: tuple[Target, ...]
    reasons: tuple[str, ...]
    kind: str
    located: bool

    def __repr__(self) -> str:
        return f"verax alarm at {self.time}: {'; '.join(self.reasons)}"

    def to_dict(self) -> dict[str, Any]:
        """As plain Python values."""
        return {
            "time": str(self.time),
            "targets": [
                {"by": column or None, "label": None if label is None else str(label), "claim": name}
                for column, label, name in self.targets
            ],
            "reasons": list(self.reasons),
            "kind": self.kind,
            "located": self.located,
        }

    def to_values(self) -> dict[str, Any]:
        """The fields, to be stored."""
        return {
            "time": self.time,
            "targets": [list(target) for target in self.targets],
            "reasons": list(self.reasons),
            "kind": self.kind,
            "located": self.located,
        }

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Alarm:
        """The alarm as it was stored."""
        targets = tuple((str(a), b, str(c)) for a, b, c in values["targets"])
        reasons = tuple(map(str, values["reasons"]))
        return cls(values["time"], targets, reasons, str(values["kind"]), bool(values["located"]))


@dataclass(frozen=True)
class Period:
    """One time step: the sums of all rows and of subgroups, and the evidence after it (logarithms)."""

    time: Any
    steps: Mapping[Scope, Step]
    evidence: float
    logs: Mapping[Target, float]

    def __post_init__(self) -> None:
        # What adapts to the past is in the capital.
        bare = {scope: replace(step, bins=_NO_BINS) for scope, step in self.steps.items()}
        object.__setattr__(self, "steps", bare)

    @property
    def whole(self) -> Step:
        """All rows."""
        return self.steps["", None]

    def plus(self, later: Period) -> Period:
        """With more rows of the same time."""
        both = dict(self.steps)
        for scope, step in later.steps.items():
            both[scope] = added(both[scope], step) if scope in both else step
        return Period(self.time, both, later.evidence, later.logs)

    def to_values(self) -> dict[str, Any]:
        """The fields, to be stored."""
        return {
            "time": self.time,
            "scopes": [list(scope) for scope in self.steps],
            "counts": np.array([[s.n_rows, s.n_units] for s in self.steps.values()], np.int64),
            "sums": np.stack([[s.means, s.first, s.second] for s in self.steps.values()]),
            "variances": np.array([s.variance for s in self.steps.values()]),
            "evidence": self.evidence,
            "targets": [list(target) for target in self.logs],
            "logs": np.array(list(self.logs.values())),
        }

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Period:
        """The time step as it was stored."""
        columns = values["scopes"], values["counts"].tolist(), values["sums"], values["variances"].tolist()
        steps = {
            (str(scope[0]), scope[1]): Step(n, units, sums[0], sums[1], sums[2], variance, _NO_BINS)
            for scope, (n, units), sums, variance in zip(*columns, strict=True)
        }
        targets = [(str(a), b, str(c)) for a, b, c in values["targets"]]
        logs = dict(zip(targets, values["logs"].tolist(), strict=True))
        return cls(values["time"], steps, float(values["evidence"]), logs)


def added(one: Step, other: Step) -> Step:
    """The rows of both."""
    n = one.n_rows + other.n_rows
    a, b = one.n_rows / n, other.n_rows / n
    return Step(
        n,
        one.n_units + other.n_units,
        a * one.means + b * other.means,
        one.first + other.first,
        one.second + other.second,
        a * a * one.variance + b * b * other.variance,
        one.bins,
    )


def onset_of(periods: Sequence[Period], target: Target, events: Sequence[str]) -> tuple[Any, Any, Any]:
    """When a change began: the likeliest time, and the earliest and latest plausible one."""
    column, label, name = target
    own = [period for period in periods if (column, label) in period.steps]
    steps = [period.steps[column, label] for period in own]
    n = [step.n_units for step in steps]
    if name == OF_LOSS:
        places = [(EXCESS, 1.0)]
    else:
        at = OF_EVENT + PER_EVENT * events.index(name)
        places = [(at + bet, sign) for bet in (SHIFT, TILT) for sign in (1.0, -1.0)]
    sums = [
        (
            np.array([sign * step.first[place] for step in steps]),
            np.array([step.second[place] for step in steps]),
        )
        for place, sign in places
    ]
    first, second = max(sums, key=lambda pair: _gain(pair[0], pair[1], n))
    best, low, high = began(first, second, n, _PLAUSIBLE)
    return own[best].time, own[low].time, own[high].time


def since_onset(
    periods: Sequence[Period], target: Target, events: Sequence[str]
) -> tuple[float, float, float]:
    """The mean probability, frequency and loss since a change began; NaN where there is no event."""
    column, label, name = target
    start, _, _ = onset_of(periods, target, events)
    steps = [p.steps[column, label] for p in periods if (column, label) in p.steps and not p.time < start]
    weights = np.array([float(step.n_rows) for step in steps])
    means = np.average([step.means for step in steps], axis=0, weights=weights)
    if name == OF_LOSS:
        return math.nan, math.nan, float(means[LOSS])
    at = OF_EVENT + PER_EVENT * events.index(name)
    return float(means[at + STATED]), float(means[at + HAPPENED]), float(means[LOSS])


def _gain(first: Floats, second: Floats, n: Any) -> float:
    """What the best bet from the best time on gains."""
    from verax.inference.betting import log_factors

    tails = [np.cumsum(np.asarray(each, float)[::-1])[::-1] for each in (first, second, n)]
    return float(log_factors(*tails).max())


@dataclass(frozen=True)
class History:
    """What was seen in each time step.

    Attributes
    ----------
    periods : tuple
        The time steps, in order.
    rule : str
        The rule that scores rows.
    events : tuple of str
        The events whose probabilities are monitored.
    reference, tolerated : float or None
        The reference, and the mean loss that is no reason for an alarm.
    level : float
        An alarm is raised when the evidence reaches one over this.
    """

    periods: tuple[Period, ...]
    rule: str
    events: tuple[str, ...]
    reference: float | None
    tolerated: float | None
    level: float

    @property
    def loss_ratio(self) -> float:
        """The mean loss over the loss that forecasts expect of themselves; NaN where that is not known."""
        steps = [period.whole for period in self.periods]
        asked = sum(step.n_rows * step.means[ASKED] for step in steps)
        claimed = sum(step.n_rows * step.means[CLAIMED] for step in steps)
        loss = sum(step.n_rows * step.means[LOSS] for step in steps)
        n = sum(step.n_rows for step in steps)
        return (loss / n) / (claimed / asked) if asked > 0 and claimed > 0 else math.nan

    def records(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """One mapping per time step: rows, mean loss with its interval, evidence, and each event.

        Parameters
        ----------
        confidence : float, default 0.95
            Confidence level of the intervals, each for its own time step.

        Returns
        -------
        list of dict
            The time steps, in order.
        """
        return [self._record(period, confidence) for period in self.periods]

    def _record(self, period: Period, confidence: float) -> dict[str, Any]:
        step = period.whole
        interval = loss_interval(step, confidence)
        asked = float(step.means[ASKED])
        events = {}
        for e, name in enumerate(self.events):
            at = OF_EVENT + PER_EVENT * e
            events[name] = {
                "stated": float(step.means[at + STATED]),
                "happened": float(step.means[at + HAPPENED]),
                "evidence": math.exp(min(period.logs.get(("", None, name), 0.0), 700.0)),
            }
        return {
            "time": str(period.time),
            "n_rows": step.n_rows,
            "loss": float(step.means[LOSS]),
            "low": None if math.isnan(interval.low) else interval.low,
            "high": None if math.isnan(interval.high) else interval.high,
            "expected_loss": float(step.means[CLAIMED]) / asked if asked > 0 else None,
            "evidence": math.exp(min(period.evidence, 700.0)),
            "events": events,
        }

    def to_frame(self, kind: FrameKind = "pandas") -> Any:
        """One row per time step, as a data frame of the kind named.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"}, default "pandas"
            The package of the data frame.

        Returns
        -------
        DataFrame or Table
            The table, as that package has it.
        """
        records = self.records()
        names = ("time", "n_rows", "loss", "low", "high", "expected_loss", "evidence")
        columns: dict[str, list[Any]] = {name: [record[name] for record in records] for name in names}
        for event in self.events:
            for what in ("stated", "happened"):
                columns[f"{event}: {what}"] = [record["events"][event][what] for record in records]
        return data_frame(columns, kind)

    def _cells(self) -> list[list[str]]:
        header = ["time", "rows", self.rule, "95% interval", "expected", "evidence"]
        lines = [header]
        for record in self.records():
            interval = "" if record["low"] is None else f"{record['low']:.4f} to {record['high']:.4f}"
            expected = "" if record["expected_loss"] is None else f"{record['expected_loss']:.4f}"
            lines.append(
                [
                    record["time"],
                    f"{record['n_rows']:,}",
                    f"{record['loss']:.4f}",
                    interval,
                    expected,
                    f"{record['evidence']:.3g}",
                ]
            )
        return lines

    def __repr__(self) -> str:
        return "\n".join(text_table(self._cells(), right=range(1, 6)))

    def _repr_html_(self) -> str:
        return html_table(self._cells(), caption=f"verax monitor of {self.rule}")


def loss_interval(step: Step, confidence: float) -> Interval:
    """The interval of the mean loss of one time step."""
    if not step.n_units > 1 or not math.isfinite(step.variance):
        return Interval.undefined("the time step is a single unit", confidence=confidence)
    half = t_quantile(step.n_units - 1, confidence) * math.sqrt(step.variance)
    mean = float(step.means[LOSS])
    return Interval(mean - half, mean + half, method="t", confidence=confidence)
