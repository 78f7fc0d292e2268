"""Candidates for counterexamples: exact forecasts, simplest first, and an optimiser between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, pairwise, permutations
from math import comb, gcd, lcm
from typing import Any

import numpy as np

from verax.errors import InputError, RuleError, show
from verax.inputs.arrays import Bools, Floats, Ints
from verax.scores.base import Rule, losses_by_outcome
from verax.scores.registry import name_of, parse
from verax.scores.sets import SetRule

# The losses of (G, K) forecast rows for each of the K outcomes.
Losses = Callable[[Floats], Floats]
# A forecast as integers: its probabilities times their common denominator.
Counts = tuple[int, ...]

# By how much a loss must be smaller to be called smaller: relative to itself, and to the largest
# loss of the forecasts compared. By how much losses called equal may differ, relative to that.
_MARGIN, _DOUBT, _ROUNDING = 1e-9, 1e-12, 1e-14
# By how much expected losses may be wrong, relative to the largest loss: 16 units in the last place.
_ULPS = 16 * 2.0**-52
# Between forecasts closer than this a smooth loss can vanish in rounding, so that equality says nothing.
_APART = 0.005
# What the optimiser finds is rounded to the first of these denominators at which it persists.
DENOMINATORS = (10, 20, 50, 100, 1000, 10_000, 1_000_000)

# The grid goes as deep as this many lattice points allow, which is denominator 15 for three classes.
_GRID_POINTS, _DEEPEST = 1000, 20
# Towards a corner by powers of ten; 10^15 is the last that a double holds with its neighbours.
_RUNGS = range(2, 16)
# Ties are broken by about one part in these many.
_BUMPS = (100, 1000, 1_000_000)
# _BASES simple and _BASES random forecasts get neighbours, one part in each of _NUDGES away.
_BASES, _NUDGES = 20, (100, 1000)
# The optimiser moves at least _LEAST_MOVE, and treats _HUGE as infinity.
_LEAST_MOVE, _HUGE = 0.01, 1e30


@dataclass(frozen=True)
class Probes:
    """Forecasts to try, in lowest terms and simplest first.

    Attributes
    ----------
    counts : (G, K) row g is the forecast counts[g] / counts[g].sum().
    core : (G,) whether it has a small denominator or lies next to a corner, at 10^-2 to 10^-10: those
        of which all pairs are compared.
    moves : (M, 4) rows a and b and classes i and j: b is a after moving mass from i to j.
    swaps : (K-1, G) the row of the forecast with classes t and t+1 exchanged, -1 where there is none.
    ladders : (L, R) rows of forecasts that approach a corner, the corner itself last.
    """

    counts: Ints
    core: Bools
    moves: Ints
    swaps: Ints
    ladders: Ints

    @property
    def totals(self) -> Ints:
        """The denominators: (G,)."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def p(self) -> Floats:
        """The forecasts as floating-point rows: (G, K)."""
        return np.asarray(self.counts / self.totals[:, None], np.float64)

    def fractions(self, row: int) -> tuple[Fraction, ...]:
        """One forecast, exactly."""
        total = int(self.counts[row].sum())
        return tuple(Fraction(int(n), total) for n in self.counts[row])

    @classmethod
    def of(
        cls, rows: Iterable[Sequence[int]], move: tuple[int, int] | None = None, *, ladder: bool = False
    ) -> Probes:
        """A few forecasts, all of them core; `move` says from which class to which the first changed.

        With `ladder` the rows approach a corner. Totals may be too large for 64 bits.
        """
        unique = list(dict.fromkeys(lowest_terms(row) for row in rows))
        moves = [(0, 1, *move)] if move and len(unique) == 2 else []
        large = max(map(sum, unique)) >= 2**62
        return cls(
            np.array(unique, object if large else np.int64),
            np.ones(len(unique), bool),
            np.array(moves, np.int64).reshape(-1, 4),
            np.empty((0, len(unique)), np.int64),
            np.arange(len(unique)).reshape(1 if ladder else 0, -1) if ladder else np.empty((0, 2), np.int64),
        )


