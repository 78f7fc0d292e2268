"""The order of classes whose labels a library hides: it passes their positions among the sorted labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from verax.errors import InputError, passing
from verax.inputs.arrays import Array
from verax.inputs.outcomes import check_classes
from verax.scores.base import Rule
from verax.scores.registry import name_of

Names = Sequence[Hashable]


@dataclass(frozen=True)
class Order:
    """How positions that a library passes become positions in the caller's order, and back.

    Attributes
    ----------
    positions : tuple of int
        For each position of the library, that of the same class in the caller's order.
    """

    positions: tuple[int, ...]

    @classmethod
    def of(cls, order: Names | None, coded: Names | None = None) -> Order | None:
        """The order that a caller lists, lowest class first; `coded` is that of the library."""
        if order is None:
            return None
        names = _checked(order, "order")
        listed = _sorted(names) if coded is None else _checked(coded, "class_names")
        if set(listed) != set(names):
            raise InputError(
                "must name the same classes as `order`",
                argument="class_names",
                kind="label",
                values=sorted(set(listed) ^ set(names), key=str),
            )
        # Rules that know an order are the same for the reversed one, so two classes are left as they are.
        return cls((0, 1) if len(names) == 2 else tuple(map(names.index, listed)))

    @property
    def as_it_is(self) -> bool:
        """Whether the library has the classes in the caller's order already."""
        return self.positions == tuple(range(len(self.positions)))

    def outcomes(self, y: Array) -> Array:
        """Positions of the library as positions of the order; wrong ones are left for others to name."""
        y = np.asarray(y)
        if self.as_it_is or not np.isin(y, np.arange(len(self.positions))).all():
            return y
        return np.asarray(self.positions)[y.astype(np.int64)]

    def columns(self, scores: Array) -> Array:
        """Columns of the library in the order; a single one is that of class 1 of two."""
        given = 2 if scores.ndim == 1 else scores.shape[1]
        if given != len(self.positions):
            raise InputError(
                "must list the classes of the training data, all of them",
                argument="order",
                kind="length",
                found=f"it lists {len(self.positions)}, and the model has {given}",
            )
        return scores if self.as_it_is else scores[:, np.argsort(self.positions)]

    def back(self, values: Array) -> Array:
        """What was computed for columns of the order, in the columns of the library."""
        return values if self.as_it_is else values[:, list(self.positions)]


def require_order(rule: Rule, n_classes: int, passes: str) -> None:
    """Refuse an ordinal rule where nothing tells the order. Two classes have none that matters."""
    if rule.ordinal and n_classes > 2:
        raise InputError(
            f"must list the classes, lowest first: {name_of(rule)} is ordinal, and {passes} passes the "
            "positions of labels, by which texts may be in the order of the alphabet",
            argument="order",
            kind="order",
            remedies=[passing("for labels 0, 1, 2, or the names of the classes", order=[0, 1, 2])],
        )


def _checked(names: Names, argument: str) -> tuple[Hashable, ...]:
    try:
        n = len(names)
    except TypeError:
        # What has no length is refused as what it is.
        n = 0
    try:
        listed = check_classes(names, n)
    except InputError as error:
        raise error.replace(argument=argument) from None
    assert listed is not None
    return listed


def _sorted(names: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    try:
        return tuple(sorted(names))  # type: ignore[type-var]
    except TypeError:
        raise InputError(
            "must hold labels of one type, which the library can sort", argument="order", kind="type"
        ) from None
