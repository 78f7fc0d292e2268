"""Uncertainty of a mean difference: standard errors, bootstrap, permutation, corrections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from verax.common.checks import check_count
from verax.engines.clusters import leave_one_out, sums_by_label
from verax.engines.differences import PairedTally, with_differences
from verax.engines.pieces import all_pairs
from verax.engines.sums import relative
from verax.errors import InputError, passing, show
from verax.inference.bootstrap import block_multiplicities, multiplicities, widened
from verax.inference.intervals import (
    Interval,
    Resampling,
    cautious_limits,
    cautious_tail,
    few,
    few_differ,
    few_dominate,
    few_groups,
    skewed,
    t_quantile,
    unequal,
)
from verax.inference.series import LARGEST_SEASON, LongRun, Memory, by_season
from verax.inference.signflips import SignFlips, few_differing
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import Groups, is_two_way

# Degrees of freedom are zero up to rounding.
_NONE = 1e-9
# Differences of means that are smaller, relative to the largest mean, are rounding.
_ROUNDING = 1e-13

Method = Literal["moments", "bootstrap", "permutation"]
# How means over groups are tested.
OVER_GROUPS = "paired t test (the more cautious of Student's and Hall's)"


@dataclass(frozen=True)
class Units:
    """The independent units: rows, groups of rows, or blocks of consecutive rows.

    Weights are relative: extreme ones are divided by a power of two. `lags` is how far rows in order of
    time depend on each other, and `season` after how many they repeat; None to estimate it.
    """

    kind: Literal["rows", "groups", "blocks"]
    weights: Floats | None = None
    codes: Any = None
    lags: int | None = None
    two_way: bool = False
    season: int | None = None

    @classmethod
    def of(
        cls,
        n_rows: int,
        weights: Floats | None,
        groups: Groups | None,
        time_ordered: bool,
        lags: int | None,
        season: int | None = None,
    ) -> Units:
        """The units, from the arguments of a comparison."""
        for number, argument in ((lags, "lags"), (season, "season")):
            if number is not None and not time_ordered:
                raise InputError(
                    "must be left out unless rows are in order of time",
                    argument=argument,
                    values=[number],
                    remedies=[passing("if they are", time_ordered=True)],
                )
        if not time_ordered:
            kind: Literal["rows", "groups"] = "rows" if groups is None else "groups"
            weights = None if weights is None else relative(weights)
            if groups is None:
                return cls(kind, weights)
            return cls(kind, weights, groups.as_seen, two_way=is_two_way(groups.labels))
        for given, argument in ((groups, "groups"), (weights, "weights")):
            if given is not None:
                raise InputError("cannot be used with rows in order of time", argument=argument)
        if lags is not None and season is not None:
            raise InputError("cannot be used with `lags`: both say how rows depend", argument="season")
        return cls("blocks", lags=_lags(lags, n_rows), season=_season(season, n_rows))

    def describe(self, method: Method) -> str:
        lags = "" if self.lags is None else f", {self.lags} lags"
        lags += "" if self.season is None else f", a season of {self.season}"
        what = {
            "rows": "independent rows",
            "groups": "independent groups" + (" of two kinds" if self.two_way else ""),
            "blocks": f"rows in order of time{lags}",
        }[self.kind]
        of_moments = {"rows": "paired t test", "groups": OVER_GROUPS, "blocks": "Diebold-Mariano test"}
        how = {
            "moments": of_moments[self.kind],
            "bootstrap": f"bootstrap and {OVER_GROUPS}" if self.kind == "groups" else "bootstrap",
            "permutation": "permutation test",
        }[method]
        return f"{how}, {what}"


def _lags(lags: int | None, n_rows: int) -> int | None:
    """The requested number of lags, checked."""
    if lags is None:
        return None
    check_count("lags", lags, least=0)
    if lags >= n_rows:
        raise InputError(
            f"must be below the number of rows, {n_rows}, not {show(lags)}", argument="lags", values=[lags]
        )
    return int(lags)


def _season(season: int | None, n_rows: int) -> int | None:
    """The stated season, checked."""
    if season is None:
        return None
    check_count("season", season, least=2)
    if LARGEST_SEASON * season > n_rows:
        raise InputError(
            f"must be at most a third of the {n_rows:,} rows: fewer whole seasons support no claim",
            argument="season",
            found=f"it is {season:,}",
            values=[season],
        )
    return int(season)


@dataclass(frozen=True)
class Estimate:
    """Means of all columns (models, then pairs of models) with standard errors and degrees of freedom.

    The degrees of freedom are one number for all columns, or one for each. `cautions` says for each column
    why its interval cannot be trusted; None where the number of units does. Means over groups also have a
    `skewness`, with degrees of freedom of its own. Their differences have an `exact` p-value, that of the
    sign-flip test where few of the groups differ, else zero; `differing`, (P, 4), tells how many do. Means
    of rows in order of time have `seasons`: the number of rows after which each column repeats, or 1.
    """

    mean: Floats
    error: Floats
    freedom: float | Floats
    cautions: tuple[str, ...] | None = None
    skewness: Floats | float = 0.0
    skewed_freedom: Floats | float = math.nan
    exact: Floats | float = 0.0
    differing: Floats | None = None
    seasons: Ints | None = None

    @classmethod
    def of(cls, tally: PairedTally, losses: Floats, units: Units, *, copies: bool = False) -> Estimate:
        """From the sums over rows; with `copies` weights are numbers of rows."""
        if units.kind == "blocks":
            series = LongRun.of(with_differences(losses), units.lags, units.season)
            own = tally.means, series.error, series.freedom, series.cautions
            return cls(*own, seasons=series.seasons)
        error, freedom = tally.standard_errors(copies=copies)
        shapes = tally.shapes()
        if shapes is None or tally.n_groups is None or tally.labels is None or tally.cluster_sums is None:
            return cls(tally.means, error, freedom, _cautions_of_rows(tally, float(np.max(freedom)) + 1))
        count = tally.n_groups
        differing, exact = few_differing(tally.labels, tally.cluster_sums, tally.n_models)
        few_of = [""] * tally.n_models
        n_differing = differing[:, :2].sum(axis=1).astype(int).tolist()
        few_of += [few_differ(n, p, count) for n, p in zip(n_differing, exact.tolist(), strict=True)]
        groups = zip(few_of, shapes[1].tolist(), strict=True)
        cautions = [few_groups(count) or few or few_dominate(skewness, count) for few, skewness in groups]
        exact = np.append(np.zeros(tally.n_models), exact)
        return cls(tally.means, error, freedom, tuple(cautions), shapes[1], shapes[0], exact, differing)

    def with_cautions(self, of_models: Sequence[str]) -> Estimate:
        """The estimate whose columns without a caution have one of these: of models, then of their pairs."""
        assert self.cautions is not None
        pairs = all_pairs(len(of_models)) if len(self.cautions) > len(of_models) else ()
        more = [*of_models, *(of_models[a] or of_models[b] for a, b in pairs)]
        return replace(self, cautions=tuple(a or b for a, b in zip(self.cautions, more, strict=True)))

    def like(
        self,
        column: int,
        mean: float,
        error: float,
        freedom: float | None = None,
        skewness: float = 0.0,
        skewed_freedom: float = math.nan,
    ) -> Estimate:
        """An estimate with the caution of one column, and with its degrees of freedom unless given."""
        freedom = np.broadcast_to(self.freedom, self.mean.shape)[column] if freedom is None else freedom
        caution = None if self.cautions is None else (self.cautions[column],)
        known = np.array([mean]), np.array([error]), float(freedom), caution, skewness, skewed_freedom
        return Estimate(*known)

    def intervals(self, confidence: float) -> list[Interval]:
        """The interval of every column, which holds zero exactly if its p-value exceeds the level."""
        student, hall = (_quantiles(df, confidence) for df in (self.freedom, self.skewed_freedom))
        low, high = cautious_limits(self.mean, self.error, student, hall, self.skewness)
        freedom = np.broadcast_to(self.freedom, self.mean.shape).tolist()
        cautions = self.cautions or [few(df + 1, "independent unit", "independent units") for df in freedom]
        columns = zip(self.mean.tolist(), low.tolist(), high.tolist(), freedom, cautions, strict=True)
        intervals = [_t_interval(*column, confidence) for column in columns]
        # What the exact test does not reject is in the interval.
        kept = np.broadcast_to(np.asarray(self.exact) > 1 - confidence, self.mean.shape).tolist()
        return [
            interval.holding(0.0) if keep else interval
            for interval, keep in zip(intervals, kept, strict=True)
        ]

    def p_values(self) -> Floats:
        """The two-sided p-value of every column."""
        with np.errstate(invalid="ignore", divide="ignore"):
            t = self.mean / self.error
        # Models that agree in every row have a difference and a standard error of zero, but for rounding.
        rounding = _ROUNDING * np.abs(self.mean[np.isfinite(self.mean)]).max(initial=0.0)
        t = np.where((self.error <= rounding) & (np.abs(self.mean) <= rounding), 0.0, t)
        skewness = np.asarray(self.skewness)
        freedom, skewed = self.freedom, self.skewed_freedom
        tail = np.minimum(*(cautious_tail(s * t, freedom, s * skewness, skewed) for s in (-1, 1)))
        return np.where(np.isnan(t), np.nan, np.clip(2 * tail, self.exact, 1.0))


def _quantiles(freedom: Floats | float, confidence: float) -> Floats:
    """The upper ends of the central intervals of Student's t distributions; NaN without any freedom."""
    freedoms = np.asarray(freedom, float)
    known = {
        degrees: t_quantile(degrees, confidence) for degrees in np.unique(freedoms).tolist() if degrees > 0
    }
    return np.asarray(np.vectorize(lambda degrees: known.get(degrees, np.nan), otypes=[float])(freedoms))


