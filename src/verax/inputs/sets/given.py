"""What callers pass as prediction sets: masks, collections of classes, top lists or probabilities."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from verax.common.checks import is_whole
from verax.errors import InputError
from verax.inputs.arrays import kind_of, to_array, to_host
from verax.inputs.lists.nested import column_of_lists
from verax.inputs.lists.toplists import TopLists
from verax.inputs.lists.vocabulary import in_order
from verax.inputs.sets.labels import flat_labels
from verax.inputs.sets.sets import Sets


def as_sets(given: Any, y: object, classes: Sequence[Hashable] | None) -> Any:
    """What a caller passes as sets; probabilities, a handle's rows and None stay as they are."""
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
    """All classes that sets or outcomes name: they are all that can be known where nobody stated them."""
    flat, _ = flat_labels(listed)
    raw, _ = to_array(y, "y")
    if raw.ndim == 2:
        return {"n_classes": int(raw.shape[1])}
    happened = to_host(raw).tolist()
    everything = [*flat, *happened]
    if all(map(is_whole, everything)):
        return {"n_classes": max(2, 1 + max(map(int, everything), default=1))}
    return {"classes": tuple(in_order(set(everything)))}
