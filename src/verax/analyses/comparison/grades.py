"""`compare_grades`: graded answers of several models, compared on the same questions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, get_args

from verax.analyses.comparison.opening import (
    Asked,
    Missing,
    Ungraded,
    check_graded,
    grade_scale,
    open_grades,
)
from verax.analyses.comparison.questions import compare_questions
from verax.analyses.comparison.result import Comparison
from verax.common.checks import check_choice
from verax.errors import InputError
from verax.inference.estimates import Method
from verax.inference.intervals import Resampling, WeightsAre
from verax.inputs.handles import Handle, refuse_beside
from verax.scores.base import Rule
from verax.scores.registry import as_rules, default_rules

P = ParamSpec("P")
# What `compare` took when it compared grades as well.
_OF_GRADES = ("grades", "grade_range", "ungraded")


def compare_grades(
    grades: Mapping[str, object] | Handle,
    p: Mapping[str, object] | None = None,
    *,
    grade_range: tuple[float, float] = (0.0, 1.0),
    ids: object = None,
    epochs: object = None,
    task: object = None,
    missing: Missing = "refuse",
    ungraded: Ungraded = "bounds",
    rule: Rule | str | Sequence[Rule | str] | None = None,
    method: Method = "moments",
    reference: str | None = None,
    margin: float | None = None,
    confidence: float = 0.95,
    bootstrap: int = 2000,
    seed: int = 0,
    weights: object = None,
    weights_are: WeightsAre = "importance",
    groups: object = None,
    invalid: str = "raise",
) -> Comparison:
    """Mean grades of several models' answers, and which of their differences are real.

    The loss of an answer is the best possible grade minus its grade.

    Parameters
    ----------
    grades : mapping of str to array_like of shape (N,), or Handle
        The grade of each answer of each model, by name: 1 for right and 0 for wrong, or a rubric or judge
        score in `grade_range`. Missing ones were not graded. Or answers that `scan(..., grades=...)` has
        opened.
    p : mapping of str to array_like of shape (N,), optional
        Forecasts: the confidence of each model in its answers, which is the probability that an answer is
        right. They are compared by rules as well.
    grade_range : tuple of two floats, default (0.0, 1.0)
        The worst and the best possible grade.
    ids : array_like of shape (N,) or mapping of str to array_like, optional
        The question of each row; by name where every model has rows of its own. Rows are matched by it.
    epochs : array_like of shape (N,) or mapping of str to array_like, optional
        Which repeat of its question each row is, where questions were asked several times. Repeats are then
        clustered by question, unless `groups` are given. Where questions have different numbers of repeats,
        each question has one loss: the mean over its repeats.
    task : array_like of shape (N,), mapping of str to array_like, or str, optional
        The task of each row; of a handle, the column. Models are also compared within each task, with Holm's
        correction over all.
    missing : {"refuse", "pairwise", "joint"}, default "refuse"
        What to do where some models were not asked some questions. "pairwise" compares each pair on the
        questions that both answered. "joint" estimates all models on all questions, with intervals clustered
        by question: grades where a model has no answer are fitted on the logit scale from the difficulty that
        the answers of others show.
    ungraded : {"bounds", "exclude", "wrong"}, default "bounds"
        What to do with answers that were not graded. They are always counted. "bounds" reports, beside
        results on graded answers, what means and differences could be with all of them at the worst and the
        best grade; "exclude" does not. "wrong" gives them the worst grade.
    rule : Rule, str or sequence of these, optional
        The rules for confidences; by default Brier and log score.
    method : {"moments", "bootstrap", "permutation"}, default "moments"
        How intervals and p-values are made; see `compare`.
    reference : str, optional
        The model that skill is measured against.
    margin : float, optional
        By how much the mean grade of a model may be below that of another and still count as not worse. The
        result then tests for each model and each other one whether it is worse by less than that.
    confidence : float, default 0.95
        Confidence level of the intervals.
    bootstrap : int, default 2000
        Number of bootstrap replicates, or of permutations.
    seed : int, default 0
        Random seed.
    weights : array_like of shape (N,) or mapping of str to array_like, optional
        Importance weights of the answers.
    weights_are : {"importance", "counts"}, default "importance"
        What weights are. "importance": how much each row counts; only their ratios matter. "counts": a row of
        weight 3 is three rows.
    groups : array_like of shape (N,), mapping of str to array_like, or two of them, optional
        Labels of clusters whose answers belong together.
    invalid : {"raise", "skip"}, default "raise"
        Whether confidences outside 0 to 1 are refused, or not scored.

    Returns
    -------
    Comparison
        Mean losses and grades, differences and tests.

    Raises
    ------
    InputError
        If grades, ids or options are invalid. It names the argument, the rows and what can be done.

    See Also
    --------
    compare : The same for forecasts.
    evaluate_grades : The mean grade of one model.

    Examples
    --------
    One of the answers was not graded:

    >>> import verax as vx
    >>> grades = {"a": [1, 1, 1, 0, 1], "b": [1, 0, None, 0, 1]}
    >>> found = vx.compare_grades(grades, ids=["q1", "q2", "q3", "q4", "q5"])
    >>> found.n_rows, found.difference("a", "b").difference, found.gap_bounds["grade"][0].high
    (4, -0.25, -0.2)
    """
    check_choice("invalid", invalid, ("raise", "skip"))
    check_choice("method", method, get_args(Method))
    plan = Resampling.checked(confidence, bootstrap, seed, least=100, weights_are=weights_are)
    asked = Asked(ids, epochs, task, missing, ungraded, groups, weights, invalid == "skip")
    scale = grade_scale(grade_range)
    if p is None and rule is not None:
        raise InputError("must be left out with grades: the grade is the loss", argument="rule")
    how: dict[str, Any] = {"reference": reference, "margin": margin, "method": method}
    if isinstance(grades, Handle):
        beside = {"p": p, "ids": ids, "epochs": epochs, "groups": groups, "weights": weights}
        refuse_beside([name for name, value in beside.items() if value is not None])
        scale = check_graded(grades, scale, ungraded)
        return compare_questions(grades, [scale], asked, plan, **how)
    rules = [] if p is None else as_rules(default_rules(ordered=False) if rule is None else rule)
    handle = open_grades(grades, scale, asked, confidences=p, rules=rules)
    return compare_questions(handle, [scale, *rules], asked, plan, **how)


def hands_on_grades(compare: Callable[P, Comparison]) -> Callable[P, Comparison]:
    """Let `compare` take grades, as it once did: `compare_grades` compares them, after a warning."""

    @wraps(compare)
    def handing_on(*args: Any, **kwargs: Any) -> Comparison:
        y = args[0] if args else kwargs.get("y")
        scanned = isinstance(y, Handle) and y.graded is not None
        if not scanned and not any(name in kwargs for name in _OF_GRADES):
            return compare(*args, **kwargs)
        if not scanned and kwargs.get("grades") is None:
            _warn("`ungraded` and `grade_range` are for vx.compare_grades(grades, ...).")
            left = kwargs.pop("ungraded", "bounds")
            kwargs.pop("grade_range", None)
            found = compare(*args, **kwargs)
            return replace(found, gap_bounds={}) if left == "exclude" else found
        _warn("Grades are compared by vx.compare_grades(grades, ...).")
        given = dict(zip(("y", "forecasts"), args, strict=False)) | kwargs
        if scanned:
            refuse_beside([name for name in ("grades", "forecasts") if given.get(name) is not None])
        elif given.get("y") is not None:
            raise InputError("must be left out with grades, which say what was right", argument="y")
        grades = given.pop("y", None) if scanned else given.pop("grades")
        given.pop("y", None)
        return compare_grades(grades, given.pop("forecasts", None), **given)

    return handing_on


def _warn(text: str) -> None:
    warnings.warn(text, DeprecationWarning, stacklevel=3)
