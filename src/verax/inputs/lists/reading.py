"""Top lists from arrays of different shapes, from names and from dense rows, with their checks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Number, Real
from typing import Any, TypeAlias

import numpy as np

from verax.common.checks import (
    MOST_CLASSES,
    MOST_SETS,
    as_float,
    check_count,
    check_flag,
    check_n_classes,
    check_number,
    is_whole,
)
from verax.errors import InputError, Offenders, Remedy, join, passing, show
from verax.inputs.arrays import Bools, Floats, Ints, kind_of, to_array, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.lists.ragged import Ragged, offsets_of
from verax.inputs.lists.vocabulary import UNLISTED, ClassVocabulary, LabelSets, most_likely_sets, positions
from verax.inputs.outcomes import check_classes
from verax.inputs.validity import Unity, tolerance_of


def column_of_lists(x: Any, argument: str) -> tuple[np.ndarray[Any, Any], Ints] | list[Any] | None:
    """The entries and offsets of a column of lists; None for any other object.

    A column of Python objects is returned as a list.
    """
    package = type(x).__module__.partition(".")[0]
    if package == "polars":
        return _from_polars(x, argument)
    if package == "pandas" and getattr(x, "ndim", 0) == 1:
        if type(x.dtype).__name__ == "ArrowDtype":
            import pyarrow as pa

            return _from_arrow(pa.array(x), argument)
        return list(x) if x.dtype == object else None
    if package == "pyarrow":
        return _from_arrow(x, argument)
    if isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype == object:
        return list(x)
    return None


def _from_polars(x: Any, argument: str) -> tuple[np.ndarray[Any, Any], Ints] | list[Any] | None:
    if type(getattr(x, "dtype", None)).__name__ not in ("List", "Array"):
        return None
    try:
        return _from_arrow(x.to_arrow(), argument)
    except ImportError:
        return list(x.to_list())


def _from_arrow(x: Any, argument: str) -> tuple[np.ndarray[Any, Any], Ints] | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = getattr(x, "type", None)
    if kind is None or not (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    ):
        return None
    if x.null_count:
        row = int(pc.index(x.is_null(), True).as_py())
        raise InputError(
            "must have one list per row",
            argument=argument,
            kind="missing",
            found=f"row {row} is missing ({x.null_count} in all)",
            rows=[row],
            count=x.null_count,
        )
    lengths = to_host(to_array(pc.list_value_length(x), argument)[0]).astype(np.int64)
    # For chunks and slices these are the entries of their own lists.
    entries = pc.list_flatten(x)
    return to_host(to_array(entries, argument)[0]), offsets_of(lengths)


# The sum of a list of doubles may differ from 1 by as much as that of a dense row.
TOLERANCE = tolerance_of(64)
# A mass counts as reached if the sum lacks no more than this, for rounding.
_ROUNDING = 1e-9


def flatten(x: object, offsets: object | None, argument: str) -> tuple[np.ndarray[Any, Any], Ints]:
    """One flat array of all entries, and the offsets of rows."""
    if offsets is None:
        column = column_of_lists(x, argument)
        if isinstance(column, tuple):
            return column
        x = x if column is None else column
    if offsets is None and isinstance(x, (list, tuple)) and len({_size(row) for row in x}) != 1:
        return _concatenate(x, argument)
    array = to_host(to_array(x, argument)[0])
    if offsets is not None:
        return array, check_offsets(offsets, array, argument)
    if array.ndim != 2:
        raise InputError(
            "must have shape (N, k)",
            argument=argument,
            kind="type",
            found=f"its shape is {array.shape}",
            remedies=[Remedy("For concatenated lists, also pass offsets.", python_only=True)],
        )
    return array.reshape(-1), np.arange(array.shape[0] + 1, dtype=np.int64) * array.shape[1]


def _concatenate(rows: Sequence[Any], argument: str) -> tuple[np.ndarray[Any, Any], Ints]:
    """Sequences of different lengths one after the other."""
    parts = []
    for number, row in enumerate(rows):
        part = None if _size(row) < 0 else to_host(to_array(row, argument)[0])
        if part is None or part.ndim != 1:
            raise InputError(
                "must have one sequence per row",
                argument=argument,
                kind="type",
                found=f"row {number} holds {show(row)}",
                rows=[number],
                values=[row],
            )
        parts.append(part)
    some = [part for part in parts if part.size]
    flat = np.concatenate(some) if len({part.dtype.kind for part in some}) == 1 else _objects(some)
    return flat, offsets_of(np.array([part.size for part in parts], np.int64))


def _objects(parts: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Arrays of different types in sequence, with unchanged values; no arrays give integers."""
    values = [value for part in parts for value in part.tolist()]
    numbers = all(part.dtype.kind in "iuf" for part in parts)
    return np.array(values) if numbers and values else _column(values) if values else np.zeros(0, np.int64)


