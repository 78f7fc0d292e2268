"""The verdict on top lists: how good, whether the lead is real, and whether the confidences are right."""

from __future__ import annotations

import math

from verax.analyses.calibration.places import Claim
from verax.report.lists.contents import ListContents, ListFindings
from verax.report.words import number, percent, probability, title_of, within

# Below this, the gap between what is claimed and what happens hardly matters.
_NARROW = 0.01


def verdict_of(contents: ListContents) -> str:
    """One sentence: how good, whether better than the others and than saying nothing, and calibrated."""
    opening = _alone(contents) if len(contents.findings) == 1 else _among(contents)
    return f"{opening}; {_calibration(contents, contents.best)}."


def _alone(contents: ListContents) -> str:
    found = contents.best
    name, value = within(title_of(contents.primary)), found.score(contents.primary).mean
    skill, (low, high) = contents.skill(found.name, contents.primary)
    who = "The model" if found.name == "model" else found.name
    if not math.isfinite(value):
        return f"{who} ruled out something that happened, so its {name} is infinite"
    if math.isnan(low):
        return f"{who} has a {name} of {number(value)}"
    spread = f"{100 * contents.confidence:g}% interval {percent(low)} to {percent(min(high, 1.0))}"
    if low > 0:
        much = "far better" if skill >= 0.5 else "better" if skill >= 0.1 else "a little better"
        return (
            f"{who} is {much} than saying nothing: its {name} of {number(value)} is {percent(skill)} lower "
            f"({spread})"
        )
    if high < 0:
        return (
            f"{who} is worse than saying nothing: its {name} of {number(value)} is {percent(-skill)} higher"
        )
    return f"{who} cannot be told apart from saying nothing: its {name} is {number(value)} (skill, {spread})"


def _among(contents: ListContents) -> str:
    best, *others = contents.comparison.models[contents.primary]
    name = within(title_of(contents.primary))
    if not math.isfinite(best.mean):
        return f"All models ruled out something that happened; every {name} is infinite"
    gaps = {m.name: contents.comparison.difference(m.name, best.name, contents.primary) for m in others}
    tied = [n for n, gap in gaps.items() if not gap.p_adjusted <= 1 - contents.confidence]
    lead = "its lead is beyond chance" if not tied else f"{', '.join(tied)} cannot be told apart from it"
    return f"{best.name} has the lowest {name} ({number(best.mean)}), and {lead}"


def _calibration(contents: ListContents, found: ListFindings) -> str:
    whole = claim_words(found.whole, contents.confidence)
    words = (
        f"its lists hold the outcome in {percent(found.whole.happened, 1)} of the rows and claim "
        f"{percent(found.whole.claimed, 1)}, {whole}"
    )
    first = found.first
    if first is None:
        return words
    said = claim_words(first, contents.confidence)
    return (
        f"{words}; the class listed first has {percent(first.claimed, 1)} on average and happens "
        f"{percent(first.happened, 1)} of the time, {said}"
    )


def claim_words(claim: Claim, confidence: float) -> str:
    """Whether what was claimed differs from what happened beyond chance, in words."""
    if claim.p_adjusted is None:
        return "which was not tested"
    if not claim.p_adjusted <= 1 - confidence:
        return "which may be chance"
    much = "slightly " if abs(claim.gap) < _NARROW else ""
    p = probability(claim.p_adjusted)
    shown = f"p {p}" if p.startswith("<") else f"p = {p}"
    return f"{much}too {'sure' if claim.gap > 0 else 'cautious'} beyond chance ({shown})"
