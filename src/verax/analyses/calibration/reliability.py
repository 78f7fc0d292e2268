"""Reliability diagrams of every class, of every threshold, or of the places of top lists."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from verax.analyses.calibration.cells import EventCells
from verax.analyses.calibration.claims import read_claims
from verax.analyses.calibration.curves import ListReliability, Reliability, curve_of
from verax.analyses.calibration.events import event_names
from verax.analyses.calibration.recipes import AllEvents, EventRecipe, ListEventRecipe, ListSums
from verax.analyses.calibration.sources import (
    SQUARED,
    WHOLE,
    check_places,
    refuse_places,
)
from verax.analyses.calibration.sums import Events
from verax.analyses.calibration.uncertainty import SecondLook, SecondRecipe, looked_again
from verax.common.checks import check_flag
from verax.inference.intervals import Resampling, WeightsAre
from verax.inputs.handles import Handle
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads


@reads
def reliability(
    y: object,
    p: object = None,
    *,
    ordered: bool = False,
    places: int | None = None,
    resamples: int = 200,
    seed: int = 0,
    confidence: float = 0.95,
    weights_are: WeightsAre = "importance",
    **read: Unpack[RowOptions],
) -> Reliability:
    """The reliability curve of every class, or of every threshold of ordered classes.

    A curve is the isotonic regression of the event on its forecast (CORP): the frequencies of the
    event, forced to grow with the forecast. Where it follows the diagonal the forecast is calibrated;
    the band shows what a calibrated forecast with these values would do. Two classes without an order
    have one curve, that of class 1.

    Top lists have a curve for each place, one for any listed class, and one for the whole list: how often
    the outcome was listed, against the sum of the list. The result is a `ListReliability`, whose `claims`
    test the mean of each.

    Parameters
    ----------
    y
        Where these have more than 2^20 distinct forecasts, the curves are fitted to bins that are at most a
        thousandth of the forecast wide.
    p
    ordered : bool, default False
        Whether to draw curves of P(Y <= class), which the RPS is made of, instead of P(Y = class).
    places : int, optional
        For top lists: how many of the first places have a curve; 10 if not given.
    resamples : int, default 200
        Number of draws for the consistency bands and the tests of calibration (the `p_value` of a curve's
        components); 0 for none. Outcomes are drawn from the forecasts independently. With groups, the
        deviations of outcomes from forecasts change their signs group by group instead (wild bootstrap).
        Predictions that `scan` has opened are then read twice, and saved summaries have no bands.
    seed
    confidence : float, default 0.95
        Confidence level of the bands.
    weights_are
        Curves are the same; bands and tests differ.
    **read

    Returns
    -------
    Reliability
        The curves by name; a `ListReliability` for top lists.

    See Also
    --------
    decompose : How much of the score is miscalibration.
    calibration_slope : Calibration in two numbers.

    References
    ----------
    Dimitriadis, Gneiting and Jordan (2021), doi:10.1073/pnas.2016191118

    Examples
    --------
    >>> import verax as vx
    >>> diagram = vx.reliability([1, 0, 1, 1, 0, 0], [0.9, 0.6, 0.6, 0.3, 0.3, 0.1], resamples=0)
    >>> curve = diagram["1"]
    >>> curve.forecast.tolist(), curve.frequency.tolist()
    ([0.1, 0.3, 0.6, 0.9], [0.0, 0.5, 0.5, 1.0])
    >>> round(curve.components.miscalibration, 4)
    0.02
    """
    plan = Resampling.checked(
        confidence, resamples, seed, or_none=True, argument="resamples", weights_are=weights_are
    )
    ordered = check_flag("ordered", ordered)
    handle = open_rows(y, p, ordered=ordered, single=True, **read)
    model = handle.one_model()
    recipe: EventRecipe | ListEventRecipe = EventRecipe(model, ordered)
    if handle.lists:
        # Very many lists in memory are counted in cells where nothing is drawn.
        recipe = ListEventRecipe(
            model, check_places(places), cells=handle.whole and not resamples and not plan.copies
        )
    else:
        refuse_places(places)
    summaries = handle.summarise({"events": recipe})
    diagram = read_reliability(summaries["events"], recipe, handle, plan, again=True)
    return replace(diagram, n_rows=summaries.n_rows).with_skipped(summaries.skipped)


def read_reliability(
    sums: Events | ListSums,
    recipe: EventRecipe | ListEventRecipe,
    handle: Handle,
    plan: Resampling,
    *,
    again: bool = False,
) -> Reliability:
    """The curves from sums; bands of groups take a second look at rows, which may be read again for it."""
    if isinstance(sums, ListSums):
        assert isinstance(recipe, ListEventRecipe)
        first, events = 0, AllEvents.of(sums, SQUARED, recipe.names(sums), recipe.model)
    else:
        assert isinstance(recipe, EventRecipe)
        how = recipe.how(handle.n_classes)
        # Two classes without an order have one curve.
        first = int(handle.n_classes == 2 and not how.thresholds)
        events = AllEvents.of(sums, how, event_names(handle.class_names, how), recipe.model)
    look = _second_look(events, handle, again=again) if plan.replicates else None
    numbered = enumerate(events.makers())
    curves = [curve_of(i, make(), events.how, plan, look) for i, make in numbered if i >= first]
    about = events.how.thresholds, handle.n_classes, plan.replicates, plan.confidence, plan.seed
    if not isinstance(sums, ListSums):
        return Reliability(tuple(curves), about[0], sums.n_rows, *about[1:])
    assert isinstance(recipe, ListEventRecipe)
    return ListReliability(
        tuple(curves),
        about[0],
        sums.n_lists,
        *about[1:],
        read_claims(sums, recipe.places, copies=plan.copies),
        sums.longest,
        sums.n_invalid,
        in_cells=recipe.cells and sums.events[WHOLE].rows is None,
    )


def _second_look(events: AllEvents, handle: Handle, *, again: bool) -> SecondLook | None:
    """The second look at rows that belong to groups; None where they do not, or cannot be looked at."""
    sums, how = events.last, events.how
    if sums.n_groups is None or (sums.rows is None and not again):
        return None
    made = [make() for make in events.makers()]
    cells = [EventCells.of(event, how, copies=False) for event in made]
    observed = [event.components(how)[0] for event in made]
    recipe = SecondRecipe.of(events.source, cells, observed, (1.0,) * len(made), sums, copies=False)
    return looked_again(recipe, sums.rows, handle)
