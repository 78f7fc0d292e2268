"""Intervals of shares: mid-P limits on the number of independent rows that tell as much.

A share of n independent rows has the limits at which the chance of what was seen, with half of the chance of
exactly that, is half of the level (Lancaster 1961; Berry and Armitage 1995, doi:10.2307/2348891). They hold
for real numbers of rows, so everything else is a matter of how many rows there are in effect: with weights,
over groups, and where the variance of groups is itself uncertain.

A number of rows that is itself estimated, as over groups, is smaller by the square of the normal quantile
over Student's (Korn and Graubard 1998, Survey Methodology 24, 193-201).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.inputs.arrays import Bools, Floats

# Shares and numbers of rows that are nearer to 0 or 1 are rounding.
_NOTHING = 1e-12
# Of fewer rows than this limits are 0 and 1, and Beta quantiles inexact.
_FEWEST_ROWS = 1e-3
# Of more rows than this limits are those of the normal distribution, and Beta quantiles inexact.
_MOST_ROWS = 1e12
# The most of Newton's steps; they end sooner where no limit moves.
_STEPS, _SETTLED = 60, 1e-7
# Normal quantiles beyond this have p-values of zero; one is known when its bracket is this small, after at
# most this number of steps.
_FAR, _CLOSE, _ROUNDS = 37.0, 1e-9, 60
# Where the slope of a limit is taken, and how far beyond a straight line its root is looked for.
_FIRST, _BEYOND = 1.96, 1.1
# Degrees of freedom beyond this are those of the normal distribution.
_MANY = 1e9


# ---- limits ------------------------------------------------------------------------------------


def mid_p_limits(share: Any, rows: Any, tail: Any) -> Floats:
    """The mid-P limits of shares of real numbers of independent rows, (2, ...), with this chance beyond each.

    The equation of a limit is solved by Newton's method.

    >>> mid_p_limits(0.8, 100, 0.025).round(4), mid_p_limits([0.0, 1.0], 10, 0.025).round(4)
    (array([0.7131, 0.8698]), array([[0.    , 0.7411],
           [0.2589, 1.    ]]))
    """
    given = _Counted.of(share, rows, tail)
    # Of no or of all rows one end is the chance of that, the other one is known.
    return given.ends(given.quantiles(), (2 * given.tail) ** (1 / given.n))


def clopper_pearson_limits(share: Any, rows: Any, tail: Any) -> Floats:
    """The limits of Clopper and Pearson, (2, ...): no more than this chance lies beyond each.

    >>> clopper_pearson_limits(0.8, 100, 0.025).round(4)
    array([0.7082, 0.8733])
    """
    from scipy.special import betaincinv

    given = _Counted.of(share, rows, tail)
    inner, outer = given.betas
    ends = np.stack([betaincinv(*inner, given.tail), betaincinv(*outer, 1 - given.tail)])
    return given.ends(ends, given.tail ** (1 / given.n))


@dataclass(frozen=True)
class _Counted:
    """Rows on either side of shares, and where these are 0, 1 or not known.

    Attributes
    ----------
    share, x, rest : arrays of shape (...)
        The shares, and the numbers of rows that are counted and of others; one half where a share is 0 or 1.
    n, tail : arrays of shape (...)
        The number of all rows, and the chance beyond a limit.
    scale : array of shape (...)
        How much nearer to the share limits are than those of the most rows that are computed.
    none, all_, known : arrays of shape (...)
        Where none of the rows is counted, all of them, and where anything is known.
    """

    share: Floats
    x: Floats
    rest: Floats
    n: Floats
    tail: Floats
    scale: Floats
    none: Bools
    all_: Bools
    known: Bools

    @classmethod
    def of(cls, share: Any, rows: Any, tail: Any) -> _Counted:
        share, n, tail = np.broadcast_arrays(*(np.asarray(x, float) for x in (share, rows, tail)))
        known = np.isfinite(share) & (n > 0) & ~np.isnan(tail)
        n, tail = np.where(known, np.maximum(n, _FEWEST_ROWS), 1.0), np.where(known, tail, 0.25)
        none, all_ = share <= _NOTHING, share >= 1 - _NOTHING
        inside = np.where(known & ~none & ~all_, share, 0.5)
        few = np.minimum(n, _MOST_ROWS)
        return cls(inside, inside * few, (1 - inside) * few, n, tail, np.sqrt(few / n), none, all_, known)

    @property
    def betas(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """The parameters of the Beta distributions of the limits of Clopper and Pearson."""
        return (self.x, self.rest + 1), (self.x + 1, self.rest)

    def at(self, share: Floats) -> Floats:
        """The chance of at most this true share, by the mean of the two distributions."""
        return _chance(self.x, self.rest, share)

    def quantiles(self) -> Floats:
        """The two ends, (2, ...), at which the chance of at most this true share is the tail or all but it.

        Newton's method from the quantiles of Jeffreys, which are near, and halves of the bracket where it
        leaves that. The upper end is the lower one of the rows that are not counted: one minus a small chance
        would be rounded.
        """
        from scipy.special import betaincinv, betaln

        x, rest = np.stack([self.x, self.rest]), np.stack([self.rest, self.x])
        share = betaincinv(x + 0.5, rest + 0.5, self.tail)
        # Quantiles far in the tails may underflow.
        share = np.where((share > 0) & (share < 1), share, x / (x + rest))
        low, high = np.zeros_like(share), np.ones_like(share)
        scale, n = betaln(x, rest), x + rest
        # The densities of both distributions have a factor in common.
        above, below = n / (2 * rest), n / (2 * x)
        with np.errstate(all="ignore"):
            for _ in range(_STEPS):
                gap = _chance(x, rest, share) - self.tail
                short = gap < 0
                low, high = np.where(short, share, low), np.where(short, high, share)
                common = np.exp((x - 1) * np.log(share) + (rest - 1) * np.log1p(-share) - scale)
                step = gap / (common * (above * (1 - share) + below * share))
                moved = share - step
                inside = (moved >= low) & (moved <= high)
                share = np.where(inside, moved, (low + high) / 2)
                # Of a step that is small the next one is as small as rounding.
                if inside.all() and (np.abs(step) <= _SETTLED * share).all():
                    break
        return np.stack([share[0], 1 - share[1]])

    def ends(self, inside: Floats, chance: Floats) -> Floats:
        """The limits, with those where one side has no rows."""
        low, high = self.share + self.scale * (inside - self.share)
        low = np.where(self.none, 0.0, np.where(self.all_, chance, low))
        high = np.where(self.all_, 1.0, np.where(self.none, 1 - chance, high))
        return np.where(self.known, np.stack([low, high]), np.nan)


def _chance(x: Floats, rest: Floats, share: Floats) -> Floats:
    """The chance of at most this true share, of x rows that are counted and others."""
    from scipy.special import betainc

    return np.asarray((betainc(x, rest + 1, share) + betainc(x + 1, rest, share)) / 2)


def mid_p_value(share: float, rows: float, true: float) -> float:
    """The two-sided p-value of a true share: the level at which it is a mid-P limit.

    >>> low, high = mid_p_limits(0.8, 100, 0.025)
    >>> round(mid_p_value(0.8, 100, low), 6), round(mid_p_value(1.0, 100, 0.95), 6)
    (0.05, 0.005921)
    """
    given = _Counted.of(share, rows, 0.5)
    if given.none or given.all_:
        chance = float(np.power((1 - true) if given.none else true, given.n) / 2)
    else:
        chance = float(given.at(np.asarray(true)))
    return min(1.0, 2 * min(chance, 1 - chance))


# ---- how many rows there are in effect ---------------------------------------------------------


def effective_rows(share: Any, kish: Any, variance: Any) -> Floats:
    """How many rows of equal weight tell as much about weighted shares.

    The smaller of two numbers: that of the weights (Kish), and that of the variance, the sum over rows of the
    squared weight times deviation over the squared sum of the weights. The second alone fails where the few
    errors seen have light weights by chance.

    >>> effective_rows([0.5, 1.0], 100.0, [0.005, 0.0])
    array([ 50., 100.])
    """
    share, kish, variance = (np.asarray(x, float) for x in (share, kish, variance))
    inside = between(share) & (variance > 0)
    by_variance = np.where(inside, share * (1 - share), 1.0) / np.where(inside, variance, 1.0)
    return np.asarray(np.where(inside, np.minimum(kish, by_variance), kish))


def between(share: Any) -> Any:
    """Where shares are neither 0 nor 1, up to rounding.

    >>> bool(between(0.5)), bool(between(1 - 1e-15))
    (True, False)
    """
    return (np.asarray(share) > _NOTHING) & (np.asarray(share) < 1 - _NOTHING)


@dataclass(frozen=True)
class CountedShares:
    """Shares, and how many independent rows tell as much about each.

    Attributes
    ----------
    value, n : arrays of shape (...)
        The shares and the numbers of rows; NaN where a share is undefined.
    freedom : array of shape (...)
        Degrees of freedom of these numbers; infinite for independent rows.
    """

    value: Floats
    n: Floats
    freedom: Floats

    def rows(self, tail: Any) -> Floats:
        """The numbers of rows as far in the tails as this: fewer where they are less certain."""
        return self.n * shrunk(self.freedom, tail)

    def limits(self, tail: Any) -> Floats:
        """Mid-P limits, (2, ...), with this chance beyond each."""
        return mid_p_limits(self.value, self.rows(tail), tail)

    def p_value(self, true: float) -> float:
        """The two-sided p-value of one true share: the level at which it is a limit of the only one here."""
        from scipy.special import ndtr

        if not np.isfinite(self.freedom):
            return mid_p_value(float(self.value), float(self.n), true)
        above = float(self.value) > true

        def inside(z: Floats) -> Floats:
            low, high = self.limits(ndtr(-z))
            return np.asarray(low - true if above else true - high)

        z = falling_root(inside, np.asarray([abs(float(self.value) - true)]))
        return min(1.0, 2 * float(ndtr(-z[0])))

    def guaranteed(self, tail: Any) -> Floats:
        """Limits with at most this chance beyond each, for gates and promises: those of Clopper-Pearson."""
        return clopper_pearson_limits(self.value, self.rows(tail), tail)


def shrunk(freedom: Any, tail: Any) -> Floats:
    """What part of rows is left where their number has these degrees of freedom, as far in the tails."""
    from scipy.special import ndtri, stdtrit

    freedom, tail = np.asarray(freedom, float), np.asarray(tail, float)
    with np.errstate(all="ignore"):
        far = stdtrit(np.minimum(np.maximum(freedom, 1.0), _MANY), tail)
        ratio = (ndtri(tail) / far) ** 2
    return np.where((freedom >= _MANY) | ~(np.abs(far) > _NOTHING), 1.0, ratio)


def falling_root(falls: Callable[[Floats], Floats], start: Floats) -> Floats:
    """The normal quantile at which a function that falls from `start` at zero is zero, (T,).

    By the method of false position, in which an end that stays counts half as much (Illinois), from where a
    straight line through its values at zero and at 1.96 would be zero.
    """
    low, above = np.zeros(len(start)), start
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = (start - falls(np.full(len(start), _FIRST))) / _FIRST
        high = np.where(slope > 0, _BEYOND * start / slope, _FAR)
        high = np.clip(np.nan_to_num(high, nan=_FAR), _CLOSE, _FAR)
        below = falls(high)
        for _ in range(_ROUNDS):
            short = ~(below < 0) & (high < _FAR)
            if not short.any():
                break
            low, above = np.where(short, high, low), np.where(short, below, above)
            high = np.where(short, np.minimum(2 * high, _FAR), high)
            below = np.where(short, falls(high), below)
        # What does not fall so far has no root in reach.
        low = np.where(below < 0, low, high)
        done, last = low == high, np.zeros(len(start))
        for _ in range(_ROUNDS):
            if done.all():
                break
            tried = (low * below - high * above) / (below - above)
            tried = np.where((tried > low) & (tried < high), tried, (low + high) / 2)
            value = falls(tried)
            beyond = value < 0
            done |= (np.abs(value) <= _NOTHING * (1 + start)) | (high - low <= _CLOSE)
            # Of an end that has stayed twice, what it counts is halved.
            kept = np.where(last == np.where(beyond, 1, -1), 0.5, 1.0)
            last = np.where(beyond, 1, -1)
            above, below = np.where(beyond, kept * above, value), np.where(beyond, value, kept * below)
            low, high = np.where(beyond, low, tried), np.where(beyond, tried, high)
            low, high = np.where(done & beyond, tried, low), np.where(done & ~beyond, tried, high)
    return np.asarray((low + high) / 2)
