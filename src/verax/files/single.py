"""One column of probabilities, of the second of two classes, as two."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.errors import InputError, passing, show
from verax.files.arrow import Array, Bools, ValueOrigin
from verax.inputs.arrays import Columns
from verax.inputs.cumulative import class_probabilities, from_cumulative
from verax.inputs.reading import Reading
from verax.inputs.reading_checks import PROBABILITIES
from verax.inputs.validity import Unity


def both_classes(p: Array, place: ValueOrigin, logits: bool) -> Array:
    """The probability of the second of two classes as a row of two (or its logit)."""
    unity, p = Unity.at(64), p.astype(np.float64, copy=False)
    if logits:
        return np.stack([np.zeros_like(p), p], axis=1)
    rows = unity.both_classes(p, np)
    bad = ~is_probability(p)
    if bad.any():
        at = int(np.argmax(bad))
        value = float(p[at])
        raise place.refusal(
            "must hold probabilities between 0 and 1",
            f"holds {show(value)}",
            at=at,
            value=value,
            kind="value",
            count=int(bad.sum()),
            remedies=[
                passing("if these are percentages", percent=True),
                passing("if these are logits", logits=True),
            ],
        )
    return np.asarray(rows)


def shares(p: Any, request: Reading) -> Any:
    """Probabilities, from percentages where these were stated."""
    if not request.percent:
        return p
    return Columns([column / 100 for column in p.columns]) if isinstance(p, Columns) else p / 100


def by_class_from(p: Any, request: Reading, start: int, path: str) -> Any:
    """Probabilities of classes, from those at thresholds where these were stated.

    Where invalid rows are skipped, those that cross are left negative, to be found with the others.
    """
    if request.outputs == PROBABILITIES:
        return p
    c = np.column_stack(p.columns) if isinstance(p, Columns) else np.asarray(p)
    c = np.asarray(c if c.ndim == 2 else c[:, None], np.float64)
    outputs: Any = request.outputs
    if request.invalid == "skip":
        return class_probabilities(c, outputs)
    try:
        return from_cumulative(c, outputs=outputs)
    except InputError as error:
        rows = tuple(start + row for row in error.rows)
        raise error.replace(argument="probs", source=path, rows=rows) from None


def is_probability(p: Array) -> Bools:
    """Which numbers may be the probability of the second of two classes."""
    unity = Unity.at(64)
    return unity.holds(np.asarray(unity.both_classes(p.astype(np.float64, copy=False), np)))
