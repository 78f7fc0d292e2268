"""Grades of a judge corrected by people, and reduced repeats: coverage of their intervals."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np

import verax as vx
from covers.claims import Measure, claim, share_of

Draw = Callable[[np.random.Generator], bool]


def measured(draw: Draw) -> Measure:
    """How often an interval covers; `draw` makes one sample."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        return share_of([draw(np.random.default_rng([seed, i])) for i in range(replications)])

    return measure


def _holds(interval: tuple[float, float], truth: float) -> bool:
    return interval[0] <= truth <= interval[1]


def right_or_wrong(n: int, checked: int, share: float, hit: float, false: float) -> Draw:
    """A judge that says right to `hit` of the right answers and to `false` of the wrong ones."""

    def draw(rng: np.random.Generator) -> bool:
        truth = rng.random(n) < share
        judge = np.where(truth, rng.random(n) < hit, rng.random(n) < false).astype(float)
        known = np.where(rng.permutation(n) < checked, truth, np.nan)
        return _holds(vx.evaluate_grades(known, judge=judge, checks="random").corrected.interval, share)

    return draw


def rubric(n: int, checked: int) -> Draw:
    """Grades in fifths with a mean of .82; a judge with noise, who is kinder to bad answers."""
    steps, chance = np.arange(6) / 5, np.array([0.03, 0.03, 0.05, 0.12, 0.25, 0.52])
    truth = float(steps @ chance)

    def draw(rng: np.random.Generator) -> bool:
        grades = rng.choice(steps, n, p=chance)
        judge = np.clip(np.round(5 * (0.2 + 0.8 * grades + rng.normal(0, 0.15, n))) / 5, 0, 1)
        known = np.where(rng.permutation(n) < checked, grades, np.nan)
        return _holds(vx.evaluate_grades(known, judge=judge, checks="random").corrected.interval, truth)

    return draw


def of_questions(questions: int, checked: int, *, unequal: bool) -> Draw:
    """Questions asked 4 times, or 1 to 12 times, and checked whole."""

    def draw(rng: np.random.Generator) -> bool:
        times = rng.integers(1, 13, questions) if unequal else np.full(questions, 4)
        question = np.repeat(np.arange(questions), times)
        truth = (rng.random(len(question)) < rng.beta(3, 1, questions)[question]).astype(float)
        kind = (rng.random(questions) < 0.3)[question]
        judge = np.where(
            truth == 1, rng.random(len(truth)) < 0.95, rng.random(len(truth)) < 0.15 + 0.5 * kind
        )
        seen = np.isin(question, rng.choice(questions, checked, replace=False))
        found = vx.evaluate_grades(
            np.where(seen, truth, np.nan), judge=judge.astype(float), groups=question, checks="random"
        )
        return _holds(found.corrected.interval, 0.75)

    return draw


def by_grade(n: int, checked: tuple[int, int], share: float, *, weights: bool) -> Draw:
    """Checks drawn by the judge's grade, wrong ones more often."""

    def draw(rng: np.random.Generator) -> bool:
        truth = rng.random(n) < share
        judge = np.where(truth, rng.random(n) < 0.93, rng.random(n) < 0.3).astype(float)
        known, chance = np.full(n, np.nan), np.ones(n)
        for grade, wanted in zip((0.0, 1.0), checked, strict=True):
            rows = np.flatnonzero(judge == grade)
            chance[rows] = wanted / len(rows)
            drawn = rng.choice(rows, wanted, replace=False)
            known[drawn] = truth[drawn]
        found = vx.evaluate_grades(known, judge=judge, checks=chance if weights else "by-grade")
        return _holds(found.corrected.interval, share)

    return draw


def two_models(n: int, checked: int, gap: float, *, kinder: bool, apart: bool = False) -> Draw:
    """The difference of two models whose judge may be kinder to the second."""
    errors = {"a": (0.9, 0.2), "b": (0.97, 0.5) if kinder else (0.9, 0.2)}

    def draw(rng: np.random.Generator) -> bool:
        ease = rng.uniform(0.4, 0.9, n)
        human, judge = {}, {}
        seen = rng.permutation(n) < checked
        for name, chance in (("a", ease), ("b", ease + gap)):
            truth = rng.random(n) < chance
            hit, false = errors[name]
            judge[name] = np.where(truth, rng.random(n) < hit, rng.random(n) < false).astype(float)
            seen = rng.permutation(n) < checked if apart else seen
            human[name] = np.where(seen, truth, np.nan)
        found = vx.compare_grades(human, judge=judge, checks="random")
        return _holds(found.difference("b", "a").interval, gap)

    return draw


def bias_of_judge(checked: int, hit: float, false: float) -> Draw:
    """The judge's mean grade minus that of people."""
    truth_of = 0.8 * hit + 0.2 * false - 0.8

    def draw(rng: np.random.Generator) -> bool:
        truth = rng.random(800) < 0.8
        judge = np.where(truth, rng.random(800) < hit, rng.random(800) < false).astype(float)
        known = np.where(rng.permutation(800) < checked, truth, np.nan)
        return _holds(vx.evaluate_grades(known, judge=judge, checks="random").bias.interval, truth_of)

    return draw


