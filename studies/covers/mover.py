"""Limits that are made from those of two rates (MOVER): how often they cover, and how wide they are.

Sums and differences of rates are measured against the interval that knows the true variance; ratios have no
width, because a limit may be infinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit

import verax as vx
from covers.claims import Measure, claim
from covers.shares import in_groups, measured

SUMS = ("youden", "difference of sensitivity", "difference of ppv")
RATIOS = ("lr_positive", "lr_negative")


@dataclass(frozen=True)
class Acting:
    """Rows that two models act on, from a threshold of 0.5 on.

    Attributes
    ----------
    n : int
        The number of rows.
    rate : float
        The share of events.
    apart : float
        How far the scores of events are from those of the others.
    second : float
        How much more the second model sees of them, and flags.
    groups : int
        The number of groups, of skewed sizes; 0 for independent rows.
    shift : float
        The standard deviation of the shifts of scores of groups: sites that flag more, whose sensitivity and
        false alarms rise together.
    """

    n: int
    rate: float
    apart: float = 1.5
    second: float = 0.3
    groups: int = 0
    shift: float = 0.0

    def __str__(self) -> str:
        where = f" in {self.groups} groups, shift {self.shift:g}" if self.groups else ""
        return f"{self.n} rows{where}, {self.rate:.3g} events, {self.apart:g} apart"

    def rows(self, rng: np.random.Generator, n: int, groups: int) -> tuple[np.ndarray, dict[str, Any], Any]:
        """Outcomes, the forecasts of both models, and groups."""
        group, shift = None, np.zeros(n)
        if groups:
            size = in_groups(groups, n / groups, "skewed")
            group = rng.choice(groups, n, p=size / size.sum())
            shift = self.shift * rng.normal(size=groups)[group]
        y = (rng.random(n) < self.rate).astype(int)
        seen = self.apart * (y - 0.5) + shift + rng.normal(size=n)
        other = seen + self.second * (y + 0.5) + 0.7 * rng.normal(size=n)
        return y, {"a": expit(seen), "b": expit(other)}, group

    def found(self, rng: np.random.Generator, n: int, groups: int) -> dict[str, tuple[float, Any]]:
        """The values with their intervals."""
        y, p, group = self.rows(rng, n, groups)
        points = vx.operating_points(y, p, threshold=0.5, groups=group)
        rates = {rate.name: (rate.value, rate.interval) for rate in points.point(model="a").rates}
        gaps = {f"difference of {g.rate}": (g.difference, g.interval) for g in points.differences}
        return rates | gaps

    @cache  # noqa: B019
    def truth(self) -> dict[str, float]:
        """The values of many rows."""
        rng = np.random.default_rng(12345)
        found = self.found(rng, 1_000_000, 100_000 if self.groups else 0)
        return {name: value for name, (value, _) in found.items()}

    @cache  # noqa: B019
    def samples(self, replications: int, seed: int) -> dict[str, np.ndarray]:
        """The values of each sample, and the ends of their intervals; not where a rate is undefined."""
        drawn = [
            self.found(np.random.default_rng([seed, i]), self.n, self.groups) for i in range(replications)
        ]
        return {
            name: np.array([(own[name][0], *own[name][1]) for own in drawn if own[name][1].defined])
            for name in (*SUMS, *RATIOS)
        }


ACTING = [
    Acting(120, 0.4),
    Acting(500, 0.06),
    Acting(250, 0.3, apart=4.0),
    Acting(800, 0.25, groups=12, shift=0.5),
    Acting(1500, 0.1, groups=40, shift=0.8),
]


def of_acting(design: Acting, name: str, what: str) -> Measure:
    """A claim about one value of a design."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        return measured(design.samples(replications, seed)[name], design.truth()[name], what)

    return measure


for design in ACTING:
    for name in (*SUMS, *RATIOS):
        claim(f"MOVER: coverage of {name}, {design}", 0.92, 0.99, of_acting(design, name, "coverage"), 400)
    for name in SUMS:
        claim(f"MOVER: width of {name}, {design}", 0.9, 1.6, of_acting(design, name, "width"), 400)
