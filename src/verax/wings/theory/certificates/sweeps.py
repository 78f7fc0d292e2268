"""Forecasts that fill the simplex evenly, follow lines through it, and approach its faces at all scales.

A rule may fail in a narrow region only, or only next to a vertex, an edge or a face. Neighbours in these
forecasts are compared as truth and forecast, and what is wrong goes to the exact search.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, permutations, product
from math import comb, lcm, sqrt

import numpy as np

from verax.common.caching import cached_property
from verax.inputs.arrays import Floats, Ints
from verax.wings.theory.certificates.probes import (
    Counts,
    ForecastPanel,
    Probes,
    doubts,
    hunt_dishonest,
    lowest_terms,
    magnitude,
    plateaus,
    scales_of,
    ties,
)

# How many forecasts the lattice has at most (its spacing is 1/270 for three classes), how many the lines
# have together, for three classes and for more; and the lattice of two classes.
_LATTICE_POINTS, _LINE_POINTS, _FINEST = (37_000, 20_000), (12_000, 6_000), 20_000
# Neighbours on a line are this many points apart, in the lattice this many steps.
_LINE_STEPS, _SCALE_STEPS, _LATTICE_STEPS = (1, 4, 16, 64), (1, 2, 4, 8), (1, 4)
# Masses next to a face, and none: any factor of 2 above SMALLEST contains one of them. Smaller masses vanish
# beside 1; of those there is one for every power of ten.
_MASSES = (*(Fraction(m, 10 ** (k + 1)) for k in range(1, 16) for m in (90, 50, 30, 17)), Fraction(0))
_DEPTHS = tuple(Fraction(1, 10**k) for k in range(12, 301))
SMALLEST, DEEPEST = float(_MASSES[-2]), float(_DEPTHS[-1])
# How many comparisons are evaluated at a time, failures handed on, and starts given to the optimiser.
_BLOCK, _SHOWN, _STARTS = 100_000, 3, 10
# What stands for infinity.
_INFINITE = 1e300

# A line from one distribution, given by counts, to another.
Line = tuple[Counts, Counts]


@dataclass(frozen=True)
class Sweep:
    """Forecasts and the pairs of them to compare.

    Attributes
    ----------
    points : (L, K) counts of the first forecasts.
    lines : the lines on which the other forecasts are.
    shares : how much of each line's end they contain; the same shares for every line.
    pairs : (M, 2) rows of forecasts to compare; the first is the truth.
    mutual : whether the second is to be the truth as well.
    nearest : how many of the first pairs are the nearest neighbours in a lattice.
    same_mass : whether paired forecasts give the same probability to the likely classes.
    """

    points: Ints
    lines: tuple[Line, ...]
    shares: tuple[Fraction, ...]
    pairs: Ints
    mutual: bool = True
    nearest: int = 0
    same_mass: bool = False

    @cached_property
    def p(self) -> Floats:
        """All forecasts as floating-point rows."""
        points = self.points / self.points.sum(axis=1, keepdims=True)
        if not self.lines:
            return np.asarray(points)
        start, end = (np.array([np.array(line[i]) / sum(line[i]) for line in self.lines]) for i in (0, 1))
        share = np.array([float(t) for t in self.shares])[:, None]
        rest = np.array([float(1 - t) for t in self.shares])[:, None]
        along = start[:, None, :] * rest + end[:, None, :] * share
        return np.concatenate([points, along.reshape(-1, along.shape[2])])

    def counts(self, row: int) -> Counts:
        """One forecast, exactly."""
        if row < len(self.points):
            return lowest_terms([int(n) for n in self.points[row]])
        line, place = divmod(row - len(self.points), len(self.shares))
        (start, end), t = self.lines[line], self.shares[place]
        exact = [
            Fraction(a, sum(start)) * (1 - t) + Fraction(b, sum(end)) * t
            for a, b in zip(start, end, strict=True)
        ]
        total = lcm(*(x.denominator for x in exact))
        return tuple(int(x * total) for x in exact)


# ---- which forecasts ---------------------------------------------------------------------------


def lattice_units(n_classes: int) -> int:
    """The common denominator of the lattice."""
    if n_classes == 2:
        return _FINEST
    units = 1
    while comb(units + n_classes, n_classes - 1) <= _LATTICE_POINTS[n_classes > 3]:
        units += 1
    return units


def lattice_width(n_classes: int) -> float:
    """A region that spans this much in every probability contains a forecast of the lattice."""
    a = n_classes // 2
    # The covering radius of the lattice A_{K-1}, and how much of it a single probability can take.
    radius = sqrt(a * (n_classes - a) / n_classes)
    return 2 * radius * sqrt(1 - 1 / n_classes) / lattice_units(n_classes)


def line_points(n_classes: int) -> int:
    """The number of intervals on every line."""
    return _LINE_POINTS[n_classes > 3] // len(_straight_lines(n_classes))


def line_width(n_classes: int) -> float:
    """A stretch of a line that spans this much contains a forecast."""
    return 1 / (line_points(n_classes) if n_classes > 2 else lattice_units(2))


@lru_cache(maxsize=8)
def lattice(n_classes: int) -> Sweep:
    """All forecasts with one denominator."""
    units = lattice_units(n_classes)
    counts = compositions(units, n_classes)
    place = (units + 1) ** np.arange(n_classes, dtype=np.int64)
    keys = counts @ place
    order = np.argsort(keys)
    steps = _LINE_STEPS if n_classes == 2 else _LATTICE_STEPS if n_classes < 6 else _LATTICE_STEPS[:1]
    pairs = []
    for step, (i, j) in product(steps, combinations(range(n_classes), 2)):
        rows = np.flatnonzero(counts[:, i] >= step)
        moved = keys[rows] + step * (place[j] - place[i])
        pairs.append(np.stack([rows, order[np.searchsorted(keys, moved, sorter=order)]], axis=1))
    nearest = sum(map(len, pairs[: comb(n_classes, 2)]))
    return Sweep(counts, (), (), np.concatenate(pairs), nearest=nearest)


def compositions(units: int, n_classes: int) -> Ints:
    """All ways of dividing some units among the classes: (G, K)."""
    if n_classes == 1:
        return np.array([[units]], np.int64)
    parts = [compositions(units - n, n_classes - 1) for n in range(units + 1)]
    first = np.repeat(np.arange(units + 1), [len(part) for part in parts])
    return np.column_stack([first, np.concatenate(parts)])


@lru_cache(maxsize=8)
def lines(n_classes: int) -> Sweep:
    """Forecasts on the edges and on the lines from each vertex to the middle of the opposite face."""
    segments, n = _straight_lines(n_classes), line_points(n_classes)
    shares = tuple(Fraction(i, n) for i in range(n + 1))
    table = np.arange(len(segments) * len(shares)).reshape(len(segments), -1)
    return Sweep(np.empty((0, n_classes), np.int64), segments, shares, _along(table, _LINE_STEPS))


def _straight_lines(n_classes: int) -> tuple[Line, ...]:
    vertices = [_indicator(n_classes, [i]) for i in range(n_classes)]
    others = [_indicator(n_classes, set(range(n_classes)) - {i}) for i in range(n_classes)]
    return (*combinations(vertices, 2), *(zip(vertices, others, strict=True) if n_classes > 2 else ()))


@lru_cache(maxsize=8)
def scales(n_classes: int) -> Sweep:
    """Forecasts next to vertices, edges and faces, at masses from 0.9 down to 10^-15."""
    segments = tuple((head, tail) for head in _heads(n_classes) for tail in _tails(head))
    simple = _simple(n_classes)
    table = len(simple) + np.arange(len(segments) * len(_MASSES)).reshape(len(segments), -1)
    none = np.broadcast_to(table[:, -1:], table[:, :-1].shape)
    to_none = np.stack([table[:, :-1], none], axis=2).reshape(-1, 2)
    pairs = [_along(table, _SCALE_STEPS), to_none, _divisions(segments, table[:, :-1]), _with(simple, table)]
    return Sweep(simple, segments, _MASSES, np.concatenate(pairs))


@lru_cache(maxsize=8)
def ladders(n_classes: int) -> Sweep:
    """Forecasts that approach each vertex along each edge, at all masses down to 10^-300."""
    vertices = [_indicator(n_classes, [i]) for i in range(n_classes)]
    segments, shares = (
        tuple(permutations(vertices, 2)),
        (*_MASSES[:-1], *(t for t in _DEPTHS if t < SMALLEST), Fraction(0)),
    )
    simple = _simple(n_classes)
    table = len(simple) + np.arange(len(segments) * len(shares)).reshape(len(segments), -1)
    # As truths they are too close to the vertex: 1 minus the mass is 1.
    return Sweep(simple, segments, shares, _with(simple, table), mutual=False)


@lru_cache(maxsize=8)
def depths(n_classes: int) -> Sweep:
    """Forecasts next to vertices from 10^-12 to 10^-300: other divisions of the same mass are compared."""
    heads = _heads(n_classes)[:n_classes]
    segments = tuple((head, tail) for head in heads for tail in _tails(head))
    table = np.arange(len(segments) * len(_DEPTHS)).reshape(len(segments), -1)
    pairs = _divisions(segments, table)
    return Sweep(np.empty((0, n_classes), np.int64), segments, _DEPTHS, pairs, same_mass=True)


def _simple(n_classes: int) -> Ints:
    """Vertices and the uniform forecast; for few classes also the middles of edges."""
    sizes = (1, 2, n_classes) if 2 < n_classes < 5 else (1, n_classes)
    members = [chosen for size in sizes for chosen in combinations(range(n_classes), size)]
    return np.array([_indicator(n_classes, chosen) for chosen in members], np.int64)


def _with(simple: Ints, table: Ints) -> Ints:
    """The pairs of every simple forecast, the first rows, with every row of a table."""
    rows = table.ravel()
    return np.column_stack([np.repeat(np.arange(len(simple)), len(rows)), np.tile(rows, len(simple))])


def _divisions(segments: Sequence[Line], table: Ints) -> Ints:
    """The pairs of rows that divide the same mass next to the same point in different ways."""
    lines = [(a, b) for a, b in combinations(range(len(segments)), 2) if segments[a][0] == segments[b][0]]
    pairs = [table[[a, b]].T for a, b in lines]
    return np.concatenate(pairs) if pairs else np.empty((0, 2), np.int64)


def _heads(n_classes: int) -> list[Counts]:
    """Vertices, the middles of edges and largest faces; for few classes two more points on every edge."""
    every = range(n_classes)
    heads = [_indicator(n_classes, [i]) for i in every]
    if n_classes > 2:
        heads += [_indicator(n_classes, pair) for pair in combinations(every, 2)]
    if 2 < n_classes < 5:
        heads += [tuple({i: 9, j: 1}.get(c, 0) for c in every) for i, j in permutations(every, 2)]
    if n_classes > 3:
        heads += [_indicator(n_classes, set(every) - {i}) for i in every]
    return heads


def _tails(head: Counts) -> list[Counts]:
    """Ways of dividing a small mass among the classes that have none."""
    k, free = len(head), [c for c, n in enumerate(head) if n == 0]
    tails = [_indicator(k, [c]) for c in free]
    if len(free) > 1:
        tails.append(_indicator(k, free))
    if len(free) == k - 1:
        around = zip(free, free[1:] + free[:1], strict=True)
        pairs = permutations(free, 2) if k == 3 else around if k > 3 else ()
        tails += [tuple({i: 10, j: 1}.get(c, 0) for c in range(k)) for i, j in pairs]
    return tails


def _indicator(n_classes: int, members: Sequence[int] | set[int]) -> Counts:
    return tuple(int(c in members) for c in range(n_classes))


def _along(table: Ints, steps: Sequence[int]) -> Ints:
    """The pairs of rows of a table that are some steps apart along its lines."""
    pairs = [np.stack([table[:, :-s], table[:, s:]], axis=2).reshape(-1, 2) for s in steps]
    return np.concatenate(pairs)


# ---- what is wrong ------------------------------------------------------------------------------


@dataclass
class SearchExtent:
    """The extent of a search, for `verax.wings.theory.certificates.certify.Resolution`.

    Attributes
    ----------
    forecasts, comparisons : the numbers of forecasts and of pairs of a truth and a forecast.
    regret : excess expected loss of a lattice neighbour over the truth, for 95 % of the pairs at most,
        relative to the median loss: a larger change of the loss reverses their order.
    """

    forecasts: int = 0
    comparisons: int = 0
    regret: float = 0.0


def hunt_narrow(
    panel: ForecastPanel, rng: np.random.Generator, seen: SearchExtent, local: bool
) -> Iterator[Probes]:
    """Truths with forecasts that beat them or tie with them; then the optimiser, from the closest cases."""
    k = panel.n_classes
    sweeps = [lattice(k), scales(k), ladders(k)]
    if k > 2:
        sweeps += [lines(k), depths(k)] if local else [lines(k)]
    near: Floats = np.empty((0, 2, k))
    for sweep in sweeps:
        p = sweep.p
        loss = panel.losses(p)
        seen.forecasts += len(p)
        seen.comparisons += (1 + sweep.mutual) * len(sweep.pairs)
        comparison = _compare(sweep, p, loss, scales_of(loss, panel.floor))
        if sweep.nearest:
            near, seen.regret = p[comparison.closest], comparison.regret
        for rows in comparison.rows:
            yield Probes.of([sweep.counts(row) for row in rows], (0, 0))
    yield from hunt_dishonest(panel, rng, near)


def hunt_plateaus(panel: ForecastPanel) -> Iterator[Probes]:
    """Three forecasts on the way to a vertex: between the last two the loss does not change any more."""
    sweep = ladders(panel.n_classes)
    rows = np.arange(len(sweep.points), len(sweep.p)).reshape(len(sweep.lines), -1)
    loss = panel.losses(sweep.p)
    for ladder in rows:
        for place in np.flatnonzero(plateaus(loss[ladder]).any(axis=1))[:1]:
            yield Probes.of([sweep.counts(int(row)) for row in ladder[place : place + 3]], ladder=True)


@dataclass(frozen=True)
class _Comparison:
    """The pairs of a truth and a forecast where the rule fails, and the lattice pairs closest to failing."""

    rows: list[tuple[int, int]]
    closest: Ints
    regret: float


def _compare(sweep: Sweep, p: Floats, loss: Floats, scale: Floats) -> _Comparison:
    # Large instead of infinite: what cannot happen then costs 0 without a special case.
    loss = np.clip(loss, -_INFINITE, _INFINITE)
    honest = (p * loss).sum(axis=1)
    beaten: list[tuple[float, int, int]] = []
    tied: list[tuple[int, int]] = []
    close: list[tuple[float, int, int]] = []
    regrets = [np.zeros(1)]
    for start in range(0, len(sweep.pairs), _BLOCK):
        block = sweep.pairs[start : start + _BLOCK]
        for truth, other in (block.T, block[:, ::-1].T)[: 1 + sweep.mutual]:
            q, largest = p[truth], np.maximum(scale[truth], scale[other])
            gain = np.einsum("ij,ij->i", q, loss[truth] - loss[other])
            size = np.maximum(np.abs(honest[truth]), np.abs(honest[truth] - gain))
            share = np.where(q == p[other], 0.0, q).sum(axis=1) if sweep.same_mass else 1.0
            wrong = np.flatnonzero(gain > doubts(size, largest, share))
            beaten += _smallest(-gain[wrong] / np.maximum(size[wrong], 1e-300), truth[wrong], other[wrong])
            same = np.flatnonzero(ties(gain, largest, p, other, truth))[:_SHOWN]
            tied += zip(truth[same].tolist(), other[same].tolist(), strict=True)
            near = max(0, sweep.nearest - start)
            regrets.append(-gain[:near])
            close += _smallest(-gain[:near], truth[:near], other[:near])
    rows = [(a, b) for _, a, b in sorted(beaten)[:_SHOWN]] + tied[:_SHOWN]
    closest = np.array([(a, b) for _, a, b in sorted(close)[:_STARTS]], np.int64).reshape(-1, 2)
    middle = float(np.median(magnitude(loss))) or 1.0
    return _Comparison(rows, closest, max(0.0, float(np.quantile(np.concatenate(regrets), 0.95))) / middle)


def _smallest(values: Floats, truth: Ints, other: Ints) -> list[tuple[float, int, int]]:
    """The pairs with the smallest values."""
    few = np.argsort(values, kind="stable") if len(values) <= _STARTS else np.argpartition(values, _STARTS)
    few = few[:_STARTS]
    return list(zip(values[few].tolist(), truth[few].tolist(), other[few].tolist(), strict=True))
