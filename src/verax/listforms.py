"""From what people have to lists: arrays of different shapes, names, dense rows; and the checks of each."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from verax.arrays import kind_of, to_array, to_host
from verax.errors import InputError, Offenders, show
from verax.outcomes import check_classes
from verax.ragged import Floats, Ints, Ragged, offsets_of
from verax.vocabulary import Vocabulary, positions

# Beyond, the probability of an unlisted class comes near the smallest double.
MOST_CLASSES = 2**900
# How far a list of doubles may sum above one, by rounding.
TOLERANCE = 1e-9


def flatten(x: object, offsets: object | None, argument: str) -> tuple[np.ndarray[Any, Any], Ints]:
    """One flat array of all entries, and where each row begins."""
    if offsets is None and isinstance(x, (list, tuple)) and len({_size(row) for row in x}) != 1:
        lengths = np.array([_size(row, number, argument) for number, row in enumerate(x)], np.int64)
        parts = [to_host(to_array(row, argument)[0]) for row in x if len(row)]
        flat = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        return flat, offsets_of(lengths)
    raw, _ = to_array(x, argument)
    array = to_host(raw)
    if offsets is not None:
        starts = to_host(to_array(offsets, "offsets")[0])
        return array, _check_offsets(starts, array, argument)
    if array.ndim != 2:
        raise InputError(
            f"`{argument}` must be (N, k), or 1-D with `offsets`; its shape is {array.shape}.",
            argument=argument,
        )
    return array.reshape(-1), np.arange(array.shape[0] + 1, dtype=np.int64) * array.shape[1]


def _size(row: Any, number: int = 0, argument: str = "") -> int:
    try:
        return len(row)
    except TypeError:
        if not argument:
            return -1
        raise InputError(
            f"`{argument}` must have one sequence a row; row {number} holds {show(row)}.",
            argument=argument,
            rows=(number,),
        ) from None


def _check_offsets(starts: np.ndarray[Any, Any], entries: np.ndarray[Any, Any], argument: str) -> Ints:
    good = starts.ndim == 1 and starts.size > 0 and starts.dtype.kind in "iu" and entries.ndim == 1
    if (
        not good
        or starts[0] != 0
        or starts[-1] != entries.size
        or (np.diff(starts.astype(np.int64)) < 0).any()
    ):
        raise InputError(
            f"`offsets` must be integers that rise from 0 to the {entries.size} entries of `{argument}`, "
            "one more than there are lists.",
            argument="offsets",
        )
    return np.ascontiguousarray(starts, np.int64)


def check_same_lists(starts: Ints, value_starts: Ints) -> None:
    """Refuse classes and confidences that do not go together."""
    if starts.size != value_starts.size:
        raise InputError(
            f"`classes` and `confidences` must have the same lists; they have {starts.size - 1} "
            f"and {value_starts.size - 1}.",
            argument="confidences",
        )
    if (starts != value_starts).any():
        row = int(np.flatnonzero(np.diff(starts) != np.diff(value_starts))[0])
        raise InputError(
            f"`classes` and `confidences` must have lists of the same lengths; in row {row} they have "
            f"{np.diff(starts)[row]} and {np.diff(value_starts)[row]} entries.",
            argument="confidences",
            rows=(row,),
        )


def to_floats(values: np.ndarray[Any, Any]) -> Floats:
    """Confidences as doubles."""
    if kind_of(values) not in ("real", "integer", "bool"):
        raise InputError(
            f"`confidences` must hold real numbers; its type is {values.dtype}.", argument="confidences"
        )
    return np.ascontiguousarray(values, np.float64)


def complete_vocabulary(names: Sequence[Hashable], n_classes: int) -> Vocabulary:
    """The vocabulary of all classes, by their names in order."""
    checked = check_classes(names, n_classes)
    assert checked is not None
    return Vocabulary(checked, complete=True)


def encode(keys: list[Any], n_classes: int, vocabulary: Vocabulary | None) -> tuple[Vocabulary | None, Ints]:
    """Codes for classes of any kind: positions where they are small integers, else a vocabulary's."""
    if vocabulary is not None:
        return vocabulary, positions(
            np.array(keys) if keys else np.zeros(0, np.int64), n_classes, vocabulary.names
        )
    if all(isinstance(key, (int, np.integer)) and not isinstance(key, bool) for key in keys):
        keys = [int(key) for key in keys]
        outside = next((key for key in keys if not 0 <= key < n_classes), None)
        if outside is not None:
            raise InputError(
                f"`classes` must hold class positions from 0 to {n_classes - 1}; one list holds {outside}.",
                argument="classes",
            )
        if n_classes <= 2**63:
            return None, np.array(keys, np.int64)
    found = Vocabulary(dict.fromkeys(keys), complete=False)
    return found, np.fromiter((found._codes[key] for key in keys), np.int64, len(keys))


