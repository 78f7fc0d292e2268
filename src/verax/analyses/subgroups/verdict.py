"""The verdict on all rows and their subgroups, which are the last question of its family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Unpack

from verax.analyses.comparison.result import Comparison
from verax.analyses.subgroups.family import FamilyColumn, in_one_family, level_of_subgroups
from verax.analyses.subgroups.result import Subgroups
from verax.analyses.subgroups.sentences import called, subgroup_findings
from verax.analyses.verdicts.calibration import not_seen
from verax.analyses.verdicts.rows import Judgement, judge
from verax.inference.findings import Claim, Verdict
from verax.inference.intervals import Resampling, WeightsAre
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.scores.base import Rule
from verax.scores.combinators import Padded
from verax.scores.metrics import needs_order
from verax.scores.registry import as_rules


@reads
def verdict_of(
    y: object,
    p: object = None,
    *,
    rules: Sequence[Rule | str] | None = None,
    ordered: bool = False,
    confidence: float = 0.95,
    seed: int = 0,
    weights_are: WeightsAre = "importance",
    time_ordered: bool = False,
    found: Comparison | None = None,
    parts: Mapping[str, Subgroups] | None = None,
    outcome: str = "",
    **read: Unpack[RowOptions],
) -> tuple[Verdict, dict[str, Subgroups]]:
    """What there is to claim of the forecasts of one or more models.

    Parameters
    ----------
    y
    p
    rules : sequence of Rule or str, optional
        The rules that models are compared by, the one to go by first.
    ordered
    confidence
    seed
    weights_are
    time_ordered : bool, default False
        Whether the rows are in order of time.
    found : Comparison, optional
        The comparison of several models by all rules, where it is known.
    parts : mapping of str to Subgroups, optional
        The subgroups of each column.
    outcome : str, default ""
        What the outcomes are called; by default as the handle calls them.
    **read

    Returns
    -------
    Verdict
        The findings.
    dict of str to Subgroups
        The subgroups, tested together with all other claims.
    """
    chosen = None if rules is None else [_inner(rule) for rule in as_rules(rules)]
    in_order = needs_order(chosen or (), ordered=ordered)
    models = p if p is None or isinstance(p, dict) else {"model": p}
    handle = open_rows(y, models, ordered=in_order, **read).called(outcome)
    plan = Resampling.checked(confidence, 1000, seed, weights_are=weights_are)
    judged = judge(handle, chosen, ordered=ordered, plan=plan, time_ordered=time_ordered, comparison=found)
    return with_subgroups(judged, parts or {})


def _inner(rule: Rule) -> Rule:
    return rule.rule if isinstance(rule, Padded) else rule


def with_subgroups(judged: Judgement, parts: Mapping[str, Subgroups]) -> tuple[Verdict, dict[str, Subgroups]]:
    """The verdict with what there is to say of subgroups, and the subgroups as this family tests them.

    Subgroups of all columns are tested together, at a level of their own.
    """
    level = level_of_subgroups(judged.confidence)
    held = in_family(parts, level)
    lines = {
        called(name, line.label): line
        for name, found in held.items()
        for line in found.lines
        if line.model == judged.model or not found.several
    }
    if not lines or not judged.findings:
        return judged.verdict, held
    pooled = {
        name: together
        for name, found in held.items()
        for model, together in found.pooled.items()
        if model == judged.model or not found.several
    }
    more, findings = subgroup_findings(lines, pooled, level, judged.whose), judged.findings
    if any(each.claim in _OFF for each in more):
        # What holds over all rows does not hold there.
        findings = [
            replace(each, text=not_seen(judged.whose, over=" over all rows"))
            if each.claim == Claim.NOT_SEEN and not each.about
            else each
            for each in findings
        ]
    return replace(judged, findings=[*findings, *more]).verdict, held


_OFF = (Claim.SUBGROUP, Claim.AS_A_WHOLE, Claim.ALL_SUBGROUPS)


def in_family(parts: Mapping[str, Subgroups], level: float) -> dict[str, Subgroups]:
    """The subgroups of several columns, tested together at a level."""
    columns = in_one_family(
        [FamilyColumn(found.lines, found.among, found.pooled) for found in parts.values()], level
    )
    return {
        name: found.tested_at(level, column)
        for (name, found), column in zip(parts.items(), columns, strict=True)
    }
