"""What is said of subgroups: what they show together, and which of them stand out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from verax.analyses.subgroups.line import Subgroup
from verax.analyses.subgroups.ratios import Pooled
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
    if not tested:
        return [Finding(Claim.UNTESTED, "The calibration of subgroups was not tested.", level=level)]
    together = [
        _together(column, each, level, whose) for column, each in pooled.items() if each.p_adjusted <= level
    ]
    out = [name for name, line in tested.items() if line.stands_out]
    open_ = _undecided([name for name, line in tested.items() if line.undecided])
    decided = [line for line in tested.values() if not line.undecided]
    alone = [_standing_out(tested, out, level, whose)] if out else []
    if decided and not out:
        alone = [_none(decided, level, whose, together=bool(together))]
    return [*together, *alone, *open_]


def _together(column: str, pooled: Pooled, level: float, whose: str) -> Finding:
    """The shift that the subgroups of a column have together."""
    high = pooled.ratio < 1
    of = "" if column == UNNAMED else f" of {clean(column, 40)}"
    where = f"as a whole over the subgroups{of}"
    if pooled.several:
        where = f"in {f'all {pooled.n:,} subgroups' if pooled.everywhere else 'more than one subgroup'}{of}"
    its = "Its" if whose == "The model" else f"{whose}'s"
    text = (
        f"{its} probabilities are too {'high' if high else 'low'} {where} "
        f"(O:E {number(pooled.ratio, 2)}, {_tested(pooled.p_adjusted, level)})."
    )
    claim = Claim.ALL_SUBGROUPS if pooled.everywhere else Claim.AS_A_WHOLE
    numbers = {"observed_to_expected": pooled.ratio}
    step = NextStep("try recalibration", "vx.recalibrate(y, p)", "verax recalibrate {source}")
    return Finding(claim, text, (column,), numbers, pooled.p_adjusted, level, step=step)


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


def _undecided(names: Sequence[str]) -> list[Finding]:
    """Subgroups whose test would take too many draws."""
    if not names:
        return []
    text = f"Undecided, because it would take too many draws: {listed(names, NAMED)}."
    return [Finding(Claim.UNTESTED, text, tuple(names))]


def _tested(p: float, level: float) -> str:
    """A corrected p-value beside the level that it had to pass."""
    shown = probability(p)
    return f"p {shown if shown.startswith('<') else f'= {shown}'}, tested at {100 * level:g}%"
