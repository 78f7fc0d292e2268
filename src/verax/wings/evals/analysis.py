"""`evaluate_grades`: the mean grade of a model's answers, and how good its confidences in them are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from verax.analyses.cards.evaluation import evaluate
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.comparison.grades import (
    Ungraded,
    check_graded,
    grade_scale,
    read_confidences,
    read_grades,
    right_or_wrong,
)
from verax.analyses.comparison.opening import QuestionOptions, open_grades
from verax.common.checks import check_choice
from verax.errors import InputError
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Floats, Ints, to_array, to_host
from verax.inputs.breakdown import BreakdownRecipe, breakdowns
from verax.inputs.groups import kinds_of
from verax.inputs.handles import Handle, refuse_beside
from verax.inputs.memory import ONLY
from verax.scores.grades import Grade
from verax.wings.evals.result import GradeCard
from verax.wings.evals.summaries import CONFIDENCES, SUMS, TASK, GradeRecipe, GradeTally


def evaluate_grades(
    grades: object,
    p: object = None,
    *,
    grade_range: tuple[float, float] = (0.0, 1.0),
    ids: object = None,
    epochs: object = None,
    task: object = None,
    by: object = None,
    groups: object = None,
    weights: object = None,
    ungraded: Ungraded = "bounds",
    invalid: str = "raise",
    confidence: float = 0.95,
) -> GradeCard:
    """Mean grade of a model's answers, with what was not graded, and the scores of its confidences.

    Parameters
    ----------
    grades : array_like of shape (N,), or Handle
        The grade of each answer: 1 for right and 0 for wrong, or a score in `grade_range`. Missing ones were
        not graded. Or answers that `scan(..., grades=...)` has opened.
    p : array_like of shape (N,), optional
        Forecasts: the confidence in each answer, which is the probability that it is right. Missing ones are
        not scored, which does not change the mean grade.
    grade_range : tuple of two floats, default (0.0, 1.0)
        The worst and the best possible grade.
    ids : array_like of shape (N,), optional
        The question of each answer.
    epochs : array_like of shape (N,), optional
        Which repeat of its question each answer is. Repeats are then clustered by question, unless `groups`
        are given. Where questions have different numbers of repeats, the mean grade is that of the means of
        questions.
    task : array_like of shape (N,) or str, optional
        The task of each answer, to report each on its own; of a handle, the column.
    by : array_like of shape (N,), mapping of str to these, frame, or sequence of str, optional
        Labels of subgroups to report on their own, one breakdown for each column; of a handle, the columns.
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
    compare_grades : Grades of several models on the same questions.

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
    options = QuestionOptions(ids, epochs, task, "refuse", ungraded, groups, weights)
    if isinstance(grades, Handle):
        given = {"p": p, "ids": ids, "epochs": epochs, "groups": groups, "weights": weights}
        refuse_beside([name for name, value in given.items() if value is not None])
        scale = check_graded(grades, scale, ungraded)
        columns = {name: name for name in breakdowns(by, grades) if name != task}
        tasks = options.task_column(grades)
        columns |= {} if tasks is None else {TASK: tasks}
        return GradeCard.of(_tally(grades, scale, columns, plan, bounded=ungraded == "bounds"))
    labels = breakdowns(by)
    if TASK in labels:
        # A breakdown by task is what tasks are.
        options = replace(options, task=labels.pop(TASK) if task is None else task)
        labels.pop(TASK, None)
    handle = open_grades({ONLY: grades}, scale, options, by=labels)
    columns = {name: name for name in handle.by}
    card = None
    if p is not None:
        right, sure, places = scored_confidences(grades, p, scale, skip=invalid == "skip")
        beside = of_answers(places, ids=ids, epochs=epochs, groups=groups, weights=weights)
        card = evaluate(right, sure, confidence=confidence, **beside)
    return GradeCard.of(_tally(handle, scale, columns, plan, bounded=ungraded == "bounds", card=card))


def _tally(
    handle: Handle,
    scale: Grade,
    columns: Mapping[str, str],
    plan: Resampling,
    *,
    bounded: bool,
    card: Scorecard | None = None,
) -> GradeTally:
    """The sums of all answers, and of those of each subgroup."""
    recipe = GradeRecipe(handle.one_model(), scale)
    recipes = {f"by {name}": BreakdownRecipe(column, {SUMS: recipe}) for name, column in columns.items()}
    seen = handle.summarise({SUMS: recipe, **recipes})
    by = {name: seen[f"by {name}"] for name in columns}
    cards = {} if card is None else {CONFIDENCES: card}
    return GradeTally(scale.low, scale.high, plan.confidence, bounded, seen[SUMS], by, cards)


def of_answers(
    places: Ints, *, ids: object, epochs: object, groups: object, weights: object
) -> dict[str, Any]:
    """The weights and groups of some answers, as keywords; repeats of a question are a group."""
    kinds = (
        kinds_of(groups) if groups is not None else (ids,) if epochs is not None and ids is not None else ()
    )
    labels = [to_host(to_array(kind, "groups")[0])[places] for kind in kinds]
    keywords: dict[str, Any] = {}
    if weights is not None:
        keywords["weights"] = to_host(to_array(weights, "weights")[0])[places]
    if labels:
        keywords["groups"] = labels if len(labels) > 1 else labels[0]
    return keywords


def scored_confidences(grades: object, p: object, scale: Grade, *, skip: bool) -> tuple[Ints, Floats, Ints]:
    """Right or wrong of graded answers with a confidence, the confidences, and the places among all."""
    values = read_grades(grades, scale)
    sure = read_confidences(p, len(values), skip=skip)
    right = right_or_wrong(values, scale)
    both = np.flatnonzero(~np.isnan(right) & ~np.isnan(sure))
    if not len(both):
        raise InputError("must be known for at least one graded answer", argument="p", kind="length")
    return right[both].astype(np.int64), sure[both], both
