"""Rows with their outcomes, as a monitor takes them in: summed by time step, each row once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax.common.ids import id_text
from verax.errors import InputError
from verax.inputs.arrays import to_array, to_host
from verax.inputs.breakdown import Breakdown
from verax.inputs.handles import Handle, Part, Recipe
from verax.inputs.lists.toplists import TopLists
from verax.inputs.memory import open_rows
from verax.wings.monitor.intake import (
    TIME,
    check_times,
    column_of,
    in_order,
    kind_of,
    labels_of,
    named_labels,
    one_kind,
)
from verax.wings.monitor.pending import NamesRecipe, RowNames
from verax.wings.monitor.state import Kind, State
from verax.wings.monitor.steps import StepRecipe, TimesRecipe


def observed(
    state: State, y: object, p: object, time: Any, by: Mapping[str, Any] | None, read: Any, *, named: bool
) -> tuple[Breakdown, RowNames | None, int]:
    """Sums by time step, names of the rows, and the number of known rows that were left out.

    Only if `named`, rows are identified by the names in the handle, and known ones are left out.
    """
    settings = state.settings
    handle = open_rows(y, p, single=True, ordered=settings.ordered or settings.rule.ordinal, **read)
    kind = kind_of(handle, state.kind, ordered=settings.ordered, stated=read.get("classes") is not None)
    part = handle.kept
    if part is None:
        column = column_of(handle, time, settings.by)
    else:
        column, part = TIME, replace(part, by=labels_of(part.n_rows, time, by, settings.by))
    recipe = StepRecipe(
        handle.one_model(),
        settings.rule,
        settings.ordered,
        settings.bounds(handle.n_classes),
        column,
        settings.by,
        settings.unit,
        state.joins,
        state.own_periods if state.undecided else None,
        zone=settings.zone,
    )
    of_names = NamesRecipe(recipe.model, kind.classes, state.pending.has_former) if named else None
    summed = _Summed.of(handle if part is None else part, recipe, of_names)
    names, n_known = summed.names, 0
    if names is not None:
        known = state.pending.known_among(names)
        n_known = len(known)
    if n_known:
        left_out = tuple(sorted(known.tolist()))
        summed = _Summed.of(handle, replace(recipe, left_out=left_out), None)
    if state.undecided and summed.own is not None:
        state.own = summed.own
    state.kind = kind
    return summed.steps, names, n_known


def take_in(state: State, steps: Breakdown) -> None:
    """Take in the sums of one or more time steps."""
    last = state.periods[-1].time if state.periods else None
    steps = one_kind(steps, last)
    if state.periods:
        check_times(steps, last)
    for time in in_order(steps):
        state.take(time, steps[time])
    state.pending.forget(len(state.periods), state.settings.memory)


def update(
    state: State,
    y: object,
    p: object,
    time: Any,
    by: Mapping[str, Any] | None,
    ids: object | None,
    read: Mapping[str, Any],
) -> None:
    """Take in the rows that are new, in order of time; invalid ones leave the state as it was."""
    before = state.kind, state.own
    try:
        if isinstance(y, Handle):
            _take_named(state, y, p, time, by, read)
        else:
            _take_new(state, y, p, time, by, ids, read)
    except InputError:
        state.kind, state.own = before
        raise
    state.name_classes(read.get("classes"))


def _take_named(
    state: State, handle: Handle, p: object, time: Any, by: Mapping[str, Any] | None, read: Any
) -> None:
    """Take in the rows of a handle that are new by the names that it has for them."""
    steps, names, _ = observed(state, handle, p, time, by, read, named=True)
    if steps.by_label:
        take_in(state, steps)
    if names is not None:
        state.pending.note_hashes(names.names, names.outcomes)


def _take_new(
    state: State, y: object, p: object, time: Any, by: Mapping[str, Any] | None, ids: object | None, read: Any
) -> None:
    """Take in rows in memory, with `ids` those that are new."""
    names, outcomes, pending = [], np.zeros(0), state.pending
    given, read = read, _with_names(state, y, read)
    if ids is not None:
        outcomes = to_host(to_array(y, "y")[0])
        names = pending.names(ids, len(outcomes))
        new = pending.new_rows(names, outcomes, by_class(outcomes, state.kind, given))
        if not len(new):
            return
        if len(new) < len(names):
            names, outcomes = [names[i] for i in new.tolist()], outcomes[new]
            y, p, time = (rows_at(argument, new) for argument in (y, p, time))
            by = {name: rows_at(labels, new) for name, labels in named_labels(by, state.settings.by).items()}
            read = {k: rows_at(v, new) if k in ("weights", "groups") else v for k, v in read.items()}
    take_in(state, observed(state, y, p, time, by, read, named=False)[0])
    pending.note(names, by_class(outcomes, state.kind, given))


def _with_names(state: State, y: object, read: Mapping[str, Any]) -> Mapping[str, Any]:
    """How rows in memory are read, with the classes that the monitor knows where outcomes are texts."""
    kind = state.kind
    if kind is None or kind.lists or kind.classes is None or read.get("classes") is not None:
        return read
    texts = np.asarray(to_host(to_array(y, "y")[0])).dtype.kind in "UOT"
    return {**read, "classes": kind.classes} if texts else read


def by_class(y: Any, kind: Kind | None, read: Mapping[str, Any]) -> Any:
    """Outcomes by class name where classes have names, as rows from files are remembered."""
    stated = list(read["classes"]) if isinstance(read.get("classes"), Iterable) else None
    if kind is None or kind.lists or read.get("raters") is not None or (stated, kind.classes) == (None, None):
        return y
    names: Sequence[Hashable] = range(kind.n_classes) if kind.classes is None else kind.classes
    places = {id_text(name): i for i, name in enumerate(names if stated is None else stated)}

    def called(outcome: Any) -> Any:
        place = places.get(id_text(outcome)) if stated is not None or isinstance(outcome, str) else None
        if place is None and isinstance(outcome, (int, float)) and outcome in range(kind.n_classes):
            place = int(outcome)
        return outcome if place is None else names[place]

    outcomes = (y.argmax(axis=1) if y.ndim == 2 and len(y) else y).tolist()
    found = np.empty(len(outcomes), object)
    found[:] = [called(outcome) for outcome in outcomes]
    return found


def rows_at(values: Any, places: Any) -> Any:
    """The rows of an argument at some places; scalars stay."""
    if isinstance(values, TopLists):
        return values[places]
    if values is None or np.ndim(values) == 0:
        return values
    return np.asarray(values)[places]


@dataclass(frozen=True)
class _Summed:
    """Rows summed by time step, with their names where they are asked for.

    Attributes
    ----------
    steps : Breakdown
        The sums.
    names : RowNames or None
        The names.
    own : bool or None
        Whether rows have times of their own; None if there are no rows.
    """

    steps: Breakdown
    names: RowNames | None
    own: bool | None

    @classmethod
    def of(cls, rows: Handle | Part, recipe: StepRecipe, of_names: NamesRecipe | None) -> _Summed:
        """Sum up the rows of a handle, or of one part."""
        recipes: dict[str, Recipe[Any]] = {"steps": recipe}
        if recipe.own is not None:
            recipes["times"] = TimesRecipe(recipe.time)
        if of_names is not None:
            recipes["names"] = of_names
        if isinstance(rows, Part):
            found: Any = {name: each.take(rows) for name, each in recipes.items()}
        else:
            found = rows.summarise(recipes)
        own = None
        if recipe.own is not None and (times := found["times"]).n:
            own = 2 * times.own > times.n
            if 0 < times.own < times.n:
                # Parts do not agree: all their times are joined, or none.
                again = replace(recipe, own=None, periods=recipe.own if own else None)
                return replace(cls.of(rows, again, of_names), own=own)
        return cls(found["steps"], None if of_names is None else found["names"], own)
