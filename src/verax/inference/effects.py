"""Variances over groups with their degrees of freedom, and what they make of the number of rows.

The variance of a share over groups is a design effect times that of the same number of independent rows. It
is estimated twice: from the mean squares between and within groups (ANOVA), and from the squared deviations
of groups (CR2, Bell and McCaffrey 2002). Where few errors were seen both are drawn towards the effect of an
assumed correlation, by as much as two errors weigh: samples whose rows are all right look regular whatever
the correlation. Degrees of freedom are Satterthwaite's, for the part of the effect that is estimated
between groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verax.inference.shares import CountedShares, between
from verax.inputs.arrays import Floats

# The correlation that is assumed between the errors of a group: this number of rows over the mean size of
# groups, within this range. Repeats of a question resemble each other far more than rows of a site.
_ALIKE, _LEAST_ALIKE = 10.0, 0.2
# How many errors the assumed correlation weighs as much as.
_PRIOR = 2.0
# Degrees of freedom beyond this are those of the normal distribution.
_MANY = 1e9


def cr2(sums: Floats, weight: Floats) -> Floats:
    """Variances of weighted means over groups, (T,), from the (G, T) sums and weights of groups (CR2).

    The squared deviation of each group counts over one minus its share of the weight, which is unbiased
    where rows are independent (Bell and McCaffrey 2002, Survey Methodology 28, 169-181).

    >>> cr2(np.array([[0.0], [1.0], [2.0]]), np.ones((3, 1)))
    array([0.33333333])
    """
    total = weight.sum(axis=0)
    safe = np.where(total > 0, total, 1.0)
    share = weight / safe
    excess, rest = (sums - share * sums.sum(axis=0)) / safe, 1 - share
    # Without a group that has most of the weight, a difference would cancel: the others are added up.
    for heavy, column in np.argwhere(share > 1 / 2):
        others = np.arange(len(share)) != heavy
        excess[heavy, column] = -excess[others, column].sum()
        rest[heavy, column] = share[others, column].sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = np.where(share > 0, excess * excess / rest, 0.0)
    return np.asarray(squares.sum(axis=0))


def satterthwaite(share: Floats, variances: Floats, factors: Floats) -> Floats:
    """Degrees of freedom, (T,), of sums over groups of factors times squared deviations.

    A deviation is the sum of a group minus its share of the sum of all. Sums are independent with these
    variances. All arguments are (G, T).

    >>> satterthwaite(np.full((8, 1), 1 / 8), np.ones((8, 1)), np.ones((8, 1)))
    array([7.])
    """
    total = variances.sum(axis=0)
    moved = -2 * share * variances + share * share * total
    diagonal = variances + moved

    def sums(values: Floats) -> Floats:
        return np.asarray((factors * values).sum(axis=0))

    of_shares, of_both = sums(share * share), sums(share * variances)
    across = 2 * of_shares * sums(variances * variances) + 2 * of_both**2
    across += total**2 * of_shares**2 - 4 * total * of_shares * of_both
    trace = sums(diagonal)
    squares = (factors * factors * (diagonal**2 - moved**2)).sum(axis=0) + across
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(squares > 0, trace**2 / np.where(squares > 0, squares, 1.0), 1.0)


def mean_freedom(weight: Floats) -> Floats:
    """Degrees of freedom of `cr2`, (T,), where rows are independent (Bell and McCaffrey), at least one.

    >>> mean_freedom(np.ones((8, 1))), mean_freedom(np.array([[9.0], [1.0], [1.0]])).round(2)
    (array([7.]), array([1.22]))
    """
    total = weight.sum(axis=0)
    share = weight / np.where(total > 0, total, 1.0)
    rest = np.where(share < 1, 1 - share, 1.0)
    return np.maximum(satterthwaite(share, weight, np.where(share > 0, 1 / rest, 0.0)), 1.0)


@dataclass(frozen=True)
class GroupEffects:
    """Design effects of shares over groups of one kind: how many rows tell as much as an independent one.

    Attributes
    ----------
    anova, robust : arrays of shape (T,)
        From mean squares between and within groups, and from squared deviations of groups (CR2).
    freedom : array of shape (T,)
        Degrees of freedom of the first.
    size : array of shape (T,)
        The mean size of the group of a row.
    """

    anova: Floats
    robust: Floats
    freedom: Floats
    size: Floats

    @classmethod
    def of(cls, hits: Floats, rows: Floats) -> GroupEffects:
        """From the rows of each group and those that are counted, each (G, T).

        Rows with weights are in units in which all of them sum to their effective number.
        """
        n, x, groups = rows.sum(axis=0), hits.sum(axis=0), (rows > 0).sum(axis=0)
        square = (rows * rows).sum(axis=0)
        # Where there is nothing to count, effects are not asked for.
        safe = np.where(n > 0, n, 1.0)
        p, share, size = x / safe, rows / safe, square / safe
        inside = between(p) & (groups > 1)
        pq = np.where(inside, p * (1 - p), 1.0)
        inverse = np.divide(1.0, rows, out=np.zeros_like(rows), where=rows > 0)
        typical = np.where(groups > 1, (n - size) / np.maximum(groups - 1, 1), 1.0)
        within = (hits * (rows - hits) * inverse).sum(axis=0) / np.maximum(n - groups, 1)
        gap = hits - p * rows
        across = (gap * gap * inverse).sum(axis=0) / np.maximum(groups - 1, 1)
        spread = across + (typical - 1) * within
        alike = np.clip((across - within) / np.where(spread > 0, spread, 1.0), 0.0, 1.0)
        alike = np.where(inside & (spread > 0), alike, 0.0)
        anova = 1 + np.maximum(size - 1, 0.0) * alike
        variances = rows * (1 + np.maximum(rows - 1, 0.0) * alike)
        freedom = satterthwaite(share, variances, inverse)
        # Only this part of the effect is estimated between groups.
        part = np.where(inside, (size - 1) / np.where(typical > 0, typical, 1.0) * across / pq, 0.0)
        freedom = freedom * np.maximum(anova / np.maximum(part, 1e-9), 1.0) ** 2
        robust = cr2(hits, rows) * n / pq
        # A single group tells nothing about others.
        anova = np.where(groups > 1, anova, np.nan)
        return cls(anova, np.where(inside, robust, 1.0), np.minimum(freedom, _MANY), size)

    @classmethod
    def joined(cls, kinds: Sequence[GroupEffects]) -> GroupEffects:
        """Those of two kinds of groups at once, from both kinds and their pairs; of one kind, these."""
        if len(kinds) == 1:
            return kinds[0]
        first, second, pairs = kinds
        anova, robust = (
            np.maximum(np.maximum(a, b), a + b - c)
            for a, b, c in (
                (first.anova, second.anova, pairs.anova),
                (first.robust, second.robust, pairs.robust),
            )
        )
        freedom = anova**2 / (first.anova**2 / first.freedom + second.anova**2 / second.freedom)
        least = np.minimum(first.freedom, second.freedom)
        return cls(anova, robust, np.fmax(freedom, least), np.maximum(first.size, second.size))

    def assumed(self, stated: float | None = None) -> Floats:
        """The correlation that is assumed between the errors of a group, (T,), unless it is stated."""
        usual = np.clip(_ALIKE / np.maximum(self.size, 1.0), _LEAST_ALIKE, 1.0)
        return usual if stated is None else np.full_like(self.size, stated)

    @property
    def seen(self) -> Floats:
        """The correlation that was seen between the rows of a group, (T,)."""
        return np.where(self.size > 1, (self.anova - 1) / np.maximum(self.size - 1, 1e-9), 0.0)

    def errors(self, share: Floats, n: Floats) -> Floats:
        """How many independent errors were seen, (T,), on the rarer side of shares of n rows."""
        return np.minimum(share, 1 - share) * n / np.maximum(np.maximum(self.anova, self.robust), 1.0)

    def used(self, share: Floats, n: Floats, stated: float | None = None) -> Floats:
        """The effects that intervals use, (T,): drawn towards the assumed one where few errors were seen."""
        usual = 1 + np.maximum(self.size - 1, 0.0) * self.assumed(stated)
        used = np.ones_like(usual)
        for effect in (self.anova, self.robust):
            known = np.minimum(share, 1 - share) * n / np.maximum(effect, 1.0)
            used = np.maximum(used, (known * effect + _PRIOR * usual) / (known + _PRIOR))
        return used

    def shares(self, share: Floats, n: Floats, stated: float | None = None) -> CountedShares:
        """Shares with the number of independent rows that tell as much, from n rows in effect."""
        return CountedShares(share, n / self.used(share, n, stated), self.freedom)
