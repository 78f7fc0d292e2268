"""Shares and means of losses: how often their intervals cover, and how wide they are.

Widths are divided by that of the interval that knows the true variance of the estimate: twice 1.96 times its
standard deviation over the samples of a design.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import norm

import verax as vx
from covers.claims import Measure, claim, share_of
from verax.inference.estimated import ShareEstimate
from verax.inference.intervals import FewGroups

ORACLE = 2 * 1.959963984540054
# The share of right rows of sites of another kind.
_OTHER = 0.5


def in_groups(groups: int, mean: float, kind: str) -> np.ndarray:
    """Sizes of groups: equal, falling like 1 / rank, or quantiles of a skewed distribution."""
    if kind == "equal":
        size = np.full(groups, mean)
    elif kind == "ranked":
        size = 1 / np.arange(1, groups + 1)
    else:
        size = (-np.log1p(-(np.arange(groups) + 0.5) / groups)) ** 1.4
    return np.maximum(np.round(size * mean * groups / size.sum()), 1).astype(int)


@dataclass(frozen=True)
class Sites:
    """Right and wrong rows of sites, whose own shares vary.

    Attributes
    ----------
    share : float
        The share of right rows everywhere.
    alike : float
        The correlation of the rows of a site.
    groups, mean : int
        The number of sites, and the mean number of their rows.
    sizes : str
        How these vary.
    law : str
        The distribution of the shares of sites: "beta", or "logit" for normal logits.
    weighted : bool
        Whether rows have exponential weights, which say nothing of the outcome.
    other : float
        The chance that a site is of another kind, with a share of 0.5.
    few : "unseen" or None
        What is assumed of groups.
    """

    share: float
    alike: float
    groups: int
    mean: int
    sizes: str = "equal"
    law: str = "beta"
    weighted: bool = False
    other: float = 0.0
    few: FewGroups = None

    def __str__(self) -> str:
        weights = ", with weights" if self.weighted else ""
        other = f", {100 * self.other:g} % of another kind" if self.other else ""
        return (
            f"{self.groups} groups of {self.mean} ({self.sizes}), share {self.share:g}, correlation "
            f"{self.alike:g} ({self.law}){weights}{other}"
        )

    @property
    def truth(self) -> float:
        """The share over sites of both kinds."""
        return self.share + self.other * (_OTHER - self.share)

    @cache  # noqa: B019
    def scale(self) -> float:
        """The standard deviation of normal logits that gives sites this correlation."""
        z = norm.ppf((np.arange(2000) + 0.5) / 2000)
        wanted, low, high = self.alike * self.share * (1 - self.share), 0.0, 8.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if expit(self._centre(middle) + middle * z).var() < wanted else (low, middle)
            )
        return high

    def _centre(self, scale: float) -> float:
        """The mean of logits whose shares have the right mean."""
        z, low, high = norm.ppf((np.arange(2000) + 0.5) / 2000), -12.0, 12.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if expit(middle + scale * z).mean() < self.share else (low, middle)
        return low

    def of_sites(self, rng: np.random.Generator) -> np.ndarray:
        """The share of right rows of each site."""
        if self.other:
            alone = replace(self, other=0.0).of_sites(rng)
            return np.where(rng.random(self.groups) < self.other, _OTHER, alone)
        if self.alike == 0:
            return np.full(self.groups, self.share)
        if self.law == "logit":
            scale = self.scale()
            return expit(self._centre(scale) + scale * rng.normal(size=self.groups))
        odds = (1 - self.alike) / self.alike
        return rng.beta(self.share * odds, (1 - self.share) * odds, self.groups)

    @cache  # noqa: B019
    def samples(self, replications: int, seed: int) -> np.ndarray:
        """The share of each sample, and the ends of its interval."""
        size = in_groups(self.groups, self.mean, self.sizes)
        found = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            right = rng.binomial(size, self.of_sites(rng)).astype(float)
            weight, n = size.astype(float), float(size.sum())
            if self.weighted:
                site = np.repeat(np.arange(self.groups), size)
                hit = np.concatenate([np.arange(m) < k for m, k in zip(size, right, strict=True)])
                w = rng.exponential(size=len(site))
                right, weight = (np.bincount(site, x, self.groups) for x in (w * hit, w))
                share = right.sum() / weight.sum()
                kish = w.sum() ** 2 / (w @ w)
                variance = float(((w * (hit - share)) ** 2).sum() / w.sum() ** 2)
                n = float(ShareEstimate.of_rows(share, kish, variance, len(w)).shares.n)
            known = ShareEstimate.over_groups([(right, weight)], n, self.groups, self.few)
            found.append((right.sum() / weight.sum(), *known.interval(0.95)))
        return np.array(found)


def measured(samples: np.ndarray, truth: float, what: str) -> tuple[float, float]:
    """The coverage of intervals, or their mean width over that of the interval that knows the variance."""
    share, low, high = samples.T
    if what == "coverage":
        return share_of([bool(a <= truth <= b) for a, b in zip(low, high, strict=True)])
    widths = (high - low) / (ORACLE * share.std(ddof=1))
    return float(widths.mean()), float(
        np.hypot(widths.std() / len(widths) ** 0.5, widths.mean() / (2 * len(widths)) ** 0.5)
    )


SITES = [
    Sites(0.9, 0.0, 9, 130),
    Sites(0.9, 0.03, 9, 130, "ranked"),
    Sites(0.9, 0.1, 25, 130, "skewed"),
    Sites(0.7, 0.15, 6, 300, law="logit"),
    Sites(0.7, 0.02, 16, 300, "skewed", "logit"),
    Sites(0.97, 0.0, 16, 600),
    Sites(0.97, 0.05, 16, 600, law="logit"),
    Sites(0.97, 0.02, 30, 80, "ranked", "logit"),
    Sites(0.6, 0.2, 30, 25),
    Sites(0.85, 0.2, 14, 70, "skewed"),
    Sites(0.85, 0.05, 14, 70, "skewed", weighted=True),
    Sites(0.95, 0.0, 14, 70, weighted=True),
    Sites(0.8, 0.6, 60, 4),
    Sites(0.95, 0.6, 60, 4, "skewed"),
    Sites(0.987, 0.0, 20, 250),
    Sites(0.8, 0.0, 20, 250),
]
# Gates: the bound, what is true, and how often the gate should be passed.
GATES = [
    (0.98, Sites(0.99, 0.0, 12, 1000), (0.95, 1.0)),
    (0.97, Sites(0.985, 0.0, 15, 700, "skewed"), (0.8, 1.0)),
    (0.98, Sites(0.98, 0.0, 12, 1000), (0.0, 0.025)),
    (0.9, Sites(0.9, 0.05, 10, 400, "skewed"), (0.0, 0.025)),
]
# What the interval does not hold for: rows of a group that resemble each other by more than is assumed.
BEYOND = [Sites(0.9, 0.45, 12, 150), Sites(0.96, 0.35, 24, 200, law="logit")]


def of_sites(design: Sites, what: str) -> Measure:
    """A claim about the sites of a design."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        return measured(design.samples(replications, seed), design.truth, what)

    return measure


