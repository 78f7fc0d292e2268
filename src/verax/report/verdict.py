"""The verdict: which model is best, whether the difference is real, and whether it is calibrated."""

from __future__ import annotations

import math

from verax.complaints import join
from verax.report.contents import Contents, Findings
from verax.report.words import number, percent, span, title_of

# Below this share of the loss, miscalibration is there but hardly matters.
_SLIGHT = 0.02


def verdict_of(contents: Contents) -> str:
    """One sentence: how good, whether better than the others and than class frequencies, and calibrated."""
    opening = _alone(contents) if len(contents.findings) == 1 else _among(contents)
    return f"{opening}{_calibration(contents, contents.best)}."


def _subject(contents: Contents, name: str) -> str:
    return "The model" if len(contents.findings) == 1 and name == "model" else name


def _score(contents: Contents, found: Findings) -> tuple[str, float]:
    name = title_of(contents.primary)
    return name[0].lower() + name[1:] if name[1:2].islower() else name, found.card[contents.primary]


def _alone(contents: Contents) -> str:
    found = contents.best
    name, value = _score(contents, found)
    skill, (low, high) = contents.skill(found.name, contents.primary)
    who = _subject(contents, found.name)
    if not math.isfinite(value):
        return f"{who} gave probability zero to something that happened, so its {name} is infinite"
    if math.isnan(low):
        return f"{who} has a {name} of {number(value)}"
    spread = f"{round(100 * contents.confidence):d}% interval {percent(low)} to {percent(high)}"
    if low > 0:
        much = "far better" if skill >= 0.5 else "better" if skill >= 0.1 else "a little better"
        return (
            f"{who} is {much} than knowing the class frequencies alone: its {name} of {number(value)} is "
            f"{percent(skill)} lower ({spread})"
        )
    if high < 0:
        return (
            f"{who} is worse than knowing the class frequencies alone: its {name} of {number(value)} is "
            f"{percent(-skill)} higher than theirs"
        )
    return (
        f"{who} cannot be told apart from knowing the class frequencies alone: its {name} of {number(value)} "
        f"is {percent(abs(skill))} {'lower' if skill >= 0 else 'higher'}, which may be chance ({spread})"
    )


def _among(contents: Contents) -> str:
    ranking = contents.comparison.models[contents.primary]
    best, runner = ranking[0], ranking[1]
    name, _ = _score(contents, contents.best)
    if not math.isfinite(best.mean):
        return f"All models gave probability zero to something that happened, so every {name} is infinite"
    opening = f"{best.name} has the lowest {name} ({number(best.mean)})"
    level = 1 - contents.confidence
    against = {
        m.name: contents.comparison.difference(m.name, best.name, contents.primary) for m in ranking[1:]
    }
    tied = [other for other, d in against.items() if math.isnan(d.p_adjusted) or d.p_adjusted > level]
    gap = against[runner.name]
    if tied:
        shown = tied if len(tied) <= 3 else [*tied[:2], f"{len(tied) - 2} others"]
        opening += f", but {join(shown)} cannot be told apart from it"
    elif len(ranking) == 2:
        opening += (
            f", and its lead over {runner.name} is real ({number(gap.difference)}, "
            f"{round(100 * contents.confidence):d}% interval {span(gap.interval)})"
        )
    else:
        opening += f", and its lead over all others is real (over {runner.name} {number(gap.difference)})"
    low, high = best.skill_interval
    if math.isnan(low):
        return opening
    if low > 0:
        return f"{opening}; that is {percent(best.skill)} below class frequencies"
    if high < 0:
        return f"{opening}; but knowing the class frequencies alone would do better"
    return f"{opening}; but none is known to beat the class frequencies alone"


def _calibration(contents: Contents, found: Findings) -> str:
    """The second half of the verdict: whether the probabilities mean what they say."""
    whole = found.decomposition.whole
    share = excess_share(found)
    seen = miscalibrated(found, contents.confidence)
    if seen is None:
        return "; calibration was not tested"
    if not seen:
        return ", and no miscalibration beyond chance is seen"
    if share < _SLIGHT:
        return f", and its probabilities are nearly calibrated: recalibrating would take {percent(share)} off the loss"
    if not math.isfinite(whole.score):
        return ", and its probabilities are not calibrated"
    return f", but its probabilities are {_direction(contents, found)}: recalibrating would take about {percent(share)} off"


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
