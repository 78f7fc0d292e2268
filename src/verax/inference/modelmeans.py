"""The interval of the mean loss of one model of a comparison: of a share, of a grade, or of other losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from verax.engines.clusters import sums_by_code
from verax.engines.differences import PairedTally
from verax.inference.estimated import (
    ByKind,
    MeanEstimate,
    ShareEstimate,
    mean_over_groups,
    rows_without_errors,
)
from verax.inference.estimates import Estimate
from verax.inference.intervals import FewGroups, Interval, Resampling, bounded, padded
from verax.inference.shares import CountedShares, between
from verax.inputs.groups import by_kind, in_words

# The part of a unit that was not seen, where answers are right or wrong, and where they are graded between.
_QUARTER, _WHOLE = 0.25, 1.0


@dataclass(frozen=True)
class LossKind:
    """What the losses of a rule are, for the interval of their mean.

    Attributes
    ----------
    kind : str
        "share" of rows that are right or wrong, "grade" of answers to questions, or "loss".
    bounds : tuple of two floats
        The least and the largest loss that is possible.
    copies : bool
        Whether weights are numbers of rows.
    few_groups : float, "unseen" or None
        What is assumed of groups.
    in_time : bool
        Whether rows are in order of time, and not independent.
    between : bool
        Of grades, whether some answers are graded between the least and the largest loss.
    """

    kind: Literal["share", "grade", "loss"]
    bounds: tuple[float, float]
    copies: bool = False
    few_groups: FewGroups = None
    in_time: bool = False
    between: bool = False


def interval_of_model(
    tally: PairedTally, column: int, losses: LossKind, estimate: Estimate, confidence: float
) -> Interval:
    """The interval of the mean of one model, which does not collapse at a bound.

    A share has mid-P limits on effective rows, another mean of losses that cannot be negative gamma limits.
    Means of grades of questions that were repeated, or over groups of questions, have a t interval like
    Wilson's, with a quarter of a unit more, or with a whole one if answers are graded between the bounds:
    where nearly all grades are close together, a collapse that was not seen is not in their variance.
    """
    like = estimate.intervals(confidence)[column]
    mean = float(estimate.mean[column])
    least, most = losses.bounds
    if not like.defined or not least <= mean <= most:
        return like
    if losses.kind == "grade" and not (right_or_wrong(tally, column, most) and not losses.in_time):
        return _of_grade(tally, column, losses, estimate, like)
    if losses.kind in ("share", "grade"):
        known = _share(tally, column, losses, estimate, like)
        return known.interval(confidence) if most == 1 else known.interval(confidence).scaled(most)
    return _of_loss(tally, column, losses, estimate, like).interval(confidence)


def right_or_wrong(tally: PairedTally, column: int, most: float) -> bool:
    """Whether all losses are zero or the greatest one, over rows without groups that count alike."""
    weight, squares = (float(moments.weight.high[0]) for moments in (tally.moments, tally.squares))
    alike = math.isclose(weight * weight, tally.n_positive * squares, rel_tol=1e-9)
    if tally.labels is not None or not alike:
        return False
    share, std = tally.means[column] / most, float(tally.moments.std[1 + column]) / most
    return math.isclose(std * std, share * (1 - share), rel_tol=1e-9, abs_tol=1e-12)


def _of_grade(
    tally: PairedTally, column: int, losses: LossKind, estimate: Estimate, like: Interval
) -> Interval:
    mean = float(estimate.mean[column])
    freedom = float(np.broadcast_to(estimate.freedom, estimate.mean.shape)[column])
    units, caution = freedom + 1, like.caution
    if isinstance(tally.n_groups, int):
        # Degrees of freedom are those of groups that weigh alike, of which there may be far fewer.
        if units < tally.n_groups / 2:
            caution = caution or f"{tally.n_groups:,} groups that count as {units:.2g}"
        units = tally.n_groups
    # Single answers that are not right or wrong are graded between.
    fine = losses.between or tally.labels is None
    variance = padded(
        float(estimate.error[column]) ** 2, mean, units, losses.bounds, _WHOLE if fine else _QUARTER
    )
    interval = bounded(mean, variance, freedom, units, losses.bounds, Resampling(like.confidence))
    return interval.by(interval.method, caution)


def _share(
    tally: PairedTally, column: int, losses: LossKind, estimate: Estimate, like: Interval
) -> ShareEstimate:
    """The mean of losses that are zero or the greatest one, as a share of rows."""
    most = losses.bounds[1]
    share, n = float(estimate.mean[column]) / most, tally.effective_rows(copies=losses.copies)
    if losses.in_time:
        variance = (float(estimate.error[column]) / most) ** 2
        freedom = np.broadcast_to(estimate.freedom, estimate.mean.shape)[column]
        known = bool(between(share)) and variance > 0
        rows = share * (1 - share) / variance if known else float(freedom) + 1
        shares = CountedShares(np.asarray(share), np.asarray(rows), np.asarray(freedom))
        return ShareEstimate(shares, " in order of time", caution=like.caution)
    variance = tally.row_variances(copies=losses.copies)[column] / most**2
    rows = tally.weight if losses.copies else tally.n_positive
    of_rows = ShareEstimate.of_rows(share, n, float(variance) * (1 - 1 / rows), tally.n_positive)
    count = tally.n_groups
    if count is None:
        return of_rows
    kinds = [(sums / most, weight) for sums, weight in _by_kind(tally, column)]
    return ShareEstimate.over_groups(kinds, float(of_rows.shares.n), count, losses.few_groups)


def _of_loss(
    tally: PairedTally, column: int, losses: LossKind, estimate: Estimate, like: Interval
) -> MeanEstimate:
    """The mean of losses that are no share, with its variance."""
    mean, n = float(estimate.mean[column]), tally.effective_rows(copies=losses.copies)
    variance = float(estimate.error[column]) ** 2
    freedom = float(np.broadcast_to(estimate.freedom, estimate.mean.shape)[column])
    if tally.n_groups is None:
        over = " in order of time" if losses.in_time else ""
        return MeanEstimate(mean, variance, freedom, losses.bounds, n, over, like.caution)
    kinds = _by_kind(tally, column)
    of_rows = float(tally.row_variances(copies=losses.copies)[column])
    variance, freedom = mean_over_groups(kinds, mean, of_rows)
    if mean in losses.bounds:
        n = rows_without_errors([weight for _, weight in kinds], n)
    over = f" over {in_words(tally.n_groups)}"
    return MeanEstimate(mean, variance, freedom, losses.bounds, n, over, like.caution)


def _by_kind(tally: PairedTally, column: int) -> ByKind:
    """The sums of a column and the weights of groups, of each kind there is and then of their pairs."""
    assert tally.labels is not None
    assert tally.cluster_sums is not None
    sums = tally.cluster_sums[:, [1 + column, 0]]
    by_label = [sums_by_code(code, sums) for _, code in by_kind(tally.labels)]
    return [(kind[:, 0], kind[:, 1]) for kind in (*by_label, sums)]
