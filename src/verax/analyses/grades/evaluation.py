"""`evaluate_grades`: the mean grade of a model's answers, and how good its confidences in them are."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np

from verax.analyses.cards.evaluation import evaluate
from verax.analyses.comparison.answers import AnswerRecipe, OfKnown
from verax.analyses.comparison.opening import (
    Asked,
    Ungraded,
    grade_scale,
    open_grades,
    read_confidences,
    read_grades,
    right_or_wrong,
)
from verax.analyses.comparison.paired import PairedRecipe
from verax.analyses.grades.result import GradeCard
from verax.common.checks import check_choice
from verax.engines.differences import PairedTally
from verax.errors import InputError
from verax.inference.estimates import Estimate, Units
from verax.inference.intervals import Interval, Resampling, bounded, wilson
from verax.inputs.breakdown import parts_by
from verax.inputs.groups import Groups
from verax.inputs.handles import Handle
from verax.inputs.memory import ONLY, InMemory
from verax.scores.grades import Grade


def evaluate_grades(
    grades: object,
    p: object = None,
    *,
    grade_range: tuple[float, float] = (0.0, 1.0),
    ids: object = None,
    epochs: object = None,
    task: object = None,
    groups: object = None,
    weights: object = None,
    ungraded: Ungraded = "bounds",
    invalid: str = "raise",
    confidence: float = 0.95,
) -> GradeCard:
    """Mean grade of a model's answers, with what was not graded, and the scores of its confidences.

    Parameters
    ----------
    grades : array_like of shape (N,)
        The grade of each answer: 1 for right and 0 for wrong, or a score in `grade_range`. Missing ones were
        not graded.
    p : array_like of shape (N,), optional
        Forecasts: the confidence in each answer, which is the probability that it is right. Missing ones are
        not scored, which does not change the mean grade.
    grade_range : tuple of two floats, default (0.0, 1.0)
        The worst and the best possible grade.
    ids : array_like of shape (N,), optional
        The question of each answer.
    epochs : array_like of shape (N,), optional
        Which repeat of its question each answer is. Repeats are then clustered by question, unless `groups`
        are given.
    task : array_like of shape (N,), optional
        The task of each answer, to report each on its own.
    groups : array_like of shape (N,), or two of them, optional
        Labels of clusters whose answers belong together.
    weights : array_like of shape (N,), optional
        Importance weights of the answers.
    ungraded : {"bounds", "exclude", "wrong"}, default "bounds"
        What to do with answers that were not graded: leave them out and show what they could change, leave
        them out, or give them the worst grade. They are always counted.
    invalid : {"raise", "skip"}, default "raise"
        Whether confidences outside 0 to 1 are refused, or not scored.
    confidence : float, default 0.95
        Confidence level of the intervals.

    Returns
    -------
    GradeCard
        The mean grade, its interval, and the card of the confidences.

    See Also
    --------
    compare : Grades of several models on the same questions.

    Examples
    --------
    >>> import verax as vx
    >>> card = vx.evaluate_grades([1, 0, 1, 1, 0, None], [0.9, 0.4, 0.8, 0.6, 0.7, 0.5])
    >>> round(card.mean, 3), card.answers.ungraded, round(card.card["brier"], 3)
    (0.6, 1, 0.344)
    """
    plan = Resampling.checked(confidence, 1000, 0)
    check_choice("invalid", invalid, ("raise", "skip"))
    scale = grade_scale(grade_range)
    asked = Asked(ids, epochs, task, "refuse", ungraded, groups, weights)
    handle = open_grades({ONLY: grades}, scale, asked)
    card = replace(_card(handle, scale, plan), bounded=ungraded == "bounds")
    part = handle.kept
    if task is not None:
        labels = Groups.of(part.by["task"], part.n_rows)
        found = {
            str(label): replace(_card(InMemory(own.models), scale, plan), bounded=card.bounded)
            for label, own in parts_by(part, labels)
        }
        card = replace(card, tasks=found)
    if p is None:
        return card
    values = read_grades(grades, scale)
    right = right_or_wrong(values, scale)
    sure = read_confidences(p, len(values), skip=invalid == "skip")
    both = np.flatnonzero(~np.isnan(right) & ~np.isnan(sure))
    if not len(both):
        raise InputError("must be known for at least one graded answer", argument="p", kind="length")
    rows = part.rows
    read: dict[str, Any] = {"weights": None if rows.weights is None else rows.weights[both]}
    read["groups"] = None if rows.groups is None else rows.groups.at(both)
    scored = evaluate(right[both].astype(np.int64), sure[both], confidence=confidence, **read)
    return replace(card, card=scored)


def _card(handle: Handle, scale: Grade, plan: Resampling) -> GradeCard:
    """The mean grade of the rows of a handle."""
    models = handle.models
    recipe = OfKnown(PairedRecipe(models, (scale,)), models, scale)
    seen = handle.summarise({"sums": recipe, "answers": AnswerRecipe(models, scale)})
    tally: PairedTally = seen["sums"].of_rule(scale)
    (answers,) = seen["answers"].answered(models, scale.bounds(2))
    if not tally.n_rows:
        none = Interval.undefined("no answer was graded", confidence=plan.confidence)
        return GradeCard(math.nan, none, answers, scale, None, plan.confidence)
    loss = float(tally.means[0])
    interval = (-_interval(tally, loss, scale, plan)).shifted(scale.high)
    return GradeCard(scale.high - loss, interval, answers, scale, tally.n_groups, plan.confidence)


def _interval(tally: PairedTally, loss: float, scale: Grade, plan: Resampling) -> Interval:
    """The interval of a mean loss in its range: Wilson's for right or wrong, else a t interval like it."""
    least, most = scale.bounds(2)
    share, std = loss / most, float(tally.moments.std[1]) / most
    plain = tally.labels is None and tally.squares is tally.moments
    if plain and math.isclose(std * std, share * (1 - share), rel_tol=1e-9, abs_tol=1e-12):
        z = NormalDist().inv_cdf((1 + plan.confidence) / 2)
        low, high = wilson(share, tally.n_rows, z, plan.confidence)
        return Interval(low * most, high * most, method="Wilson", confidence=plan.confidence)
    estimate = Estimate.of(tally, np.zeros((0, 0)), Units("rows"))
    freedom, error = float(np.max(estimate.freedom)), float(estimate.error[0])
    if not (freedom > 0 and math.isfinite(error)):
        return Interval.undefined("there is only one unit to learn from", confidence=plan.confidence)
    caution = estimate.intervals(plan.confidence)[0].caution
    found = bounded(loss, error**2, freedom, freedom + 1, (least, most), plan)
    return found.by(found.method, caution)
