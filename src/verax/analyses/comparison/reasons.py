"""Why rules disagree about which of two models is better, in words."""

from __future__ import annotations

from typing import Any

from verax.analyses.comparison.claims import (
    ACCURACY,
    ERROR_DISTANCE,
    OVERCONFIDENCE,
    RULED_OUT,
    SHARPNESS,
    Claims,
)
from verax.analyses.comparison.records import Difference
from verax.analyses.comparison.traits import RULED_OUT_BELOW, Traits


def disagreements(
    differences: dict[str, list[Difference]],
    traits: dict[str, Traits],
    claims: Claims | None,
    level: float,
) -> list[tuple[tuple[str, str], float, str]]:
    """Pairs of models with known traits that the rules order differently: the p-value and a sentence.

    The p-value is the largest of the rules that prefer one of them. A rule that prefers the model that is
    right less often counts as well. One rule cannot disagree.
    """
    if len(differences) < 2:
        return []
    by_pair: dict[tuple[str, str], dict[str, Any]] = {}
    for rule, found in differences.items():
        for d in found:
            by_pair.setdefault((d.a, d.b), {})[rule] = d
    found_pairs = []
    for (a, b), rules in by_pair.items():
        if a not in traits or b not in traits:
            continue
        for_a = [r for r, d in rules.items() if d.p_adjusted <= level and d.difference < 0]
        for_b = [r for r, d in rules.items() if d.p_adjusted <= level and d.difference > 0]
        undecided = [r for r in rules if r not in for_a and r not in for_b]
        more_right = claims is not None and claims.hold(ACCURACY, a, b)
        accurate = a if traits[a].accuracy > traits[b].accuracy else b
        against = (for_b if accurate == a else for_a) if more_right else []
        if (for_a and for_b) or against:
            p = max(rules[rule].p_adjusted for rule in (*for_a, *for_b))
            found_pairs.append(((a, b), p, _sentence(a, b, for_a, for_b, undecided, traits, claims)))
    return found_pairs


def _sentence(
    a: str,
    b: str,
    for_a: list[str],
    for_b: list[str],
    undecided: list[str],
    traits: dict[str, Traits],
    claims: Claims | None,
) -> str:
    verdicts = [f"{', '.join(rules)} for {name}" for name, rules in ((a, for_a), (b, for_b)) if rules]
    verdicts += [f"{', '.join(undecided)} undecided"] if undecided else []
    reasons = [] if claims is None else _reasons(a, b, traits[a], traits[b], claims)
    return " ".join([f"{a} or {b}? {'; '.join(verdicts)}.", *reasons])


def _reasons(a: str, b: str, x: Traits, y: Traits, claims: Claims) -> list[str]:
    """What sets the models apart: differences that are large enough to matter and beyond chance."""
    reasons = []
    if abs(x.accuracy - y.accuracy) >= 0.0005 and claims.hold(ACCURACY, a, b):
        first, second = (a, b) if x.accuracy > y.accuracy else (b, a)
        high, low = max(x.accuracy, y.accuracy), min(x.accuracy, y.accuracy)
        reasons.append(f"{first} is right more often than {second} ({high:.3f} against {low:.3f}).")
    worse, trait = (a, x) if abs(x.overconfidence) > abs(y.overconfidence) else (b, y)
    apart = abs(abs(x.overconfidence) - abs(y.overconfidence)) >= 0.005
    if apart and claims.hold(OVERCONFIDENCE, worse) and claims.hold(OVERCONFIDENCE, a, b):
        kind = "overconfident" if trait.overconfidence > 0 else "underconfident"
        reasons.append(
            f"{worse} is {kind}: mean confidence {trait.confidence:.3f}, accuracy {trait.accuracy:.3f}."
        )
    most, least = max(x.ruled_out, y.ruled_out), min(x.ruled_out, y.ruled_out)
    if most > 1.2 * least + 0.0005 and claims.hold(RULED_OUT, a, b):
        worse = a if x.ruled_out > y.ruled_out else b
        share = f"{100 * most:.2g}% of its rows, {100 * least:.2g}% of the other's"
        unlikely = f"a probability below {RULED_OUT_BELOW:g}"
        reasons.append(f"{worse} gave the outcome {unlikely} in {share}: log scores weigh this most.")
    far, near = x.error_distance, y.error_distance
    if far is not None and near is not None and claims.hold(ERROR_DISTANCE, a, b) and abs(far - near) >= 0.01:
        worse = a if far > near else b
        off = f"{max(far, near):.2f} classes off on average, those of the other {min(far, near):.2f}"
        reasons.append(f"The mistakes of {worse} are {off}: ranked scores weigh this.")
    if abs(x.sharpness - y.sharpness) >= 0.01 and claims.hold(SHARPNESS, a, b):
        sharper = a if x.sharpness > y.sharpness else b
        reasons.append(f"{sharper} is the sharper of the two.")
    return reasons or ["Accuracy, confidence and sharpness do not explain it."]
