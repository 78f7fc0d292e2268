"""Classes other than numbers 0..m-1: tokens, names, sets of labels. Each that occurs gets a code."""

from __future__ import annotations

import heapq
import itertools
import sys
from collections.abc import Hashable, Iterable, Iterator, Sequence
from numbers import Real
from typing import Any

import numpy as np

from verax.common.caching import cached_property
from verax.common.checks import MOST_SETS, check_count, is_whole
from verax.errors import InputError, Offenders, Remedy, join, show
from verax.inputs.arrays import Floats, Ints, kind_of, to_array, to_host
from verax.inputs.outcomes import Outcomes, check_classes

# The code of an outcome that no list names.
UNLISTED = -2


class ClassVocabulary:
    """The names of classes in the order of their codes.

    Parameters
    ----------
    names : iterable of hashable
        The names, all different.
    complete : bool
        Whether these are all classes, so that any other outcome is an error. Otherwise they are those
        that some list names, and any other outcome is a class that no list names.
    order : sequence of hashable, optional
        All classes in order, where the names are some of them. Without it names are sorted.
    """

    # Whether names may be spelled differently from outcomes.
    spelled = True

    def __init__(
        self, names: Iterable[Hashable], *, complete: bool, order: Sequence[Hashable] | None = None
    ) -> None:
        self.names: tuple[Hashable, ...] = tuple(names)
        self._order = order
        self.complete = complete
        self._codes = {name: code for code, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def name(self, code: int) -> Hashable:
        """The class with this code, as it is shown."""
        return self.names[code]

    def code_at(self, position: int) -> int:
        """The code of the class at this position in the order of all classes, named ones first."""
        return position if position < len(self.names) else UNLISTED

    @cached_property
    def ranks(self) -> Ints | None:
        """The rank of each code, which breaks ties; None if codes are the ranks.

        If all classes are known, they keep their given order. Otherwise names are sorted, because their order
        of appearance differs from part to part.
        """
        if self.complete:
            return None
        places = {name: place for place, name in enumerate(self._order or in_order(self.names))}
        return np.fromiter((places[name] for name in self.names), np.int64, len(self.names))

    def codes(self, names: Sequence[Hashable]) -> Ints:
        """The codes of some classes; UNLISTED for those that no list names."""
        return np.fromiter((self._codes.get(name, UNLISTED) for name in names), np.int64, len(names))

    def translation(self, other: ClassVocabulary) -> tuple[ClassVocabulary, Ints]:
        """A vocabulary with the names of both, and its codes for the names of the other."""
        joint = dict.fromkeys((*self.names, *other.names))
        codes = {name: code for code, name in enumerate(joint)}
        merged = self._like(tuple(joint))
        return merged, np.fromiter((codes[name] for name in other.names), np.int64, len(other.names))

    def _like(self, names: tuple[Hashable, ...]) -> ClassVocabulary:
        return ClassVocabulary(names, complete=self.complete)

    def outcomes(self, y: object) -> Ints:
        """The codes of the outcomes `y`; UNLISTED for classes that no list names."""
        if self.complete:
            return positions(y, len(self), self.names)
        if isinstance(y, (list, tuple)):
            # Not as an array, which would turn large integers into floats.
            given = [value.item() if isinstance(value, np.generic) else value for value in y]
        else:
            values = to_host(to_array(y, "y")[0])
            if values.ndim != 1:
                raise InputError(
                    "must have one outcome per list",
                    argument="y",
                    kind="type",
                    found=f"its shape is {values.shape}",
                )
            given = values.tolist()
        known = {type(name) for name in self.names}
        strange = {type(value) for value in given} - known if known else set()
        if strange:
            raise self._unlike(next(row for row, value in enumerate(given) if type(value) in strange), given)
        try:
            return self.codes(given)
        except TypeError:
            raise self._unlike(
                next(row for row, value in enumerate(given) if not _is_hashable(value)), given
            ) from None

    def shown(self, y: Any, row: int) -> Hashable:
        """One of the outcomes `y`, as given."""
        values = y if isinstance(y, (list, tuple)) else to_host(to_array(y, "y")[0])
        value = values[row]
        return value.item() if isinstance(value, np.generic) else value  # type: ignore[no-any-return]

    def _unlike(self, row: int, given: Sequence[Hashable]) -> InputError:
        """The error about an outcome that cannot be a class name in these lists."""
        kinds = sorted({type(name).__name__ for name in self.names})
        return InputError(
            f"must name classes as the lists do{', by ' if kinds else ''}{join(kinds) if kinds else ''}",
            argument="y",
            kind="label",
            found=f"row {row} holds {show(given[row])}",
            rows=[row],
            values=[given[row]],
        )


def in_order(names: Iterable[Hashable]) -> list[Hashable]:
    """Names in a default order: numbers by size, then everything else by its text."""
    return sorted(names, key=_sort_key)


def _sort_key(name: Any) -> tuple[str, Any]:
    return ("", name) if isinstance(name, Real) else (type(name).__name__, str(name))


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def positions(y: object, n_classes: int, names: tuple[Hashable, ...] | None = None) -> Ints:
    """Class positions of the outcomes `y`, given as positions, as labels or as one-hot rows."""
    raw, _ = to_array(y, "y")
    if names is None and kind_of(raw) in ("text", "object"):
        first = raw.reshape(-1)[0] if raw.size else None
        raise InputError(
            "must hold class positions",
            argument="y",
            kind="label",
            found=f"row 0 holds {show(first)}",
            rows=[0],
            values=[first],
            remedies=[Remedy("Give the lists the names of the classes when making them.")],
        )
    like = np.empty((0, 2))
    outcomes = Outcomes(raw, n_classes=n_classes, classes=names, columns=None, ordered=False, like=like)
    codes: Ints = outcomes.positions(0, outcomes.n_rows)
    bad = outcomes.offenders()
    bad.add((codes < 0) | (codes >= n_classes), to_host(outcomes.raw), 0)
    if bad.count:
        # Lists have the names of their classes already, so passing them is no remedy.
        raise bad.error(*(remedy for remedy in outcomes.remedies() if "classes" not in remedy.options))
    return codes


def match_outcomes(
    vocabulary: ClassVocabulary | None, n_classes: int, y: object, classes: Any
) -> tuple[ClassVocabulary | None, Ints]:
    """The vocabulary and the codes of the outcomes; `classes` may name more classes than the lists."""
    names = check_classes(classes, n_classes)
    if names is None:
        return vocabulary, positions(y, n_classes) if vocabulary is None else vocabulary.outcomes(y)
    if vocabulary is not None:
        _check_names(vocabulary, names)
    at = positions(y, n_classes, names)
    if vocabulary is None or vocabulary.complete:
        return ClassVocabulary(names, complete=True), at
    codes = vocabulary.codes([names[i] for i in at.tolist()])
    return ClassVocabulary(vocabulary.names, complete=False, order=names), codes


def _check_names(vocabulary: ClassVocabulary, names: tuple[Hashable, ...]) -> None:
    """Refuse class names that contradict those of the lists."""
    unknown = set(vocabulary.names) - set(names)
    if not vocabulary.spelled or unknown or (vocabulary.complete and vocabulary.names != names):
        other = f"the lists name {show(min(unknown, key=repr))}" if unknown else "the lists have others"
        raise InputError("must be the classes of the lists", argument="classes", kind="label", found=other)


# With more labels there are more sets than TopLists can have classes.
MOST_LABELS = MOST_SETS.bit_length() - 1


class LabelSets(ClassVocabulary):
    """A vocabulary of label sets, by their numbers; users see the labels.

    Parameters
    ----------
    names : iterable of int
        Numbers of label sets.
    labels : sequence of hashable or int
        The labels, or how many there are if they are 0, 1, 2, ...
    """

    spelled = False

    def __init__(self, names: Iterable[int], labels: Sequence[Hashable] | int) -> None:
        super().__init__(names, complete=False)
        self.labels: tuple[Hashable, ...] = _check_labels(labels)
        self._place = {label: i for i, label in enumerate(self.labels)}

    def name(self, code: int) -> tuple[Hashable, ...]:
        number = self.names[code]
        assert isinstance(number, int)
        return self._labels_of(number)

    def _labels_of(self, number: int) -> tuple[Hashable, ...]:
        return tuple(label for i, label in enumerate(self.labels) if number >> i & 1)

    def shown(self, y: Any, row: int) -> Hashable:
        return self._labels_of(self.numbers(y[row : row + 1], "y")[0])

    def code_at(self, position: int) -> int:
        """The code of the set with this number."""
        return self._codes.get(position, UNLISTED)

    def _like(self, names: tuple[Hashable, ...]) -> LabelSets:
        return LabelSets((n for n in names if isinstance(n, int)), self.labels)

    def outcomes(self, y: object) -> Ints:
        """The codes of outcomes: (N, L) arrays of 0 and 1, collections of labels, or numbers of sets."""
        numbers = self.numbers(y, "y")
        return np.fromiter((self._codes.get(n, UNLISTED) for n in numbers), np.int64, len(numbers))

    def numbers(self, sets: object, argument: str) -> list[int]:
        """The numbers of label sets given in any form."""
        if not isinstance(sets, (list, tuple)):
            array = to_host(to_array(sets, argument)[0])
            if array.ndim == 2:
                return self._from_indicators(array, argument)
            if array.ndim != 1:
                raise InputError(
                    "must have one set of labels per row",
                    argument=argument,
                    kind="type",
                    found=f"its shape is {array.shape}",
                )
            return self._checked(array.tolist(), argument)
        if all(map(is_whole, sets)):
            return self._checked([int(s) for s in sets], argument)
        return [self._from_labels(s, row, argument) for row, s in enumerate(sets)]

    def _from_indicators(self, array: np.ndarray[Any, Any], argument: str) -> list[int]:
        if array.shape[1] != len(self.labels) or kind_of(array) not in ("real", "integer", "bool"):
            raise InputError(
                f"must have one column of 0 and 1 per label, {len(self.labels)} in all",
                argument=argument,
                kind="type",
                found=f"its shape is {array.shape} and its type {array.dtype}",
            )
        bad = Offenders(argument, "rows must hold 0 and 1 only")
        bad.add(~((array == 0) | (array == 1)).all(axis=1), array, 0)
        if bad.count:
            raise bad.error()
        packed = np.packbits(array.astype(np.bool_), axis=1, bitorder="little")
        return [int.from_bytes(row.tobytes(), "little") for row in packed]

    def _from_labels(self, labels: Any, row: int, argument: str) -> int:
        number = 0
        try:
            members = None if isinstance(labels, (str, bytes)) else list(labels)
        except TypeError:
            members = None
        if members is None:
            raise self._no_set(argument, row, labels)
        for label in members:
            place = self._place_of(label)
            if place is None or number >> place & 1:
                what = "which is not one of the labels" if place is None else "twice"
                advice = Remedy("Rows of 0 and 1 are read from arrays, not from lists.", python_only=True)
                raise self._no_set(argument, row, label, f", {what}", advice)
            number |= 1 << place
        return number

    def _place_of(self, label: Any) -> int | None:
        try:
            return self._place.get(label.item() if isinstance(label, np.generic) else label)
        except TypeError:
            return None

    def _checked(self, numbers: list[Any], argument: str) -> list[int]:
        limit = 1 << len(self.labels)
        for row, number in enumerate(numbers):
            if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < limit:
                raise self._no_set(argument, row, number)
        return numbers

    def _no_set(
        self, argument: str, row: int, value: object, what: str = "", *remedies: Remedy
    ) -> InputError:
        return InputError(
            f"must hold sets of the {len(self.labels)} labels",
            argument=argument,
            kind="label",
            found=f"row {row} holds {show(value)}{what}",
            rows=[row],
            values=[value],
            remedies=remedies,
        )


def _check_labels(labels: Sequence[Hashable] | int) -> tuple[Hashable, ...]:
    """The labels; refuses repeats and too many."""
    if isinstance(labels, bool) or is_whole(labels):
        check_count("labels", labels)
        listed: Any = range(min(int(labels), MOST_LABELS + 1))
    else:
        listed = labels if isinstance(labels, (list, tuple)) else to_host(to_array(labels, "labels")[0])
    if getattr(listed, "ndim", 1) != 1:
        raise InputError(f"must be a list of labels, not {show(labels)}", argument="labels", kind="type")
    if len(listed) > MOST_LABELS:
        raise InputError(f"must be at most {MOST_LABELS:,}", argument="labels")
    try:
        return check_classes(listed, len(listed)) or ()
    except InputError as error:
        raise error.replace(argument="labels") from None


def most_likely_sets(q: Floats, k: int) -> tuple[list[int], Floats, Ints]:
    """The k most likely label sets of independent labels, for each row of `q`.

    The most likely set has every label with q > 1/2. Any other set differs from it by flips, and each
    flip multiplies the probability by the odds of that label. Best-first search over the flips takes
    O(L log L + k log k) steps per row and looks at no more than 2k sets. Sets of probability zero are
    left out.

    Returns
    -------
    numbers, probabilities : of all sets, row after row, most likely first.
    lengths : how many each row has.
    """
    likely = np.maximum(q, 1 - q)
    odds = np.minimum(q, 1 - q) / likely
    best = likely.prod(axis=1)
    order = np.argsort(-odds, axis=1, kind="stable")
    odds = np.take_along_axis(odds, order, axis=1)
    packed = np.packbits(q > 0.5, axis=1, bitorder="little")
    numbers: list[int] = []
    probabilities: list[float] = []
    lengths = np.zeros(len(q), np.int64)
    bit_of = [1 << place for place in range(q.shape[1])]
    for row in range(len(q)):
        mode = int.from_bytes(packed[row].tobytes(), "little")
        flips = [bit_of[place] for place in order[row].tolist()]
        best_ones = itertools.islice(_best_first(mode, flips, odds[row].tolist()), min(k, sys.maxsize))
        ranked = [(number, p) for number, ratio in best_ones if (p := ratio * float(best[row])) > 0]
        lengths[row] = len(ranked)
        numbers.extend(number for number, _ in ranked)
        probabilities.extend(p for _, p in ranked)
    return numbers, np.array(probabilities), lengths


def _best_first(mode: int, flips: list[int], odds: list[float]) -> Iterator[tuple[int, float]]:
    """Sets and their odds against the most likely one, in decreasing order.

    A state is a set of flips, known by its product without the last flip. Its two successors add the
    next flip, or put the next in place of the last: every set of flips is reached once, and from one
    that is no less likely.
    """
    yield mode, 1.0
    if not flips or odds[0] == 0:
        return
    # (minus the odds, number, which flip was last, odds without it, number without it)
    heap = [(-odds[0], mode ^ flips[0], 0, 1.0, mode)]
    push, replace = heapq.heappush, heapq.heapreplace
    n_flips = len(flips)
    while heap and heap[0][0] < 0:
        minus, number, last, before, base = heap[0]
        yield number, -minus
        step = last + 1
        if step == n_flips or odds[step] == 0:
            heapq.heappop(heap)
            continue
        flip, chance = flips[step], odds[step]
        replace(heap, (-before * chance, base ^ flip, step, before, base))
        push(heap, (minus * chance, number ^ flip, step, -minus, number))


def instance_f1(y: object, sets: object, *, labels: Sequence[Hashable] | int) -> Floats:
    """Twice the number of shared labels over the number of labels in both sets: one number per row.

    It is 1 where both sets are empty.

    Higher is better. It is reported in the literature on label sets and is not consistent for the
    most likely set: predicting a set that never happens can be best. Do not choose models by it.

    Parameters
    ----------
    y : array_like of shape (N, L) or sequence of collections
        Outcomes: an array of 0 and 1, or a collection of labels per row.
    sets : array_like of shape (N, L) or sequence of collections
        What was predicted, in the same form.
    labels : sequence of labels or int
        The labels, or how many there are.

    Returns
    -------
    array of shape (N,)
        The F1 score of each row.

    Examples
    --------
    >>> import verax as vx
    >>> vx.instance_f1([{1, 2}, {3}], [{1}, {3}], labels=[1, 2, 3]).round(3).tolist()
    [0.667, 1.0]
    """
    known = LabelSets((), labels)
    truth, guess = known.numbers(y, "y"), known.numbers(sets, "sets")
    if len(truth) != len(guess):
        raise InputError(
            "must have one set per outcome",
            argument="sets",
            kind="length",
            found=f"there are {len(guess)} sets and {len(truth)} outcomes",
        )
    shared = np.array([(a & b).bit_count() for a, b in zip(truth, guess, strict=True)], np.float64)
    both = np.array([a.bit_count() + b.bit_count() for a, b in zip(truth, guess, strict=True)], np.float64)
    return np.where(both > 0, 2 * shared / np.maximum(both, 1), 1.0)
