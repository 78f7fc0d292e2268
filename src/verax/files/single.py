"""One column of probabilities, of the second of two classes, as two."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.errors import passing, show
from verax.files.arrow import Array, Bools, ValueOrigin
from verax.files.predictions import Request
from verax.inputs.columns import Columns
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


def shares(p: Any, request: Request) -> Any:
    """Probabilities, from percentages where these were stated."""
    if not request.percent:
        return p
    return Columns([column / 100 for column in p.columns]) if isinstance(p, Columns) else p / 100


def is_probability(p: Array) -> Bools:
    """Which numbers may be the probability of the second of two classes."""
    unity = Unity.at(64)
    return unity.holds(np.asarray(unity.both_classes(p.astype(np.float64, copy=False), np)))
