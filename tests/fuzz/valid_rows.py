"""Rows near the tolerance, in every order of magnitude: all are scored or all offenders are named."""

from __future__ import annotations

import math

import numpy as np

import verax as vx
from verax._settings import changed, settings

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
    # The correctly rounded sum of a row minus one, which is exact to far more digits than what is compared.
    off = [abs(math.fsum([*row, -1.0])) for row in p.tolist()]
    limit = tolerance * (1 + 1e-6)
    # Within one rounding of the limit, a sum may go either way.
    if any(abs(each - limit) <= 2.0**-51 for each in off):
        return
    invalid = [i for i, each in enumerate(off) if each > limit]
    # Small inputs go through the array calls; with no threshold, the same rows are compiled.
    for threshold in (settings.compiled_from, 0):
        with changed(compiled_at_once=0, compiled_from=threshold):
            _check(y, p, invalid, f"{k=} {n=} {dtype=} {threshold=}")


def _check(y: np.ndarray, p: np.ndarray, invalid: list[int], case: str) -> None:
    try:
        card = vx.evaluate(y, p, rules=["brier"])
    except vx.InputError as error:
        if (error.argument, list(error.rows)) != ("p", invalid[:3]):
            raise AssertionError(f"{case}: invalid are {invalid}, and it says {error}") from None
        return
    assert not invalid, f"{case}: accepted rows {invalid}"
    assert card.weight == len(y), f"{case}: weight {card.weight} of {len(y)} rows"
    exact = math.fsum(_brier(i, row) for i, row in zip(y.tolist(), p.tolist(), strict=True)) / len(y)
    assert abs(card["brier"] - exact) <= 1e-12, f"{case}: {card['brier']} is not {exact}"


def _brier(y: int, row: list[float]) -> float:
    rest = math.fsum(v * v for j, v in enumerate(row) if j != y)
    # Rows may sum to a little more than 1; the loss stays within its range.
    return (row[y] - 1) ** 2 + min(rest, 1.0)
