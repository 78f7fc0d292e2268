"""`evaluate_grades`: the mean grade of a model's answers, and how good its confidences in them are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, overload

import numpy as np

from verax.analyses.cards.evaluation import evaluate
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.comparison.grades import (
    check_graded,
    grade_scale,
    read_confidences,
    read_grades,
    right_or_wrong,
)
from verax.analyses.comparison.opening import QuestionOptions, open_grades
from verax.analyses.comparison.ungraded import Ungraded, counted_as_wrong, reasons_of
from verax.common.checks import check_choice
from verax.common.ids import numbered
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
from verax.wings.judges.analysis import judged_grades
from verax.wings.judges.result import JudgedGrades


@overload
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
    ungraded: Ungraded = "by-reason",
    reasons: object = None,
    invalid: str = "raise",
    confidence: float = 0.95,
    judge: None = None,
    checks: None = None,
) -> GradeCard: ...
@overload
def evaluate_grades(
    grades: object,
    *,
    grade_range: tuple[float, float] = (0.0, 1.0),
    ids: object = None,
    epochs: object = None,
    groups: object = None,
    confidence: float = 0.95,
    judge: object,
    checks: object = None,
) -> JudgedGrades: ...
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
    ungraded: Ungraded = "by-reason",
    reasons: object = None,
    invalid: str = "raise",
    confidence: float = 0.95,
    judge: object = None,
    checks: object = None,
) -> GradeCard | JudgedGrades:
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
        Which repeat of its question each answer is. The mean grade is then that of the means of questions,
        which are what is independent.
    task : array_like of shape (N,) or str, optional
        The task of each answer, to report each on its own; of a handle, the column.
    by : array_like of shape (N,), mapping of str to these, frame, or sequence of str, optional
        Labels of subgroups to report on their own, one breakdown for each column; of a handle, the columns.
    groups : array_like of shape (N,), or two of them, optional
        Labels of clusters whose answers belong together.
    weights : array_like of shape (N,), optional
        Importance weights of the answers.
    ungraded : {"by-reason", "bounds", "exclude", "wrong"}, default "by-reason"
        What answers without a grade count as. "by-reason": as wrong if `reasons` say that it is the model's
        doing; the others are left out, and bounds say what they could change. "bounds": all are left out, and
        the verdict is about the bounds; "exclude": all are left out; "wrong": all are wrong. They are always
        counted.
    reasons : array_like of shape (N,), optional
        What became of each answer: limit, empty, unparsable or refused, which are the model's doing, error or
        unscored, which are not, or missing. A grade stands whatever became of its answer.
    invalid : {"raise", "skip"}, default "raise"
        Whether confidences outside 0 to 1 are refused, or not scored.
    confidence : float, default 0.95
        Confidence level of the intervals.
    judge : array_like of shape (N,), optional
        The grades that a judge, such as a language model, gave to all answers. `grades` are then those of
        people, missing where nobody checked; (N, R) if several people graded. The mean grade is corrected by
        them.
    checks : {"random", "by-grade"} or array_like of shape (N,), optional
        How the answers that people graded were chosen: at random, at random among those of the same grade by
        the judge, or each with the probability given. Answers chosen by hand are refused. By default random
        choice is assumed, and refused if the judge's grades contradict it.

    Returns
    -------
    GradeCard or JudgedGrades
        The mean grade, its interval, and the card of the confidences; with a judge the corrected mean, and
        how far judge and people agree.

    See Also
    --------
    compare_grades : Grades of several models on the same questions.

    Examples
    --------
    >>> import verax as vx
    >>> card = vx.evaluate_grades([1, 0, 1, 1, 0, None], [0.9, 0.4, 0.8, 0.6, 0.7, 0.5])
    >>> round(card.mean, 3), card.answers.ungraded, round(card.card["brier"], 3)
    (0.6, 1, 0.344)

    A judge graded all answers, and people the first ten:

    >>> judge = [1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1]
    >>> people = [1, 0, 1, 0, 0, 1, 1, 0, 1, 1] + [None] * 10
    >>> found = vx.evaluate_grades(people, judge=judge)
    >>> found.n_checked, round(found.judge_mean, 2), round(found.corrected.value, 3)
    (10, 0.75, 0.648)
    """
    if judge is not None:
        unused = {"p": p, "task": task, "by": by, "weights": weights, "reasons": reasons}
        _refuse_with_judge([name for name, value in unused.items() if value is not None])
        if groups is None and epochs is not None:
            groups = ids
        return judged_grades(
            grades, judge, checks=checks, grade_range=grade_range, groups=groups, confidence=confidence
        )
    if checks is not None:
        raise InputError("is for grades by a judge that people checked", argument="checks")
    plan = Resampling.checked(confidence, 1000, 0)
    check_choice("invalid", invalid, ("raise", "skip"))
    scale = grade_scale(grade_range)
    options = QuestionOptions(ids, epochs, task, "refuse", ungraded, groups, weights, reasons=reasons)
    if isinstance(grades, Handle):
        given = {"p": p, "ids": ids, "epochs": epochs, "groups": groups, "weights": weights}
        given["reasons"] = reasons
        refuse_beside([name for name, value in given.items() if value is not None])
        scale = check_graded(grades, scale, ungraded)
        columns = {name: name for name in breakdowns(by, grades) if name != task}
        tasks = options.task_column(grades)
        columns |= {} if tasks is None else {TASK: tasks}
        return GradeCard.of(_tally(grades, scale, columns, plan, ungraded=ungraded))
    labels = breakdowns(by)
    if TASK in labels:
        # A breakdown by task is what tasks are.
        options = replace(options, task=labels.pop(TASK) if task is None else task)
        labels.pop(TASK, None)
    handle = open_grades({ONLY: grades}, scale, options, by=labels)
    columns = {name: name for name in handle.by}
    card = None
    if p is not None:
        right, sure, beside = scored_confidences(grades, p, scale, options, skip=invalid == "skip")
        card = evaluate(right, sure, confidence=confidence, **beside)
    return GradeCard.of(_tally(handle, scale, columns, plan, ungraded=ungraded, card=card))


