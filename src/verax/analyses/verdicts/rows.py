"""The verdict on the rows of one or more models, wherever they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from verax.analyses.calibration.cells import default_draws
from verax.analyses.calibration.claims import read_claims, read_class_biases, read_overconfidence
from verax.analyses.calibration.decomposition import fitted
from verax.analyses.calibration.recipes import EventRecipe, ListEventRecipe
from verax.analyses.calibration.sums import Events
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
from verax.analyses.words import class_titles, distinct
from verax.errors import InputError
from verax.inference.findings import Claim, Finding, Level, Verdict
from verax.inference.intervals import Resampling
from verax.inputs.handles import Handle
from verax.scores.base import Rule
from verax.scores.registry import RULES, compared_rules, name_of

# Places of lists that the claims of first places and whole lists are read with.
_PLACES = 20
TESTED = (
    "Claims are tested in order: skill, leads, calibration, subgroups. Each is tested at {level}; "
    "calibration at {less} if one before stays open, and subgroups at {less}. "
    "Tests of one question share the level (Holm). Intervals are of each number alone."
)


def tested_words(confidence: float) -> str:
    """How the claims of a verdict are tested together."""
    level = round(100 * (1 - confidence), 10)
    return TESTED.format(level=f"{level:g}%", less=f"{level / 5:g}%")


@dataclass(frozen=True)
class Judgement:
    """Claims about the best of some models, before subgroups.

    Attributes
    ----------
    findings : list of Finding
        Skill, leads and calibration.
    level : Level
        The level that calibration was tested at.
    model : str
        The best model.
    whose : str
        Its name in sentences: "The model" where there is one.
    confidence : float
        Confidence level.
    """

    findings: list[Finding]
    level: Level
    model: str
    whose: str
    confidence: float

    @property
    def verdict(self) -> Verdict:
        """The findings as a verdict."""
        return Verdict(self.findings, tested_words(self.confidence) if self.findings else "")


def judge(
    handle: Handle,
    rules: Sequence[Rule] | None,
    *,
    ordered: bool,
    plan: Resampling,
    time_ordered: bool = False,
    comparison: Comparison | None = None,
) -> Judgement:
    """Claims about the models of a handle; `rules` are those that were asked for."""
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
        return Judgement([], Level.at(plan.confidence), "", "The model", plan.confidence)
    known = skills if comparison is None else comparison
    on_card = [rule for rule in ranked if name_of(rule) in known.models]
    counts = None if handle.lists else handle.summarise({"counts": CountRecipe()})["counts"].weights.high
    question = Question(known, on_card, handle.lists, handle.n_classes, skills, counts)
    findings, level = which_findings(question)
    best = question.ranked[0].name
    whose = "The model" if len(handle.models) == 1 else best
    skilled = findings[0].claim == Claim.BETTER
    how = {"ordered": ordered, "skilled": skilled}
    findings += _calibration(handle.one_way(), best, whose, plan, level, **how)
    return Judgement(findings, level, best, whose, plan.confidence)


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
    """Findings on the calibration of a model."""
    if model in handle.listed:
        sums = handle.summarise({"stated": ListEventRecipe(model, _PLACES)})["stated"]
        return list_findings(read_claims(sums, _PLACES, copies=plan.copies), level, whose)
    sums = handle.summarise({"events": EventRecipe(model, ordered)})["events"]
    try:
        evidence = evidence_of(handle, model, sums, ordered=ordered, plan=plan)
    except InputError as error:
        # Parts of copies cannot be drawn.
        if error.argument != "weights":
            raise
        return [untested(whose, level)]
    return calibration_findings(evidence, level, whose, skilled=skilled)


def evidence_of(
    handle: Handle, model: str, sums: Events, *, ordered: bool, plan: Resampling
) -> CalibrationEvidence:
    """The evidence of rows on the calibration of a model."""
    drawn = replace(plan, replicates=default_draws(handle.n_classes))
    parts = fitted(sums, RULES["rps" if ordered else "brier"], handle, drawn, model).tested(handle)
    weight, squares = sums.weight.high.tolist()[:2]
    slopes = None
    if ordered or handle.n_classes == 2:
        # Imported here: it imports SciPy, which takes longer than scoring a small file.
        from verax.analyses.calibration.slope import fit_slopes

        slopes = fit_slopes(handle, ordered, 0, plan, model=model)
    return CalibrationEvidence(
        names=class_titles(distinct(handle.class_names), handle.outcome),
        ordered=ordered,
        n_rows=weight if plan.copies else weight**2 / squares,
        n_groups=parts.n_groups,
        overconfidence=read_overconfidence(sums, copies=plan.copies),
        biases=read_class_biases(sums, handle.n_classes, thresholds=ordered, copies=plan.copies),
        slopes=slopes,
        whole=parts.whole,
        confidence=plan.confidence,
    )
