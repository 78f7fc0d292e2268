"""Intervals of miscalibration and discrimination."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit, softmax, xlogy

import verax as vx
from covers.claims import claim, share_of

# Forecasts and the probabilities of the outcomes for n rows; effects are one number per row and class that
# is common to the rows of a group.
Draw = Callable[[int, np.random.Generator, np.ndarray], tuple[np.ndarray, np.ndarray]]


def too_sure(factor: float) -> Draw:
    """Three classes; the forecast's logits are the true ones times a factor."""

    def draw(n: int, rng: np.random.Generator, effects: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z = rng.normal(size=(n, 3))
        return softmax(factor * z, axis=1), softmax(z + effects[:, :3], axis=1)

    return draw


def binary(truth: Callable[[np.ndarray], np.ndarray]) -> Draw:
    """Two classes; the forecast is uniform, and the truth a function of it."""

    def draw(n: int, rng: np.random.Generator, effects: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = rng.uniform(0.02, 0.98, n)
        q = expit(logit(truth(x)) + effects[:, 0])
        return np.column_stack([1 - x, x]), np.column_stack([1 - q, q])

    return draw


def on_grid(draw: Draw) -> Draw:
    """The same forecasts in multiples of 0.1; of two classes 0.05 and 0.95 instead of 0 and 1."""

    def rounded(n: int, rng: np.random.Generator, effects: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, q = draw(n, rng, effects)
        if p.shape[1] == 2:
            x = np.clip(np.round(p[:, 1], 1), 0.05, 0.95)
            return np.column_stack([1 - x, x]), q
        tenths = np.floor(10 * p)
        rank = np.argsort(np.argsort(tenths - 10 * p, axis=1), axis=1)
        return (tenths + (rank < 10 - tenths.sum(axis=1, keepdims=True))) / 10, q

    return rounded


def squared(x: np.ndarray) -> np.ndarray:
    return x**2


def hump(x: np.ndarray) -> np.ndarray:
    return 0.2 + 0.6 * np.exp(-(((x - 0.5) / 0.2) ** 2))


def wave(x: np.ndarray) -> np.ndarray:
    return 0.5 + 0.35 * np.sin(3 * np.pi * x)


def honest(x: np.ndarray) -> np.ndarray:
    return x


@dataclass(frozen=True)
class Design:
    """A population and a sample of it.

    Attributes
    ----------
    draw : function
        Forecasts and probabilities.
    rule : str
        What is decomposed.
    n : int
        The number of rows.
    groups : int
        The number of groups, of unequal sizes; 0 for independent rows.
    effect : float
        The standard deviation of what the logits of a group's rows have in common.
    weighted : bool
        Whether rows have lognormal weights.
    """

    draw: Draw
    rule: str = "brier"
    n: int = 1000
    groups: int = 0
    effect: float = 0.7
    weighted: bool = False

    def sample(self, seed: list[int]) -> dict[str, np.ndarray | None]:
        """Arguments of `decompose`."""
        rng = np.random.default_rng(seed)
        groups, effects = None, np.zeros((self.n, 3))
        if self.groups:
            sizes = rng.exponential(size=self.groups) + 0.2
            groups = rng.choice(self.groups, self.n, p=sizes / sizes.sum())
            effects = self.effect * rng.normal(size=(self.groups, 3))[groups]
        p, q = self.draw(self.n, rng, effects)
        y = np.minimum((rng.random((self.n, 1)) > np.cumsum(q, axis=1)).sum(axis=1), p.shape[1] - 1)
        weights = rng.lognormal(size=self.n) if self.weighted else None
        return {"y": y, "p": p, "groups": groups, "weights": weights}

    @cache  # noqa: B019
    def truth(self) -> tuple[float, float]:
        """Miscalibration and discrimination of the population, with respect to isotonic recalibration.

        Of 400,000 rows whose probabilities take the place of the outcomes, so that there is no noise.
        """
        n = 400_000
        rng = np.random.default_rng(12345)
        effects = (self.effect if self.groups else 0.0) * rng.normal(size=(n, 3))
        p, q = self.draw(n, rng, effects)
        log = "log" in self.rule
        if self.rule == "rps":
            events = [(p[:, : i + 1].sum(axis=1), q[:, : i + 1].sum(axis=1)) for i in range(p.shape[1] - 1)]
        else:
            events = [(p[:, k], q[:, k]) for k in range(1 if log and p.shape[1] == 2 else 0, p.shape[1])]
        factor = 1 / (p.shape[1] - 1) if self.rule == "rps" else 1.0
        parts = np.array([limits(x, z, log) for x, z in events])
        mcb, dsc = factor * parts.sum(axis=0)
        return float(mcb), float(dsc)


def limits(x: np.ndarray, q: np.ndarray, log: bool) -> tuple[float, float]:
    """Miscalibration and discrimination of one event that happens with probabilities q."""

    def loss(f: np.ndarray) -> float:
        if log:
            return float(-np.mean(xlogy(q, f) + xlogy(1 - q, 1 - f)))
        return float(np.mean(q * (1 - f) ** 2 + (1 - q) * f**2))

    _, pool, size = np.unique(np.round(x, 12), return_inverse=True, return_counts=True)
    fit = isotonic_regression(np.bincount(pool, q) / size, weights=size).x[pool]
    return loss(x) - loss(fit), loss(np.full(len(q), q.mean())) - loss(fit)


@cache
def decompositions(
    design: Design, replications: int, seed: int, bootstrap: int = 60
) -> dict[str, list[bool]]:
    """In which samples each interval covers the truth; both components from the same samples."""
    truth = dict(zip(("miscalibration", "discrimination"), design.truth(), strict=True))
    hits: dict[str, list[bool]] = {name: [] for name in truth}
    for i in range(replications):
        sample = design.sample([seed, i])
        found = vx.decompose(
            sample.pop("y"), sample.pop("p"), rule=design.rule, bootstrap=bootstrap, seed=i, **sample
        )
        for name, value in truth.items():
            low, high = found.intervals[name]
            hits[name].append(low - 1e-9 <= value <= high + 1e-9)
    return hits


def claims_of_decompositions() -> None:
    """Intervals of miscalibration and discrimination, and the p-value of calibration."""
    curved, humped, waved, calm = binary(squared), binary(hump), binary(wave), binary(honest)
    sure = too_sure(1.5)
    designs = {
        "1.5 times too sure, Brier": Design(sure),
        "1.5 times too sure, RPS": Design(sure, "rps"),
        "1.5 times too sure, log": Design(sure, "log_score"),
        "on a 0.1 grid, Brier": Design(on_grid(sure)),
        "on a 0.1 grid, RPS": Design(on_grid(sure), "rps"),
        "curved, 300 rows, Brier": Design(curved, n=300),
        "curved on a 0.1 grid, log": Design(on_grid(curved), "log_score"),
        "one hump, 400 rows, Brier": Design(humped, n=400),
        "a wave, log": Design(waved, "log_score"),
        "1.5 times too sure, lognormal weights, Brier": Design(sure, weighted=True),
        "1.5 times too sure, 50 groups, Brier": Design(sure, groups=50),
        "1.5 times too sure, 50 groups, log": Design(sure, "log_score", groups=50),
        "on a 0.1 grid, 50 groups, RPS": Design(on_grid(sure), "rps", groups=50),
        "one hump, 40 groups, Brier": Design(humped, groups=40),
        "1.5 times too sure, 20 groups, RPS": Design(sure, "rps", groups=20),
        "1.5 times too sure, 8 groups, RPS": Design(sure, "rps", groups=8),
    }
    for label, design in designs.items():
        for name in ("miscalibration", "discrimination"):

            def measure(
                replications: int, seed: int, design: Design = design, name: str = name
            ) -> tuple[float, float]:
                return share_of(decompositions(design, replications, seed)[name])

            low = 0.91 if design.groups == 8 else 0.93
            claim(f"{name}: {label}", low, 0.97, measure)
    for label, design in (("", Design(calm)), (", 0.1 grid", Design(on_grid(calm)))):

        def covered(replications: int, seed: int, design: Design = design) -> tuple[float, float]:
            return share_of(decompositions(design, replications, seed)["miscalibration"])

        claim(f"miscalibration: calibrated{label}, Brier", 0.93, 1.0, covered)


claims_of_decompositions()
