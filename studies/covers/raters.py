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


@dataclass(frozen=True)
class NamedRaters:
    """Cases labelled by raters with names, who lean to some classes, and forecasts of their mean.

    Attributes
    ----------
    n, raters : int
        The numbers of cases and of raters.
    spread : float
        The standard deviation of the logits that a rater adds for each class.
    each : int
        How many raters, at random, label a case; 0 for all of them.
    """

    n: int
    raters: int
    spread: float
    each: int = 0

    def cases(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Logits and forecasts of cases."""
        z = rng.normal(scale=1.5, size=(n, 3))
        return z, softmax(z + rng.normal(scale=0.5, size=(n, 3)), axis=1)

    @cache  # noqa: B019
    def everybody(self) -> float:
        """The worth among all raters, from 20,000 cases and 300 raters."""
        rng = np.random.default_rng(10**6)
        z, p = self.cases(rng, 20_000)
        q = np.mean([softmax(z + rng.normal(scale=self.spread, size=3), axis=1) for _ in range(300)], axis=0)
        return float((1 - (q**2).sum(axis=1)).mean() / ((p - q) ** 2).sum(axis=1).mean())

    def of_panel(self, leanings: np.ndarray) -> float:
        """The worth among these raters only, from 20,000 cases: two of them disagree as they do."""
        z, p = self.cases(np.random.default_rng(10**6), 20_000)
        own = softmax(z[:, None] + leanings, axis=2)
        q, m = own.mean(axis=1), len(leanings)
        # Two different raters agree as often as any two, less one with himself.
        same = (m * (q**2).sum(axis=1) - (own**2).sum(axis=2).mean(axis=1)) / (m - 1)
        h = (1 - same).mean()
        loss = (1 - 2 * (p * q).sum(axis=1) + (p**2).sum(axis=1)).mean()
        return float(h / (loss - h))

    @cache  # noqa: B019
    def hits(self, replications: int, seed: int) -> dict[str, list[bool]]:
        """Whether the intervals cover the worth among all raters, and among those of the panel."""
        hits: dict[str, list[bool]] = {"general": [], "panel": []}
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            leanings = rng.normal(scale=self.spread, size=(self.raters, 3))
            z, p = self.cases(rng, self.n)
            q = softmax(z[:, None] + leanings, axis=2)
            y = (rng.random((*q.shape[:2], 1)) > np.cumsum(q, axis=2)).sum(axis=2).clip(0, 2).astype(float)
            if self.each:
                absent = rng.permuted(np.tile(np.arange(self.raters) >= self.each, (self.n, 1)), axis=1)
                y[absent] = np.nan
            found = vx.raters(y, p, raters="columns", classes=[0, 1, 2], n=1)
            assert found.general is not None
            truths = {"general": self.everybody(), "panel": self.of_panel(leanings)}
            for name, of in (("general", found.general), ("panel", found.worth)):
                low, high = of.interval
                hits[name].append(bool(low <= truths[name] <= high))
        return hits


def rare_misses(n: int, raters: int, share: float, kind: str) -> Measure:
    """How often the interval of the excess misses and has no caution, where a class is rare."""

    def sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        rare = (rng.random(n) < share)[:, None]
        if kind == "two classes":
            return np.where(rare, [0.2, 0.8], [0.98, 0.02]), np.where(rare, [0.7, 0.3], [0.97, 0.03])
        if kind == "three classes":
            truth = np.where(rare, [0.1, 0.1, 0.8], [0.5, 0.5, 0.0])
            return truth, np.where(rare, [0.45, 0.45, 0.1], [0.48, 0.48, 0.04])
        a = np.column_stack([rng.dirichlet(np.ones(3), n), np.zeros(n)])
        return np.where(rare, [0.1, 0.1, 0.1, 0.7], a), np.where(
            rare, [0.3, 0.3, 0.3, 0.1], 0.95 * a + 0.0125
        )

    def measure(replications: int, seed: int) -> tuple[float, float]:
        q, p = sample(np.random.default_rng(10**6), 400_000)
        truth = float(((p - q) ** 2).sum(axis=1).mean())
        missed = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            q, p = sample(rng, n)
            own = vx.raters(rng.multinomial(raters, q), p, raters="counts", n=1).excess.interval
            missed.append(not (own.low <= truth <= own.high or own.caution))
        return share_of(missed)

    return measure


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
for named in (
    NamedRaters(300, 3, 0.5),
    NamedRaters(300, 6, 0.0),
    NamedRaters(300, 6, 0.5),
    NamedRaters(300, 6, 1.0),
    NamedRaters(1000, 10, 0.8),
    NamedRaters(300, 12, 0.8, each=4),
):
    some = f", {named.each} per case" if named.each else ""
    where = f"{named.n} cases, {named.raters} raters{some} who lean by {named.spread:g}"
    for name, whose in (("general", "raters in general"), ("panel", "the panel")):

        def of_named(
            replications: int, seed: int, named: NamedRaters = named, name: str = name
        ) -> tuple[float, float]:
            """How often the interval covers."""
            return share_of(named.hits(replications, seed)[name])

        if name == "general" or not named.each:
            claim(f"raters: worth for {whose}, {where}", 0.92, 0.99, of_named, 400)
for rare in (
    (60, 5, 0.05, "two classes"),
    (60, 20, 0.03, "three classes"),
    (60, 10, 0.03, "four classes"),
    (200, 30, 0.02, "four classes"),
):
    where = f"{rare[0]} cases, {rare[1]} raters, {rare[3]}"
    claim(f"raters: excess missed without a caution, rare class, {where}", 0, 0.07, rare_misses(*rare), 400)
