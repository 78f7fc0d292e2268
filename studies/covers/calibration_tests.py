"""Tests of calibration with groups: their sizes and powers."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

import verax as vx
from covers.claims import Measure, claim, share_of
from verax.analyses.calibration.overconfidence import overconfidence_of
from verax.inputs.forecasts import Forecasts


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


def rejections_of_many_rows(k: int, n: int, factor: float) -> Measure:
    """How often forecasts whose logits are this factor times the true ones are found miscalibrated."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        found = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            z = rng.normal(size=(n, k))
            chance = softmax(z, axis=1)
            y = np.minimum((rng.random((n, 1)) > np.cumsum(chance, axis=1)).sum(axis=1), k - 1)
            parts = vx.decompose(y, softmax(factor * z, axis=1), rule="brier", bootstrap=199, seed=i)
            found.append(parts.p_value <= 0.05)
        return share_of(found)

    return measure


for k, replications in ((2, 1000), (5, 400)):
    rows = f"brier, {k} classes, 2000 independent rows"
    by_chance, too_sure = (rejections_of_many_rows(k, 2000, factor) for factor in (1.0, 1.3))
    claim(f"calibration test: size, {rows}", 0.03, 0.065, by_chance, replications)
    claim(f"calibration test: power at 1.3, {rows}", 0.3, 1.0, too_sure, 200)
