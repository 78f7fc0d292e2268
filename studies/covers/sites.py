"""Sites: what the next one will have, the mean of sites, and sites that are named falsely."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import verax as vx
from covers.claims import Measure, claim, share_of

# Effects on the log odds of sites, with mean 0 and standard deviation 1.
EFFECTS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "normal": lambda rng, k: rng.normal(size=k),
    "skewed": lambda rng, k: rng.exponential(size=k) - 1,
    "two kinds": lambda rng, k: np.where(rng.random(k) < 0.2, 2.0, -0.5),
}


def risks(rng: np.random.Generator, n: int) -> Any:
    """The log odds of forecasts that are right at the average site."""
    return rng.normal(-2.2, 0.9, n)


@cache
def expected() -> Any:
    """Many log odds, over which the truth of a site is averaged."""
    return risks(np.random.default_rng(0), 40_000)


def true_ratio(effect: float) -> float:
    """O:E of a site with this effect on the log odds, in many rows."""
    x = expected()
    return float((1 / (1 + np.exp(-x - effect))).sum() / (1 / (1 + np.exp(-x))).sum())


def sites(rng: np.random.Generator, k: int, rows: int, tau: float, effects: str) -> tuple[Any, ...]:
    """Rows of sites of unequal sizes, and the effects of these and of the next one."""
    sizes = np.maximum(60, rows * rng.gamma(3.0, 1 / 3, k)).astype(int)
    effect = tau * EFFECTS[effects](rng, k + 1)
    site = np.repeat(np.arange(k), sizes)
    x = risks(rng, len(site))
    y = rng.random(len(site)) < 1 / (1 + np.exp(-x - effect[site]))
    return y, 1 / (1 + np.exp(-x)), site, effect


def of_next(k: int, rows: int, tau: float, effects: str) -> Measure:
    """How often the prediction interval holds the O:E of the next site."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits = []
        for i in range(replications):
            y, p, site, effect = sites(np.random.default_rng([seed, i]), k, rows, tau, effects)
            low, high = vx.sites(y, p, sites=site).next_site.interval
            if not math.isnan(low):
                hits.append(bool(low <= true_ratio(effect[-1]) <= high))
        return share_of(hits)

    return measure


def of_mean(k: int, rows: int, tau: float, effects: str) -> Measure:
    """How often the interval of the mean covers that of log O:E over sites like these."""

    @cache
    def truth() -> float:
        effect = tau * EFFECTS[effects](np.random.default_rng(1), 1000)
        return float(np.exp(np.mean([math.log(true_ratio(e)) for e in effect.tolist()])))

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits = []
        for i in range(replications):
            y, p, site, _ = sites(np.random.default_rng([seed, i]), k, rows, tau, effects)
            low, high = vx.sites(y, p, sites=site).summary["oe"].mean.interval
            if not math.isnan(low):
                hits.append(bool(low <= truth() <= high))
        return share_of(hits)

    return measure


def named(k: int, rows: int, tau: float, effects: str) -> Measure:
    """How often a site is said to stand out, where all are of one kind."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits = []
        for i in range(replications):
            y, p, site, _ = sites(np.random.default_rng([seed, i]), k, rows, tau, effects)
            hits.append("site_stands_out" in vx.sites(y, p, sites=site).verdict.claims)
        return share_of(hits)

    return measure


for k, rows, tau, effects in (
    *((5, 400, 0.0, "normal"), (5, 400, 0.2, "normal"), (5, 400, 0.4, "normal")),
    *((10, 300, 0.2, "normal"), (10, 300, 0.4, "normal")),
    *((8, 400, 0.3, "skewed"), (8, 400, 0.3, "two kinds")),
):
    design = f"{k} sites of about {rows} rows, standard deviation {tau:g}, {effects}"
    claim(f"sites: O:E of the next one, {design}", 0.92, 1.0, of_next(k, rows, tau, effects), 400)
    claim(f"sites: mean of O:E, {design}", 0.92, 1.0, of_mean(k, rows, tau, effects), 400)
    if effects == "normal":
        claim(f"sites: one is named falsely, {design}", 0.0, 0.06, named(k, rows, tau, effects), 400)
