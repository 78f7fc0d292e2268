"""Rows that methods are fitted to, whose outcomes are known, and the configuration of a method."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from verax._settings import settings
from verax.inference.products import product, sum_of_products
from verax.inputs.arrays import Floats, Ints
from verax.scores.base import Rule
from verax.scores.gradients.logits import losses_with_gradient

# Most rows that forms with slopes and offsets are fitted to, drawn at random: their error is then far
# below anything that could be measured.
MOST_ROWS = 100_000
# A curvature that parts of the rows share is made of more rows, of up to this number of probabilities.
_SHARED = 2**22
# More rows of two classes are fitted in cells of log odds, this number per unit, without a larger error.
_EXACT_ROWS, _CELLS_PER_UNIT = 2**11, 64
# Numbers that are worked on at a time: a cache holds them with all that is made of them.
_BLOCK, _ROWS = 2**16, 1024
# Smaller probabilities have lost digits, or are zero.
SMALLEST = 1e-300
# Values that saturated probabilities may count as; the last is the precision of a probability near one.
_FLOORS = (1e-64, 1e-32, 1e-16)

T = TypeVar("T")


@dataclass(frozen=True)
class Configuration:
    """A method, and the strength of its penalty where it has one."""

    method: str
    strength: float | None = None


@dataclass(frozen=True)
class FittingRows:
    """Rows to learn from: positions of outcomes, probabilities, weights of mean one.

    Attributes
    ----------
    n_rows : int
        The number of rows, which is also the sum of the weights; cells have several rows.
    part_of : tuple, optional
        The rows that these are some of, and their numbers there.
    floor : float
        The value that smaller probabilities count as; zero where no method has asked yet.
    cache : dict
        Intermediate results that several methods need, made by the first of them.
    """

    y: Ints
    p: Floats
    weights: Floats
    part_of: tuple[FittingRows, Ints] | None = None
    floor: float = 0.0
    cache: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_rows(self) -> int:
        return self.once("n_rows", lambda: round(float(self.weights.sum())))

    @classmethod
    def of(cls, y: Ints, p: Floats, weights: Floats | None) -> FittingRows:
        if weights is None:
            return cls(y, p, relative(None, len(y)))
        kept = weights > 0
        return cls(y[kept], p[kept], relative(weights[kept], int(kept.sum())))

    def taken(self, rows: Ints, weights: Floats | None) -> FittingRows:
        """Some of the rows, which have these weights."""
        if weights is not None:
            rows, weights = rows[weights > 0], weights[weights > 0]
        return FittingRows(self.y[rows], self.p[rows], relative(weights, len(rows)), (self, rows))

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of `make`, which is called once."""
        if key not in self.cache:
            self.cache[key] = make()
        made: T = self.cache[key]
        return made

    def shared(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of `make`, which parts of many rows share because it differs little between them.

        The first part that asks makes it for all parts of the same rows. Of few rows each part makes its own,
        which takes little time.
        """
        if self.part_of is None or len(self.y) <= settings.curvature_rows:
            return make()
        whole = self.part_of[0]
        return whole.once(key, make) if whole.part_of is None else whole.shared(key, make)

    @property
    def n_classes(self) -> int:
        return int(self.p.shape[1])

    def with_floor(self, floor: float) -> FittingRows:
        """The same rows, where smaller probabilities count as `floor`."""
        return replace(self, floor=floor, cache={})

    @property
    def logs(self) -> LogRows:
        """The logarithms of the probabilities."""
        return self.once("logs", lambda: LogRows.of(self))

    def orders(self, of: Callable[[Floats], Floats]) -> Iterator[Ints]:
        """The order of the rows by each column of what `of` makes of their probabilities.

        The whole is sorted once, and its order is that of all parts.
        """
        if self.part_of is None:
            yield from self.once(("orders", of), lambda: _orders(of(self.p)))
            return
        whole, numbers = self.part_of
        places = np.full(len(whole.y), -1)
        places[numbers] = np.arange(len(numbers))
        for order in whole.orders(of):
            order_here = places[order]
            yield order_here[order_here >= 0]

    def to_fit(self, seed: int) -> FittingRows:
        """Rows that slopes and offsets are fitted to: cells of two classes, a sample of very many rows."""
        if self.n_classes == 2 and len(self.y) > _EXACT_ROWS:
            return self.once("cells", self._in_cells)
        return self.some(MOST_ROWS, seed)

    def _in_cells(self) -> FittingRows:
        """Rows of two classes with the same outcome and nearly the same log odds as one, of their mean.

        No cell has log odds of both signs, and the cells of the classes in the other order are the same.
        """
        logs = np.log(np.maximum(self.p, zero_counts_as(self.p)))
        x = logs[:, 1] - logs[:, 0]
        place = np.sign(x) * np.ceil(np.abs(x) * _CELLS_PER_UNIT)
        _, codes = np.unique(2 * place + self.y, return_inverse=True)
        weights: Floats = np.bincount(codes, self.weights).astype(float)
        means = np.bincount(codes, self.weights * x) / weights
        y = np.empty(len(weights), self.y.dtype)
        y[codes] = self.y
        p = 1 / (1 + np.exp(np.stack([means, -means], axis=1)))
        # What zeros count as is not known yet.
        zeros = np.flatnonzero(self.p.min(axis=1) == 0)
        p[codes[zeros]] = self.p[zeros]
        return FittingRows(y, p, weights)

    def some(self, most: int, seed: int) -> FittingRows:
        """A random sample of the rows, if there are more than `most`."""
        if len(self.y) <= most:
            return self

        def sample() -> FittingRows:
            chosen = drawn(len(self.y), most, seed)
            return self.taken(chosen, self.weights[chosen])

        return self.once(("some", most, seed), sample)


@dataclass(frozen=True)
class LogRows:
    """Logarithms of probabilities with outcomes and weights, in blocks that a cache holds.

    Attributes
    ----------
    blocks : list
        (K, n) logarithms, a row for each class, with (n,) outcomes and weights.
    n_rows : int
        The number of rows, which is also the sum of the weights.
    """

    blocks: list[tuple[Floats, Ints, Floats]]
    n_rows: int

    @classmethod
    def of(cls, rows: FittingRows) -> LogRows:
        """The logarithms of the probabilities, zeros as the floor."""
        step, blocks = max(_ROWS, _BLOCK // rows.n_classes), []
        for start in range(0, len(rows.y), step):
            part = slice(start, start + step)
            z = np.log(np.maximum(rows.p[part], rows.floor))
            blocks.append((np.ascontiguousarray(z.T), rows.y[part], rows.weights[part]))
        return cls(blocks, rows.n_rows)

    def transformed(self, function: Callable[[Floats], Floats]) -> LogRows:
        """The results of a function of the logarithms, (K, n), of the same rows."""
        blocks = [(np.ascontiguousarray(function(z)), y, weights) for z, y, weights in self.blocks]
        return LogRows(blocks, self.n_rows)

    def sums(self, rule: Rule, slopes: Floats, offsets: Floats) -> tuple[float, Floats, Floats]:
        """The sum of the losses of slopes and offsets, and its derivatives in both.

        Slopes are one for all classes, one for each, or a matrix.
        """
        total, by_slope, by_offset = 0.0, np.zeros(slopes.shape), np.zeros(len(offsets))
        weighted = any((weights != 1).any() for _, _, weights in self.blocks)
        for z, y, weights in self.blocks:
            moved = product(slopes, z) if slopes.ndim == 2 else np.atleast_1d(slopes)[:, None] * z
            moved += offsets[:, None]
            losses, g = losses_with_gradient(rule, moved, y)
            if weighted:
                g *= weights
            # A product of vectors would wait for the threads of the linear algebra library.
            total += float(np.einsum("n,n->", weights, losses))
            by_offset += g.sum(axis=1)
            if slopes.ndim == 2:
                by_slope += sum_of_products(g, z)
            elif slopes.ndim:
                by_slope += np.einsum("kn,kn->k", g, z)
            else:
                by_slope += np.einsum("kn,kn->", g, z)
        return total, by_slope, by_offset

    def for_curvature(self) -> tuple[Floats, Ints, Floats]:
        """Rows for a curvature that parts of the rows share."""
        return self.some(max(settings.curvature_rows, _SHARED // len(self.blocks[0][0])))

    def some(self, most: int) -> tuple[Floats, Ints, Floats]:
        """About `most` rows from all blocks at equal distances, as one block; or all, if there are fewer."""
        step = -(-sum(len(y) for _, y, _ in self.blocks) // most)
        z, y, weights = zip(*((z[:, ::step], y[::step], w[::step]) for z, y, w in self.blocks), strict=True)
        return np.concatenate(z, axis=1), np.concatenate(y), np.concatenate(weights)


def _orders(columns: Floats) -> Ints:
    return np.ascontiguousarray(np.argsort(columns, axis=0, kind="stable").T)


def relative(weights: Floats | None, n: int) -> Floats:
    """Weights of mean one."""
    if weights is None or not n:
        return np.ones(n)
    w = weights / weights.max()
    return np.asarray(w / w.mean())


def drawn(n: int, most: int, seed: int) -> Ints:
    """The numbers of `most` of n rows, drawn at random, in order."""
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))


def zero_counts_as(p: Floats) -> float:
    """Half the smallest positive probability: what a zero counts as."""
    positive = p[p > 0]
    return float(min(max(positive.min() / 2, SMALLEST), 0.1 / p.shape[1]))


def floors_of(p: Floats) -> list[float]:
    """Values that zeros may count as, and smaller probabilities, the smallest first; the fit chooses.

    Logits that are too large keep their differences in probabilities of 1e-100. Those of a model that assumes
    too much, such as naive Bayes, are noise: one row of 1e-300 would set the temperature of all.
    """
    least = zero_counts_as(p)
    return [least, *(floor for floor in _FLOORS if floor > least)]
