"""The verdict: which model is best, whether the difference is real, and whether it is calibrated."""

from __future__ import annotations

import math
from dataclasses import replace

from verax.analyses.calibration.components import Components
from verax.analyses.calibration.overconfidence import Overconfidence
from verax.analyses.recalibration.records import TITLES
from verax.errors import join
from verax.report.contents import Contents, Findings
from verax.report.words import number, percent, span, title_of, within

# Below this share of the loss, miscalibration is there but hardly matters.
_SLIGHT = 0.02
# Below this, so does the gap between what the most likely class claims and how often it is right.
_NARROW = 0.01


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
    """The second half of the verdict: whether the probabilities mean what they say, and what would help."""
    parts, top = miscalibrated(found, contents.confidence)
    agrees, differs = ("and", "but") if good else ("though", "and")
    share, remedy = gained(found), remedy_words(found)
    leans = lean_words(contents, found)
    if parts and not share < _SLIGHT:
        why = "; ".join(text for text in (remedy, leans) if text)
        return f", {differs} its probabilities are {_direction(found, top)}{f': {why}' if why else ''}"
    helps = f"; {remedy}" if found.remedy.helps else ""
    if top:
        claim = f"{claims_of(found)} of its most likely class: {_claimed_and_right(found)}"
        slight = abs(found.sureness.gap) < _NARROW
        much = f", {agrees} it is only a little {claim}" if slight else f", {differs} it is {claim}"
        return f"{much}{helps}"
    if parts:
        return f", {agrees} its probabilities are nearly calibrated: {remedy}"
    if parts is None:
        return "; calibration was not tested" + (" beyond its most likely class" if top is not None else "")
    return f", {agrees} no miscalibration beyond chance is seen{helps}"


def gained(found: Findings) -> float:
    """The share of the loss that recalibration takes off held-out rows; NaN where that is not known."""
    remedy = found.remedy
    if remedy.recalibration is None or remedy.undecided is not None:
        return math.nan
    return remedy.share if remedy.helps else 0.0


def remedy_words(found: Findings) -> str:
    """What recalibration gains on held-out rows, with its interval; empty where nothing was tried."""
    better = found.remedy.recalibration
    if better is None:
        return ""
    if found.remedy.undecided is not None:
        tried, rows = found.remedy.undecided
        return f"whether recalibration helps is undecided on {tried:,} of {rows:,} rows"
    if not found.remedy.helps:
        return "no recalibration method helps significantly"
    ends = better.gain.share_interval
    level = f"{100 * ends.confidence:g}% interval"
    spread = f" ({level} {percent(ends.low)} to {percent(ends.high)})" if ends.defined else ""
    return f"{TITLES[better.method]} lowers the held-out loss by {percent(found.remedy.share)}{spread}"


def lean_words(contents: Contents, found: Findings, most: int = 2) -> str:
    """Which events are forecast too high or too low beyond chance; the largest gaps, or nothing."""
    off = [each for each in found.remedy.leanings if each.p_adjusted <= 1 - contents.confidence]
    off = [each for each in off if abs(each.gap) >= _NARROW]
    texts = []
    for each in sorted(off, key=lambda each: -abs(each.gap))[:most]:
        name = contents.problem.names[each.position]
        name = f"at most {name}" if contents.problem.ordered else name
        side = "too high" if each.gap > 0 else "too low"
        texts.append(
            f"{name} is {side} ({percent(each.claimed)} forecast, {percent(each.happened)} happened)"
        )
    return join(texts) if texts else ""


def miscalibrated(found: Findings, confidence: float) -> tuple[bool | None, bool | None]:
    """Whether classes or thresholds, and the most likely class, are off beyond chance; None untested.

    With Holm's correction: whichever test passes its part of the level leaves the whole to the other.
    """
    level = 1 - confidence
    whole, sure = found.decomposition.whole, found.sureness
    if whole.p_value is None and whole.intervals is None:
        return None, _claims_too_much_or_little(sure, level)
    if sure.p_value is None:
        return _parts_are_off(whole, level), None
    first, second = _shares(whole, level)
    parts, top = _parts_are_off(whole, first), _claims_too_much_or_little(sure, second)
    return (
        parts or bool(top and _parts_are_off(whole, level)),
        top or (parts and _claims_too_much_or_little(sure, level)),
    )


def _shares(whole: Components, level: float) -> tuple[float, float]:
    """Half of the level each; but no less to a test by draws than the smallest p-value of so few."""
    if whole.p_value is None:
        return level / 2, level / 2
    smallest = 1 / (1 + len(whole.calibrated))
    first = 0.0 if smallest > level else max(level / 2, smallest)
    return first, level - first


def _parts_are_off(whole: Components, level: float) -> bool:
    """By the test; where there is none, by the interval."""
    if whole.p_value is not None:
        return whole.p_value <= level
    intervals = replace(whole, confidence=1 - level).intervals
    return intervals is not None and intervals["miscalibration"][0] > 0


def _claims_too_much_or_little(sure: Overconfidence, level: float) -> bool | None:
    return None if sure.p_value is None else sure.p_value <= level


def claims_of(found: Findings) -> str:
    """Too sure, or not sure enough."""
    return "too sure" if found.sureness.gap > 0 else "not sure enough"


def _claimed_and_right(found: Findings) -> str:
    """Both shares, with as many digits as it takes to tell them apart."""
    claimed, right = found.sureness.claimed, found.sureness.right
    digits = next((d for d in range(4) if percent(claimed, d) != percent(right, d)), 4)
    return f"{percent(claimed, digits)} claimed, {percent(right, digits)} right"


def _direction(found: Findings, top: bool | None) -> str:
    if not top or abs(found.sureness.gap) < _NARROW:
        return "not calibrated"
    return "too sure of themselves" if found.sureness.gap > 0 else "too timid"
