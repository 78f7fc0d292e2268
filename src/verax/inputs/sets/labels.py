"""Prediction sets given as the classes that each names: labels, or positions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from verax.common.checks import is_whole
from verax.errors import InputError, Offenders, Remedy, passing, show
from verax.inputs.arrays import Ints, to_host
from verax.inputs.lists.nested import column_of_lists
from verax.inputs.lists.ragged import offsets_of

_SINGLE = Remedy("Put single classes into lists: [['cat'], ['dog']].", python_only=True)
_NO_MASK = Remedy("A mask is a boolean array; lists of lists hold classes.", python_only=True)


def flat_labels(rows: Any) -> tuple[list[Any], Ints]:
    """The classes of all sets one after the other, and where each set begins."""
    if isinstance(rows, tuple) and len(rows) == 2 and isinstance(rows[1], np.ndarray):
        return list(np.asarray(rows[0]).tolist()), rows[1]
    if not isinstance(rows, (list, tuple)):
        found = column_of_lists(rows, "sets")
        if isinstance(found, tuple):
            return list(found[0].tolist()), found[1]
        rows = rows if found is None else found
    rows = to_host(rows) if hasattr(rows, "__array_namespace__") else rows
    if isinstance(rows, (str, bytes, Mapping)) or not _several(rows):
        raise InputError(
            "must be a collection of classes for each row",
            argument="sets",
            kind="type",
            found=f"it is a {type(rows).__name__}",
            remedies=[_SINGLE],
        )
    flat: list[Any] = []
    lengths = []
    for number, row in enumerate(rows):
        if isinstance(row, (str, bytes, Mapping)) or not _several(row):
            raise InputError(
                "must be a collection of classes for each row",
                argument="sets",
                kind="type",
                found=f"row {number} holds {show(row)}",
                rows=[number],
                values=[row],
                remedies=[_SINGLE],
            )
        members = [x.item() if isinstance(x, np.generic) else x for x in row]
        flat += members
        lengths.append(len(members))
    return flat, offsets_of(np.array(lengths, np.int64))


def _several(x: object) -> bool:
    """Whether it can be gone through. Arrays without dimensions only look as if they could."""
    return hasattr(x, "__iter__") and getattr(x, "ndim", 1) != 0


def label_positions(flat: list[Any], offsets: Ints, k: int, names: tuple[Hashable, ...] | None) -> Ints:
    """The positions of the classes that sets name; refuses unknown ones."""
    known: Any = range(k) if names is None else {name: i for i, name in enumerate(names)}
    if names is not None and all(map(is_whole, flat)) and not any(map(is_whole, names)):
        # Whole numbers are positions where no class is a number.
        known = range(k)
    table = {name: i for i, name in enumerate(known)}
    try:
        places = np.fromiter((table.get(label, -1) for label in flat), np.int64, len(flat))
    except TypeError:
        places = np.array([-1 if not isinstance(x, Hashable) else table.get(x, -1) for x in flat])
    if (places >= 0).all():
        return places
    row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    wrong = np.flatnonzero(places < 0)
    first = {int(row[i]): flat[i] for i in reversed(wrong.tolist())}
    listed = "positions from 0 to " + str(k - 1) if names is None else ", ".join(show(c) for c in names[:6])
    more = ", ..." if names is not None and len(names) > 6 else ""
    bad = Offenders("sets", f"must name classes that are known ({listed}{more})", "label", ("names", "name"))
    mask = np.zeros(len(offsets) - 1, np.bool_)
    mask[list(first)] = True
    bad.add(mask, [first.get(i) for i in range(len(mask))], 0)
    raise bad.error(passing("with all classes in order, if some are missing", classes=...), _NO_MASK)


def check_repeats(members: Ints, offsets: Ints, names: tuple[Hashable, ...] | None) -> None:
    """Refuse sets that name a class twice."""
    row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    again = np.flatnonzero((members[1:] == members[:-1]) & (row[1:] == row[:-1]))
    if not len(again):
        return
    bad = Offenders("sets", "must name every class once", "label", ("names", "name"))
    twice = {int(row[i]): int(members[i]) for i in reversed(again.tolist())}
    mask = np.zeros(len(offsets) - 1, np.bool_)
    mask[list(twice)] = True
    shown = {at: (place if names is None else names[place]) for at, place in twice.items()}
    bad.add(mask, [f"{show(shown[i])} twice" if i in shown else "" for i in range(len(mask))], 0)
    raise bad.error(_NO_MASK)
