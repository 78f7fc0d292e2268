"""Rows near the tolerance, in every order of magnitude: all are scored or all offenders are named."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import verax as vx
from verax.kernels import limits

# Up to 10 classes, each type and order in memory has a kernel of its own, which takes a second to compile.
# So the tests try one of them for each number of classes, and long runs all.
THOROUGH = False
KINDS = {2: ("f8", "C"), 3: ("f4", "F"), 5: ("f8", "F"), 8: ("f4", "C"), 9: ("f2", "C"), 10: ("f8", "C")}

TOLERANCES = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-4, np.dtype(np.float16): 1e-2}


def attempt(rng: np.random.Generator) -> None:
    """Score rows of which a few are within some units in the last place of the limit, on both paths."""
    k = int(rng.choice([2, 3, 5, 8, 9, 10, 17, 64, 300]))
    kind = str(rng.choice(["f8", "f8", "f8", "f4", "f2"])), "F" if rng.random() < 0.3 else "C"
    name, order = kind if THOROUGH else KINDS.get(k, kind)
    dtype = np.dtype(name)
    tolerance = TOLERANCES[dtype]
    n = int(rng.integers(1, 60))
    p = np.round(rng.dirichlet(np.full(k, rng.choice([0.1, 1, 10])), n), int(rng.choice([2, 4, 6, 17])))
    p[:, 0] += 1 - p.sum(axis=1)
    for row in rng.integers(0, n, 3):
        step = rng.choice([1.0, 1 + 1e-6, 1 - 1e-6, 0.999, 1.001, 2, 1e-3]) * tolerance
        p[row, int(rng.integers(k))] += rng.choice([-1, 1]) * step + int(rng.integers(-4, 5)) * 2.0**-53
    p = np.abs(p).astype(dtype, order=order)
    y = rng.integers(0, k, n)
    invalid = [i for i in range(n) if not _valid(p[i], tolerance)]
    if any(_undecidable(row, tolerance) for row in p):
        return
    saved, at_once = limits.COMPILED_FROM, limits.COMPILED_AT_ONCE
    limits.COMPILED_AT_ONCE = 0
    try:
        # Small inputs go through the array calls; with no threshold, the same rows are compiled.
        for threshold in (saved, 0):
            limits.COMPILED_FROM = threshold
            _check(y, p, invalid, f"{k=} {n=} {dtype=} {threshold=}")
    finally:
        limits.COMPILED_FROM, limits.COMPILED_AT_ONCE = saved, at_once


def _check(y: np.ndarray, p: np.ndarray, invalid: list[int], case: str) -> None:
    try:
        card = vx.evaluate(y, p, rules=["brier"])
    except vx.InputError as error:
        if (error.argument, list(error.rows)) != ("p", invalid[:3]):
            raise AssertionError(f"{case}: invalid are {invalid}, and it says {error}") from None
        return
    assert not invalid, f"{case}: accepted rows {invalid}"
    assert card.weight == len(y), f"{case}: weight {card.weight} of {len(y)} rows"
    exact = sum(_brier(int(i), row) for i, row in zip(y, p, strict=True)) / len(y)
    assert abs(card["brier"] - float(exact)) <= 1e-12, f"{case}: {card['brier']} is not {float(exact)}"


def _valid(row: np.ndarray, tolerance: float) -> bool:
    return abs(sum(Fraction(float(v)) for v in row) - 1) <= Fraction(tolerance * (1 + 1e-6))


def _undecidable(row: np.ndarray, tolerance: float) -> bool:
    """Whether the exact sum is within one rounding of the limit, where fsum may go either way."""
    off = abs(sum(Fraction(float(v)) for v in row) - 1)
    return abs(off - Fraction(tolerance * (1 + 1e-6))) <= Fraction(1, 2**51)


def _brier(y: int, row: np.ndarray) -> Fraction:
    values = [Fraction(float(v)) for v in row]
    rest = sum(v**2 for j, v in enumerate(values) if j != y)
    # Rows may sum to a little more than 1; the loss stays within its range.
    return (values[y] - 1) ** 2 + min(Fraction(rest), Fraction(1))
