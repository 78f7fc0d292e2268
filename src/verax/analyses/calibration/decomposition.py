"""The sources of a score: miscalibration, discrimination and uncertainty, by isotonic recalibration.

The events of a forecast (each class, or each threshold) are recalibrated one by one. The results need
not be a forecast: recalibrated classes do not sum to one, and recalibrated thresholds cross. So the
components are returned, never the recalibrated rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any, Unpack

import numpy as np

from verax._settings import settings
from verax.analyses.calibration.cells import (
    FORECAST,
    MOST_DRAWS,
    SMOOTH,
    EventCells,
    default_draws,
    joint_gains,
)
from verax.analyses.calibration.components import Components, Decomposition, ListDecomposition
from verax.analyses.calibration.events import event_names, split
from verax.analyses.calibration.recipes import AllEvents, EventRecipe, ListEventRecipe, ListSums
from verax.analyses.calibration.sources import (
    LISTED,
    UNLISTED,
    PartEvents,
    split_of_lists,
)
from verax.analyses.calibration.sums import Events, SummedEvent, is_all
from verax.analyses.calibration.uncertainty import (
    SecondLook,
    SecondRecipe,
    Uncertainty,
    check_units,
    looked_again,
    refits_for,
    uncertainties,
    units_of,
)
from verax.common.caching import cached_property
from verax.common.memory import give_back
from verax.inference.intervals import Resampling, WeightsAre
from verax.inputs.arrays import Floats
from verax.inputs.handles import Handle, Recipe
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.kernels.threads import in_order, n_cores
from verax.scores.base import Rule
from verax.scores.metrics import needs_order
from verax.scores.registry import default_rules, parse

# From this many rows on, memory that a fit leaves behind is worth the time of fetching it again.
_LARGE = 2**19


@reads
def decompose(
    y: object,
    p: object = None,
    *,
    rule: Rule | str | None = None,
    ordered: bool = False,
    bootstrap: int | None = 0,
    seed: int = 0,
    confidence: float = 0.95,
    weights_are: WeightsAre = "importance",
    **read: Unpack[RowOptions],
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
        bounds what that takes off miscalibration and discrimination. Intervals, and p-values with groups,
        take another pass over the rows, so saved summaries have none.
    p
    rule : Rule or str, optional
        `brier`, `rps` (any scale), `log_score` (any base) or `ranked_log`; by default `brier`, or `rps` if
        `ordered`.
    ordered
    bootstrap : int or None, default 0
        Number of random draws for the p-value of calibration; 0 for no p-value and no intervals. None is the
        number of the report: 1,000, and fewer with more than 48 classes. The p-value is not below one over
        the number of draws and one, and `p_is_bound` where it is that. The intervals take from 20 to 60 more
        draws, which measure how far the isotonic fit follows noise.
    seed
    confidence
    weights_are
        With "counts" every number is that of the repeated rows; for draws and intervals the weights must be
        whole numbers.
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
    draws = MOST_DRAWS if bootstrap is None else bootstrap
    plan = Resampling.checked(confidence, draws, seed, least=2, or_none=True, weights_are=weights_are)
    handle = open_rows(y, p, ordered=ordered, single=True, **read)
    if bootstrap is None:
        plan = replace(plan, replicates=default_draws(handle.n_classes))
    return decomposed(handle, rule, plan)


def decomposed(handle: Handle, rule: Rule, plan: Resampling) -> Decomposition:
    """The decomposition of the score of the only model."""
    model = handle.one_model()
    summaries = handle.summarise({"events": event_recipe(handle, model, rule)})
    result = read_decomposition(summaries["events"], rule, handle, plan, model)
    return replace(result, n_rows=summaries.n_rows).with_skipped(summaries.skipped)


def event_recipe(handle: Handle, model: str, rule: Rule, *, scored: bool = False) -> Recipe[Any]:
    """The recipe of sums that the score of a model is decomposed from; rules without such sums are refused.

    Others may ask for the same sums, and look at the event about the most likely class. If they are `scored`,
    groups have the sums of score tests, and of two classes the most likely one is left out.
    """
    if model in handle.listed:
        split_of_lists(rule, handle.n_classes)
        return ListEventRecipe(model, scored=True, with_scores=scored)
    how = split(rule, handle.n_classes)
    with_top = not scored or handle.n_classes > 2
    return EventRecipe(model, how.thresholds, how.binary, with_top=with_top, scored=scored)


@dataclass(frozen=True)
class Fitted:
    """The events of a score after the first look at the rows.

    Attributes
    ----------
    events : AllEvents
        The events as they were summed.
    times : tuple of float
        The mean number of elements of each event in a row.
    rule : Rule
        The rule whose score they make.
    plan : Resampling
        The number of draws, and the kind of weights.
    observed : list of (str, array, float)
        The name of each event, its components, and how much larger the middle two may be.
    cells : list of EventCells
        The cells in which outcomes are drawn; empty without draws.
    made : callable
        Makes the decomposition, from what those of rows and of lists both have.
    """

    events: AllEvents
    times: tuple[float, ...]
    rule: Rule
    plan: Resampling
    observed: list[tuple[str, Floats, float]]
    cells: list[EventCells]
    made: Callable[..., Decomposition]

    @property
    def _sums(self) -> Events:
        """The sums of the event that all rows have an element of."""
        return self.events.last

    @property
    def rows(self) -> PartEvents | None:
        """The rows, where they are in memory."""
        return self._sums.rows

    @property
    def _n_rows(self) -> float:
        """The number of rows, or of copies."""
        return float(self._sums.weight.high[0]) if self._copies else self._sums.n_rows

    @property
    def _copies(self) -> bool:
        return self.plan.copies and self._sums.n_groups is None

    def again(self) -> SecondRecipe:
        """The second look at the rows."""
        observed = [means for _, means, _ in self.observed]
        events, copies = self.events, self._copies
        return SecondRecipe.of(events.source, self.cells, observed, self.times, self._sums, copies=copies)

    def miscalibrations(self, look: SecondLook | None, n: int, seed: int) -> list[Floats]:
        """For each event, the miscalibrations of n draws of calibrated forecasts; those of all events belong
        together. Empty for groups without a second look, and for their log scores.
        """
        exact = [float(observed[1]) for _, observed, _ in self.observed]
        if self._sums.n_groups is None:
            sample = self.events.sums[0].sample
            if sample is not None and self.events.how.binary == "squared" and is_all(sample, self._n_rows):
                joint = self._joint(n, seed)
                assert joint is not None
                return list(joint)
            gains = [
                cells.miscalibrations(cells.drawn(n, [seed, FORECAST, i]), exact[i])
                for i, cells in enumerate(self.cells)
            ]
            return self._together(gains, n, seed)
        if look is None or self.events.how.binary != "squared":
            return [np.zeros(0)] * len(self.cells)
        signs, gains = look.random_signs(n, [seed, FORECAST]), []
        for i, cells in enumerate(self.cells):
            wide = cells.wider(look.n_wide)[0]
            draws = wide.wild(look.wild(signs, i, 1, len(wide.size)))
            gains.append(wide.miscalibrations(draws, exact[i]))
        return gains

    def _optimism(self, look: SecondLook | None) -> list[Floats] | None:
        """The gains of the isotonic fit and the frequency of each event by following noise, (n, 2); None for
        groups without a second look.
        """
        n, seed = refits_for(self.plan.replicates), self.plan.seed
        least = [float(means[3] - means[2]) for _, means, _ in self.observed]
        if self._sums.n_groups is None:
            gains = [cells.optimism(n, [seed, SMOOTH, i], least[i]) for i, cells in enumerate(self.cells)]
            return self._together(gains, n, seed)
        if look is None:
            return None
        signs = look.random_signs(n, [seed, SMOOTH])
        return [
            cells.wild_optimism(partial(look.wild, signs, i, 0), look.n_wide, [seed, SMOOTH, i], least[i])
            for i, cells in enumerate(self.cells)
        ]

    def _together(self, gains: list[Floats], n: int, seed: int) -> list[Floats]:
        """Draws of independent rows, (n, ...), in the order that those of a few rows have, whose outcomes are
        drawn for all events together (the Schaake shuffle).

        Without these rows all events are assumed to rise and fall together, as two classes do: no p-value is
        too small then.
        """
        if len(gains) == 1:
            return gains
        firsts = np.array([values.reshape(n, -1)[:, 0] for values in gains])
        joint = self._joint(n, seed)
        joint = firsts[:1] if joint is None else joint
        ranks = np.argsort(np.argsort(joint, axis=1, kind="stable"), axis=1, kind="stable")
        places = np.take_along_axis(np.argsort(firsts, axis=1, kind="stable"), ranks, axis=1)
        return [values[place] for values, place in zip(gains, places, strict=True)]

    def _joint(self, n: int, seed: int) -> Floats | None:
        """The gains of all events in n draws of a few rows, (E, n); None without these rows."""
        if seed == self.plan.seed:
            return None if self._joint_of_plan is None else self._joint_of_plan[:, :n]
        return self._drawn_together(n, seed)

    @cached_property
    def _joint_of_plan(self) -> Floats | None:
        """Those of refits and tests, whose first draws are the same: each draw has a key of its own."""
        n = max(self.plan.replicates, refits_for(self.plan.replicates))
        return self._drawn_together(n, self.plan.seed)

    def _drawn_together(self, n: int, seed: int) -> Floats | None:
        sample = self.events.sums[0].sample
        return None if sample is None else joint_gains(sample, self.events.how, self._n_rows, n, seed)

    def concluded(self, handle: Handle, *, again: bool) -> tuple[Decomposition, SecondLook | None]:
        """The decomposition, and the second look at the rows; those elsewhere may be read `again` for it."""
        if not self.plan.replicates or (self.rows is None and not again):
            return self.result(handle), None
        recipe = self.again()
        look = looked_again(recipe, self.rows, handle)
        return self.result(handle, look, recipe.means), look

    def tested(self, handle: Handle) -> Decomposition:
        """The decomposition with its test, and without intervals: groups alone take a second look."""
        look = None if self._sums.n_groups is None else looked_again(self.again(), self.rows, handle)
        return self.result(handle, look, uncertain=False)

    def result(
        self,
        handle: Handle,
        look: SecondLook | None = None,
        means: Floats | None = None,
        *,
        uncertain: bool = True,
    ) -> Decomposition:
        """The decomposition; `look` and the `means` that it knew tell how uncertain the components are."""
        plan, how = self.plan, self.events.how
        factors = how.factor * np.array(self.times)
        accuracy: list[Uncertainty | None] = [None] * (len(self.observed) + 1)
        calibrated = [np.zeros(0)] * len(self.observed)
        if plan.replicates:
            accuracy = self._accuracy(look, means, factors) if uncertain else accuracy
            calibrated = self.miscalibrations(look, plan.replicates, plan.seed)
        parts = tuple(
            Components(name, observed, uncertainty, drawn, plan.confidence, within)
            for (name, observed, within), uncertainty, drawn in zip(
                self.observed, accuracy, calibrated, strict=False
            )
        )
        whole = Components(
            how.quantity,
            _weighted(factors, [part.observed for part in parts]),
            accuracy[-1],
            _weighted(factors, calibrated),
            plan.confidence,
            float(sum(factor * (part.within or 0.0) for factor, part in zip(factors, parts, strict=True))),
        )
        return self.made(
            rule=repr(self.rule),
            whole=whole,
            parts=parts,
            total=how.total,
            thresholds=how.thresholds,
            n_classes=handle.n_classes,
            n_groups=self._sums.n_groups,
            resampling=plan,
        )

    def _accuracy(
        self, look: SecondLook | None, means: Floats | None, factors: Floats
    ) -> list[Uncertainty | None]:
        """The uncertainty of the components of each event and of the whole, if it is known."""
        optimism, sums, n = self._optimism(look), self._sums, len(self.cells)
        if optimism is None:
            return [None] * (n + 1)
        weight = float(sums.weight.high[0])
        variances, plug_ins, certain = np.full((n + 1, 4), np.nan), np.zeros((n, 2)), [False] * n
        if look is not None and means is not None:
            variances = look.variances(means, weight)
            for i, cells in enumerate(self.cells):
                least, constant = cells.expected
                certain[i] = bool(look.infinite.high[i] > 0)
                # Where certain forecasts may fail, the mean over the smooth recalibration is infinite.
                given = float(look.expected.high[i]) / (weight * self.times[i]) - least
                plug_ins[i] = means[i, 1] if certain[i] else given, constant - least
        copies = weight if self._copies else None
        units = units_of(sums, copies)
        every = np.array([*optimism, _weighted(factors, optimism)])
        plug_ins = np.concatenate([plug_ins, _weighted(factors, list(plug_ins))[None]])
        return [*uncertainties(every, plug_ins, variances, units, [*certain, any(certain)])]


def _weighted(factors: Floats, values: Sequence[Floats]) -> Floats:
    """The sum of arrays, each times its factor."""
    return np.asarray(np.sum([factor * array for factor, array in zip(factors, values, strict=True)], axis=0))


def fitted(
    summary: Events | ListSums,
    rule: Rule,
    handle: Handle,
    plan: Resampling,
    model: str,
    also: Callable[[int, SummedEvent], None] | None = None,
) -> Fitted:
    """The events of a model's sums, sorted and fitted once; so `also` may look at each: it is called with the
    number of the event and the event, one at a time.
    """
    if isinstance(summary, ListSums):
        how = split_of_lists(rule, handle.n_classes)
        events = AllEvents.of(summary, how, (LISTED, UNLISTED), model, scored=True)
        mean_length, left_out = (summary.totals.high[1:] / summary.totals.high[0]).tolist()
        times = tuple(mean_length if name == LISTED else 1.0 for (name,) in events.names)
        made: Callable[..., Decomposition] = partial(
            ListDecomposition,
            n_rows=summary.n_lists,
            left_out=how.factor * left_out,
            mean_length=mean_length,
            n_invalid=summary.n_invalid,
        )
    else:
        how = split(rule, handle.n_classes)
        events = AllEvents.of(summary, how, event_names(handle.class_names, how), model)
        times = (1.0,) * summary.n_events
        made = partial(Decomposition, n_rows=summary.n_rows if summary.rows is None else summary.rows.n_rows)
    sums = events.last
    copies = plan.copies and sums.n_groups is None
    if plan.replicates:
        check_units(sums, copies=copies)
    n_rows = sums.n_rows if sums.rows is None else sums.rows.n_rows
    # Two events at a time, and none that waits: more would take much memory.
    threads = min(2, n_cores()) if n_rows >= settings.threads_from and len(times) > 1 else 1
    fitting = Lock()

    def fit(numbered: tuple[int, Callable[[], SummedEvent]]) -> tuple[str, Floats, float, EventCells | None]:
        i, event = numbered[0], numbered[1]()
        # Not by two threads at once, which would take much memory.
        with fitting:
            observed, within = event.components(how)
            if also is not None:
                also(i, event)
            cells = EventCells.of(event, how, copies=copies) if plan.replicates else None
        if n_rows >= _LARGE and threads > 1:
            give_back()
        return event.name, observed, within, cells

    numbered = enumerate(events.makers())
    fits = list(in_order(fit, numbered, threads, 0) if threads > 1 else map(fit, numbered))
    observed = [(name, components, within) for name, components, within, _ in fits]
    return Fitted(
        events,
        times,
        rule,
        plan,
        observed,
        [components for *_, components in fits if components is not None],
        made,
    )


def read_decomposition(
    summary: Events | ListSums, rule: Rule, handle: Handle, plan: Resampling, model: str | None = None
) -> Decomposition:
    """The decomposition from sums.

    The rows of `model` are looked at again for intervals, and for the draws of groups. Without a model there
    are only those of rows in memory.
    """
    fits = fitted(summary, rule, handle, plan, model or "")
    return fits.concluded(handle, again=model is not None)[0]
