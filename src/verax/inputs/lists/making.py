"""What callers have, as the codes, confidences and offsets that `TopLists` takes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from verax.common.checks import check_count, check_flag, check_n_classes, check_number
from verax.errors import InputError, show
from verax.inputs.arrays import Bools, Floats, Ints, kind_of, to_array, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.lists.labelsets import LabelSets, most_likely_sets
from verax.inputs.lists.ragged import offsets_of
from verax.inputs.lists.reading import (
    check_same_lists,
    complete_vocabulary,
    encode,
    flatten,
    read_label_probabilities,
    rescaled,
    top_of_rows,
)
from verax.inputs.lists.vocabulary import positions
from verax.inputs.validity import Unity

Names: TypeAlias = Sequence[Hashable] | None
# Codes, confidences, offsets and the number of classes; the vocabulary and what tolerance there is.
Made: TypeAlias = tuple[tuple[Any, Any, Any, int], dict[str, Any]]


def of_arrays(
    classes: object, confidences: object, n_classes: int, offsets: object, names: Names, normalize: bool
) -> Made:
    """Classes and confidences in arrays or columns."""
    m = check_n_classes(n_classes)
    flat, starts = flatten(classes, offsets, "classes")
    values, value_starts = flatten(confidences, offsets, "confidences")
    check_same_lists(starts, value_starts)
    vocabulary = complete_vocabulary(names, m)
    codes: Any = flat
    if kind_of(flat) in ("object", "text") or (flat.dtype.kind == "u" and flat.dtype.itemsize == 8):
        vocabulary, codes = encode(flat.tolist(), starts, m, vocabulary, "classes")
    elif kind_of(flat) != "integer" and flat.size:
        raise InputError(
            "must hold class positions, which are integers, or names",
            argument="classes",
            kind="type",
            found=f"its type is {flat.dtype}",
        )
    tolerance = Unity.of(values).tolerance
    if check_flag("normalize", normalize) and kind_of(values) in ("real", "integer"):
        values = rescaled(values, starts, m)
    return (codes, values, starts, m), {"vocabulary": vocabulary, "tolerance": tolerance}


def of_dicts(
    rows: Iterable[Mapping[Any, float]], n_classes: int, names: Names, tolerance: float, normalize: bool
) -> Made:
    """Rows of {class: confidence}."""
    m = check_n_classes(n_classes)
    keys: list[Hashable] = []
    values: list[float] = []
    lengths = []
    for number, row in enumerate(_rows(rows)):
        if not isinstance(row, Mapping):
            raise InputError(
                "must hold mappings from class to confidence",
                argument="rows",
                kind="type",
                found=f"row {number} holds {show(row)}",
                rows=[number],
                values=[row],
            )
        keys.extend(row)
        values.extend(row.values())
        lengths.append(len(row))
    starts = offsets_of(np.array(lengths, np.int64))
    vocabulary, codes = encode(keys, starts, m, complete_vocabulary(names, m), "rows")
    confidences = _numbers(values, keys, starts)
    if check_flag("normalize", normalize):
        confidences = rescaled(confidences, starts, m)
    return (codes, confidences, starts, m), {"vocabulary": vocabulary, "tolerance": tolerance}


def of_decisions(decisions: object, n_classes: int, names: Names) -> Made:
    """The one class decided for, with certainty."""
    m = check_n_classes(n_classes)
    vocabulary = complete_vocabulary(names, m)
    try:
        codes = positions(decisions, m, None if vocabulary is None else vocabulary.names)
    except InputError as error:
        raise error.replace(argument="decisions") if error.argument == "y" else error from None
    return (codes, np.ones(codes.size), np.arange(codes.size + 1), m), {"vocabulary": vocabulary}


def of_probabilities(
    p: object, k: int | None, mass: float | None, options: dict[str, Any]
) -> tuple[Made, Bools]:
    """The `k` most likely classes of each row, or those that together reach `mass`.

    With them, whether an unlisted class is as likely as the last listed one.
    """
    raw, columns = to_array(p, "p")
    n = int(raw.shape[0]) if raw.ndim else 0
    forecasts = Forecasts(np.zeros(n, np.int64), p, part=True, **options)
    names = columns if options["classes"] is None else options["classes"]
    forecasts.check()
    m = forecasts.n_classes
    if (k is None) == (mass is None):
        raise InputError("Pass either the length of the lists (k) or their mass", argument="k")
    if k is not None:
        check_count("k", k, least=0)
        if k > m:
            raise InputError(f"must be at most the {m} classes, not {show(k)}", argument="k", values=[k])
    if mass is not None:
        mass = check_number("mass", mass, "must lie between 0 and 1", lambda share: 0 <= share <= 1)
    parts = [
        top_of_rows(to_host(batch.p).astype(np.float64, copy=False), k, mass)
        for batch in forecasts.batches(max(1, 2**20 // m))
    ] or [top_of_rows(np.zeros((0, m)), k, mass)]
    codes, values, lengths, totals, tied = (np.concatenate(part) for part in zip(*parts, strict=True))
    form = {
        "vocabulary": complete_vocabulary(names, m),
        "tolerance": 1e-6 if options["normalize"] or options["logits"] else forecasts.unity.tolerance,
        "slack": float(abs(totals - 1).max(initial=0)),
    }
    return ((codes, values, offsets_of(lengths), m), form), tied


def of_label_probabilities(q: object, k: int, labels: Names) -> Made:
    """The `k` most likely sets of independent labels."""
    values, names = read_label_probabilities(q, labels)
    check_count("k", k, least=0)
    m = 2 ** len(LabelSets((), names).labels)
    numbers, confidences, lengths = most_likely_sets(values, int(k))
    known = LabelSets(dict.fromkeys(numbers), names)
    codes = known.outcomes(numbers)
    return (codes, confidences, offsets_of(lengths), m), {"vocabulary": known}


def of_label_sets(
    sets: Sequence[Sequence[Any]],
    confidences: Sequence[Sequence[float]] | None,
    labels: Sequence[Hashable] | int,
) -> Made:
    """Given label sets."""
    known = LabelSets((), labels)
    rows = [_sets(row, number) for number, row in enumerate(_rows(sets, "sets"))]
    numbers = known.numbers([each for row in rows for each in row], "sets")
    starts = offsets_of(np.array([len(row) for row in rows], np.int64))
    values: Any = np.ones(len(numbers))
    if confidences is not None:
        values, value_starts = flatten(confidences, None, "confidences")
        check_same_lists(starts, value_starts)
    vocabulary = LabelSets(dict.fromkeys(numbers), known.labels)
    codes = vocabulary.outcomes(numbers)
    return (codes, values, starts, 2 ** len(known.labels)), {"vocabulary": vocabulary}


def _rows(rows: Any, argument: str = "rows") -> Iterable[Any]:
    """What can be read as one row after the other."""
    # Numbers are no rows here, and some arrays cannot be iterated over.
    array = hasattr(rows, "__array_namespace__") and not isinstance(rows, np.ndarray)
    if array or isinstance(rows, (str, bytes, type, Mapping)) or not isinstance(rows, Iterable):
        raise InputError(
            f"must hold one row after the other, not {show(rows)}", argument=argument, kind="type"
        )
    if isinstance(rows, np.ndarray) and rows.ndim == 0:
        raise InputError("must hold one row after the other, not one value", argument=argument, kind="type")
    return rows


def _sets(row: Any, number: int) -> list[Any]:
    """The label sets of one row."""
    if isinstance(row, Sequence) and not isinstance(row, (str, bytes)):
        return list(row)
    raise InputError(
        "must have a sequence of label sets per row",
        argument="sets",
        kind="type",
        found=f"row {number} holds {show(row)}",
        rows=[number],
        values=[row],
    )


def _numbers(values: list[Any], keys: list[Any], starts: Ints) -> Floats:
    """Confidences given one by one as doubles; texts are no numbers, whatever they say."""
    try:
        array = np.array(values) if values else np.zeros(0)
        if array.ndim == 1 and array.dtype.kind in "fiubO":
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    at = next((i for i, value in enumerate(values) if not isinstance(value, Real)), 0)
    row = int(np.searchsorted(starts, at, side="right")) - 1
    raise InputError(
        "must give every class a number as confidence",
        argument="rows",
        kind="type",
        found=f"row {row} gives {show(keys[at])} the confidence {show(values[at])}",
        rows=[row],
        values=[values[at]],
    )
