"""The law of missing answers: what an answer without a grade counts as, by why it has none."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from verax.errors import InputError
from verax.inputs.arrays import Array, Bools, Floats
from verax.inputs.questions import column_of

Ungraded = Literal["by-reason", "bounds", "exclude", "wrong"]
# What became of answers that a model is answerable for: without a grade they are wrong.
OF_MODEL = ("limit", "empty", "unparsable", "refused")
# What became of others: a provider or sandbox failed, or a grader. Without a grade they are left out.
OF_OTHERS = ("error", "unscored")
# In words, for sentences.
WORDS = {
    "limit": "cut at a limit",
    "empty": "empty",
    "unparsable": "unparsable",
    "refused": "refused",
    "error": "failed",
    "unscored": "not scored by the grader",
}


def reasons_of(given: object, model: str, n: int) -> Array | None:
    """What became of each answer, as texts; empty where nothing is said. None if nothing is known."""
    if given is None:
        return None
    column = column_of(given, model, n, "reasons")
    return np.array(["" if value is None or value != value else str(value) for value in column.tolist()], object)


def counted_as_wrong(grades: Floats, reasons: Array | None, ungraded: Ungraded) -> Bools:
    """Which answers without a grade count as wrong.

    >>> grades = np.array([1.0, np.nan, np.nan, np.nan])
    >>> reasons = np.array(["limit", "limit", "error", ""], object)
    >>> counted_as_wrong(grades, reasons, "by-reason").tolist()
    [False, True, False, False]
    """
    missing = np.isnan(grades)
    if ungraded == "wrong" or not missing.any():
        return missing
    if ungraded != "by-reason" or reasons is None:
        return np.zeros(len(grades), np.bool_)
    return missing & np.isin(reasons.astype(str), OF_MODEL)
