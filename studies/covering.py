"""Do intervals and tests keep their word? Coverage and sizes by simulation, claim by claim.

    python studies/covering.py              # all claims
    python studies/covering.py NAME ...     # those whose names contain one of these texts
    python studies/covering.py --list

Prints a Markdown table: what was measured, its Monte Carlo error, and what is wanted. The tables of
studies/coverage.md come from here. A claim is a function of the number of replications and of the seed that
returns a share and its Monte Carlo error; `claim` registers it with the range that it should lie in.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.signal import lfilter
from scipy.special import expit, logit, ndtri, softmax, xlogy

import verax as vx
from verax.analyses.calibration.overconfidence import overconfidence_of
from verax.analyses.calibration.summary import summarize
from verax.analyses.cards.intervals import CardIntervals
from verax.engines.differences import PairedTally
from verax.engines.tally import RuleSums
from verax.inference.estimates import Estimate, Units, bootstrap_means, bootstrap_p, permutation_p
from verax.inference.intervals import Resampling
from verax.inference.series import LongRun
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups
from verax.scores.metrics import find_metric

Measure = Callable[[int, int], tuple[float, float]]


@dataclass(frozen=True)
class Claim:
    """What is claimed: that a share lies in a range.

    Attributes
    ----------
    name : str
        Subject and conditions, separated by colons.
    wanted : (float, float)
        The range that the share should lie in.
    measure : function of (replications, seed)
        Returns the share and its Monte Carlo error.
    replications : int
        How many replications the tables take.
    """

    name: str
    wanted: tuple[float, float]
    measure: Measure
    replications: int = 1000

    def holds(self, share: float, error: float) -> bool:
        """Whether the share lies in the range, give or take two Monte Carlo errors."""
        low, high = self.wanted
        return math.isnan(share) or low - 2 * error <= share <= high + 2 * error


CLAIMS: dict[str, Claim] = {}


def claim(name: str, low: float, high: float, measure: Measure, replications: int = 1000) -> None:
    """Register a claim."""
    CLAIMS[name] = Claim(name, (low, high), measure, replications)


def share_of(hits: list[bool]) -> tuple[float, float]:
    """The share of hits, and its Monte Carlo error; NaN where there was nothing to hit."""
    if not hits:
        return math.nan, math.nan
    share = sum(hits) / len(hits)
    return share, math.sqrt(max(share * (1 - share), 1 / len(hits)) / len(hits))


# ---- decomposition -----------------------------------------------------------------------------

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


# ---- tests of calibration with groups ----------------------------------------------------------


def grouped(n: int, n_groups: int, factor: float, seed: list[int]) -> tuple[np.ndarray, ...]:
    """Outcomes, forecasts and groups of unequal sizes. With a factor of 1 the forecasts are calibrated.

    Rows of a group depend on each other: some of them take their outcomes from the same uniform number.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.exponential(size=n_groups) + 0.2
    groups = rng.choice(n_groups, n, p=sizes / sizes.sum())
    z = rng.normal(size=(n, 3))
    u = np.where(rng.random(n) < 0.3, rng.random(n_groups)[groups], rng.random(n))
    y = np.minimum((u[:, None] > np.cumsum(softmax(z, axis=1), axis=1)).sum(axis=1), 2)
    return y, softmax(factor * z, axis=1), groups


def rejections_of_calibration(rule: str, n: int, n_groups: int, factor: float) -> Measure:
    """How often `decompose` has a p-value of at most 5 percent."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        p_values = []
        for i in range(replications):
            y, p, groups = grouped(n, n_groups, factor, [seed, i])
            p_values.append(vx.decompose(y, p, rule=rule, groups=groups, bootstrap=59, seed=i).p_value)
        return share_of([p is not None and p <= 0.05 for p in p_values])

    return measure


def rejections_of_overconfidence(n: int, n_groups: int, factor: float) -> Measure:
    """How often the report's test of the most likely class has a p-value of at most 5 percent."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        p_values = []
        for i in range(replications):
            y, p, groups = grouped(n, n_groups, factor, [seed, i])
            p_values.append(overconfidence_of(Forecasts(y, p, groups=groups)).p_value)
        return share_of([p is not None and p <= 0.05 for p in p_values])

    return measure


for n, n_groups in ((300, 8), (300, 20), (1000, 50)):
    where = f"{n_groups} groups, {n} rows"
    for rule in ("brier", "rps"):
        claim(
            f"calibration test: size, {rule}, {where}",
            0.03,
            0.065,
            rejections_of_calibration(rule, n, n_groups, 1.0),
        )
    claim(
        f"calibration test: power at 1.5, brier, {where}",
        0.3,
        1.0,
        rejections_of_calibration("brier", n, n_groups, 1.5),
    )
    claim(f"too sure test: size, {where}", 0.03, 0.065, rejections_of_overconfidence(n, n_groups, 1.0), 2000)
    claim(
        f"too sure test: power at 1.5, {where}",
        0.5,
        1.0,
        rejections_of_overconfidence(n, n_groups, 1.5),
        2000,
    )


# ---- cards with two kinds of groups ------------------------------------------------------------


def crossed(n: int, sizes: tuple[int, ...], rng: np.random.Generator) -> list[np.ndarray]:
    """The groups of rows, of unequal sizes, for each kind."""
    shares = [rng.exponential(size=n_groups) + 0.2 for n_groups in sizes]
    return [rng.choice(len(share), n, p=share / share.sum()) for share in shares]