def _column(values: list[Any]) -> np.ndarray[Any, Any]:
    """Python objects, even sequences, as a 1-D array of objects."""
    array = np.empty(len(values), np.object_)
    array[:] = values
    return array


def _size(row: Any) -> int:
    """The length of an object; -1 if it has none."""
    try:
        return len(row)
    except TypeError:
        return -1


def check_offsets(offsets: object, entries: np.ndarray[Any, Any], argument: str) -> Ints:
    """`offsets` as integers that cut `entries` into lists."""
    starts = to_host(to_array(offsets, "offsets")[0])
    if (
        entries.ndim != 1
        or starts.ndim != 1
        or starts.size == 0
        or starts.dtype.kind not in "iu"
        or starts[0] != 0
        or starts[-1] != entries.size
        or (np.diff(starts.astype(np.int64)) < 0).any()
    ):
        raise InputError(
            f"must be integers that rise from 0 to {entries.size}, one more than there are lists",
            argument="offsets",
            found=f"the shapes of offsets and {argument} are {starts.shape} and {entries.shape}",
        )
    return np.ascontiguousarray(starts, np.int64)


def check_same_lists(starts: Ints, value_starts: Ints) -> None:
    """Refuse classes and confidences that do not match."""
    if starts.size != value_starts.size:
        raise InputError(
            "must have one list for each list of classes",
            argument="confidences",
            kind="length",
            found=f"there are {value_starts.size - 1} and {starts.size - 1}",
        )
    if (starts != value_starts).any():
        lengths, value_lengths = np.diff(starts), np.diff(value_starts)
        row = int(np.flatnonzero(lengths != value_lengths)[0])
        raise InputError(
            "must have one number per listed class",
            argument="confidences",
            kind="length",
            found=f"row {row} has {value_lengths[row]} confidences and {lengths[row]} classes",
            rows=[row],
            values=[int(value_lengths[row])],
        )


def flat_lists(classes: object, confidences: object, offsets: object) -> Ragged:
    """Flat arrays of class codes and confidences as lists; the arrays may still be the caller's."""
    codes = to_host(to_array(classes, "classes")[0])
    if codes.size and kind_of(codes) != "integer":
        raise InputError(
            "must hold class positions, which are integers",
            argument="classes",
            kind="type",
            found=f"its type is {codes.dtype}",
        )
    values = to_host(to_array(confidences, "confidences")[0])
    if kind_of(values) not in ("real", "integer", "bool"):
        raise InputError(
            "must hold real numbers", argument="confidences", kind="type", found=f"its type is {values.dtype}"
        )
    if values.shape != codes.shape:
        raise InputError(
            "must have one number per listed class",
            argument="confidences",
            kind="length",
            found=f"the shapes are {values.shape} and {codes.shape}",
        )
    starts = check_offsets(offsets, codes, "classes")
    return Ragged(
        np.ascontiguousarray(codes, np.int64), np.ascontiguousarray(values, np.float64), np.array(starts)
    )


def complete_vocabulary(names: Sequence[Hashable] | None, n_classes: int) -> ClassVocabulary | None:
    """The vocabulary of all classes, by their names in order; None without names."""
    if names is None:
        return None
    try:
        checked = check_classes(names, n_classes)
    except InputError as error:
        raise error.replace(argument="names") from None
    assert checked is not None
    return ClassVocabulary(checked, complete=True)


def encode(
    keys: list[Any], starts: Ints, n_classes: int, vocabulary: ClassVocabulary | None, argument: str
) -> tuple[ClassVocabulary | None, Ints]:
    """Codes of classes of any kind: positions if they are small integers, else those of a vocabulary.

    `starts` are the offsets of lists in the keys.
    """
    integers = all(map(is_whole, keys))
    numbered = vocabulary is not None and any(isinstance(name, Number) for name in vocabulary.names)
    if integers and not numbered:
        outside = next((at for at, key in enumerate(keys) if not 0 <= key < n_classes), None)
        if outside is not None:
            wanted = f"class positions from 0 to {n_classes - 1}"
            raise _no_class(wanted, argument, outside, keys, starts, "which is none of them")
        if n_classes <= 2**63:
            return vocabulary, np.array(keys, np.int64)
    try:
        known = ClassVocabulary(dict.fromkeys(keys), complete=False) if vocabulary is None else vocabulary
        codes = known.codes(keys)
    except TypeError:
        raise InputError(
            "must hold classes that can be looked up", argument=argument, kind="type", found="one is mutable"
        ) from None
    if (codes == UNLISTED).any():
        first, names = int((codes == UNLISTED).argmax()), [show(name) for name in known.names[:3]]
        shown = join(names) if len(known) <= 3 else f"{', '.join(names)}, ..."
        why = f"which is not among the names {shown}"
        advice = Remedy(
            "Give all names as the lists write them, or none: the lists then name the classes they list."
        )
        raise _no_class("classes that have a name", argument, first, keys, starts, why, advice)
    return known, codes