def reduced(k: str, questions: int, times: tuple[int, int], shape: tuple[float, float]) -> Draw:
    """pass@k and pass^k of questions whose chances are beta distributed."""
    a, b = shape
    n = int(k.split("@")[-1].split("^")[-1])

    def moment(first: float, second: float) -> float:
        return float(np.prod([(first + i) / (first + second + i) for i in range(n)]))

    truth = 1 - moment(b, a) if "@" in k else moment(a, b)

    def draw(rng: np.random.Generator) -> bool:
        asked = rng.integers(times[0], times[1] + 1, questions)
        ids = np.repeat(np.arange(questions), asked)
        grades = (rng.random(len(ids)) < rng.beta(a, b, questions)[ids]).astype(float)
        return _holds(vx.pass_at_k(grades, k, ids=ids).scores[0].interval, truth)

    return draw


def reduced_difference(questions: int, k: int) -> Draw:
    """The difference of pass@k of two models that were asked 10 and 8 times."""

    def truth_of(power: float) -> float:
        # Of 1 - (1 - u)^power with u uniform: the mean of 1 - (1 - u)^(power k).
        return 1 - 1 / (power * k + 1)

    truth = truth_of(2.0) - truth_of(1.0)

    def draw(rng: np.random.Generator) -> bool:
        ease = rng.random((questions, 1))
        models = {
            "a": (rng.random((questions, 10)) < 1 - (1 - ease) ** 2).astype(float),
            "b": (rng.random((questions, 8)) < ease).astype(float),
        }
        return _holds(vx.pass_at_k(models, k).differences[0].interval, truth)

    return draw


def _vote(n: int, chance: float) -> float:
    return sum(comb(n, i) * chance**i * (1 - chance) ** (n - i) for i in range(n // 2 + 1, n + 1))


def majority(questions: int, k: int) -> Draw:
    """The majority of k of 9 answers, where half of the questions are hard."""
    truth = (_vote(k, 0.3) + _vote(k, 0.8)) / 2

    def draw(rng: np.random.Generator) -> bool:
        chance = np.where(rng.random(questions) < 0.5, 0.3, 0.8)
        grades = (rng.random((questions, 9)) < chance[:, None]).astype(float)
        return _holds(vx.pass_at_k(grades, f"majority of {k}").scores[0].interval, truth)

    return draw


def claims_of_judges() -> None:
    """Register the claims."""
    for n, checked, share, hit, false in (
        (300, 30, 0.6, 0.9, 0.2),
        (300, 40, 0.92, 0.98, 0.5),
        (1000, 80, 0.75, 0.95, 0.4),
        (2000, 60, 0.96, 0.9, 0.1),
        (1000, 150, 0.3, 0.8, 0.05),
    ):
        name = (
            f"judges: corrected mean, {checked} of {n} checked, {share:g} right, judge {hit:g} and {false:g}"
        )
        claim(name, 0.92, 0.995, measured(right_or_wrong(n, checked, share, hit, false)), 2000)
    for checked in (40, 120):
        claim(
            f"judges: corrected mean, rubric, {checked} checked",
            0.93,
            0.995,
            measured(rubric(600, checked)),
            2000,
        )
    for questions, checked, unequal in ((120, 30, False), (120, 40, True), (60, 45, True)):
        times = "1 to 12" if unequal else "4"
        name = f"judges: corrected mean, {checked} of {questions} questions checked, asked {times} times"
        claim(name, 0.93, 0.995, measured(of_questions(questions, checked, unequal=unequal)), 2000)
    for weights in (False, True):
        how = "probabilities" if weights else "strata"
        draw = by_grade(1000, (60, 60), 0.75, weights=weights)
        claim(f"judges: corrected mean, checked by grade, {how}", 0.92, 0.985, measured(draw), 1000)
    for checked, gap, kinder, apart in (
        (50, 0.0, True, False),
        (100, 0.06, True, False),
        (100, 0.06, False, False),
        (150, 0.06, True, True),
    ):
        words = ", kinder to one" if kinder else ""
        words += ", each checked on its own" if apart else ""
        draw = two_models(600, checked, gap, kinder=kinder, apart=apart)
        claim(f"judges: difference, {checked} checked, {gap:g}{words}", 0.93, 0.985, measured(draw), 1000)
    for checked, hit, false in ((60, 0.97, 0.5), (200, 0.9, 0.2)):
        name = f"judges: bias, {checked} checked, judge {hit:g} and {false:g}"
        claim(name, 0.93, 0.995, measured(bias_of_judge(checked, hit, false)), 1000)
    for k, questions, times, shape in (
        ("pass@5", 40, (10, 10), (0.5, 0.5)),
        ("pass@5", 150, (5, 15), (1.0, 2.0)),
        ("pass@10", 100, (10, 10), (0.4, 1.2)),
        ("pass^5", 60, (8, 8), (2.0, 1.0)),
        ("pass^8", 100, (10, 10), (1.0, 3.0)),
    ):
        asked = f"{times[0]} times" if times[0] == times[1] else f"{times[0]} to {times[1]} times"
        name = (
            f"reduced repeats: {k}, {questions} questions asked {asked}, beta {shape[0]:g} and {shape[1]:g}"
        )
        claim(name, 0.92, 0.99, measured(reduced(k, questions, times, shape)), 1000)
    for questions, k in ((60, 1), (60, 5), (200, 3)):
        name = f"reduced repeats: difference of pass@{k}, {questions} questions"
        claim(name, 0.93, 0.985, measured(reduced_difference(questions, k)), 1000)
    claim("reduced repeats: majority of 5, 60 questions", 0.93, 0.98, measured(majority(60, 5)), 1000)


claims_of_judges()
