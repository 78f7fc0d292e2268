"""Grades of answers as losses, with the confidences in them as forecasts of being right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from verax.analyses.comparison.records import Model
from verax.analyses.comparison.result import Comparison
from verax.analyses.comparison.ungraded import Ungraded
from verax.errors import InputError, Offenders, Remedy, passing, show
from verax.inputs.arrays import Floats, to_array, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import missing
from verax.inputs.handles import Handle
from verax.scores.base import Rule, losses_of
from verax.scores.grades import Grade

# If more than this share of the confidences exceeds 1, they are probably percentages.
_MOST = 0.5


def grade_scale(grade_range: object) -> Grade:
    """The range of grades, checked."""
    ends = tuple(grade_range) if isinstance(grade_range, (tuple, list)) else ()
    if len(ends) != 2 or not all(isinstance(end, (int, float)) for end in ends):
        raise InputError(
            f"must be the worst and the best possible grade, such as (0, 1), not {show(grade_range)}",
            argument="grade_range",
            kind="type",
        )
    return Grade(float(ends[0]), float(ends[1]))


def check_graded(handle: Handle, scale: Grade, ungraded: Ungraded) -> Grade:
    """The range of the grades of a handle; refuse options that must be stated when opening it."""
    if handle.graded is None:
        raise InputError(
            "must be graded answers",
            argument="grades",
            kind="type",
            found=f"{handle.name} has {'top lists' if handle.lists else 'probabilities'}",
            remedies=[Remedy("Name the columns of grades: `scan(..., grades=...)`.", python_only=True)],
        )
    opened_with: Grade = handle.graded
    if scale not in (opened_with, Grade()):
        raise InputError(
            "must not be given beside answers that `scan` has opened",
            argument="grade_range",
            remedies=[Remedy("Say it when opening them: `scan(...)`.", python_only=True)],
        )
    if ungraded == "wrong":
        raise InputError(
            "must not be 'wrong' for answers that `scan` has opened",
            argument="ungraded",
            remedies=[Remedy("Fill in the worst grade in the column.", python_only=True)],
        )
    return opened_with


def read_grades(grades: object, scale: Grade, source: str = "") -> Floats:
    """Grades as numbers; NaN for answers without one. Grades outside their range are refused."""
    values = _numbers(grades, "grades", source)
    outside = Offenders("grades", f"must lie between {scale.low:g} and {scale.high:g}", "value")
    outside.add((values < scale.low) | (values > scale.high), values, 0)
    if outside.count:
        known = values[np.isfinite(values)]
        ends = min(scale.low, float(known.min(initial=0.0))), float(known.max(initial=scale.high))
        remedy = passing("if grades are on another scale", grade_range=ends)
        raise outside.error(remedy).replace(source=source)
    return values


def _numbers(column: object, argument: str, source: str) -> Floats:
    """One number per row; NaN for None and missing values of pandas."""
    raw = to_host(to_array(column, argument)[0])
    if raw.dtype == object and raw.ndim == 1:
        known = np.where(missing(raw), np.nan, raw)
        raw = known.astype(float) if all(isinstance(v, (bool, int, float)) for v in known) else raw
    if raw.ndim != 1 or raw.dtype.kind not in "biuf":
        shown = f", such as {show(raw.flat[0])}" if raw.size and raw.dtype.kind in "OUS" else ""
        raise InputError(
            "must be one number per row, missing where there is none",
            argument=argument,
            kind="type",
            source=source,
            found=f"its shape is {raw.shape} and its type {raw.dtype}{shown}",
            remedies=[Remedy("Grade answers first: 1 for right, 0 for wrong.")],
        )
    return raw.astype(float)


def right_or_wrong(grades: Floats, scale: Grade, source: str = "") -> Floats:
    """Grades as 1 for right, 0 for wrong and NaN for none; others are refused."""
    between = Offenders("grades", "must be right or wrong, for confidences to be about", "value")
    between.add((grades > scale.low) & (grades < scale.high), grades, 0)
    if between.count:
        raise between.error().replace(source=source)
    return np.where(np.isnan(grades), np.nan, (grades == scale.high).astype(float))


def read_confidences(
    confidences: object, n: int, *, skip: bool, percent: bool = False, source: str = ""
) -> Floats:
    """Probabilities that answers are right; NaN for missing ones, and for invalid ones that are skipped."""
    p = _numbers(confidences, "forecasts", source)
    if len(p) != n:
        raise InputError(
            f"must be {n} confidences, one per answer",
            argument="forecasts",
            kind="length",
            source=source,
            found=f"there are {len(p)}",
        )
    p = p / 100 if percent else p
    bad = Offenders("forecasts", "must be probabilities between 0 and 1", "sign")
    bad.add((p < 0) | (p > 1), p, 0)
    if not bad.count:
        return p
    known = p[~np.isnan(p)]
    if np.mean(known > 1) > _MOST and known.max() <= 100:
        divided = Remedy("Divide percentages by 100 (--percent on the command line).")
        raise bad.error(divided).replace(source=source)
    if not skip:
        raise bad.error(passing("to score the other confidences", invalid="skip")).replace(source=source)
    return np.where((p < 0) | (p > 1), np.nan, p)


def confidence_losses(right: Floats, p: Floats, rules: Sequence[Rule]) -> dict[Rule, Floats]:
    """Losses of confidences by each rule; NaN if the grade or the confidence is missing."""
    both = ~np.isnan(right) & ~np.isnan(p)
    losses: dict[Rule, Floats] = {rule: np.full(len(right), np.nan) for rule in rules}
    if both.any():
        rows = Forecasts(right[both].astype(np.int64), p[both])
        for rule, of_rule in zip(rules, losses_of(list(rules), rows), strict=True):
            losses[rule][both] = to_host(of_rule)
    return losses


def in_grades(comparison: Comparison, top: float) -> Comparison:
    """The comparison of grades, which are `top` minus their losses: higher is better."""

    def turned(by_rule: dict[str, list[Any]], turn: Callable[[Any], Any]) -> dict[str, list[Any]]:
        return {rule: [turn(line) for line in lines] for rule, lines in by_rule.items()}

    return replace(
        comparison,
        models=turned(comparison.models, lambda model: _grade(model, top)),
        differences=turned(comparison.differences, lambda gap: gap.other_way),
        answers=turned(
            comparison.answers, lambda line: replace(line, low=top - line.high, high=top - line.low)
        ),
        gap_bounds=turned(comparison.gap_bounds, lambda ends: replace(ends, low=-ends.high, high=-ends.low)),
        peers=turned(comparison.peers, lambda model: _grade(model, 0.0)),
    )


def _grade(model: Model, top: float) -> Model:
    """The mean grade of a model, from its mean loss."""
    return replace(
        model,
        mean=top - model.mean,
        finite_mean=top - model.finite_mean,
        interval=(-model.interval).shifted(top),
    )
