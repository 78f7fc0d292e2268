"""Differences between models: by moments, bootstrap and permutation, with heavy tails and unequal weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.signal import lfilter
from scipy.special import softmax

from covers.claims import CLAIMS, Measure, claim, crossed, share_of
from verax.engines.differences import PairedTally
from verax.inference.estimates import Estimate, Units, bootstrap_means, bootstrapped, sign_flips
from verax.inference.intervals import Resampling
from verax.inference.series import LongRun
from verax.inputs.groups import Groups

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


def few_differ(n_groups: int, share: float) -> Losses:
    """Groups of which a share differ, by one either way."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, Units]:
        effects = (rng.random(n_groups) < share) * rng.choice([-1.0, 1.0], n_groups)
        return np.column_stack([effects, 0 * effects]), Units("groups", codes=np.arange(n_groups))

    return draw


def rare_and_large(rng: np.random.Generator) -> tuple[np.ndarray, Units]:
    """Of 400 groups 1 % differ by three, and 3 % by one the other way."""
    effects = np.select([(u := rng.random(400)) < 0.01, u < 0.04], [3.0, -1.0], 0.0)
    return np.column_stack([effects, 0 * effects]), Units("groups", codes=np.arange(400))


def of_repeats(n_questions: int, n_repeats: int, share: float) -> Losses:
    """Questions of which a share have another chance than the others, asked several times."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, Units]:
        chance = np.where(rng.random(n_questions) < share, 0.5, 1.0)
        losses = 1.0 - rng.binomial(1, np.repeat(chance, n_repeats)[:, None], (n_questions * n_repeats, 2))
        return losses, Units("groups", codes=np.repeat(np.arange(n_questions), n_repeats))

    return draw


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
        plan = Resampling(replicates=400, seed=i)
        draws = bootstrap_means(drawn, units, plan)
        found["moments"].append(bool(estimate.p_values()[2] <= 0.05))
        found["bootstrap"].append(bool(bootstrapped(draws, estimate, 0.95)[1][2] <= 0.05))
        found["permutation"].append(bool(sign_flips(drawn, units, plan).p_value(0) <= 0.05))
    return found


def claims_of_comparisons() -> None:
    """Sizes of the tests of `compare`."""
    designs = {
        # Fewer than ten groups carry a caution.
        f"{n} groups, {name} effects": (of_groups(n, effects), 0.085 if n < 10 else 0.065)
        for n in (8, 20, 50)
        for name, effects in (("normal", bell), ("skewed", skewed))
    }
    designs |= {
        "20 groups, very skewed effects": (of_groups(20, very_skewed), 0.09),
        "40 groups, 6 % differ": (few_differ(40, 0.06), 0.065),
        "100 groups, 3 % differ": (few_differ(100, 0.03), 0.065),
        "300 groups, 1 % differ": (few_differ(300, 0.01), 0.065),
        "200 groups, 10 % differ": (few_differ(200, 0.1), 0.065),
        "400 groups, rare and large": (rare_and_large, 0.065),
        "60 questions, 8 repeats": (of_repeats(60, 8, 0.06), 0.065),
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

            # Tests over groups are the more cautious of two, and those of few that differ are discrete.
            least = 0.03 if "time" in label else 0.0 if "effects" not in label else 0.015
            claim(f"comparison: size, {method}, {label}", least, most, measure)
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


@cache
def seasonal(
    n: int, season: int, r: float, drift: float, replications: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """P-values and seasons of series that repeat: an autoregression of rows a season apart, times a drift.

    Steps have heavy tails. With r = 0 there is no season, and with r = 1 a fixed sine beside the drift.
    """
    rng, before = np.random.default_rng([seed, n, season]), 40 * season + 200
    moving = np.zeros(season + 2)
    moving[0] = 1.0
    moving[1] -= drift
    if r < 1:
        moving[season] -= r
        moving[season + 1] += r * drift
    x = lfilter([1], moving, rng.standard_t(6, size=(before + n, replications)), axis=0)[before:]
    if r == 1:
        x += 1.5 * np.sin(2 * np.pi * np.arange(n) / season)[:, None]
        # Whole seasons, so that the mean of the sine is zero.
        x = x[: n - n % season]
    found = LongRun.of(x, None)
    return Estimate(x.mean(axis=0), found.error, found.freedom).p_values(), found.seasons


def claims_of_seasons() -> None:
    """Sizes of the test in order of time where differences repeat after a season, and whether it is found."""
    designs = {
        "960 rows, a day of 24, .55, drift .3": (960, 24, 0.55, 0.3),
        "3,000 rows, a day of 24, .7": (3000, 24, 0.7, 0.0),
        "700 rows, a week of 7, .65, drift .2": (700, 7, 0.65, 0.2),
        "4,000 rows, half hours, .5, drift .4": (4000, 48, 0.5, 0.4),
        "6,000 rows, a week of 168, .5": (6000, 168, 0.5, 0.0),
        "1,200 rows, a fixed day of 24, drift .4": (1200, 24, 1.0, 0.4),
    }
    for label, design in designs.items():

        def rejects(replications: int, seed: int, design: Any = design) -> tuple[float, float]:
            return share_of((seasonal(*design, replications, seed)[0] <= 0.05).tolist())

        def finds(replications: int, seed: int, design: Any = design) -> tuple[float, float]:
            return share_of((seasonal(*design, replications, seed)[1] % design[1] == 0).tolist())

        claim(f"seasons: size, {label}", 0.0, 0.065, rejects, 600)
        claim(f"seasons: found, {label}", 0.7, 1.0, finds, 600)
    for drift in (0.0, 0.7):

        def none(replications: int, seed: int, drift: float = drift) -> tuple[float, float]:
            return share_of((seasonal(1000, 24, 0.0, drift, replications, seed)[1] > 1).tolist())

        claim(f"seasons: found where there is none, 1,000 rows, drift {drift:g}", 0.0, 0.015, none, 1000)
    for method in ("moments", "bootstrap", "permutation"):

        def measure(replications: int, seed: int, method: str = method) -> tuple[float, float]:
            return share_of(rejections(day_of_hours, replications, seed)[method])

        claim(f"seasons: size, {method}, 960 rows, a day of 24", 0.0, 0.065, measure, 150)


def day_of_hours(rng: np.random.Generator) -> tuple[np.ndarray, Units]:
    """The difference of two models resembles that of the same hour of the day before."""
    x = lfilter([1], [1, *[0] * 23, -0.55], rng.normal(size=2000))[-960:]
    return np.column_stack([x, np.zeros(960)]), Units("blocks")


claims_of_seasons()


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