for design in SITES:
    claim(f"shares over groups: coverage, {design}", 0.93, 1.0, of_sites(design, "coverage"), 2000)
    claim(f"shares over groups: width, {design}", 0.95, 2.0, of_sites(design, "width"), 2000)
for design in BEYOND:
    claim(f"shares over groups: too alike, {design}", 0.8, 0.97, of_sites(design, "coverage"), 2000)


def passes(bound: float, design: Sites) -> Measure:
    """How often a gate is passed: whether the lower limit of a share that gates take exceeds a bound."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        size, hits = in_groups(design.groups, design.mean, design.sizes).astype(float), []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            right = rng.binomial(size.astype(int), design.of_sites(rng)).astype(float)
            known = ShareEstimate.over_groups([(right, size)], float(size.sum()), design.groups)
            hits.append(known.guaranteed(0.95).low > bound)
        return share_of(hits)

    return measure


for bound, design, wanted in GATES:
    where = "at the bound" if design.share == bound else f"above {bound:g}"
    claim(f"gates: passed {where}, {design}", *wanted, passes(bound, design), 1000)


def lower_end(wrong: int, size: int, groups: int) -> Measure:
    """The lower limit where all of these rows are wrong in one group, and none elsewhere."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        del replications, seed
        sizes = np.full(groups, size // groups, float)
        sizes[: size % groups] += 1
        right = sizes - wrong * (np.arange(groups) == 0)
        return ShareEstimate.over_groups([(right, sizes)], float(size), groups).interval(0.95).low, 0.0

    return measure


claim("gates: lower limit, 1 of 4,916 rows in 20 groups is wrong", 0.97, 1.0, lower_end(1, 4916, 20), 1)
claim("gates: lower limit, 2 of 3,100 rows in 14 groups are wrong", 0.95, 1.0, lower_end(2, 3100, 14), 1)

# Where a quarter of a group may be unlike all that were seen; with sites of a kind that is often not seen.
UNSEEN = [
    Sites(0.9, 0.05, 12, 150),
    Sites(0.97, 0.0, 20, 250, "ranked"),
    Sites(0.7, 0.1, 8, 300, law="logit"),
    Sites(0.95, 0.02, 12, 150, other=0.05),
    Sites(0.95, 0.02, 25, 100, other=0.04),
    Sites(0.95, 0.02, 60, 60, other=0.02),
]
for design in UNSEEN:
    stated = replace(design, few="unseen")
    claim(f"shares with unseen groups: coverage, {design}", 0.93, 1.0, of_sites(stated, "coverage"), 2000)
    claim(f"shares with unseen groups: width, {design}", 0.95, 50.0, of_sites(stated, "width"), 2000)
    if design.other:
        assumed = of_sites(design, "coverage")
        claim(f"shares with unseen groups: coverage as assumed otherwise, {design}", 0.0, 1.0, assumed, 2000)


# ---- shares of rows ----------------------------------------------------------------------------


def of_rows(n: int, share: float, what: str) -> Measure:
    """Shares of independent rows, by enumeration of all counts: there is no Monte Carlo error."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        del replications, seed
        from scipy.stats import binom

        from verax.inference.shares import mid_p_limits

        counts = np.arange(n + 1)
        chance, (low, high) = binom.pmf(counts, n, share), mid_p_limits(counts / n, n, 0.025)
        missed = {"below": share > high, "above": share < low}
        missed["coverage"] = ~(missed["below"] | missed["above"])
        return float(chance[missed[what]].sum()), 0.0

    return measure


for n, share in ((25, 0.92), (60, 0.97), (120, 0.985), (250, 0.6), (400, 0.995)):
    claim(
        f"shares of rows: coverage, {n} rows, share {share:g}", 0.915, 1.0, of_rows(n, share, "coverage"), 1
    )
    claim(
        f"shares of rows: true share above, {n} rows, share {share:g}",
        0.0,
        0.05,
        of_rows(n, share, "below"),
        1,
    )


# ---- means of losses ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Losses:
    """Losses of forecasts of an event by a rule, of independent rows or in groups with a shift of their own.

    Attributes
    ----------
    rule : str
        The rule.
    offset : float
        The logit of the forecast of a middling row: negative for a rare event.
    n : int
        The number of rows.
    groups : int
        The number of groups, of unequal sizes; 0 for independent rows.
    shift : float
        The standard deviation of the shifts of logits of groups.
    """

    rule: str
    offset: float
    n: int
    groups: int = 0
    shift: float = 0.0

    def __str__(self) -> str:
        where = f" in {self.groups} groups, shift {self.shift:g}" if self.groups else ""
        return f"{self.rule}, {self.n} rows{where}, offset {self.offset:g}"

    def rows(self, rng: np.random.Generator, n: int, groups: int) -> tuple[Any, Any, Any]:
        """Outcomes, forecasts and groups."""
        group = None
        shift = np.zeros(n)
        if groups:
            size = in_groups(groups, n / groups, "skewed")
            group = rng.choice(groups, n, p=size / size.sum())
            shift = self.shift * rng.normal(size=groups)[group]
        z = self.offset + 1.2 * rng.normal(size=n)
        return (rng.random(n) < expit(z + shift)).astype(int), expit(1.2 * z), group

    @cache  # noqa: B019
    def truth(self) -> float:
        """The mean loss of many rows."""
        y, p, _ = self.rows(np.random.default_rng(12345), 1_000_000, 100_000 if self.groups else 0)
        return vx.evaluate(y, p, rules=[self.rule], bootstrap=2)[self.rule]

    @cache  # noqa: B019
    def samples(self, replications: int, seed: int) -> np.ndarray:
        """The mean of each sample, and the ends of its interval."""
        found = []
        for i in range(replications):
            y, p, group = self.rows(np.random.default_rng([seed, i]), self.n, self.groups)
            line = vx.evaluate(y, p, groups=group, rules=[self.rule], bootstrap=2).scores[self.rule]
            found.append((line.mean, *line.interval))
        return np.array(found)


LOSSES = [
    Losses("brier", 0.0, 150),
    Losses("brier", -3.5, 800),
    Losses("log_score", -3.5, 800),
    Losses("log_score", -5.0, 3000),
    Losses("brier", 0.0, 600, 9, 0.6),
    Losses("brier", -3.5, 1500, 9, 0.6),
    Losses("log_score", -3.5, 1500, 14, 0.6),
    Losses("log_score", -3.5, 3000, 40, 0.3),
]


def of_losses(design: Losses, what: str) -> Measure:
    """A claim about the losses of a design."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        return measured(design.samples(replications, seed), design.truth(), what)

    return measure


def widest(design: Losses) -> Measure:
    """The 99th percentile of widths, over that of the interval that knows the variance."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        share, low, high = design.samples(replications, seed).T
        widths = (high - low) / (ORACLE * share.std(ddof=1))
        rng = np.random.default_rng(seed)
        again = [np.quantile(rng.choice(widths, len(widths)), 0.99) for _ in range(200)]
        return float(np.quantile(widths, 0.99)), float(np.std(again))

    return measure


# Rare events over groups, whose losses are sums of a few rows.
RARE = [
    Losses("brier", -4.0, 2000, 11, 0.3),
    Losses("log_score", -4.0, 2000, 11, 0.3),
    Losses("log_score", -4.5, 5000, 24, 0.0),
]
for losses in RARE:
    claim(f"means of losses: 99th percentile of width, {losses}", 1.0, 4.0, widest(losses), 400)
for losses in LOSSES:
    claim(f"means of losses: coverage, {losses}", 0.92, 0.98, of_losses(losses, "coverage"), 1000)
    claim(f"means of losses: width, {losses}", 0.95, 1.6, of_losses(losses, "width"), 1000)
