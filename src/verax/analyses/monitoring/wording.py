"""What a monitor says: why it raises an alarm, what kind of change it is, and since when."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from verax.analyses.monitoring.evidence import OF_LOSS, Ledger, Target
from verax.analyses.monitoring.periods import Period, onset_of, since_onset
from verax.analyses.monitoring.result import Alarm
from verax.analyses.monitoring.settings import Settings
from verax.analyses.monitoring.state import State
from verax.analyses.monitoring.steps import TOP
from verax.scores.registry import name_of


def alarm_at(ledger: Ledger, periods: Sequence[Period], told: Settings) -> Alarm:
    """The alarm that the last time step raises."""
    failed = ledger.against(1 / told.level)
    targets = [target for target, _ in failed]
    if not targets:
        # All claims together fail; none of them alone.
        strongest = int(np.argmax(ledger.logs() + np.log(ledger.weights())))
        targets = [ledger.targets[strongest]]
    reasons = tuple(_reason(ledger, periods, told, target) for target in targets)
    return Alarm(periods[-1].time, tuple(targets), reasons, _kind(ledger, targets), bool(failed))


def _reason(ledger: Ledger, periods: Sequence[Period], told: Settings, target: Target) -> str:
    column, label, name = target
    where = f" where {column} is {label}" if column else ""
    stated, happened, loss = since_onset(periods, target, ledger.events)
    if name == OF_LOSS:
        return f"{name_of(told.rule)} rose above {told.tolerated:.4g} to {loss:.4g}{where}"
    shares = f"{100 * stated:.0f}% forecast, {100 * happened:.0f}% happened"
    return f"probabilities of “{name}” are {ledger.direction(target)}{where} ({shares})"


def _kind(ledger: Ledger, targets: Sequence[Target]) -> str:
    """What kind of change this is."""
    whole = [name for column, _, name in targets if not column]
    if not whole:
        return "only some subgroups have changed"
    events = [name for name in whole if name != OF_LOSS]
    if not events:
        return "no miscalibration is detected, so cases are harder or forecasts less informative"
    ways = {name: ledger.direction(("", None, name)) for name in events}
    answers = ways.pop(TOP, "")
    if not ways:
        words = {"too high": "overconfident", "too low": "underconfident"}
        return f"the forecasts are {words.get(answers, answers)}"
    if set(ways.values()) <= {"too low", "too high"}:
        one = len(ways) == 1 and len(ledger.events) > 2
        return f"one class has changed: {next(iter(ways))}" if one else "class frequencies have shifted"
    same = set(ways.values())
    return "the forecasts are miscalibrated" if len(same) > 1 else f"the forecasts are {same.pop()}"


def verdict_of(state: State) -> str:
    """What there is to say, in one or two sentences."""
    periods, alarm = state.periods, state.alarm
    if not periods:
        return "Nothing has been monitored yet."
    first, last = periods[0].time, periods[-1].time
    n_rows = sum(period.whole.n_rows for period in periods)
    what = f"{n_rows:,} rows " + (f"at {last}" if len(periods) == 1 else f"from {first} to {last}")
    if alarm is None:
        now, needed = evidence_of(periods), 1 / state.settings.level
        return f"No alarm in {what}: evidence {now:.3g}, alarm at {needed:.3g}."
    likeliest, low, high = onset_of(periods, alarm.targets[0], state.events)
    plausible = "" if low == high else f" (between {low} and {high})"
    more = len(alarm.reasons) - 1
    also = f", and {more} more" if more > 0 else ""
    kind = alarm.kind[0].upper() + alarm.kind[1:]
    return (
        f"Alarm at {alarm.time} in {what}: {alarm.reasons[0]}{also}. "
        f"It began at about {likeliest}{plausible}. {kind}."
    )


def evidence_of(periods: Sequence[Period]) -> float:
    """The evidence after the last time step; 1 before the first."""
    return math.exp(min(periods[-1].evidence, 700.0)) if periods else 1.0


def lateness_of(z: float) -> str:
    """A caution if outcomes that came later had other losses than those that came sooner; else empty."""
    if not abs(z) > 3:
        return ""
    which = "larger" if z > 0 else "smaller"
    return (
        f"Losses are {which} where outcomes came later (z = {z:.1f}). Alarms assume that lateness does "
        "not depend on the outcome."
    )
