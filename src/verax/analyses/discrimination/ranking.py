"""Ranking of the rows by forecasts: ROC AUC, average precision and the c-index of ordered classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack, get_args

from verax.analyses.binary import event_in_words
from verax.analyses.discrimination.analysis import RankedHandle, rank_events, rank_order
from verax.analyses.discrimination.counts import Estimated
from verax.analyses.discrimination.result import RankPart, RankScore, RankScores
from verax.analyses.units import IndependentUnits
from verax.common.checks import check_choice, check_flag
from verax.errors import InputError, join
from verax.inference.intervals import Interval, Resampling, WeightsAre, few
from verax.inputs.handles import Handle
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads

Average = Literal["macro", "weighted"]
Pairs = Literal["pairs", "classes"]

# Pairs of more classes than this are not looked at one by one.
MOST_PAIRED = 100
AREA, PRECISION, _C_INDEX = "ROC AUC", "average precision", "c-index"


# ---- the three questions -----------------------------------------------------------------------


@reads
def roc_auc(
    y: object,
    p: object = None,
    *,
    ordered: bool = False,
    average: Average = "macro",
    confidence: float = 0.95,
    weights_are: WeightsAre = "importance",
    **read: Unpack[RowOptions],
) -> RankScore | RankScores:
    """Area under the ROC curve: how often an event was given more probability where it happened.

    From 0 to 1, higher is better; 0.5 is chance. The share of pairs of rows, one with the event and one
    without, in which the one with it has the larger probability; ties count half. It looks at the order of
    the forecasts only and says nothing about calibration.

    Intervals come from DeLong's variance, with groups from sums over these. Numbers are scikit-learn's
    `roc_auc_score(multi_class="ovr")`, with `sample_weight`.

    Parameters
    ----------
    y
        Where these have more than 2^20 distinct forecasts, values come from bins of them, and `within` bounds
        the error.
    p : array_like of shape (N, K) or (N,), or mapping of str to these, optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1 is
        enough. Or the forecasts of several models, by name, for paired differences.
    ordered : bool, default False
        Whether the events are thresholds, Y > class, instead of classes. Two classes have one event, class
        1.
    average : {"macro", "weighted"}, default "macro"
        How events are averaged: each the same, or by how often it happened. An event that always or never
        happened has no AUC and is left out.
    confidence
    weights_are
    **read

    Returns
    -------
    RankScore or RankScores
        The AUC with its interval; `RankScores` for several models.

    See Also
    --------
    c_index : The same for ordered classes.
    average_precision : The area under the precision-recall curve.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson (1988), doi:10.2307/2531595; Obuchowski (1997), doi:10.2307/2533958,
    for groups

    Examples
    --------
    >>> import verax as vx
    >>> score = vx.roc_auc([0, 0, 1, 1, 1], [0.1, 0.4, 0.35, 0.8, 0.9])
    >>> round(score.value, 4)
    0.8333
    """
    plan = _checked(ordered, average, confidence, weights_are)
    handle = open_rows(y, p, ordered=ordered, dense=True, **read)
    return score_events(AREA, handle, plan, ordered=ordered, average=average)


@reads
def average_precision(
    y: object,
    p: object = None,
    *,
    ordered: bool = False,
    average: Average = "macro",
    confidence: float = 0.95,
    weights_are: WeightsAre = "importance",
    **read: Unpack[RowOptions],
) -> RankScore | RankScores:
    """Average precision: the area under the precision-recall curve, as a sum of steps. Higher is better.

    The mean, over the rows in which an event happened, of its frequency among all rows that were given at
    least the same probability. Chance is the frequency of the event; nothing is interpolated.

    Intervals come from the influence function. Numbers are scikit-learn's `average_precision_score`, with
    `sample_weight`; for several classes it counts a class that never happened as 0.

    Parameters
    ----------
    y
        Where these have more than 2^20 distinct forecasts, values come from bins of them, and `within` bounds
        the error.
    p : array_like of shape (N, K) or (N,), or mapping of str to these, optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1 is
        enough. Or the forecasts of several models, by name, for paired differences.
    ordered : bool, default False
        Whether the events are thresholds, Y > class, instead of classes. Two classes have one event, class
        1.
    average : {"macro", "weighted"}, default "macro"
        How events are averaged: each the same, or by how often it happened. An event that never happened is
        left out.
    confidence
    weights_are
    **read

    Returns
    -------
    RankScore or RankScores
        The average precision with its interval; `RankScores` for several models.

    Examples
    --------
    >>> import verax as vx
    >>> round(vx.average_precision([0, 0, 1, 1, 1], [0.1, 0.4, 0.35, 0.8, 0.9]).value, 4)
    0.9167
    """
    plan = _checked(ordered, average, confidence, weights_are)
    handle = open_rows(y, p, ordered=ordered, dense=True, **read)
    return score_events(PRECISION, handle, plan, ordered=ordered, average=average)


@reads
def c_index(
    y: object,
    p: object = None,
    *,
    average: Pairs = "pairs",
    confidence: float = 0.95,
    weights_are: WeightsAre = "importance",
    **read: Unpack[RowOptions],
) -> RankScore | RankScores:
    """The c-index of ordered classes: how often the higher outcome had the higher forecast.

    From 0 to 1, higher is better; 0.5 is chance. Forecasts are ranked by their mean class, the sum of k p_k.
    Of two rows with different outcomes, the one with the higher outcome should rank higher; ties count half.
    For two classes it is the ROC AUC.

    Parameters
    ----------
    y
        Where these have more than 2^20 distinct forecasts, values come from bins of them, and `within` bounds
        the error.
    p : array_like of shape (N, K) or (N,), or mapping of str to these, optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1 is
        enough. Or the forecasts of several models, by name, for paired differences.
    average : {"pairs", "classes"}, default "pairs"
        "pairs": all pairs of rows count the same (the generalised c-index). "classes": the mean over all
        pairs of classes, so that rare ones count as much as frequent ones (the ordinal c-index of Van
        Calster et al.).
    confidence
    weights_are
    **read

    Returns
    -------
    RankScore or RankScores
        The c-index with its interval; `RankScores` for several models.

    References
    ----------
    Harrell et al. (1982), doi:10.1001/jama.1982.03320430047030; Van Calster, Van Belle, Vergouwe and
    Steyerberg (2012), doi:10.1002/bimj.201200026

    Examples
    --------
    >>> import verax as vx
    >>> p = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.1, 0.6, 0.3], [0.5, 0.1, 0.4]]
    >>> round(vx.c_index([0, 1, 2, 2], p).value, 4)
    0.8
    """
    check_choice("average", average, get_args(Pairs))
    plan = Resampling.checked(confidence, 0, 0, or_none=True, weights_are=weights_are)
    handle = open_rows(y, p, ordered=True, dense=True, **read)
    if average == "classes" and handle.n_classes > MOST_PAIRED:
        raise InputError(
            f"must be 'pairs' for more than {MOST_PAIRED} classes",
            argument="average",
            found=f"there are {handle.n_classes}",
            values=[average],
        )
    return score_order(handle, plan, average)


# ---- results -----------------------------------------------------------------------------------


def score_order(handle: Handle, plan: Resampling, average: Pairs = "pairs") -> RankScore | RankScores:
    """The c-index of every model."""
    ranked, present = rank_order(handle, by_classes=average == "classes", copies=plan.copies)
    missing = [label for k, label in enumerate(handle.class_names) if k not in present]
    notes = [f"Never happened, and left out: {_listed(missing)}."] if missing and average == "classes" else []
    if len(present) < 2:
        notes = ["All outcomes are the same."]
    how = "all pairs of rows" if average == "pairs" or len(present) < 2 else "mean over {} pairs of classes"
    return scores_of(_C_INDEX, ranked, how, plan.confidence, notes, several=handle.several)


def _checked(ordered: bool, average: Average, confidence: float, weights_are: WeightsAre) -> Resampling:
    check_choice("average", average, get_args(Average))
    plan = Resampling.checked(confidence, 0, 0, or_none=True, weights_are=weights_are)
    check_flag("ordered", ordered)
    return plan


def score_events(
    metric: str, handle: Handle, plan: Resampling, *, ordered: bool, average: Average = "macro"
) -> RankScore | RankScores:
    """The area under the ROC curve of every event of every model, or the average precision."""
    how = {"precise": metric == PRECISION, "weighted": average == "weighted", "copies": plan.copies}
    ranked = rank_events(handle, ordered=ordered, **how)
    return scores_of(metric, ranked, over_events(average, ordered), plan.confidence, several=handle.several)


def over_events(average: Average, ordered: bool) -> str:
    """How the events are averaged, with a place for their number."""
    return f"{average} average over {{}} {'thresholds' if ordered else 'classes'}"


def scores_of(
    metric: str,
    ranked: RankedHandle,
    how: str,
    confidence: float,
    notes: Sequence[str] | None = None,
    *,
    several: bool,
) -> RankScore | RankScores:
    """The scores of all models; `how` parts make the whole, with a place for their number."""
    scores = {}
    ordered, units, roots = ranked.rows.ordered, ranked.means.units, ranked.roots()
    for m, (name, model) in enumerate(ranked.models.items()):
        variances = ranked.means.covariance[:, m, m]
        parts = tuple(
            RankPart(label, part.value, _interval(part, units, float(variance), confidence))
            for label, part, variance in zip(model.names, model.parts, variances, strict=False)
        )
        only = len(model.names) == 1 and metric != _C_INDEX
        average = event_in_words(model.names[0], ordered=ordered) if only else how.format(len(model.known))
        said = _undefined(model.names, model.known) if notes is None else notes
        interval = _interval(model.whole, units, float(variances[-1]), confidence)
        scores[name] = RankScore(
            metric,
            model.whole.value,
            interval,
            parts,
            average,
            tuple(said),
            ranked.rows,
            roots[m],
            model.within,
        )
    skipped = ranked.means.summaries.skipped
    if several:
        return RankScores(scores).with_skipped(skipped)
    return next(iter(scores.values())).with_skipped(skipped)


def _interval(part: Estimated, units: IndependentUnits, variance: float, confidence: float) -> Interval:
    rare = few(part.n, "row", "rows")
    caution = f"{rare} of the rarer outcome" if rare else ""
    return units.interval(part.value, variance, confidence, bounds=(0.0, 1.0), n=part.n, caution=caution)


def _undefined(names: Sequence[str], known: Sequence[int]) -> list[str]:
    """A note on events that have no value."""
    missing = [name for i, name in enumerate(names) if i not in known]
    return [f"Undefined, and left out: {_listed(missing)}."] if missing else []


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:6])}, ..." if names[6:] else join(names)
