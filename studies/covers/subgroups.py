"""What is said of the calibration of subgroups: false claims, power, words, and the ratio of events."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

import verax as vx
from covers.claims import Measure, claim, share_of
from verax.inference.findings import Claim

# Outcomes, forecasts, subgroups and options of one sample.
Sample = tuple[Any, Any, Any, dict[str, Any]]
Draw = Callable[[np.random.Generator], Sample]
# Subgroups have a fifth of the level: at this confidence 5 %.
_CONFIDENCE = 0.75
_TOGETHER = frozenset({Claim.AS_A_WHOLE, Claim.ALL_SUBGROUPS})
_ALL = frozenset({Claim.ALL_SUBGROUPS})
_ANY = _TOGETHER | {Claim.SUBGROUP}


# ---- designs -----------------------------------------------------------------------------------


def events(
    sizes: tuple[int, ...], level: float, spread: float, shift: tuple[float, ...] = (0.0,), tails: float = 0
) -> Draw:
    """An event whose log-odds are normal, or have heavy tails; forecasts are too low by a shift."""

    def draw(rng: np.random.Generator) -> Sample:
        by = np.repeat(np.arange(len(sizes)), sizes)
        noise = rng.standard_t(tails, len(by)) if tails else rng.normal(size=len(by))
        odds = np.clip(level + spread * noise, -30, 30)
        off = np.resize(shift, len(sizes)) if len(shift) > 1 else np.full(len(sizes), shift[0])
        return (rng.random(len(by)) < expit(odds + off[by])).astype(int), expit(odds), by, {}

    return draw


def extremes(sizes: tuple[int, ...]) -> Draw:
    """Calibrated forecasts most of which are close to 0 or 1."""

    def draw(rng: np.random.Generator) -> Sample:
        by = np.repeat(np.arange(len(sizes)), sizes)
        p = np.clip(rng.beta(0.1, 0.4, len(by)), 1e-12, 1 - 1e-12)
        return (rng.random(len(by)) < p).astype(int), p, by, {}

    return draw


def classes(k: int, sizes: tuple[int, ...], concentration: float, length: int = 0) -> Draw:
    """Calibrated forecasts of several classes, or their top lists."""

    def draw(rng: np.random.Generator) -> Sample:
        by = np.repeat(np.arange(len(sizes)), sizes)
        p = rng.dirichlet(np.full(k, concentration), len(by))
        p /= p.sum(axis=1, keepdims=True)
        y = np.minimum((rng.random((len(by), 1)) > p.cumsum(axis=1)).sum(axis=1), k - 1)
        return y, vx.TopLists.from_probabilities(p, length) if length else p, by, {}

    return draw


def in_groups(n: int, groups: int, rows: int, alike: float, *, crossed: bool = False) -> Draw:
    """Calibrated forecasts; errors of a group of rows correlate, and groups may be in all subgroups."""

    def draw(rng: np.random.Generator) -> Sample:
        by = np.repeat(np.arange(n), groups * rows)
        group = np.arange(len(by)) // rows
        group = group % groups if crossed else group
        odds = rng.normal(-1, 1, len(by))
        common = rng.normal(size=group.max() + 1)[group]
        latent = np.sqrt(alike) * common + np.sqrt(1 - alike) * rng.normal(size=len(by))
        return (ndtr(latent) < expit(odds)).astype(int), expit(odds), by, {"groups": group}

    return draw


def weighted(draw: Draw) -> Draw:
    """The same rows with weights."""

    def drawn(rng: np.random.Generator) -> Sample:
        y, p, by, options = draw(rng)
        return y, p, by, {**options, "weights": np.exp(0.8 * rng.normal(size=len(by)))}

    return drawn


FALLING = tuple(int(3000 * 0.7**i) + 40 for i in range(12))
NULLS = {
    "8 of 25 to 1,500 rows": events((25, 40, 60, 100, 200, 400, 800, 1500), -1.5, 1.2),
    "12 of 400 rows, rare event": events((400,) * 12, -4, 1),
    "8 of 300 rows, t(1.5) log-odds": events((300,) * 8, -2, 1, tails=1.5),
    "9 of 50 to 1,200 rows, beta(.1, .4) forecasts": extremes((50, 80, 120, 200, 300, 450, 600, 800, 1200)),
    "6 of 200 rows, 3 classes": classes(3, (200,) * 6, 1.0),
    "10 of 150 rows, 5 classes": classes(5, (150,) * 10, 0.3),
    "5 of 200 lists, 3 of 12 classes": classes(12, (200,) * 5, 0.3, 3),
    "5 of 200 lists, first of 2 classes": classes(2, (200,) * 5, 1.0, 2),
    "6 of 12 groups of 20 rows": in_groups(6, 12, 20, 0.0),
    "6 of 12 groups of 20 rows that are alike": in_groups(6, 12, 20, 0.15),
    "4 that share 15 groups that are alike": in_groups(4, 15, 15, 0.15, crossed=True),
    "6 of 300 weighted rows": weighted(events((300,) * 6, -1.5, 1)),
}


# ---- measures ----------------------------------------------------------------------------------


def says(draw: Draw, claims: frozenset[str], replications: int, seed: int) -> tuple[float, float]:
    """How often any of these claims is made, at a level of 5 %."""
    found = []
    for i in range(replications):
        y, p, by, options = draw(np.random.default_rng([seed, i]))
        verdict = vx.subgroups(y, p, by=by, confidence=_CONFIDENCE, least=1, rule="brier", **options).verdict
        found.append(bool(claims & set(verdict.claims)))
    return share_of(found)


def covers_ratio(draw: Draw, truth: float, replications: int, seed: int) -> tuple[float, float]:
    """How often the interval of O:E of a subgroup covers the ratio of the population."""
    found = []
    for i in range(replications):
        y, p, by, options = draw(np.random.default_rng([seed, i]))
        parts = vx.subgroups(y, p, by=by, least=1, rule="brier", **options)
        found += [line.events.interval.low <= truth <= line.events.interval.high for line in parts.lines]
    return share_of(found)


def expected_ratio(level: float, spread: float, shift: float) -> float:
    """The ratio of observed to expected events of many rows."""
    odds = level + spread * np.random.default_rng(0).normal(size=1_000_000)
    return float(expit(odds + shift).mean() / expit(odds).mean())


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


def flag_share(n_subgroups: int, bad: bool, replications: int, seed: int) -> tuple[float, float]:
    """The share of samples with a flag, or with the right one."""
    return share_of(flags(n_subgroups, bad, replications, seed))


def any_difference(n_subgroups: int) -> Measure:
    """How often equally good models differ significantly in any of some subgroups of 60 rows."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        found = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            x = rng.normal(size=60 * n_subgroups)
            y = (rng.random(len(x)) < expit(x)).astype(int)
            models = {name: expit(x + 0.7 * rng.normal(size=len(x))) for name in "abc"}
            parts = vx.subgroups(y, models, by=np.arange(len(x)) % n_subgroups, rule="brier")
            gaps = [d for each in parts.comparisons.values() for d in each.differences["brier"]]
            found.append(any(d.p_adjusted <= 0.05 for d in gaps))
        return share_of(found)

    return measure


