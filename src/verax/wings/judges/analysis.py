"""`judged_grades`: the mean grade of a judge's answers, corrected by those of people."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax.analyses.comparison.grades import grade_scale, read_grades
from verax.common.ids import numbered
from verax.errors import InputError, Remedy, passing, show
from verax.inference.intervals import check_confidence
from verax.inputs.arrays import Floats, Ints, to_array, to_host
from verax.inputs.questions import column_of
from verax.scores.grades import Grade
from verax.wings.judges.agreement import agreement, alpha, bias, correlation
from verax.wings.judges.corrected import (
    JudgedAnswers,
    chosen_by_judge,
    corrected_mean,
    pad_of,
    stratified,
)
from verax.wings.judges.result import Design, GradeEstimate, JudgedGrades, JudgedShare
from verax.wings.repeats.unitmeans import PAD, PAD_BETWEEN, UnitMean

RANDOM, BY_GRADE, BY_HAND = "random", "by-grade", "by-hand"
# With fewer checked answers there is no correction.
_FEWEST = 3
# A judge with more different grades has no strata.
_MOST_STRATA = 10
# Below these p-values of random choice, checks are doubted, and refused.
_DOUBTED, _REFUSED = 0.01, 0.001
# Weighted means of fewer effective checks are doubted.
_FEW_WEIGHTED = 100


@dataclass(frozen=True)
class Checks:
    """Grades by a judge and by people of one model, and how the checked answers were chosen.

    Attributes
    ----------
    judged : JudgedAnswers
        The grades, without answers that the judge left ungraded.
    rows : array of shape (N,)
        The places of these among all answers.
    people : array of shape (N, R)
        The grade of each person.
    design : {"random", "by-grade", "probabilities"}
        How checked answers were chosen.
    stated : bool
        Whether that was stated.
    left : int
        The number of answers that the judge left ungraded.
    """

    judged: JudgedAnswers
    rows: Ints
    people: Floats
    design: Design
    stated: bool
    left: int


def judged_grades(
    human: object,
    judge: object,
    *,
    checks: object = None,
    grade_range: tuple[float, float] = (0.0, 1.0),
    groups: object = None,
    confidence: float = 0.95,
) -> JudgedGrades:
    """The mean grade that people would give to all answers; see `evaluate_grades`."""
    check_confidence(confidence)
    scale = grade_scale(grade_range)
    found = read_checks(human, judge, checks, scale, groups)
    return _result(found, scale, confidence)


def read_checks(
    human: object, judge: object, checks: object, scale: Grade, groups: object, source: str = ""
) -> Checks:
    """Grades by a judge and by people, checked; refuses choices of answers that nothing can correct."""
    by_judge = read_grades(_column(judge, "judge", source), scale, source)
    people = _people(human, scale, len(by_judge), source)
    rows = np.flatnonzero(~np.isnan(by_judge))
    people = people[rows]
    known = ~np.isnan(people)
    by_people = np.divide(
        np.where(known, people, 0.0).sum(axis=1),
        known.sum(axis=1),
        where=known.any(axis=1),
        out=np.full(len(rows), np.nan),
    )
    if known.any(axis=1).sum() < _FEWEST:
        raise InputError(
            f"must have the grades that people gave to {_FEWEST} answers or more that the judge graded",
            argument="grades",
            kind="length",
            source=source,
            found=f"there are {int(known.any(axis=1).sum())}",
            remedies=[Remedy("People's grades are `grades`, with gaps; the judge's are `judge`.")],
        )
    design, weights = _design(checks, len(by_judge), source)
    codes = _codes(groups, len(by_judge), rows, source)
    chances = None if weights is None else 1 / weights[rows]
    judged = JudgedAnswers(by_people, by_judge[rows], codes, chances)
    if design == BY_GRADE:
        _refuse_strata(judged, source)
    elif design == RANDOM:
        _refuse_choice(judged, stated=checks is not None, source=source)
    left = len(by_judge) - len(rows)
    return Checks(judged, rows, people, design, checks is not None, left)


def _column(values: object, argument: str, source: str) -> Any:
    raw = to_host(to_array(values, argument)[0])
    if raw.ndim != 1:
        raise InputError(
            "must be the grades of one judge, one per answer",
            argument=argument,
            kind="type",
            source=source,
            found=f"the shape is {raw.shape}",
            remedies=[Remedy("Correct each judge on its own, or average them first.")],
        )
    return raw


def _people(human: object, scale: Grade, n: int, source: str) -> Floats:
    """(N, R) grades by people."""
    raw = to_host(to_array(human, "grades")[0])
    columns = [raw] if raw.ndim == 1 else list(raw.T) if raw.ndim == 2 else []
    if not columns or len(raw) != n:
        raise InputError(
            f"must be {n} grades by people, one per answer, with a column for each person",
            argument="grades",
            kind="length",
            source=source,
            found=f"the shape is {raw.shape}, and the judge graded {n}",
        )
    return np.stack([read_grades(column, scale, source) for column in columns], axis=1)


def _design(checks: object, n: int, source: str) -> tuple[Design, Floats | None]:
    """How checked answers were chosen, with the probability of each where these are known."""
    if checks is None or (isinstance(checks, str) and checks == RANDOM):
        return "random", None
    if isinstance(checks, str) and checks == BY_GRADE:
        return "by-grade", None
    if isinstance(checks, str):
        by_hand = checks == BY_HAND
        raise InputError(
            "must be 'random', 'by-grade', or the probability of each answer to be checked",
            argument="checks",
            values=[checks],
            found="answers that were chosen by hand, or because the judge failed, tell nothing of the others"
            if by_hand
            else f"it is {show(checks)}",
            remedies=[Remedy("Let people grade answers that are drawn at random.")] if by_hand else [],
        )
    values = column_of(checks, source, n, "checks").astype(float)
    bad = np.flatnonzero(~((values > 0) & (values <= 1)))
    if len(bad):
        raise InputError(
            "must be probabilities of being checked, above 0 and at most 1",
            argument="checks",
            kind="sign",
            source=source,
            found=f"row {bad[0]} holds {values[bad[0]]:g}",
            rows=bad[:3].tolist(),
            count=len(bad),
        )
    return "probabilities", values


def _codes(groups: object, n: int, rows: Ints, source: str) -> Ints | None:
    if groups is None:
        return None
    codes, _ = numbered([column_of(groups, source, n, "groups")[rows]])
    return np.asarray(np.unique(np.asarray(codes[0]), return_inverse=True)[1])


def _refuse_strata(judged: JudgedAnswers, source: str) -> None:
    grades, counts = np.unique(judged.judge[judged.checked], return_counts=True)
    every = np.unique(judged.judge)
    argument: dict[str, Any] = {"argument": "checks", "source": source}
    if len(every) > _MOST_STRATA:
        raise InputError(
            f"can be 'by-grade' where the judge gives at most {_MOST_STRATA} different grades",
            found=f"there are {len(every)}",
            remedies=[Remedy("Pass the probability of each answer to be checked.")],
            **argument,
        )
    if judged.groups is not None:
        raise InputError(
            "cannot be 'by-grade' where answers belong to groups",
            found="repeats of a question, or answers with groups",
            remedies=[Remedy("Pass the probability of each answer to be checked.")],
            **argument,
        )
    least = {float(grade): 0 for grade in every} | dict(zip(grades.tolist(), counts.tolist(), strict=True))
    grade, count = min(least.items(), key=lambda item: item[1])
    if count < 2:
        raise InputError(
            "must include two answers or more of every grade of the judge",
            found=f"of grade {grade:g} there {'is' if count == 1 else 'are'} {count}",
            **argument,
        )


def _refuse_choice(judged: JudgedAnswers, *, stated: bool, source: str) -> None:
    if stated or not chosen_by_judge(judged) < _REFUSED:
        return
    seen = judged.checked
    raise InputError(
        "must state how the checked answers were chosen, which was not at random",
        argument="checks",
        kind="missing",
        source=source,
        found=f"the judge's mean grade is {judged.judge[seen].mean():.3g} of checked answers and "
        f"{judged.judge[~seen].mean():.3g} of others",
        remedies=[
            passing("if they were drawn among answers of the same grade by the judge", checks=BY_GRADE),
            passing("for the probability of each answer to be checked", checks=...),
        ],
    )


def _result(found: Checks, scale: Grade, confidence: float) -> JudgedGrades:
    judged, bounds = found.judged, (scale.low, scale.high)
    people_pad = PAD_BETWEEN if pad_of(judged.human, bounds) == PAD_BETWEEN else PAD
    if found.design == BY_GRADE:
        judged, people = _by_grade(judged)
        value, interval, variance = stratified(found.judged, bounds, confidence)
        tuning = 1.0
    else:
        people = judged.among_checked(judged.human)
        corrected = corrected_mean(judged)
        value, variance, tuning = corrected.mean.value, corrected.mean.variance, corrected.tuning
        interval = corrected.mean.within(bounds, confidence, pad_of(judged.human, bounds))
    of_people = people.within(bounds, confidence, people_pad)
    interval = interval.by(f"{interval.method}, corrected by people", of_people.caution)
    agreed, off = agreement(judged), bias(judged, scale.high - scale.low)
    several = None
    if found.people.shape[1] > 1:
        agreed_people, ends = alpha(found.people, confidence)
        several = GradeEstimate("agreement of people (alpha)", agreed_people, ends)
    seen = judged.human[judged.checked]
    spread = float(np.std(seen, ddof=1))
    return JudgedGrades(
        GradeEstimate("corrected by people", value, interval),
        GradeEstimate("people alone", people.value, of_people),
        float(judged.judge.mean()),
        GradeEstimate("agreement of judge and people", agreed.value, agreed.within((0.0, 1.0), confidence)),
        GradeEstimate("judge minus people", off.value, off.interval(confidence)),
        correlation(judged),
        len(judged.judge),
        judged.n_checked,
        None if judged.groups is None else int(people.units),
        spread**2 / variance if variance > 0 else math.nan,
        tuning,
        found.design,
        found.stated,
        scale,
        confidence,
        several,
        found.people.shape[1],
        tuple(_cautions(found, value, bounds)),
        spread,
        tuple(_shares(found.judged, bounds)),
    )


def _shares(judged: JudgedAnswers, bounds: tuple[float, float]) -> list[JudgedShare]:
    """The answers by the judge's grade."""
    every = np.unique(judged.judge).tolist()
    shares = []
    for grade in every if len(every) <= _MOST_STRATA else []:
        these = judged.judge == grade
        people = judged.human[these & judged.checked]
        # Grades at both ends keep the spread of few checks from being nothing.
        deviation = float(np.std(np.r_[people, bounds]))
        mean = float(people.mean()) if len(people) else math.nan
        shares.append(JudgedShare(grade, float(these.mean()), len(people), mean, deviation))
    return shares


def _by_grade(judged: JudgedAnswers) -> tuple[JudgedAnswers, UnitMean]:
    """Answers that were checked by the judge's grade with the weight that each check has, and their mean."""
    grades, codes = np.unique(judged.judge, return_inverse=True)
    every = np.bincount(codes, minlength=len(grades))
    checked = np.bincount(codes[judged.checked], minlength=len(grades))
    weighted = replace(judged, weights=(every / checked)[codes])
    return weighted, weighted.among_checked(judged.human)


def _cautions(found: Checks, value: float, bounds: tuple[float, float]) -> list[str]:
    judged, said = found.judged, []
    if found.left:
        said.append(f"the judge left {found.left:,} answers ungraded, which are left out")
    if found.design == RANDOM and found.stated and chosen_by_judge(judged) < _DOUBTED:
        said.append("the judge's grades of checked answers differ from those of others")
    if found.design == "probabilities" and judged.effective < _FEW_WEIGHTED:
        said.append(f"unequal probabilities: the checks tell as much as {judged.effective:.0f}")
    if not bounds[0] <= value <= bounds[1]:
        said.append("the corrected mean lies outside the range of grades")
    return said
