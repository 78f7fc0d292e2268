"""The event of two classes: outcomes and forecasts whose second class is the one that is named."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from verax.errors import InputError, Remedy, join, passing, show
from verax.inputs.arrays import namespace_of, to_array, to_host
from verax.inputs.outcomes import class_names


def with_positive(given: Mapping[str, Any], positive: Hashable) -> dict[str, Any]:
    """The arguments `y`, `p` (or `forecasts`) and `classes` of a function, with the event as second class.

    A single column of probabilities is that of the event. Two columns without names are swapped if the event
    is the first class.

    >>> changed = with_positive({"y": ["sick", "well"], "p": [0.9, 0.2]}, "sick")
    >>> changed["classes"], changed["p"]
    (('well', 'sick'), [0.9, 0.2])
    >>> changed = with_positive({"y": [0, 1], "p": [[0.9, 0.1], [0.2, 0.8]]}, 0)
    >>> changed["classes"], changed["p"].tolist()
    ((1, 0), [[0.1, 0.9], [0.8, 0.2]])
    """
    name = "p" if "p" in given else "forecasts"
    if given.get(name) is None:
        raise InputError(
            "names a class that outcomes and forecasts are about",
            argument="positive",
            kind="missing",
            found="no forecasts are given",
            remedies=[Remedy("Pass them, or leave `positive` out.", python_only=True)],
        )
    several = isinstance(given[name], Mapping)
    models = dict(given[name]) if several else {"": given[name]}
    arrays = {model: to_array(p, "p") for model, p in models.items()}
    columns = next(
        (
            column_names
            for array, column_names in arrays.values()
            if column_names is not None and array.ndim == 2
        ),
        None,
    )
    classes = _classes(given, columns, [array for array, _ in arrays.values()])
    try:
        at = classes.index(positive)
    except Exception:
        # Values such as arrays, tensors and NA do not tell whether they equal a name.
        at = -1
    if len(classes) != 2 or at < 0:
        raise InputError(
            "must be one of two classes",
            argument="positive",
            kind="label",
            found=f"it is {show(positive)}, and the classes are {join(map(show, classes))}",
            values=[positive],
        )
    changed = dict(given)
    pair = (classes[1 - at], positive)
    if at == 0:
        models = {
            model: models[model] if column_names or p.ndim == 1 else _swapped(p)
            for model, (p, column_names) in arrays.items()
        }
        changed[name] = models if several else models[""]
        outcomes, column_names = to_array(given["y"], "y")
        if outcomes.ndim == 2 and column_names is None and not _by_rater(given):
            changed["y"] = _swapped(outcomes)
    if given.get("classes") is not None or pair != (0, 1):
        changed["classes"] = pair
    return changed


def _classes(given: Mapping[str, Any], columns: tuple[Any, ...] | None, arrays: list[Any]) -> tuple[Any, ...]:
    """The two classes: named by the caller or by columns, positions, or the labels that happened."""
    if given.get("classes") is not None:
        return class_names(given["classes"])
    if columns is not None:
        return tuple(columns)
    if given.get("y") is None:
        raise InputError("names a class of outcomes, and there are none", argument="positive")
    outcomes = to_host(to_array(given["y"], "y")[0])
    if _by_rater(given):
        outcomes = outcomes.ravel()
    if outcomes.ndim != 1 or outcomes.dtype.kind in "biu":
        return (0, 1)
    labels = tuple(
        dict.fromkeys(label for label in outcomes.tolist() if label is not None and label == label)
    )
    if len(labels) != 2 or any(array.ndim == 2 for array in arrays):
        raise InputError(
            "needs the names of both classes",
            argument="positive",
            kind="order",
            found=f"the outcomes are {join(map(show, labels[:4]))}",
            remedies=[passing("in the order of the columns of probabilities", classes=...)],
        )
    return labels


def _by_rater(given: Mapping[str, Any]) -> bool:
    """Whether the columns of the outcomes are raters, not classes."""
    return isinstance(given.get("raters"), str) and given["raters"] == "columns"


def _swapped(array: Any) -> Any:
    """The two columns in the other order; later checks refuse any other number of columns."""
    if array.shape[1] != 2:
        return array
    if isinstance(array, np.ndarray):
        return array[:, ::-1]
    return namespace_of(array).flip(array, axis=1)
