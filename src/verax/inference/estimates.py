"""How sure one can be of a mean difference: standard errors, bootstrap, permutation, corrections."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from verax.common.checks import check_count
from verax.engines.clusters import leave_one_out, shapes_over, sums_by_label
from verax.engines.differences import PairedTally, with_differences
from verax.engines.pieces import all_pairs
from verax.engines.sums import relative
from verax.errors import InputError, passing, show
from verax.inference.bootstrap import block_multiplicities, bootstrap_interval, multiplicities, widened
from verax.inference.intervals import (
    Interval,
    Resampling,
    bent,
    few,
    few_groups,
    skewed,
    straightened,
    t_quantile,
    unequal,
)
from verax.inference.series import LongRun, Memory
from verax.inputs.arrays import Floats
from verax.inputs.groups import Groups, is_two_way

# Degrees of freedom are zero up to rounding.
_NONE = 1e-9
# Differences of means that are smaller, relative to the largest mean, are rounding.
_ROUNDING = 1e-13

Method = Literal["moments", "bootstrap", "permutation"]


@dataclass(frozen=True)
class Units:
    """What is independent: rows, groups of rows, or blocks of consecutive rows.

    Weights are relative: extreme ones are divided by a power of two. `lags` is how far rows in order of
    time depend on each other; None to estimate it.
    """

    kind: Literal["rows", "groups", "blocks"]
    weights: Floats | None = None
    codes: Any = None
    lags: int | None = None
    two_way: bool = False

    @classmethod
    def of(
        cls,
        n_rows: int,
        weights: Floats | None,
        groups: Groups | None,
        time_ordered: bool,
        lags: int | None,
    ) -> Units:
        """What the arguments of a comparison say about its rows."""
        if lags is not None and not time_ordered:
            raise InputError(
                "must be left out unless rows are in order of time",
                argument="lags",
                values=[lags],
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
        return cls("blocks", lags=_lags(lags, n_rows))

    def describe(self, method: Method) -> str:
        lags = "" if self.lags is None else f", {self.lags} lags"
        what = {
            "rows": "independent rows",
            "groups": "independent groups" + (" of two kinds" if self.two_way else ""),
            "blocks": f"rows in order of time{lags}",
        }[self.kind]
        how = {
            "moments": "Diebold-Mariano test" if self.kind == "blocks" else "paired t test",
            "bootstrap": "bootstrap",
            "permutation": "permutation test",
        }[method]
        return f"{how}, {what}"


def _lags(lags: int | None, n_rows: int) -> int | None:
    """The number of lags asked for, checked."""
    if lags is None:
        return None
    check_count("lags", lags, least=0)
    if lags >= n_rows:
        raise InputError(
            f"must be below the number of rows, {n_rows}, not {show(lags)}", argument="lags", values=[lags]
        )
    return int(lags)


@dataclass(frozen=True)
class Estimate:
    """Means of all columns (models, then pairs of models) with standard errors and degrees of freedom.

    The degrees of freedom are one number for all columns, or one for each. `cautions` says for each column
    why its interval cannot be trusted; None where the number of units does. `skewness` is that of the means
    over groups.
    """

    mean: Floats
    error: Floats
    freedom: float | Floats
    cautions: tuple[str, ...] | None = None
    skewness: Floats | float = 0.0

    @classmethod
    def of(cls, tally: PairedTally, losses: Floats, units: Units, *, copies: bool = False) -> Estimate:
        """From the sums over rows; with `copies` weights are numbers of rows."""
        if units.kind == "blocks":
            series = LongRun.of(with_differences(losses), units.lags)
            return cls(tally.means, series.error, series.freedom, series.cautions)
        error, freedom = tally.standard_errors(copies=copies)
        shapes = tally.shapes()
        if shapes is None or tally.n_groups is None:
            return cls(tally.means, error, freedom, _cautions_of_rows(tally, float(np.max(freedom)) + 1))
        caution = few_groups(tally.n_groups)
        return cls(
            tally.means, error, shapes[0], (caution,) * len(tally.means) if caution else None, shapes[1]
        )

    def like(
        self, column: int, mean: float, error: float, freedom: float | None = None, skewness: float = 0.0
    ) -> Estimate:
        """An estimate with the caution of one column, and with its degrees of freedom unless given."""
        freedom = np.broadcast_to(self.freedom, self.mean.shape)[column] if freedom is None else freedom
        caution = None if self.cautions is None else (self.cautions[column],)
        return Estimate(np.array([mean]), np.array([error]), float(freedom), caution, skewness)

    def intervals(self, confidence: float) -> list[Interval]:
        """The interval of every column, by Student's t distribution."""
        freedoms = np.asarray(self.freedom, float)
        known = {freedom: t_quantile(freedom, confidence) for freedom in np.unique(freedoms).tolist()}
        with np.errstate(invalid="ignore"):
            quantile = np.vectorize(lambda freedom: known.get(freedom, np.nan), otypes=[float])(freedoms)
            skewness = np.broadcast_to(self.skewness, self.mean.shape)
            low, high = (self.mean - self.error * bent(t, skewness) for t in (quantile, -quantile))
        freedom = np.broadcast_to(self.freedom, self.mean.shape).tolist()
        cautions = self.cautions or [few(df + 1, "independent unit", "independent units") for df in freedom]
        columns = zip(self.mean.tolist(), low.tolist(), high.tolist(), freedom, cautions, strict=True)
        return [_t_interval(*column, confidence) for column in columns]

    def p_values(self) -> Floats:
        from scipy.special import stdtr

        with np.errstate(invalid="ignore", divide="ignore"):
            t = straightened(self.mean / self.error, np.asarray(self.skewness))
        # Models that agree in every row have a difference and a standard error of zero, but for rounding.
        rounding = _ROUNDING * np.abs(self.mean[np.isfinite(self.mean)]).max(initial=0.0)
        t = np.where((self.error <= rounding) & (np.abs(self.mean) <= rounding), 0.0, t)
        return np.asarray(2 * stdtr(self.freedom, -np.abs(t)))


