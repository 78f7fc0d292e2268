"""Means over rows with their covariances, from sums over rows and groups that merge.

What is independent is a unit: a row, or all rows of a group. A unit has a weight u and sums s of several
columns. The mean of a column is m = sum(s) / sum(u), and its sandwich variance the sum of the squares of
(s - m u) / U over 1 - u / U, with U = sum(u). Sums over groups give it in one pass. Of rows with equal
weights the sums of s, u s and s s' do. Rows with other weights are read once more, when U and m are known.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from verax.analyses.parts import with_fault_recipes
from verax.analyses.units import CountedUnits, sums_at
from verax.common.packing import UnreadableError
from verax.common.specs import Number, Whole
from verax.common.stored import only_weights
from verax.common.summaries import Summary, merges
from verax.engines.clusters import ByLabel, GroupLabels
from verax.engines.sums import Sum, Sums
from verax.errors import InputError
from verax.inference.estimated import MeanEstimate, ShareEstimate, mean_over_groups, rows_without_errors
from verax.inference.intervals import FewGroups
from verax.inputs.arrays import Floats
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.handles import Handle, Part, Recipe, Summaries
from verax.inputs.memory import LEAST_WEIGHT, MOST_WEIGHT

# Shares of the weight that differ from one by less are all of it.
_ROUNDING = 1e-15
# How many numbers are kept of rows in memory between two passes.
_KEPT = 2**24


@dataclass(frozen=True)
class UnitColumns:
    """The units of some rows before groups are looked at.

    Attributes
    ----------
    weight : array of shape (N,)
        The weight u of each unit.
    sums : array of shape (B, C, N)
        The sums s, in B blocks of C columns: covariances are those of the columns of a block.
    groups : Groups or None
        The group of each unit.
    copies : array of shape (N,) or None
        How many units are alike, of which the weight and the sums are those of all together; None for one.
        Groups do not need it.
    """

    weight: Floats
    sums: Floats
    groups: Groups | None
    copies: Floats | None = None

    def finite(self) -> tuple[Floats, Floats]:
        """The sums with zeros in place of infinite ones, and the (B, C) weights of units that have these."""
        if np.isfinite(self.sums.sum()):
            return self.sums, np.zeros(self.sums.shape[:2])
        infinite = ~np.isfinite(self.sums)
        return np.where(infinite, 0.0, self.sums), np.einsum("bcn,n->bc", infinite, self.weight)

    def by(self, labels: Groups) -> Iterator[tuple[Any, UnitColumns]]:
        """The units of each label that occurs."""
        order = np.argsort(labels.codes, kind="stable")
        counts = np.bincount(labels.codes, minlength=len(labels.labels))
        for label, rows in zip(labels.labels.tolist(), np.split(order, np.cumsum(counts)[:-1]), strict=True):
            if len(rows):
                groups = None if self.groups is None else self.groups.at(rows)
                copies = None if self.copies is None else self.copies[rows]
                yield label, UnitColumns(self.weight[rows], self.sums.take(rows, axis=2), groups, copies)

    def by_group(self) -> tuple[Any, Floats]:
        """The names of the groups, and of each its weight and its sums."""
        assert self.groups is not None
        codes, labels = self.groups.codes, self.groups.labels
        columns = [self.weight, *(column for block in self.finite()[0] for column in block)]
        return labels, np.stack([sums_at(codes, column, len(labels)) for column in columns], axis=1)


class UnitSums(Summary, kind="sums over units"):
    """Sums over units.

    Attributes
    ----------
    n : int
        The number of units that have weight, before groups are looked at.
    weight : Sum
        (2,) the sums of u and u*u.
    least, most : float
        The extremes of the weights that are not zero.
    first, cross, infinite : Sum
        (B, C) the sums of s and u*s, and of the u of units whose s is infinite.
    second : Sum
        (B, C, C) the sums of the products of s.
    labels, groups : arrays or None
        The groups, and (G, 1 + B*C) the sums of u and s in each of them.
    """

    n: int = merges(Whole())
    weight: Sum = merges(Sums(2, least=0))
    least: float = merges(Number("least", least=0))
    most: float = merges(Number("most", least=0))
    first: Sum = merges(Sums("blocks", "columns"))
    cross: Sum = merges(Sums("blocks", "columns"))
    infinite: Sum = merges(Sums("blocks", "columns", least=0))
    second: Sum = merges(Sums("blocks", "columns", "columns"))
    labels: Any = merges(GroupLabels(), default=None)
    groups: Floats | None = merges(ByLabel("1+blocks*columns"), default=None)

    def _check(self) -> None:
        only_weights(self.weight.high[:1])
        if (self.weight.high[0] > 0) != (self.weight.high[1] > 0) or (self.n > 0) != (
            self.weight.high[0] > 0
        ):
            raise UnreadableError("does not belong to the number of units", "weight")
        if self.groups is not None:
            only_weights(self.groups[:, 0])

    @classmethod
    def of(cls, columns: UnitColumns) -> UnitSums:
        """Sum up some units."""
        u = columns.weight
        sums, infinite = columns.finite()
        labels = groups = None
        if columns.groups is not None:
            labels, groups = columns.by_group()
        # Of one unit, of which there may be copies.
        single, single_sums = (
            (u, sums) if columns.copies is None else (u / columns.copies, sums / columns.copies)
        )
        some = single[u > 0]
        return cls(
            len(some) if columns.copies is None else round(float(columns.copies[u > 0].sum())),
            Sum.of([u.sum(), (single * u).sum()]),
            float(some.min(initial=np.inf)),
            float(some.max(initial=0.0)),
            Sum.of(sums.sum(axis=2)),
            Sum.of(np.einsum("bcn,n->bc", sums, single)),
            Sum.of(infinite),
            Sum.of(np.einsum("bcn,bdn->bcd", single_sums, sums)),
            labels,
            groups,
        )

    def some(self, columns: Sequence[int]) -> UnitSums:
        """The sums of some of the columns."""
        at = list(columns)
        blocks, n = self.first.high.shape
        groups = self.groups
        if groups is not None:
            groups = groups[:, [0, *(1 + b * n + c for b in range(blocks) for c in at)]]
        first, cross, infinite = (
            Sum(sums.high[:, at], sums.low[:, at]) for sums in (self.first, self.cross, self.infinite)
        )
        second = Sum(self.second.high[:, at][:, :, at], self.second.low[:, at][:, :, at])
        return replace(self, first=first, cross=cross, infinite=infinite, second=second, groups=groups)

    # ---- what they say ---------------------------------------------------------------------

    @property
    def total(self) -> float:
        """The weight of all units."""
        return float(self.weight.high[0])

    @property
    def mean(self) -> Floats:
        """(B, C) means; infinite where a unit is."""
        return np.where(self.infinite.high > 0, np.inf, self.first.high / self.total)

    @property
    def even(self) -> bool:
        """Whether all units have the same weight."""
        return self.least == self.most

    @property
    def units(self) -> CountedUnits:
        """The independent units."""
        if self.groups is None:
            return CountedUnits.of(self.n, self.total, float(self.weight.high[1]), in_groups=False)
        weight = self.groups[:, 0]
        n, squares = int(np.count_nonzero(weight)), float(weight @ weight)
        return CountedUnits.of(n, self.total, squares, in_groups=True)

    def share(self, block: int, column: int = 0, few: FewGroups = None) -> ShareEstimate:
        """The mean of a column of zeros and ones, as a share of rows."""
        share = min(max(float(self.first.high[block, column]) / self.total, 0.0), 1.0)
        of_rows = ShareEstimate.of_rows(share, self._kish, self._square(block, column), self.n)
        if self.groups is None:
            return of_rows
        kinds = [self._by_group(block, column)]
        return ShareEstimate.over_groups(kinds, float(of_rows.shares.n), self.units.n, few)

    def mean_of(self, block: int, bounds: tuple[float, float], column: int = 0) -> MeanEstimate:
        """The mean of a column of numbers within bounds."""
        mean, units, n = float(self.mean[block, column]), self.units, self._kish
        variance, freedom = float(self.covariance[block, column, column]), units.freedom
        if self.groups is None:
            return MeanEstimate(mean, variance, freedom, bounds, n, "", units.caution)
        sums, weight = self._by_group(block, column)
        of_rows = self._square(block, column) / (1 - 1 / n)
        variance, freedom = mean_over_groups([(sums, weight)], mean, of_rows)
        n = rows_without_errors([weight], n) if mean in bounds else n
        return MeanEstimate(mean, variance, freedom, bounds, n, f" over {units.n:,} groups", units.caution)

    @property
    def _kish(self) -> float:
        """The effective number of rows."""
        return self.total**2 / float(self.weight.high[1])

    def _square(self, block: int, column: int) -> float:
        """The sum over rows of squares of weights times deviations, over the squared weight of all."""
        mean, square = float(self.first.high[block, column]) / self.total, float(self.weight.high[1])
        cross, second = self.cross.high[block, column], self.second.high[block, column, column]
        return max(float(second - 2 * mean * cross + mean**2 * square), 0.0) / self.total**2

    def _by_group(self, block: int, column: int) -> tuple[Floats, Floats]:
        """The sums of a column over groups, and the weights of these."""
        assert self.groups is not None
        return self.groups[:, 1 + block * self.first.high.shape[1] + column], self.groups[:, 0]

    @property
    def covariance(self) -> Floats:
        """(B, C, C) covariances of the means. Rows of unequal weights all have the mean leverage here."""
        finite = self.first.high / self.total
        with np.errstate(invalid="ignore", divide="ignore"):
            if self.groups is not None:
                weight, sums = self.groups[:, 0], self.groups[:, 1:].reshape(-1, *finite.shape)
                around = _around(weight, np.moveaxis(sums, 0, -1), finite, self.total)
            else:
                across = finite[:, :, None] * self.cross.high[:, None, :]
                square = float(self.weight.high[1])
                around = self.second.high - across - np.swapaxes(across, 1, 2)
                around += square * finite[:, :, None] * finite[:, None, :]
                around /= self.total**2 * (1 - square / self.total**2)
        return self.known(around)

    def known(self, covariance: Floats) -> Floats:
        """Covariances with NaN where a mean is infinite."""
        lost = self.infinite.high > 0
        covariances = np.where(lost[:, :, None] | lost[:, None, :], np.nan, covariance)
        # A difference of moments that should be zero may be less than that by rounding.
        variances = np.einsum("bcc->bc", covariances)
        np.maximum(variances, 0.0, out=variances)
        return covariances


def _around(weight: Floats, sums: Floats, mean: Floats, total: float, copies: Floats | None = None) -> Floats:
    """(B, C, C) covariances of means by units with these weights and sums, (B, C, N), or copies of units."""
    deviation = (sums - mean[:, :, None] * weight) / total
    single = weight if copies is None else weight / copies
    rest = 1 - single / total
    # A single unit says nothing about its own variance.
    rest = np.where(rest > _ROUNDING, rest, np.nan)
    share = deviation / rest if copies is None else deviation / (rest * copies)
    return np.asarray(np.einsum("bcn,bdn->bcd", share, deviation))


class Spread(Summary, kind="spread of units"):
    """(B, C, C) covariances of means around values that are known: those of parts add up."""

    sums: Sum = merges(Sums("blocks", "columns", "columns"))


class PieceRecipe(Recipe[UnitSums]):
    """Sums of columns over units that are read some rows after the other."""

    @abstractmethod
    def pieces(self, part: Part) -> Iterator[UnitColumns]:
        """The columns of the rows of a part, some rows after the other."""

    def take(self, part: Part) -> UnitSums:
        """Sum up the rows of one part."""
        sums = []
        for columns in self.pieces(part):
            check_one_way(columns.groups, "this analysis")
            sums.append(UnitSums.of(columns))
        return reduce(UnitSums.merge, sums)


class UnitRecipe(PieceRecipe):
    """Sums of columns over units, all rows of a part at once."""

    @abstractmethod
    def columns(self, part: Part) -> UnitColumns:
        """The columns of all rows of a part."""

    def pieces(self, part: Part) -> Iterator[UnitColumns]:
        """The columns of all rows; of rows in memory they are kept for a second pass unless they are many."""
        last: dict[str, Any] = part.once("last columns", dict)
        # By the recipe itself: another one may get the same id once this one is gone.
        if last.get("recipe") is self:
            yield last["columns"]
            return
        columns = self.columns(part)
        if part.whole and columns.sums.size <= _KEPT:
            last |= {"recipe": self, "columns": columns}
        yield columns


@dataclass(frozen=True)
class SpreadRecipe(Recipe[Spread]):
    """The covariances of means that are known."""

    recipe: PieceRecipe
    mean: Floats
    total: float

    @property
    def follows(self) -> bool:
        return True

    def take(self, part: Part) -> Spread:
        """Sum up the rows of one part."""
        squares = [
            Sum.of(_around(columns.weight, columns.finite()[0], self.mean, self.total, columns.copies))
            for columns in self.recipe.pieces(part)
        ]
        return Spread(reduce(add, squares))


@dataclass(frozen=True)
class Means:
    """Means of columns with their covariances.

    Attributes
    ----------
    mean, covariance : arrays of shape (B, C) and (B, C, C)
        The means and their covariances.
    units : CountedUnits
        The independent units.
    sums : UnitSums
        The sums that they were computed from.
    summaries : Summaries
        All summaries of the first pass.
    """

    mean: Floats
    covariance: Floats
    units: CountedUnits
    sums: UnitSums
    summaries: Summaries


def means_of(handle: Handle, recipe: PieceRecipe, also: Mapping[str, Recipe[Any]] | None = None) -> Means:
    """The means of columns over all rows of a handle; a second pass only where rows have unequal weights.

    `also` are recipes for the first pass.
    """
    summaries = handle.summarise(with_fault_recipes(handle, {**(also or {}), "units": recipe}))
    sums: UnitSums = summaries["units"]
    check_weight(sums.total)
    covariance = sums.covariance
    if sums.groups is None and not sums.even and handle.has_rows:
        spread = SpreadRecipe(recipe, sums.first.high / sums.total, sums.total)
        covariance = sums.known(handle.summarise({"spread": spread})["spread"].sums.high)
    return Means(sums.mean, covariance, sums.units, sums, summaries)


def check_weight(total: float) -> None:
    """Refuse rows that have no weight at all, and parts with weights whose squares are no numbers."""
    if not total > 0:
        raise InputError("must not all be zero", argument="weights")
    if not LEAST_WEIGHT <= total <= MOST_WEIGHT:
        raise InputError(
            f"must sum to a number between {LEAST_WEIGHT:g} and {MOST_WEIGHT:g}",
            argument="weights",
            found=f"the sum is {total:.3g}; only ratios matter, so they can be multiplied by a number",
        )
