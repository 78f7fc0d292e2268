"""Grades of logs in which answers are missing where questions are hard: question means, bounds, verdicts."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import verax as vx
from covers.claims import Measure, claim, share_of

# Samples of each design.
_SAMPLES = 400
Floats = np.ndarray[Any, np.dtype[np.float64]]


def asked(rng: np.random.Generator, n: int, epochs: int, right: float) -> tuple[Floats, Floats]:
    """Chances of a right answer to n questions, which differ, and the grades of their epochs."""
    ease = rng.beta(2 * right, 2 * (1 - right), n)
    return ease, (rng.random((n, epochs)) < ease[:, None]).astype(float)


def beside(n: int, epochs: int) -> dict[str, Any]:
    """The question of each answer, and which of its epochs it is."""
    return {"ids": np.repeat(np.arange(n), epochs), "epochs": np.tile(np.arange(epochs), n)}


@cache
def failing(n: int, epochs: int, right: float, replications: int, seed: int) -> dict[str, list[bool]]:
    """Epochs fail with a chance that grows with the difficulty, of which one never does."""
    hits: dict[str, list[bool]] = {"mean grade": [], "of answers": []}
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        ease, grades = asked(rng, n, epochs, right)
        failed = rng.random(grades.shape) < 0.85 * (1 - ease[:, None])
        failed[:, 0] = False
        reasons = np.where(failed, "error", "").ravel()
        grades[failed] = np.nan
        card = vx.evaluate_grades(grades.ravel(), **beside(n, epochs), reasons=reasons)
        hits["mean grade"].append(card.interval.low <= right <= card.interval.high)
        known = ~failed.ravel()
        of_answers = vx.evaluate_grades(grades.ravel()[known], groups=np.repeat(np.arange(n), epochs)[known])
        hits["of answers"].append(of_answers.interval.low <= right <= of_answers.interval.high)
    return hits


def mean_covered(n: int, epochs: int, right: float, what: str) -> Measure:
    """How often the interval holds the mean over questions; `what` says which means are averaged."""
    return lambda replications, seed: share_of(failing(n, epochs, right, replications, seed)[what])


def bounds_covered(n: int, epochs: int, right: float, lost: float) -> Measure:
    """How often the interval of bounds holds the mean grade that all answers deserve.

    Answers are lost for no reason that the log knows, wrong ones far more often.
    """

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            _, grades = asked(rng, n, epochs, right)
            grades[rng.random(grades.shape) < np.where(grades == 1, lost / 4, lost)] = np.nan
            card = vx.evaluate_grades(grades.ravel(), **beside(n, epochs))
            interval = card.interval if card.bounds_interval is None else card.bounds_interval
            hits.append(interval.low <= right <= interval.high)
        return share_of(hits)

    return measure


@cache
def cut(n: int, share: float, replications: int, seed: int) -> dict[str, list[bool]]:
    """Two models, of which one is better by 0.03, but for its answers to hard questions that are cut.

    The log grades these 0, so that it is worse by 0.007.
    """
    hits: dict[str, list[bool]] = {"as graded": [], "without grades": [], "dropped": []}
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        ease = rng.random(n)
        a, b = ((rng.random(n) < np.minimum(ease + gain, 1)).astype(float) for gain in (0.03, 0.0))
        stopped = rng.random(n) < 2 * share * (1 - ease)
        a[stopped] = 0.0
        none = np.where(stopped, np.nan, a)
        reasons = {"a": np.where(stopped, "limit", ""), "b": np.full(n, "")}
        # No reason, no grade: nothing says that the answers are wrong.
        ways = {
            "as graded": vx.compare_grades({"a": a, "b": b}, reasons=reasons),
            "without grades": vx.compare_grades({"a": none, "b": b}),
            "dropped": vx.compare_grades({"a": none, "b": b}, ungraded="exclude"),
        }
        for way, found in ways.items():
            hits[way].append(found.verdict.about("best_model") == ("a",))
    return hits


def claimed_better(n: int, share: float, way: str) -> Measure:
    """How often the worse model is said to be better."""
    return lambda replications, seed: share_of(cut(n, share, replications, seed)[way])


def unequal_groups(n: int, right: float) -> Measure:
    """Questions in groups of very unequal size."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            sizes = np.ceil(rng.pareto(1.3, n) * 2 + 1).clip(1, 60).astype(int)
            group = np.repeat(np.arange(n), sizes)
            ease = rng.beta(4 * right, 4 * (1 - right), n)
            found = vx.evaluate_grades((rng.random(len(group)) < ease[group]).astype(float), groups=group)
            hits.append(found.interval.low <= right <= found.interval.high)
        return share_of(hits)

    return measure


def near_one(n: int, collapse: float) -> Measure:
    """Continuous grades near 1, of which a few collapse."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits, truth = [], (1 - collapse) * (1 - 0.4 * 0.02) + collapse * 0.15
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            fine = 1 - rng.gamma(0.4, 0.02, n).clip(0, 1)
            grades = np.where(rng.random(n) < collapse, 0.3 * rng.random(n), fine)
            found = vx.evaluate_grades(grades)
            hits.append(found.interval.low <= truth <= found.interval.high)
        return share_of(hits)

    return measure


def claims_of_the_estimand() -> None:
    """Coverage with answers missing by difficulty, and how often a worse model is said to be better."""
    for n, epochs, right in ((40, 8, 0.5), (100, 5, 0.5), (60, 5, 0.8), (300, 4, 0.7)):
        name = f"{n} questions, {epochs} epochs, {right:g} right, failing where hard"
        measure = mean_covered(n, epochs, right, "mean grade")
        claim(f"estimand: mean grade, {name}", 0.93, 0.98, measure, _SAMPLES)
    name = "100 questions, 5 epochs, 0.5 right, failing where hard"
    answers = mean_covered(100, 5, 0.5, "of answers")
    claim(f"estimand: mean over answers, {name}", 0.0, 0.5, answers, _SAMPLES)
    for n, epochs, right, lost in ((40, 1, 0.96, 0.3), (60, 3, 0.7, 0.2), (150, 1, 0.9, 0.1)):
        design = f"{n} questions, {epochs} epochs, {right:g} right, {lost:g} of wrong answers lost"
        measure = bounds_covered(n, epochs, right, lost)
        claim(f"estimand: bounds of the mean grade, {design}", 0.93, 1.0, measure, _SAMPLES)
    ways = {"as graded": (0.0, 0.03), "without grades": (0.0, 0.03), "dropped": (0.3, 1.0)}
    for way, (least, most) in ways.items():
        design = f"{way}, 2,000 questions, 0.1 cut"
        measure = claimed_better(2000, 0.1, way)
        claim(f"estimand: worse model said to be better, {design}", least, most, measure, _SAMPLES)
    for n, right in ((30, 0.7), (60, 0.9)):
        name = f"estimand: mean grade, {n} groups of very unequal size, {right:g} right"
        claim(name, 0.92, 0.98, unequal_groups(n, right), _SAMPLES)
    for n in (60, 150):
        name = f"estimand: mean grade, {n} grades near 1, 0.02 collapse"
        claim(name, 0.93, 1.0, near_one(n, 0.02), _SAMPLES)


claims_of_the_estimand()
