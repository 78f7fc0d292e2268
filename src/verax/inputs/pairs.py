"""Some of the rows, and rows read as pairs of a case and a class.

Functions that need one class per row read a case with several raters as its classes. Each of them has its
share of the weight of the case, and they belong together: cases are groups, unless there are larger ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.inputs.arrays import Array, Ints, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups
from verax.inputs.lists.rows import ListRows
from verax.inputs.rows import Rows
from verax.inputs.scored import ScoredRows
from verax.inputs.sets.rows import SetRows
from verax.inputs.skipping import take_rows


def some_of(rows: Rows, places: Ints) -> Rows:
    """Some rows, which may have no weight."""
    weights = take_rows(rows.weights, places)
    groups = None if rows.groups is None else rows.groups.at(places)
    if isinstance(rows, (ListRows, ScoredRows, SetRows)):
        return rows.taken(places, weights, groups)
    assert isinstance(rows, Forecasts)
    return _with_outcomes(rows, places, rows.outcomes.taken(places), weights, groups)


def _with_outcomes(rows: Forecasts, places: Ints, y: object, weights: Any, groups: Groups | None) -> Rows:
    """The forecasts of some rows with these outcomes, weights and groups."""
    return forecasts_like(rows, y, take_rows(rows.given, places), weights, groups)


def forecasts_like(rows: Forecasts, y: object, p: object, weights: Any, groups: Groups | None) -> Forecasts:
    """Some of the rows, as they were given, with their outcomes as positions."""
    some = Forecasts(
        y,
        p,
        weights=weights,
        groups=groups,
        normalize=rows.form == "rescaled",
        logits=rows.logits,
        part=True,
    )
    some.classes = rows.classes
    return some


def are_shared(rows: Rows) -> bool:
    """Whether the outcomes of rows are shares of several classes."""
    return isinstance(rows, Forecasts) and rows.shared


def one_class_each(rows: Forecasts) -> Forecasts:
    """The same rows with one class each, for fits; pairs where several raters labelled them."""
    if not rows.shared:
        return rows
    rows.check()
    found = paired(rows, places_of(rows), np.arange(rows.n_rows))
    assert isinstance(found, Forecasts)
    return found


def places_of(rows: Rows) -> tuple[Ints, Ints, Array]:
    """The place of the case, the class and the share of every pair of valid rows."""
    assert isinstance(rows, Forecasts)
    shares = to_host(rows.shares(slice(0, rows.n_rows)))
    place, y = np.nonzero(shares > 0)
    return place, y, shares[place, y]


def paired(rows: Rows, places: tuple[Ints, Ints, Array], cases: Ints) -> Rows:
    """The pairs of rows, of which `cases` are the numbers in the whole."""
    assert isinstance(rows, Forecasts)
    place, y, share = places
    weights = share if rows.weights is None else share * take_rows(to_host(rows.weights), place)
    groups = Groups.of(cases[place], len(place)) if rows.groups is None else rows.groups.at(place)
    return _with_outcomes(rows, place, y, weights, groups)