def _cautions_of_rows(tally: PairedTally, n: float) -> tuple[str, ...]:
    """Why intervals over `n` rows in effect cannot be trusted: those of models, then of their differences."""
    shared = few(n, "independent unit", "independent units") or unequal(n, tally.n_positive)
    moments = zip(tally.means[: tally.n_models], tally.moments.std[1:], strict=False)
    own = [shared or skewed(n, float(mean), float(std)) for mean, std in moments]
    return (*own, *(own[a] or own[b] for a, b in (all_pairs(tally.n_models) if tally.pairs else ())))


def _t_interval(
    mean: float, low: float, high: float, freedom: float, caution: str, confidence: float
) -> Interval:
    if not math.isfinite(mean):
        return Interval.undefined("some losses are infinite", method="t", confidence=confidence)
    if not freedom > _NONE or math.isnan(high - low):
        return Interval.undefined("there is only one unit to learn from", method="t", confidence=confidence)
    return Interval(low, high, method="t", confidence=confidence, caution=caution)


def bootstrap_intervals(draws: Floats, estimate: Estimate, confidence: float) -> list[Interval]:
    """The percentile interval of every column of bootstrap means."""
    cautions = estimate.cautions or [""] * draws.shape[1]
    return [
        bootstrap_interval(column, confidence, "bootstrap", caution)
        for column, caution in zip(draws.T, cautions, strict=True)
    ]