def _no_class(
    wanted: str, argument: str, at: int, keys: list[Any], starts: Ints, why: str, *remedies: Remedy
) -> InputError:
    """The error about a key that is not among the classes."""
    row = int(np.searchsorted(starts, at, side="right")) - 1
    return InputError(
        f"must hold {wanted}",
        argument=argument,
        kind="label",
        found=f"row {row} lists {show(keys[at])}, {why}",
        rows=[row],
        values=[keys[at]],
        remedies=remedies,
    )


def rescaled(confidences: np.ndarray[Any, Any], starts: Ints, n_classes: int) -> Floats:
    """Confidences, with every list of all classes divided by its sum; shorter lists stay unchanged."""
    values = np.array(confidences, np.float64)
    lengths = np.diff(starts)
    whole = lengths >= as_float(n_classes)
    if values.ndim == 1 and whole.any():
        row_of = np.repeat(np.arange(lengths.size), lengths)
        sums = np.bincount(row_of, values, lengths.size)
        with np.errstate(invalid="ignore", divide="ignore"):
            values = np.where(whole[row_of] & (sums[row_of] > 0), values / sums[row_of], values)
    return values


def top_of_rows(p: Floats, k: int | None, mass: float | None) -> tuple[Ints, Floats, Ints, Floats, Bools]:
    """The classes, probabilities and lengths of the top lists of dense rows, the sums of the rows, and ties.

    Ties are rows in which an unlisted class is as likely as a listed one.
    """
    n, m = p.shape
    totals = p.sum(axis=1)
    if k is None:
        order = np.argsort(-p, axis=1, kind="stable")
        values = np.take_along_axis(p, order, axis=1)
        assert mass is not None
        reached = np.cumsum(values, axis=1) >= mass - _ROUNDING
        lengths = np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, m)
        lengths = np.where(mass <= 0, 0, lengths).astype(np.int64)
        listed = np.arange(m) < lengths[:, None]
        # The class after the last listed one; lists of none or all have none.
        following = np.take_along_axis(values, np.minimum(lengths, m - 1)[:, None], axis=1)[:, 0]
        last = np.take_along_axis(values, np.maximum(lengths - 1, 0)[:, None], axis=1)[:, 0]
        tied = (lengths > 0) & (lengths < m) & (following == last)
        return order[listed], values[listed], lengths, totals, tied
    lengths = np.full(n, k, np.int64)
    if k == 0:
        return np.zeros(0, np.int64), np.zeros(0), lengths, totals, np.zeros(n, bool)
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
        np.count_nonzero(equal, axis=1) > room[:, 0],
    )


def check_size(n_classes: object, vocabulary: ClassVocabulary | None) -> int:
    """`n_classes` as a Python integer; refuses fewer classes than names."""
    of_sets = vocabulary is not None and not vocabulary.spelled
    m = check_n_classes(n_classes, most=MOST_SETS if of_sets else MOST_CLASSES)
    if vocabulary is not None and len(vocabulary) > m:
        raise InputError(
            "must be at least the number of different classes in the lists",
            argument="n_classes",
            kind="length",
            found=f"it is {m}, and the lists name {len(vocabulary)}",
            values=[m],
        )
    return m


def check_confidences(lists: Ragged, tolerance: float) -> None:
    """Refuse confidences that are not probabilities."""
    t, most = lists.confidences, 1 + Unity(tolerance).limit
    if t.size and not (t.min() >= 0 and t.max() <= most):
        wrong = ~((t >= 0) & (t <= most))
        raise _first_entries(lists, wrong, t, Offenders("confidences", "must lie between 0 and 1"))


def check_positions(lists: Ragged, n_classes: int) -> None:
    """Refuse codes without a class."""
    codes = lists.classes
    if codes.size and not (codes.min() >= 0 and int(codes.max()) < n_classes):
        wrong = (codes < 0) | (codes > min(n_classes - 1, 2**63 - 1))
        requirement = f"must hold class positions from 0 to {n_classes - 1}"
        raise _first_entries(lists, wrong, codes, Offenders("classes", requirement, "label"))