def _cautions_of_rows(tally: PairedTally, n: float) -> tuple[str, ...]:
    """Why intervals over `n` rows in effect cannot be trusted: those of models, then of their differences."""
    shared = few(n, "independent unit", "independent units") or unequal(n, tally.n_positive)
    moments = zip(tally.means[: tally.n_models], tally.moments.std[1:], strict=False)
    of_models = [shared or skewed(n, float(mean), float(std)) for mean, std in moments]
    return (
        *of_models,
        *(of_models[a] or of_models[b] for a, b in (all_pairs(tally.n_models) if tally.pairs else ())),
    )


def _t_interval(
    mean: float, low: float, high: float, freedom: float, caution: str, confidence: float
) -> Interval:
    if not math.isfinite(mean):
        return Interval.undefined("some losses are infinite", method="t", confidence=confidence)
    if not freedom > _NONE or math.isnan(high - low):
        # Where there are units, the caution says what is wrong with them.
        why = caution if freedom > _NONE and caution else "there is only one unit to learn from"
        return Interval.undefined(why, method="t", confidence=confidence)
    return Interval(low, high, method="t", confidence=confidence, caution=caution)


def bootstrapped(draws: Floats, estimate: Estimate, confidence: float) -> tuple[list[Interval], Floats]:
    """Intervals and two-sided p-values of every column from its bootstrap means, which agree.

    A p-value is twice the share of the draws on the rarer side of zero. The ends of an interval are draws:
    the furthest from the middle with which zero as an end would not be rejected. Over groups neither claims
    more than without the bootstrap, which of few groups that differ knows nothing.
    """
    n = len(draws)
    # A draw that has no weight could lie anywhere.
    one_sided = np.minimum((~(draws > 0)).sum(axis=0), (~(draws < 0)).sum(axis=0))
    p_values = np.minimum((1 + 2 * one_sided) / (1 + n), 1.0)
    # The least number of draws beyond zero with which it is not rejected; none if there are too few draws.
    beyond = int(((1 + 2 * np.arange(n)) / (1 + n) <= 1 - confidence).sum())
    unknown, last = np.isnan(draws), max(beyond - 1, 0)
    low = np.sort(np.where(unknown, -np.inf, draws), axis=0)[last]
    high = np.sort(np.where(unknown, np.inf, draws), axis=0)[n - 1 - last]
    low, high = (low, high) if beyond else (np.minimum(low, 0.0), np.maximum(high, 0.0))
    intervals = estimate.intervals(confidence)
    if estimate.differing is not None:
        p_values = np.fmax(p_values, estimate.p_values())
        low, high = np.fmin(low, np.array(intervals)[:, 0]), np.fmax(high, np.array(intervals)[:, 1])
    bootstrap_intervals = [
        Interval(*ends, confidence=confidence).by("bootstrap", like.caution) if like.defined else like
        for *ends, like in zip(low.tolist(), high.tolist(), intervals, strict=True)
    ]
    known = np.isfinite(estimate.mean) & (estimate.seasons is None or ~np.isnan(estimate.error))
    return bootstrap_intervals, np.where(known, p_values, np.nan)


