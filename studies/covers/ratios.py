"""Observed divided by expected events of subgroups: how often intervals cover, and how wide they are.

Widths are divided by that of the interval that knows the true variance of the ratio.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import expit

import verax as vx
from covers.claims import Measure, claim
from covers.shares import in_groups, measured

# Subgroups of one call: each is a sample.
_AT_ONCE = 20


@dataclass(frozen=True)
class Subgroup:
    """Rows of a subgroup with forecasts of an event.

    Attributes
    ----------
    n : int
        The number of rows.
    offset : float
        The logit of the forecast of a middling row.
    off : float
        By how much the true logits are higher.
    scatter : float
        The standard deviation of what true logits have beside that: forecasts are then right on average only.
    groups : int
        The number of groups, of skewed sizes; 0 for independent rows.
    shift : float
        The standard deviation of the shifts of logits of groups.
    """

    n: int
    offset: float
    off: float = 0.0
    scatter: float = 0.0
    groups: int = 0
    shift: float = 0.0

    def __str__(self) -> str:
        parts = [f"{self.n} rows, offset {self.offset:g}"]
        parts += [f"true logits {self.off:+g}"] if self.off else []
        parts += [f"scatter {self.scatter:g}"] if self.scatter else []
        parts += [f"{self.groups} groups, shift {self.shift:g}"] if self.groups else []
        return ", ".join(parts)

    def rows(self, rng: np.random.Generator, n: int, groups: int) -> tuple[np.ndarray, ...]:
        """Forecasts, true probabilities and groups."""
        group, shift = np.arange(n), np.zeros(n)
        if groups:
            size = in_groups(groups, n / groups, "skewed")
            group = rng.choice(groups, n, p=size / size.sum())
            shift = self.shift * rng.normal(size=groups)[group]
        z = self.offset + rng.normal(size=n)
        return expit(z), expit(z + self.off + shift + self.scatter * rng.normal(size=n)), group

    @cache  # noqa: B019
    def truth(self) -> float:
        """Observed divided by expected of many rows."""
        p, q, _ = self.rows(np.random.default_rng(12345), 2_000_000, 200_000 if self.groups else 0)
        return float(q.mean() / p.mean())

    @cache  # noqa: B019
    def samples(self, replications: int, seed: int) -> np.ndarray:
        """The ratio of each sample, and the ends of its interval."""
        found = []
        for i in range(-(-replications // _AT_ONCE)):
            rng = np.random.default_rng([seed, i])
            drawn = [self.rows(rng, self.n, self.groups) for _ in range(_AT_ONCE)]
            p, q, group = (np.concatenate(column) for column in zip(*drawn, strict=True))
            y = (rng.random(len(q)) < q).astype(int)
            which = np.repeat(np.arange(_AT_ONCE), self.n)
            own = {"groups": group + (self.n + self.groups) * which} if self.groups else {}
            ratios = (line.events for line in vx.subgroups(y, p, by=which, **own).lines)
            found += [(events.ratio, *events.interval) for events in ratios]
        return np.array(found)[:replications]


SUBGROUPS = [
    Subgroup(120, -1.0),
    Subgroup(300, -3.5),
    Subgroup(300, -2.0, off=0.5),
    Subgroup(200, 2.0, off=-0.4),
    Subgroup(400, -2.0, scatter=1.5),
    Subgroup(400, -1.5, groups=10, shift=0.4),
    Subgroup(600, -2.5, off=0.3, groups=30, shift=0.6),
]


def of_subgroup(design: Subgroup, what: str) -> Measure:
    """A claim about the ratios of a design."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        return measured(design.samples(replications, seed), design.truth(), what)

    return measure


for design in SUBGROUPS:
    claim(f"observed to expected: coverage, {design}", 0.92, 0.985, of_subgroup(design, "coverage"), 400)
    claim(f"observed to expected: width, {design}", 0.9, 1.6, of_subgroup(design, "width"), 400)
