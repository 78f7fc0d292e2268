"""Models that answered different questions: coverage of joint estimates, and of mean grades."""

from __future__ import annotations

import numpy as np

import verax as vx
from covers.claims import Measure, claim, share_of

# How much better model b is than model a, and c than b, in the chance of a right answer.
_STEP = 0.05


def joint(n: int, share: float, groups: int = 0, *, difference: bool = True) -> Measure:
    """Three models, each asked a random share of n questions; model a more often where they are easy.

    With `groups`, questions of a group are alike in which model does well. The truth is the mean over
    questions and draws of answers.
    """

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            ease = rng.uniform(0.2, 0.8, n)
            group = np.arange(n) % groups if groups else np.arange(n)
            own = 0.15 * rng.normal(size=(groups, 3)).clip(-1, 1)[group] if groups else np.zeros((n, 3))
            chance = (ease[:, None] + _STEP * np.arange(3) + own).clip(0, 1)
            asked = rng.random((n, 3)) < np.column_stack([share * (0.5 + ease), np.full((n, 2), share)])
            right = (rng.random((n, 3)) < chance).astype(float)
            ids = {name: np.flatnonzero(asked[:, j]) for j, name in enumerate("abc")}
            grades = {name: right[ids[name], j] for j, name in enumerate("abc")}
            labels = {name: group[known] for name, known in ids.items()} if groups else None
            found = vx.compare(grades=grades, ids=ids, groups=labels, missing="joint")
            if difference:
                low, high = found.difference("a", "c").interval
                hits.append(low <= 2 * _STEP <= high)
            else:
                low, high = next(m.interval for m in found.models["grade"] if m.name == "c")
                hits.append(low <= 0.5 - 2 * _STEP <= high)
        return share_of(hits)

    return measure


def accuracy(n: int, chance: float) -> Measure:
    """The mean grade of n independent answers."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        rng = np.random.default_rng(seed)
        found = (vx.evaluate_grades(rng.random(n) < chance).interval for _ in range(replications))
        return share_of([low <= chance <= high for low, high in found])

    return measure


def claims_of_questions() -> None:
    """Differences and means of joint estimates, and mean grades."""
    for n, share in ((60, 0.5), (200, 0.5), (200, 0.2), (1000, 0.2)):
        claim(f"questions: joint difference, {n} questions, {share:g} asked", 0.93, 0.97, joint(n, share))
    claim("questions: joint mean, 200 questions, 0.5 asked", 0.93, 0.97, joint(200, 0.5, difference=False))
    for groups in (20, 50):
        name = f"questions: joint difference, {groups} groups of 10 questions, 0.5 asked"
        claim(name, 0.92, 0.97, joint(10 * groups, 0.5, groups))
    for n, chance in ((30, 0.97), (100, 0.6)):
        claim(f"questions: mean grade, {n} answers, {chance:g} right", 0.92, 0.98, accuracy(n, chance), 4000)


claims_of_questions()
