"""Classes that are not numbers 0..m-1: tokens, names, sets of labels. Each one met gets a code."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence

import numpy as np

from verax.arrays import kind_of, to_array, to_host
from verax.errors import InputError, join, show
from verax.outcomes import Outcomes
from verax.ragged import Ints

# The code of an outcome that is a class, but not one that any list names.
UNLISTED = -2


class Vocabulary:
    """The names of classes in the order of their codes.

    Parameters
    ----------
    names : different from each other.
    complete : these are all the classes there are, so any other outcome is an error. Otherwise they
        are those that some list names, and any other outcome is a class that none does.
    """

    def __init__(self, names: Iterable[Hashable], *, complete: bool) -> None:
        self.names = tuple(names)
        self.complete = complete
        self._codes = {name: code for code, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def name(self, code: int) -> Hashable:
        """The class with this code, as people write it."""
        return self.names[code]

    def code_at(self, position: int) -> int:
        """The code of the class at this position, if all classes stood in a row, those met first."""
        return position if position < len(self.names) else UNLISTED

    def translation(self, other: Vocabulary) -> tuple[Vocabulary, Ints]:
        """A vocabulary with the names of both, and the codes there of the other's names."""
        joint = dict.fromkeys((*self.names, *other.names))
        codes = {name: code for code, name in enumerate(joint)}
        merged = self._like(tuple(joint))
        return merged, np.fromiter((codes[name] for name in other.names), np.int64, len(other.names))

    def _like(self, names: tuple[Hashable, ...]) -> Vocabulary:
        return Vocabulary(names, complete=self.complete)

    def outcomes(self, y: object) -> Ints:
        """The codes of the outcomes `y`; UNLISTED for a class that no list names."""
        if self.complete:
            return positions(y, len(self), self.names)
        if isinstance(y, (list, tuple)):
            # Not as an array: that would make floats of large integers.
            given = [value.item() if isinstance(value, np.generic) else value for value in y]
        else:
            values = to_host(to_array(y, "y")[0])
            if values.ndim != 1:
                raise InputError(
                    f"`y` must have one outcome a list; its shape is {values.shape}.", argument="y"
                )
            given = values.tolist()
        self._check_kind(given)
        return np.fromiter((self._codes.get(value, UNLISTED) for value in given), np.int64, len(given))

    def _check_kind(self, given: Sequence[Hashable]) -> None:
        kinds, known = {type(value) for value in given}, {type(name) for name in self.names}
        strange = kinds - known
        if strange and known:
            row, value = next((i, v) for i, v in enumerate(given) if type(v) in strange)
            raise InputError(
                f"`y` must name classes as the lists do, by {_kinds(known)}; row {row} holds {show(value)}.",
                argument="y",
                rows=(row,),
            )


def _kinds(types: Collection[type]) -> str:
    return join(sorted(kind.__name__ for kind in types))


def positions(y: object, n_classes: int, names: tuple[Hashable, ...] | None = None) -> Ints:
    """Class positions of the outcomes `y`, given as positions, as labels or as one-hot rows."""
    raw, _ = to_array(y, "y")
    if names is None and kind_of(raw) in ("text", "object"):
        first = show(raw.reshape(-1)[0]) if raw.size else "nothing"
        raise InputError(
            f"`y` holds labels ({first} in row 0), but the lists hold class positions. "
            "Pass classes=[...] to the constructor of the lists.",
            argument="y",
        )
    like = np.empty((0, 2))
    outcomes = Outcomes(raw, n_classes=n_classes, classes=names, columns=None, ordered=False, like=like)
    codes: Ints = outcomes.positions(0, outcomes.n_rows)
    bad = outcomes.offenders()
    bad.add((codes < 0) | (codes >= n_classes), to_host(outcomes.raw), 0)
    if bad.count:
        raise bad.error(*outcomes.remedies())
    return codes
