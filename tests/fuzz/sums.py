"""Means, weights, counts and groups against exact sums of fractions, however rows are cut and merged."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

import verax as vx
from verax._settings import changed
from verax.engines.tally import RuleSums

RULES = (vx.log_score, vx.brier, vx.zero_one, vx.rps)
# From this many numbers on, the tests compile loops over rows; long runs do so from as many as users' calls.
THOROUGH = False
MANY = 2**15
# Relative; means of non-negative losses, totals and counts.
CLOSE = 1e-12


@dataclass(frozen=True)
class Rows:
    """Random rows; `groups` is None or one label per row."""

    y: np.ndarray
    p: np.ndarray
    w: np.ndarray | None
    groups: np.ndarray | None

    def part(self, start: int, stop: int) -> Rows:
        w = None if self.w is None else self.w[start:stop]
        groups = None if self.groups is None else self.groups[start:stop]
        return Rows(self.y[start:stop], self.p[start:stop], w, groups)

    def tally(self, first_row: int | None = None) -> RuleSums:
        rows = vx.Forecasts(self.y, self.p, weights=self.w, groups=self.groups, first_row=first_row)
        return RuleSums(RULES, self.p.shape[1]).update(rows)


def random_rows(rng: np.random.Generator) -> Rows:
    # Now and then so many rows that they are summed by compiled loops.
    k = int(rng.integers(2, 7))
    many = 2**19 if THOROUGH else MANY
    n = int(rng.integers(many // k, 2 * many // k)) if rng.random() < 0.04 else int(rng.integers(1, 40))
    p = rng.dirichlet(np.full(k, 10.0 ** rng.uniform(-2, 2)), n)
    y = rng.integers(0, k, n)
    # Outcomes that are all but certain, all but impossible, or impossible: losses from 0 to 700 and infinity.
    for share, true in (
        (rng.random(), 1 - 10.0 ** -rng.uniform(6, 16)),
        (rng.random() / 4, 10.0 ** -rng.uniform(1, 300)),
    ):
        rows = np.flatnonzero(rng.random(n) < share)
        p[rows] = (1 - true) / (k - 1)
        p[rows, y[rows]] = true
    if rng.random() < 0.3:
        p[0] = 0.0
        p[0, (y[0] + 1) % k] = 1.0
    return Rows(y, p, random_weights(rng, n), rng.integers(0, 5, n) if rng.random() < 0.3 else None)


def random_weights(rng: np.random.Generator, n: int) -> np.ndarray | None:
    kind = rng.integers(0, 6)
    if kind == 0:
        return None
    spread = (0, 3, 17, 150, 300)[kind - 1]
    centre = rng.uniform(spread - 300, 300 - spread) if rng.random() < 0.5 else 0.0
    w = 10.0 ** (centre + rng.uniform(-spread, spread, n))
    w[rng.random(n) < rng.choice([0.0, 0.3])] = 0.0
    if rng.random() < 0.1:
        w[rng.integers(n)] = rng.choice([8e307, 1e16, 5e-324])
    w[rng.integers(n)] = max(w.max(), 1e-300)
    return w


def exact(rows: Rows) -> list[tuple[Fraction, Fraction, bool]]:
    """For each rule weight and total of the rows with a finite loss, and whether some are infinite."""
    w = np.ones(len(rows.y)) if rows.w is None else rows.w
    results = []
    for rule in RULES:
        losses = np.asarray(rule.samples(rows.y, rows.p))
        finite = np.isfinite(losses)
        results.append(
            (_total(w[finite]), _total(w[finite], losses[finite]), bool((~finite & (w > 0)).any()))
        )
    return results


def _total(*factors: np.ndarray) -> Fraction:
    """The exact sum of products; of many rows by parts that add up exactly enough."""
    if len(factors[0]) <= 1000:
        return sum(
            (math.prod(map(Fraction, row)) for row in zip(*(f.tolist() for f in factors), strict=True)),
            Fraction(0),
        )
    power = math.frexp(float(factors[0].max(initial=0.0)))[1]
    terms = np.ldexp(factors[0], -power).tolist()
    if len(factors) == 2:
        terms = [a * b for a, b in zip(terms, factors[1].tolist(), strict=True)]
    return Fraction(math.fsum(terms)) * Fraction(2) ** power


def close(found: float, wanted: Fraction) -> bool:
    return math.isfinite(found) and abs(Fraction(float(found)) - wanted) <= Fraction(CLOSE) * abs(
        wanted
    ) + Fraction(5e-324)


def merged(rng: np.random.Generator, rows: Rows, *, placed: bool) -> RuleSums:
    """The tally of the rows cut at random and merged in random order."""
    n = len(rows.y)
    cuts = sorted({0, n, *rng.integers(0, n, rng.integers(0, 6)).tolist()})
    parts = [
        rows.part(a, b).tally(a if placed else None)
        for a, b in pairwise(cuts)
        if rows.w is None or placed or rows.w[a:b].max() > 0
    ]
    while len(parts) > 1:
        a, b = (parts.pop(rng.integers(len(parts))) for _ in range(2))
        parts.append(a.merge(b))
    return parts[0]


def check_means(tally: RuleSums, wanted: list[tuple[Fraction, Fraction, bool]], where: str) -> None:
    moments = tally.moments
    for i, (weight, total, infinite) in enumerate(wanted):
        what = f"{where}, {RULES[i]}"
        assert (moments.mean[i] == np.inf) == infinite, f"{what}: infinite {infinite}, mean {moments.mean[i]}"
        if weight > 0:
            found = float(moments.finite_mean[i])
            assert close(found, total / weight), f"{what}: mean {found!r}, exactly {float(total / weight)!r}"
            deviation = float(moments.m2[i])
            assert deviation >= 0, f"{what}: sum of squares {deviation}"


def attempt(rng: np.random.Generator) -> None:
    with changed(**({} if THOROUGH else {"compiled_from": MANY})), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            check(rng)
        except RuntimeWarning as warning:
            raise AssertionError(f"warning: {warning}") from warning


def check(rng: np.random.Generator) -> None:
    rows = random_rows(rng)
    if rows.w is not None and not rows.w.max() > 0:
        return
    wanted = exact(rows)
    whole = rows.tally()
    check_means(whole, wanted, f"{len(rows.y)} rows")
    check_counts(whole, rows)
    parts = merged(rng, rows, placed=True)
    check_means(parts, wanted, "parts")
    assert parts.n_rows == len(rows.y), "rows were lost"
    assert parts.counts.n_zero == whole.counts.n_zero, "rows of probability zero were lost"
    assert parts.counts.zero_rows == whole.counts.zero_rows, "rows have other numbers after merging"
    check_scale(rng, rows, whole)


def check_counts(tally: RuleSums, rows: Rows) -> None:
    """Weight, confusion counts and sums of groups."""
    n = len(rows.y)
    w = np.ones(n) if rows.w is None else rows.w
    total = _total(w)
    found = weight_of(tally)
    assert close(found, total) or total > Fraction(1.79e308), f"weight {found!r}, exactly {total}"
    if n > 1000:
        return
    decision = rows.p.argmax(axis=1)
    table = unscaled(tally, tally.counts.confusion)
    for i, j in {(int(a), int(b)) for a, b in zip(rows.y, decision, strict=True)}:
        wanted = _total(w[(rows.y == i) & (decision == j)])
        right = lost(wanted, total) or close(table[i, j], wanted)
        assert right, f"cell {i}, {j}: {table[i, j]!r}, exactly {float(wanted)!r}"
    if rows.groups is not None:
        for code, label in enumerate(tally.clusters.labels):
            wanted = _total(w[rows.groups == label])
            found = unscaled(tally, tally.clusters.weight)[code]
            assert lost(wanted, total) or close(found, wanted), (
                f"group {label}: weight {found!r}, exactly {float(wanted)!r}"
            )


def lost(weight: Fraction, total: Fraction) -> bool:
    """Whether a weight is no number, or so small a part of all weights that it need not be kept."""
    return weight > Fraction(1.79e308) or weight * Fraction(2) ** 1400 < total


def weight_of(tally: RuleSums) -> float:
    return float(getattr(tally.weight, "high", [tally.weight])[0])


def unscaled(tally: RuleSums, weights: np.ndarray) -> np.ndarray:
    return tally.unscaled(weights) if hasattr(tally, "unscaled") else weights


def check_scale(rng: np.random.Generator, rows: Rows, whole: RuleSums) -> None:
    """Weights times a power of two have the same means, bit for bit, unless some overflow or underflow."""
    if rows.w is None or len(rows.y) > 1000:
        return
    positive = rows.w[rows.w > 0]
    room = (-1021 - math.frexp(positive.min())[1], 1020 - math.frexp(positive.max())[1])
    if room[0] >= room[1]:
        return
    power = int(rng.integers(*room))
    scaled = Rows(rows.y, rows.p, np.ldexp(rows.w, power), rows.groups).tally()
    for i, rule in enumerate(RULES):
        a, b = float(whole.moments.finite_mean[i]), float(scaled.moments.finite_mean[i])
        same = a == b or abs(a - b) <= 1e-14 * abs(a) or (math.isnan(a) and math.isnan(b))
        assert same, f"{rule}: mean {a!r}, and {b!r} with weights times 2**{power}"