# ---- claims ------------------------------------------------------------------------------------


def claims_of_subgroups() -> None:
    """False claims, power, words and ratios."""
    for n, replications in ((30, 100), (100, 40)):
        for bad, name, wanted in ((False, "any flag by chance", (0.0, 0.06)), (True, "found", (0.3, 1.0))):
            claim(f"subgroups: {name}, {n} subgroups", *wanted, partial(flag_share, n, bad), replications)
    claim("subgroups: any difference of models by chance, 4 subgroups", 0.0, 0.06, any_difference(4), 400)
    for name, draw in NULLS.items():
        claim(f"subgroups: any false claim at 5 %: {name}", 0.0, 0.065, partial(says, draw, _ANY), 300)
    shifts = {
        "5 of 3,000 rows, .1": (events((3000,) * 5, -1, 1, (0.1,)), 0.95),
        "20 of 300 rows, .15": (events((300,) * 20, -1.5, 1, (0.15,)), 0.9),
        "6 of 1,000 rows, rare event, .3": (events((1000,) * 6, -3.5, 1, (0.3,)), 0.7),
    }
    for name, (draw, least) in shifts.items():
        claim(f"subgroups: all shifted are found: {name}", least, 1.0, partial(says, draw, _TOGETHER), 150)
    wrong = {
        "largest of 12 off by .3": (0.3, *[0.0] * 11),
        "half of 12 off by .2, half by -.2": (0.2, -0.2),
    }
    for name, shift in wrong.items():
        draw = events(FALLING, -1, 1.1, shift)
        claim(f"subgroups: all are said to be off: {name}", 0.0, 0.05, partial(says, draw, _ALL), 150)
    for name, level, shift in (
        ("30 expected", -1.4, 0.0),
        ("5 expected", -3.6, 0.0),
        ("30, .4 off", -1.4, 0.4),
    ):
        draw, truth = events((150,) * 4, level, 1, (shift,)), expected_ratio(level, 1, shift)
        claim(f"subgroups: O:E, {name}", 0.93, 0.985, partial(covers_ratio, draw, truth), 300)


claims_of_subgroups()
