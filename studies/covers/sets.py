"""Prediction sets: coverage, sizes and scores; sets made by conformal prediction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import ndtr, softmax

import verax as vx
from covers.claims import Measure, claim, share_of


@dataclass(frozen=True)
class Stating:
    """Sets of ordered classes that probabilities, 1.5 times too sure, state at level 0.9.

    Attributes
    ----------
    n : int
        The number of rows.
    groups : int
        The number of groups, of unequal sizes and with a common deviation of the logits; 0 for none.
    """

    n: int
    groups: int = 0

    def sample(self, rng: np.random.Generator, alone: int = 0) -> tuple[np.ndarray, ...]:
        """Outcomes, forecasts and groups; of `alone` rows each is a group of its own."""
        n = alone or self.n
        group = np.arange(n)
        if self.groups and not alone:
            group = rng.choice(self.groups, n, p=rng.dirichlet(np.full(self.groups, 2.0)))
        effects = rng.normal(scale=0.7 if self.groups else 0.0, size=(n, 4))[group]
        z = rng.normal(scale=1.5, size=(n, 4))
        q = softmax(z + effects, axis=1)
        y = (rng.random(n)[:, None] > np.cumsum(q, axis=1)).sum(axis=1).clip(0, 3)
        return y, softmax(1.5 * z, axis=1), group


def set_values(found: Any) -> dict[str, tuple[float, Any]]:
    """What is measured of sets: values with their intervals."""
    own = {
        "coverage": found.coverage,
        "size": found.size,
        "level-set score": found.level_set,
        "Winkler score": found.winkler,
        "steps to a miss": found.miss_distance,
    }
    pairs = {name: (measured.value, measured.interval) for name, measured in own.items()}
    lines = {"class": found.by_class[0], "size": next(x for x in found.by_size if x.label == "2")}
    return pairs | {f"coverage by {name}": (x.coverage, x.interval) for name, x in lines.items()}


@cache
def stated_truth(setting: Stating) -> dict[str, float]:
    """The values in the population, from 400,000 rows."""
    y, p, _ = setting.sample(np.random.default_rng(10**6), 400_000)
    found = set_values(vx.evaluate_sets(y, p, level=0.9, ordered=True))
    return {name: value for name, (value, _) in found.items()}


@cache
def set_hits(setting: Stating, replications: int, seed: int) -> dict[str, list[bool]]:
    """Whether each interval covers, in every replication."""
    hits: dict[str, list[bool]] = {}
    for i in range(replications):
        y, p, groups = setting.sample(np.random.default_rng([seed, i]))
        own = {"groups": groups} if setting.groups else {}
        found = set_values(vx.evaluate_sets(y, p, level=0.9, ordered=True, **own))
        for name, (_, interval) in found.items():
            hits.setdefault(name, []).append(interval[0] <= stated_truth(setting)[name] <= interval[1])
    return hits


def sets_cover(setting: Stating, name: str) -> Measure:
    """How often the interval of a measure of sets covers."""
    return lambda replications, seed: share_of(set_hits(setting, replications, seed)[name])


SET_MEASURES = {
    **dict.fromkeys(("coverage", "size", "level-set score", "Winkler score", "steps to a miss"), 0.97),
    **dict.fromkeys(("coverage by class", "coverage by size"), 0.98),
}
for stating in (Stating(200), Stating(1000), Stating(1000, 50)):
    where = f"{stating.n:,} rows" + (f", {stating.groups} groups" if stating.groups else "")
    for name, most in SET_MEASURES.items():
        claim(f"sets: {name}, {where}", 0.93, most, sets_cover(stating, name))


def conformal_covers(score: str, groups: int = 0) -> Measure:
    """How often conformal sets of level 0.8 cover: one new row for each calibration sample of 60 rows."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits, setting = [], Stating(60, groups)
        for i in range(replications):
            y, p, group = setting.sample(np.random.default_rng([seed, i]))
            own = {"groups": group} if groups else {}
            made = vx.conformal(y, p, level=0.8, score=score, seed=i, **own)
            # With groups, the row of a new group.
            happened, new, _ = setting.sample(np.random.default_rng([seed, i, 1]), 1)
            hits.append(bool(made.apply(new).mask()[0, happened[0]]))
        return share_of(hits)

    return measure


# The coverage lies between the level and the level plus 1/(n + 1), with groups 1/(G + 1) and what is lost to
# the rounding of a quantile over groups.
for score in ("lac", "aps", "rps"):
    claim(f"conformal: {score}, 60 rows", 0.8, 0.8 + 1 / 61, conformal_covers(score), 4000)
    claim(f"conformal: {score}, 60 rows in 20 groups", 0.8, 0.9, conformal_covers(score, 20), 4000)


@dataclass(frozen=True)
class Calibrating:
    """Scores of calibration rows whose coverage at a threshold is known, at level 0.88.

    Attributes
    ----------
    kind : str
        "equal", "weights" (gamma of shape 1.5), "weights of large scores", "ties" or "groups".
    n : int
        The number of rows.
    groups : int
        The number of groups, of geometric sizes, whose scores share a normal effect.
    """

    kind: str
    n: int
    groups: int = 0

    def inside(self, rng: np.random.Generator) -> bool:
        """Whether the coverage among new rows lies in the range that is printed."""
        u, options = rng.random(self.n), {}
        if self.kind == "weights":
            options = {"weights": rng.gamma(1.5, size=self.n)}
        elif self.kind == "weights of large scores":
            # Rows are drawn with a density that falls with the score, and weights undo this.
            u = 1 - np.sqrt(1 - u * (1 - 0.2**2))
            options = {"weights": 1 / (1 - u)}
            u = u / 0.8
        elif self.kind == "groups":
            code = np.repeat(np.arange(self.groups), rng.geometric(self.groups / self.n, self.groups))
            z = rng.normal(0, np.sqrt(0.15), self.groups)[code] + rng.normal(0, np.sqrt(0.85), len(code))
            u, options = ndtr(z), {"groups": code}
        s = np.round(15 * u) / 15 if self.kind == "ties" else u
        s = 0.01 + 0.98 * s
        p = np.column_stack([1 - s, s])
        found = vx.conformal(np.zeros(len(s), int), p, level=0.88, **options)
        at = (found.threshold - 0.01) / 0.98
        covered = min(1.0, at + 0.5 / 15) if self.kind == "ties" else at
        low, high = found.expected_coverage
        return bool(low <= covered <= high)


def in_its_range(setting: Calibrating) -> Measure:
    """How often the coverage among new rows lies in the printed range."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        return share_of([setting.inside(np.random.default_rng([seed, i])) for i in range(replications)])

    return measure


for n in (120, 700):
    for kind in ("equal", "weights", "weights of large scores", "ties"):
        claim(f"conformal range: {kind}, {n} rows", 0.92, 1.0, in_its_range(Calibrating(kind, n)), 600)
for n_groups in (35, 120):
    setting = Calibrating("groups", 12 * n_groups, n_groups)
    claim(f"conformal range: {n_groups} unequal groups", 0.92, 1.0, in_its_range(setting), 600)
