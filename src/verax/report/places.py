"""Top lists in the report: calibration of places and of the whole list."""

from __future__ import annotations

from dataclasses import replace

from verax._settings import settings
from verax.analyses.calibration.claims import read_claims
from verax.analyses.calibration.components import Decomposition
from verax.analyses.calibration.curves import ListReliability
from verax.analyses.calibration.decomposition import read_decomposition
from verax.analyses.calibration.recipes import LENGTH, WEIGHT, ListEventRecipe, ListSums
from verax.analyses.calibration.reliability import read_reliability
from verax.inference.intervals import Resampling
from verax.inputs.handles import Handle, Summaries
from verax.report.contents import ListFindings
from verax.report.limits import CURVES_OF_PLACES, PLACES, list_replicates
from verax.report.problem import Problem
from verax.scores.registry import RULES


def find_places(
    handle: Handle, problem: Problem, plan: Resampling, summaries: Summaries, model: str
) -> ListFindings:
    """What the lists of a model claim."""
    stated = summaries[f"{model}/stated"]
    drawn = replace(plan, replicates=settings.report_bands)
    curves = read_reliability(
        stated, ListEventRecipe(model, CURVES_OF_PLACES), handle, drawn, again=problem.again
    )
    assert isinstance(curves, ListReliability)
    return ListFindings(
        replace(curves, n_rows=problem.n_rows), read_claims(stated, PLACES, copies=plan.copies)
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
