"""Grades with tasks, weights, groups and repeats against loops in fractions, and parts merged."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

import verax as vx

CLOSE = 1e-9
ZERO = Fraction(0)
TASKS = ("law", "math", "zoo")


class Answers(NamedTuple):
    """The answers of one model; a grade that is None is missing."""

    grades: list[Fraction | None]
    w: list[Fraction]
    groups: list[int] | None
    task: list[str]

    def some(self, rows: Sequence[int]) -> Answers:
        return Answers(*(own if own is None else [own[i] for i in rows] for own in self))

    def card(self, weighted: bool) -> vx.results.GradeCard:
        own: dict[str, Any] = {"weights": list(map(float, self.w))} if weighted else {}
        grades = [math.nan if g is None else float(g) for g in self.grades]
        return vx.evaluate_grades(grades, task=self.task, by={"of": self.task}, groups=self.groups, **own)


def attempt(rng: np.random.Generator) -> None:
    """One model with tasks, whole and in parts; and several models whose questions have repeats."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        check_card(rng)
        check_repeats(rng)


# ---- one model ---------------------------------------------------------------------------------------------


def check_card(rng: np.random.Generator) -> None:
    n, weighted = int(rng.integers(4, 25)), bool(rng.random() < 0.5)
    graded = [Fraction(int(g), 4) for g in rng.integers(0, 5, n)]
    answers = Answers(
        [None if rng.random() < 0.1 and i else g for i, g in enumerate(graded)],
        [Fraction(int(w), 2) for w in rng.integers(1, 5, n)] if weighted else [Fraction(1)] * n,
        rng.integers(0, 5, n).tolist() if rng.random() < 0.6 else None,
        rng.choice(TASKS[: int(rng.integers(1, 4))], n).tolist(),
    )
    whole = _or_refused(lambda: answers.card(weighted))
    if whole is None:
        return
    said = f"{answers}"
    check_mean(whole, answers, said)
    for task in sorted(set(answers.task)):
        rows = [i for i, own in enumerate(answers.task) if own == task]
        for found in (whole.tasks[task], whole.subgroups["of"][task]):
            check_mean(found, answers.some(rows), f"{task}: {said}")
    order = rng.permutation(n)
    parts = [part.tolist() for part in np.array_split(order, int(rng.integers(2, 5))) if len(part)]
    cards = [_or_refused(lambda part=part: answers.some(part).card(weighted)) for part in parts]
    if None not in cards:
        same(whole, reduce(add, cards), said)


def check_mean(card: vx.results.GradeCard, answers: Answers, said: str) -> None:
    known = [(g, w) for g, w in zip(answers.grades, answers.w, strict=True) if g is not None]
    total = sum((w for _, w in known), ZERO)
    wanted = sum((g * w for g, w in known), ZERO) / total if total else None
    assert wanted is None or _near(card.mean, wanted), f"mean {card.mean}, exactly {wanted}; {said}"
    assert card.answers.asked == len(answers.grades), said
    assert card.answers.ungraded == len(answers.grades) - len(known), said
    missing = sum((w for g, w in zip(answers.grades, answers.w, strict=True) if g is None), ZERO)
    ends = [((wanted or ZERO) * total + worst * missing) / (total + missing) for worst in (0, 1)]
    for end, exact in zip(card.bounds, ends, strict=True):
        assert _near(end, exact), f"bound {end}, exactly {exact}; {said}"


def same(whole: vx.results.GradeCard, merged: vx.results.GradeCard, said: str) -> None:
    """Cards of parts add up to that of all answers."""
    pairs = [("all", whole, merged), *((task, whole.tasks[task], merged.tasks[task]) for task in whole.tasks)]
    for name, one, other in pairs:
        assert one.n_groups == other.n_groups, f"{name}: {other.n_groups} groups, not {one.n_groups}; {said}"
        ours, theirs = (one.mean, *one.interval), (other.mean, *other.interval)
        near = (
            math.isnan(a) and math.isnan(b) if math.isnan(a) else math.isclose(a, b, abs_tol=1e-7)
            for a, b in zip(ours, theirs, strict=True)
        )
        assert all(near), f"{name}: {ours}, merged {theirs}; {said}"


