"""Texts of a monitor: its verdict and its cautions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from verax.inference.findings import Claim, Finding, NextStep
from verax.scores.registry import name_of
from verax.wings.monitor.evidence import OF_LOSS, Ledger
from verax.wings.monitor.periods import onset_of
from verax.wings.monitor.state import State


def onset_at(state: State) -> tuple[Any, Any, Any] | None:
    """When the change began that raised the alarm: the likeliest time, the earliest and the latest one."""
    if state.alarm is None:
        return None
    by_step = state.settings.unit == "time"
    return onset_of(state.periods, state.alarm.targets[0], state.events, by_step=by_step)


def cautions_of(state: State) -> tuple[str, ...]:
    """Cautions about the reference, about what time steps are, and about rows that depend on each other."""
    settings = state.settings
    cautions = [f"Caution about the reference: {caution}." for caution in settings.cautions]
    if state.renewed:
        cautions.append(
            "The state was begun by an earlier version, whose bets were on rows or on bounds of time steps: "
            "the evidence begins again, with an alpha of its own."
        )
    if state.alarm is not None:
        cautions += state.alarm.cautions
    if settings.unit == "time":
        cautions += _of_steps(state)
    return (*cautions, *_of_dependence(state))


def _of_steps(state: State) -> list[str]:
    """Cautions about what time steps are."""
    cautions = []
    if state.settings.period == "hour":
        cautions.append("Hours of one day resemble each other, and alarms assume that they do not.")
    if state.own and state.settings.period is None:
        cautions.append(
            "Rows have times of their own: the rows of a day are one time step, which counts when it is over."
        )
    if state.late:
        rows = "1 row came" if state.late == 1 else f"{state.late:,} rows came"
        cautions.append(
            f"{rows} after bets on the time step were made, and cannot be bet on. With a stated period, such "
            "as a day, a time step waits until it is over."
        )
    return cautions


def _of_dependence(state: State) -> list[str]:
    """Whether rows, or groups, of a time step depend on each other, and what that means."""
    settings, ledger = state.settings, state.ledger
    shared = state.dependence.certain.tolist()
    if ledger is None or not any(shared):
        return []
    largest = max(ledger.claims(("", None)), key=lambda name: _shared(shared, ledger, name))
    correlation = _shared(shared, ledger, largest)
    if not correlation:
        return []
    what = name_of(settings.rule) if largest == OF_LOSS else f"the probabilities of “{largest}”"
    by_step = settings.unit == "time"
    units = "Groups" if settings.unit == "group" else "Rows"
    entering = ": alarms allow for it" if by_step else ", but alarms assume that they do not"
    return [
        f"{units} of a time step depend on each other (intraclass correlation {correlation:.2g} for {what})"
        f"{entering}."
    ]


def _shared(correlations: Sequence[float], ledger: Ledger, name: str) -> float:
    """The intraclass correlation for a claim."""
    return correlations[[OF_LOSS, *ledger.events].index(name)]


def findings_of(state: State) -> list[Finding]:
    """The alarm with its onset, kind and next step, or the evidence so far."""
    periods, alarm = state.periods, state.alarm
    caution = " ".join(cautions_of(state))
    if not periods:
        return [Finding(Claim.NO_ALARM, "Nothing has been monitored yet.", caution=caution)]
    first, last = periods[0].time, periods[-1].time
    n_rows = sum(period.whole.n_rows for period in periods)
    what = f"{n_rows:,} rows " + (f"at {last}" if len(periods) == 1 else f"from {first} to {last}")
    now, needed = evidence_of(state), 1 / state.settings.level
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


def evidence_of(state: State) -> float:
    """The evidence now; 1 before the first bets."""
    return math.exp(min(state.log_evidence, 700.0))


def lateness_of(z: float) -> str:
    """A caution if losses of late outcomes differ from those of early ones; else empty."""
    if not abs(z) > 3:
        return ""
    which = "larger" if z > 0 else "smaller"
    return (
        f"Losses are {which} where outcomes came later (z = {z:.1f}). Alarms assume that lateness does "
        "not depend on the outcome."
    )
