"""Top lists in the report: calibration of places and of the whole list, and what shorter lists lose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from verax._settings import settings
from verax.analyses.calibration.claims import read_claims
from verax.analyses.calibration.components import Decomposition
from verax.analyses.calibration.curves import ListReliability
from verax.analyses.calibration.decomposition import read_decomposition
from verax.analyses.calibration.recipes import LENGTH, WEIGHT, ListEventRecipe, ListSums
from verax.analyses.calibration.reliability import read_reliability
from verax.analyses.cards.listcard import ListCard
from verax.analyses.unitsums import UnitSums
from verax.inference.intervals import Resampling
from verax.inputs.handles import Handle, Summaries
from verax.inputs.memory import InMemory
from verax.inputs.rows import Rows
from verax.report.contents import ListFindings
from verax.report.limits import CURVES_OF_PLACES, PLACES, list_replicates
from verax.report.problem import Problem
from verax.scores.combinators import Padded, padded
from verax.scores.registry import RULES
from verax.wings.lists.lengths import (
    LengthComparison,
    LengthRecipe,
    compare_lengths,
    read_known_lengths,
)
from verax.wings.recalibrate.section.analysis import RecalibrationBenefit
from verax.wings.retain.result import RetentionCurve


def find_places(
    handle: Handle,
    problem: Problem,
    plan: Resampling,
    summaries: Summaries,
    model: str,
    full: Rows | None,
    remedy: RecalibrationBenefit,
    drawn_curves: Sequence[RetentionCurve],
) -> ListFindings:
    """What the lists of a model claim; `full` are the distributions that they were cut from, if they were."""
    stated = summaries[f"{model}/stated"]
    drawn = replace(plan, replicates=settings.report_bands)
    curves = read_reliability(
        stated, ListEventRecipe(model, CURVES_OF_PLACES), handle, drawn, again=problem.again
    )
    assert isinstance(curves, ListReliability)
    return ListFindings(
        replace(curves, n_rows=problem.n_rows),
        read_claims(stated, PLACES, copies=plan.copies),
        _lengths(handle, problem, plan, summaries, model, full),
        remedy,
        retained=[curve for curve in drawn_curves if curve.sees_outcome],
        selected=[curve for curve in drawn_curves if not curve.sees_outcome],
    )


def decomposed(
    handle: Handle, summaries: Summaries, problem: Problem, plan: Resampling, model: str
) -> Decomposition:
    """The decomposition of the Brier score of the events that the lists of a model define."""
    scored: ListSums = summaries[f"{model}/scored"]
    totals = scored.totals.high
    entries = problem.n_rows * float(totals[LENGTH] / totals[WEIGHT])
    tested = replace(plan, replicates=list_replicates(entries))
    parts = read_decomposition(scored, RULES["brier"], handle, tested, model if problem.again else None)
    return replace(parts, n_rows=problem.n_rows)


def length_rules(problem: Problem) -> tuple[Padded, ...]:
    """The rules by which lists of all lengths are scored."""
    return tuple(padded(rule) for rule in problem.rules)


def _lengths(
    handle: Handle, problem: Problem, plan: Resampling, summaries: Summaries, model: str, full: Rows | None
) -> LengthComparison | None:
    """What shorter lists would lose against the full distribution, or against the lists as they are."""
    if full is not None:
        forecasts = InMemory({model: full})
        return compare_lengths(forecasts, rule=list(problem.rules), confidence=plan.confidence)
    shorter: UnitSums | None = summaries.by_name.get(f"{model}/lengths")
    if shorter is None:
        return None
    card: ListCard = summaries[f"{model}/card"]
    return read_known_lengths(
        handle,
        LengthRecipe(model, length_rules(problem)),
        shorter,
        summaries["survey"].models[model].longest,
        summaries,
        {"": card.of_lists},
        plan.confidence,
    )
