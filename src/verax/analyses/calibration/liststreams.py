"""Calibration of top lists that are not in memory, from histograms of their confidences.

Means, scores and uncertainties are sums, so they are exact; isotonic fits are made to bins, as `streams`
explains. Outcomes are drawn bin by bin: entries of the same list are taken to be independent, though at most
one of them happens. Independent ones vary more, so bands are not too narrow and p-values not too small.
"""

from __future__ import annotations

import numpy as np

from verax.analyses.calibration.components import Components
from verax.analyses.calibration.eventsums import CLAIM, HIT
from verax.analyses.calibration.lists import SQUARED, ListReliability
from verax.analyses.calibration.listsums import LEFT_OUT, LENGTH, WEIGHT, ListEventRecipe, ListSums
from verax.analyses.calibration.mass import LISTED, UNLISTED, ListDecomposition, split_of_lists
from verax.analyses.calibration.places import ANY, WHOLE, Claim, Found, check_places, corrected, place_name
from verax.analyses.calibration.streams import component_of, p_value_of, read_curve
from verax.inference.intervals import Resampling
from verax.inputs.handles import Handle
from verax.scores.base import Rule


def decomposition_of_list_handle(handle: Handle, rule: Rule, plan: Resampling) -> ListDecomposition:
    """The decomposition of the Brier score of the events that the lists of a handle define."""
    split_of_lists(rule, handle.n_classes)
    found = handle.summarise({"events": ListEventRecipe(handle.one_model(), scored=True)})
    return read_list_decomposition(found["events"], rule, handle.n_classes, plan).with_skipped(found.skipped)


def read_list_decomposition(
    found: ListSums, rule: Rule, n_classes: int, plan: Resampling
) -> ListDecomposition:
    """The decomposition from sums; both events are taken to rise and fall together."""
    how = split_of_lists(rule, n_classes)
    weight = float(found.totals.high[WEIGHT])
    times = {LISTED: float(found.totals.high[LENGTH]) / weight, UNLISTED: 1.0}
    parts = {
        name: component_of(found.events[name], 0, name, how, plan, np.random.default_rng([plan.seed, i]))
        for i, name in enumerate(times)
        if name in found.events
    }
    factor = {name: how.factor * times[name] for name in parts}
    drawn = [factor[name] * np.sort(part.calibrated) for name, part in parts.items()]
    whole = Components(
        how.quantity,
        np.sum([factor[name] * part.observed for name, part in parts.items()], axis=0),
        None,
        np.sum(drawn, axis=0),
        plan.confidence,
        sum(factor[name] * (part.within or 0.0) for name, part in parts.items()),
    )
    groups = found.events[UNLISTED].groups
    return ListDecomposition(
        rule=repr(rule),
        whole=whole,
        parts=tuple(parts.values()),
        total=how.total,
        thresholds=False,
        n_rows=found.n_lists,
        n_classes=n_classes,
        n_groups=None if groups is None else len(groups),
        resampling=plan,
        left_out=how.factor * float(found.totals.high[LEFT_OUT]) / weight,
        mean_length=times[LISTED],
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
    names = _names(found, places)
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
    return corrected({name: _claim(found, name) for name in _names(found, places)})


def _names(found: ListSums, places: int) -> list[str]:
    named = [place_name(place) for place in range(1, min(places, found.longest) + 1)]
    return [*named, *([ANY] if found.longest else []), WHOLE]


def _claim(found: ListSums, name: str) -> Found:
    event = found.events[name]
    weight = float(event.weight.high[0])
    claimed, happened = (event.totals.high[0, [CLAIM, HIT]] / weight).tolist()
    if name == ANY:
        return found.n_lists, 1.0, claimed, happened, None
    share = weight / float(found.totals.high[WEIGHT])
    return event.n_rows, share, claimed, happened, p_value_of(event, 0)
