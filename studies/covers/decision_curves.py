"""Net benefit and Murphy curves: intervals of points, bands of whole curves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import expit, logit, ndtri

import verax as vx
from covers.claims import claim, covers, share_of

Curve = Callable[[np.ndarray], np.ndarray]
GRID = np.arange(1, 100) / 100


@dataclass(frozen=True)
class Acting:
    """A population of rows with a forecast, another one and the true probability, as functions of a feature.

    Attributes
    ----------
    forecast, other, truth : functions
        Of a standard normal feature.
    n : int
        The number of rows.
    groups : int
        The number of groups, of unequal sizes; 0 for independent rows.
    weighted : bool
        Whether rows have lognormal weights.
    """

    forecast: Curve
    other: Curve
    truth: Curve
    n: int
    groups: int = 0
    weighted: bool = False

    def chance(self, x: np.ndarray, effects: np.ndarray) -> np.ndarray:
        """True probabilities."""
        return expit(logit(self.truth(x)) + 0.7 * effects) if self.groups else self.truth(x)

    @cache  # noqa: B019
    def rates(self) -> tuple[np.ndarray, np.ndarray]:
        """Net benefits and elementary scores of both forecasts, and of acting on all rows, (3, 99)."""
        x = np.random.default_rng(12345).permutation(ndtri((np.arange(400_000) + 0.5) / 400_000))
        q = self.chance(x, np.random.default_rng(1).normal(size=len(x)))
        found = []
        for p in (self.forecast(x), self.other(x), np.ones(len(x))):
            order = np.argsort(p)
            sums = np.append(np.cumsum(np.stack([q, 1 - q])[:, order[::-1]], axis=1)[:, ::-1], [[0], [0]], 1)
            true, false = sums[:, np.searchsorted(p[order], GRID)] / len(x)
            regret = (q.mean() - true) * (1 - GRID) + false * GRID
            found.append((true - false * GRID / (1 - GRID), regret))
        benefits, regrets = zip(*found, strict=True)
        return np.array(benefits), np.array(regrets)

    @cache  # noqa: B019
    def hits(self, replications: int, seed: int) -> dict[str, list[bool]]:
        """What covers, and where curves are called useful that are not."""
        benefits, regrets = self.rates()
        useless = ~((benefits[0] > 1e-9) & (benefits[0] > benefits[2] + 1e-9))
        found: dict[str, list[bool]] = {}
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            own: dict[str, np.ndarray] = {}
            effects = np.zeros(self.n)
            if self.groups:
                sizes = rng.exponential(size=self.groups) + 0.2
                own["groups"] = rng.choice(self.groups, self.n, p=sizes / sizes.sum())
                effects = rng.normal(size=self.groups)[own["groups"]]
            if self.weighted:
                own["weights"] = rng.lognormal(sigma=0.7, size=self.n)
            x = rng.normal(size=self.n)
            y = (rng.random(self.n) < self.chance(x, effects)).astype(int)
            models = {"a": self.forecast(x), "b": self.other(x)}
            curves, diagrams = (f(y, models, seed=i, **own) for f in (vx.net_benefit, vx.diagrams.murphy))
            curve, gap, regret = curves.curve(), curves.difference("a", "b"), diagrams.difference("a", "b")
            named = np.isfinite(curve.band[0])
            at = rng.choice(np.flatnonzero(named)) if named.any() else 49
            useful = [low <= t <= high for t in GRID[useless] for low, high in curve.useful]
            standard = vx.net_benefit(y, models["a"], seed=i, standardized=True, **own).curve()
            for name, hit in {
                "band": covers(curve.band, benefits[0]),
                "interval": covers(curve.interval[:, [at]], benefits[0, [at]]),
                "useful": any(useful),
                "standardized band": covers(standard.band, benefits[0] / (1 - regrets[2, 0] / GRID[0])),
                "band of differences": covers(gap.band, benefits[0] - benefits[1]),
                "Murphy interval": covers(diagrams.curve().interval[:, [at]], regrets[0, [at]]),
                "Murphy band of differences": covers(regret.band, regrets[0] - regrets[1]),
            }.items():
                found.setdefault(name, []).append(hit)
        return found


def claims_of_curves() -> None:
    """Coverage of the intervals and bands of decision curves and Murphy diagrams."""
    models: dict[str, tuple[Curve, Curve, Curve]] = {
        "overconfident": (lambda x: expit(2 * x), lambda x: expit(1.5 * x + 0.5), expit),
        "calibrated": (expit, lambda x: expit(0.8 * x), expit),
        "sharp": (lambda x: expit(3 * x), lambda x: expit(2 * x - 0.5), lambda x: expit(3 * x)),
        "rare event": (
            lambda x: expit(2 * x - 3.5),
            lambda x: expit(1.2 * x - 3),
            lambda x: expit(1.5 * x - 3.5),
        ),
    }
    designs = {
        f"{name}, {n} rows": Acting(*functions, n) for name, functions in models.items() for n in (200, 1000)
    }
    over = models["overconfident"]
    designs |= {f"overconfident, 1000 rows in {g} groups": Acting(*over, 1000, groups=g) for g in (20, 100)}
    designs["overconfident, 1000 rows with weights"] = Acting(*over, 1000, weighted=True)
    # Where models hardly differ, Jeffreys limits of counts near zero are wider than they need be.
    wanted = {
        "band": (0.93, 0.97),
        "useful": (0.0, 0.05),
        "interval": (0.93, 0.97),
        "standardized band": (0.93, 0.97),
        "band of differences": (0.93, 1.0),
        "Murphy interval": (0.93, 0.97),
        "Murphy band of differences": (0.93, 1.0),
    }
    for label, design in designs.items():
        for what, (low, high) in wanted.items():

            def measure(
                replications: int, seed: int, design: Acting = design, what: str = what
            ) -> tuple[float, float]:
                return share_of(design.hits(replications, seed)[what])

            claim(f"decision curves: {what}, {label}", low, high, measure, 500)


claims_of_curves()
