"""Forecasts that change over time: how long each stood, and one loss per question, weighted by that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from verax.errors import InputError, Offenders
from verax.inputs.arrays import Array, Floats, Ints


def how_long(ids: Array, times: Array, closes: Array, source: str = "") -> Floats:
    """How long each forecast of one forecaster stood: until the next one of its question, or its close.

    >>> how_long(np.array(["a", "b", "a"]), np.array([0.0, 1.0, 6.0]), np.array([10.0, 5.0, 10.0])).tolist()
    [6.0, 4.0, 4.0]
    """
    own, ends = _numbers(times, "times"), _numbers(closes, "closes")
    late = Offenders("times", "must not be after the close of the question", "value")
    late.add(own > ends, own, 0)
    if late.count:
        raise late.error().replace(source=source)
    _, codes = np.unique(ids.astype(str), return_inverse=True)
    order = np.lexsort((own, codes))
    until = ends[order].copy()
    same = codes[order][1:] == codes[order][:-1]
    until[:-1][same] = own[order][1:][same]
    found = np.empty(len(own))
    found[order] = until - own[order]
    return found


def _numbers(given: Array, argument: str) -> Floats:
    """Times as numbers; of dates, in days."""
    values = given.astype("datetime64[us]") if given.dtype.kind in "OUM" else given
    if values.dtype.kind == "M":
        values = values.astype(np.int64) / 8.64e10
    found = np.asarray(values, float)
    if not np.isfinite(found).all():
        raise InputError("must be a time in every row", argument=argument, kind="missing")
    return found


def first_rows(ids: Array) -> tuple[Ints, Ints]:
    """The first row of each question, in the order of appearance, and the question of each row."""
    _, first, code = np.unique(ids.astype(str), return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return first[order], rank[code.reshape(-1)]


def averaged(losses: Mapping[Any, Floats], question: Ints, stood: Floats) -> dict[Any, Floats]:
    """One loss per question: the mean of its forecasts, weighted by how long they stood.

    Where none stood for any time, the mean of all; NaN where no forecast has a loss.
    """
    n = int(question.max(initial=-1)) + 1
    found: dict[Any, Floats] = {}
    total = np.bincount(question, stood, n)
    weight = np.where(total[question] > 0, stood, 1.0)
    for rule, own in losses.items():
        known = ~np.isnan(own)
        sums = np.bincount(question[known], (weight * own)[known], n)
        weights = np.bincount(question[known], weight[known], n)
        found[rule] = np.divide(sums, weights, where=weights > 0, out=np.full(n, np.nan))
    return found
