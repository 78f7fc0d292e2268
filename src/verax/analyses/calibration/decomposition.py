"""Where a score comes from: miscalibration, discrimination and uncertainty, by isotonic recalibration.

The events of a forecast (each class, or each threshold) are recalibrated one by one. The results need
not be a forecast: recalibrated classes do not sum to one, and recalibrated thresholds cross. So the
components are returned, never the recalibrated rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any, Unpack

import numpy as np

from verax.analyses.calibration.accuracy import Accuracy, accuracy_of
from verax.analyses.calibration.components import Components, Decomposition
from verax.analyses.calibration.draws import Drawn, draws_of
from verax.analyses.calibration.event_recipe import EventRecipe
from verax.analyses.calibration.events import Split, event_names, split
from verax.analyses.calibration.eventsums import EventSums, SummedEvent
from verax.analyses.calibration.list_events import LISTED, UNLISTED, split_of_lists
from verax.analyses.calibration.list_results import ListDecomposition
from verax.analyses.calibration.listsums import ListEventRecipe, ListSums
from verax.analyses.calibration.sources import EventSource, ListSource, RowEvents
from verax.analyses.unitsums import check_weight
from verax.common.memory import give_back
from verax.inference.intervals import Resampling, WeightsAre
from verax.inputs.handles import Handle, Recipe
from verax.inputs.memory import open_rows
from verax.inputs.options import Reading, reads
from verax.kernels.threads import in_order, n_cores
from verax.scores.base import Rule
from verax.scores.metrics import needs_order
from verax.scores.registry import default_rules, parse

# From this many rows on, threads share the events and their refits.
_MANY = 2**16
# From this many rows on, memory that a fit leaves behind is worth the time of fetching it again.
_LARGE = 2**19


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

    Every class against the rest (`brier`, `log_score`) or every threshold (`rps`, `ranked_log`) is a
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
    calibrated forecast also shows some miscalibration. Intervals and `corrected` estimates are for what many
    more rows would show, and `p_value` says how often a calibrated forecast would show as much.

    Parameters
    ----------
    y
        Where these have more than 2^20 distinct forecasts, the fit is made to bins of them, and `within`
        bounds what that takes off miscalibration and discrimination. Intervals take another pass over the
        rows, so saved summaries have none.
    p
    rule : Rule or str, optional
        `brier`, `rps` (any scale), `log_score` (any base) or `ranked_log`; by default `brier`, or `rps` if
        `ordered`.
    ordered
    bootstrap : int, default 0
        Number of random draws for the p-value of calibration; 0 for no p-value and no intervals. The
        intervals take from 20 to 60 more draws, which measure how far the isotonic fit follows noise.
    seed
    confidence
    weights_are
        With "counts" every number is that of the repeated rows; for intervals the weights must be whole
        numbers, because the rows are repeated.
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
    handle = open_rows(y, p, ordered=ordered, single=True, **read)
    model = handle.one_model()
    found = handle.summarise({"events": event_recipe(handle, model, rule)})
    known = accuracy_by(handle, model, rule, found["events"], plan)
    result = read_decomposition(found["events"], rule, handle, plan, known)
    return replace(result, n_rows=found.n_rows).with_skipped(found.skipped)


def event_recipe(handle: Handle, model: str, rule: Rule, *, with_top: bool = True) -> Recipe[Any]:
    """What the score of a model is decomposed from; rules that cannot be decomposed are refused.

    Others may ask for the same sums, and look at the event about the most likely class, unless that is left
    out.
    """
    if model in handle.listed:
        split_of_lists(rule, handle.n_classes)
        return ListEventRecipe(model, scored=True)
    how = split(rule, handle.n_classes)
    return EventRecipe(model, how.thresholds, how.binary, with_top=with_top)


@dataclass(frozen=True)
class _Scored:
    """The events that a score is made of, as they were summed.

    Attributes
    ----------
    how : Split
        How they add up.
    sums : tuple of EventSums
        Their sums, in which they are one after the other.
    names : tuple of tuple of str
        The names of the events in each of the sums.
    times : tuple of float
        How many elements of each event a row has on average.
    source : callable
        Where the events of a model come from in another pass.
    made : callable
        Makes the decomposition, from what both kinds of it have.
    """

    how: Split
    sums: tuple[EventSums, ...]
    names: tuple[tuple[str, ...], ...]
    times: tuple[float, ...]
    source: Callable[[str], EventSource]
    made: Callable[..., Decomposition]

    @classmethod
    def of(cls, found: EventSums | ListSums, rule: Rule, handle: Handle) -> _Scored:
        """The classes or thresholds of distributions, or the events of lists."""
        if isinstance(found, ListSums):
            return cls._of_lists(found, rule, handle.n_classes)
        if found.rows is None:
            check_weight(float(found.weight.high[0]))
        how = split(rule, handle.n_classes)
        names = tuple(event_names(handle.class_names, how))
        made = partial(Decomposition, n_rows=found.n_rows if found.rows is None else found.rows.n_rows)
        return cls(how, (found,), (names,), (1.0,) * len(names), partial(RowEvents, how=how), made)

    @classmethod
    def _of_lists(cls, found: ListSums, rule: Rule, n_classes: int) -> _Scored:
        how = split_of_lists(rule, n_classes)
        weight, length, left_out = found.totals.high.tolist()
        check_weight(weight)
        times = {LISTED: length / weight, UNLISTED: 1.0}
        names = tuple(name for name in times if name in found.events)
        made = partial(
            ListDecomposition,
            n_rows=found.n_lists,
            left_out=how.factor * left_out / weight,
            mean_length=times[LISTED],
            n_invalid=found.n_invalid,
        )
        return cls(
            how,
            tuple(found.events[name] for name in names),
            tuple((name,) for name in names),
            tuple(times[name] for name in names),
            partial(ListSource, names=names, scored=True),
            made,
        )

    def each(self) -> Iterator[Callable[[], SummedEvent]]:
        """What gives each event, one after the other."""
        for sums, names in zip(self.sums, self.names, strict=True):
            yield from sums.each(names)

    def repeated(self) -> _Scored:
        """Rows in memory as often as their weights say."""
        return replace(self, sums=tuple(sums.repeated() for sums in self.sums))


def accuracy_by(
    handle: Handle, model: str, rule: Rule, found: EventSums | ListSums, plan: Resampling
) -> Accuracy | None:
    """What another pass tells about the components; None for rows in memory, which are at hand."""
    if not plan.replicates or handle.whole:
        return None
    scored = _Scored.of(found, rule, handle)
    events = [make() for make in scored.each()]
    return accuracy_of(handle, scored.source(model), scored.how, events, scored.times, plan)


def read_decomposition(
    found: EventSums | ListSums,
    rule: Rule,
    handle: Handle,
    plan: Resampling,
    known: Accuracy | None = None,
    also: Callable[[int, SummedEvent], None] | None = None,
    *,
    tests_only: bool = False,
) -> Decomposition:
    """The decomposition from sums.

    `known` is what another pass told about rows that come in parts: without it there are tests of
    independent rows, and no intervals. Events are sorted and fitted once, so `also` may look at each: it is
    called with the number of the event and the event, one at a time. With `tests_only` there are draws for
    the test of calibration, and no intervals.
    """
    scored = _Scored.of(found, rule, handle)
    how, rows, n_groups = scored.how, scored.sums[-1].rows, scored.sums[-1].n_groups
    if plan.copies and plan.replicates and rows is not None and rows.groups is None:
        scored = scored.repeated()
        rows = scored.sums[-1].rows
    n_rows = scored.sums[-1].n_rows if rows is None else rows.n_rows
    # Two events at a time, and none that waits: more would take much memory.
    threads = min(2, n_cores()) if n_rows >= _MANY and len(scored.times) > 1 else 1
    refitting = 1 if n_rows < _MANY else max(1, n_cores() // threads)
    draws = draws_of(scored.sums[-1], how, plan, known, refitting, tests_only=tests_only)
    fitting = Lock()

    def part_of(numbered: tuple[int, Callable[[], SummedEvent]]) -> tuple[Components, Drawn]:
        i, event = numbered[0], numbered[1]()
        # Not by two threads at once, which would take much memory.
        with fitting:
            observed, within = event.components(how)
            if also is not None:
                also(i, event)
        if event.rows is not None:
            # Draws need the rows alone: the fit takes much memory.
            event = event.unfitted()
        if n_rows >= _LARGE and threads > 1:
            give_back()
        drawn = draws.of(i, event, observed)
        own = Components(event.name, observed, drawn.accuracy, drawn.calibrated, plan.confidence, within)
        return own, drawn

    numbered = enumerate(scored.each())
    parts: list[Components] = []
    for part, drawn in in_order(part_of, numbered, threads, 0) if threads > 1 else map(part_of, numbered):
        draws.add(drawn, how.factor * scored.times[len(parts)])
        parts.append(part)
        # It holds the rows of its event, and the next is waited for.
        del drawn
    factors = how.factor * np.array(scored.times)
    total = draws.whole()
    whole = Components(
        how.quantity,
        np.sum([factor * part.observed for factor, part in zip(factors, parts, strict=True)], axis=0),
        total.accuracy,
        total.calibrated,
        plan.confidence,
        float(sum(factor * (part.within or 0.0) for factor, part in zip(factors, parts, strict=True))),
    )
    return scored.made(
        rule=repr(rule),
        whole=whole,
        parts=tuple(parts),
        total=how.total,
        thresholds=how.thresholds,
        n_classes=handle.n_classes,
        n_groups=n_groups,
        resampling=plan,
    )
