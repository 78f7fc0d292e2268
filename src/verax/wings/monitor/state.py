"""The state of a monitor between runs, as bytes without pickle."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from verax.common.packing import dump, load, refusing
from verax.scores.registry import name_of
from verax.wings.monitor.evidence import Dependence, Ledger
from verax.wings.monitor.pending import Pending
from verax.wings.monitor.periods import Period, joined
from verax.wings.monitor.result import Alarm, MonitoredStep, MonitorHistory
from verax.wings.monitor.settings import Settings
from verax.wings.monitor.steps import events_of

_KIND, _VERSION = "monitor", 2


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
    dependence : Dependence
        Tests for dependence within time steps. Not stored, because it follows from `periods`.
    """

    settings: Settings
    kind: Kind | None = None
    ledger: Ledger | None = None
    periods: list[Period] = field(default_factory=list)
    alarm: Alarm | None = None
    pending: Pending = field(default_factory=Pending)
    files: dict[str, str] = field(default_factory=dict)
    dependence: Dependence = field(default_factory=Dependence)

    @property
    def events(self) -> tuple[str, ...]:
        """The events whose probabilities are monitored; none before the first rows."""
        return () if self.kind is None else self.kind.events(ordered=self.settings.ordered)

    def new_ledger(self) -> Ledger:
        """Bets before the first step."""
        settings = self.settings
        assumed = settings.unit != "time" and not settings.unit_stated
        dependence = self.dependence if assumed else None
        return Ledger(self.events, settings.reference is not None, settings.by, settings.restarts, dependence)

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
        }
        return dump(_KIND, values, version=_VERSION)

    @classmethod
    def from_bytes(cls, data: bytes) -> State:
        """Read the result of `to_bytes`; other bytes are refused."""
        values = load(data, _KIND, version=_VERSION)
        with refusing("is missing or of another type"):
            classes = None if values["classes"] is None else tuple(values["classes"])
            n_classes = int(values["n_classes"])
            state = cls(
                Settings.from_values(values["settings"]),
                Kind(classes, n_classes, bool(values["lists"])) if n_classes else None,
                None,
                [Period.from_values(stored) for stored in values["periods"]],
                None if values["alarm"] is None else _alarm_of(values["alarm"]),
                Pending.from_values(values["pending"]),
                {str(k): str(v) for k, v in values["files"].items()},
            )
            for period in state.periods[:-1]:
                state.dependence.note(period.steps)
            if values["capital"] is not None:
                state.ledger = state.new_ledger()
                state.ledger.restore(values["capital"])
        return state


def _alarm_values(alarm: Alarm) -> dict[str, Any]:
    """The fields of an alarm, for storing."""
    targets = [list(target) for target in alarm.targets]
    return {**vars(alarm), "targets": targets, "reasons": list(alarm.reasons)}


def _alarm_of(values: Mapping[str, Any]) -> Alarm:
    """The stored alarm."""
    targets = tuple((str(a), b, str(c)) for a, b, c in values["targets"])
    reasons = tuple(map(str, values["reasons"]))
    return Alarm(values["time"], targets, reasons, str(values["kind"]), bool(values["located"]))
