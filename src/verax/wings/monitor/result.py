"""Results of a monitor: its alarm, and its history by time step."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from verax.common.checks import check_choice
from verax.common.faces import Key
from verax.common.results import Result
from verax.display.tables import Column, FrameKind, Table, Tabled, data_frame, interval_head
from verax.inference.intervals import Interval
from verax.wings.monitor.evidence import Target
from verax.wings.monitor.periods import Period, loss_interval
from verax.wings.monitor.steps import CLAIMED, HAPPENED, LOSS, OF_EVENT, PER_EVENT, SAMPLED, STATED

if TYPE_CHECKING:
    from verax.display.figures import Figure

# Number of time steps in tables; data frames and JSON have all.
SHOWN = 60
# A larger logarithm of evidence overflows.
_MOST = 700.0


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
        The kind of change, in words.
    located : bool
        Whether these claims fail individually. If not, only all claims together fail, and the alarm names the
        one with the strongest evidence.
    cautions : tuple of str
        What was doubtful when it was raised: too few time steps, or neighbouring ones that resemble each
        other.

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
    cautions: tuple[str, ...] = ()

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
            "cautions": list(self.cautions),
        }


@dataclass(frozen=True)
class Acknowledgement:
    """The answer to an alarm, after which the evidence begins again.

    Attributes
    ----------
    alarm : Alarm
        The alarm.
    why : str
        What was found or done.
    who : str
        Who answered it.
    when : str
        The time of the answer, in UTC.

    Examples
    --------
    >>> alarm = Alarm(3, (("", None, "loss"),), ("brier is above 0.2",), "unknown", True)
    >>> Acknowledgement(alarm, "sensor replaced", "ann", "2026-03-10T08:00:00Z")
    The alarm at 3 was acknowledged by ann at 2026-03-10T08:00:00Z: sensor replaced
    """

    alarm: Alarm
    why: str
    who: str
    when: str

    def __repr__(self) -> str:
        return (
            f"The alarm at {self.alarm.time} was acknowledged by {self.who} at {self.when}"
            f"{': ' * bool(self.why)}{self.why}"
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain Python values."""
        return {"alarm": self.alarm.to_dict(), "why": self.why, "who": self.who, "when": self.when}


@dataclass(frozen=True, eq=False)
class MonitoredEvent:
    """The forecasts of an event in one time step.

    Attributes
    ----------
    stated, happened : float
        Its mean probability and its frequency.
    evidence : float
        The evidence so far that its probabilities are wrong.
    """

    stated: float
    happened: float
    evidence: float


