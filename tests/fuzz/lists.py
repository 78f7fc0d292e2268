"""Top lists at the edges against a slow reference in exact fractions (the definitions of Resin, 2023).

Sums near 1, ties, empty and complete lists, repeated and unknown classes, huge numbers of classes. Where a
decision lies within rounding of its threshold, either side of it is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

import verax as vx
from verax._settings import changed

# The tolerances that the library documents, and how far around them either answer is right.
ABOVE_ONE, MASS, SMALLEST = Fraction(1e-6 * (1 + 1e-6)), Fraction(1e-6 + 1e-12), Fraction(1, 2**52)
DOUBT = Fraction(1, 10**13)
SIZES = (2, 3, 4, 5, 10, 1000, 2**31, 2**63, 10**30, 2**900)
RULES = {"brier": vx.brier, "log_score": vx.log_score, "spherical": vx.spherical, "zero_one": vx.zero_one}


def _confidences(rng: np.random.Generator, k: int, m: int) -> list[float]:
    """k confidences of one of several awkward kinds."""
    if k == 0:
        return []
    kind = int(rng.integers(8))
    if kind == 0:
        t = rng.dirichlet(np.ones(k + 1))[:k]
    elif kind == 1:
        t = np.full(k, 1 / m if m < 10**300 else 0.0)
    elif kind == 2:
        t = np.full(k, 1 / k)
    elif kind == 3:
        t = np.zeros(k)
        t[rng.integers(k)] = 1.0
    elif kind == 4:
        t = rng.integers(0, 4, k) / (4.0 * k)
    elif kind == 5:
        t = rng.dirichlet(np.ones(k)).astype(np.float32).astype(np.float64)
    elif kind == 6:
        t = rng.dirichlet(np.ones(k)) * (1 + rng.choice([-1, 1]) * 10.0 ** -rng.integers(6, 18))
    else:
        # Around the threshold of validity: the rest shared evenly is as much as the last class has.
        t = np.full(k, rng.random() / k)
        t[-1] = (1 - t[:-1].sum()) / max(m - k + 1, 1) * (1 + rng.choice([-1, 0, 1]) * 1e-14)
    return [float(x) for x in t]


def _row(rng: np.random.Generator, m: int) -> tuple[list[int], list[float]]:
    k = min(m, int(rng.integers(0, 7)) if rng.random() < 0.9 else m if m <= 10 else 40)
    if m < 10**6:
        classes = [int(c) for c in rng.permutation(m)[:k]]
    else:
        classes = list({int(rng.integers(2**62)) * (m // 2**62 or 1) % m for _ in range(k)})
        k = len(classes)
    if classes and rng.random() < 0.06:
        classes[0] = int(rng.choice([-1, 1])) * m
    if k > 1 and rng.random() < 0.06:
        classes[-1] = classes[0]
    return classes, _confidences(rng, k, m)


# ---- the reference ---------------------------------------------------------------------------------


def _problems(classes: list[int], t: list[Fraction], m: int) -> set[bool]:
    """Whether the list must be refused: {True}, {False}, or both where rounding decides."""
    total = sum(t, Fraction(0))
    if len(set(classes)) < len(classes) or any(not 0 <= c < m for c in classes):
        return {True}
    over = [total - 1 - ABOVE_ONE]
    if len(t) == m:
        over.append(1 - total - ABOVE_ONE)
    worst = max([*over, *(x - 1 - ABOVE_ONE for x in t)])
    return {True, False} if abs(worst) <= DOUBT else {worst > 0}


def _kept(t: list[Fraction], m: int, slack: Fraction) -> int:
    """The length of the largest valid sublist of decreasing confidences; a list of all classes is valid."""
    if len(t) == m:
        return m
    run, kept = Fraction(0), 0
    for j, x in enumerate(t, start=1):
        run += x
        if (m - j) * x + run < 1 - slack:
            break
        kept = j
    return kept


def _expected(classes: list[int], t: list[Fraction], m: int, y: int) -> Iterator[dict[str, float]]:
    """The losses and the validity, for every way that rounding may decide."""
    order = sorted(range(len(t)), key=lambda i: -t[i])
    classes, t = [classes[i] for i in order], [t[i] for i in order]
    for slack in (Fraction(0), MASS - DOUBT, MASS + DOUBT):
        kept = _kept(t, m, slack)
        for least in (SMALLEST / 2, SMALLEST * 2):
            rest = 1 - sum(t[:kept], Fraction(0))
            rest = Fraction(0) if rest < least or kept == m else rest
            yield _losses(classes, t, m, y, kept, rest)


def _losses(
    classes: list[int], t: list[Fraction], m: int, y: int, kept: int, rest: Fraction
) -> dict[str, float]:
    listed = dict(zip(classes[:kept], t[:kept], strict=True))
    proxy = rest / (m - kept) if kept < m else Fraction(0)
    d_y = listed.get(y, proxy)
    square = sum((x * x for x in listed.values()), Fraction(0)) + proxy * rest
    # Whether an answer is right does not depend on how many of its classes are kept.
    stated = dict(zip(classes, t, strict=True))
    top = max(stated.values(), default=Fraction(0))
    modes = [c for c, x in stated.items() if x == top]
    # A listed class ties with the unlisted ones only where the distribution is uniform.
    hit = Fraction(1, len(modes)) if y in modes else Fraction(0)
    if kept == len(t) and m * top <= 1 + MASS:
        hit = Fraction(1, m)
    rest_sq = square - d_y * d_y
    norm, fine = math.sqrt(square), float(kept < len(t))
    return {
        "valid": float(kept == len(t)),
        "brier": fine + float((1 - d_y) ** 2 + min(rest_sq, 1)),
        "log_score": math.inf
        if d_y == 0
        else fine + max(math.log(d_y.denominator) - math.log(d_y.numerator), 0.0),
        "spherical": fine + float(rest_sq) / (norm * (norm + float(d_y))),
        "zero_one": float(1 - hit),
    }


def _same(given: dict[str, float], wanted: dict[str, float]) -> bool:
    return all(
        value == wanted[name] or math.isclose(value, wanted[name], rel_tol=1e-9, abs_tol=1e-12)
        for name, value in given.items()
    )


# ---- one call --------------------------------------------------------------------------------------


def _make(classes: list[list[int]], t: list[list[float]], m: int, rng: np.random.Generator) -> vx.TopLists:
    if m < 10**6 and rng.random() < 0.4:
        return _from_flat(classes, t, m, rng)
    if rng.random() < 0.5 or any(len(set(row)) < len(row) for row in classes):
        return vx.TopLists.from_arrays(classes, t, n_classes=m)
    rows = [dict(zip(c, x, strict=True)) for c, x in zip(classes, t, strict=True)]
    return vx.TopLists.from_dicts(rows, n_classes=m)


def _from_flat(
    classes: list[list[int]], t: list[list[float]], m: int, rng: np.random.Generator
) -> vx.TopLists:
    """Lists from flat arrays, which are overwritten afterwards: that must not change the lists."""
    codes = np.array([c for row in classes for c in row], np.int64)
    values = np.array([x for row in t for x in row], np.float64)
    offsets = np.cumsum([0, *map(len, classes)])
    # The names are the positions, so that outcomes are the same with and without them.
    names = list(range(m)) if rng.random() < 0.5 else None
    lists = vx.TopLists.from_arrays(codes, values, n_classes=m, offsets=offsets, names=names)
    for array in (codes, values, offsets):
        array[...] = 1
    return lists


def _outcome(rng: np.random.Generator, classes: list[int], m: int) -> int:
    inside = [c for c in classes if 0 <= c < m]
    return inside[int(rng.integers(len(inside)))] if inside and rng.random() < 0.5 else min(m, 2**62) - 1


def attempt(rng: np.random.Generator) -> None:
    """Some random lists with outcomes, scored by the library and by the reference."""
    m = int(SIZES[int(rng.integers(len(SIZES)))])
    rows = [_row(rng, m) for _ in range(int(rng.integers(1, 5)))]
    classes, t = [c for c, _ in rows], [x for _, x in rows]
    exact = [[Fraction(x) for x in row] for row in t]
    y = [_outcome(rng, row, m) for row in classes]
    said = f"m={m}, classes={classes}, confidences={t}, y={y}"
    refused = [_problems(c, x, m) for c, x in zip(classes, exact, strict=True)]
    error: Exception | None = None
    with changed(compiled_from=1 if rng.random() < 0.5 else 2**40):
        try:
            lists = _make(classes, t, m, rng)
            given: Any = {name: rule.samples(y, lists).tolist() for name, rule in RULES.items()}
        except Exception as caught:
            error = caught
    assert error is None or isinstance(error, vx.InputError), f"{error!r}: {said}"
    if error is not None:
        assert any(True in each for each in refused), f"refused ({error}): {said}"
        return
    assert all(False in each for each in refused), f"accepted: {said}"
    given["valid"] = lists.valid.astype(float).tolist()
    for i in range(len(rows)):
        own = {name: values[i] for name, values in given.items()}
        wanted = list(_expected(classes[i], exact[i], m, y[i]))
        assert any(_same(own, each) for each in wanted), f"row {i}: {own}, not {wanted[0]}: {said}"
