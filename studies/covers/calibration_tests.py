"""Tests of calibration with groups: their sizes and powers."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

import verax as vx
from covers.claims import Measure, claim, share_of
from verax.analyses.calibration.claims import overconfidence_of
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
    claim(f"too sure test: size, {where}", 0.01, 0.065, rejections_of_overconfidence(n, n_groups, 1.0), 2000)
    claim(
        f"too sure test: power at 1.5, {where}",
        0.4,
        1.0,
        rejections_of_overconfidence(n, n_groups, 1.5),
        2000,
    )


def independent(
    k: int, n: int, factor: float, seed: list[int], *, weighted: bool = False, grid: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Outcomes, forecasts whose logits are this factor times the true ones, and log-normal weights."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k))
    chance = softmax(z, axis=1)
    if grid:
        # Multiples of a tenth, which many rows share.
        chance = np.floor(10 * chance)
        chance[:, 0] += 10 - chance.sum(axis=1)
        chance /= 10
    y = np.minimum((rng.random((n, 1)) > np.cumsum(chance, axis=1)).sum(axis=1), k - 1)
    given = chance if grid else softmax(factor * z, axis=1)
    return y, given, rng.lognormal(size=n) if weighted else None


def rejections_of_rows(k: int, n: int, factor: float, rule: str = "brier", **design: bool) -> Measure:
    """How often `decompose` has a p-value of at most 5 percent."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        found = []
        for i in range(replications):
            y, p, w = independent(k, n, factor, [seed, i], **design)
            parts = vx.decompose(y, p, rule=rule, bootstrap=199, seed=i, weights=w)
            found.append(parts.p_value is not None and parts.p_value <= 0.05)
        return share_of(found)

    return measure


for k, sizes in (
    (2, (60, 300, 2000, 5000)),
    (3, (60, 300, 1000, 5000)),
    (5, (60, 300, 2000)),
    (40, (300, 2000)),
):
    for n in sizes:
        rows = f"brier, {k} classes, {n} independent rows"
        by_chance, too_sure = (rejections_of_rows(k, n, factor) for factor in (1.0, 1.3))
        claim(f"calibration test: size, {rows}", 0.03, 0.065, by_chance, 1000 if k < 40 else 400)
        if n >= 2000:
            claim(f"calibration test: power at 1.3, {rows}", 0.1 if k == 40 else 0.3, 1.0, too_sure, 200)
for rule, k, n, design in (
    ("rps", 3, 300, {}),
    ("rps", 5, 2000, {}),
    ("log_score", 3, 1000, {}),
    ("brier", 3, 500, {"weighted": True}),
    ("brier", 3, 1000, {"grid": True}),
):
    rows = f"{rule}, {k} classes, {n} rows{''.join(f', {name}' for name in design)}"
    claim(f"calibration test: size, {rows}", 0.03, 0.065, rejections_of_rows(k, n, 1.0, rule, **design))


def flagged_slopes(k: int, n: int) -> Measure:
    """How often any class of calibrated forecasts is flagged by its corrected test of slope and intercept."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        found = []
        for i in range(replications):
            y, p, _ = independent(k, n, 1.0, [seed, i])
            found.append(np.nanmin(vx.calibration_slope(y, p).adjusted) <= 0.05)
        return share_of(found)

    return measure


for k, n in ((2, 60), (3, 60), (3, 200), (3, 1000), (5, 300), (40, 500), (40, 3000)):
    claim(
        f"calibration slopes: any class flagged, {k} classes, {n} rows",
        0.0,
        0.065,
        flagged_slopes(k, n),
        1000 if k < 40 else 200,
    )
