"""Calibration of top lists that are not in memory, from histograms of their confidences.

Means, scores and uncertainties are sums, so they are exact; isotonic fits are made to bins, as `streams`
explains. Outcomes are drawn bin by bin: entries of the same list are taken to be independent, though at most
one of them happens. Independent ones vary more, so bands are not too narrow and p-values not too small.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from verax.analyses.calibration.accuracy import Accuracy, Scored, accuracy_of
from verax.analyses.calibration.componentsums import ListEventsSource
from verax.analyses.calibration.events import Split
from verax.analyses.calibration.eventsums import CLAIM, HIT
from verax.analyses.calibration.lists import SQUARED, ListReliability
from verax.analyses.calibration.listsums import LEFT_OUT, LENGTH, WEIGHT, ListEventRecipe, ListSums
from verax.analyses.calibration.mass import LISTED, UNLISTED, ListDecomposition, split_of_lists
from verax.analyses.calibration.places import ANY, Claim, Found, check_places, corrected, event_names
from verax.analyses.calibration.streams import components_of_events, p_value_of, read_curve
from verax.analyses.unitsums import check_weight
from verax.inference.intervals import Resampling
from verax.inputs.handles import Handle
from verax.scores.base import Rule


def decomposition_of_list_handle(handle: Handle, rule: Rule, plan: Resampling) -> ListDecomposition:
    """The decomposition of the Brier score of the events that the lists of a handle define."""
    how = split_of_lists(rule, handle.n_classes)
    recipe = ListEventRecipe(handle.one_model(), scored=True)
    found = handle.summarise({"events": recipe})
    check_weight(float(found["events"].totals.high[WEIGHT]))
    events = _scored(found["events"], how)
    source = ListEventsSource(recipe.model, LISTED in events)
    known = accuracy_of(handle, source, how, list(events.values()), plan)
    result = read_list_decomposition(found["events"], rule, handle.n_classes, plan, known)
    return replace(result, n_rows=found.n_rows).with_skipped(found.skipped)


def _scored(found: ListSums, how: Split) -> dict[str, Scored]:
    """The events by name; of all listed classes together there are so many in a list on average."""
    length = float(found.totals.high[LENGTH]) / float(found.totals.high[WEIGHT])
    times = {LISTED: length, UNLISTED: 1.0}
    return {
        name: Scored(found.events[name], 0, times[name], how.factor) for name in times if name in found.events
    }


def read_list_decomposition(
    found: ListSums, rule: Rule, n_classes: int, plan: Resampling, known: Accuracy | None = None
) -> ListDecomposition:
    """The decomposition from sums."""
    how = split_of_lists(rule, n_classes)
    weight = float(found.totals.high[WEIGHT])
    events = _scored(found, how)
    whole, parts = components_of_events(list(events), list(events.values()), how, plan, known)
    groups = found.events[UNLISTED].groups
    return ListDecomposition(
        rule=repr(rule),
        whole=whole,
        parts=parts,
        total=how.total,
        thresholds=False,
        n_rows=found.n_lists,
        n_classes=n_classes,
        n_groups=None if groups is None else len(groups),
        resampling=plan,
        left_out=how.factor * float(found.totals.high[LEFT_OUT]) / weight,
        mean_length=float(found.totals.high[LENGTH]) / weight,
        n_invalid=found.n_invalid,
    )


def reliability_of_list_handle(
    handle: Handle, places: int | None, resamples: int, seed: int, confidence: float
) -> ListReliability:
    """The curves of the first places, of any place and of the whole list, with their claims."""
    n_places = check_places(places)
    found = handle.summarise({"events": ListEventRecipe(handle.one_model(), n_places)})
    sums: ListSums = found["events"]
    curves = read_list_reliability(sums, n_places, handle.n_classes, resamples, seed, confidence)
    return curves.with_skipped(found.skipped)


def read_list_reliability(
    found: ListSums, places: int, n_classes: int, resamples: int, seed: int, confidence: float
) -> ListReliability:
    """The same from sums."""
    names = event_names(found.longest, places)
    curves = [
        read_curve(
            found.events[name], 0, name, SQUARED, resamples, np.random.default_rng([seed, i]), confidence
        )
        for i, name in enumerate(names)
    ]
    return ListReliability(
        tuple(curves),
        False,
        found.n_lists,
        n_classes,
        resamples,
        confidence,
        seed,
        read_claims(found, places),
        found.longest,
        found.n_invalid,
    )


def read_claims(found: ListSums, places: int) -> tuple[Claim, ...]:
    """What was claimed of each event on average and what happened, with tests."""
    return corrected({name: _claim(found, name) for name in event_names(found.longest, places)})


def _claim(found: ListSums, name: str) -> Found:
    event = found.events[name]
    weight = float(event.weight.high[0])
    claimed, happened = (event.totals.high[0, [CLAIM, HIT]] / weight).tolist()
    if name == ANY:
        return found.n_lists, 1.0, claimed, happened, None
    share = weight / float(found.totals.high[WEIGHT])
    return event.n_rows, share, claimed, happened, p_value_of(event, 0)