def bootstrap_means(losses: Floats, units: Units, plan: Resampling) -> Floats:
    """Bootstrap means of all columns, (B, C), drawing rows, groups or blocks.

    Those of groups and of blocks are spread as Student's t distribution is, because they are few.
    """
    columns = with_differences(losses)
    if units.kind == "blocks":
        return _block_means(by_season(columns, units.lags, units.season), units.lags, plan)
    weight = np.ones(len(columns)) if units.weights is None else units.weights
    columns = weight[:, None] * columns
    if units.kind == "groups":
        _, sums = sums_by_label(units.codes, np.column_stack([weight, columns]))
        weight, columns = sums[:, 0], sums[:, 1:]
    draws = multiplicities(len(columns), None, plan.replicates, plan.seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.array([(drawn @ columns) / (drawn @ weight) for drawn in draws])
    if units.kind == "rows":
        return means
    variance, freedom = leave_one_out(weight, columns)
    return widened(means, columns.sum(axis=0) / weight.sum(), np.sqrt(variance), freedom, plan.confidence)


def _block_means(columns: Floats, lags: int | None, plan: Resampling) -> Floats:
    """Bootstrap means of rows in order of time."""
    n = len(columns)
    memory = Memory.of(columns)
    blocks = memory.blocks(lags)
    length = -(-n // blocks)
    drawn = block_multiplicities(n, length, plan.replicates, plan.seed)
    with np.errstate(invalid="ignore"):
        means = np.array([row @ columns / n for row in drawn])
        if blocks < 2:
            return means
        more = math.sqrt(blocks / (blocks - 1)) * memory.between_blocks(length, lags)
        return widened(means, columns.mean(axis=0), more * means.std(axis=0), blocks - 1, plan.confidence)


def sign_flips(losses: Floats, units: Units, plan: Resampling) -> SignFlips:
    """Differences of all pairs of models with the two swapped at random in each independent unit.

    Effects of groups may be skewed: means over groups are compared as t statistics that allow for it.
    """
    columns = with_differences(losses)
    weight = np.ones(len(columns)) if units.weights is None else units.weights
    columns = weight[:, None] * columns
    unit, more = np.arange(len(columns)), np.ones(columns.shape[1])
    if units.kind == "groups":
        unit = units.codes
    elif units.kind == "blocks":
        columns = by_season(columns, units.lags, units.season)
        weight, unit = np.ones(len(columns)), np.arange(len(columns))
        memory = Memory.of(columns)
        length = -(-len(columns) // memory.blocks(units.lags))
        unit, more = unit // length, memory.between_blocks(length, units.lags)
    pairs = slice(losses.shape[1], None)
    skewed = units.kind == "groups"
    how = plan.replicates, plan.seed
    return SignFlips.drawn(unit, weight, columns[:, pairs], more[pairs], *how, skewed=skewed)


def permuted(flips: SignFlips, estimate: Estimate, confidence: float) -> tuple[list[Interval], Floats]:
    """Intervals and two-sided p-values of every column from sign flips of the differences, which agree.

    An interval holds the differences that the test does not reject. The means of the models themselves have
    the intervals of the estimate, and no p-values.
    """
    intervals = estimate.intervals(confidence)
    p_values = np.full(len(intervals), np.nan)
    n_pairs = flips.totals.shape[1]
    for pair, c in enumerate(range(len(intervals) - n_pairs, len(intervals))):
        if estimate.seasons is not None and math.isnan(estimate.error[c]):
            continue
        p_values[c] = flips.p_value(pair)
        intervals[c] = flips.interval(pair, intervals[c], float(estimate.error[c]))
    return intervals, p_values


def weighted_holm(p: Floats, weights: Floats) -> Floats:
    """Holm's adjusted p-values of tests that share the level by their weights; NaN stays NaN.

    Reference: Holm (1979), https://www.jstor.org/stable/4615733

    >>> weighted_holm(np.array([0.01, 0.04, np.nan]), np.array([1.0, 1.0, 1.0]))
    array([0.02, 0.04,  nan])
    >>> weighted_holm(np.array([0.01, 0.04, 0.9]), np.array([2.0, 1.0, 1.0]))
    array([0.02, 0.08, 0.9 ])
    """
    result = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known] / weights[known], kind="stable")]
    left = np.cumsum(weights[order][::-1])[::-1]
    result[order] = np.minimum(np.maximum.accumulate(p[order] * left / weights[order]), 1.0)
    return result