def league_and_date(kinds: list[np.ndarray], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes and forecasts of three classes, whose logits should be larger or smaller in every group."""
    factor = np.exp(sum(rng.normal(0, 0.8, int(kind.max()) + 1)[kind] for kind in kinds))
    z = rng.normal(size=(len(factor), 3))
    q = softmax(z * factor[:, None], axis=1)
    y = np.minimum((rng.random((len(q), 1)) > np.cumsum(q, axis=1)).sum(axis=1), 2)
    return y, softmax(z, axis=1)


def line_of(card: vx.results.Scorecard, name: str) -> Any:
    return {**card.scores, **card.metrics}[name]


@cache
def league_and_date_truth(name: str) -> float:
    """The value for 400,000 rows of 3,000 leagues and dates."""
    rng = np.random.default_rng(12345)
    y, p = league_and_date([rng.integers(0, 3000, 400_000) for _ in range(2)], rng)
    return line_of(vx.evaluate(y, p, ordered=True, bootstrap=2), name).mean


def coverage_of_cards(name: str, n: int, sizes: tuple[int, int], used: str) -> Measure:
    """How often the interval of a card covers, by one kind of groups or by both."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            kinds = crossed(n, sizes, rng)
            y, p = league_and_date(kinds, rng)
            groups = {"the first kind only": kinds[0], "the second kind only": kinds[1], "both": kinds}[used]
            low, high = line_of(vx.evaluate(y, p, ordered=True, groups=groups), name).interval
            hits.append(low <= league_and_date_truth(name) <= high)
        return share_of(hits)

    return measure


for n, sizes in ((400, (10, 30)), (600, (20, 20))):
    for name in ("brier", "qwk"):
        for used in ("the first kind only", "the second kind only", "both"):
            low, high = (0.93, 0.97) if used == "both" else (0.0, 0.93)
            label = f"two kinds of groups: {name}, {sizes[0]} and {sizes[1]} groups, {used}"
            claim(label, low, high, coverage_of_cards(name, n, sizes, used), 400)


# ---- metrics of decisions with rare classes ----------------------------------------------------

DECISIONS = ("kappa", "qwk", "macro_f1", "balanced_accuracy", "macro_mae")


def confusion(shares: tuple[float, ...], right: tuple[float, ...]) -> np.ndarray:
    """Probabilities of outcomes and decisions; wrong decisions are as frequent as the other classes."""
    others = np.tile(shares, (len(shares), 1)) * (1 - np.eye(len(shares)))
    wrong = (1 - np.array(right))[:, None] * others / others.sum(axis=1, keepdims=True)
    return np.array(shares)[:, None] * (wrong + np.diag(right))


@cache
def rare_hits(
    shares: tuple[float, ...], right: tuple[float, ...], n: int, replications: int, seed: int
) -> dict[str, list[bool]]:
    """In which samples the interval of each metric covers, and which have no width."""
    chance, metrics = confusion(shares, right), tuple(find_metric(name) for name in DECISIONS)
    found: dict[str, list[bool]] = {}
    for i in range(replications):
        table = np.random.default_rng([seed, i]).multinomial(n, chance.ravel()).reshape(chance.shape)
        y, decided = np.repeat(np.indices(chance.shape).reshape(2, -1), table.ravel(), axis=1)
        tally = RuleSums([], len(shares)).update(Forecasts(y, np.eye(len(shares))[decided]))
        intervals = CardIntervals(tally, metrics, Resampling(replicates=400, seed=i))
        for j, metric in enumerate(metrics):
            low, high = intervals.of_metric(j, float(metric.of(table[None])[0]))
            truth = float(metric.of(1e6 * chance[None])[0])
            found.setdefault(metric.name, []).append(low <= truth <= high)
            found.setdefault(f"{metric.name} without width", []).append(high - low < 1e-9)
    return found


def claims_of_decisions() -> None:
    """Coverage of metrics of decisions, where a class is rare and where classes are many."""
    rare = (0.58, 0.4, 0.02)
    designs = {
        "a class of 2 %, 500 rows": (rare, (0.8, 0.75, 0.6), 500),
        "a class of 2 % that is found, 500 rows": (rare, (0.95, 0.95, 0.9), 500),
        "a class of 2 % that is missed, 500 rows": (rare, (0.8, 0.75, 0.15), 500),
        "a class of 2 % that is missed, 1500 rows": (rare, (0.8, 0.75, 0.15), 1500),
        "an event of 2 %, 500 rows": ((0.98, 0.02), (0.99, 0.4), 500),
        "an event of 3 %, 200 rows": ((0.97, 0.03), (0.97, 0.5), 200),
        "3 classes, 100 rows": ((0.34, 0.33, 0.33), (0.8, 0.7, 0.6), 100),
        "10 classes, 200 rows": ((0.1,) * 10, (0.6,) * 10, 200),
        "10 classes that are found, 200 rows": ((0.1,) * 10, (0.95,) * 10, 200),
        "30 classes, 300 rows": ((1 / 30,) * 30, (0.6,) * 30, 300),
    }
    for label, design in designs.items():
        for name in DECISIONS:
            for what, low, high in ((name, 0.91, 0.99), (f"{name} without width", 0.0, 0.0)):

                def measure(
                    replications: int, seed: int, design: Any = design, what: str = what
                ) -> tuple[float, float]:
                    return share_of(rare_hits(*design, replications, seed)[what])

                claim(f"rare classes: {what}, {label}", low, high, measure, 500)


claims_of_decisions()


# ---- comparisons by moments, bootstrap and permutation -----------------------------------------

# Losses of two models that are equally good, and what is independent.
Losses = Callable[[np.random.Generator], tuple[np.ndarray, Units]]


def of_groups(
    n_groups: int, effects: Callable[[np.random.Generator, int], np.ndarray], sizes_are: str = "lognormal"
) -> Losses:
    """Groups with effects of their own and sizes that are equal, lognormal, or have a power-law tail."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, Units]:
        sizes = np.maximum(2, (12 * rng.lognormal(0, 0.8, n_groups)).astype(int))
        if sizes_are == "equal":
            sizes = np.full(n_groups, 12)
        elif sizes_are == "power-law":
            tail = 5 * (1 - rng.random(n_groups)) ** (-1 / 1.2)
            sizes = np.minimum(np.ceil(tail), 100 * n_groups).astype(int)
        codes = np.repeat(np.arange(n_groups), sizes)
        losses = np.zeros((len(codes), 2))
        losses[:, 0] = effects(rng, n_groups)[codes] + rng.normal(size=len(codes))
        return losses, Units("groups", codes=codes)

    return draw


def bell(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(size=n)


def skewed(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.exponential(size=n) - 1


def very_skewed(rng: np.random.Generator, n: int) -> np.ndarray:
    return (rng.lognormal(size=n) - math.exp(0.5)) / math.sqrt(math.e * (math.e - 1))


def of_two_kinds(sizes: tuple[int, int]) -> Losses:
    """Groups of two kinds with skewed effects."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, Units]:
        kinds = crossed(800, sizes, rng)
        effects = sum(skewed(rng, n)[kind] for n, kind in zip(sizes, kinds, strict=True))
        losses = np.column_stack([effects + rng.normal(size=800), np.zeros(800)])
        return losses, Units("groups", codes=Groups.of(kinds, 800), two_way=True)

    return draw


def coverage_of_differences(losses: Losses) -> Measure:
    """How often the interval of a difference of zero covers it."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits = []
        for i in range(replications):
            drawn, units = losses(np.random.default_rng([seed, i]))
            tally = PairedTally(2).update(drawn, None, units.codes)
            low, high = Estimate.of(tally, drawn, units).intervals(0.95)[2]
            hits.append(low <= 0 <= high)
        return share_of(hits)

    return measure


def series(n: int, r: float, noise: float, replications: int, seed: int) -> np.ndarray:
    """(n, R) autoregressive series of order one and variance 1, with noise of some variance added."""
    rng = np.random.default_rng([seed, n, round(1000 * r), round(noise)])
    before = int(10 / (1 - r)) + 50
    steps = math.sqrt(1 - r * r) * rng.normal(size=(replications, before + n))
    drift = lfilter([1], [1, -r], steps, axis=1)[:, before:]
    return (drift + math.sqrt(noise) * rng.normal(size=(replications, n))).T


def of_series(n: int, r: float, noise: float = 0.0) -> Losses:
    """The difference of two models is such a series."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, Units]:
        drawn = series(n, r, noise, 1, int(rng.integers(2**32)))
        return np.column_stack([drawn, np.zeros(n)]), Units("blocks")

    return draw


def rejections_in_time(n: int, r: float, noise: float, *, cautioned: bool = False) -> Measure:
    """How often the t test of a series rejects, or how often it carries a caution."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        columns = series(n, r, noise, replications, seed)
        found = LongRun.of(columns, None)
        p_values = Estimate(columns.mean(axis=0), found.error, found.freedom).p_values()
        hits = [bool(c) for c in found.cautions] if cautioned else (p_values <= 0.05).tolist()
        return share_of(hits)

    return measure


@cache
def rejections(losses: Losses, replications: int, seed: int) -> dict[str, list[bool]]:
    """In which samples each method has a p-value of at most 5 percent."""
    found: dict[str, list[bool]] = {"moments": [], "bootstrap": [], "permutation": []}
    for i in range(replications):
        drawn, units = losses(np.random.default_rng([seed, i]))
        tally = PairedTally(2).update(drawn, None, units.codes)
        estimate = Estimate.of(tally, drawn, units)
        draws = bootstrap_means(drawn, units, Resampling(replicates=400, seed=i))
        found["moments"].append(bool(estimate.p_values()[2] <= 0.05))
        found["bootstrap"].append(bool(bootstrap_p(draws, estimate.mean)[2] <= 0.05))
        found["permutation"].append(bool(permutation_p(drawn, units, 400, i)[2] <= 0.05))
    return found


def claims_of_comparisons() -> None:
    """Sizes of the tests of `compare`."""
    designs = {
        f"{n} groups, {name} effects": (of_groups(n, effects), 0.065)
        for n in (8, 20, 50)
        for name, effects in (("normal", bell), ("skewed", skewed))
    }
    in_time = [(n, r) for r in (0.0, 0.5, 0.8, 0.9) for n in (100, 200, 400, 1000)]
    names = {(n, r): f"in order of time, {n} rows, autocorrelation {r:g}" for n, r in in_time}
    designs |= {name: (of_series(*own), 0.065 if own[1] < 0.8 else 0.09) for own, name in names.items()}
    for label, (losses, most) in designs.items():
        for method in ("moments", "bootstrap", "permutation"):

            def measure(
                replications: int, seed: int, losses: Losses = losses, method: str = method
            ) -> tuple[float, float]:
                return share_of(rejections(losses, replications, seed)[method])

            claim(f"comparison: size, {method}, {label}", 0.03, most, measure)
    # All series at once: many more of them.
    for (n, r), label in names.items():
        name = f"comparison: size, moments, {label}"
        claim(name, 0.03, CLAIMS[name].wanted[1], rejections_in_time(n, r, 0.0), 4000)


claims_of_comparisons()


def claims_of_skewed_groups() -> None:
    """Coverage of means over groups of unequal sizes with skewed effects; cards and comparisons alike."""
    effects = {"normal": bell, "skewed": skewed, "very skewed": very_skewed}
    for n in (8, 20, 50, 100):
        for sizes in ("equal", "lognormal", "power-law"):
            for name, draw in effects.items():
                measure = coverage_of_differences(of_groups(n, draw, sizes))
                low = 0.9 if n == 8 else 0.91
                claim(f"skewed groups: {n} groups, {sizes} sizes, {name} effects", low, 0.98, measure)
    for both in ((10, 30), (20, 20), (20, 100)):
        measure = coverage_of_differences(of_two_kinds(both))
        claim(f"skewed groups: {both[0]} and {both[1]} groups, skewed effects", 0.91, 0.98, measure)


claims_of_skewed_groups()


def claims_of_series() -> None:
    """Sizes of the test in order of time where noise hides slow drift."""
    for n in (200, 1000, 3000):
        for r in (0.97, 0.98, 0.99):
            for noise in (1, 4, 9, 25):
                label = f"{n} rows, drift {r:g}, noise {noise}"
                most = 0.3 if n < 500 else 0.09
                claim(f"noisy drift: size, {label}", 0.0, most, rejections_in_time(n, r, noise), 2000)
                least = 1.0 if n < 500 else 0.0
                measure = rejections_in_time(n, r, noise, cautioned=True)
                claim(f"noisy drift: cautioned, {label}", least, 1.0, measure, 2000)


claims_of_series()


# ---- decision curves ---------------------------------------------------------------------------

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
            curves, diagrams = (f(y, models, seed=i, **own) for f in (vx.net_benefit, vx.murphy))
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


def covers(band: np.ndarray, truth: np.ndarray) -> bool:
    """Whether a band covers the truth at all thresholds that it is for."""
    return not ((truth < band[0]) | (truth > band[1])).any()


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


# ---- slopes and ranking scores -----------------------------------------------------------------


@cache
def slopes_and_ranks(n: int, replications: int, seed: int) -> dict[str, list[bool]]:
    """In which samples of calibrated forecasts of an event slopes, intercepts and AUC cover."""
    rng = np.random.default_rng(12345)
    x = rng.uniform(0.02, 0.98, 400_000)
    auc = vx.roc_auc((rng.random(len(x)) < x).astype(int), x).value
    found: dict[str, list[bool]] = {}
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        x = rng.uniform(0.02, 0.98, n)
        y = (rng.random(n) < x).astype(int)
        line, ranks = vx.calibration_slope(y, x)["1"], vx.roc_auc(y, x)
        for name, (low, high), truth in (
            ("slope", line.slope_interval, 1.0),
            ("intercept", line.intercept_interval, 0.0),
            ("in the large", line.in_the_large_interval, 0.0),
            ("AUC", ranks.interval, auc),
            ("AUC of a class", ranks.parts[0].interval, auc),
        ):
            found.setdefault(name, []).append(low <= truth <= high)
    return found


def claims_of_slopes_and_ranks() -> None:
    """Coverage of calibration slopes, intercepts and AUC."""
    for n in (100, 300):
        for name in ("slope", "intercept", "in the large", "AUC", "AUC of a class"):

            def measure(replications: int, seed: int, n: int = n, name: str = name) -> tuple[float, float]:
                return share_of(slopes_and_ranks(n, replications, seed)[name])

            claim(f"slopes and ranks: {name}, {n} rows", 0.92, 0.98, measure, 500)


claims_of_slopes_and_ranks()


def average_precision_rejections(
    n: int, offset: float, spread: float, replications: int, seed: int
) -> tuple[float, float]:
    """How often two equally good forecasts differ in average precision, with lognormal weights."""
    hits = []
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        x = 1.5 * rng.normal(size=n)
        y = (rng.random(n) < expit(x + offset)).astype(int)
        models = {name: expit(x + 0.7 * rng.normal(size=n)) for name in "ab"}
        own = {"weights": rng.lognormal(sigma=spread, size=n)} if spread else {}
        hits.append(vx.average_precision(y, models, **own).difference("a", "b").p_value <= 0.05)
    return share_of(hits)


def claims_of_average_precision() -> None:
    """The size of the test of two average precisions."""
    for n, offset, rate in ((300, -1.2, 30), (1000, -1.2, 30), (500, -3.0, 10)):
        for spread in (0.0, 1.0, 1.5) if n == 1000 else (0.0, 1.0):

            def measure(
                replications: int, seed: int, n: int = n, offset: float = offset, spread: float = spread
            ) -> tuple[float, float]:
                found: tuple[float, float] = average_precision_rejections(
                    n, offset, spread, replications, seed
                )
                return found

            weights = f"weights of spread {spread:g}" if spread else "equal weights"
            claim(f"average precision: size, {n} rows, event {rate} %, {weights}", 0.04, 0.07, measure, 1000)


claims_of_average_precision()


# ---- comparisons with heavy tails and unequal weights ------------------------------------------


@cache
def heavy_differences(weighted: bool, n: int, replications: int, seed: int) -> dict[str, list[bool]]:
    """Samples where a shy and an overconfident model of equal log score are told apart, or are cautioned.

    The event has a frequency of about 3 %; or three classes, with lognormal weights of spread 1.5.
    """
    shy, bold = 0.6, 1.49 if weighted else 1.73
    found: dict[str, list[bool]] = {"rejected": [], "cautioned": []}
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        z = 1.2 * rng.normal(size=(n, 3))
        if not weighted:
            z = np.column_stack([np.zeros(n), 1.3 * rng.normal(size=n) - 4.2])
        chance = softmax(z, axis=1).cumsum(axis=1)[:, :-1]
        y = (rng.random((n, 1)) > chance).sum(axis=1)
        losses = np.column_stack([-np.log(softmax(f * z, axis=1)[np.arange(n), y]) for f in (shy, bold)])
        weights = rng.lognormal(0, 1.5, n) if weighted else None
        tally = PairedTally(2).update(losses, weights)
        estimate = Estimate.of(tally, losses, Units("rows", weights))
        found["rejected"].append(bool(estimate.p_values()[2] <= 0.05))
        found["cautioned"].append(bool(estimate.intervals(0.95)[2].caution))
    return found


def claims_of_heavy_differences() -> None:
    """Sizes and cautions of comparisons by the log score."""
    for weighted, label in ((False, "an event of 3 %"), (True, "lognormal weights")):
        for n in (200, 500, 1000, 5000):
            for what in ("rejected", "cautioned"):

                def measure(
                    replications: int, seed: int, own: Any = (weighted, n), what: str = what
                ) -> tuple[float, float]:
                    return share_of(heavy_differences(*own, replications, seed)[what])

                often = n < 2000 or weighted
                wanted = (0.03, 0.14 if often else 0.065) if what == "rejected" else (0.9 * often, 1.0)
                claim(f"heavy tails: {what}, {label}, {n} rows", *wanted, measure)


claims_of_heavy_differences()


# ---- curves of the rows kept, thresholds and deferral ------------------------------------------

COVERAGES = np.arange(1, 11) / 10
DEFER = 0.15


@dataclass(frozen=True)
class Keeping:
    """Rows of an event whose forecasts are 1.5 times too sure, in groups of unequal sizes.

    Attributes
    ----------
    n : int
        The number of rows.
    groups : int
        The number of groups; 0 for independent rows.
    sizes : str
        How unequal the groups are: "exponential" or "power-law".
    """

    n: int
    groups: int = 0
    sizes: str = "exponential"

    def rows(self, x: np.ndarray, effects: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Forecasts and true probabilities; effects are one number per row, common to those of a group."""
        return expit(1.8 * x + 0.3), expit(1.2 * x + 0.8 * effects)

    @cache  # noqa: B019
    def truth(self) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        """Every number for 400,000 rows, and the accuracy of acting from each of some forecasts on."""
        rng = np.random.default_rng(12345)
        x = rng.normal(size=400_000)
        p, q = self.rows(x, rng.normal(size=len(x)) * (self.groups > 0))
        y = (rng.random(len(q)) < q).astype(int)
        order = np.argsort(p)
        above = np.append(np.cumsum(q[order][::-1])[::-1], 0.0)
        below = np.append(0.0, np.cumsum(1 - q[order]))
        return self.numbers(y, p, {}), np.append(p[order], 1.0), (above + below) / len(p)

    def numbers(self, y: np.ndarray, p: np.ndarray, own: dict[str, Any], **how: Any) -> dict[str, Any]:
        """What is estimated; with a bootstrap, its intervals and bands."""
        risk = vx.risk_coverage(y, p, **own, **how)
        kept = vx.retention(y, p, rule="brier", metric="accuracy", **own, **how)
        certain = vx.selective(y, p, metric="accuracy", **own, **how)
        line = vx.deferral(y, p, defer=DEFER, **own).lines[0]
        if not how:
            return {
                "AURC": risk.aurc,
                "AUGRC": risk.augrc,
                "risk": risk.risk_at(0.5),
                "coverage": risk.coverage_at(0.2),
                "risk band": np.array([risk.risk_at(c) for c in COVERAGES]),
                "retention area": kept.area,
                "retention band": kept.values,
                "selective area": certain.area,
                "selective band": certain.values,
                "cost": line.cost,
                "saving": line.saved,
            }
        return {
            "AURC": risk.aurc_interval,
            "AUGRC": risk.augrc_interval,
            "risk": risk.risk_interval(0.5),
            "coverage": risk.coverage_interval(0.2),
            "risk band": risk.band(COVERAGES),
            "retention area": kept.interval,
            "retention band": kept.band,
            "selective area": certain.interval,
            "selective band": certain.band,
            "cost": line.cost_interval,
            "saving": line.saved_interval,
        }

    @cache  # noqa: B019
    def hits(self, replications: int, seed: int) -> dict[str, list[bool]]:
        """What covers in each sample."""
        truth, grid, accuracy = self.truth()
        usual = accuracy[np.searchsorted(grid, 0.5)]
        found: dict[str, list[bool]] = {}
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            own: dict[str, np.ndarray] = {}
            effects = np.zeros(self.n)
            if self.groups:
                sizes = rng.exponential(size=self.groups) + 0.2
                if self.sizes == "power-law":
                    sizes = 1 / np.arange(1, self.groups + 1)
                own["groups"] = rng.choice(self.groups, self.n, p=sizes / sizes.sum())
                effects = rng.normal(size=self.groups)[own["groups"]]
            p, q = self.rows(rng.normal(size=self.n), effects)
            y = (rng.random(self.n) < q).astype(int)
            covered = {
                name: covers(np.array(ends), np.array(truth[name]))
                for name, ends in self.numbers(y, p, own, bootstrap=200, seed=i).items()
            }
            chosen = vx.choose_thresholds(y, p, metric="accuracy", bootstrap=200, seed=i, **own)
            gain = accuracy[np.searchsorted(grid, chosen.per_fold[:, 0])].mean() - usual
            own_gain = "cautioned gain of thresholds" if chosen.interval.caution else "gain of thresholds"
            covered[own_gain] = chosen.interval.low <= gain <= chosen.interval.high
            for name, hit in covered.items():
                found.setdefault(name, []).append(bool(hit))
        return found


def claims_of_rows_kept() -> None:
    """Coverage of the areas, bands and gains of curves of rows kept."""
    designs = {
        "300 rows": Keeping(300),
        "400 rows in 8 groups": Keeping(400, 8),
        "600 rows in 20 groups": Keeping(600, 20),
        "1000 rows in 20 power-law groups": Keeping(1000, 20, "power-law"),
        "1000 rows in 60 groups": Keeping(1000, 60),
    }
    names = (
        *("AURC", "AUGRC", "risk", "coverage", "risk band"),
        *("retention area", "retention band", "selective area", "selective band"),
        *("cost", "saving", "gain of thresholds", "cautioned gain of thresholds"),
    )
    for label, design in designs.items():
        for name in names:

            def measure(
                replications: int, seed: int, design: Keeping = design, name: str = name
            ) -> tuple[float, float]:
                return share_of(design.hits(replications, seed).get(name, []))

            claim(f"rows kept: {name}, {label}", 0.91, 0.985, measure, 300)


claims_of_rows_kept()


# ---- rates at a threshold, and their curves ----------------------------------------------------


@dataclass(frozen=True)
class Deciding:
    """Rows with a forecast that is acted on from a threshold on, and another forecast of the same event.

    Attributes
    ----------
    offset : float
        The logit of the forecast of a middling row: negative for a rare event.
    n : int
        The number of rows.
    groups : int
        The number of groups, of unequal sizes; 0 for independent rows.
    weighted : bool
        Whether rows have lognormal weights.
    threshold : float
        From what probability on rows are acted on.
    """

    offset: float
    n: int
    groups: int = 0
    weighted: bool = False
    threshold: float = 0.5

    def rows(
        self, rng: np.random.Generator, n: int, groups: int
    ) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        """Outcomes, forecasts, and weights and groups."""
        own: dict[str, np.ndarray] = {}
        effects = np.zeros(n)
        if groups:
            sizes = rng.exponential(size=groups) + 0.2
            own["groups"] = rng.choice(groups, n, p=sizes / sizes.sum())
            effects = rng.normal(size=groups)[own["groups"]]
        if self.weighted:
            own["weights"] = rng.lognormal(sigma=0.7, size=n)
        x, other = rng.normal(size=n), rng.normal(size=n)
        y = (rng.random(n) < expit(1.5 * x + 0.7 * effects + self.offset)).astype(int)
        models = {"a": expit(2 * x + self.offset), "b": expit(1.5 * x + other + self.offset)}
        return y, models, own

    @cache  # noqa: B019
    def truth(self) -> tuple[dict[str, float], dict[str, float], Any]:
        """Rates, their differences, and the ROC and precision-recall curves, of many rows."""
        groups = 400_000 if self.groups else 0
        y, models, _ = self.rows(np.random.default_rng(12345), 400_000, groups)
        found = vx.operating_points(y, models, threshold=self.threshold)
        rates = {each.name: each.value for each in found.point(model="a").rates}
        gaps = {gap.rate: gap.difference for gap in found.differences}
        return rates, gaps, (y, models["a"])

    @cache  # noqa: B019
    def hits(self, replications: int, seed: int) -> dict[str, list[bool]]:
        """What covers."""
        rates, gaps, (everywhere, forecast) = self.truth()
        order = np.argsort(forecast)
        counts = np.cumsum(np.stack([everywhere, 1 - everywhere])[:, order[::-1]], axis=1)[:, ::-1]
        counts = np.append(counts, [[0], [0]], axis=1)
        found: dict[str, list[bool]] = {}
        for i in range(replications):
            y, models, own = self.rows(np.random.default_rng([seed, i]), self.n, self.groups)
            points = vx.operating_points(y, models, threshold=self.threshold, **own)
            hits = {}
            for each in points.point(model="a").rates:
                low, high = each.interval
                hits[each.name] = bool(low <= rates[each.name] <= high)
            for gap in points.differences:
                hits[f"difference of {gap.rate}"] = gap.interval.low <= gaps[gap.rate] <= gap.interval.high
            roc = vx.roc_curve(y, models["a"], seed=i, points=50, **own).curves[0]
            # The true curve at each false positive rate of the band.
            at = np.interp(roc.x, (counts[1] / counts[1, 0])[::-1], (counts[0] / counts[0, 0])[::-1])
            hits["ROC band"] = covers(roc.band, at)
            precision = vx.precision_recall_curve(y, models["a"], seed=i, points=50, **own).curves[0]
            named = np.isfinite(precision.band[0])
            true, false = counts[:, np.searchsorted(forecast[order], precision.thresholds[named])]
            with np.errstate(invalid="ignore"):
                hits["precision band"] = covers(precision.band[:, named], true / (true + false))
            for name, hit in hits.items():
                found.setdefault(name, []).append(hit)
        return found


def claims_of_rates() -> None:
    """Coverage of rates at a threshold, their differences, and the bands of their curves."""
    designs = {
        "200 rows": Deciding(0.0, 200),
        "1000 rows": Deciding(0.0, 1000),
        "rare event, 1000 rows": Deciding(-3.5, 1000, threshold=0.2),
        "1000 rows in 20 groups": Deciding(0.0, 1000, groups=20),
        "1000 rows in 100 groups": Deciding(0.0, 1000, groups=100),
        "1000 rows with weights": Deciding(0.0, 1000, weighted=True),
    }
    names = [
        *("sensitivity", "specificity", "ppv", "npv", "accuracy", "balanced_accuracy", "f1", "youden"),
        *("lr_positive", "lr_negative", "difference of sensitivity", "difference of ppv", "difference of f1"),
        *("ROC band", "precision band"),
    ]
    # The band of ROC curves is made of rectangles: wider than it need be.
    wanted = {"ROC band": (0.95, 1.0), "precision band": (0.9, 1.0)}
    for label, design in designs.items():
        for what in names:

            def measure(
                replications: int, seed: int, design: Deciding = design, what: str = what
            ) -> tuple[float, float]:
                return share_of(design.hits(replications, seed)[what])

            claim(f"rates: {what}, {label}", *wanted.get(what, (0.925, 0.98)), measure, 1000)


claims_of_rates()


# ---- skill, reliability bands, gains of recalibration, subgroups -------------------------------


@cache
def skills_and_bands(n: int, replications: int, seed: int) -> dict[str, list[bool]]:
    """In which samples of calibrated forecasts of an event skill and a point of a reliability band cover."""
    x = np.linspace(0.02, 0.98, 100_001)
    truth = 1 - float(np.mean(x * (1 - x)) / (x.mean() * (1 - x.mean())))
    found: dict[str, list[bool]] = {"skill in comparisons": [], "skill in summaries": [], "reliability": []}
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        x = rng.uniform(0.02, 0.98, n)
        y = (rng.random(n) < x).astype(int)
        models = vx.compare(y, {"x": x}, rule="brier", reference="frequencies").models["brier"]
        skill = next(m for m in models if m.name == "x").skill_interval
        whole = summarize(y, x, rule="brier", bootstrap=20).measures["skill"].interval
        curve = vx.reliability(y, x, resamples=100, seed=i)["1"]
        at = rng.integers(len(curve.forecast))
        found["skill in comparisons"].append(skill.low <= truth <= skill.high)
        found["skill in summaries"].append(whole.low <= truth <= whole.high)
        found["reliability"].append(curve.band[0, at] <= curve.frequency[at] <= curve.band[1, at])
    return found


def claims_of_skills_and_bands() -> None:
    """Coverage of skill, and of the band of calibrated curves at a point."""
    for n in (100, 300):
        for name in ("skill in comparisons", "skill in summaries", "reliability"):

            def measure(replications: int, seed: int, n: int = n, name: str = name) -> tuple[float, float]:
                return share_of(skills_and_bands(n, replications, seed)[name])

            claim(f"skills and bands: {name}, {n} rows", 0.92, 0.985, measure, 300)


claims_of_skills_and_bands()


@cache
def gains(factor: float, n: int, replications: int, seed: int) -> dict[str, list[bool]]:
    """In which samples the gain of a choice among methods covers that of the fit on many new rows.

    Three classes, whose logits are this factor times the true ones, plus offsets.
    """
    offsets = 0.1 * np.arange(3)
    z = 1.2 * np.random.default_rng(12345).normal(size=(50_000, 3))
    chance, given = softmax(z, axis=1), softmax(factor * z + offsets, axis=1)
    found: dict[str, list[bool]] = {"gain": [], "share": [], "cautioned": []}
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        z = 1.2 * rng.normal(size=(n, 3))
        y = np.minimum((rng.random((n, 1)) > np.cumsum(softmax(z, axis=1), axis=1)).sum(axis=1), 2)
        methods = ["temperature", "bcts", "vector", "isotonic"]
        fitted = vx.recalibrate(y, softmax(factor * z + offsets, axis=1), rule="log_score", method=methods)
        before, after = (-xlogy(chance, p).sum(axis=1).mean() for p in (given, fitted.apply(given)))
        gain = fitted.gain
        found["gain"].append(gain.interval.low <= before - after <= gain.interval.high)
        found["share"].append(gain.share_interval.low <= 1 - after / before <= gain.share_interval.high)
        found["cautioned"].append("differs" in gain.interval.caution)
    return found


def claims_of_gains() -> None:
    """Coverage of the nested gain of recalibration."""
    for factor in (1.0, 1.3, 1.6):
        for name, low in (("gain", 0.92), ("share", 0.92), ("cautioned", 0.0)):

            def measure(
                replications: int, seed: int, factor: float = factor, name: str = name
            ) -> tuple[float, float]:
                return share_of(gains(factor, 300, replications, seed)[name])

            claim(f"recalibration: {name}, logits times {factor:g}, 300 rows", low, 1.0, measure, 100)


claims_of_gains()


@cache
def flags(n_subgroups: int, bad: bool, replications: int, seed: int) -> list[bool]:
    """Samples where a calibrated subgroup of 40 rows is flagged; with `bad`, where one that is not is."""
    found = []
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        by = np.arange(40 * n_subgroups) % n_subgroups
        x = rng.uniform(0.02, 0.98, len(by))
        q = np.where((by == 0) & bad, x**4, x)
        y = (rng.random(len(x)) < q).astype(int)
        labels = {line.label for line in vx.subgroups(y, x, by=by, rule="brier", seed=i).flagged}
        found.append(0 in labels if bad else bool(labels))
    return found


def claims_of_flags() -> None:
    """Family-wise error and power of the flags of subgroups, and of differences of models inside them."""
    for n, replications in ((30, 100), (100, 40)):
        for bad, name, wanted in ((False, "any flag by chance", (0.0, 0.06)), (True, "found", (0.3, 1.0))):

            def measure(replications: int, seed: int, n: int = n, bad: bool = bad) -> tuple[float, float]:
                return share_of(flags(n, bad, replications, seed))

            claim(f"subgroups: {name}, {n} subgroups", *wanted, measure, replications)
    claim("subgroups: any difference of models by chance, 4 subgroups", 0.0, 0.06, any_difference(4), 400)


def any_difference(n_subgroups: int) -> Measure:
    """How often equally good models differ significantly in any of some subgroups of 60 rows."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        found = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            x = rng.normal(size=60 * n_subgroups)
            y = (rng.random(len(x)) < expit(x)).astype(int)
            models = {name: expit(x + 0.7 * rng.normal(size=len(x))) for name in "abc"}
            parts = vx.subgroups(y, models, by=np.arange(len(x)) % n_subgroups, rule="brier", bootstrap=0)
            gaps = [d for each in parts.comparisons.values() for d in each.differences["brier"]]
            found.append(any(d.p_adjusted <= 0.05 for d in gaps))
        return share_of(found)

    return measure


claims_of_flags()


def calibrated_intervals(k: int, n: int) -> Measure:
    """How often the interval of the miscalibration of calibrated forecasts excludes zero."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        found = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            p = softmax(rng.normal(size=(n, k)), axis=1)
            y = np.minimum((rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1), k - 1)
            parts = vx.decompose(y, p, rule="brier", bootstrap=60, seed=i)
            found.append(parts.intervals["miscalibration"].low > 0)
        return share_of(found)

    return measure


for k, n in ((8, 60), (8, 200), (3, 60)):
    name = f"decomposition: excludes zero if calibrated, {k} classes, {n} rows"
    claim(name, 0.0, 0.05, calibrated_intervals(k, n), 300)


# ---- prediction sets -----------------------------------------------------------------------------


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
    found = set_values(vx.sets(y, p, level=0.9, ordered=True))
    return {name: value for name, (value, _) in found.items()}


@cache
def set_hits(setting: Stating, replications: int, seed: int) -> dict[str, list[bool]]:
    """Whether each interval covers, in every replication."""
    hits: dict[str, list[bool]] = {}
    for i in range(replications):
        y, p, groups = setting.sample(np.random.default_rng([seed, i]))
        own = {"groups": groups} if setting.groups else {}
        found = set_values(vx.sets(y, p, level=0.9, ordered=True, **own))
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


# ---- which claims are about which results ------------------------------------------------------

# The claims that measure each interval of a result, or what results are made of, by a text in their names.
MEASURED = {
    "CalibrationLine.in_the_large_interval": "slopes and ranks: in the large",
    "CalibrationLine.intercept_interval": "slopes and ranks: intercept",
    "CalibrationLine.slope_interval": "slopes and ranks: slope",
    "CardLine.interval": "rare classes:",
    "Components.intervals": "miscalibration:",
    "CurveDifference.band": "decision curves: band of differences",
    "CurveDifference.interval": "decision curves: band of differences",
    "CoverageLine.interval": "sets: coverage by class",
    "DecisionCurve.band": "decision curves: band,",
    "DecisionCurve.interval": "decision curves: interval",
    "Decomposition.intervals": "discrimination:",
    "DeferralLine.cost_interval": "rows kept: cost",
    "DeferralLine.saved_interval": "rows kept: saving",
    "Difference.interval": "skewed groups:",
    "EventCurve.interval": "decision curves: Murphy interval",
    "Gain.interval": "recalibration: gain",
    "Gain.share_interval": "recalibration: share",
    "IndependentUnits.interval": "slopes and ranks: AUC,",
    "Measure.interval": "skills and bands: skill in summaries",
    "Mixture.band": "decision curves: band,",
    "Mixture.interval": "decision curves: interval",
    "Model.interval": "skewed groups:",
    "Model.skill_interval": "skills and bands: skill in comparisons",
    "MurphyDifference.band": "decision curves: Murphy band of differences",
    "MurphyDifference.interval": "decision curves: Murphy band of differences",
    "RankPart.interval": "slopes and ranks: AUC of a class",
    "RankScore.interval": "slopes and ranks: AUC,",
    "Rate.interval": "rates: sensitivity",
    "RateCurve.band": "rates: ROC band",
    "RateCurve.interval": "rates: sensitivity",
    "RateCurve.x_interval": "rates: specificity",
    "RateDifference.interval": "rates: difference of sensitivity",
    "ReliabilityCurve.band": "skills and bands: reliability",
    "RetentionCurve.band": "rows kept: retention band",
    "RetentionCurve.interval": "rows kept: retention area",
    "RiskCoverage.augrc_interval": "rows kept: AUGRC",
    "RiskCoverage.aurc_interval": "rows kept: AURC",
    "RiskCoverage.band": "rows kept: risk band",
    "RiskCoverage.coverage_interval": "rows kept: coverage",
    "RiskCoverage.risk_interval": "rows kept: risk,",
    "SetMeasure.interval": "sets: coverage,",
    "Thresholds.interval": "rows kept: gain of thresholds",
    "Uncertainty.interval": "miscalibration:",
}
# Intervals without a claim yet. Documentation must not say how often they cover.
NOT_MEASURED = {
    # That of the worth in raters is measured by studies/raters.py.
    "RatedMean.interval",
    "MonitoredStep.interval",
    "PeriodLine.gap_interval",
    "PeriodLine.interval",
    "RateCurve.area_interval",
}


# ---- printing ----------------------------------------------------------------------------------


def main() -> None:
    """Measure the claims asked for and print them as a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="texts that the names of claims contain")
    parser.add_argument("--replications", type=int, help="instead of those of each claim")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="only list the claims")
    options = parser.parse_args()
    chosen = [c for c in CLAIMS.values() if not options.names or any(t in c.name for t in options.names)]
    if options.list:
        print("\n".join(c.name for c in chosen))
        return
    print("| claim | measured | Monte Carlo error | wanted | holds | seconds |")
    print("| --- | ---: | ---: | ---: | --- | ---: |")
    for c in chosen:
        began = time.perf_counter()
        share, error = c.measure(options.replications or c.replications, options.seed)
        low, high = c.wanted
        cells = [
            c.name,
            f"{100 * share:.1f}",
            f"{100 * error:.1f}",
            f"{100 * low:g} to {100 * high:g}",
            "yes" if c.holds(share, error) else "no",
            f"{time.perf_counter() - began:.0f}",
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    # Numba imports a package called coverage, which is not this file.
    sys.path.remove(str(Path(__file__).parent))
    main()
