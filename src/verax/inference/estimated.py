"""The interval of one share or of one mean that cannot be negative: which kind it gets is decided here.

A share has mid-P limits on effective rows (`shares`), over groups with the design effects of `effects`. A
mean of losses that are zero or more has gamma limits on effective losses. Paired differences have intervals
of their own (`estimates`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verax.engines.clusters import both_ways, effective_groups, leave_one_out
from verax.inference.effects import GroupEffects, cr2, mean_freedom
from verax.inference.intervals import FewGroups, Interval, few_groups, padded, t_quantile
from verax.inference.shares import CountedShares, between, effective_rows, shrunk
from verax.inputs.arrays import Floats
from verax.inputs.groups import GroupCount, in_words

# The sums of a column over groups and their weights, (G,), of one kind of groups, or of both kinds and their
# pairs.
ByKind = Sequence[tuple[Floats, Floats]]
# With fewer errors than this, in effect, the assumed correlation rules.
_FEW_ERRORS = 5.0
# A seen correlation above this is more than the usual assumption allows.
_ALIKE = 0.2
# With fewer rows than this, in effect, and far more in number, a share rests on few heavy rows.
_FEW_HEAVY, _HEAVY = 15.0, 4.0
QUARTER = "a quarter of a group may be unlike all that were seen"
# Standard errors that are smaller, relative to the mean, are rounding.
_ROUNDING = 1e-12
# Of more effective losses than this limits are those of the normal distribution.
_MOST_LOSSES = 1e12
ONE_GROUP = "there is only one group to learn from"
ALL_EQUAL = "all losses are equal: how much others differ is not known"
GAMMA = "gamma"


@dataclass(frozen=True)
class ShareEstimate:
    """A share with the number of independent rows that tell as much, and how that came about.

    Attributes
    ----------
    shares : CountedShares
        The share.
    over : str
        What is independent, such as " over 12 groups (...)"; empty for rows.
    caution : str
        Why an interval may be unreliable; empty if it is not.
    """

    shares: CountedShares
    over: str = ""
    caution: str = ""

    @classmethod
    def of_rows(cls, share: float, kish: float, variance: float, n_rows: float) -> ShareEstimate:
        """Of independent rows; `variance` is the sum over rows as `effective_rows` has it."""
        n = effective_rows(share, kish, variance)
        heavy = n < _FEW_HEAVY and n < n_rows / _HEAVY
        caution = f"the share rests on few heavy rows: {n_rows:,.0f} tell as much as {n:.3g}" if heavy else ""
        return cls(CountedShares(np.asarray(share), n, np.asarray(math.inf)), "", caution)

    @classmethod
    def over_groups(cls, kinds: ByKind, n: float, count: GroupCount, few: FewGroups = None) -> ShareEstimate:
        """Of groups of one kind or of two.

        Parameters
        ----------
        kinds : sequence of two arrays
            Of each kind the weights of the counted rows of each group, and of all its rows.
        n : float
            The number of rows in effect.
        count : GroupCount
            The number of groups that have weight.
        few : float, "unseen" or None
            The largest correlation of the errors of a group, or "unseen" where a quarter of a group may be
            unlike all that were seen.
        """
        hits, weight = kinds[-1]
        total = float(weight.sum())
        share = np.clip(np.asarray([hits.sum() / total]), 0.0, 1.0)
        groups = in_words(count)
        if isinstance(few, str):
            return cls(unseen(float(share[0]), kinds), over_groups(groups, math.nan), few_groups(count))
        by_kind = []
        for of_kind, weights in kinds:
            rows = weights[:, None] * (n / total)
            by_kind.append(GroupEffects.of(np.clip(of_kind[:, None] * (n / total), 0.0, rows), rows))
        effects = GroupEffects.joined(by_kind)
        assumed = float(effects.assumed(few)[0])
        over = over_groups(groups, assumed, several=len(kinds) > 1)
        errors = float(effects.errors(share, np.asarray([n]))[0])
        caution = (
            few_groups(count) or too_alike(float(effects.seen[0]), assumed) or few_errors(errors, assumed)
        )
        shares = effects.shares(share, np.asarray([n]), few)
        return cls(CountedShares(shares.value[0], shares.n[0], shares.freedom[0]), over, caution)

    @property
    def method(self) -> str:
        """How the interval is computed, in words."""
        return "mid-P" + self.over

    def interval(self, confidence: float) -> Interval:
        """The mid-P interval."""
        return self._named(self.method, self.shares.limits((1 - confidence) / 2), confidence)

    def guaranteed(self, confidence: float) -> Interval:
        """The interval of Clopper and Pearson, for gates: no tail misses more often than it should."""
        ends = self.shares.guaranteed((1 - confidence) / 2)
        return self._named("Clopper-Pearson" + self.over, ends, confidence)

    def _named(self, method: str, ends: Floats, confidence: float) -> Interval:
        low, high = ends.tolist()
        return Interval(low, high, method=method, confidence=confidence, caution=self.caution)


def shares_over_groups(
    share: Floats, n: Floats, hits: Floats, rows: Floats, few: FewGroups
) -> tuple[CountedShares, Floats]:
    """Shares of n rows in effect, (T,), from the counted and from all rows of each group, (G, T).

    With the correlation of the errors of a group that each assumes; NaN where none is.
    """
    if not isinstance(few, str):
        effects = GroupEffects.of(hits, rows)
        return effects.shares(share, n, few), effects.assumed(few)
    columns = zip(share.tolist(), hits.T, rows.T, strict=True)
    by_column = [unseen(value, [(of_hits, of_rows)]) for value, of_hits, of_rows in columns]
    known = (np.array([getattr(x, name) for x in by_column]) for name in ("n", "freedom"))
    return CountedShares(share, *known), np.full_like(share, np.nan)


def over_groups(groups: str, assumed: float, *, several: bool = False) -> str:
    """What is independent, and what is assumed of it: " over 12 groups (of one kind; ...)".

    >>> over_groups("12 groups", 0.2)
    ' over 12 groups (of one kind; errors of a group alike up to 0.2)'
    """
    return f" over {groups} ({QUARTER if math.isnan(assumed) else one_kind(assumed, several=several)})"


def one_kind(assumed: float, *, several: bool = False) -> str:
    """What an interval over groups assumes of them, in words; of `several`, both ways of grouping rows.

    >>> one_kind(0.2)
    'of one kind; errors of a group alike up to 0.2'
    """
    return f"{'each ' if several else ''}of one kind; errors of a group alike up to {assumed:.2g}"


def too_alike(seen: float, assumed: float) -> str:
    """The caution about groups whose rows resemble each other by more than is assumed; empty otherwise.

    >>> too_alike(0.35, 0.2), too_alike(0.35, 1.0)
    ('errors of a group are alike by 0.35, and up to 0.2 is assumed', '')
    """
    if not (seen > _ALIKE and seen > assumed + 1e-9):
        return ""
    return f"errors of a group are alike by {seen:.2g}, and up to {assumed:.2g} is assumed"


def few_errors(errors: float, assumed: float) -> str:
    """The caution about a share of which few independent errors were seen; empty where there are enough.

    >>> few_errors(1.5, 0.2), few_errors(12, 0.2)
    ('few independent errors: it is assumed that errors of a group are alike up to 0.2', '')
    """
    if errors >= _FEW_ERRORS:
        return ""
    return f"few independent errors: it is assumed that errors of a group are alike up to {assumed:.2g}"


def unseen(share: float, kinds: ByKind) -> CountedShares:
    """A share over groups with a quarter of a group unlike all that were seen."""
    known = [leave_one_out(weight, sums[:, None]) for sums, weight in kinds]
    squared, degrees = float(known[0][0][0]), known[0][1]
    if len(kinds) > 1:
        both = both_ways([variance for variance, _ in known], (known[0][1], known[1][1]))
        squared, degrees = (float(column[0]) for column in both)
    n = min(effective_groups(weight) for _, weight in kinds)
    variance = padded(squared, share, n, (0.0, 1.0))
    rows = share * (1 - share) / variance if between(share) and variance > 0 else n
    return CountedShares(np.asarray(share), np.asarray(rows), np.asarray(degrees))


def rows_without_errors(weights: Sequence[Floats], n: float) -> float:
    """How many of n rows in effect are independent where no row of any group, of either kind, differs."""
    kinds = [(np.zeros_like(weight), weight) for weight in weights]
    return float(ShareEstimate.over_groups(kinds, n, len(weights[-1])).shares.n)


# ---- means of losses ---------------------------------------------------------------------------


def mean_over_groups(kinds: ByKind, mean: float, of_rows: float) -> tuple[float, float]:
    """The variance of a weighted mean over groups of one kind or of two, and its degrees of freedom.

    CR2 with the degrees of freedom of Bell and McCaffrey; both are NaN for a single group. Groups that are
    all alike do not tell how their rows vary: there the variance is that over independent rows.
    """
    if min(int(np.count_nonzero(weight)) for _, weight in kinds) < 2:
        return math.nan, math.nan
    variances = [cr2(sums[:, None], weight[:, None]) for sums, weight in kinds]
    freedom = [float(mean_freedom(weight[:, None])[0]) for _, weight in kinds]
    variance, degrees = variances[0], np.asarray(freedom[:1])
    if len(kinds) > 1:
        variance, degrees = both_ways(variances, (freedom[0], freedom[1]))
    alike = not float(variance[0]) > (_ROUNDING * mean) ** 2
    return of_rows if alike else float(variance[0]), float(degrees[0])


def gamma_limits(
    mean: float, variance: float, freedom: float, confidence: float, most: float = math.inf
) -> tuple[float, float]:
    """The limits of the mean of losses from zero to an upper bound, given the variance of the mean.

    They are those of a weighted sum of Poisson counts (Fay and Feuer 1997, Statistics in Medicine 16,
    791-801) whose number gives the mean its relative error: the number of effective losses. Nearer to the
    upper bound than to zero they are those of the bound minus the loss, turned round.

    >>> low, high = gamma_limits(0.1, 0.0004, math.inf, 0.95)
    >>> round(low, 4), round(high, 4)
    (0.0647, 0.1476)
    >>> low, high = gamma_limits(0.9, 0.0004, math.inf, 0.95, 1.0)
    >>> round(low, 4), round(high, 4)
    (0.8524, 0.9353)
    """
    from scipy.special import gammaincinv

    if math.isfinite(most) and mean > most / 2:
        low, high = gamma_limits(most - mean, variance, freedom, confidence)
        return max(most - high, 0.0), most - low
    tail = (1 - confidence) / 2
    losses = mean * mean / variance * float(shrunk(freedom, tail))
    few = min(losses, _MOST_LOSSES)
    low, high = gammaincinv(few, tail) / few - 1, gammaincinv(few + 1, 1 - tail) / few - 1
    scale = math.sqrt(few / losses)
    return mean * (1 + scale * float(low)), min(mean * (1 + scale * float(high)), most)


@dataclass(frozen=True)
class MeanEstimate:
    """A mean of losses within bounds, with its variance.

    Attributes
    ----------
    mean, variance, freedom : float
        The mean, its variance, and the degrees of freedom of that.
    bounds : tuple of two floats
        The least and the largest loss that is possible.
    n : float
        The number of independent rows in effect, for losses that are all at a bound.
    over : str
        What is independent, such as " over 12 groups"; empty for rows.
    caution : str
        Why an interval may be unreliable; empty if it is not.
    """

    mean: float
    variance: float
    freedom: float
    bounds: tuple[float, float]
    n: float
    over: str = ""
    caution: str = ""

    def interval(self, confidence: float) -> Interval:
        """Gamma limits where losses have a least value, else those of Student's t distribution."""
        least, most = self.bounds
        if not math.isfinite(least):
            half = t_quantile(self.freedom, confidence) * math.sqrt(self.variance)
            ends = self.mean - half, min(self.mean + half, most)
            return Interval(*ends, method="t" + self.over, confidence=confidence, caution=self.caution)
        mean, most = self.mean - least, most - least
        # Losses that are all at a bound are a share of none or of all.
        beyond = 1 - (1 - confidence) ** (1 / self.n)
        caution = self.caution
        if mean <= 0:
            ends = 0.0, most * beyond
        elif mean >= most:
            ends = most * (1 - beyond), most
        elif self.variance > 0:
            ends = gamma_limits(mean, self.variance, self.freedom, confidence, most)
        else:
            ends, caution = (mean, mean), caution or ALL_EQUAL
        low, high = least + ends[0], least + ends[1]
        return Interval(low, high, method=GAMMA + self.over, confidence=confidence, caution=caution)
