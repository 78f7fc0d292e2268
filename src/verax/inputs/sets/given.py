"""Prediction sets as callers pass them: masks, collections of classes, top lists or probabilities."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from verax.common.checks import is_whole
from verax.errors import InputError
from verax.inputs.arrays import Bools, Ints, kind_of, to_array, to_host
from verax.inputs.groups import missing
from verax.inputs.lists.reading import column_of_lists
from verax.inputs.lists.toplists import TopLists
from verax.inputs.lists.vocabulary import in_order
from verax.inputs.outcomes import class_names
from verax.inputs.sets.sets import Sets, flat_labels
from verax.inputs.skipping import REASONS, InvalidRows, Skipped, take_rows, without_invalid


def as_sets(given: Any, y: object, classes: Sequence[Hashable] | None) -> Any:
    """The argument `sets` as `Sets`; probabilities, the rows of a handle and None stay unchanged."""
    if given is None or isinstance(given, Sets):
        return given
    if isinstance(given, TopLists):
        return Sets.from_lists(given)
    if isinstance(given, Mapping) or hasattr(given, "with_outcomes"):
        return given
    if _is_table(given):
        raw, _ = to_array(given, "sets")
        return given if kind_of(raw) == "real" else Sets.from_mask(given, classes=classes)
    listed = column_of_lists(given, "sets") if not isinstance(given, (list, tuple)) else list(given)
    if listed is None:
        raise InputError(
            "must be a mask, a collection of classes for each row, or top lists",
            argument="sets",
            kind="type",
            found=f"it is a {type(given).__name__}",
        )
    if isinstance(listed, list) and listed and all(map(_is_mask_row, listed)):
        return Sets.from_mask(np.array(listed), classes=classes)
    if isinstance(listed, list) and listed and all(map(_is_float_row, listed)):
        return np.array(listed, float)
    if classes is None:
        return Sets.from_labels(listed, **_known(listed, y))
    return Sets.from_labels(listed, classes=classes)


def _is_table(given: Any) -> bool:
    ndim = getattr(given, "ndim", None)
    return ndim == 2 or (ndim is None and hasattr(given, "columns"))


def _is_mask_row(row: Any) -> bool:
    return (
        isinstance(row, (list, tuple, np.ndarray))
        and len(row) > 1
        and all(isinstance(x, (bool, np.bool_)) for x in row)
    )


def _is_float_row(row: Any) -> bool:
    return (
        isinstance(row, (list, tuple, np.ndarray))
        and len(row) > 1
        and all(isinstance(x, (float, np.floating)) for x in row)
    )


def _known(listed: Any, y: object) -> dict[str, Any]:
    """All classes that sets or outcomes name, for callers who do not state the classes."""
    flat, _ = flat_labels(listed)
    raw, _ = to_array(y, "y")
    if raw.ndim == 2:
        return {"n_classes": int(raw.shape[1])}
    happened = to_host(raw).tolist()
    everything = [*flat, *happened]
    if all(map(is_whole, everything)):
        return {"n_classes": max(2, 1 + max(map(int, everything), default=1))}
    return {"classes": tuple(in_order(set(everything)))}


def without_invalid_sets(given: Mapping[str, Any]) -> tuple[dict[str, Any], Skipped, Ints]:
    """The arguments of `sets` without invalid rows, the rows left out, and the numbers of those kept."""
    sets, others = given["sets"], {name: value for name, value in given.items() if name != "sets"}
    if sets is None or isinstance(sets, Mapping) or (hasattr(sets, "vocabulary")):
        raise InputError("cannot be 'skip' for top lists", argument="invalid", values=["skip"])
    if _are_probabilities(sets):
        valid, skipped, kept = without_invalid({**others, "p": sets})
        return {**valid, "sets": valid.pop("p")}, skipped, kept
    sets = sets if isinstance(sets, Sets) or hasattr(sets, "shape") else _listed(sets)
    bad = _unusable(sets, others.get("classes"))
    survey = InvalidRows(len(bad))
    survey.add(bad, REASONS["sets", "label"])
    first = survey.kept
    y = np.asarray(to_host(to_array(given["y"], "y")[0]))
    classes = others.get("classes")
    known = None if classes is None else class_names(classes)
    if known is None and kind_of(y) in ("text", "object"):
        known = (*dict.fromkeys(y[~missing(y)].tolist()), ("another class",))
    k = _n_classes(sets, y) if known is None else len(known)
    rows = {name: take_rows(value, first) if name in _PER_ROW else value for name, value in others.items()}
    uniform = np.broadcast_to(1 / k, (len(first), k))
    valid, skipped, kept = without_invalid({**rows, "p": uniform, "classes": known})
    for name in ("p", "classes"):
        valid.pop(name)
    kept = first[kept]
    bad[first[list(skipped.rows)]] = True
    gone = tuple(np.flatnonzero(bad).tolist())
    reasons = {**survey.skipped().reasons, **skipped.reasons}
    valid_sets = sets.taken(kept) if isinstance(sets, Sets) else take_rows(sets, kept)
    return {**others, **valid, "sets": valid_sets}, Skipped(len(bad), len(gone), gone, reasons), kept


_PER_ROW = ("y", "weights", "groups", "by")


def _are_probabilities(sets: Any) -> bool:
    """Whether these are a table of numbers other than a mask."""
    if isinstance(sets, (Sets, list, tuple)) or getattr(sets, "ndim", 2) != 2:
        return False
    return kind_of(to_array(sets, "sets")[0]) == "real"


def _listed(sets: Any) -> Any:
    """One collection for each row."""
    if isinstance(sets, (list, tuple)):
        return list(sets)
    column = column_of_lists(sets, "sets")
    if isinstance(column, tuple):
        return [part.tolist() for part in np.split(column[0], column[1][1:-1])]
    return sets if column is None else list(column)


def _unusable(sets: Any, classes: Any) -> Bools:
    """The rows whose sets are missing, or name unknown classes or one twice."""
    if isinstance(sets, Sets):
        return np.zeros(len(sets), np.bool_)
    if not isinstance(sets, list):
        values = np.asarray(to_host(to_array(sets, "sets")[0]))
        if values.ndim == 2:
            return np.asarray(~((values == 0) | (values == 1)).all(axis=1))
        sets = list(values) if values.ndim else [None]
    names = None if classes is None else class_names(classes)
    positions = names is not None and not any(map(is_whole, names))
    known = None if names is None else {*names, *(range(len(names)) if positions else ())}
    return np.array([_is_wrong(labels, known) for labels in sets], np.bool_)


def _is_wrong(labels: Any, known: set[Hashable] | None) -> bool:
    if isinstance(labels, (str, bytes, Mapping)) or not hasattr(labels, "__iter__"):
        return True
    members = [x.item() if isinstance(x, np.generic) else x for x in labels]
    if any(not isinstance(x, Hashable) or x is None for x in members):
        return True
    return len(set(members)) < len(members) or (known is not None and not known.issuperset(members))


def _n_classes(sets: Any, y: Any) -> int:
    """A number of classes that only invalid outcomes exceed."""
    if isinstance(sets, Sets):
        return sets.n_classes
    if not isinstance(sets, list) and getattr(sets, "ndim", 1) == 2:
        return int(to_array(sets, "sets")[0].shape[1])
    with np.errstate(invalid="ignore"):
        return max(2, 1 + int(np.nanmax(y, initial=1)))