def holm(p: Floats, among: int = 0) -> Floats:
    """Holm's adjusted p-values; NaN stays NaN and does not count.

    If these are some of `among` p-values, the others are assumed to be larger.

    >>> holm(np.array([0.01, 0.04])), holm(np.array([0.01, 0.04]), 5)
    (array([0.02, 0.04]), array([0.05, 0.16]))
    """
    result = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    factors = max(among, len(order)) - np.arange(len(order))
    result[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1.0)
    return result


# ---- means over folds


def over_folds(values: Floats, test_train: float) -> Estimate:
    """The mean over J folds of each column of (J, M) values, and of the difference of each pair of columns.

    Models of different folds share most of their training rows, so the mean varies more than that of J
    independent values: its variance is (1/J + n_test / n_train) s^2 (Nadeau and Bengio 2003,
    doi:10.1023/A:1024068626366), and Student's t distribution has J - 1 degrees of freedom.

    >>> found = over_folds(np.array([[0.2], [0.3], [0.4]]), 0.5)
    >>> found.mean.round(3), found.error.round(3), found.freedom
    (array([0.3]), array([0.091]), 2.0)
    """
    columns = with_differences(values)
    n = len(columns)
    with np.errstate(invalid="ignore"):
        spread = columns.var(axis=0, ddof=1)
        mean = columns.mean(axis=0)
    # A difference from an infinite mean is not known.
    pairs = np.arange(len(mean)) >= values.shape[1]
    mean = np.where(pairs & ~np.isfinite(mean), np.nan, mean)
    cautions = (few(n, "fold", "folds"),) * len(mean)
    return Estimate(mean, np.sqrt((1 / n + test_train) * spread), float(n - 1), cautions)


