"""The verdict on the rows of one or more models, wherever they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

from verax.analyses.calibration.cells import default_draws
from verax.analyses.calibration.class_bias import read_class_biases
from verax.analyses.calibration.decomposition import fitted
from verax.analyses.calibration.event_recipe import EventRecipe
from verax.analyses.calibration.eventsums import EventSums
from verax.analyses.calibration.listsums import ListEventRecipe
from verax.analyses.calibration.overconfidence import read_overconfidence
from verax.analyses.calibration.reliability import read_claims
from verax.analyses.comparison.compare import compare
from verax.analyses.comparison.references import FREQUENCIES, UNIFORM, CountRecipe
from verax.analyses.comparison.result import Comparison
from verax.analyses.verdicts.calibration import (
    CalibrationEvidence,
    calibration_findings,
    list_findings,
    untested,
)
from verax.analyses.verdicts.which import Question, which_findings
from verax.analyses.words import distinct
from verax.errors import InputError
from verax.inference.findings import Claim, Finding, Level, Verdict
from verax.inference.intervals import Resampling, WeightsAre
from verax.inputs.handles import Handle
from verax.inputs.memory import open_rows
from verax.inputs.options import Reading, reads
from verax.scores.base import Rule
from verax.scores.combinators import Padded
from verax.scores.metrics import needs_order
from verax.scores.registry import RULES, as_rules, compared_rules, name_of

# Places of lists that the claims of first places and whole lists are read with.
_PLACES = 20
TESTED = (
    "Claims are tested in order: skill, leads, calibration. Each is tested at {level}; calibration at {less} "
    "if one before stays open. Tests of one question share the level (Holm). Intervals are of each number "
    "alone."
)


def tested_words(confidence: float) -> str:
    """How the claims of a verdict are tested together."""
    level = round(100 * (1 - confidence), 10)
    return TESTED.format(level=f"{level:g}%", less=f"{level / 5:g}%")


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
    **read: Unpack[Reading],
) -> Verdict:
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
    **read

    Returns
    -------
    Verdict
        The findings.
    """
    chosen = None if rules is None else [_inner(rule) for rule in as_rules(rules)]
    in_order = needs_order(chosen or (), ordered=ordered)
    models = p if p is None or isinstance(p, dict) else {"model": p}
    handle = open_rows(y, models, ordered=in_order, **read)
    plan = Resampling.checked(confidence, 1000, seed, weights_are=weights_are)
    return judge(handle, chosen, ordered=ordered, plan=plan, time_ordered=time_ordered, found=found)


def _inner(rule: Rule) -> Rule:
    return rule.rule if isinstance(rule, Padded) else rule


def judge(
    handle: Handle,
    rules: Sequence[Rule] | None,
    *,
    ordered: bool,
    plan: Resampling,
    time_ordered: bool = False,
    found: Comparison | None = None,
) -> Verdict:
    """The verdict on the rows of a handle; `rules` are those that were asked for."""
    usual = handle.lists and rules is None
    ranked = [RULES["brier"]] if usual else compared_rules(rules, ordered=ordered)
    settings: dict[str, Any] = {"confidence": plan.confidence, "weights_are": plan.weights_are}
    settings |= {"time_ordered": True} if time_ordered else {}
    reference = UNIFORM if handle.lists else FREQUENCIES
    try:
        skills = compare(handle, rule=ranked[0], reference=reference, **settings)
    except InputError as error:
        if error.argument not in ("groups", "reference"):
            raise
        # All rows are one group: nothing can be tested.
        return Verdict([])
    known = skills if found is None else found
    on_card = [rule for rule in ranked if name_of(rule) in known.models]
    counts = None if handle.lists else handle.summarise({"counts": CountRecipe()})["counts"].weights.high
    question = Question(known, on_card, handle.lists, handle.n_classes, skills, counts)
    findings, level = which_findings(question)
    best = question.ranked[0].name
    whose = "The model" if len(handle.models) == 1 else best
    skilled = findings[0].claim == Claim.BETTER
    how = {"ordered": ordered, "skilled": skilled}
    findings += _calibration(handle.one_way(), best, whose, plan, level, **how)
    return Verdict(findings, tested_words(plan.confidence))


def _calibration(
    handle: Handle,
    model: str,
    whose: str,
    plan: Resampling,
    level: Level,
    *,
    ordered: bool,
    skilled: bool,
) -> list[Finding]:
    """What there is to say of the calibration of a model."""
    if model in handle.listed:
        sums = handle.summarise({"stated": ListEventRecipe(model, _PLACES)})["stated"]
        return list_findings(read_claims(sums, _PLACES), level, whose)
    sums = handle.summarise({"events": EventRecipe(model, ordered)})["events"]
    try:
        evidence = evidence_of(handle, model, sums, ordered=ordered, plan=plan)
    except InputError as error:
        # Parts of copies cannot be drawn.
        if error.argument != "weights":
            raise
        return [untested(whose)]
    return calibration_findings(evidence, level, whose, skilled=skilled)


def evidence_of(
    handle: Handle, model: str, sums: EventSums, *, ordered: bool, plan: Resampling
) -> CalibrationEvidence:
    """What the rows of a model say of its calibration."""
    drawn = replace(plan, replicates=default_draws(handle.n_classes))
    parts = fitted(sums, RULES["rps" if ordered else "brier"], handle, drawn).tested(handle, model)
    weight, squares = sums.weight.high.tolist()[:2]
    slopes = None
    if ordered or handle.n_classes == 2:
        # Imported here: it imports SciPy, which takes longer than scoring a small file.
        from verax.analyses.calibration.slope_fit import fit_slopes

        slopes = fit_slopes(handle, ordered, 0, plan.confidence, model=model)
    return CalibrationEvidence(
        names=distinct(handle.class_names),
        ordered=ordered,
        n_rows=weight if plan.copies else weight**2 / squares,
        n_groups=parts.n_groups,
        overconfidence=read_overconfidence(sums),
        biases=read_class_biases(sums, handle.n_classes, thresholds=ordered),
        slopes=slopes,
        whole=parts.whole,
        confidence=plan.confidence,
    )
