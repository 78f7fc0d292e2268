"""Classes that are not numbers 0..m-1: tokens, names, sets of labels. Each that occurs gets a code."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from verax.common.caching import cached_property
from verax.errors import InputError, Remedy, join, show
from verax.inputs.arrays import Ints, kind_of, to_array, to_host
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

    # Whether names may be spelled in other ways than outcomes are.
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
        """The rank of each code, by which ties are broken; None where the codes are the ranks.

        Classes have the order they were given in, if all are known. Otherwise names are sorted: the order in
        which they were met differs from part to part.
        """
        if self.complete:
            return None
        places = {name: place for place, name in enumerate(self._order or in_order(self.names))}
        return np.fromiter((places[name] for name in self.names), np.int64, len(self.names))

    def codes(self, names: Sequence[Hashable]) -> Ints:
        """The codes of some classes; UNLISTED for one that no list names."""
        return np.fromiter((self._codes.get(name, UNLISTED) for name in names), np.int64, len(names))

    def translation(self, other: ClassVocabulary) -> tuple[ClassVocabulary, Ints]:
        """A vocabulary with the names of both, and the codes there of the other's names."""
        joint = dict.fromkeys((*self.names, *other.names))
        codes = {name: code for code, name in enumerate(joint)}
        merged = self._like(tuple(joint))
        return merged, np.fromiter((codes[name] for name in other.names), np.int64, len(other.names))

    def _like(self, names: tuple[Hashable, ...]) -> ClassVocabulary:
        return ClassVocabulary(names, complete=self.complete)

    def outcomes(self, y: object) -> Ints:
        """The codes of the outcomes `y`; UNLISTED for a class that no list names."""
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
        """One of the outcomes `y` as it was given."""
        values = y if isinstance(y, (list, tuple)) else to_host(to_array(y, "y")[0])
        value = values[row]
        return value.item() if isinstance(value, np.generic) else value  # type: ignore[no-any-return]

    def _unlike(self, row: int, given: Sequence[Hashable]) -> InputError:
        """The error for an outcome that cannot be the name of a class in these lists."""
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
    """Names whose order nobody stated: numbers by their size, then everything else by its text."""
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
    own: ClassVocabulary | None, n_classes: int, y: object, classes: Any
) -> tuple[ClassVocabulary | None, Ints]:
    """What the codes of the outcomes stand for, and these; `classes` may name more than the lists do."""
    names = check_classes(classes, n_classes)
    if names is None:
        return own, positions(y, n_classes) if own is None else own.outcomes(y)
    if own is not None:
        _check_names(own, names)
    at = positions(y, n_classes, names)
    if own is None or own.complete:
        return ClassVocabulary(names, complete=True), at
    codes = own.codes([names[i] for i in at.tolist()])
    return ClassVocabulary(own.names, complete=False, order=names), codes


def _check_names(own: ClassVocabulary, names: tuple[Hashable, ...]) -> None:
    """Refuse names of all classes that are not those of the lists."""
    unknown = set(own.names) - set(names)
    if not own.spelled or unknown or (own.complete and own.names != names):
        other = f"the lists name {show(min(unknown, key=repr))}" if unknown else "the lists have others"
        raise InputError("must be the classes of the lists", argument="classes", kind="label", found=other)
