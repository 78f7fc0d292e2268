"""Prediction sets with their outcomes, each reduced to a few numbers: size, ends, and whether it covers."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from verax.common.checks import check_number
from verax.errors import InputError, passing
from verax.inputs.arrays import Bools, Floats, Ints, Namespace, to_host, widen
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups
from verax.inputs.lists.rows import CheckedRows, ListRows

# Sums of probabilities that miss a level by less than this reach it.
_ROUNDING = 1e-12


class Members(Protocol):
    """Chooses the classes of a distribution's set.

    `level` is the coverage that all sets claim, None for none; with `states_mass` every set claims the
    probability of its classes.
    """

    @property
    def level(self) -> float | None: ...
    @property
    def states_mass(self) -> bool: ...
    def mask(self, p: Floats) -> Bools: ...


@dataclass(frozen=True)
class Mass:
    """The most likely classes, until their probability reaches the level; ties go to first positions."""

    level: float
    states_mass: ClassVar[bool] = False

    def mask(self, p: Floats) -> Bools:
        """The sets of some rows.

        >>> Mass(0.8).mask(np.array([[0.1, 0.6, 0.3], [0.9, 0.05, 0.05]])).astype(int).tolist()
        [[0, 1, 1], [1, 0, 0]]
        """
        return np.asarray(mass_before(p) < self.level - _ROUNDING)


@dataclass(frozen=True)
class Above:
    """The classes whose probability is above a threshold."""

    threshold: float
    level: ClassVar[None] = None
    states_mass: ClassVar[bool] = True

    def mask(self, p: Floats) -> Bools:
        """The sets of some rows."""
        return np.asarray(p > self.threshold)


def mass_before(p: Floats) -> Floats:
    """For each class the probability of all likelier ones; among ties, first positions count as likelier.

    >>> mass_before(np.array([[0.25, 0.5, 0.25]])).tolist()
    [[0.5, 0.0, 0.75]]
    """
    order = np.argsort(-p, axis=1, kind="stable")
    ranked = np.take_along_axis(p, order, axis=1)
    before = np.zeros_like(ranked)
    np.cumsum(ranked[:, :-1], axis=1, out=before[:, 1:])
    mass = np.empty_like(before)
    np.put_along_axis(mass, order, before, axis=1)
    return mass


def check_level(level: object, argument: str = "level") -> float:
    """A claimed coverage; refused unless it lies between 0 and 1."""
    percent = isinstance(level, (int, float)) and 1 < level < 100
    remedies = [passing(**{argument: float(level) / 100})] if percent else []  # type: ignore[arg-type]
    return check_number(argument, level, "must lie between 0 and 1", lambda c: 0 < c < 1, remedies=remedies)


def members_by(level: float | None, threshold: float | None) -> Members | None:
    """How probabilities become sets: by a level or by a threshold; None without either."""
    if level is not None:
        return Mass(check_level(level))
    return None if threshold is None else Above(check_level(threshold, "threshold"))


def no_way() -> InputError:
    """The error about probabilities without a level or a threshold to make sets."""
    return InputError(
        "must be sets; these are probabilities, which state a set for every level",
        argument="sets",
        kind="type",
        remedies=[
            passing("to judge the most likely classes with this probability", level=0.9),
            passing("to judge the classes above this probability", threshold=0.1),
        ],
    )


# Probabilities that are turned into sets at a time.
_NUMBERS = 2**22


@dataclass(frozen=True)
class Reduced:
    """A summary of each of N sets.

    Attributes
    ----------
    size : array of shape (N,)
        The number of classes in each.
    covered : bool array of shape (N,)
        Whether the outcome is one of them.
    low, high : arrays of shape (N,), or None
        The positions of the lowest and the highest class, -1 for empty sets; None for classes without an
        order.
    distance : array of shape (N,), or None
        The steps from the outcome to the nearest class of its set; -1 for empty sets.
    claimed : array of shape (N,), or None
        The coverage that each set claims, if sets differ in it.
    """

    size: Ints
    covered: Bools
    low: Ints | None = None
    high: Ints | None = None
    distance: Ints | None = None
    claimed: Floats | None = None

    def at(self, rows: Any) -> Reduced:
        """The summary of some of the sets."""
        some: list[Any] = [None if column is None else column[rows] for column in vars(self).values()]
        return Reduced(*some)

    @staticmethod
    def joined(parts: list[Reduced]) -> Reduced:
        """The summary of consecutive parts."""
        columns: list[Any] = [
            None if pieces[0] is None else np.concatenate(pieces)
            for pieces in zip(*(vars(part).values() for part in parts), strict=True)
        ]
        return Reduced(*columns)


@dataclass(frozen=True)
class SetBatch:
    """Consecutive sets with their outcomes."""

    reduced: Reduced
    y: Ints
    weights: Floats | None
    groups: Ints | None
    start: int
    n_classes: int
    xp: Namespace = np

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.y)


class SetRows(CheckedRows):
    """Sets with their outcomes and weights.

    An outcome not among the classes of the sets has a negative code. `level` is the coverage that all sets
    claim; None if they claim none, or differ in it.
    """

    def __init__(
        self,
        reduced: Reduced,
        y: Ints,
        n_classes: int,
        *,
        classes: tuple[Hashable, ...] | None = None,
        level: float | None = None,
        weights: object | None = None,
        groups: object | None = None,
        part: bool = False,
        names: Callable[[], Any] | None = None,
    ) -> None:
        self.reduced: Reduced = reduced
        self.n_classes: int = n_classes
        self.classes: tuple[Hashable, ...] | None = classes
        self.level: float | None = level
        self._y, self._names = y, names
        check_one_each(y, len(reduced.size))
        if not len(y) and not part:
            raise InputError("must have at least one set", argument="sets", kind="length")
        self._take_in(len(y), weights, groups, part=part)

    @property
    def n_rows(self) -> int:
        return len(self._y)

    @property
    def width(self) -> int:
        """The number of numbers per row."""
        return 1

    @property
    def y(self) -> Ints:
        """The positions of the outcomes."""
        return self._y

    def batch(self, start: int, stop: int) -> SetBatch:
        """Rows `start` to `stop`."""
        rows = slice(start, stop)
        return SetBatch(
            self.reduced.at(rows),
            self._y[rows],
            None if self.weights is None else self.weights[rows],
            None if self.groups is None else self.groups.codes[rows],
            start,
            self.n_classes,
        )

    def taken(self, places: Ints, weights: Any, groups: Groups | None) -> SetRows:
        """Some of the rows, with their weights and groups."""
        names = self._names
        return SetRows(
            self.reduced.at(places),
            self._y[places],
            self.n_classes,
            classes=self.classes,
            level=self.level,
            weights=weights,
            groups=groups,
            part=True,
            names=None if names is None else lambda: names()[places],
        )

    def outcomes(self) -> Groups:
        """The classes that happened, and the one in each row."""
        if self._names is not None:
            return Groups.of(self._names(), self.n_rows)
        labels = np.arange(self.n_classes)
        if self.classes is not None:
            alike = len({type(name) for name in self.classes}) == 1
            labels = np.array(self.classes if alike else list(map(str, self.classes)))
        return Groups(self._y, labels)

    # ---- from rows that are no sets yet -----------------------------------------------------------

    @classmethod
    def of_lists(cls, rows: ListRows) -> SetRows:
        """The classes that top lists name; sets claim the probability that the lists give them."""
        lists = rows.lists
        codes = rows.batch(0, rows.n_rows).y
        covered = np.zeros(rows.n_rows, np.bool_)
        covered[lists.row_of[lists.classes == codes[lists.row_of]]] = True
        claimed = np.clip(1 - rows.survey.unaccounted, 0.0, 1.0)
        reduced = Reduced(lists.lengths.astype(np.int64), covered, claimed=claimed)
        options: dict[str, Any] = {"weights": rows.weights, "groups": rows.groups, "part": True}

        def names() -> Any:
            return np.array([rows.outcome(row) for row in range(rows.n_rows)])

        return cls(reduced, codes, rows.n_classes, names=names, **options)

    @classmethod
    def of_probabilities(cls, rows: Forecasts, made: Members, *, ends: bool) -> SetRows:
        """The sets that probabilities state, made in blocks of rows."""
        parts, y = [], []
        weights: list[Any] = []
        for batch in rows.batches(max(1, _NUMBERS // rows.n_classes)):
            p, outcomes = to_host(widen(batch.p)).astype(np.float64, copy=False), to_host(batch.y)
            mask = made.mask(p)
            claimed = np.minimum(np.where(mask, p, 0.0).sum(axis=1), 1.0) if made.states_mass else None
            parts.append(reduced_mask(mask, outcomes, claimed, ends=ends))
            y.append(outcomes)
            weights.append(None if batch.weights is None else to_host(batch.weights))
        return cls(
            Reduced.joined(parts),
            np.concatenate(y),
            rows.n_classes,
            classes=rows.classes,
            level=made.level,
            weights=None if weights[0] is None else np.concatenate(weights),
            groups=rows.groups,
            part=True,
        )


def check_one_each(y: Ints, n_sets: int) -> None:
    """Refuse a number of outcomes that differs from the number of sets."""
    if len(y) != n_sets:
        raise InputError(
            "must have one outcome per set",
            argument="y",
            kind="length",
            found=f"there are {len(y)} outcomes and {n_sets} sets",
        )


def reduced_mask(mask: Bools, y: Ints, claimed: Floats | None = None, *, ends: bool) -> Reduced:
    """The summary of sets given as rows of a mask, with the `ends` of ordered ones.

    Outcomes not among the classes are not covered.
    """
    n, k = mask.shape
    known = (y >= 0) & (y < k)
    covered = mask[np.arange(n), np.where(known, y, 0)] & known
    size = sizes_of(mask)
    if not ends:
        return Reduced(size, covered, claimed=claimed)
    empty = size == 0
    low = np.where(empty, -1, mask.argmax(axis=1))
    high = np.where(empty, -1, k - 1 - mask[:, ::-1].argmax(axis=1))
    distance = _to_ends(low, high, y)
    rows = np.flatnonzero(~covered & (distance == 0))
    for steps in range(1, k if len(rows) else 0):
        # The lower end is below these outcomes and the upper end above, so no position is beyond the table.
        near = mask[rows, np.maximum(y[rows] - steps, 0)] | mask[rows, np.minimum(y[rows] + steps, k - 1)]
        distance[rows[near]], rows = steps, rows[~near]
    return Reduced(size, covered, low, high, distance, claimed)


def sizes_of(mask: Bools) -> Ints:
    """The number of classes in each set. Summing bytes is several times faster than summing integers.

    >>> sizes_of(np.array([[True, False, True], [False, False, False]])).tolist()
    [2, 0]
    """
    small = np.uint8 if mask.shape[1] < 2**8 else np.uint16 if mask.shape[1] < 2**16 else np.int64
    return np.asarray(mask.view(np.uint8).sum(axis=1, dtype=small), np.int64)


def _to_ends(low: Ints, high: Ints, y: Ints) -> Ints:
    """The steps from outcomes to the nearest end of their sets, 0 between the ends; -1 for empty sets."""
    return np.where(low < 0, -1, np.maximum(np.maximum(low - y, y - high), 0))


def reduced_lists(members: Ints, offsets: Ints, y: Ints, n_classes: int) -> Reduced:
    """The summary of sets given as increasing lists of positions, one after the other."""
    size = np.diff(offsets)
    row = np.repeat(np.arange(len(size)), size)
    covered = np.zeros(len(size), np.bool_)
    covered[row[members == y[row]]] = True
    filled = np.flatnonzero(size)
    low = np.full(len(size), -1)
    high = low.copy()
    low[filled], high[filled] = members[offsets[filled]], members[offsets[filled + 1] - 1]
    distance = _to_ends(low, high, y)
    inside = np.flatnonzero(~covered & (distance == 0))
    at = np.searchsorted(row * n_classes + members, inside * n_classes + y[inside])
    distance[inside] = np.minimum(y[inside] - members[at - 1], members[at] - y[inside]) if len(at) else 0
    return Reduced(size, covered, low, high, distance)