def top_of_rows(p: Floats, k: int | None, mass: float | None) -> tuple[Ints, Floats, Ints, Floats]:
    """The classes, probabilities and lengths of the top lists of dense rows, and the sums of the rows."""
    n, m = p.shape
    totals = p.sum(axis=1)
    if k is None:
        order = np.argsort(-p, axis=1, kind="stable")
        values = np.take_along_axis(p, order, axis=1)
        assert mass is not None
        reached = np.cumsum(values, axis=1) >= mass - TOLERANCE
        lengths = np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, m)
        lengths = np.where(mass <= 0, 0, lengths).astype(np.int64)
        listed = np.arange(m) < lengths[:, None]
        return order[listed], values[listed], lengths, totals
    lengths = np.full(n, k, np.int64)
    if k == 0:
        return np.zeros(0, np.int64), np.zeros(0), lengths, totals
    # All above the k-th largest, and of its equals those with the lowest positions.
    least = np.partition(p, m - k, axis=1)[:, m - k, None]
    chosen = p > least
    equal = p == least
    room = k - np.count_nonzero(chosen, axis=1)[:, None]
    chosen |= equal & (np.cumsum(equal, axis=1) <= room)
    columns = np.nonzero(chosen)[1].reshape(n, k)
    values = np.take_along_axis(p, columns, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return (
        np.take_along_axis(columns, order, axis=1).reshape(-1),
        np.take_along_axis(values, order, axis=1).reshape(-1),
        lengths,
        totals,
    )


def check_n_classes(n_classes: int, vocabulary: Vocabulary | None) -> int:
    """`n_classes` as a Python integer that fits."""
    if isinstance(n_classes, bool) or not isinstance(n_classes, (int, np.integer)) or n_classes < 2:
        raise InputError(
            f"`n_classes` must be an integer of at least 2, not {n_classes!r}.", argument="n_classes"
        )
    if n_classes > MOST_CLASSES:
        raise InputError(
            "`n_classes` must be at most 2**900: beyond, the probability of an unlisted class is too small "
            "for a double.",
            argument="n_classes",
        )
    if vocabulary is not None and len(vocabulary) > n_classes:
        raise InputError(
            f"`n_classes` is {n_classes}, but the lists name {len(vocabulary)} different classes.",
            argument="n_classes",
        )
    return int(n_classes)


def check_confidences(lists: Ragged, tolerance: float) -> None:
    """Refuse confidences that are no probabilities."""
    t = lists.confidences
    if t.size and not (t.min() >= 0 and t.max() <= 1 + tolerance):
        wrong = ~((t >= 0) & (t <= 1 + tolerance))
        _complain(lists, wrong, t, Offenders("confidences", "must lie between 0 and 1"))


def check_positions(lists: Ragged, n_classes: int) -> None:
    """Refuse classes that are none."""
    codes = lists.classes
    if codes.size and not (codes.min() >= 0 and int(codes.max()) < n_classes):
        wrong = (codes < 0) | (codes > min(n_classes - 1, 2**63 - 1))
        requirement = f"must hold class positions from 0 to {n_classes - 1}"
        _complain(lists, wrong, codes, Offenders("classes", requirement))


def _complain(lists: Ragged, wrong: Any, values: Any, bad: Offenders) -> None:
    rows, first = np.unique(lists.row_of[wrong], return_index=True)
    mask = np.zeros(lists.n_rows, np.bool_)
    mask[rows] = True
    shown = np.zeros(lists.n_rows, values.dtype)
    shown[rows] = values[wrong][first]
    bad.add(mask, shown, 0)
    raise bad.error()


def check_repeats(lists: Ragged, vocabulary: Vocabulary | None) -> None:
    """Refuse lists that have a class twice."""
    twice, which = lists.repeated()
    if not twice.any():
        return
    names = np.zeros(lists.n_rows, np.object_)
    for row in np.flatnonzero(twice).tolist():
        code = int(which[row])
        names[row] = code if vocabulary is None else vocabulary.name(code)
    bad = Offenders("classes", "must not list a class twice", verbs=("lists again", "list again"))
    bad.add(twice, names, 0)
    raise bad.error()


def check_totals(total: Floats, lengths: Ints, n_classes: int, tolerance: float) -> None:
    """Refuse lists that have more than all probability, or all classes and less."""
    more = Offenders(
        "confidences",
        f"of a list must not sum to more than 1 (within {tolerance:g})",
        verbs=("sums to", "sum to"),
    )
    more.add(total > 1 + tolerance, total, 0)
    less = Offenders(
        "confidences",
        f"of a list of all {n_classes} classes must sum to 1",
        verbs=("sums to", "sum to"),
    )
    less.add((lengths >= float(n_classes)) & (total < 1 - tolerance), total, 0)
    for bad in (more, less):
        if bad.count:
            raise bad.error()


def read_label_probabilities(
    q: object, labels: Sequence[Hashable] | None
) -> tuple[Floats, Sequence[Hashable] | int]:
    """(N, L) probabilities of labels, and the labels; only their number where they have no names."""
    raw, columns = to_array(q, "q")
    values = to_host(raw)
    if values.ndim != 2 or values.shape[1] < 1 or kind_of(values) not in ("real", "integer", "bool"):
        raise InputError(
            f"`q` must be (N, L) probabilities of labels; its shape is {values.shape} "
            f"and its type {values.dtype}.",
            argument="q",
        )
    values = values.astype(np.float64, copy=False)
    outside = ~((values >= 0) & (values <= 1))
    bad = Offenders("q", "must hold probabilities between 0 and 1")
    bad.add(np.asarray(outside.any(axis=1)), values[np.arange(len(values)), outside.argmax(axis=1)], 0)
    if bad.count:
        raise bad.error()
    names = columns if labels is None else labels
    if names is not None and len(names) != values.shape[1]:
        raise InputError(
            f"`labels` must name the {values.shape[1]} columns of `q` in order; it names {len(names)}.",
            argument="labels",
        )
    return values, values.shape[1] if names is None else names