@dataclass(frozen=True)
class Practical:
    """Probabilities that model `a` is better than `b`, that they hardly differ, and that it is worse.

    Attributes
    ----------
    a : str
        The name of a model.
    b : str
        The name of the other.
    better : float
        The posterior probability that `a` is better by more than the region of practical equivalence.
    alike : float
        That the difference lies in the region; zero where its width is.
    worse : float
        That `a` is worse by more than that.
    """

    a: str
    b: str
    better: float
    alike: float
    worse: float

    @property
    def turned(self) -> Practical:
        """The probabilities with `a` and `b` exchanged."""
        return Practical(self.b, self.a, self.worse, self.alike, self.better)


def practical_t(a: str, b: str, difference: float, error: float, freedom: float, rope: float) -> Practical:
    """The Bayesian correlated t test of a difference of losses: its posterior is a t distribution.

    References
    ----------
    Corani and Benavoli (2015), doi:10.1007/s10994-015-5486-z

    >>> found = practical_t("a", "b", -0.02, 0.01, 9, 0.01)
    >>> round(found.better, 3), round(found.alike, 3), round(found.worse, 3)
    (0.828, 0.164, 0.007)
    """
    from scipy.special import stdtr

    if math.isnan(difference):
        return Practical(a, b, math.nan, math.nan, math.nan)
    if error > 0:
        better, worse = (float(stdtr(freedom, (-rope - side) / error)) for side in (difference, -difference))
    else:
        # All folds have the same difference; one that is zero is shared by both sides.
        better, worse = (
            float(side < -rope) + 0.5 * (side == 0 == rope) for side in (difference, -difference)
        )
    return Practical(a, b, better, max(0.0, 1 - better - worse), worse)
