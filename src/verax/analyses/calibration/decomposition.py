"""Where a score comes from: miscalibration, discrimination and uncertainty, by isotonic recalibration.

The events of a forecast (each class, or each threshold) are recalibrated one by one. The results need
not be a forecast: recalibrated classes do not sum to one, and recalibrated thresholds cross. So the
components are returned, never the recalibrated rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from verax._version import __version__
from verax.analyses.calibration.events import Event, n_events, split, unsorted_events
from verax.analyses.calibration.overfitting import Measured, Sampling, Uncertainty
from verax.analyses.table import RowTable
from verax.common.caching import cached_property
from verax.common.memory import give_back
from verax.display.tables import Cells, FrameKind, html_table, record_frame, text_table
from verax.errors import InputError
from verax.inference.intervals import Interval, Resampling, WeightsAre
from verax.inputs.arrays import Floats
from verax.inputs.forecasts import Forecasts
from verax.inputs.options import Reading, reads
from verax.inputs.skipping import MaySkip
from verax.kernels.threads import in_order, n_cores
from verax.scores.base import Rule
from verax.scores.metrics import needs_order
from verax.scores.registry import parse

# From this many rows on, threads share the events and their refits.
_MANY = 2**16

COMPONENTS = ("score", "miscalibration", "discrimination", "uncertainty")


@reads
def decompose(
    y: object,
    p: object,
    *,
    rule: Rule | str,
    bootstrap: int = 0,
    seed: int = 0,
    confidence: float = 0.95,
    weights_are: WeightsAre = "importance",
    **read: Unpack[Reading],
) -> Decomposition:
    """Split a mean score: score = miscalibration - discrimination + uncertainty.

    Every class against the rest (`brier`, `log`) or every threshold (`rps`, `ranked_log`) is a
    binary event. Its forecasts are recalibrated by isotonic regression, those that are equal pooled
    first. *Miscalibration* is what recalibrating gains, *discrimination* what the recalibrated
    forecast gains on the constant one, *uncertainty* the score of that constant, the frequency of the
    event. None of the three is negative; low miscalibration and high discrimination are good.

    The log score of three and more classes looks at one class only and has no such parts. What is
    decomposed then is the sum of the K binary log scores, and it is called "one-vs-rest log".

    An isotonic fit follows noise, so miscalibration and discrimination are estimated too large, and a
    calibrated forecast shows some miscalibration, too. Intervals and `corrected` estimates are for what many
    more rows would show, and `p_value` says how often a calibrated forecast would show as much.

    Parameters
    ----------
    y, p
        Outcomes and forecasts as for `evaluate`.
    rule : rule or str
        `brier`, `rps` (any scale), `log` (any base) or `ranked_log`.
    bootstrap : int
        Number of random draws for the p-value of calibration; 0 for no p-value and no intervals. The
        intervals take from 20 to 60 more draws, which measure how far the isotonic fit follows noise.
    seed : int
        Random seed.
    confidence : float
        Confidence of the intervals.
    weights_are : {"importance", "counts"}
        As for `evaluate`. With "counts" every number is that of the repeated rows; for intervals the weights
        must be whole numbers, because the rows are repeated.
    **read

    References
    ----------
    Dimitriadis, Gneiting and Jordan (2021), doi:10.1073/pnas.2016191118

    Examples
    --------
    >>> import verax as vx
    >>> y, p = [1, 0, 1, 1, 0, 0], [0.9, 0.6, 0.6, 0.3, 0.3, 0.1]
    >>> vx.decompose(y, p, rule="rps", classes=["dry", "wet"])
    verax decomposition of rps: 6 rows, 2 ordered classes
               score  miscalibration  discrimination  uncertainty
    rps       0.1867          0.0200          0.0833       0.2500
    y <= dry  0.1867          0.0200          0.0833       0.2500
    score = miscalibration - discrimination + uncertainty; rps is the mean over the thresholds.
    """
    rule = parse(rule)
    plan = Resampling.checked(confidence, bootstrap, seed, least=2, or_none=True, weights_are=weights_are)
    return decomposition_of(Forecasts(y, p, ordered=needs_order([rule]), **read), rule, plan)


def decomposition_of(
    forecasts: Forecasts,
    rule: Rule,
    plan: Resampling,
    also: Callable[[int, Event, RowTable], None] | None = None,
) -> Decomposition:
    """The decomposition of forecasts.

    Rows are sorted once for every event, and so `also` may look at each: it is called with the number of the
    event, the event and its rows, of many rows by two threads at once.
    """
    how = split(rule, forecasts.n_classes)
    rows = RowTable.of(forecasts, [])
    if plan.copies and plan.replicates and rows.groups is None:
        rows = rows.repeated()
    # Two events at a time: more would take much memory.
    threads = min(2, n_cores()) if len(rows.y) >= _MANY and n_events(how, rows.n_classes) > 1 else 1
    sampling = _sampling(rows, plan, threads) if plan.replicates else None

    def part_of(numbered: tuple[int, Callable[[], Event]]) -> tuple[Components, Measured | None]:
        i, event = numbered[0], numbered[1]()
        if also is not None:
            also(i, event, rows)
        if threads > 1:
            give_back()
        found = None if sampling is None else sampling.measure(event)
        return _components(event.name, event.components(rows.weights), found, sampling, plan), found

    numbered = enumerate(unsorted_events(forecasts, rows, how))
    parts: list[Components] = []
    total: Measured | None = None
    for part, found in in_order(part_of, numbered, threads) if threads > 1 else map(part_of, numbered):
        parts.append(part)
        if total is None or found is None:
            total = found
        else:
            total += found
    whole = how.factor * np.sum([part.observed for part in parts], axis=0)
    total = None if total is None else total.scaled(how.factor)
    return Decomposition(
        rule=repr(rule),
        whole=_components(how.quantity, whole, total, sampling, plan),
        parts=tuple(parts),
        total=how.total,
        thresholds=how.thresholds,
        n_rows=forecasts.n_rows,
        n_classes=forecasts.n_classes,
        n_groups=None if forecasts.groups is None else len(forecasts.groups.labels),
        resampling=plan,
    )


def _sampling(rows: RowTable, plan: Resampling, at_once: int) -> Sampling:
    if rows.groups is not None and len(rows.groups.labels) < 2:
        raise InputError(
            "must name at least two groups for intervals",
            argument="groups",
            values=rows.groups.labels.tolist(),
        )
    threads = 1 if len(rows.y) < _MANY else max(1, n_cores() // at_once)
    return Sampling.of(len(rows.y), rows.weights, rows.groups, plan.replicates, plan.seed, threads)


def _components(
    name: str, observed: Floats, found: Measured | None, sampling: Sampling | None, plan: Resampling
) -> Components:
    if found is None or sampling is None:
        return Components(name, observed, None, np.zeros(0), plan.confidence)
    return Components(name, observed, found.uncertainty(sampling.units), found.calibrated, plan.confidence)


@dataclass(frozen=True, repr=False, eq=False)
class Components:
    """A mean score and what it is made of, for one event or for all of them.

    Attributes
    ----------
    name : str
        The class, "<= class" for a threshold, or what the events add up to.
    observed : (4,) array
        Score, miscalibration, discrimination, uncertainty.
    accuracy : Uncertainty or None
        Their biases and variances; None without a bootstrap.
    calibrated : (B,) array
        Miscalibrations of outcomes drawn from the forecast: each row independently, or the deviations of all
        rows of a group with one sign. Empty without a bootstrap, and for log scores of groups.
    confidence : float
        The confidence of the intervals.
    """

    name: str
    observed: Floats
    accuracy: Uncertainty | None
    calibrated: Floats
    confidence: float

    @property
    def score(self) -> float:
        """The mean score of the forecast."""
        return float(self.observed[0])

    @property
    def miscalibration(self) -> float:
        """What isotonic recalibration gains. Lower is better."""
        return float(self.observed[1])

    @property
    def discrimination(self) -> float:
        """What the recalibrated forecast gains on a constant one. Higher is better."""
        return float(self.observed[2])

    @property
    def uncertainty(self) -> float:
        """The score of the constant forecast of the frequency; it does not depend on the forecast."""
        return float(self.observed[3])

    @cached_property
    def intervals(self) -> dict[str, Interval] | None:
        """Intervals of the score and the components, by name; None without a bootstrap.

        They are about the values for many more rows. The isotonic fit follows noise, so the miscalibration
        and the discrimination observed may lie above their intervals.
        """
        if self.accuracy is None:
            return None
        observed = zip(COMPONENTS, self.observed.tolist(), strict=True)
        return {
            name: self.accuracy.interval(i, value, self.confidence)
            for i, (name, value) in enumerate(observed)
        }

    @property
    def corrected(self) -> dict[str, float] | None:
        """Estimates less what the isotonic fit gains by following noise; None without a bootstrap.

        They estimate the values for many more rows, and may be slightly negative.
        """
        if self.accuracy is None:
            return None
        return dict(zip(COMPONENTS, (self.observed - self.accuracy.bias).tolist(), strict=True))

    @property
    def expected_miscalibration(self) -> float | None:
        """The mean miscalibration that a calibrated forecast with these values would show."""
        return float(self.calibrated.mean()) if len(self.calibrated) else None

    @property
    def p_value(self) -> float | None:
        """How often a calibrated forecast with these values would show at least this miscalibration.

        None without a bootstrap, and for log scores of groups.
        """
        if not len(self.calibrated):
            return None
        # What differs by rounding alone is equal.
        reached = self.calibrated >= self.miscalibration - 1e-12 * (1 + abs(self.score))
        return (1 + int(reached.sum())) / (1 + len(self.calibrated))

    def to_dict(self) -> dict[str, Any]:
        """The components as plain Python values."""
        intervals = self.intervals
        return {
            "name": self.name,
            **dict(zip(COMPONENTS, self.observed.tolist(), strict=True)),
            "intervals": None if intervals is None else {k: list(v) for k, v in intervals.items()},
            "caution": None if self.accuracy is None else self.accuracy.caution,
            "corrected": self.corrected,
            "expected_miscalibration": self.expected_miscalibration,
            "p_value": self.p_value,
        }

    def record(self) -> dict[str, Any]:
        """The components as one row of a table; None where there are no intervals."""
        plain = self.to_dict()
        intervals = self.intervals or {}
        row: dict[str, Any] = {"event": self.name}
        for name in COMPONENTS:
            row[name] = plain[name]
            for end, value in zip(("low", "high"), intervals.get(name, (None, None)), strict=True):
                row[f"{name}_{end}"] = value
        return row | {name: plain[name] for name in ("expected_miscalibration", "p_value")}

    def to_frame(self, kind: FrameKind = "pandas") -> Any:
        """One row: the components with the ends of their intervals."""
        return record_frame([self.record()], kind)

    def __repr__(self) -> str:
        values = ", ".join(f"{name} {text}" for name, text in zip(COMPONENTS, self.texts(), strict=True))
        return f"{self.name}: {values}"

    def texts(self) -> list[str]:
        """The four numbers with their intervals, for tables."""
        intervals = self.intervals or {}
        texts = []
        for name, value in zip(COMPONENTS, self.observed, strict=True):
            interval = intervals.get(name)
            known = interval is not None and interval.defined
            texts.append(f"{value:z.4f} ({interval:z.4f})" if known else f"{value:z.4f}")
        return texts


@dataclass(frozen=True, repr=False, eq=False)
class Decomposition(MaySkip):
    """Where a mean score comes from: score = miscalibration - discrimination + uncertainty.

    Attributes
    ----------
    rule : str
        The rule.
    whole : Components
        The components of its score. For the log score of three and more classes they are of "one-vs-rest
        log", the sum of the K binary log scores.
    parts : tuple of Components
        The components of every class or threshold, as binary scores.
    total : str
        How the parts make the whole, in words.
    thresholds : bool
        Whether the parts are thresholds of ordered classes.

    The score is infinite, and the miscalibration with it, where an event that was given probability
    zero happened.
    """

    rule: str
    whole: Components
    parts: tuple[Components, ...]
    total: str
    thresholds: bool
    n_rows: int
    n_classes: int
    n_groups: int | None
    resampling: Resampling

    @property
    def quantity(self) -> str:
        """What was decomposed: the rule, or "one-vs-rest log" for three and more classes."""
        return self.whole.name

    @property
    def score(self) -> float:
        """The mean score."""
        return self.whole.score

    @property
    def miscalibration(self) -> float:
        """What isotonic recalibration of every event gains. Lower is better."""
        return self.whole.miscalibration

    @property
    def discrimination(self) -> float:
        """What the recalibrated events gain on constant ones. Higher is better."""
        return self.whole.discrimination

    @property
    def uncertainty(self) -> float:
        """The score of constant forecasts of the frequencies; it does not depend on the forecast."""
        return self.whole.uncertainty

    @property
    def intervals(self) -> dict[str, Interval] | None:
        """Intervals of the score and the components, by name; None without a bootstrap."""
        return self.whole.intervals

    @property
    def corrected(self) -> dict[str, float] | None:
        """Estimates less what the isotonic fit gains by following noise; None without a bootstrap."""
        return self.whole.corrected

    @property
    def p_value(self) -> float | None:
        """How often a calibrated forecast with these values would show at least this miscalibration."""
        return self.whole.p_value

    # ---- out -------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """All components as plain Python values."""
        return {
            "verax": __version__,
            "rule": self.rule,
            "n_rows": self.n_rows,
            "n_classes": self.n_classes,
            "n_groups": self.n_groups,
            "whole": self.whole.to_dict(),
            "parts": [part.to_dict() for part in self.parts],
            "total": self.total,
            "bootstrap": {
                "replicates": self.resampling.replicates,
                "confidence": self.resampling.confidence,
                "seed": self.resampling.seed,
                "weights_are": self.resampling.weights_are,
                "method": "t; of components corrected for overfitting of the isotonic fit",
            },
            **self._noted(),
        }

    def to_frame(self, kind: FrameKind = "pandas") -> Any:
        """One row for the whole, then one per class or threshold: components and their intervals."""
        part = "threshold" if self.thresholds else "class"
        rows = [("whole", self.whole), *((part, found) for found in self.parts)]
        return record_frame([{"part": what, **found.record()} for what, found in rows], kind)

    def _heading(self) -> str:
        kind = "ordered classes" if self.thresholds else "classes"
        grouped = "" if self.n_groups is None else f", {self.n_groups:,} groups"
        rows = f"{self.n_rows:,} rows{grouped}, {self.n_classes:,} {kind}"
        return f"verax decomposition of {self.quantity}: {rows}"

    def _cells(self) -> Cells:
        prefix = "y " if self.thresholds else "class "
        lines = [(self.quantity, self.whole), *((prefix + part.name, part) for part in self.parts)]
        return [["", *COMPONENTS], *([name, *line.texts()] for name, line in lines)]

    def _notes(self) -> list[str]:
        notes = [f"score = miscalibration - discrimination + uncertainty; {self.quantity} is {self.total}."]
        if self.intervals is not None:
            units = "independent rows" if self.n_groups is None else "independent groups"
            notes.append(
                f"In brackets {100 * self.resampling.confidence:g}% intervals for {units}, corrected for "
                "overfitting of the isotonic fit."
            )
            caution = self.intervals["discrimination"].caution
            notes += [f"Caution: {caution}."] if caution else []
        if self.p_value is not None:
            notes.append(
                "A calibrated forecast would show a miscalibration of "
                f"{self.whole.expected_miscalibration:.4f}; p = {self.p_value:.2g}."
            )
        if self.score == float("inf"):
            notes.append(
                "Infinite: something happened that had been given probability zero. Recalibration "
                "repairs that, so the miscalibration is infinite too."
            )
        return notes + self._said()

    def __repr__(self) -> str:
        return "\n".join([self._heading(), *text_table(self._cells(), right=(1, 2, 3, 4)), *self._notes()])

    def _repr_html_(self) -> str:
        return html_table(self._cells(), caption=self._heading(), notes=self._notes())
