"""Several raters: loss, disagreement, excess and worth; tests of calibration against all their labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import softmax

import verax as vx
from covers.claims import Measure, claim, share_of

VALUES = ("loss", "disagreement", "excess", "worth")


@dataclass(frozen=True)
class Panels:
    """Cases with raters who draw their labels from the truth of the case, and forecasts beside it.

    Attributes
    ----------
    n : int
        The number of cases.
    raters : int
        The mean number of raters of a case; each has at least two.
    groups : int
        The number of groups, of unequal sizes, whose cases have a common deviation; 0 for none.
    """

    n: int
    raters: int
    groups: int = 0

    def sample(self, rng: np.random.Generator, alone: int = 0) -> tuple[np.ndarray, ...]:
        """Truths, forecasts and groups; of `alone` cases each is a group of its own."""
        n = alone or self.n
        group = np.arange(n)
        if self.groups and not alone:
            group = rng.choice(self.groups, n, p=rng.dirichlet(np.full(self.groups, 2.0)))
        effects = rng.normal(scale=0.7 if self.groups else 0.0, size=(n, 4))[group]
        z = rng.normal(scale=1.5, size=(n, 4)) + effects
        return softmax(z, axis=1), softmax(1.3 * z + rng.normal(scale=0.5, size=(n, 4)), axis=1), group

    def labels(self, q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The numbers of raters for each class."""
        more = rng.binomial(2 * (self.raters - 2), 0.5, len(q))
        return rng.multinomial(2 + more, q / q.sum(axis=1, keepdims=True))


@cache
def true_values(setting: Panels, rule: str) -> dict[str, float]:
    """The values in the population, from the truths of 400,000 cases."""
    q, p, _ = setting.sample(np.random.default_rng(10**6), 400_000)
    scored = vx.parse(rule)
    loss, h = float(np.mean(scored.expected(p, q))), float(np.mean(scored.entropy(q)))
    return {"loss": loss, "disagreement": h, "excess": loss - h, "worth": h / (loss - h)}


@cache
def rater_hits(setting: Panels, rule: str, replications: int, seed: int) -> dict[str, list[bool]]:
    """Whether each interval covers, in every replication."""
    truth = true_values(setting, rule)
    hits: dict[str, list[bool]] = {name: [] for name in VALUES}
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        q, p, group = setting.sample(rng)
        own = {"groups": group} if setting.groups else {}
        found = vx.raters(setting.labels(q, rng), p, rule=rule, raters="counts", n=1, **own)
        for name in VALUES:
            low, high = getattr(found, name).interval
            hits[name].append(bool(low <= truth[name] <= high))
    return hits


def covered(setting: Panels, rule: str, name: str) -> Measure:
    """How often the interval of a value covers it."""
    return lambda replications, seed: share_of(rater_hits(setting, rule, replications, seed)[name])


def rejections(raters: int, rule: str) -> Measure:
    """How often `decompose` of calibrated forecasts has a p-value of at most 5 percent."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        p_values = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            q = softmax(rng.normal(scale=1.5, size=(200, 3)), axis=1)
            counts = rng.multinomial(raters, q)
            found = vx.decompose(counts, q, rule=rule, raters="counts", bootstrap=59, seed=i)
            p_values.append(found.p_value)
        return share_of([p is not None and p <= 0.05 for p in p_values])

    return measure


for setting in (Panels(100, 2), Panels(300, 3), Panels(300, 20), Panels(400, 3, 30)):
    groups = f", {setting.groups} groups" if setting.groups else ""
    where = f"{setting.n} cases, {setting.raters} raters{groups}"
    for rule in ("brier", "rps"):
        for name in VALUES:
            claim(f"raters: {name}, {rule}, {where}", 0.93, 0.97, covered(setting, rule, name))
for raters in (1, 3, 10):
    for rule in ("brier", "rps"):
        claim(
            f"raters: size of the calibration test, {rule}, 200 cases, {raters} raters",
            0.03,
            0.065,
            rejections(raters, rule),
        )
