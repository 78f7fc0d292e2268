"""What is said of subgroups: what they show together, and which of them stand out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from verax.analyses.subgroups.line import Subgroup
from verax.analyses.subgroups.together import Pooled
from verax.analyses.words import clean, count, number, probability
from verax.inference.findings import Claim, Finding, NextStep, listed

# How many subgroups are named.
NAMED = 12
# What a column of labels without a name is called.
UNNAMED = "subgroup"


def called(column: str, label: object) -> str:
    """The name of a subgroup in sentences: its label, after the name of the column if that has one."""
    return clean(label, 40) if column == UNNAMED else f"{clean(column, 40)} = {clean(label, 40)}"


def subgroup_findings(
    lines: Mapping[str, Subgroup], pooled: Mapping[str, Pooled], level: float, whose: str
) -> list[Finding]:
    """What there is to say of a model's subgroups, by what they are called.

    `pooled` is what the subgroups of each column show together, by the column.
    """
    tested = {name: line for name, line in lines.items() if line.p_adjusted is not None}
    untested = untested_sentence(lines)
    open_ = [Finding(Claim.UNTESTED, untested, level=level)] if untested else []
    if not tested:
        return open_
    together = [
        finding for column, each in pooled.items() for finding in _together(column, each, level, whose)
    ]
    out = [name for name, line in tested.items() if line.stands_out]
    if out:
        alone = _standing_out(tested, out, level, whose)
    else:
        alone = _none([*tested.values()], level, whose, together=bool(together))
    return [*together, alone, *open_]


def untested_sentence(lines: Mapping[str, Subgroup]) -> str:
    """The subgroups that were not tested, and why, by what they are called; empty without any."""
    reasons: dict[str, list[str]] = {}
    for name, line in lines.items():
        if line.untested:
            reasons.setdefault(line.untested, []).append(name)
    told = [f"{listed(names, NAMED)} ({reason})" for reason, names in reasons.items()]
    return f"Not tested for calibration: {'; '.join(told)}." if told else ""


def _together(column: str, pooled: Pooled, level: float, whose: str) -> list[Finding]:
    """The shift that the subgroups of a column have together, or else the slope."""
    its = "Its" if whose == "The model" else f"{whose}'s"
    what = f"{its} probabilities{f' of {pooled.event}' if pooled.event else ''} are"
    if pooled.p_adjusted is not None and pooled.p_adjusted <= level:
        claim = Claim.ALL_SUBGROUPS if pooled.everywhere else Claim.AS_A_WHOLE
        how, p = f"too {'high' if pooled.ratio < 1 else 'low'} {_scope(column, pooled)}", pooled.p_adjusted
        numbers, shown = {"observed_to_expected": pooled.ratio}, f"O:E {number(pooled.ratio, 2)}, "
    elif pooled.slope_p_adjusted is not None and pooled.slope_p_adjusted <= level:
        # Where events also happen more or less often than forecast, a slope may come from that alone.
        claim, p = Claim.AS_A_WHOLE, pooled.slope_p_adjusted
        how = f"{'too extreme' if pooled.slope < 1 else 'not extreme enough'} {_whole(column)}"
        numbers, shown = {"slope": pooled.slope}, ""
    else:
        return []
    step = NextStep("try recalibration", "vx.recalibrate(y, p)", "verax recalibrate {source}")
    text = f"{what} {how} ({shown}{_tested(p, level)})."
    return [Finding(claim, text, (column,), numbers, p, level, step=step)]


def _whole(column: str) -> str:
    return f"as a whole over the subgroups{_of(column)}"


def _of(column: str) -> str:
    return "" if column == UNNAMED else f" of {clean(column, 40)}"


def _scope(column: str, pooled: Pooled) -> str:
    """Of which subgroups a shift may be said."""
    if not pooled.several:
        return _whole(column)
    which = f"all {pooled.n:,} subgroups" if pooled.everywhere else "more than one subgroup"
    return f"in {which}{_of(column)}"


def _none(tested: Sequence[Subgroup], level: float, whose: str, *, together: bool) -> Finding:
    """No single subgroup stands out."""
    # Rows without weight tell nothing.
    least = min(round(line.card.effective_rows) for line in tested)
    p = min(q for line in tested if (q := line.p_adjusted) is not None)
    what = f"{whose} is not significantly miscalibrated in any of {count(len(tested), 'subgroup')}"
    if together:
        what = f"None of {count(len(tested), 'subgroup')} is significantly miscalibrated by itself"
    text = f"{what} ({_tested(p, level)}; the smallest has {count(least, 'row')})."
    return Finding(Claim.NO_SUBGROUP, text, (), {"smallest": least}, p, level)


def _standing_out(tested: Mapping[str, Subgroup], out: Sequence[str], level: float, whose: str) -> Finding:
    """The subgroups that stand out."""
    where = f"the {'subgroup' if len(out) == 1 else 'subgroups'} {listed(out, NAMED)}"
    p = max(q for name in out if (q := tested[name].p_adjusted) is not None)
    return Finding(
        Claim.SUBGROUP,
        f"{whose} is significantly miscalibrated in {where} ({_tested(p, level)}).",
        tuple(out),
        {name: tested[name].decomposition.whole.miscalibration for name in out},
        p,
        level,
        step=NextStep(f"do not use the probabilities in {where}, or recalibrate on these rows alone"),
    )


def _tested(p: float, level: float) -> str:
    """A corrected p-value beside the level that it had to pass."""
    shown = probability(p)
    return f"p {shown if shown.startswith('<') else f'= {shown}'}, tested at {100 * level:g}%"