@lru_cache(maxsize=16)
def probes(n_classes: int, seed: int) -> Probes:
    """The forecasts that every rule is tried on."""
    lattice = list(_lattice(n_classes))
    grid = {lowest_terms(row) for row in lattice}
    pairs = list(permutations(range(n_classes), 2))
    ladders = [[_at_corner(n_classes, i, j, 10**k) for k in _RUNGS] for i, j in pairs]
    for (_, j), ladder in zip(pairs, ladders, strict=True):
        ladder.append(tuple(int(c == j) for c in range(n_classes)))
    random = list(_random(n_classes, seed))
    bases = [*sorted(grid, key=_simplicity)[:_BASES], (1,) * n_classes, *random]

    steps = [(row, i, j, sum(row)) for row in lattice for i, j in pairs]
    nudges = [(row, i, j, parts) for row in bases for i, j in pairs for parts in _NUDGES]
    moves: dict[tuple[Counts, Counts, int, int], None] = {}
    for row, i, j, parts in steps + nudges:
        if (to := _moved(row, i, j, parts)) is not None:
            moves[lowest_terms(row), to, i, j] = moves[to, lowest_terms(row), j, i] = None
    for (i, j), (*rungs, corner) in zip(pairs, ladders, strict=True):
        for rung in rungs:
            moves[corner, rung, j, i] = moves[rung, corner, i, j] = None

    everything = grid | {row for ladder in ladders for row in ladder} | set(_near_ties(n_classes, grid))
    everything |= {row for move in moves for row in move[:2]}
    everything |= {_swapped(row, t) for row in random for t in range(n_classes - 1)}
    ordered = sorted(everything, key=_simplicity)
    at = {row: g for g, row in enumerate(ordered)}
    core = grid | {row for ladder in ladders for row in ladder if sum(row) <= 10**10}
    return Probes(
        np.array(ordered, np.int64),
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
            yield tuple(b - a - 1 for a, b in pairwise(edges))


def _at_corner(n_classes: int, i: int, j: int, total: int) -> Counts:
    """All but 1/total on class j, the rest on class i."""
    return tuple({i: 1, j: total - 1}.get(c, 0) for c in range(n_classes))


def _random(n_classes: int, seed: int) -> Iterator[Counts]:
    """Percentages without a pattern."""
    for p in np.random.default_rng(seed).dirichlet(np.ones(n_classes), _BASES):
        yield lowest_terms(to_counts(p, 100))


def _near_ties(n_classes: int, grid: set[Counts]) -> Iterator[Counts]:
    """Forecasts one step away from a tie for most likely, where a mode is hardest to see."""
    for size in range(2, n_classes + 1):
        for members in combinations(range(n_classes), size):
            for bump, total in ((b, t) for b in members for t in _BUMPS):
                share = (total - 1) // size
                rest = total - (size - 1) * share
                yield lowest_terms([rest if c == bump else share * (c in members) for c in range(n_classes)])
    for row in grid:
        tied = [c for c, n in enumerate(row) if n == max(row)]
        for i, j in permutations(tied, 2):
            if (to := _moved(row, i, j, 10**6 * sum(row))) is not None:
                yield to


def _moved(row: Counts, i: int, j: int, parts: int) -> Counts | None:
    """The forecast with 1/parts of all mass moved from class i to class j; None if i has less."""
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
    """The row at which `objective`, which takes a batch of rows, is smallest.

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


# ---- what is searched -------------------------------------------------------------------------


def losses_function(rule: object) -> tuple[str, Losses]:
    """The name of the score to certify, and its losses for every outcome."""
    if isinstance(rule, str):
        rule = parse(rule)
    if isinstance(rule, SetRule):
        of_sets = rule
        return name_of(of_sets), lambda p: of_sets.by_set(of_sets.elicited(np.asarray(p, float)))
    if isinstance(rule, Rule):
        known = rule
        return name_of(known), lambda p: np.asarray(losses_by_outcome(known, p), np.float64)
    if isinstance(rule, type) or not callable(rule):
        raise InputError(
            f"must be a rule, its name, or a function f(y, p) that returns a loss, not {show(rule)}",
            argument="rule",
            kind="type",
        )
    f, name = rule, getattr(rule, "__name__", repr(rule))

    def losses(rows: Floats) -> Floats:
        return np.array([[call(f, name, y, p.copy()) for y in range(len(p))] for p in rows], np.float64)

    return name, losses


def call(f: Callable[..., Any], name: str, y: object, p: Floats) -> float:
    """The loss that a function gives a forecast; refuses anything but a number."""
    try:
        value = f(y, p)
    except Exception as error:
        raise _complaint(name, y, p, f"raised {type(error).__name__}: {error}") from error
    if type(value) in (float, np.float64) and value == value:
        return float(value)  # the usual case, without the slow checks below
    try:
        # float() would read texts, drop imaginary parts and unpack arrays of one number.
        scalar = not (isinstance(value, str | bytes) or np.iscomplexobj(value) or np.ndim(value))
        number = float(value) if scalar else np.nan
    except Exception:  # whatever the conversion of a foreign object raises
        number = np.nan
    if np.isnan(number):
        raise _complaint(name, y, p, f"returned {show(value)}")
    return number


def _complaint(name: str, y: object, p: Floats, what: str) -> RuleError:
    at = ", ".join(f"{x:.6g}" for x in p)
    return RuleError(
        f"{name} {what} at y={y}, p=({at}); it must return a real number for every outcome and forecast, "
        "corners of the simplex included: float('inf') for minus the log of 0."
    )


# ---- the table of losses ---------------------------------------------------------------------


@dataclass(frozen=True)
class ForecastPanel:
    """Exact forecasts with their losses for every outcome, on which all properties are decided."""

    probes: Probes
    losses: Losses
    p: Floats
    loss: Floats
    # The largest finite loss of each forecast, but at least `floor`: rounding errors are relative to it.
    scale: Floats
    floor: float
    # Whether the rule is known to be local: the losses of equal probabilities then cancel exactly.
    local: bool = False

    @classmethod
    def of(cls, forecasts: Probes, losses: Losses, floor: float = 0.0, local: bool = False) -> ForecastPanel:
        """The panel of some forecasts."""
        p = forecasts.p
        loss = losses(p)
        return cls(forecasts, losses, p, loss, scales_of(loss, floor), floor, local)

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return int(self.loss.shape[1])

    @property
    def rounding(self) -> float:
        """The largest gain treated as a rounding error, as a share of the largest loss."""
        return _ULPS * max(1.0, self.floor / (float(magnitude(self.loss).max()) or 1.0))

    def with_floor(self, floor: float) -> ForecastPanel:
        """The panel with larger rounding errors."""
        return replace(self, scale=scales_of(self.loss, floor), floor=floor)

    def negated(self) -> ForecastPanel:
        """The panel of the function with the other sign."""
        return replace(self, losses=lambda p: -self.losses(p), loss=-self.loss)


def magnitude(x: Floats) -> Floats:
    """Absolute values, 0 for infinities."""
    return np.where(np.isfinite(x), np.abs(x), 0.0)


def scales_of(loss: Floats, floor: float) -> Floats:
    """The scale of the rounding errors of each row."""
    return np.asarray(np.maximum(magnitude(loss).max(axis=1), floor))


def noise_floor(losses: Losses, n_classes: int) -> float:
    """The size of numbers that would have the rounding errors of these losses.

    A function may lose digits on the way to a small loss. Second differences over steps of 1e-8 are
    rounding errors where the loss is smooth, which is almost everywhere.
    """
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(n_classes), 100)
    v = rng.normal(size=p.shape)
    v = 1e-8 * p * (v - (p * v).sum(axis=1, keepdims=True))
    below, at, above = losses(np.concatenate([p - v, p, p + v])).reshape(3, *p.shape)
    return 8 * float(np.quantile(magnitude(below - 2 * at + above).max(axis=1), 0.9)) / _ULPS


def expected(loss: Floats, truth: Floats) -> Floats:
    """The matrix product loss @ truth with 0 * inf = 0; NaN where both infinities can happen."""
    value = np.where(np.isfinite(loss), loss, 0.0) @ truth
    possible = (truth > 0).astype(float)
    for infinity in (np.inf, -np.inf):
        reached = (loss == infinity).astype(float) @ possible > 0
        value = np.where(reached, value + infinity, value)
    return np.asarray(value)


def expected_gain(other: Floats, honest: Floats, truth: Floats) -> tuple[Floats, Floats]:
    """The expected gain of other losses over honest ones, row by row, and the size of both.

    Differences are computed per outcome, so that common terms cancel.
    """
    possible = truth > 0
    a, b = np.where(possible, other, 0.0), np.where(possible, honest, 0.0)
    size = np.maximum(*(magnitude((truth * x).sum(axis=-1)) for x in (a, b)))
    return np.asarray((truth * (b - a)).sum(axis=-1)), size


def doubts(size: Floats, scale: Floats, share: Floats | float = 1.0) -> Floats:
    """The threshold of a gain; `share` is the probability of the outcomes whose losses do not cancel."""
    return np.asarray(_MARGIN * size + _ULPS * scale * share)


def ties(gain: Floats, scale: Floats, p: Floats, a: Ints, b: Ints) -> Bools:
    """Whether a gain is zero up to rounding although rows a and b of the forecasts are apart."""
    same = np.asarray(np.abs(gain) <= _ROUNDING * scale)
    same[same] = apart(p[a[same]], p[b[same]])
    return same


def below(a: Floats, b: Floats, scale: Floats, doubt: float = _DOUBT) -> Bools:
    """Whether a is smaller than b beyond rounding."""
    return np.asarray(a < b - (_MARGIN * np.maximum(magnitude(a), magnitude(b)) + doubt * scale))


def equal(a: Floats, b: Floats, scale: Floats) -> Bools:
    """Whether a and b are the same up to rounding, or the same infinity."""
    return np.asarray((a == b) | (np.abs(a - b) <= _ROUNDING * scale))


def differ(a: Floats, b: Floats, scale: Floats) -> Bools:
    """Whether a and b are different beyond rounding."""
    return below(a, b, scale) | below(b, a, scale)


def apart(p: Floats, q: Floats) -> Bools:
    """Whether forecasts are far enough apart for equal losses to mean something."""
    return np.asarray(np.abs(p - q).sum(axis=-1) >= _APART)


def plateaus(loss: Floats) -> Bools:
    """Whether losses stop changing along the first axis, right after a large change: (R - 2, ...).

    Steps this small may vanish in rounding where the loss is smooth, but not right after a large one.
    """
    step = np.abs(np.diff(loss, axis=0))
    return np.asarray((step[1:] == 0) & (step[:-1] > 1e-6 * magnitude(loss).max(axis=0)))


def away(y: Any, i: Ints, j: Ints) -> Bools:
    """Whether class j is farther from y than class i, on the same side (or i is y)."""
    return np.asarray(((y <= i) & (i < j)) | ((j < i) & (i <= y)))


def by_mode(p: Any, loss: Floats) -> tuple[Bools, Floats, Floats]:
    """Whether each mode is unique, the loss if it happens, and the losses if it does not (else inf)."""
    mode = p.argmax(axis=1)[:, None]
    unique = np.count_nonzero(p == p.max(axis=1, keepdims=True), axis=1) == 1
    wrong = np.where(np.arange(p.shape[1]) == mode, np.inf, loss)
    return np.asarray(unique), np.take_along_axis(loss, mode, axis=1)[:, 0], wrong


# ---- between the exact forecasts -------------------------------------------------------------

# A hunt lets the optimiser look for a counterexample and gives what it found at growing denominators.
Hunt = Callable[[ForecastPanel, np.random.Generator], Iterator[Probes]]


def hunt_dishonest(panel: ForecastPanel, rng: np.random.Generator, near: Floats) -> Iterator[Probes]:
    """A forecast and a truth that it beats; the search starts from the pairs in `near` (M, 2, K)."""
    k, size = panel.n_classes, 80

    def read(x: Floats) -> tuple[Floats, Floats]:
        # A truth and a forecast in any direction from it, as near as 10^-4 or as far as there is room.
        q, reach = to_simplex(x[:, :k]), 10 ** (-4 * np.clip(x[:, -1:], 0, 1))
        return to_simplex(q + reach * (x[:, k:-1] - x[:, k:-1].mean(axis=1, keepdims=True))), q

    def excess(x: Floats) -> Floats:
        p, q = read(x)
        loss = panel.losses(np.concatenate([p, q])).reshape(2, len(x), 1, k)
        other, honest = expected(loss, q[:, :, None])[:, :, 0, 0]
        distance = np.abs(p - q).sum(axis=1)
        # The excess of an honest rule grows with the square, so this does not vanish near the truth.
        return np.where(distance < 1e-4, np.inf, (other - honest) / distance**2)

    start = np.concatenate([rng.dirichlet(np.ones(k), size), rng.random((size, k + 1))], axis=1)
    for row, (truth, other) in zip(start, near, strict=False):
        reach = np.abs(other - truth).max()
        row[:] = [*truth, *(0.5 + (other - truth) / (2 * reach)), -np.log10(2 * reach) / 4]
    (p,), (q,) = read(minimise(excess, start, 40, rng)[None, :])
    for total in DENOMINATORS:
        yield Probes.of([to_counts(p, total), to_counts(q, total)])


def hunt_moves(panel: ForecastPanel, rng: np.random.Generator) -> Iterator[Probes]:
    """A forecast that loses nothing when mass is moved away from the outcome."""
    k, size = panel.n_classes, 80
    pairs = np.argwhere(~np.eye(k, dtype=bool))

    def read(x: Floats) -> tuple[Floats, Ints, Floats]:
        # A forecast, one of the moves, and the mass to move: never so little that rounding hides it.
        which = np.clip(x[:, k] * len(pairs), 0, len(pairs) - 1).astype(int)
        return to_simplex(x[:, :k]), pairs[which], np.maximum(x[:, k + 1], _LEAST_MOVE)

    def rise(x: Floats) -> Floats:
        before, move, mass = read(x)
        (i, j), rows, after = move.T, np.arange(len(x)), before.copy()
        after[rows, i] -= mass
        after[rows, j] += mass
        enough = after[rows, i] >= 0
        after[~enough] = before[~enough]
        loss = panel.losses(np.concatenate([before, after])).reshape(2, len(x), k)
        change = (loss[1] - loss[0]) / mass[:, None]
        counts = enough[:, None] & away(np.arange(k), i[:, None], j[:, None]) & ~np.isnan(change)
        return np.asarray(np.where(counts, change, np.inf).min(axis=1))

    start = np.concatenate([rng.dirichlet(np.ones(k), size), rng.random((size, 2))], axis=1)
    (p,), ((i, j),), (mass,) = read(minimise(rise, start, 30, rng)[None, :])
    for total in DENOMINATORS:
        before = to_counts(p, total)
        after, amount = before.copy(), max(1, round(mass * total))
        after[i] -= amount
        after[j] += amount
        if after[i] >= 0:
            yield Probes.of([before, after], (int(i), int(j)))


def hunt_modes(panel: ForecastPanel, rng: np.random.Generator) -> Iterator[Probes]:
    """The worst forecast with the right mode and the best with a wrong one, beside the best known."""

    def worst_correct(x: Floats) -> Floats:
        p = to_simplex(x)
        return -by_mode(p, panel.losses(p))[1]

    def best_wrong(x: Floats) -> Floats:
        p = to_simplex(x)
        return np.asarray(by_mode(p, panel.losses(p))[2].min(axis=1))

    unique, correct, wrong = by_mode(panel.probes.counts, panel.loss)
    rows, optima, known = np.flatnonzero(unique), [], []
    for objective, value in ((worst_correct, -correct), (best_wrong, wrong.min(axis=1))):
        best = rows[np.argsort(value[rows], kind="stable")[:30]]
        known.append([int(n) for n in panel.probes.counts[best[0]]])
        start = np.concatenate([panel.p[best], rng.dirichlet(np.ones(panel.n_classes), 30)])
        optima.append(to_simplex(minimise(objective, start, 20, rng)[None, :])[0])
    for total in DENOMINATORS:
        yield Probes.of([*(to_counts(p, total) for p in optima), *known])
