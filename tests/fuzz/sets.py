"""Prediction sets with weights against loops over the rows in fractions, in memory and in parts."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import verax as vx
from scattered import Scattered

CLOSE = 1e-9
# Weights of this size have squares that no float holds.
SCALES = (1.0, 1.0, 0.3, 1e-200, 1e200)
ZERO = Fraction(0)


class Rows(NamedTuple):
    """Outcomes, exact forecasts and weights, groups or None, and the labels of subgroups."""

    y: list[int]
    p: list[list[Fraction]]
    w: list[Fraction]
    scale: float
    groups: list[int] | None
    by: list[str]

    @property
    def n_classes(self) -> int:
        return len(self.p[0])

    def options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"weights": [float(w) * self.scale for w in self.w]}
        return options if self.groups is None else options | {"groups": self.groups}

    def forecasts(self) -> Any:
        return np.array([[float(t) for t in row] for row in self.p])


def random_rows(rng: np.random.Generator) -> Rows:
    k, n, parts = int(rng.integers(2, 6)), int(rng.integers(4, 16)), int(rng.choice([4, 10, 64]))
    p = rng.multinomial(parts, rng.dirichlet(np.ones(k), n))
    w = rng.integers(0, 4, n)
    w[:2] = 1
    groups = rng.integers(0, 4, n) if rng.random() < 0.4 else None
    if groups is not None:
        groups[:2] = 0, 1
    return Rows(
        rng.integers(0, k, n).tolist(),
        [[Fraction(int(t), parts) for t in row] for row in p],
        [Fraction(int(each), 2) for each in w],
        float(rng.choice(SCALES)),
        None if groups is None else groups.tolist(),
        rng.choice(["u", "v"], n).tolist(),
    )


def attempt(rng: np.random.Generator) -> None:
    """Judge the sets above a threshold, and make sets by conformal prediction."""
    rows = random_rows(rng)
    t = Fraction(int(rng.integers(1, 8)), 8)
    members = [{k for k, q in enumerate(row) if q > t} for row in rows.p]
    wanted = dict(judged(rows, members, t))
    mask = np.array([[k in own for k in range(rows.n_classes)] for own in members])
    asked: dict[str, Any] = {"threshold": float(t), "ordered": True}
    here = vx.evaluate_sets(rows.y, mask, by=rows.by, **asked, **rows.options())
    compare(here, wanted, f"mask, t={t}, {rows}")
    # Parts of rows do not know the largest weight, so that they take weights of usual size only.
    usual = rows._replace(scale=1.0)
    handle = Scattered(
        usual.y, usual.forecasts(), n_parts=int(rng.integers(1, 4)), by=np.array(rows.by), **usual.options()
    )
    compare(vx.evaluate_sets(handle, by="by", **asked), wanted, f"parts, t={t}, {rows}")
    check_conformal(rng, rows)


def mean(rows: Rows, values: list[Any]) -> Fraction:
    """The weighted mean."""
    return sum((w * v for w, v in zip(rows.w, values, strict=True)), ZERO) / sum(rows.w)


def judged(rows: Rows, members: list[set[int]], t: Fraction) -> Iterator[tuple[str, Any]]:
    """What is to be found, by name."""
    covered = [y in own for y, own in zip(rows.y, members, strict=True)]
    yield "coverage", mean(rows, covered)
    yield "size", mean(rows, [len(own) for own in members])
    yield "empty", mean(rows, [not own for own in members])
    yield "single", mean(rows, [len(own) == 1 for own in members])
    yield "level_set", mean(rows, [t * len(own) + (not c) for own, c in zip(members, covered, strict=True)])
    yield (
        "gapless",
        mean(rows, [all({*range(min(o), max(o) + 1)} <= o for o in [own] if o) for own in members]),
    )
    misses = [bool(own) and not c for own, c in zip(members, covered, strict=True)]
    steps = [min((abs(y - k) for k in own), default=0) for y, own in zip(rows.y, members, strict=True)]
    missed = mean(rows, misses)
    far = mean(rows, [m * s for m, s in zip(misses, steps, strict=True)])
    yield "miss_distance", far / missed if missed and rows.n_classes > 2 else None
    yield "sizes", shares(rows, [len(own) for own in members])
    happened = shares(rows, rows.y)
    yield "by_class", happened
    yield "by", shares(rows, rows.by)
    # The best of all sets that never change.
    yield (
        "constant_score",
        min(
            t * n + 1 - sum((happened[k] for k in some), ZERO)
            for n in range(len(happened) + 1)
            for some in itertools.combinations(happened, n)
        ),
    )


def shares(rows: Rows, labels: list[Any]) -> dict[Any, Fraction]:
    """The share of the weight of each label that has some."""
    sums: Counter[Any] = Counter()
    for label, w in zip(labels, rows.w, strict=True):
        sums[label] += w
    return {label: w / sum(rows.w) for label, w in sums.items() if w}


def compare(found: vx.results.SetEvaluation, wanted: dict[str, Any], where: str) -> None:
    own: dict[str, Any] = {name: getattr(found, name) for name in wanted}
    own["by_class"] = {int(line.label): line.share for line in found.by_class}
    (lines,) = found.by.values()
    own["by"] = {line.label: line.share for line in lines}
    for name, value in wanted.items():
        pairs = [(own[name], value)]
        if isinstance(value, dict):
            assert own[name].keys() == value.keys(), f"{name}: {own[name]}, exactly {value}; {where}"
            pairs = [(own[name][label], value[label]) for label in value]
        for ours, exact in pairs:
            near = ours is exact if exact is None else math.isclose(ours, exact, rel_tol=CLOSE, abs_tol=CLOSE)
            assert near, f"{name}: {own[name]}, exactly {value}; {where}"


def check_conformal(rng: np.random.Generator, rows: Rows) -> None:
    """The sets hold exactly the classes whose score is at most the weighted quantile."""
    score, level = str(rng.choice(["lac", "brier", "rps"])), Fraction(int(rng.integers(1, 10)), 10)
    units = rows.groups or list(range(len(rows.y)))
    each: Counter[int] = Counter()
    for unit, w in zip(units, rows.w, strict=True):
        each[unit] += w
    if rows.groups is None:
        weight, n = rows.w, sum(w > 0 for w in rows.w)
    else:
        weight = [w / each[g] if each[g] else ZERO for w, g in zip(rows.w, units, strict=True)]
        n = sum(w > 0 for w in each.values())
    scores = [scored(score, row) for row in rows.p]
    happened = sorted((own[y], w) for own, y, w in zip(scores, rows.y, weight, strict=True))
    need, total, threshold = level * (sum(weight) + Fraction(sum(weight), n)), ZERO, None
    for value, w in happened:
        total += w
        if w and total >= need:
            threshold = value
            break
    wanted = [[threshold is None or value <= threshold for value in own] for own in scores]
    made = vx.conformal(rows.y, rows.forecasts(), level=float(level), score=score, **rows.options())
    found = made.apply(rows.forecasts()).mask().tolist()
    assert found == wanted, f"conformal {score} at {level}: {found}, exactly {wanted}; {rows}"


def scored(score: str, p: list[Fraction]) -> list[Fraction]:
    """How unusual each class would be."""
    k = len(p)
    if score == "lac":
        return [1 - q for q in p]
    if score == "brier":
        return [sum(((q - (i == y)) ** 2 for i, q in enumerate(p)), ZERO) for y in range(k)]
    below = list(itertools.accumulate(p))
    return [sum(((below[i] - (y <= i)) ** 2 for i in range(k - 1)), ZERO) for y in range(k)]