def _refuse_with_judge(given: list[str]) -> None:
    """Refuse arguments that a corrected mean has no use for."""
    if given:
        raise InputError("cannot be used with `judge`", argument=given[0])


def _tally(
    handle: Handle,
    scale: Grade,
    columns: Mapping[str, str],
    plan: Resampling,
    *,
    ungraded: Ungraded,
    card: Scorecard | None = None,
) -> GradeTally:
    """The sums of all answers, and of those of each subgroup."""
    recipe = GradeRecipe(handle.one_model(), scale)
    recipes = {f"by {name}": BreakdownRecipe(column, {SUMS: recipe}) for name, column in columns.items()}
    seen = handle.summarise({SUMS: recipe, **recipes})
    by = {name: seen[f"by {name}"] for name in columns}
    cards = {} if card is None else {CONFIDENCES: card}
    return GradeTally(scale.low, scale.high, plan.confidence, ungraded, seen[SUMS], by, cards)


def scored_confidences(
    grades: object, p: object, scale: Grade, options: QuestionOptions, *, skip: bool
) -> tuple[Ints, Floats, dict[str, Any]]:
    """Right or wrong of the answers that count and have a confidence, the confidences, and keywords.

    These are their weights and groups: every question counts once, however often it was asked.
    """
    values = read_grades(grades, scale)
    sure = read_confidences(p, len(values), skip=skip)
    wrong = counted_as_wrong(values, reasons_of(options.reasons, ONLY, len(values)), options.ungraded)
    right = right_or_wrong(np.where(wrong, scale.low, values), scale)
    places = np.flatnonzero(~np.isnan(right) & ~np.isnan(sure))
    if not len(places):
        raise InputError("must be known for at least one graded answer", argument="p", kind="length")
    return right[places].astype(np.int64), sure[places], _beside(options, places)


def _beside(options: QuestionOptions, places: Ints) -> dict[str, Any]:
    """The weights and groups of some answers; the repeats of a question are a group, and share its weight."""
    repeated = options.epochs is not None and options.ids is not None
    kinds = kinds_of(options.groups) if options.groups is not None else (options.ids,) if repeated else ()
    labels = [to_host(to_array(kind, "groups")[0])[places] for kind in kinds]
    keywords: dict[str, Any] = {}
    if options.weights is not None:
        keywords["weights"] = to_host(to_array(options.weights, "weights")[0])[places]
    if repeated:
        (question,), _ = numbered([to_host(to_array(options.ids, "ids")[0])[places]])
        times = np.bincount(question)[question]
        if times.min() < times.max():
            keywords["weights"] = keywords.get("weights", 1.0) / times
    if labels:
        keywords["groups"] = labels if len(labels) > 1 else labels[0]
    return keywords