# ---- several models, repeats -------------------------------------------------------------------------------


def check_repeats(rng: np.random.Generator) -> None:
    """Repeats of a question have one mean grade."""
    missing = str(rng.choice(["refuse", "pairwise"]))
    models = "abc"[: int(rng.integers(2, 4))]
    equal = int(rng.integers(1, 4)) if rng.random() < 0.4 else None
    questions = range(int(rng.integers(3, 9)))
    answered: dict[str, dict[int, list[Fraction | None]]] = {}
    given: dict[str, dict[str, list[Any]]] = {name: {} for name in ("grades", "ids", "epochs", "task")}
    for model in models:
        asked = [q for q in questions if missing == "refuse" or q < 2 or rng.random() < 0.8]
        answered[model] = {
            q: [
                None if rng.random() < 0.1 else Fraction(int(rng.integers(0, 5)), 4)
                for _ in range(equal or int(rng.integers(1, 4)))
            ]
            for q in asked
        }
        # Epochs are numbered in their own way, and rows come in any order.
        first = int(rng.integers(0, 3))
        rows = [(q, first + 2 * i, g) for q, own in answered[model].items() for i, g in enumerate(own)]
        rows = [rows[i] for i in rng.permutation(len(rows))]
        given["ids"][model] = [f"q{q}" for q, _, _ in rows]
        given["epochs"][model] = [epoch for _, epoch, _ in rows]
        given["grades"][model] = [math.nan if g is None else float(g) for _, _, g in rows]
        given["task"][model] = [TASKS[q % 2] for q, _, _ in rows]
    found = _or_refused(lambda: vx.compare_grades(missing=missing, **given))
    if found is None:
        return
    units = units_of(answered)
    check_differences(found, units, missing, f"{missing}, {answered}")
    for task, own in found.tasks.items():
        some = {
            model: {unit: g for unit, g in grades.items() if TASKS[unit[0] % 2] == task}
            for model, grades in units.items()
        }
        check_differences(own, some, missing, f"{task}, {missing}, {answered}")


Units = dict[str, dict[tuple[int, int], Fraction]]


def units_of(answered: dict[str, dict[int, list[Fraction | None]]]) -> Units:
    """What is paired: the mean of each question over its graded repeats, whatever their number."""
    means: Units = {}
    for model, grades in answered.items():
        known = {q: [g for g in own if g is not None] for q, own in grades.items()}
        means[model] = {(q, 0): _mean(own) for q, own in known.items() if own}
    return means


def check_differences(found: vx.results.Comparison, units: Units, missing: str, said: str) -> None:
    everywhere = set.intersection(*(set(own) for own in units.values()))
    for gap in found.grade_differences:
        a, b = units[gap.a], units[gap.b]
        shared = everywhere if missing == "refuse" else a.keys() & b.keys()
        wanted = _mean([a[unit] - b[unit] for unit in shared]) if shared else None
        assert wanted is None or _near(gap.difference, wanted), (
            f"{gap.a} - {gap.b}: {gap.difference}, exactly {wanted}; {said}"
        )
    for own in found.models["grade"]:
        grades = units[own.name]
        kept = everywhere if missing == "refuse" else grades.keys()
        wanted = _mean([grades[unit] for unit in kept]) if kept else None
        assert wanted is None or _near(own.mean, wanted), (
            f"mean of {own.name}: {own.mean}, exactly {wanted}; {said}"
        )


def _mean(values: Iterable[Fraction]) -> Fraction:
    own = list(values)
    return sum(own, ZERO) / len(own)


def _near(found: float, wanted: Fraction) -> bool:
    return math.isclose(found, float(wanted), rel_tol=CLOSE, abs_tol=CLOSE)


def _or_refused(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except vx.VeraxError:
        return None
