"""Rates of one side of the decisions: none leads without its partner.

A model that flags more rows finds more events and raises more false alarms. So a lead by one of these rates
is told with the other, and is a trade where the model is behind by it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from verax.inference.findings import Claim, Finding, NextStep, in_brackets, listed
from verax.inference.intervals import Interval
from verax.scores.naming import METRICS_ELSEWHERE


@dataclass(frozen=True)
class Side:
    """A rate of one side of the decisions.

    Attributes
    ----------
    partners : tuple of str
        The rates that tell what it costs, the first if it is known.
    ahead : str
        What a model does that has more of it.
    behind : str
        What a model does that has less of it.
    """

    partners: tuple[str, ...]
    ahead: str
    behind: str


SIDES: dict[str, Side] = {
    "sensitivity": Side(("specificity", "ppv"), "finds more", "misses more"),
    "specificity": Side(("sensitivity", "npv"), "raises fewer false alarms", "raises more false alarms"),
    "ppv": Side(("sensitivity", "npv"), "is right more often when it flags", "flags wrongly more often"),
    "npv": Side(
        ("specificity", "ppv"), "is right more often when it is silent", "is silent wrongly more often"
    ),
}

_WEIGH = NextStep("weigh misses against false alarms", "vx.net_benefit(y, p)", "verax decide {source}")

# The value of a model by a rate, and the first model's minus the second's.
ValueOf = Callable[[str, str], float]
GapOf = Callable[[str, str, str], Any]


def rate_of(name: str) -> str:
    """The name of a rate, also of one that other packages call otherwise; the name itself for other scores.

    >>> rate_of("recall"), rate_of("val_precision"), rate_of("brier")
    ('sensitivity', 'ppv', 'brier')
    """
    word = name.lower().replace(" ", "_").replace("-", "_")
    for known in (word, word.rpartition("_")[2]):
        if (rate := METRICS_ELSEWHERE.get(known, known)) in SIDES:
            return rate
    return name


def partner_of(score: str, among: Collection[str]) -> str | None:
    """What a rate of one side is shown with, of some scores; None for other scores, or if none is there.

    >>> partner_of("sensitivity", ["ppv", "specificity"]), partner_of("recall", ["recall", "precision"])
    ('specificity', 'precision')
    >>> partner_of("recall", ["recall"]), partner_of("accuracy", ["ppv"])
    (None, None)
    """
    side = SIDES.get(rate_of(score))
    by_rate = {rate_of(name): name for name in among}
    return next((by_rate[name] for name in side.partners if name in by_rate), None) if side else None


def with_partners(
    findings: Sequence[Finding],
    score: str,
    among: Collection[str],
    value: ValueOf,
    gap: GapOf,
    models: Sequence[str],
) -> list[Finding]:
    """Findings about one score; those of a rate of one side with its partner, as a trade where it is behind.

    Parameters
    ----------
    findings : sequence of Finding
        What is told of the score.
    score : str
        Its name.
    among : collection of str
        The scores that are known.
    value : callable
        The value of a model by a score.
    gap : callable
        The difference of two models by a score.
    models : sequence of str
        The names of the models.

    Returns
    -------
    list of Finding
        The findings.
    """
    if rate_of(score) not in SIDES:
        return list(findings)
    partner = partner_of(score, among)
    told = {Claim.BEST, Claim.LEAD_OPEN, Claim.SCORE}
    if partner is None:
        return [_alone(finding, score) if finding.claim in told else finding for finding in findings]
    return [
        _weighed(finding, (score, partner), value, gap, models) if finding.claim in told else finding
        for finding in findings
    ]


def _alone(finding: Finding, score: str) -> Finding:
    """A finding by a rate of one side, whose partner is unknown: it is no lead."""
    partner = SIDES[rate_of(score)].partners[0]
    higher = finding.text.replace("is significantly better than", f"has a significantly higher {score} than")
    text = (
        f"{higher} Compare {partner} as well: {score} alone is no lead, because flagging more or fewer "
        "rows changes it."
    )
    claim = Claim.LEAD_OPEN if finding.claim is Claim.BEST else finding.claim
    return replace(finding, claim=claim, text=text)


def _weighed(
    finding: Finding, rates: tuple[str, str], value: ValueOf, gap: GapOf, models: Sequence[str]
) -> Finding:
    """A finding by a rate of one side, with the values of its partner."""
    score, partner = rates
    best = finding.about[0]
    others = [name for name in models if name != best]
    shown = f"{partner} {value(best, partner):.4g}"
    if finding.claim is not Claim.BEST or not others:
        # An open lead names two models, or the first of all.
        known = [best, *(others if len(others) == 1 else ())]
        values = [f"{value(name, partner):.4g}" for name in known]
        return replace(finding, text=_with(finding.text, f"{partner} {' and '.join(values)}"))
    gaps = {name: gap(best, name, partner) for name in others}
    behind = {name: one for name, one in gaps.items() if one.difference < 0}
    numbers: Mapping[str, Any] = {
        **finding.numbers,
        "partner": value(best, partner),
        **{f"partner_difference_from_{name}": (one.difference, one.interval) for name, one in gaps.items()},
    }
    if not behind:
        against = listed([f"{value(name, partner):.4g}" for name in others])
        return replace(finding, text=_with(finding.text, f"{shown} against {against}"), numbers=numbers)
    sides = SIDES[rate_of(score)], SIDES[rate_of(partner)]
    lost = [name for name, one in behind.items() if one.p_adjusted <= finding.level]
    if lost:
        lead = _against(best, others, score, value, gap)
        price = _against(best, lost, partner, value, gap)
        text = f"{best} {sides[0].ahead} ({lead}) and {sides[1].behind} ({price}): a trade, not a lead."
        p = max([finding.p_value, *(gaps[name].p_adjusted for name in lost)])
        return replace(
            finding,
            claim=Claim.TRADE,
            text=text,
            about=(best, *lost),
            numbers=numbers,
            p_value=p,
            step=NextStep(
                "weigh misses against false alarms", "vx.net_benefit(y, p)", "verax decide {source}"
            ),
        )
    lead = _against(best, others, score, value, gap)
    price = _against(best, list(behind), partner, value, gap)
    text = f"{best} {sides[0].ahead} ({lead}); it is open whether it {sides[1].behind} ({price})."
    return replace(finding, claim=Claim.LEAD_OPEN, text=text, about=(best, *behind), numbers=numbers)


def _with(text: str, partner: str) -> str:
    """A sentence with the partner's values at its end."""
    return f"{text.removesuffix('.')}, with {partner}."


def _against(best: str, others: Sequence[str], score: str, value: ValueOf, gap: GapOf) -> str:
    """Both values of a rate, with the difference of two models."""
    text = f"{score} {value(best, score):.4g} against "
    if len(others) > 1:
        return text + listed([f"{value(name, score):.4g} of {name}" for name in others])
    one = gap(best, others[0], score)
    interval: Interval = one.interval
    difference = f"{one.difference:z.3g}".replace("-", "−")
    ends = in_brackets(interval).strip(" ()")
    return ", ".join(filter(None, (f"{text}{value(others[0], score):.4g}; difference {difference}", ends)))
