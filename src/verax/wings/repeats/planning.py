"""`plan_repeats`: whether to ask questions more often, or to ask more questions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from verax.analyses.comparison.grades import grade_scale
from verax.common.checks import check_number
from verax.common.results import Result
from verax.display.tables import Column, Table, Tabled
from verax.errors import InputError, Remedy
from verax.inference.findings import Claim, Finding, NextStep, WithVerdict
from verax.inference.intervals import check_confidence, t_quantile
from verax.inputs.arrays import Floats
from verax.wings.repeats.questions import Answers, Ungraded, read_answers

# Numbers of repeats, and multiples of the questions, that the table shows.
_REPEATS, _QUESTIONS = (1, 2, 4, 8, 16), (2, 4)


@dataclass(frozen=True)
class RepeatLine:
    """What a number of questions and repeats can show.

    Attributes
    ----------
    questions : int
        The number of questions.
    repeats : int
        How often each is asked.
    answers : int
        The number of answers.
    standard_error : float
        The standard error of the mean, or of the difference of two.
    smallest : float
        The smallest difference that is found with the power asked for; of one model half the width of the
        interval.
    """

    questions: int
    repeats: int
    answers: int
    standard_error: float
    smallest: float


@dataclass(frozen=True, repr=False, eq=False)
class RepeatPlan(WithVerdict, Tabled, Result):
    """What more repeats, or more questions, would show.

    Attributes
    ----------
    between : float
        The variance between questions of what a model would get, or of the difference of two.
    within : float
        The variance of one answer to a question, or of the difference of two.
    questions : int
        The number of questions of the pilot.
    repeats : float
        The harmonic mean of how often each was asked.
    best_repeats : float
        How often to ask each question at the given costs: infinite where questions do not differ.
    floor : float
        What `smallest` falls to with these questions, however often each is asked.
    lines : tuple of RepeatLine
        Other numbers of repeats and questions, the pilot's first.
    power : float or None
        The power of the smallest difference; None for one model.
    confidence : float
        Confidence level.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> ease = rng.random(60)[:, None]
    >>> grades = {"a": rng.random((60, 4)) < ease, "b": rng.random((60, 4)) < ease}
    >>> found = vx.plan_repeats(grades, cost_question=5)
    >>> round(found.lines[0].smallest, 3), round(found.floor, 3)
    (0.108, 0.0)
    """

    between: float
    within: float
    questions: int
    repeats: float
    best_repeats: float
    floor: float
    lines: tuple[RepeatLine, ...]
    power: float | None
    confidence: float

    def _findings(self) -> list[Finding]:
        what = "half-width of the interval" if self.power is None else "smallest difference that is found"
        now = self.lines[0]
        text = f"The {what} is {now.smallest:.3g} with {self.questions:,} questions asked "
        text += f"{self.repeats:.3g} times, and at best {self.floor:.2g} with these questions, however "
        text += "often each is asked."
        step = NextStep("ask more questions, once each")
        if math.isinf(self.best_repeats):
            step = NextStep("repeat these questions: they do not differ")
        elif self.best_repeats >= 1.5:
            step = NextStep(
                f"ask each question {self.best_repeats:.0f} times, and spend the rest on more questions"
            )
        return [Finding(Claim.ROWS_NEEDED, text, numbers={"smallest": now.smallest}, step=step)]

    def _heading(self) -> str:
        return f"verax repeats or questions: variance {self.between:.3g} between, {self.within:.3g} within"

    def _tables(self) -> list[Table]:
        head = "half-width" if self.power is None else f"smallest difference ({100 * self.power:g}% power)"
        columns = [
            Column("questions", "questions", ","),
            Column("repeats", "repeats", ","),
            Column("answers", "answers", ","),
            Column("standard_error", "standard error", ".4f"),
            Column("smallest", head, ".4f"),
        ]
        return [Table(columns, self.lines)]


def plan_repeats(
    grades: object,
    *,
    ids: object = None,
    cost_question: float = 0.0,
    cost_answer: float = 1.0,
    power: float = 0.8,
    grade_range: tuple[float, float] = (0.0, 1.0),
    ungraded: Ungraded = "exclude",
    confidence: float = 0.95,
) -> RepeatPlan:
    """Whether to ask questions more often, or to ask more questions.

    The variance of a mean over Q questions asked m times is (between + within / m) / Q. More repeats lower
    the second part only.

    Parameters
    ----------
    grades : array_like of shape (Q, n), or mapping of str to these
        The pilot: a row per question, a column per repeat; or, with `ids`, a grade per answer. Of two models
        by name their difference is planned for.
    ids : array_like of shape (N,), optional
        The question of each answer; by model name if models have different rows.
    cost_question : float, default 0.0
        What a question costs beside its answers: writing, checking, a long prompt.
    cost_answer : float, default 1.0
        What an answer costs.
    power : float, default 0.8
        The probability of finding the smallest difference.
    grade_range : tuple of two floats, default (0.0, 1.0)
        The worst and the best possible grade.
    ungraded : {"exclude", "wrong"}, default "exclude"
        What answers without a grade count as.
    confidence : float, default 0.95
        Confidence level of the tests.

    Returns
    -------
    RepeatPlan
        The variances, the best number of repeats at the costs given, and what other numbers can show.

    See Also
    --------
    plan : The number of questions for a difference.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> found = vx.plan_repeats(rng.random((60, 4)) < rng.random((60, 1)), cost_question=5)
    >>> round(found.within, 3), round(found.best_repeats, 1)
    (0.208, 5.3)
    """
    check_confidence(confidence)
    check_number("power", power, "must lie between 0 and 1", lambda p: 0 < p < 1)
    check_number("cost_question", cost_question, "must be a number of at least 0", lambda cost: cost >= 0)
    check_number("cost_answer", cost_answer, "must be a positive number", lambda cost: cost > 0)
    scale = grade_scale(grade_range)
    answers = read_answers(grades, ids, None, scale, ungraded)
    if isinstance(grades, Mapping) and len(answers) != 2:
        raise InputError("must be of one model, or of two by name", argument="grades", kind="length")
    width = scale.high - scale.low
    means, within, inverse = _of_questions(list(answers.values()))
    resampling = float(np.mean(within)) * width**2
    between = max(float(means.var(ddof=1)) * width**2 - resampling * inverse, 0.0)
    n, times = len(means), 1 / inverse
    goal = power if len(answers) == 2 else None

    def line(questions: int, repeats: float) -> RepeatLine:
        error = math.sqrt((between + resampling / repeats) / questions)
        size = error * _distance(questions - 1, goal, confidence)
        return RepeatLine(questions, round(repeats), round(questions * repeats), error, size)

    lines = [line(n, times), *(line(n, m) for m in _REPEATS if m != times)]
    lines += [line(factor * n, times) for factor in _QUESTIONS]
    best = max(1.0, math.sqrt(cost_question / cost_answer * resampling / between)) if between else math.inf
    floor = math.sqrt(between / n) * _distance(n - 1, goal, confidence)
    return RepeatPlan(between, resampling, n, times, best, floor, tuple(lines), goal, confidence)


def _of_questions(answers: list[Answers]) -> tuple[Floats, Floats, float]:
    """The means of questions, or their differences, the variances of an answer, and the mean of 1/repeats."""
    first = answers[0]
    if len(answers) == 1:
        used = [values for values in first.grades if len(values)]
        means = np.array([values.mean() for values in used])
        pairs = [(values, values) for values in used]
        within = np.array([values.var(ddof=1) for values in used if len(values) > 1])
    else:
        place = {question: i for i, question in enumerate(answers[1].ids)}
        pairs = [
            (values, answers[1].grades[place[q]])
            for q, values in zip(first.ids, first.grades, strict=True)
            if q in place and len(values) and len(answers[1].grades[place[q]])
        ]
        means = np.array([a.mean() - b.mean() for a, b in pairs])
        both = [(a, b) for a, b in pairs if len(a) > 1 and len(b) > 1]
        within = np.array([a.var(ddof=1) + b.var(ddof=1) for a, b in both])
    if len(means) < 3 or not len(within):
        raise InputError(
            "must have 3 questions or more, and some that were asked twice or more",
            argument="grades",
            kind="length",
            found=f"there are {len(means)} questions, {len(within)} of them repeated",
            remedies=[Remedy("Without repeats only more questions can be planned for: `plan`.")],
        )
    return means, within, float(np.mean([(1 / len(a) + 1 / len(b)) / 2 for a, b in pairs]))


def _distance(freedom: float, power: float | None, confidence: float) -> float:
    """The distance from zero, in standard errors, that is found with a power; without one the t quantile."""
    from scipy.optimize import brentq
    from scipy.special import nctdtr

    limit = t_quantile(freedom, confidence)
    if power is None:
        return limit

    def lacking(distance: float) -> float:
        # Far from zero there is no value below the limits, and the function that gives it is NaN.
        missed, other = np.nan_to_num(nctdtr(freedom, distance, [limit, -limit]))
        return float(1 - missed + other) - power

    return float(brentq(lacking, 0, limit + 10))
