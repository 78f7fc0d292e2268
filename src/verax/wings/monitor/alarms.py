"""What an alarm says: the claims that fail, the kind of change, and what is doubtful."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from verax.common.texts import percent
from verax.errors import join
from verax.scores.registry import name_of
from verax.wings.monitor.evidence import OF_LOSS, Ledger, Target
from verax.wings.monitor.periods import Period, since_onset
from verax.wings.monitor.result import Alarm
from verax.wings.monitor.settings import Settings
from verax.wings.monitor.stepbets import SEEN
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
    doubts = _doubts(ledger, targets[0])
    return Alarm(periods[-1].time, tuple(targets), tuple(reasons), kind, bool(failed), doubts)


def _doubts(ledger: Ledger, target: Target) -> tuple[str, ...]:
    """What is doubtful about an alarm that is raised now."""
    n, correlation = ledger.doubts(target)
    if n is None:
        return ()
    if n < SEEN:
        steps = "1 time step" if n == 1 else f"{n} time steps"
        return (
            f"The alarm came after {steps} with bets, fewer than {SEEN}: whether neighbouring steps resemble "
            "each other is not known, and then false alarms are more frequent.",
        )
    if correlation:
        return (
            f"Neighbouring time steps resemble each other (correlation {correlation:.2g}), which makes false "
            "alarms more frequent. Longer steps, such as weeks in place of days, may not.",
        )
    return ()


def _reason(
    ledger: Ledger, periods: Sequence[Period], settings: Settings, target: Target, way: str | None
) -> str:
    column, label, name = target
    where = f" where {column} is {label}" if column else ""
    by_step = settings.unit == "time"
    stated, happened, loss = since_onset(periods, target, ledger.events, by_step=by_step)
    if name == OF_LOSS:
        return f"mean {name_of(settings.rule)} {loss:.4g} exceeds the tolerated {settings.tolerated:.4g}"
    shares = f"{percent(stated, 0)} forecast, {percent(happened, 0)} happened"
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
