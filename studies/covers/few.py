"""Where few units differ or are unlike the others: margins, grades near 1, means that few groups dominate."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

import verax as vx
from covers.claims import Measure, claim, share_of

# Differences of units that differ, and their mean.
Gaps = Callable[[np.random.Generator, int], np.ndarray]


def margin_met(n: int, gaps: Gaps, mean: float, groups: int = 0) -> Measure:
    """How often a model that is worse by the margin is said not to be; 5 % of rows, or of groups, differ."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            units = groups or n
            loss = 0.8 + (rng.random(units) < 0.05) * np.clip(gaps(rng, units), -0.8, 1.2)
            # The Brier score of a forecast 1 - p of what happened is 2 p^2.
            p = np.repeat(1 - np.sqrt(loss / 2), n // units)
            labels = np.repeat(np.arange(units), n // units) if groups else None
            models = {"a": p, "b": np.full(n, 1 - math.sqrt(0.4))}
            how = {"rule": "brier", "margin": 0.05 * mean, "groups": labels}
            tests = vx.compare(np.ones(n, int), models, **how).margin_tests
            hits.append(tests[0].p_value <= 0.05)
        return share_of(hits)

    return measure


def answers_met(n: int, only_a: float, only_b: float) -> Measure:
    """The same for right or wrong answers, of which these shares are wrong for one model only."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits = []
        for i in range(replications):
            draw = np.random.default_rng([seed, i]).random(n)
            grades = {"a": draw >= only_a, "b": (draw < only_a) | (draw >= only_a + only_b)}
            found = vx.compare_grades(grades, margin=only_a - only_b)
            hits.append(found.margin_tests[0].p_value <= 0.05)
        return share_of(hits)

    return measure


def grade_covered(n: int, repeats: int, right: float, kind: str) -> Measure:
    """The mean grade of questions that are asked several times, where the chance of a right answer varies."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits, wrong = [], 1 - right
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            chance = np.full(n, wrong)
            if kind == "beta":
                chance = rng.beta(wrong / 0.3 - wrong, right / 0.3 - right, n)
            elif kind == "few hard":
                chance = np.where(rng.random(n) < 2 * wrong, 0.5, 0.0)
            grades = rng.random((n, repeats)) >= chance[:, None]
            found = vx.evaluate_grades(grades.ravel(), groups=np.repeat(np.arange(n), repeats))
            hits.append(found.interval.low <= right <= found.interval.high)
        return share_of(hits)

    return measure


@cache
def affected(n: int, replications: int, seed: int) -> dict[str, list[bool]]:
    """Cards of n groups of ten rows, 6 % of which have a far larger Brier score."""
    hits: dict[str, list[bool]] = {"covered": [], "covered or cautioned": []}
    truth = 0.5 * (1 + 0.06 * 2)
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        wrong = np.where(rng.random(n) < 0.06, 0.75, 0.25)
        y = (rng.random((n, 10)) >= wrong[:, None]).astype(int).ravel()
        card = vx.evaluate(y, np.ones(10 * n), groups=np.repeat(np.arange(n), 10))
        interval = card.scores["brier"].interval
        held = interval.low <= truth <= interval.high
        hits["covered"].append(held)
        hits["covered or cautioned"].append(held or bool(interval.caution))
    return hits


def level_sets(n: int, coverage: float) -> Measure:
    """The level-set score of sets of one to three classes."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits, truth = [], 0.1 * 2 + 1 - coverage
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            size, missed = rng.integers(1, 4, n), rng.random(n) >= coverage
            mask = (np.arange(5) >= missed[:, None]) & (np.arange(5) < (missed + size)[:, None])
            found = vx.evaluate_sets(np.zeros(n, int), mask).level_set.interval
            hits.append(found.low <= truth <= found.high)
        return share_of(hits)

    return measure


def claims_of_few() -> None:
    """Sizes of tests of a margin, and coverage of intervals."""
    gaps: dict[str, tuple[Gaps, float]] = {
        "by 0.3 (0.2)": (lambda rng, n: rng.normal(0.3, 0.2, n), 0.3),
        "by 0.1 (0.3)": (lambda rng, n: rng.normal(0.1, 0.3, n), 0.1),
        "exponential": (lambda rng, n: rng.exponential(0.2, n), 0.2),
    }
    for label, (draw, mean) in gaps.items():
        for n in (100, 200, 500):
            claim(f"margin: size, {n} rows, 5 % differ, {label}", 0.0, 0.075, margin_met(n, draw, mean))
        claim(f"margin: size, 100 groups, 5 % differ, {label}", 0.0, 0.075, margin_met(200, draw, mean, 100))
    for n, only_a, only_b in ((200, 0.05, 0.0), (200, 0.04, 0.01), (100, 0.03, 0.02)):
        label = f"{n} answers, {only_a:g} and {only_b:g} wrong for one model only"
        claim(f"margin: size, {label}", 0.0, 0.065, answers_met(n, only_a, only_b))
    for n, repeats in ((40, 5), (60, 8), (100, 5)):
        for right in (0.97, 0.9):
            for kind in ("beta", "few hard", "alike"):
                measure = grade_covered(n, repeats, right, kind)
                claim(f"repeats: mean grade, {n} x {repeats}, {right:g} right, {kind}", 0.93, 0.99, measure)
    for n in (40, 60, 100):
        for what in ("covered", "covered or cautioned"):

            def measured(replications: int, seed: int, n: int = n, what: str = what) -> tuple[float, float]:
                return share_of(affected(n, replications, seed)[what])

            claim(f"affected groups: {what}, {n} groups, 6 % affected", 0.9, 1.0, measured)
    for n in (100, 200, 500):
        claim(f"sets: level-set score, {n} rows, 98 % covered", 0.93, 0.98, level_sets(n, 0.98))


claims_of_few()
