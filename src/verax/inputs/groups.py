"""Rows that belong together, in one way (patients) or in two (leagues and dates)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.common.sorting import distinct_values
from verax.errors import InputError, Offenders, Remedy, show
from verax.inputs.arrays import Array, Ints, frame_columns, to_array, to_host

# A number of groups; of two kinds of groups, both numbers.
GroupCount = int | tuple[int, int]
# The fields of labels of two kinds.
BOTH = ("first", "second")


@dataclass(frozen=True)
class Groups:
    """A code 0..G-1 for every row, and the G labels.

    With two kinds of groups, codes number the pairs that occur, and labels have two fields.

    >>> crossed = Groups.of([["a", "a", "b", "b"], [1, 2, 2, 2]], 4)
    >>> crossed.codes, crossed.count, in_words(crossed.count)
    (array([0, 1, 2, 2]), (2, 2), '2 and 2 groups')
    """

    codes: Ints
    labels: np.ndarray[Any, Any]

    @property
    def first_kind(self) -> Ints:
        """Codes of the groups of the first kind, or of the only one."""
        kinds = by_kind(self.labels)
        return kinds[0][1][self.codes] if kinds else self.codes

    @property
    def fewest(self) -> Groups:
        """The groups of the kind with fewer groups, or of the only kind.

        >>> Groups.of([["a", "a", "b", "b"], [1, 2, 3, 2]], 4).fewest.labels.tolist()
        ['a', 'b']
        """
        kinds = by_kind(self.labels)
        if not kinds:
            return self
        labels, places = min(kinds, key=lambda kind: len(kind[0]))
        return Groups(places[self.codes], labels)

    @property
    def as_seen(self) -> Ints:
        """Codes in the order of first appearance, for random draws.

        They do not depend on the names of groups: numbers and their texts have the same codes.

        >>> Groups.of(["b", "a", "b"], 3).as_seen
        array([0, 1, 0])
        """
        return in_order_seen(self.codes)

    @property
    def count(self) -> GroupCount:
        """The number of groups, a pair of numbers for two kinds."""
        return count_groups(self.labels)

    def count_with(self, weights: Array | None) -> GroupCount:
        """The number of groups with a row of positive weight.

        Every analysis treats rows of weight zero, and groups that consist of them, as absent; only `n_rows`
        counts them.

        >>> Groups.of(["a", "a", "b", "c"], 4).count_with(np.array([1.0, 0.0, 0.0, 2.0]))
        2
        """
        if weights is None:
            return self.count
        return count_groups(self.labels[np.unique(self.codes[to_host(weights) != 0])])

    def at(self, rows: Ints) -> Groups:
        """The groups of some rows, renumbered."""
        return Groups.of(self.labels[self.codes[rows]], len(rows))

    @classmethod
    def of(cls, groups: object, n_rows: int) -> Groups:
        """Read one or two labels per row, of any type; coded labels are taken over."""
        if isinstance(groups, Groups) and len(groups.codes) == n_rows:
            return groups
        given = groups.labels[groups.codes] if isinstance(groups, Groups) else groups
        kinds = [cls._of_one_kind(kind, n_rows) for kind in kinds_of(given)]
        return kinds[0] if len(kinds) == 1 else crossed(*kinds)

    @classmethod
    def _of_one_kind(cls, given: object, n_rows: int) -> Groups:
        raw = to_host(to_array(given, "groups")[0])
        if raw.shape != (n_rows,) or raw.dtype.names is not None:
            fields = "" if raw.dtype.names is None else f", with {len(raw.dtype.names)} fields"
            raise InputError(
                f"must be {n_rows} labels, one per row, or two lists of them",
                argument="groups",
                kind="length" if raw.ndim == 1 else "type",
                found=f"its shape is {raw.shape}{fields}",
            )
        return cls.of_labels(raw, "groups", "must have a group label in every row")

    @classmethod
    def of_labels(cls, raw: np.ndarray[Any, Any], argument: str, requirement: str) -> Groups:
        """The groups of a 1-D array of labels of one kind; refuses missing labels."""
        unnamed = Offenders(argument, requirement, "missing")
        unnamed.add(missing(raw), raw, 0)
        if unnamed.count:
            raise unnamed.error()
        labels, codes = distinct_values(_texts(raw, argument) if raw.dtype.kind == "O" else raw)
        return cls(codes.astype(np.int64, copy=False), labels)


def in_order_seen(codes: Ints) -> Ints:
    """Codes renumbered 0, 1, ... in the order of first appearance.

    >>> in_order_seen(np.array([7, 2, 7, 5]))
    array([0, 1, 0, 2])
    """
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[place.reshape(-1)]


def kinds_of(groups: object) -> tuple[object, ...]:
    """The labels of each kind of groups: two lists or columns, or the labels of the only kind.

    >>> len(kinds_of([["a", "b", "c"], [1, 2, 3]])), len(kinds_of(["a", "b"]))
    (2, 1)
    """
    if isinstance(groups, (list, tuple)) and len(groups) == 2 and all(map(_is_column, groups)):
        return tuple(groups)
    names = getattr(getattr(groups, "dtype", None), "names", None)
    if isinstance(groups, np.ndarray) and names is not None and len(names) == 2:
        return groups[names[0]], groups[names[1]]
    if _shape(groups)[1:] == (2,):
        raw = to_host(to_array(groups, "groups")[0])
        return raw[:, 0], raw[:, 1]
    return (groups,)


def label_columns(by: object) -> dict[str, Any]:
    """Labels of the rows by the name of their column, from a column, or a mapping, frame or list of columns.

    >>> list(label_columns({"site": ["north", "south"]})), list(label_columns([["a", "b"], [1, 2]]))
    (['site'], ['subgroup 1', 'subgroup 2'])
    """
    if by is None:
        return {}
    if isinstance(by, str):
        raise InputError(
            "must hold a label for each row",
            argument="by",
            kind="type",
            found=f"it is the text {show(by)}",
            remedies=[Remedy("Pass the column itself, such as table['site'].", python_only=True)],
        )
    if isinstance(by, Mapping):
        return {str(name): column for name, column in by.items()}
    columns = frame_columns(by)
    if columns is not None:
        return {str(name): column.to_native() for name, column in columns.items()}
    several = isinstance(by, (list, tuple)) and len(by) > 0 and all(map(_is_column, by))
    listed: Any = by if several else [by]
    name = "subgroup {}" if len(listed) > 1 else "subgroup"
    return {
        str(getattr(labels, "name", None) or name.format(i + 1)): labels for i, labels in enumerate(listed)
    }


def _shape(groups: object) -> tuple[int, ...]:
    """The shape of an array or a frame; that of a list by its first row."""
    if isinstance(groups, (list, tuple)):
        return (len(groups), *(len(row) for row in groups[:1] if isinstance(row, (list, tuple))))
    shape = getattr(groups, "shape", ())
    return shape if isinstance(shape, tuple) else ()


def _is_column(labels: object) -> bool:
    return not isinstance(labels, (str, bytes)) and hasattr(labels, "__len__")


def crossed(first: Groups, second: Groups) -> Groups:
    """The groups of two kinds, from those of each kind."""
    n = len(second.labels)
    pairs, codes = distinct_values(first.codes * n + second.codes)
    return Groups(
        codes.astype(np.int64, copy=False), paired(first.labels[pairs // n], second.labels[pairs % n])
    )


def paired(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Labels with two fields."""
    # Texts of variable width cannot be fields.
    columns = [column.astype(str) if column.dtype.kind == "T" else column for column in (first, second)]
    labels = np.empty(len(first), [(name, c.dtype) for name, c in zip(BOTH, columns, strict=True)])
    for name, column in zip(BOTH, columns, strict=True):
        labels[name] = column
    return labels


