"""Where to look for counterexamples: exact forecasts, simplest first, and an optimiser between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations
from math import comb, gcd, lcm
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# The losses of (G, K) forecast rows for each of the K outcomes.
Losses = Callable[[Floats], Floats]
# A forecast as integers: its probabilities times their common denominator.
Counts = tuple[int, ...]

# What the optimiser finds is rounded to the first of these denominators at which it persists.
DENOMINATORS = (10, 20, 50, 100, 1000, 10_000, 1_000_000)

# The grid goes as deep as this many lattice points allow, which is denominator 15 for three classes.
_GRID_POINTS = 1000
_DEEPEST = 20
_RUNGS = range(2, 16)
_BUMPS = (100, 1000, 1_000_000)
_NUDGES = (100, 1000)
_BASES = 20
_HUGE = 1e30


@dataclass(frozen=True)
class Probes:
    """Forecasts to try, in lowest terms and simplest first.

    Attributes
    ----------
    counts : (G, K) row g is the forecast counts[g] / counts[g].sum().
    grid : (G,) whether it belongs to the grid of small denominators.
    core : (G,) whether it belongs to the grid or lies next to a corner, at 10^-2 to 10^-10.
    moves : (M, 4) rows a and b and classes i and j: b is a after moving mass from i to j.
    swaps : (K-1, G) the row of the forecast with classes t and t+1 exchanged, -1 where there is none.
    ladders : (L, R) rows of forecasts that approach a corner, the corner itself last.
    """

    counts: Ints
    grid: npt.NDArray[np.bool_]
    core: npt.NDArray[np.bool_]
    moves: Ints
    swaps: Ints
    ladders: Ints

    @property
    def totals(self) -> Ints:
        """The denominators: (G,)."""
        return self.counts.sum(axis=1)

    @property
    def p(self) -> Floats:
        """The forecasts as floating-point rows: (G, K)."""
        return np.asarray(self.counts / self.totals[:, None])

    def fractions(self, row: int) -> tuple[Fraction, ...]:
        """One forecast, exactly."""
        total = int(self.counts[row].sum())
        return tuple(Fraction(int(n), total) for n in self.counts[row])

    @classmethod
    def of(cls, rows: Iterable[Sequence[int]], move: tuple[int, int] | None = None) -> Probes:
        """A few forecasts, all counted as grid; `move` says from which class to which the first changed."""
        unique = list(dict.fromkeys(lowest_terms(row) for row in rows))
        here = np.ones(len(unique), bool)
        moves = [(0, 1, *move)] if move and len(unique) == 2 else []
        return cls(
            np.array(unique, np.int64),
            here,
            here,
            np.array(moves, np.int64).reshape(-1, 4),
            np.empty((0, len(unique)), np.int64),
            np.empty((0, 2), np.int64),
        )


@cache
def probes(n_classes: int, seed: int) -> Probes:
    """The forecasts that every rule is tried on."""
    lattice = list(_lattice(n_classes))
    grid = {lowest_terms(row) for row in lattice}
    pairs = list(permutations(range(n_classes), 2))
    ladders = [[_at_corner(n_classes, i, j, 10**k) for k in _RUNGS] for i, j in pairs]
    for (_, j), ladder in zip(pairs, ladders, strict=True):
        ladder.append(tuple(int(c == j) for c in range(n_classes)))
    random = list(_random(n_classes, seed))
    bases = sorted(grid, key=_simplicity)[:_BASES] + [(1,) * n_classes] + random

    steps = [(row, i, j, sum(row)) for row in lattice for i, j in pairs]
    nudges = [(row, i, j, parts) for row in bases for i, j in pairs for parts in _NUDGES]
    moves: dict[tuple[Counts, Counts, int, int], None] = {}
    for row, i, j, parts in steps + nudges:
        if (to := _moved(row, i, j, parts)) is not None:
            moves[lowest_terms(row), to, i, j] = moves[to, lowest_terms(row), j, i] = None

    everything = grid | {row for ladder in ladders for row in ladder} | set(_near_ties(n_classes, grid))
    everything |= {row for move in moves for row in move[:2]}
    everything |= {_swapped(row, t) for row in random for t in range(n_classes - 1)}
    ordered = sorted(everything, key=_simplicity)
    at = {row: g for g, row in enumerate(ordered)}
    core = grid | {row for ladder in ladders for row in ladder if sum(row) <= 10**10}
    return Probes(
        np.array(ordered, np.int64),
        np.array([row in grid for row in ordered]),
        np.array([row in core for row in ordered]),
        np.array([(at[a], at[b], i, j) for a, b, i, j in moves], np.int64),
        np.array([[at.get(_swapped(row, t), -1) for row in ordered] for t in range(n_classes - 1)], np.int64),
        np.array([[at[row] for row in ladder] for ladder in ladders], np.int64),
    )


def lowest_terms(row: Sequence[int]) -> Counts:
    """Counts without a common divisor."""
    divisor = gcd(*row)
    return tuple(n // divisor for n in row)


def _simplicity(row: Counts) -> tuple[int, Counts]:
    return sum(row), tuple(-n for n in row)


def _lattice(n_classes: int) -> Iterator[Counts]:
    """All ways of dividing 1, 2, 3, ... units among the classes."""
    depth = 1
    while depth < _DEEPEST and comb(depth + 1 + n_classes, n_classes) <= _GRID_POINTS:
        depth += 1
    for units in range(1, depth + 1):
        for bars in combinations(range(units + n_classes - 1), n_classes - 1):
            edges = (-1, *bars, units + n_classes - 1)
            yield tuple(b - a - 1 for a, b in zip(edges[:-1], edges[1:], strict=True))


def _at_corner(n_classes: int, i: int, j: int, total: int) -> Counts:
    """All but 1/total on class j, the rest on class i."""
    return tuple({i: 1, j: total - 1}.get(c, 0) for c in range(n_classes))


def _random(n_classes: int, seed: int) -> Iterator[Counts]:
    """Percentages without a pattern."""
    for p in np.random.default_rng(seed).dirichlet(np.ones(n_classes), _BASES):
        yield lowest_terms(to_counts(p, 100))


def _near_ties(n_classes: int, grid: set[Counts]) -> Iterator[Counts]:
    """Forecasts one step away from a tie for most likely: where a mode is hardest to see."""
    for size in range(2, n_classes + 1):
        for members in combinations(range(n_classes), size):
            for bump, total in ((b, t) for b in members for t in _BUMPS):
                share = (total - 1) // size
                rest = total - (size - 1) * share
                yield lowest_terms(
                    [rest if c == bump else share * (c in members) for c in range(n_classes)]
                )
    for row in grid:
        tied = [c for c, n in enumerate(row) if n == max(row)]
        for i, j in permutations(tied, 2):
            if (to := _moved(row, i, j, 10**6 * sum(row))) is not None:
                yield to


def _moved(row: Counts, i: int, j: int, parts: int) -> Counts | None:
    """The forecast with 1/parts of all mass moved from class i to class j; None where i has less."""
    total = lcm(sum(row), parts)
    counts = [n * (total // sum(row)) for n in row]
    counts[i] -= total // parts
    counts[j] += total // parts
    return lowest_terms(counts) if counts[i] >= 0 else None


def _swapped(row: Counts, t: int) -> Counts:
    return (*row[:t], row[t + 1], row[t], *row[t + 2 :])


def to_counts(p: Floats, total: int) -> list[int]:
    """A distribution rounded to multiples of 1/total, the largest remainders first."""
    counts = np.floor(p * total).astype(np.int64)
    short = total - int(counts.sum())
    counts[np.argsort(counts - p * total, kind="stable")[:short]] += 1
    return [int(n) for n in counts]


def to_simplex(x: Floats) -> Floats:
    """Rows of any numbers as distributions; numbers below zero become zero."""
    x = np.maximum(x, 0.0)
    total = x.sum(axis=1, keepdims=True)
    return np.where(total > 0, x / np.where(total > 0, total, 1.0), 1 / x.shape[1])


def minimise(
    objective: Callable[[Floats], Floats], start: Floats, rounds: int, rng: np.random.Generator
) -> Floats:
    """The row where `objective`, which takes a batch of rows, was found smallest.

    Evolution of a population, not descent: it takes whole batches, and rules may jump.
    """
    from scipy.optimize import differential_evolution

    def values(x: Floats) -> Floats:
        return np.clip(np.nan_to_num(objective(x.T), nan=_HUGE), -_HUGE, _HUGE)

    result: Any = differential_evolution(
        values,
        # A little below zero, where `to_simplex` reaches the faces of the simplex.
        [(-0.25, 1.0)] * start.shape[1],
        init=start,
        maxiter=rounds,
        tol=0,
        polish=False,
        vectorized=True,
        updating="deferred",
        seed=rng,
    )
    return np.asarray(result.x, np.float64)
