"""Moments of columns of several models and of their differences, from pieces of rows that a cache holds.

What rows are made of need not be in memory: a piece of all models is written, added up, and overwritten by
the next. A variance of a difference comes from the products of deviations, in a fraction of the time of
subtracting all pairs row by row. Where two models are so alike that this would cancel, they are subtracted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from operator import add

import numpy as np

from verax._settings import settings
from verax.engines.sums import Moments
from verax.inputs.arrays import Bools, Floats, Ints
from verax.kernels.pairing import FOUR, STRIP
from verax.kernels.threads import in_order, n_cores

# Approximate number of values in a piece, which fits the caches of a core, and its minimum number of rows.
_PIECE, _FEWEST = 2**18, 256
# Up to this many models all pairs are subtracted: products would take as long.
_SUBTRACTED = 5
# Squared distance of a shift from the mean as a share of the mean square: half costs one binary digit.
_SPREAD = 0.5
# A difference whose variance is a smaller share of those of its models is subtracted: seven binary digits.
_ALIKE = 2.0**-7
# Most reads of a chunk: losses may be infinite, the shift far from the mean, and models alike.
_ATTEMPTS = 4
_NONE = np.zeros(0)


@dataclass(frozen=True)
class ColumnBlock:
    """Columns that have a number for each row and model.

    Attributes
    ----------
    n_columns, n_models : int
        How many there are.
    pairs : bool
        Whether differences are summed as well.
    """

    n_columns: int
    n_models: int
    pairs: bool

    @property
    def size(self) -> int:
        """How many numbers a row has."""
        return self.n_columns * self.n_models

    @property
    def n_lines(self) -> int:
        """The number of sums of a column: a first one of zeros, which knows the weight, models, pairs."""
        return 1 + self.n_models + len(self.ends[0])

    @property
    def ends(self) -> tuple[Ints, Ints]:
        """The models of each pair, in order."""
        pairs = all_pairs(self.n_models) if self.pairs else []
        first, second = np.array(pairs, np.int64).reshape(-1, 2).T
        return first, second


# Writes the rows from one number to another to a flat array: by block, by column, by model, by row.
Fill = Callable[[int, int, Floats], None]


def moments_of_pieces(
    blocks: Sequence[ColumnBlock], n_rows: int, weights: Floats | None, fill: Callable[[], Fill]
) -> list[list[list[Moments]]]:
    """The moments of each column of each block, with weights also those with the weights squared.

    What is not finite counts as an infinite loss. `fill` makes what one thread writes pieces by. Sums do not
    depend on the number of threads.
    """
    plans = [_Plan(block) for block in blocks]
    given = [None] if weights is None else [weights, weights * weights]
    size = settings.compared_at_once
    chunks = [(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
    first_reader = _Reader(blocks, given, fill())
    # The first chunk tells which models are alike.
    of_chunks = [first_reader.moments(chunks[0], plans)]
    plans = first_reader.plans
    n_threads = min(n_cores(), len(chunks) - 1)
    if n_threads > 1:
        free = [first_reader, *(_Reader(blocks, given, fill()) for _ in range(n_threads - 1))]

        def work(chunk: tuple[int, int]) -> list[Moments]:
            reader = free.pop()
            try:
                return reader.moments(chunk, plans)
            finally:
                free.append(reader)

        of_chunks += in_order(work, chunks[1:], n_threads)
    else:
        of_chunks += [first_reader.moments(chunk, plans) for chunk in chunks[1:]]
    totals = [reduce(add, parts) for parts in zip(*of_chunks, strict=True)]
    return _by_column(blocks, totals)


def _by_column(blocks: Sequence[ColumnBlock], totals: Sequence[Moments]) -> list[list[list[Moments]]]:
    """Moments of all lines of all columns, taken apart."""
    by_block, at = [], 0
    for block in blocks:
        columns = []
        for _ in range(block.n_columns):
            lines = slice(at, at + block.n_lines)
            columns.append([moments.at(lines) for moments in totals])
            at += block.n_lines
        by_block.append(columns)
    return by_block


class _Plan:
    """Which pairs of a block are subtracted; the rest is summed by products."""

    def __init__(self, block: ColumnBlock, alike: Bools | None = None) -> None:
        self.block = block
        self.ends: tuple[Ints, Ints] = block.ends
        few = block.n_models <= _SUBTRACTED
        alike = np.full((block.n_columns, len(self.ends[0])), few) if alike is None else alike
        self.alike: Bools = alike
        self.products: bool = not alike.all()
        column, pair = np.nonzero(alike)
        self.pairs: Ints = np.stack([column, self.ends[0][pair], self.ends[1][pair]], axis=1)

    def with_alike(self, more: Bools) -> _Plan:
        return _Plan(self.block, self.alike | more)


class _Sums:
    """The sums of the columns of a block over the rows of a chunk, with one set of weights."""

    def __init__(self, plan: _Plan, near: Floats, work: Floats) -> None:
        block = plan.block
        self._plan, self._near, self._work = plan, near, work
        # Sums of deviations and of their squares, of each model and of its distance from the first one.
        self._alone: Floats = np.zeros((2, *near.shape))
        self._apart: Floats = np.zeros((2, *near.shape))
        padded = work.shape[1] if plan.products else 0
        self._cross: Floats = np.zeros((block.n_columns, padded, padded))
        self._pairs: Floats = np.zeros((len(plan.pairs), 2))
        self._weight: Floats = np.zeros(block.n_columns)
        # The rows of each column that are not finite, with their weights.
        self._rest: list[list[tuple[Floats, Floats | None]]] = [[] for _ in range(block.n_columns)]

    def add(self, values: Floats, weights: Floats | None) -> None:
        """Take in rows by column, model and row."""
        self._add(slice(None), values, weights, self._plan.pairs, self._pairs)

    def add_finite(self, values: Floats, weights: Floats | None) -> None:
        """Take in rows of which some are not finite."""
        for c, column in enumerate(values):
            finite = np.isfinite(column).all(axis=0)
            if not finite.all():
                lost = ~finite
                self._rest[c].append((column[:, lost], None if weights is None else weights[lost]))
            kept_weights = None if weights is None else weights[finite]
            at = self._plan.pairs[:, 0] == c
            pairs, sums = self._plan.pairs[at] - [c, 0, 0], self._pairs[at]
            self._add(
                slice(c, c + 1), np.ascontiguousarray(column[None, :, finite]), kept_weights, pairs, sums
            )
            self._pairs[at] = sums

    def _add(self, at: slice, values: Floats, weights: Floats | None, pairs: Ints, sums: Floats) -> None:
        from verax.kernels.pairing import add_differences, add_products

        n, near, w = values.shape[2], self._near[at], _NONE if weights is None else weights
        self._weight[at] += n if weights is None else weights.sum()
        # Of some columns copies, because kernels are compiled for arrays in one piece.
        alone, apart = np.ascontiguousarray(self._alone[:, at]), np.ascontiguousarray(self._apart[:, at])
        add_products(values, n, near, w, self._work, alone, apart, self._cross[at])
        self._alone[:, at], self._apart[:, at] = alone, apart
        if len(pairs):
            add_differences(values, n, near, w, pairs, sums)

    @property
    def finite(self) -> bool:
        """Whether all sums are finite; those of pairs are where those of their models are."""
        return bool(np.isfinite(self._alone[1]).all())

    @property
    def gap(self) -> Floats | None:
        """(C, M) distances of the means from the shifts of deviations; None if these are small enough."""
        weight = self._weight[:, None]
        of_pairs = self._weight[self._plan.pairs[:, 0], None]
        with np.errstate(divide="ignore"):
            gap = self._alone[0] / weight
            sums = [self._alone / weight, self._apart / weight, (self._pairs / of_pairs).T]
            far = any((first * first > _SPREAD * second).any() for first, second in sums)
        return np.where(np.isfinite(gap), gap, 0.0) if far else None

    @property
    def cancelling(self) -> Bools:
        """(C, P) whether a pair is so alike that products lose digits."""
        plan, m = self._plan, self._near.shape[1]
        if not plan.products:
            return np.zeros_like(plan.alike)
        a, b = plan.ends
        m2 = self._of_finite().m2.reshape(len(self._near), -1)[:, 1 + m :]
        # The pairs of the first model come first: they are distances from it.
        spread = np.concatenate([np.zeros((len(m2), 1)), m2[:, : m - 1]], axis=1)
        return np.asarray((m2 < _ALIKE * (spread[:, a] + spread[:, b])) & (a > 0) & ~plan.alike)

    def moments(self) -> Moments:
        """The moments of all lines of all columns."""
        moments = self._of_finite()
        return moments + self._of_rest() if any(self._rest) else moments

    def _of_finite(self) -> Moments:
        plan, near = self._plan, self._near
        a, b = plan.ends
        first, second = self._apart
        one, two = first[:, a] - first[:, b], np.zeros((len(near), len(a)))
        if plan.products:
            two = second[:, a] + second[:, b] - 2 * self._cross[:, a, b]
        one[plan.alike], two[plan.alike] = self._pairs.T
        zero = np.zeros((len(near), 1))
        first, second, shift = (
            np.concatenate([zero, *parts], axis=1).reshape(-1)
            for parts in ((self._alone[0], one), (self._alone[1], two), (near, near[:, a] - near[:, b]))
        )
        return Moments.from_sums(self._weight.repeat(plan.block.n_lines), first, second, shift=shift)

    def _of_rest(self) -> Moments:
        """The moments of the rows that are not finite."""
        columns = []
        for rows in self._rest:
            if not rows:
                columns.append(Moments.zeros(self._plan.block.n_lines))
                continue
            values = np.concatenate([losses for losses, _ in rows], axis=1)
            weights = [w for _, w in rows if w is not None]
            lines = lines_of(values.T, pairs=self._plan.block.pairs)
            columns.append(Moments.of(lines, np.concatenate(weights) if weights else None, np))
        return reduce(Moments.beside, columns)


class _Reader:
    """Reads chunks for one thread, into arrays that are used again and again."""

    def __init__(self, blocks: Sequence[ColumnBlock], weights: Sequence[Floats | None], fill: Fill) -> None:
        numbers = sum(block.size for block in blocks)
        self._rows = max(_FEWEST, _PIECE // numbers // STRIP * STRIP)
        self._weights, self._fill = weights, fill
        self._buffer: Floats = np.empty(numbers * self._rows)
        self._work = [np.zeros((2, -(-block.n_models // FOUR) * FOUR, STRIP)) for block in blocks]
        self.plans: list[_Plan] = []

    def moments(self, chunk: tuple[int, int], plans: Sequence[_Plan]) -> list[Moments]:
        """The moments of all lines of all blocks over a chunk, for each set of weights."""
        # What a thread ignores is its own matter.
        with np.errstate(over="ignore", invalid="ignore"):
            return self._moments(chunk, plans)

    def _moments(self, chunk: tuple[int, int], plans: Sequence[_Plan]) -> list[Moments]:
        self.plans = list(plans)
        near: list[Floats] | None = None
        finite = True
        for _ in range(_ATTEMPTS):
            near, sums = self._sums(chunk, near, finite)
            if not all(block_sums.finite for of_blocks in sums for block_sums in of_blocks):
                finite = False
            elif not self._improve(near, sums):
                break
        return [
            reduce(Moments.beside, (block_sums.moments() for block_sums in of_blocks)) for of_blocks in sums
        ]

    def _improve(self, near: list[Floats], sums: Sequence[Sequence[_Sums]]) -> bool:
        """Choose better means and more pairs to subtract; False where these are good."""
        changed = False
        for i, plan in enumerate(self.plans):
            gap = sums[0][i].gap
            alike = np.logical_or.reduce([of_blocks[i].cancelling for of_blocks in sums])
            if gap is not None:
                near[i] = near[i] + gap
            if alike.any():
                self.plans[i] = plan.with_alike(alike)
            changed |= gap is not None or bool(alike.any())
        return changed

    def _sums(
        self, chunk: tuple[int, int], near: list[Floats] | None, finite: bool
    ) -> tuple[list[Floats], list[list[_Sums]]]:
        """Read a chunk: the means that deviations are taken from, and the sums by weights and block."""
        sums: list[list[_Sums]] = []
        for start in range(chunk[0], chunk[1], self._rows):
            stop = min(start + self._rows, chunk[1])
            flat = self._buffer[: len(self._buffer) // self._rows * (stop - start)]
            self._fill(start, stop, flat)
            pieces = _parted(flat, [plan.block for plan in self.plans], stop - start)
            near = [_means(piece) for piece in pieces] if near is None else near
            if not sums:
                made = list(zip(self.plans, near, self._work, strict=True))
                sums = [[_Sums(*block_sums) for block_sums in made] for _ in self._weights]
            for of_blocks, weights in zip(sums, self._weights, strict=True):
                w = None if weights is None else weights[start:stop]
                for block_sums, piece in zip(of_blocks, pieces, strict=True):
                    (block_sums.add if finite else block_sums.add_finite)(piece, w)
        assert near is not None
        return near, sums


def _parted(flat: Floats, blocks: Sequence[ColumnBlock], n: int) -> list[Floats]:
    """The numbers of each block by column, model and row."""
    pieces, at = [], 0
    for block in blocks:
        pieces.append(flat[at : at + block.size * n].reshape(block.n_columns, block.n_models, n))
        at += block.size * n
    return pieces


def _means(piece: Floats) -> Floats:
    """(C, M) means of the rows that are finite for all models, so that means of pairs are those of models."""
    mean = piece.mean(axis=2)
    if np.isfinite(mean).all():
        return np.asarray(mean)
    finite = np.isfinite(piece).all(axis=1, keepdims=True)
    return np.asarray(np.where(finite, piece, 0.0).sum(axis=2) / np.maximum(finite.sum(axis=2), 1))


# ---- by array calls ----------------------------------------------------------------------------


def all_pairs(n_models: int) -> list[tuple[int, int]]:
    """The pairs of models, in the order of the columns of differences."""
    return list(combinations(range(n_models), 2))


def columns_of(losses: Floats, *, pairs: bool = True) -> list[Floats]:
    """The columns of (n, M) losses and the difference of each pair; NaN where both are infinite.

    Each is one piece of memory, which is read several times faster.
    """
    models = [np.ascontiguousarray(column) for column in losses.T]
    with np.errstate(invalid="ignore"):
        return models + [models[a] - models[b] for a, b in (all_pairs(len(models)) if pairs else ())]


def lines_of(losses: Floats, *, pairs: bool) -> list[Floats]:
    """A column of zeros, then those of (n, M) losses and their differences, infinite where not finite."""
    columns = columns_of(losses, pairs=pairs)
    # A sum takes less time than a look at every number.
    with np.errstate(invalid="ignore", over="ignore"):
        finite = [np.isfinite(column.sum()) for column in columns]
    return [
        np.zeros(len(losses)),
        *(
            column if known else np.where(np.isfinite(column), column, np.inf)
            for column, known in zip(columns, finite, strict=True)
        ),
    ]
