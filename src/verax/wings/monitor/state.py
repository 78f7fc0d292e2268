"""The state of a monitor between runs, as bytes without pickle."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from verax.common.packing import dump, load, refusing
from verax.common.times import read_again
from verax.inputs.breakdown import Breakdown
from verax.scores.registry import name_of
from verax.wings.monitor.alarms import alarm_at
from verax.wings.monitor.calendars import Periods
from verax.wings.monitor.evidence import OF_LOSS, Dependence, Ledger, Target
from verax.wings.monitor.kept import KeptReading
from verax.wings.monitor.pending import Pending
from verax.wings.monitor.periods import Period, joined
from verax.wings.monitor.result import Acknowledgement, Alarm, MonitoredStep, MonitorHistory
from verax.wings.monitor.settings import Settings
from verax.wings.monitor.steps import Scope, Step, events_of, scopes_of

_KIND, _VERSION = "monitor", 3


@dataclass(frozen=True)
class Kind:
    """The kind of rows: their classes, and whether they are top lists."""

    classes: tuple[Hashable, ...] | None
    n_classes: int
    lists: bool

    def events(self, *, ordered: bool) -> tuple[str, ...]:
        """The names of the events whose probabilities are monitored."""
        names = tuple(map(str, range(self.n_classes) if self.classes is None else self.classes))
        return events_of(names, ordered=ordered, lists=self.lists)


@dataclass
class State:
    """The state of a monitor.

    Attributes
    ----------
    settings : Settings
        The settings, checked.
    kind : Kind or None
        The kind of rows; None before the first.
    ledger : Ledger or None
        The bets; None before the first.
    periods : list of Period
        The time steps, in order.
    alarm : Alarm or None
        The first alarm.
    pending : Pending
        Forecasts whose outcomes come later, and names of rows.
    files : dict of str to str
        The names of files that were taken in, by a hash of their content.
    own : bool or None
        Whether rows have times of their own, which are joined into days; None before the first.
    open : Breakdown or None
        The sums of a time step that waits until it is over.
    late : int
        The number of rows that came after bets on their time step.
    renewed : bool
        Whether the state is of an earlier version, whose evidence does not count any more.
    kept : KeptReading or None
        How files are read; None before the first file.
    acknowledged : list of Acknowledgement
        The alarms that were answered.
    told : bool
        Whether the command for alarms has run for the alarm.
    telling_until : float
        Until when another process may be running that command, in seconds since 1970; 0 if none is.
    dependence : Dependence
        Whether rows of a time step depend on each other. Not stored, because it follows from `periods`.
    """

    settings: Settings
    kind: Kind | None = None
    ledger: Ledger | None = None
    periods: list[Period] = field(default_factory=list)
    alarm: Alarm | None = None
    pending: Pending = field(default_factory=Pending)
    files: dict[str, str] = field(default_factory=dict)
    own: bool | None = None
    open: Breakdown | None = None
    late: int = 0
    renewed: bool = False
    kept: KeptReading | None = None
    acknowledged: list[Acknowledgement] = field(default_factory=list)
    told: bool = False
    telling_until: float = 0.0
    dependence: Dependence = field(default_factory=Dependence)

    @property
    def joins(self) -> Periods | None:
        """How times are joined into time steps; None if they are steps."""
        return self.own_periods if self.settings.periods is None and self.own else self.settings.periods

    @property
    def own_periods(self) -> Periods:
        """How times that rows have to themselves are joined."""
        return Periods("day", self.settings.zone)

    @property
    def undecided(self) -> bool:
        """Whether it is not known yet if rows have times of their own."""
        return self.own is None and self.settings.unit == "time" and self.settings.periods is None

    @property
    def log_evidence(self) -> float:
        """The logarithm of the evidence of all claims; 0 before the first bets."""
        return 0.0 if self.ledger is None else self.ledger.total()

    def take(self, time: Any, sums: Mapping[str, Any]) -> None:
        """Take in the sums of some rows of a time step, which is the last or a later one."""
        opens = not self.periods or self.periods[-1].time != time
        if self.ledger is None:
            self.ledger = self.new_ledger()
        waits = self.settings.unit == "time" and self.joins is not None
        if waits and opens:
            self._close()
        if opens and self.periods:
            self.dependence.note(self.periods[-1].whole)
        if waits:
            step = Breakdown({time: sums})
            self.open = step if self.open is None else self.open.merge(step)
            self._note(time, self._steps(self.open[time]), again=not opens)
            return
        steps = self._steps(sums)
        if opens or self.settings.unit != "time":
            self.ledger.bet(steps, opens=opens)
        else:
            # Later rows of a step depend on those that were bet on.
            self.late += steps["", None].n_rows
        if opens:
            self._note(time, steps)
        else:
            self.periods[-1] = self.periods[-1].plus(self._period(time, steps))
        self._judge()

    def _steps(self, sums: Mapping[str, Any]) -> dict[Scope, Step]:
        return {scope: Step.of(own, self.settings.unit) for scope, own in scopes_of(sums)}

    def _close(self) -> None:
        """Bet on the step that waited, now that it is over."""
        if self.open is None:
            return
        assert self.ledger is not None
        (time,) = self.open.by_label
        steps = self._steps(self.open[time])
        self.ledger.bet(steps, opens=True)
        self.open = None
        self._note(time, steps, again=True)
        self._judge()

    def _period(self, time: Any, steps: Mapping[Scope, Step]) -> Period:
        """A time step with the evidence now."""
        assert self.ledger is not None
        logs = self.ledger.logs()
        by_target = dict(zip(self.ledger.targets, logs.tolist(), strict=True))
        return Period(time, steps, self.ledger.total(logs) if len(logs) else 0.0, by_target)

    def _note(self, time: Any, steps: Mapping[Scope, Step], *, again: bool = False) -> None:
        """Note a time step, in place of the last one if that is `again` the same."""
        del self.periods[len(self.periods) - again :]
        self.periods.append(self._period(time, steps))

    def _judge(self) -> None:
        """Raise an alarm if there is evidence enough."""
        if self.alarm is None and self.periods[-1].evidence >= -math.log(self.settings.level):
            assert self.ledger is not None
            self.alarm = alarm_at(self.ledger, self.periods, self.settings)
            self.told, self.telling_until = False, 0.0

    def acknowledge(self, why: str, who: str) -> None:
        """Note the answer to the alarm, if there is one, and begin the evidence again."""
        if self.alarm is not None:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            self.acknowledged.append(Acknowledgement(self.alarm, why, who, now))
        self.alarm, self.ledger, self.renewed = None, None, False

    def name_classes(self, stated: object) -> None:
        """Give the names that are stated, in order, to classes that had positions so far."""
        kind, names = self.kind, tuple(stated) if isinstance(stated, Iterable) else ()
        if kind is None or kind.lists or kind.classes is not None or len(names) != kind.n_classes:
            return
        events = self.events
        self.kind = replace(kind, classes=names)
        called = dict(zip(events, self.events, strict=True))

        def renamed(target: Target) -> Target:
            return (*target[:2], called.get(target[2], target[2]))

        self.periods = [
            replace(period, logs={renamed(target): log for target, log in period.logs.items()})
            for period in self.periods
        ]
        if self.alarm is not None:
            self.alarm = replace(self.alarm, targets=tuple(map(renamed, self.alarm.targets)))
        if self.ledger is not None:
            self.ledger.events = self.events
        self.pending.name_outcomes(names)

    @property
    def events(self) -> tuple[str, ...]:
        """The events whose probabilities are monitored; none before the first rows."""
        return () if self.kind is None else self.kind.events(ordered=self.settings.ordered)

    def new_ledger(self) -> Ledger:
        """Bets before the first step."""
        settings = self.settings
        with_loss = settings.reference is not None
        return Ledger(self.events, with_loss, settings.by, settings.restarts, settings.unit)

    def history(self, most: int | None = None) -> MonitorHistory:
        """The results of each time step; with neighbours joined if there are more than `most`."""
        settings, confidence = self.settings, 0.95
        bounds = (0.0, 1.0) if self.kind is None else settings.rule.bounds(self.kind.n_classes)
        periods = self.periods if most is None else joined(self.periods, most)
        return MonitorHistory(
            tuple(MonitoredStep.of(period, self.events, confidence, bounds) for period in periods),
            name_of(settings.rule),
            self.events,
            settings.reference,
            settings.tolerated,
            1 / settings.level,
            confidence,
        )

    def to_bytes(self) -> bytes:
        """The state as bytes that `from_bytes` reads, without pickle."""
        kind, alarm = self.kind, self.alarm
        values = {
            "settings": self.settings.to_values(),
            "classes": None if kind is None or kind.classes is None else list(kind.classes),
            "n_classes": 0 if kind is None else kind.n_classes,
            "lists": kind is not None and kind.lists,
            "capital": None if self.ledger is None else self.ledger.to_values(),
            "periods": [period.to_values() for period in self.periods],
            "alarm": None if alarm is None else _alarm_values(alarm),
            "pending": self.pending.to_values(),
            "files": dict(self.files),
            "own": self.own,
            "open": None if self.open is None else self.open.to_bytes(),
            "late": self.late,
            "renewed": self.renewed,
            "kept": None if self.kept is None else self.kept.to_values(),
            "acknowledged": [
                {**vars(each), "alarm": _alarm_values(each.alarm)} for each in self.acknowledged
            ],
            "told": self.told,
            "telling_until": self.telling_until,
        }
        return dump(_KIND, values, version=_VERSION)

    @classmethod
    def from_bytes(cls, data: bytes) -> State:
        """Read the result of `to_bytes`; other bytes are refused."""
        values = load(data, _KIND, version=_VERSION)
        with refusing("is missing or of another type"):
            classes = None if values["classes"] is None else tuple(values["classes"])
            n_classes = int(values["n_classes"])
            told = dict(values["settings"])
            by_step = "own" not in values and _renews(told)
            state = cls(
                Settings.from_values(told),
                Kind(classes, n_classes, bool(values["lists"])) if n_classes else None,
                None,
                [Period.from_values(stored) for stored in values["periods"]],
                None if values["alarm"] is None else _alarm_of(values["alarm"]),
                Pending.from_values(values["pending"]),
                {str(k): str(v) for k, v in values["files"].items()},
                None if values.get("own") is None else bool(values["own"]),
                None if values.get("open") is None else Breakdown.from_bytes(values["open"]),
                int(values.get("late", 0)),
                bool(values.get("renewed", by_step and values["capital"] is not None)),
                None if values.get("kept") is None else KeptReading.from_values(values["kept"]),
                [
                    Acknowledgement(_alarm_of(each["alarm"]), *(str(each[k]) for k in ("why", "who", "when")))
                    for each in values.get("acknowledged", ())
                ],
                bool(values.get("told", False)),
                float(values.get("telling_until", 0.0)),
            )
            state._read_times()
            state._check_alarm()
            for period in state.periods[:-1]:
                state.dependence.note(period.whole)
            if values["capital"] is not None and not by_step:
                state.ledger = state.new_ledger()
                state.ledger.restore(values["capital"])
        return state

    def _check_alarm(self) -> None:
        """Refuse an alarm about what is not watched."""
        scopes = {scope for period in self.periods for scope in period.steps}
        for column, label, name in () if self.alarm is None else self.alarm.targets:
            if (column, label) not in scopes or name not in (OF_LOSS, *self.events):
                raise KeyError(f"the alarm is about {name} of {label}")

    def _read_times(self) -> None:
        """Give all times their canonical form, which texts of 0.3 did not have."""
        stored = [period.time for period in self.periods]
        times = dict(zip(stored, read_again(stored), strict=True))
        self.periods = [replace(period, time=times[period.time]) for period in self.periods]
        if self.alarm is not None:
            self.alarm = replace(self.alarm, time=times.get(self.alarm.time, self.alarm.time))
        if self.open is not None:
            self.open = Breakdown({times.get(time, time): sums for time, sums in self.open.by_label.items()})


def _renews(told: dict[str, Any]) -> bool:
    """Whether a state of an earlier version has bets that are not made any more; its unit is then the step.

    Rows and groups are units only where they were stated.
    """
    renews = not (told.pop("unit_stated", False) and told["unit"] in ("row", "group"))
    if renews:
        told["unit"] = "time"
    return renews


def _alarm_values(alarm: Alarm) -> dict[str, Any]:
    """The fields of an alarm, for storing."""
    lists = {name: list(getattr(alarm, name)) for name in ("reasons", "cautions")}
    return {**vars(alarm), "targets": [list(target) for target in alarm.targets], **lists}


def _alarm_of(values: Mapping[str, Any]) -> Alarm:
    """The stored alarm."""
    targets = tuple((str(a), b, str(c)) for a, b, c in values["targets"])
    reasons = tuple(map(str, values["reasons"]))
    cautions = tuple(map(str, values.get("cautions", ())))
    return Alarm(values["time"], targets, reasons, str(values["kind"]), bool(values["located"]), cautions)