def _first_entries(lists: Ragged, wrong: Any, values: Any, bad: Offenders) -> InputError:
    """The error about lists with invalid entries, with the first of each."""
    rows, first = np.unique(lists.row_of[wrong], return_index=True)
    mask = np.zeros(lists.n_rows, np.bool_)
    mask[rows] = True
    shown = np.zeros(lists.n_rows, values.dtype)
    shown[rows] = values[wrong][first]
    bad.add(mask, shown, 0)
    return bad.error()


def check_repeats(lists: Ragged, vocabulary: ClassVocabulary | None) -> None:
    """Refuse lists that name a class twice."""
    twice, which = lists.repeated()
    if not twice.any():
        return
    names = np.zeros(lists.n_rows, np.object_)
    for row in np.flatnonzero(twice).tolist():
        code = int(which[row])
        names[row] = code if vocabulary is None else vocabulary.name(code)
    bad = Offenders("classes", "must not list a class twice", "list", ("lists again", "list again"))
    bad.add(twice, names, 0)
    raise bad.error()


def check_totals(total: Floats, lengths: Ints, n_classes: int, tolerance: float) -> None:
    """Refuse lists with a sum above 1, and lists of all classes with a sum below 1."""
    verbs, limit = ("sums to", "sum to"), Unity(tolerance).limit
    whole = lengths >= as_float(n_classes)
    rescale = passing("to rescale lists of all classes", normalize=True)
    advice = Remedy("Partial lists are not rescaled: the rest belongs to the unlisted classes.")
    unequal = Offenders(
        "confidences",
        f"of a list of all {n_classes} classes must sum to 1 within {tolerance:g}",
        "sum",
        verbs,
    )
    unequal.add(whole & ~(np.abs(total - 1) <= limit), total, 0)
    more = Offenders(
        "confidences", f"of a list must not sum to more than 1 (within {tolerance:g})", "sum", verbs
    )
    more.add(~whole & ~(total <= 1 + limit), total, 0)
    for bad, remedy in ((unequal, rescale), (more, advice)):
        if bad.count:
            raise bad.error(remedy)


def read_label_probabilities(
    q: object, labels: Sequence[Hashable] | None
) -> tuple[Floats, Sequence[Hashable] | int]:
    """(N, L) probabilities of labels, and the labels, or their number if they have no names."""
    raw, columns = to_array(q, "q")
    values = to_host(raw)
    if values.ndim != 2 or values.shape[1] < 1 or kind_of(values) not in ("real", "integer", "bool"):
        raise InputError(
            "must be (N, L) probabilities of labels",
            argument="q",
            kind="type",
            found=f"its shape is {values.shape} and its type {values.dtype}",
        )
    values = values.astype(np.float64, copy=False)
    outside = ~((values >= 0) & (values <= 1))
    bad = Offenders("q", "must hold probabilities between 0 and 1")
    bad.add(np.asarray(outside.any(axis=1)), values[np.arange(len(values)), outside.argmax(axis=1)], 0)
    if bad.count:
        raise bad.error()
    names = columns if labels is None else labels
    if names is None:
        return values, values.shape[1]
    try:
        return values, check_classes(names, values.shape[1]) or ()
    except InputError as error:
        raise error.replace(argument="labels") from None


Names: TypeAlias = Sequence[Hashable] | None
# Codes, confidences, offsets and the number of classes; the vocabulary and the tolerance.
Made: TypeAlias = tuple[tuple[Any, Any, Any, int], dict[str, Any]]


def of_arrays(
    classes: object, confidences: object, n_classes: int, offsets: object, names: Names, normalize: bool
) -> Made:
    """Lists from classes and confidences in arrays or columns."""
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
    """Lists from rows of {class: confidence}."""
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
    """Lists of a single class, which is certain."""
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
    """Lists of the `k` most likely classes of each row, or of those that together reach `mass`.

    The second result tells whether an unlisted class is as likely as the last listed one.
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
    """Lists of the `k` most likely sets of independent labels."""
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
    """Lists of given label sets."""
    known = LabelSets((), labels)
    rows = [_sets(row, number) for number, row in enumerate(_rows(sets, "sets"))]
    numbers = known.numbers([label_set for row in rows for label_set in row], "sets")
    starts = offsets_of(np.array([len(row) for row in rows], np.int64))
    values: Any = np.ones(len(numbers))
    if confidences is not None:
        values, value_starts = flatten(confidences, None, "confidences")
        check_same_lists(starts, value_starts)
    vocabulary = LabelSets(dict.fromkeys(numbers), known.labels)
    codes = vocabulary.outcomes(numbers)
    return (codes, values, starts, 2 ** len(known.labels)), {"vocabulary": vocabulary}


def _rows(rows: Any, argument: str = "rows") -> Iterable[Any]:
    """An iterable of rows; refuses anything else."""
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
    """Confidences given one by one, as doubles; texts are refused, even of numbers."""
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
