"""The verdict: which model is best, whether the difference is real, and whether it is calibrated."""

from __future__ import annotations

import math

from verax.complaints import join
from verax.report.contents import Contents, Findings
from verax.report.words import number, percent, span, title_of, within

# Below this share of the loss, miscalibration is there but hardly matters.
_SLIGHT = 0.02


def verdict_of(contents: Contents) -> str:
    """One sentence: how good, whether better than the others and than class frequencies, and calibrated."""
    opening, good = _alone(contents) if len(contents.findings) == 1 else _among(contents)
    return f"{opening}{_calibration(contents, contents.best, good)}."


def _alone(contents: Contents) -> tuple[str, bool]:
    """How one model does against class frequencies, and whether that is good news."""
    found = contents.best
    name, value = within(title_of(contents.primary)), found.card[contents.primary]
    skill, (low, high) = contents.skill(found.name, contents.primary)
    who = "The model" if found.name == "model" else found.name
    if not math.isfinite(value):
        return f"{who} gave probability zero to something that happened, so its {name} is infinite", False
    if math.isnan(low):
        return f"{who} has a {name} of {number(value)}", True
    spread = f"{100 * contents.confidence:g}% interval {percent(low)} to {percent(min(high, 1.0))}"
    if low > 0:
        much = "far better" if skill >= 0.5 else "better" if skill >= 0.1 else "a little better"
        lower = f"its {name} of {number(value)} is {percent(skill)} lower ({spread})"
        return f"{who} is {much} than knowing the class frequencies alone: {lower}", True
    if high < 0:
        more = f"{percent(-skill)} higher than theirs" if skill > -1 else f"{1 - skill:,.0f} times theirs"
        higher = f"its {name} of {number(value)} is {more}"
        return f"{who} is worse than knowing the class frequencies alone: {higher}", False
    apart = f"{percent(abs(skill))} {'lower' if skill >= 0 else 'higher'}, which may be chance ({spread})"
    opening = f"{who} cannot be told apart from knowing the class frequencies alone"
    return f"{opening}: its {name} of {number(value)} is {apart}", False


def _among(contents: Contents) -> tuple[str, bool]:
    """Which of several models is best, whether its lead is real, and whether that is good news."""
    ranking = contents.comparison.models[contents.primary]
    best = ranking[0]
    name = within(title_of(contents.primary))
    if not math.isfinite(best.mean):
        return f"All models gave probability zero to something that happened; every {name} is infinite", False
    opening = f"{best.name} has the lowest {name} ({number(best.mean)}){_lead(contents)}"
    low, high = best.skill_interval
    if math.isnan(low):
        return opening, True
    if low > 0:
        return f"{opening}; that is {percent(best.skill)} below class frequencies", True
    if high < 0:
        return f"{opening}; knowing the class frequencies alone would do better still", False
    return f"{opening}; none is known to beat the class frequencies alone", False


def _lead(contents: Contents) -> str:
    """Whether the best model's lead is beyond chance, after the correction for so many pairs."""
    best, *others = contents.comparison.models[contents.primary]
    gaps = {m.name: contents.comparison.difference(m.name, best.name, contents.primary) for m in others}
    tied = [n for n, gap in gaps.items() if not gap.p_adjusted <= 1 - contents.confidence]
    if tied:
        shown = tied if len(tied) <= 3 else [*tied[:2], f"{len(tied) - 2} others"]
        return f", but {join(shown)} cannot be told apart from it"
    runner = gaps[others[0].name]
    if len(others) > 1:
        return f", and its lead over all others is real (over {runner.a} {number(runner.difference)})"
    interval = f"{100 * contents.confidence:g}% interval {span(runner.interval)}"
    return f", and its lead over {runner.a} is real ({number(runner.difference)}, {interval})"


def _calibration(contents: Contents, found: Findings, good: bool) -> str:
    """The second half of the verdict: whether the probabilities mean what they say."""
    seen, share = miscalibrated(found, contents.confidence), excess_share(found)
    if seen is None:
        return "; calibration was not tested"
    if not seen:
        return f", {'and' if good else 'though'} no miscalibration beyond chance is seen"
    gain = f"recalibrating would take about {percent(share)} off the loss"
    if share < _SLIGHT:
        return f", {'and' if good else 'though'} its probabilities are nearly calibrated: {gain}"
    return f", {'but' if good else 'and'} its probabilities are {_direction(contents, found)}: {gain}"


def miscalibrated(found: Findings, confidence: float) -> bool | None:
    """Whether miscalibration is beyond chance: by the test, or with groups by the interval; None untested."""
    whole = found.decomposition.whole
    if whole.p_value is not None:
        return whole.p_value <= 1 - confidence
    if whole.intervals is not None:
        return whole.intervals["miscalibration"][0] > 0
    return None


def excess_share(found: Findings) -> float:
    """What part of the loss recalibration would save, beyond what chance makes it seem to save."""
    whole = found.decomposition.whole
    excess = whole.miscalibration - (whole.expected_miscalibration or 0.0)
    return max(0.0, excess / whole.score) if whole.score > 0 else 0.0


def _direction(contents: Contents, found: Findings) -> str:
    over = contents.comparison.traits[found.name].overconfidence
    if over > 0.01:
        return "too sure of themselves"
    if over < -0.01:
        return "too timid"
    return "not calibrated"
