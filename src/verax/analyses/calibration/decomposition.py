"""Where a score comes from: miscalibration, discrimination and uncertainty, by isotonic recalibration.

The events of a forecast (each class, or each threshold) are recalibrated one by one. The results need
not be a forecast: recalibrated classes do not sum to one, and recalibrated thresholds cross. So the
components are returned, never the recalibrated rows.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Unpack

import numpy as np

from verax.analyses.calibration.components import Components, Decomposition, components_of
from verax.analyses.calibration.events import Event, Recalibration, n_events, split, unsorted_events
from verax.analyses.calibration.optimism import Measured, Sampling
from verax.analyses.table import RowTable
from verax.common.memory import give_back
from verax.errors import InputError
from verax.inference.intervals import Resampling, WeightsAre
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Handle
from verax.inputs.options import Reading, reads
from verax.inputs.rows import pair
from verax.kernels.threads import in_order, n_cores
from verax.scores.base import Rule
from verax.scores.metrics import needs_order
from verax.scores.registry import default_rules, parse

# From this many rows on, threads share the events and their refits.
_MANY = 2**16


@reads
def decompose(
    y: object,
    p: object = None,
    *,
    rule: Rule | str | None = None,
    ordered: bool = False,
    bootstrap: int = 0,
    seed: int = 0,
    confidence: float = 0.95,
    weights_are: WeightsAre = "importance",
    **read: Unpack[Reading],
) -> Decomposition:
    """Split a mean score: score = miscalibration - discrimination + uncertainty.

    Every class against the rest (`brier`, `log`) or every threshold (`rps`, `ranked_log`) is a
    binary event. Its forecasts are recalibrated by isotonic regression, those that are equal pooled
    first. *Miscalibration* is what recalibrating gains, *discrimination* what the recalibrated
    forecast gains on the constant one, *uncertainty* the score of that constant, the frequency of the
    event. None of the three is negative; low miscalibration and high discrimination are good.

    The log score of three and more classes looks at one class only and has no such parts. What is
    decomposed then is the sum of the K binary log scores, and it is called "one-vs-rest log".

    Top lists are decomposed by `brier`, for the events that a list defines: all listed classes together, and
    "not listed" (`ListDecomposition`). It leaves out which of the unlisted classes happened, and says how
    much of the padded score that is.

    An isotonic fit follows noise, so miscalibration and discrimination are estimated too large, and a
    calibrated forecast shows some miscalibration, too. Intervals and `corrected` estimates are for what many
    more rows would show, and `p_value` says how often a calibrated forecast would show as much.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K), or Handle
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows. Or predictions
        that `scan` has opened, in place of both `y` and `p`. Where these have more than 2^20 distinct
        forecasts, the fit is made to bins of them, and `within` bounds what that takes off miscalibration
        and discrimination. Intervals take another pass over the rows, so saved summaries have none.
    p : array_like of shape (N, K) or (N,), or TopLists, optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1
        is enough.
    rule : Rule or str, optional
        `brier`, `rps` (any scale), `log` (any base) or `ranked_log`; by default `brier`, or `rps` if
        `ordered`.
    ordered : bool, default False
        Whether the classes have an order.
    bootstrap : int, default 0
        Number of random draws for the p-value of calibration; 0 for no p-value and no intervals. The
        intervals take from 20 to 60 more draws, which measure how far the isotonic fit follows noise.
    seed : int, default 0
        Random seed.
    confidence : float, default 0.95
        Confidence level of the intervals.
    weights_are : {"importance", "counts"}, default "importance"
        What weights are. "importance": how much each row counts; only their ratios matter. "counts":
        a row of weight 3 is three rows. With "counts" every number is that of the repeated rows; for
        intervals the weights must be whole numbers, because the rows are repeated.
    **read

    Returns
    -------
    Decomposition
        The components of the score and of every event; a `ListDecomposition` for top lists.

    See Also
    --------
    reliability : The curves behind it.
    recalibrate : Remove the miscalibration.

    References
    ----------
    Dimitriadis, Gneiting and Jordan (2021), doi:10.1073/pnas.2016191118

    Examples
    --------
    >>> import verax as vx
    >>> y, p = [1, 0, 1, 1, 0, 0], [0.9, 0.6, 0.6, 0.3, 0.3, 0.1]
    >>> vx.decompose(y, p, rule="rps", classes=["dry", "wet"])
    verax decomposition of rps: 6 rows, 2 ordered classes
               score  miscalibration  discrimination  uncertainty
    rps       0.1867          0.0200          0.0833       0.2500
    y <= dry  0.1867          0.0200          0.0833       0.2500
    score = miscalibration - discrimination + uncertainty; rps is the mean over the thresholds.
    """
    rule = parse(default_rules(ordered=ordered)[0] if rule is None else rule)
    ordered = needs_order([rule], ordered=ordered)
    plan = Resampling.checked(confidence, bootstrap, seed, least=2, or_none=True, weights_are=weights_are)
    if isinstance(y, Handle):
        handle = y.in_order() if ordered else y
        # Most callers have distributions in memory, and need not wait for what the others import.
        if handle.lists:
            from verax.analyses.calibration.liststreams import decomposition_of_list_handle

            return decomposition_of_list_handle(handle, rule, plan)
        from verax.analyses.calibration.streams import decomposition_of_handle

        return decomposition_of_handle(handle, rule, plan)
    rows = pair(y, p, ordered=ordered, **read)
    if isinstance(rows, Forecasts):
        return decomposition_of(rows, rule, plan)
    from verax.analyses.calibration.mass import decomposition_of_lists

    return decomposition_of_lists(rows, rule, plan)


def decomposition_of(
    forecasts: Forecasts,
    rule: Rule,
    plan: Resampling,
    also: Callable[[int, Event, Recalibration, RowTable], None] | None = None,
) -> Decomposition:
    """The decomposition of forecasts.

    Rows are sorted and fitted once for every event, and so `also` may look at each: it is called with the
    number of the event, the event, its fit and its rows, one event at a time.
    """
    how = split(rule, forecasts.n_classes)
    rows = RowTable.of(forecasts, [], decided=False)
    if plan.copies and plan.replicates and rows.groups is None:
        rows = rows.repeated()
    # Two events at a time, and none that waits: more would take much memory.
    threads = min(2, n_cores()) if len(rows.y) >= _MANY and n_events(how, rows.n_classes) > 1 else 1
    sampling = _sampling(rows, plan, threads) if plan.replicates else None
    fitting = Lock()

    def part_of(numbered: tuple[int, Callable[[], Event]]) -> tuple[Components, Measured | None]:
        i, event = numbered[0], numbered[1]()
        # Not by two threads at once, which would take much memory.
        with fitting:
            fit = event.fit(rows.weights)
            observed = event.components_of(fit, rows.weights)
            if also is not None:
                also(i, event, fit, rows)
            del fit
        if threads > 1:
            give_back()
        found = None if sampling is None else sampling.measure(event)
        return components_of(event.name, observed, found, sampling, plan), found

    numbered = enumerate(unsorted_events(forecasts, rows, how))
    parts: list[Components] = []
    total: Measured | None = None
    for part, found in in_order(part_of, numbered, threads, 0) if threads > 1 else map(part_of, numbered):
        parts.append(part)
        if total is None or found is None:
            total = found
        else:
            total += found
    whole = how.factor * np.sum([part.observed for part in parts], axis=0)
    total = None if total is None else total.scaled(how.factor)
    return Decomposition(
        rule=repr(rule),
        whole=components_of(how.quantity, whole, total, sampling, plan),
        parts=tuple(parts),
        total=how.total,
        thresholds=how.thresholds,
        n_rows=forecasts.n_rows,
        n_classes=forecasts.n_classes,
        n_groups=None if forecasts.groups is None else forecasts.groups.one_way_count(forecasts.weights),
        resampling=plan,
    )


def _sampling(rows: RowTable, plan: Resampling, at_once: int) -> Sampling:
    if rows.groups is not None and rows.groups.one_way_count(rows.weights) < 2:
        raise InputError(
            "must name at least two groups for intervals",
            argument="groups",
            values=rows.groups.labels.tolist(),
        )
    threads = 1 if len(rows.y) < _MANY else max(1, n_cores() // at_once)
    return Sampling.of(len(rows.y), rows.weights, rows.groups, plan.replicates, plan.seed, threads)
