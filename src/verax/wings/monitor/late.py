"""Forecasts whose outcomes come later: noted by name, and taken in when their outcomes are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from verax.analyses.parts import probabilities
from verax.analyses.uncertainty_scores import expected_of_itself, expected_of_lists
from verax.inputs.arrays import to_array, to_host
from verax.inputs.lists.rows import ListRows
from verax.inputs.lists.toplists import TopLists
from verax.inputs.memory import open_rows
from verax.wings.monitor.intake import TIME, kind_of, labels_of, stand_ins
from verax.wings.monitor.pending import Waiting, check_later, lags_of, together, waiting_lists
from verax.wings.monitor.rows import by_class, rows_at, update
from verax.wings.monitor.state import State
from verax.wings.monitor.steps import in_plain_times


def note_forecasts(
    state: State, p: object, ids: object, time: Any, by: Mapping[str, Any] | None, read: Mapping[str, Any]
) -> None:
    """Note forecasts before their outcomes are known."""
    settings = state.settings
    y = stand_ins(p, read.get("classes"))
    names = state.pending.names(ids, len(y))
    form: dict[str, Any] = {**read, "raters": None}
    handle = open_rows(y, p, single=True, **form)
    kind = kind_of(handle, state.kind, ordered=settings.ordered, stated=read.get("classes") is not None)
    part = handle.kept
    assert part is not None
    rows, n = part.rows, len(y)
    rows.check()
    columns = labels_of(n, time, by, settings.by)
    forecasts: Any
    if isinstance(rows, ListRows) and isinstance(p, TopLists):
        forecasts = waiting_lists(p, rows.vocabulary)
        expected = expected_of_lists(settings.rule, rows)
    else:
        forecasts = probabilities(part, handle.one_model())
        expected = expected_of_itself(settings.rule, forecasts)
    groups = [None] * n if rows.groups is None else rows.groups.labels[rows.groups.codes].tolist()
    weights = [None] * n if rows.weights is None else np.asarray(to_host(rows.weights), float).tolist()
    waiting = map(
        Waiting,
        forecasts,
        expected.tolist(),
        [len(state.periods)] * n,
        [None] * n if time is None else in_plain_times(columns[TIME]).tolist(),
        zip(*(columns[name].tolist() for name in settings.by), strict=True) if settings.by else [()] * n,
        groups,
        weights,
    )
    state.pending.predict(names, list(waiting))
    state.kind = kind
    state.name_classes(read.get("classes"))


def take_outcomes(
    state: State, ids: object, y: object, time: Any, raters: Literal["shares", "counts", "columns"] | None
) -> None:
    """Take in outcomes of forecasts that were noted, at the time of the outcomes."""
    pending, values = state.pending, to_host(to_array(y, "y")[0])
    names = pending.names(ids, len(values))
    assert state.kind is not None or not pending.begun
    form: dict[str, Any] = {"classes": None if state.kind is None else state.kind.classes, "raters": raters}
    new, rows = pending.waiting(names, values, by_class(values, state.kind, form))
    if not rows:
        return
    assert state.kind is not None
    names, outcomes, time = [names[i] for i in new.tolist()], values[new], rows_at(time, new)
    p = together([row.p for row in rows], state.kind.n_classes)
    by = {name: [row.by[i] for row in rows] for i, name in enumerate(state.settings.by)}
    columns: dict[str, Any] = {
        "groups": None if rows[0].group is None else [row.group for row in rows],
        "weights": None if rows[0].weight is None else [row.weight for row in rows],
    }
    times = in_plain_times(np.full(len(rows), time) if np.ndim(time) == 0 else time).tolist()
    check_later(rows, times, names)
    losses = np.asarray(to_host(state.settings.rule.samples(outcomes, p, **form)), float)
    update(state, outcomes, p, time, by, None, {**form, **columns})
    pending.note(names, by_class(outcomes, state.kind, form))
    pending.note_late(lags_of(rows, times, len(state.periods) - 1), losses)
