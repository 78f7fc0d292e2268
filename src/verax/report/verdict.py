"""The verdict: which model to keep, by how much, how sure that is, and whether it is calibrated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from verax.analyses.calibration.components import Components
from verax.analyses.calibration.list_results import ListClaim
from verax.analyses.calibration.slope_result import CalibrationLine
from verax.analyses.recalibration.records import METHOD_TITLES
from verax.analyses.words import clean, number, percent, percent_span, probability, span
from verax.errors import join
from verax.inputs.groups import each_count, in_words
from verax.report.contents import Contents, Distributions, Findings, ListFindings
from verax.report.opening import level, opening_of

# Below this share of the loss, a recalibration gain hardly matters.
_SLIGHT = 0.02
# Below this, so does the gap between what the most likely class claims and how often it is right.
_NARROW = 0.01
# What a test of calibration should be able to see: a gap of claims, a slope this far from 1, and this share
# of the score as miscalibration, each with a power of about 80 %.
_GAP, _SLOPE, _SHARE = 0.05, 0.25, 0.05
_POWER = 2.8


def verdict_of(contents: Contents) -> str:
    """What to keep, by how much it is better and how sure that is; then calibration and what would help."""
    opening, good = opening_of(
        contents.comparison,
        contents.problem.rules,
        lists=contents.problem.lists,
        confidence=contents.confidence,
        n_classes=contents.problem.n_classes,
    )
    return f"{opening} {_calibration(contents, contents.best, good)}"


# ---- calibration -------------------------------------------------------------------------------


def _calibration(contents: Contents, found: Findings, good: bool) -> str:
    """Whether the probabilities mean what they say, and what would help."""
    if found.places is not None:
        remedy = remedy_words(found)
        said = f" {remedy[:1].upper()}{remedy[1:]}." if remedy else ""
        return f"{_claims(contents, found.places)}{said}"
    assert found.dense is not None
    whose = "It is" if len(contents.findings) == 1 or good else f"{found.name} is"
    off = miscalibrated(found, contents.confidence)
    remedy, helps = remedy_words(found), found.dense.remedy.helps
    if not any(off.values()):
        if not off:
            return "Calibration was not tested."
        seen = "No miscalibration is seen" if _could_see(found, off) else _too_few(contents)
        return f"{seen}; {remedy}." if helps else f"{seen}."
    what = _what_is_off(contents, found, off)
    turn = ", and " if helps else ", but "
    return f"{whose} {what}{turn}{remedy}." if remedy else f"{whose} {what}."


def _too_few(contents: Contents) -> str:
    n, count = contents.problem.n_rows, contents.best.card.n_groups
    groups = "" if count is None else f" in {in_words(count)}"
    return f"Too few rows to tell whether it is calibrated ({n:,}{groups})"


def _what_is_off(contents: Contents, found: Findings, off: Mapping[str, bool]) -> str:
    """In which way probabilities are off: of the most likely class, too extreme, or of some classes."""
    assert found.dense is not None
    sure = found.dense.overconfidence
    leans = lean_words(contents, found)
    # The curve of two classes is that of one of them: what it shows on average comes first.
    if off.get("top") and abs(sure.gap) >= _NARROW and not (leans and contents.problem.n_classes == 2):
        return f"{side_of(sure.gap)} ({claimed_and_right(found.dense)})"
    line = found.dense.slope
    if off.get("slope") and line is not None and not (leans and _includes_one(line)):
        told = f"miscalibrated: {_slope_words(contents, found.dense)}"
        return f"{told}; {leans}" if leans else told
    if leans:
        return f"miscalibrated: {leans}"
    slight = off.get("top") and not off.get("parts") and not off.get("slope")
    return f"{'slightly ' if slight else ''}{side_of(sure.gap) if slight else 'miscalibrated'}"


def _slope_words(contents: Contents, dense: Distributions) -> str:
    """What is off about the event whose line is the least likely of calibrated forecasts, which is named."""
    line, slopes = dense.slope, dense.slopes
    assert line is not None
    assert slopes is not None
    whose = (
        "its probabilities" if len(slopes) == 1 else f"probabilities of {clean(slopes.prefix + line.name)}"
    )
    of = "" if len(slopes) == 1 else f", the least likely of {len(slopes):,}"
    ends = f"{level(contents.confidence)} {span(line.slope_interval, 2)}"
    told = f"calibration slope {number(line.slope, 2)}, {ends}{of}"
    if _includes_one(line):
        return f"{whose} are off on average ({told})"
    return f"{whose} are {'too extreme' if line.slope < 1 else 'not extreme enough'} ({told})"


def _includes_one(line: CalibrationLine) -> bool:
    """Whether the slope may be 1, so that the line is off on average and not by its slope."""
    ends = line.slope_interval
    return ends.defined and ends.low <= 1 <= ends.high


def remedy_words(found: Findings) -> str:
    """The gain of recalibration on held-out rows, with its interval; empty where nothing was tried."""
    remedy = found.own.remedy
    better = remedy.recalibration
    if better is None:
        return ""
    if remedy.undecided is not None:
        tried, rows = remedy.undecided
        return f"it is unclear whether recalibration helps, from {tried:,} of {rows:,} rows"
    if not remedy.helps:
        return f"no recalibration method helps significantly with {better.n_rows:,} rows"
    ends = better.gain.share_interval
    title, share = METHOD_TITLES[better.method], percent(remedy.share)
    if not ends.defined:
        return f"{title} may lower the loss (by {share} in nested cross-validation)"
    spread = f"{100 * ends.confidence:g}% CI {percent_span(ends.low, ends.high)}"
    if ends.low > 0:
        lowers = "barely lowers the loss:" if remedy.share < _SLIGHT else "lowers the loss"
        return f"{title} {lowers} by {share} ({spread}, cross-validated)"
    return f"{title} may lower the loss (by {share}, {spread}, cross-validated)"


def lean_words(contents: Contents, found: Findings, most: int = 2) -> str:
    """Which events are forecast significantly too high or too low; the largest gaps, or nothing."""
    assert found.dense is not None
    off = [each for each in found.dense.remedy.class_biases if each.p_adjusted <= 1 - contents.confidence]
    off = [each for each in off if abs(each.gap) >= _NARROW]
    texts = []
    for each in sorted(off, key=lambda each: -abs(each.gap))[:most]:
        name = contents.problem.names[each.position]
        name = f"at most {name}" if contents.problem.ordered else name
        side = "too high" if each.gap > 0 else "too low"
        texts.append(f"{name} is {side} ({two_shares(each.claimed, 'forecast', each.happened, 'observed')})")
    return join(texts) if texts else ""


def miscalibrated(found: Findings, confidence: float) -> dict[str, bool]:
    """Which tests see miscalibration, of those that were made: of all events ("parts"), of the most likely
    class ("top"), and of calibration slopes ("slope").

    With Holm's correction. A test by draws gets no less of the level than the smallest p-value of its draws,
    and none where that is beyond the level.
    """
    assert found.dense is not None
    level, whole, dense = 1 - confidence, found.decomposition.whole, found.dense
    known: dict[str, float | None] = {
        "parts": whole.p_value,
        "top": dense.overconfidence.p_value,
        "slope": None if dense.slopes is None else dense.slope_p,
    }
    p = {name: value for name, value in known.items() if value is not None and not math.isnan(value)}
    weights = dict.fromkeys(p, level / max(1, len(p)))
    if "parts" in p:
        smallest = 1 / (1 + len(whole.calibrated))
        weights["parts"] = 0.0 if smallest > level else max(weights["parts"], smallest)
        others = [name for name in p if name != "parts"]
        weights |= dict.fromkeys(others, (level - weights["parts"]) / max(1, len(others)))
    result, left = dict.fromkeys(p, False), dict(p)
    while left:
        total = sum(weights[name] for name in left)
        shares = {name: level * weights[name] / total if total else 0.0 for name in left}
        passed = [name for name in left if left[name] <= shares[name]]
        if not passed:
            break
        for name in passed:
            result[name] = True
            del left[name]
    if "parts" not in p and whole.intervals is not None:
        intervals = replace(whole, confidence=1 - level / (1 + len(p))).intervals
        result["parts"] = intervals is not None and intervals["miscalibration"][0] > 0
    return result


def _could_see(found: Findings, tested: Mapping[str, bool]) -> bool:
    """Whether a test of calibration could have seen a relevant size."""
    assert found.dense is not None
    dense, whole = found.dense, found.decomposition.whole
    claimed = dense.overconfidence.claimed
    n = found.card.n_rows if found.card.n_groups is None else min(each_count(found.card.n_groups))
    error = math.sqrt(max(claimed * (1 - claimed), 1e-12) / max(n, 1))
    able = ["top" in tested and _POWER * error <= _GAP]
    if "slope" in tested and dense.slopes is not None:
        ends = [line.slope_interval for line in dense.slopes if line.slope_interval.defined]
        able += [_POWER / 1.96 * (end.high - end.low) / 2 <= _SLOPE for end in ends]
    able.append("parts" in tested and _spread(whole) <= _SHARE)
    return any(able)


def _spread(whole: Components) -> float:
    """How much more miscalibration than by chance a test would see, as a share of the score."""
    drawn = whole.calibrated
    if len(drawn) < 20 or not math.isfinite(whole.score) or whole.score <= 0:
        return math.inf
    return float(_POWER * np.std(drawn) / whole.score)


def side_of(gap: float) -> str:
    """Overconfident, or underconfident."""
    return "overconfident" if gap > 0 else "underconfident"


def claimed_and_right(dense: Distributions) -> str:
    """What the most likely class claims and how often it is right."""
    return two_shares(dense.overconfidence.claimed, "claimed", dense.overconfidence.right, "correct")


def two_shares(a: float, first: str, b: float, second: str) -> str:
    """Two shares with as many digits as it takes to tell them apart.

    >>> two_shares(0.1604, "claimed", 0.1623, "correct")
    '16.0% claimed, 16.2% correct'
    """
    digits = next((d for d in range(4) if percent(a, d) != percent(b, d)), 4)
    return f"{percent(a, digits)} {first}, {percent(b, digits)} {second}"


# ---- lists -------------------------------------------------------------------------------------


def _claims(contents: Contents, found: ListFindings) -> str:
    whole = claim_words(found.whole, contents.confidence)
    words = (
        f"Its lists hold the outcome in {percent(found.whole.happened, 1)} of the rows and claim "
        f"{percent(found.whole.claimed, 1)}, {whole}."
    )
    if found.first is None:
        return words
    told = claim_words(found.first, contents.confidence)
    shares = two_shares(found.first.claimed, "claimed", found.first.happened, "correct")
    return f"{words} The class listed first: {shares}, {told}."


def claim_words(claim: ListClaim, confidence: float) -> str:
    """Whether a claim differs significantly from what happened, in words."""
    if claim.p_adjusted is None:
        return "which was not tested"
    if not claim.p_adjusted <= 1 - confidence:
        return "which may be chance"
    p = probability(claim.p_adjusted)
    shown = f"p {p}" if p.startswith("<") else f"p = {p}"
    much = "slightly " if abs(claim.gap) < _NARROW else ""
    return f"{much}{side_of(claim.gap)} ({shown})"