def is_two_way(labels: np.ndarray[Any, Any]) -> bool:
    """Whether labels have two kinds of groups."""
    return labels.dtype.names is not None


def distinct(labels: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], Ints]:
    """The distinct labels in order, of one or two kinds, and the place of each label among them."""
    if not is_two_way(labels):
        return distinct_values(labels)
    groups = crossed(*(Groups(*distinct(labels[name])[::-1]) for name in BOTH))
    return groups.labels, groups.codes


def by_kind(labels: np.ndarray[Any, Any]) -> list[tuple[np.ndarray[Any, Any], Ints]]:
    """For each of two kinds, its labels and the place of each pair among them; empty for one kind."""
    return [distinct(labels[name]) for name in labels.dtype.names or ()]


def count_groups(labels: np.ndarray[Any, Any]) -> GroupCount:
    """The number of groups, a pair of numbers for two kinds."""
    counts = [len(kind) for kind, _ in by_kind(labels)]
    return (counts[0], counts[1]) if counts else len(labels)


def in_words(count: GroupCount) -> str:
    """A number of groups in words.

    >>> in_words(1200), in_words((12, 30))
    ('1,200 groups', '12 and 30 groups')
    """
    return f"{' and '.join(f'{n:,}' for n in counts_by_kind(count))} groups"


def counts_by_kind(count: GroupCount) -> tuple[int, ...]:
    """The number of groups of each kind."""
    return count if isinstance(count, tuple) else (count,)


def check_one_way(groups: Groups | None, what: str) -> None:
    """Refuse two kinds of groups in a method for one kind."""
    if groups is not None and is_two_way(groups.labels):
        raise two_kinds(what)


def check_several(count: GroupCount, source: str = "") -> None:
    """Refuse a single group of either kind: there would be nothing to resample."""
    if min(counts_by_kind(count)) < 2:
        kinds = " of one kind" if isinstance(count, tuple) else ""
        why = f"there is {min(counts_by_kind(count))}{kinds}"
        raise InputError(
            "must name at least two groups to resample", argument="groups", found=why, source=source
        )


def two_kinds(what: str) -> InputError:
    """The error about two kinds of groups in a method for one kind."""
    return InputError(
        f"must be of one kind for {what}",
        argument="groups",
        kind="type",
        found="there are two",
        remedies=[Remedy("Pass one of them; the one with fewer groups is the more cautious choice.")],
    )


def _texts(labels: np.ndarray[Any, Any], argument: str) -> np.ndarray[Any, Any]:
    """Labels of any Python type as texts; refuses different labels with the same text."""
    try:
        texts, n_different = labels.astype(str), len(set(labels.tolist()))
    except (TypeError, ValueError):
        raise InputError("must hold texts, numbers or dates", argument=argument, kind="type") from None
    if n_different != len(np.unique(texts)):
        raise InputError(
            "must hold labels of one type",
            argument=argument,
            kind="type",
            found="some of them differ in type only, such as 1 and '1'",
        )
    return texts


def missing(labels: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which labels are missing: None, NaN, NaT and the missing values of pandas."""
    if labels.dtype.kind in "fc":
        return np.asarray(np.isnan(labels))
    if labels.dtype.kind in "mM":
        return np.asarray(np.isnat(labels))
    if labels.dtype.kind not in "OT":
        return np.zeros(len(labels), bool)
    return np.fromiter((_is_missing(label) for label in labels.astype(object)), bool, len(labels))


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA is neither equal to itself nor different
        return True
    except ValueError:  # an array, which is refused as a label later
        return False