def bootstrap_means(losses: Floats, units: Units, plan: Resampling) -> Floats:
    """Bootstrap means of all columns, (B, C), drawing rows, groups or blocks.

    Those of groups and of blocks are spread as Student's t distribution is, because they are few; those of
    groups also as skewed effects of groups make the limits of a mean (`Estimate`).
    """
    columns = with_differences(losses)
    if units.kind == "blocks":
        return _block_means(columns, units.lags, plan)
    weight = np.ones(len(columns)) if units.weights is None else units.weights
    columns = weight[:, None] * columns
    if units.kind == "groups":
        labels, sums = sums_by_label(units.codes, np.column_stack([weight, columns]))
        weight, columns = sums[:, 0], sums[:, 1:]
    draws = multiplicities(len(columns), None, plan.replicates, plan.seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.array([(drawn @ columns) / (drawn @ weight) for drawn in draws])
    if units.kind == "rows":
        return means
    variance, freedom = leave_one_out(weight, columns)
    mean, error = columns.sum(axis=0) / weight.sum(), np.sqrt(variance)
    means = widened(means, mean, error, freedom, plan.confidence)
    return _bent_draws(means, mean, error, shapes_over(labels, sums)[1])


def _bent_draws(draws: Floats, mean: Floats, error: Floats, skewness: Floats) -> Floats:
    """Bootstrap means moved so that their quantiles are the limits of a mean of skewed values.

    A mean and its standard error move together, which resampled means do not show. Their own skewness is
    removed, and they are spread as the limits by Hall's transformation are.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        t = (draws - mean) / error
        furthest = 3 / np.maximum(np.abs(skewness), _ROUNDING)
        t = np.clip(t, -furthest, furthest)
        moved = mean - error * bent(skewness * (t * t - 1) / 6 - t, skewness)
    return np.where((error > 0) & np.isfinite(moved), moved, draws)


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


def bootstrap_p(draws: Floats, mean: Floats) -> Floats:
    """Two-sided p-values: twice the share of the resampled differences on the rarer side of zero."""
    one_sided = np.minimum((draws <= 0).sum(axis=0), (draws >= 0).sum(axis=0))
    p = np.minimum((1 + 2 * one_sided) / (1 + len(draws)), 1.0)
    return np.where(np.isnan(mean), np.nan, p)


def permutation_p(losses: Floats, units: Units, n: int, seed: int) -> Floats:
    """Two-sided p-values from swapping two models at random in each independent unit.

    Effects of groups may be skewed: means over groups are compared as t statistics that allow for it.
    """
    columns = with_differences(losses)
    weight = np.ones(len(columns)) if units.weights is None else units.weights
    columns = weight[:, None] * columns
    unit, more = np.arange(len(columns)), np.ones(columns.shape[1])
    if units.kind == "groups":
        unit = units.codes
    elif units.kind == "blocks":
        memory = Memory.of(columns)
        length = -(-len(columns) // memory.blocks(units.lags))
        unit, more = unit // length, memory.between_blocks(length, units.lags)
    _, sums = sums_by_label(unit, np.column_stack([weight, columns]))
    weight, columns = sums[:, 0], sums[:, 1:]

    def statistic(signs: Floats) -> Floats:
        return _straightened(signs, weight, columns) if units.kind == "groups" else np.abs(signs @ columns)

    observed = statistic(np.ones((1, len(weight))))[0]
    rng = np.random.default_rng(seed)
    extreme = np.zeros(columns.shape[1])
    # Sums that are equal but for rounding count as ties.
    limit = observed * (1 - 1e-9)
    for start in range(0, n, 64):
        signs = rng.choice([-1.0, 1.0], size=(min(64, n - start), len(columns)))
        extreme += (more * statistic(signs) >= limit).sum(axis=0)
    return np.where(np.isnan(observed), np.nan, (1 + extreme) / (1 + n))


def _straightened(signs: Floats, weight: Floats, columns: Floats) -> Floats:
    """The size of the t statistic of a mean over groups with these signs, straightened, (S, C)."""
    w, d = weight[:, None] / weight.sum(), columns / weight.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        # Sums of powers of d - w * mean, in which squares of signs are one.
        mean = signs @ d
        mixed = signs @ (w * d)
        variance = (d * d).sum(axis=0) - 2 * mean * mixed + mean**2 * (w * w).sum()
        third = signs @ d**3 - 3 * mean * (w * d * d).sum(axis=0) + 3 * mean**2 * (signs @ (w * w * d))
        third -= mean**3 * (w**3).sum()
        variance = np.maximum(variance, 0.0)
        skewness = np.clip(np.nan_to_num(third / variance**1.5, posinf=0.0, neginf=0.0), -1.0, 1.0)
        t = np.abs(straightened(mean / np.sqrt(variance), skewness))
    # Groups that all agree have no variance; those that agree on zero no difference either.
    return np.where(np.isnan(mean), np.nan, np.where(mean == 0, 0.0, t))


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
