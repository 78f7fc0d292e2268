"""`pass_at_k`: pass@k, pass^k, at least j of k, the majority and the best of k, over questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from verax.analyses.comparison.grades import grade_scale
from verax.common.checks import check_choice
from verax.common.ids import numbered
from verax.engines.pieces import all_pairs
from verax.errors import InputError, Remedy, passing
from verax.inference.estimates import holm
from verax.inference.intervals import check_confidence
from verax.inputs.arrays import Bools, Floats, Ints
from verax.scores.grades import Grade
from verax.wings.repeats.questions import Answers, Ungraded, read_answers
from verax.wings.repeats.reducers import Reducer, parsed
from verax.wings.repeats.result import RepeatDifference, RepeatScore, RepeatScores
from verax.wings.repeats.unitmeans import PAD, PAD_BETWEEN, UnitMean

# Where fewer questions are above zero, a whole question is added to the variance of pass^k.
_FEW_ABOVE = 5


def pass_at_k(
    grades: object,
    k: object = 1,
    *,
    ids: object = None,
    groups: object = None,
    grade_range: tuple[float, float] = (0.0, 1.0),
    ungraded: Ungraded = "exclude",
    fewer: Literal["refuse", "exclude"] = "refuse",
    confidence: float = 0.95,
) -> RepeatScores:
    """What k fresh answers to a question would give: pass@k and its kin, with intervals over questions.

    Each question counts once, however often it was asked. With n answers of which c are right, pass@k is
    1 - C(n-c, k) / C(n, k), which is unbiased for 1 - (1 - p)^k.

    Parameters
    ----------
    grades : array_like of shape (Q, n), or mapping of str to these
        A row per question, a column per repeat, missing where there is none; or, with `ids`, a grade per
        answer. Several models by name are compared on the questions that both have.
    k : int, str, or sequence of these, default 1
        What to compute. A number k or "pass@5": whether one of k answers is right. "pass^5": whether all are.
        "3 of 5": whether at least 3 of 5 are. "majority of 5": whether more than half are; an even number
        that is split counts half. "best of 5": the best grade of 5.
    ids : array_like of shape (N,), optional
        The question of each answer; by model name if models have different rows.
    groups : array_like, optional
        Labels of clusters of questions, such as passages; with `ids`, one for each answer.
    grade_range : tuple of two floats, default (0.0, 1.0)
        The worst and the best possible grade. All but "best of k" need grades that are one of these.
    ungraded : {"exclude", "wrong"}, default "exclude"
        What answers without a grade count as. In rows per question gaps are answers that there are not.
    fewer : {"refuse", "exclude"}, default "refuse"
        What to do where a question has fewer than k answers. "exclude" leaves it out and adds bounds.
    confidence : float, default 0.95
        Confidence level of the intervals.

    Returns
    -------
    RepeatScores
        Means, differences and intervals.

    Raises
    ------
    InputError
        If k is larger than the number of answers to some question; it names the largest k that all allow.

    See Also
    --------
    evaluate_grades : The mean grade.
    plan_repeats : Plan more repeats, or more questions.

    References
    ----------
    Chen et al. (2021), doi:10.48550/arXiv.2107.03374; Yao et al. (2024), doi:10.48550/arXiv.2406.12045

    Examples
    --------
    >>> import verax as vx
    >>> grades = [[1, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 1], [1, 1, 0, 1]]
    >>> found = vx.pass_at_k(grades, k=2)
    >>> score = found.score("pass@2")
    >>> round(score.value, 3), f"{score.interval:.2f}"
    (0.722, '0.28 to 0.95')
    """
    check_confidence(confidence)
    check_choice("fewer", fewer, ("refuse", "exclude"))
    scale = grade_scale(grade_range)
    reducers = parsed(k)
    answers = read_answers(grades, ids, groups, scale, ungraded)
    for name, of_model in answers.items():
        for reducer in reducers:
            _refuse(name, of_model, reducer, fewer)
    fine = {name: _between(of_model) for name, of_model in answers.items()}
    means, scores = {}, []
    for name, of_model in answers.items():
        for reducer in reducers:
            values = _values(of_model, reducer)
            means[name, reducer] = values
            scores.append(_score(name, of_model, reducer, values, scale, fine=fine[name], level=confidence))
    gaps = _differences(answers, reducers, means, scale, confidence)
    counts = np.concatenate([of_model.counts for of_model in answers.values()])
    first = next(iter(answers.values()))
    return RepeatScores(
        tuple(scores),
        tuple(gaps),
        len(first.ids),
        None if first.groups is None else len(set(first.groups.tolist())),
        int(counts.min()),
        int(counts.max()),
        confidence,
        tuple(_notes(answers)),
    )


def _between(answers: Answers) -> bool:
    return any(((values > 0) & (values < 1)).any() for values in answers.grades)


def _refuse(name: str, answers: Answers, reducer: Reducer, fewer: str) -> None:
    """Refuse reducers that the answers of a model do not allow."""
    source, counts = repr(name) if name else "", answers.counts
    if reducer.counts and _between(answers):
        raise InputError(
            f"must be right or wrong for {reducer.name}",
            argument="grades",
            source=source,
            found="some lie between the worst and the best grade",
            remedies=[
                Remedy("Grade answers as right from a threshold on."),
                passing("for the best grade", k=f"best of {reducer.k}"),
            ],
        )
    enough = int((counts >= reducer.k).sum())
    if enough < len(counts) and (fewer == "refuse" or enough < 2):
        remedies = [passing("to leave out the others, with bounds", fewer="exclude")] if enough >= 2 else []
        raise InputError(
            f"must be at most {counts.min()}, which every question allows",
            argument="k",
            source=source,
            found=f"{enough:,} of {len(counts):,} questions have {reducer.k} graded answers or more",
            values=[reducer.k],
            remedies=remedies,
        )


def _values(answers: Answers, reducer: Reducer) -> Floats:
    """The value of each question; NaN where it has fewer answers."""
    return np.array([reducer.of(values) if len(values) >= reducer.k else np.nan for values in answers.grades])


def _score(
    name: str,
    answers: Answers,
    reducer: Reducer,
    values: Floats,
    scale: Grade,
    *,
    fine: bool,
    level: float,
) -> RepeatScore:
    known = ~np.isnan(values)
    mean = _mean(values, known, answers.groups)
    above = int((values[known] > 0).sum())
    # Where pass^k is tiny, the questions that make it may not have been seen.
    rare = reducer.kind == "pass^" and reducer.k > 1 and above < _FEW_ABOVE
    interval = mean.within((0.0, 1.0), level, PAD_BETWEEN if fine or rare else PAD)
    ends = np.array(
        [
            (value, value) if known_here else reducer.bounds_of(len(grades), int(grades.sum()))
            for value, known_here, grades in zip(values, known, answers.grades, strict=True)
        ]
    ).mean(axis=0)
    value, least, most = mean.value, float(ends[0]), float(ends[1])
    if not reducer.counts:
        width = scale.high - scale.low
        value, least, most = (scale.low + width * share for share in (value, least, most))
        interval = interval.scaled(width).shifted(scale.low)
    return RepeatScore(name, reducer.name, value, interval, int(known.sum()), least, most)


def _mean(values: Floats, known: Bools, groups: Any) -> UnitMean:
    codes: Ints | None = None
    if groups is not None:
        (found,), _ = numbered([groups[known]])
        codes = np.asarray(np.unique(found, return_inverse=True)[1])
    return UnitMean.of(values[known], codes)


def _differences(
    answers: Mapping[str, Answers],
    reducers: Sequence[Reducer],
    values: Mapping[tuple[str, Reducer], Floats],
    scale: Grade,
    confidence: float,
) -> list[RepeatDifference]:
    names, gaps = list(answers), []
    for reducer in reducers:
        for i, j in all_pairs(len(names)):
            gaps.append(_difference(names[i], names[j], answers, reducer, values, scale, confidence))
    adjusted = holm(np.array([gap.p_value for gap in gaps]))
    return [replace(gap, p_adjusted=float(p)) for gap, p in zip(gaps, adjusted, strict=True)]


def _difference(
    a: str,
    b: str,
    answers: Mapping[str, Answers],
    reducer: Reducer,
    values: Mapping[tuple[str, Reducer], Floats],
    scale: Grade,
    confidence: float,
) -> RepeatDifference:
    """The paired difference of two models over the questions that both answered often enough."""
    place = {question: i for i, question in enumerate(answers[b].ids)}
    rows = [(i, place[q]) for i, q in enumerate(answers[a].ids) if q in place]
    if not rows:
        raise InputError(
            "must name some questions that two models share",
            argument="ids",
            kind="label",
            found=f"{a} and {b} share none",
        )
    of_a, of_b = np.array(rows).T
    gaps = values[a, reducer][of_a] - values[b, reducer][of_b]
    known = ~np.isnan(gaps)
    groups = None if answers[a].groups is None else answers[a].groups[of_a]
    mean = _mean(gaps, known, groups).with_unseen(gaps[known], 1.0)
    width = 1.0 if reducer.counts else scale.high - scale.low
    p = mean.p_value
    interval = mean.interval(confidence).scaled(width)
    return RepeatDifference(a, b, reducer.name, width * mean.value, interval, p, p, int(known.sum()))


def _notes(answers: Mapping[str, Answers]) -> list[str]:
    left = {name: of_model.left for name, of_model in answers.items() if of_model.left}
    return [
        f"{n:,} answers{f' of {name}' if name else ''} have no grade and are left out."
        for name, n in left.items()
    ]
