"""Texts of a monitor: the reasons of an alarm, the kind of change, and its onset."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from verax.errors import join
from verax.inference.findings import Claim, Finding, NextStep
from verax.scores.registry import name_of
from verax.wings.monitor.evidence import OF_LOSS, Ledger, Target
from verax.wings.monitor.periods import Period, onset_of, since_onset
from verax.wings.monitor.result import Alarm
from verax.wings.monitor.settings import Settings
from verax.wings.monitor.state import State
from verax.wings.monitor.steps import TOP

# Number of events that a sentence names.
_LISTED = 3


def alarm_at(ledger: Ledger, periods: Sequence[Period], settings: Settings) -> Alarm:
    """The alarm that the last time step raises."""
    failed = ledger.against(1 / settings.level)
    targets = [target for target, _ in failed]
    ways = ledger.directions(1 / settings.level)
    if not targets:
        # All claims together fail; none of them alone.
        strongest = int(np.argmax(ledger.logs() + np.log(ledger.weights())))
        targets, ways = [ledger.targets[strongest]], {}
    reasons = [_reason(ledger, periods, settings, target, ways.get(target)) for target in targets]
    if not failed:
        reasons = [f"the claims fail together, none by itself; the strongest evidence: {reasons[0]}"]
    kind = _kind(ledger, targets, ways) if failed else "What has changed is not known yet"
    return Alarm(periods[-1].time, tuple(targets), tuple(reasons), kind, bool(failed))


def _reason(
    ledger: Ledger, periods: Sequence[Period], settings: Settings, target: Target, way: str | None
) -> str:
    column, label, name = target
    where = f" where {column} is {label}" if column else ""
    by_step = enters_whole(ledger, target)
    stated, happened, loss = since_onset(periods, target, ledger.events, by_step=by_step)
    if name == OF_LOSS:
        return f"mean {name_of(settings.rule)} {loss:.4g} exceeds the tolerated {settings.tolerated:.4g}"
    shares = f"{100 * stated:.0f}% forecast, {100 * happened:.0f}% happened"
    wrong = "do not match the outcomes" if way is None else f"are {way}"
    return f"probabilities of “{name}” {wrong}{where} ({shares})"


def _kind(ledger: Ledger, targets: Sequence[Target], ways: Mapping[Target, str]) -> str:
    """The kind of change that the failed claims show together."""
    whole = [target for target in targets if not target[0]]
    if not whole:
        return "No claim about all rows together has failed"
    events = [name for _, _, name in whole if name != OF_LOSS]
    if not events:
        return "No miscalibration is found: harder cases or less informative forecasts look like this"
    by_event = {name: ways.get(("", None, name), "") for name in events}
    answers = by_event.pop(TOP, "")
    if not by_event:
        words = {"too high": "overconfident", "too low": "underconfident", "": "miscalibrated"}
        return f"The forecasts are {words.get(answers, answers)}"
    listed = [f"“{name}”" for name in by_event]
    rest = [f"{len(listed) - _LISTED} others"] if len(listed) > _LISTED + 1 else []
    names, directions = join([*listed[: _LISTED if rest else None], *rest]), set(by_event.values())
    more = "" if len(by_event) == len(ledger.events) - 1 else "; others may have changed as well"
    if directions <= {"too low", "too high"}:
        one = len(by_event) == 1
        return (
            f"The {'frequency' if one else 'frequencies'} of {names} {'has' if one else 'have'} shifted "
            f"against the forecasts{more}"
        )
    if len(directions) == 1 and directions != {""}:
        return f"The forecasts of {names} are {directions.pop()}{more}"
    return f"The forecasts of {names} are miscalibrated{more}"


def enters_whole(ledger: Ledger | None, target: Target) -> bool:
    """Whether time steps enter the bets against a claim as a whole."""
    if ledger is None or target[:2] not in ledger.capital:
        return False
    claims = ledger.claims(target[:2])
    return target[2] in claims and bool(ledger.by_step(target[:2])[claims.index(target[2])])


def onset_at(state: State) -> tuple[Any, Any, Any] | None:
    """When the change began that raised the alarm: the likeliest time, the earliest and the latest one."""
    if state.alarm is None:
        return None
    target = state.alarm.targets[0]
    return onset_of(state.periods, target, state.events, by_step=enters_whole(state.ledger, target))


def cautions_of(state: State) -> tuple[str, ...]:
    """Cautions about the reference, and about dependence within time steps."""
    settings, ledger, whole = state.settings, state.ledger, ("", None)
    cautions = [f"Caution about the reference: {caution}." for caution in settings.cautions]
    if ledger is None or settings.unit == "time":
        return tuple(cautions)
    units = "groups" if settings.unit == "group" else "rows"
    shared = dict(zip([OF_LOSS, *ledger.events], state.dependence.certain(whole).tolist(), strict=False))
    largest = max(ledger.claims(whole), key=lambda name: shared.get(name, 0.0))
    if shared.get(largest):
        what = name_of(settings.rule) if largest == OF_LOSS else f"the probabilities of “{largest}”"
        entering = (
            ", but alarms assume that they do not"
            if settings.unit_stated
            else ": time steps enter as a whole there"
        )
        cautions.append(
            f"{units.capitalize()} of a time step depend on each other (intraclass correlation "
            f"{shared[largest]:.2g} for {what}){entering}."
        )
    by_unit = ledger.total(ledger.logs_by_unit())
    if ledger.dependence is not None and state.alarm is None and by_unit >= -math.log(settings.level):
        cautions.append(
            f"If {units} of a time step are independent, the evidence is {_number(by_unit)} (alarm at "
            f"{1 / settings.level:.3g}). The time steps so far do not show that they are; a monitor with the "
            f"stated unit {settings.unit!r} assumes it."
        )
    return tuple(cautions)


def findings_of(state: State) -> list[Finding]:
    """The alarm with its onset, kind and next step, or the evidence so far."""
    periods, alarm = state.periods, state.alarm
    caution = " ".join(cautions_of(state))
    if not periods:
        return [Finding(Claim.NO_ALARM, "Nothing has been monitored yet.", caution=caution)]
    first, last = periods[0].time, periods[-1].time
    n_rows = sum(period.whole.n_rows for period in periods)
    what = f"{n_rows:,} rows " + (f"at {last}" if len(periods) == 1 else f"from {first} to {last}")
    now, needed = evidence_of(periods), 1 / state.settings.level
    facts: dict[str, Any] = {
        "numbers": {"evidence": now, "threshold": needed},
        "level": state.settings.level,
        "caution": caution,
    }
    if alarm is None:
        strength = "no evidence" if now <= 1 else "weak evidence" if now * now < needed else "some evidence"
        text = f"No alarm in {what}: {strength} of a change ({now:.3g}; an alarm needs {needed:.3g})."
        return [Finding(Claim.NO_ALARM, text, **facts)]
    onset = onset_at(state)
    assert onset is not None
    likeliest, low, high = onset
    plausible = "" if low == high else f" (between {low} and {high})"
    more = len(alarm.reasons) - 1
    also = f", and {more} more" if more > 0 else ""
    # Earlier versions stored it without a capital.
    kind = alarm.kind[0].upper() + alarm.kind[1:]
    text = (
        f"Alarm at {alarm.time} in {what}: {alarm.reasons[0]}{also}. "
        f"The change began at about {likeliest}{plausible}. {kind}."
    )
    column, label, _ = alarm.targets[0]
    where = f" where {column} is {label}" if column else ""
    step = NextStep(
        f"look at the rows since {low}{where}, recalibrate or retrain, and start again",
        "monitor.acknowledge()",
    )
    return [Finding(Claim.ALARM, text, tuple(alarm.reasons), **facts, step=step)]


def evidence_of(periods: Sequence[Period]) -> float:
    """The evidence after the last time step; 1 before the first."""
    return math.exp(min(periods[-1].evidence, 700.0)) if periods else 1.0


def _number(log: float) -> str:
    return f"{math.exp(min(log, 700.0)):.3g}"


def lateness_of(z: float) -> str:
    """A caution if losses of late outcomes differ from those of early ones; else empty."""
    if not abs(z) > 3:
        return ""
    which = "larger" if z > 0 else "smaller"
    return (
        f"Losses are {which} where outcomes came later (z = {z:.1f}). Alarms assume that lateness does "
        "not depend on the outcome."
    )
