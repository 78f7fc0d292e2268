"""The verdict of a page: the findings of its rows, and what would help."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from verax.analyses.subgroups.result import Subgroups
from verax.analyses.subgroups.verdict import with_subgroups
from verax.analyses.verdicts.calibration import CalibrationEvidence, calibration_findings, list_findings
from verax.analyses.verdicts.rows import Judgement
from verax.analyses.verdicts.which import Question, which_findings
from verax.inference.findings import Claim, Finding, Level, Verdict
from verax.report.contents import Contents, Findings
from verax.report.section import sections


def verdict_of(contents: Contents) -> Verdict:
    """What to keep, by how much it is better and how sure that is; then calibration and what would help."""
    # Rows of one outcome do not tell how others are to be recalibrated.
    known = _question(contents).rarer > 0
    remedies = [finding for section in sections() for finding in section.remedies(contents)] if known else []
    return _judged(contents)[0].with_remedy(remedies)


def in_one_family(contents: Contents) -> Contents:
    """The same with subgroups that are tested together with the other claims of the page."""
    return replace(contents, parts=replace(contents.parts, shown=_judged(contents)[1]))


def _judged(contents: Contents) -> tuple[Verdict, dict[str, Subgroups]]:
    """The verdict without recalibration, and the subgroups."""
    best = contents.best
    findings, level = which_findings(_question(contents))
    findings += _calibration(contents, best, level, skilled=findings[0].claim == Claim.BETTER)
    judged = Judgement(findings, level, best.name, _whose(contents, best), contents.confidence)
    return with_subgroups(judged, contents.subgroups)


def _whose(contents: Contents, model: Findings) -> str:
    return "The model" if len(contents.findings) == 1 else model.name


def _question(contents: Contents) -> Question:
    problem, comparison = contents.problem, contents.comparison
    counts = None if problem.lists else np.asarray(contents.findings[0].card.class_counts, float)
    return Question(comparison, problem.compared, problem.lists, problem.n_classes, comparison, counts)


def calibration_of(contents: Contents, model: Findings) -> list[Finding]:
    """The claims about the calibration of any model, below its name; the verdict is about the best one."""
    level = which_findings(_question(contents))[1]
    if model is not contents.best:
        level = level.after(answered=False, whole=1 - contents.confidence)
    return _calibration(contents, model, level, alone=True)


def _calibration(
    contents: Contents, model: Findings, level: Level, *, skilled: bool = False, alone: bool = False
) -> list[Finding]:
    """Whether the probabilities of a model mean what they say."""
    whose = "The model" if alone else _whose(contents, model)
    if model.places is not None:
        return list_findings(model.places.claims, level, whose)
    return calibration_findings(evidence_of(contents, model), level, whose, skilled=skilled)


def evidence_of(contents: Contents, model: Findings) -> CalibrationEvidence:
    """What the page knows of the calibration of a model."""
    assert model.dense is not None
    problem = contents.problem
    return CalibrationEvidence(
        names=problem.titles,
        ordered=problem.ordered,
        n_rows=model.card.effective_rows,
        n_groups=model.card.n_groups,
        overconfidence=model.dense.overconfidence,
        biases=model.dense.class_biases,
        slopes=model.dense.slopes,
        whole=model.decomposition.whole,
        confidence=contents.confidence,
    )
