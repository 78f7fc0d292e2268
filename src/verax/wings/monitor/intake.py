"""Checks of the rows that a monitor takes in: their classes, times, subgroups and units."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from verax.common.ids import id_text
from verax.common.times import alike, with_zones
from verax.errors import InputError, Remedy, join, passing, show
from verax.inputs.arrays import to_array, to_host
from verax.inputs.breakdown import Breakdown, not_scanned
from verax.inputs.handles import Handle
from verax.inputs.lists.toplists import TopLists
from verax.wings.monitor.state import Kind

TIME = "time"


def kind_of(handle: Handle, before: Kind | None, *, ordered: bool, stated: bool = False) -> Kind:
    """The kind of rows, which must be that of `before`; names of positions must be `stated`."""
    names = None if handle.classes is None else tuple(handle.classes)
    kind = Kind(names, handle.n_classes, handle.lists)
    if before is None:
        if ordered and handle.lists:
            raise InputError("does not apply to top lists", argument="ordered")
        return kind
    if kind.n_classes == before.n_classes and kind.lists == before.lists and not kind.lists:
        called, known = _texts(names), _texts(before.classes)
        if called == known:
            return before
        if names is not None and before.classes is None:
            if not stated:
                refuse_unnamed(names, before.n_classes)
            return before
        if names is not None and set(called) == set(known):
            raise InputError(
                "must be in the order that the monitor began with",
                argument="classes",
                kind="order",
                found=f"that was {_classes(before)}; now it is {_classes(kind)}",
                remedies=[Remedy("Put the columns of the forecasts into that order.")],
            )
    named = names is not None and before.classes is not None
    if (kind.n_classes, kind.lists) != (before.n_classes, before.lists) or (
        named and names != before.classes
    ):
        raise InputError(
            "must have the classes that the monitor began with",
            argument="classes",
            kind="label",
            found=f"these were {_classes(before)}; now there are {_classes(kind)}",
            remedies=[Remedy("Begin a new monitor, with a reference that knows the new classes.")],
        )
    return before


def refuse_unnamed(names: Sequence[Hashable] | None, n_classes: int) -> None:
    """Refuse names of classes that had positions so far, unless they are these positions."""
    if names is not None and _texts(names) != _texts(range(n_classes)):
        raise InputError(
            "must be named in the order of their positions",
            argument="classes",
            kind="label",
            found=f"earlier rows had positions only; now there are {join(map(show, names))}",
            remedies=[passing("if this is the order", classes=list(names))],
        )


def _texts(names: Iterable[Hashable] | None) -> list[str]:
    return [] if names is None else list(map(id_text, names))


def _classes(kind: Kind) -> str:
    return join(map(show, kind.classes)) if kind.classes else f"{kind.n_classes:,}"


def column_of(handle: Handle, time: Any, by: tuple[str, ...]) -> str:
    """The name of the column of times in a handle."""
    missing = [name for name in (time, *by) if name not in handle.by]
    if missing:
        raise not_scanned(missing[0], handle.by, "time" if missing[0] == time else "by")
    return str(time)


def named_labels(by: Mapping[str, Any] | None, names: tuple[str, ...]) -> dict[str, Any]:
    """Labels of the subgroups, checked: each name of the monitor, and no others."""
    if by is not None and not isinstance(by, Mapping):
        raise InputError(
            "must be labels by the name of each subgroup",
            argument="by",
            kind="type",
            found=f"it is of type {type(by).__name__}",
            remedies=[Remedy(f"Pass by={{{names[0]!r}: labels}}.")] if names else [],
        )
    labels = dict(by or {})
    if set(labels) != set(names):
        raise InputError(
            f"must name {join(map(show, names)) if names else 'no subgroups'}, as the monitor does",
            argument="by",
            found=f"it names {join(map(show, labels)) if labels else 'none'}",
        )
    return labels


def labels_of(n_rows: int, time: Any, by: Mapping[str, Any] | None, names: tuple[str, ...]) -> dict[str, Any]:
    """Columns of the time and of each subgroup, one value per row."""
    by_name = named_labels(by, names)
    labels = {TIME: time if np.ndim(time) else np.full(n_rows, time), **by_name}
    columns = {}
    for name, column in labels.items():
        values = to_host(to_array(with_zones(column), name)[0])
        if values.shape != (n_rows,):
            raise InputError(
                f"must have one value per row, {n_rows:,}",
                argument=name if name == TIME else "by",
                kind="length",
                found=f"the shape is {values.shape}",
            )
        columns[name] = values
    return columns


def stand_ins(p: object, classes: Sequence[Hashable] | None) -> Any:
    """Placeholder outcomes for forecasts without known outcomes."""
    if isinstance(p, TopLists):
        names = (p.vocabulary.names if p.vocabulary is not None else ()) if classes is None else classes
        return [names[0] if len(names) else 0] * p.n_rows
    shape = to_array(p, "p")[0].shape
    # One-hot rows need no names of classes.
    return np.tile(np.eye(1, shape[1] if len(shape) > 1 else 2, dtype=np.int64), (shape[0], 1))


def in_order(steps: Breakdown, *last: Any) -> list[Any]:
    """The sorted times of steps; texts whose numbers have another order are refused."""
    times: list[Any] = list(steps.by_label)
    texts = [time for time in (*last, *times) if isinstance(time, str)]
    for early, late in pairwise(sorted(set(texts))):
        if _by_number(early) > _by_number(late):
            raise InputError(
                "must be in an order that texts have as well",
                argument="time",
                kind="order",
                found=f"as texts, {show(early)} comes before {show(late)}",
                values=[early, late],
                remedies=[
                    Remedy("Use numbers or dates, or write all numbers with the same number of digits.")
                ],
            )
    return sorted(times)


def one_kind(steps: Breakdown, last: Any) -> Breakdown:
    """The steps with times of one kind: a day among moments, here or before, is its midnight."""
    *times, _ = alike([*steps.by_label, last])
    if times == list(steps.by_label):
        return steps
    pairs = zip(times, steps.by_label.values(), strict=True)
    return reduce(Breakdown.merge, (Breakdown({time: sums}) for time, sums in pairs))


def _by_number(text: str) -> list[tuple[str, int]]:
    """A key that sorts texts by the numbers in them."""
    pieces = re.split(r"(\d+)", text)
    return [(word, int(number or 0)) for word, number in zip(pieces[::2], [*pieces[1::2], ""], strict=True)]


def check_times(steps: Breakdown, last: Any, *, closed: bool = False) -> None:
    """Refuse times before the last one, and rows of a step that is closed."""
    try:
        steps = one_kind(steps, last)
        times = in_order(steps, last)
        early = [time for time in times if time < last]
        again = last in times
    except TypeError:
        raise InputError(
            "must be of one kind",
            argument="time",
            kind="type",
            found=f"the last was {show(last)}, now there is {show(next(iter(steps.by_label)))}",
        ) from None
    if early:
        raise InputError(
            "must not go back",
            argument="time",
            kind="order",
            found=f"{show(early[0])} comes after {show(last)}",
            values=early,
            remedies=[
                Remedy(
                    "Late outcomes enter when they arrive: pass the time of the outcome, or use "
                    "`predict` and `outcomes`.",
                    python_only=True,
                )
            ],
        )
    if again and closed:
        raise InputError(
            "must be new: a time step is complete when a run ends, unless rows have names",
            argument="time",
            kind="order",
            found=f"{show(last)} was taken in before",
            remedies=[passing("to leave out rows that are known", id=...)],
        )