@dataclass(frozen=True, eq=False)
class MonitoredStep:
    """One time step.

    Attributes
    ----------
    time : object
        The time.
    n_rows : int
        The number of rows.
    loss : float
        Their mean loss.
    interval : Interval
        Its confidence interval, for this step alone.
    expected_loss : float or None
        The mean loss that the forecasts expect of themselves.
    evidence : float
        The evidence so far that something has changed.
    events : mapping of str to MonitoredEvent
        Mean probability, frequency and evidence, by event.
    """

    time: Any
    n_rows: int
    loss: float
    interval: Interval
    expected_loss: float | None
    evidence: float
    events: Mapping[str, MonitoredEvent]

    @classmethod
    def of(
        cls, period: Period, events: Sequence[str], confidence: float, bounds: tuple[float, float]
    ) -> MonitoredStep:
        """The loss, evidence and frequencies from the sums of a step.

        Parameters
        ----------
        period : Period
            The sums of the step.
        events : sequence of str
            The names of the events.
        confidence : float
            Confidence level of the interval of the loss.
        bounds : tuple of float
            The smallest and the largest loss.

        Returns
        -------
        MonitoredStep
            Loss, evidence and frequencies of the step.
        """
        step = period.whole
        sampled = float(step.means[SAMPLED])
        by_event = {}
        for e, name in enumerate(events):
            at = OF_EVENT + PER_EVENT * e
            log = period.logs.get(("", None, name), 0.0)
            stated, happened = float(step.means[at + STATED]), float(step.means[at + HAPPENED])
            by_event[name] = MonitoredEvent(stated, happened, math.exp(min(log, _MOST)))
        return cls(
            period.time,
            step.n_rows,
            float(step.means[LOSS]),
            loss_interval(step, confidence, bounds),
            float(step.means[CLAIMED]) / sampled if sampled > 0 else None,
            math.exp(min(period.evidence, _MOST)),
            by_event,
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain Python values."""
        interval = self.interval
        return {
            "time": str(self.time),
            "n_rows": self.n_rows,
            "loss": self.loss,
            "low": None if math.isnan(interval.low) else interval.low,
            "high": None if math.isnan(interval.high) else interval.high,
            "expected_loss": self.expected_loss,
            "evidence": self.evidence,
            "events": {name: dict(vars(event)) for name, event in self.events.items()},
        }


@dataclass(frozen=True, repr=False, eq=False)
class MonitorHistory(Tabled, Result):
    """Loss, calibration and evidence of each time step.

    Attributes
    ----------
    lines : tuple of MonitoredStep
        The time steps, in order.
    rule : str
        The rule that scores rows.
    events : tuple of str
        The events whose probabilities are monitored.
    reference, tolerated : float or None
        The reference, and the largest mean loss that raises no alarm.
    threshold : float
        The evidence that raises an alarm.
    confidence : float
        Confidence level of the intervals, each for its own time step.

    Examples
    --------
    >>> import verax as vx
    >>> monitor = vx.Monitor(0.4)
    >>> for day in range(2):
    ...     monitor.update([0, 1, 1], [0.3, 0.6, 0.9], time=day)
    >>> [line.n_rows for line in monitor.history.lines]
    [3, 3]
    """

    lines: Annotated[tuple[MonitoredStep, ...], Key("periods")]
    rule: str
    events: tuple[str, ...]
    reference: float | None
    tolerated: float | None
    threshold: float
    confidence: float

    def _figures(self, began: tuple[Any, Any, Any] | None) -> list[Figure]:
        """Losses and evidence; the time when a change `began` is marked."""
        from verax.display.axes import Axis
        from verax.display.figures import Figure
        from verax.display.marks import Band, Guide, Line, Mark, Ranged, Shade

        steps, places = self.lines, range(len(self.lines))
        times = Axis("time", names=tuple(str(step.time) for step in steps), ordered=True)
        ends = [step.interval if step.interval.defined else (step.loss,) * 2 for step in steps]
        low, high = zip(*ends, strict=True)
        losses: list[Mark] = [
            Line("mean loss", places, [step.loss for step in steps], dots=True),
            Band(f"{100 * self.confidence:g}% interval", places, low, high),
        ]
        expected = [step.expected_loss for step in steps if step.expected_loss is not None]
        if len(expected) == len(steps):
            losses.append(Line("expected by the forecasts", places, expected, "soft", dots=True))
        if self.tolerated is not None:
            losses.append(Guide("tolerated", "y", self.tolerated))
        height = [max(step.evidence, 1e-12) for step in steps]
        evidence: list[Mark] = [
            Line("evidence", places, height, dots=True),
            Guide(f"alarm at {self.threshold:.4g}", "y", self.threshold),
        ]
        if began is not None:
            first, last = (bisect_right([step.time for step in steps], time) - 1 for time in began[1:])
            change = Shade("when the change may have begun", "x", first - 0.5, last + 0.5)
            losses.append(change)
            evidence.append(change)
        loss, at_last = Axis(f"mean {self.rule}"), steps[-1]
        last_loss = Ranged(f"mean {self.rule} in {at_last.time}", at_last.loss, *ends[-1])
        alarm = [Ranged("evidence at last", at_last.evidence), Ranged("alarm at", self.threshold)]
        return [
            Figure("", losses, times, loss, facts=[last_loss]),
            Figure("", evidence, times, Axis("evidence of a change", log=True), facts=alarm),
        ]

    def _columns(self) -> list[Column]:
        return [
            Column("time", "time", right=False),
            Column("n_rows", "rows", ","),
            Column("loss", self.rule, ".4f"),
            Column("low high", interval_head(self.confidence), ".4f", "interval"),
            Column("expected_loss", "expected loss", ".4f"),
            Column("evidence", "evidence", ".3g"),
        ]

    def _tables(self) -> list[Table]:
        return [Table(self._columns(), self.lines[-SHOWN:])]

    def _frame(self) -> Table:
        return Table(self._columns(), self.lines)

    def to_frame(self, kind: FrameKind = "pandas", *, of: Literal["steps", "events"] = "steps") -> Any:
        """One row per time step, or per time step and event, as a data frame of the kind named.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"}, default "pandas"
            The package of the data frame.
        of : {"steps", "events"}, default "steps"
            What a row is: a time step, or an event in a time step.

        Returns
        -------
        DataFrame or Table
            The table, as that package has it.
        """
        check_choice("of", of, ("steps", "events"))
        if of == "steps":
            return super().to_frame(kind)
        pairs = [(line.time, name, event) for line in self.lines for name, event in line.events.items()]
        columns: dict[str, list[Any]] = {
            "time": [time for time, _, _ in pairs],
            "event": [name for _, name, _ in pairs],
        }
        for what in ("stated", "happened", "evidence"):
            columns[what] = [getattr(event, what) for _, _, event in pairs]
        return data_frame(columns, kind)

    def _heading(self) -> str:
        return f"verax monitor of {self.rule}"

    def _notes(self) -> list[str]:
        n = len(self.lines)
        return [f"The last {SHOWN} of {n:,} time steps."] if n > SHOWN else []
