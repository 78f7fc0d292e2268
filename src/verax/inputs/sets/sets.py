"""Prediction sets: for each row the classes that the outcome is expected to be among."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from verax.common.checks import check_flag, check_integer, check_n_classes, is_whole
from verax.errors import InputError, Offenders, Remedy, passing, show
from verax.inputs.arrays import Bools, Floats, Ints, kind_of, to_array, to_host, widen
from verax.inputs.forecasts import Forecasts, new_rows
from verax.inputs.lists.ragged import offsets_of
from verax.inputs.lists.reading import column_of_lists
from verax.inputs.lists.toplists import TopLists
from verax.inputs.lists.vocabulary import ClassVocabulary, in_order, positions
from verax.inputs.outcomes import check_classes
from verax.inputs.sets.rows import (
    Members,
    Reduced,
    SetRows,
    check_level,
    check_one_each,
    members_by,
    no_way,
    reduced_lists,
    reduced_mask,
    sizes_of,
)

_SINGLE = Remedy("Put single classes into lists: [['cat'], ['dog']].", python_only=True)
_NO_MASK = Remedy("A mask is a boolean array; lists of lists hold classes.", python_only=True)


def flat_labels(rows: Any) -> tuple[list[Any], Ints]:
    """The classes of all sets one after the other, and where each set begins."""
    if isinstance(rows, tuple) and len(rows) == 2 and isinstance(rows[1], np.ndarray):
        return list(np.asarray(rows[0]).tolist()), rows[1]
    if not isinstance(rows, (list, tuple)):
        column = column_of_lists(rows, "sets")
        if isinstance(column, tuple):
            return list(column[0].tolist()), column[1]
        rows = rows if column is None else column
    rows = to_host(rows) if hasattr(rows, "__array_namespace__") else rows
    if isinstance(rows, (str, bytes, Mapping)) or not _several(rows):
        raise InputError(
            "must be a collection of classes for each row",
            argument="sets",
            kind="type",
            found=f"it is a {type(rows).__name__}",
            remedies=[_SINGLE],
        )
    flat: list[Any] = []
    lengths = []
    for number, row in enumerate(rows):
        if isinstance(row, (str, bytes, Mapping)) or not _several(row):
            raise InputError(
                "must be a collection of classes for each row",
                argument="sets",
                kind="type",
                found=f"row {number} holds {show(row)}",
                rows=[number],
                values=[row],
                remedies=[_SINGLE],
            )
        members = [x.item() if isinstance(x, np.generic) else x for x in row]
        flat += members
        lengths.append(len(members))
    return flat, offsets_of(np.array(lengths, np.int64))


def _several(x: object) -> bool:
    """Whether it can be iterated over; arrays without dimensions only seem so."""
    return hasattr(x, "__iter__") and not hasattr(x, "readline") and getattr(x, "ndim", 1) != 0


def label_positions(flat: list[Any], offsets: Ints, k: int, names: tuple[Hashable, ...] | None) -> Ints:
    """The positions of the classes that sets name; refuses unknown classes."""
    known: Any = range(k) if names is None else {name: i for i, name in enumerate(names)}
    if names is not None and all(map(is_whole, flat)) and not any(map(is_whole, names)):
        # Whole numbers are positions where no class is a number.
        known = range(k)
    table = {name: i for i, name in enumerate(known)}
    try:
        places = np.fromiter((table.get(label, -1) for label in flat), np.int64, len(flat))
    except TypeError:
        places = np.array([-1 if not isinstance(x, Hashable) else table.get(x, -1) for x in flat])
    if (places >= 0).all():
        return places
    row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    wrong = np.flatnonzero(places < 0)
    first = {int(row[i]): flat[i] for i in reversed(wrong.tolist())}
    listed = "positions from 0 to " + str(k - 1) if names is None else ", ".join(show(c) for c in names[:6])
    more = ", ..." if names is not None and len(names) > 6 else ""
    bad = Offenders("sets", f"must name classes that are known ({listed}{more})", "label", ("names", "name"))
    mask = np.zeros(len(offsets) - 1, np.bool_)
    mask[list(first)] = True
    bad.add(mask, [first.get(i) for i in range(len(mask))], 0)
    raise bad.error(passing("with all classes in order, if some are missing", classes=...), _NO_MASK)


def check_repeats(members: Ints, offsets: Ints, names: tuple[Hashable, ...] | None) -> None:
    """Refuse sets that name a class twice."""
    row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    again = np.flatnonzero((members[1:] == members[:-1]) & (row[1:] == row[:-1]))
    if not len(again):
        return
    bad = Offenders("sets", "must name every class once", "label", ("names", "name"))
    twice = {int(row[i]): int(members[i]) for i in reversed(again.tolist())}
    mask = np.zeros(len(offsets) - 1, np.bool_)
    mask[list(twice)] = True
    shown = {at: (place if names is None else names[place]) for at, place in twice.items()}
    bad.add(mask, [f"{show(shown[i])} twice" if i in shown else "" for i in range(len(mask))], 0)
    raise bad.error(_NO_MASK)


class Sets:
    """For each row a set of the K classes.

    Sets are made by `from_mask`, `from_labels`, `from_probabilities` and `from_lists`, or by `conformal`.
    They are read-only: changing the arguments afterwards does not change them.

    Parameters
    ----------
    members : array of shape (E,)
        Positions of the classes, set after set, increasing within each.
    offsets : array of shape (N + 1,)
        Where each set begins, and where the last one ends.
    n_classes : int
        The number of classes K.
    classes : sequence of K labels, optional
        The names of the classes, in order.
    level : float, optional
        The coverage that the sets claim.

    Examples
    --------
    >>> import verax as vx
    >>> sets = vx.Sets.from_labels([["cat"], ["cat", "dog"], []], classes=["cat", "dog", "emu"])
    >>> sets.sizes.tolist(), sets[1]
    ([1, 2, 0], ('cat', 'dog'))
    """

    def __init__(
        self,
        members: Ints,
        offsets: Ints,
        n_classes: int,
        *,
        classes: Sequence[Hashable] | None = None,
        level: float | None = None,
    ) -> None:
        self.n_classes: int = check_n_classes(n_classes)
        self.classes: tuple[Hashable, ...] | None = check_classes(classes, self.n_classes)
        self.level: float | None = None if level is None else check_level(level)
        self._members, self._offsets = members, offsets
        self._mask: Bools | None = None
        self._lists: TopLists | None = None

    # ---- constructors ----------------------------------------------------------------------

    @classmethod
    def from_mask(
        cls, mask: object, *, classes: Sequence[Hashable] | None = None, level: float | None = None
    ) -> Sets:
        """Sets from a table with a column per class: true, or 1, for the members.

        Parameters
        ----------
        mask : array_like of shape (N, K)
            Booleans, or 0 and 1.
        classes : sequence of K labels, optional
            Names of the columns, in order. By default those of a data frame.
        level : float, optional
            The coverage that the sets claim, such as 0.9.

        Returns
        -------
        Sets
            The sets.

        Examples
        --------
        >>> import numpy as np, verax as vx
        >>> vx.Sets.from_mask(np.array([[True, False, True]])).sizes.tolist()
        [2]
        """
        raw, columns = to_array(mask, "sets")
        values = to_host(raw)
        if values.ndim != 2 or kind_of(values) not in ("bool", "integer", "real") or values.shape[1] < 2:
            raise InputError(
                "must have a row per set and a column per class",
                argument="sets",
                kind="type",
                found=f"the shape is {values.shape} and the type {values.dtype}",
            )
        if kind_of(values) != "bool":
            bad = Offenders("sets", "must hold 0 and 1 only, to be a mask")
            bad.add(~((values == 0) | (values == 1)).all(axis=1), values, 0)
            if bad.count:
                raise bad.error()
        names = classes if classes is not None or columns is None else columns
        made = cls(np.zeros(0, np.int64), np.zeros(1, np.int64), values.shape[1], classes=names, level=level)
        made._mask = np.array(values, np.bool_, order="C")
        made._mask.flags.writeable = False
        return made

    @classmethod
    def from_labels(
        cls,
        rows: Any,
        *,
        classes: Sequence[Hashable] | None = None,
        n_classes: int | None = None,
        level: float | None = None,
    ) -> Sets:
        """Sets from the classes that each names, as labels or as positions.

        Parameters
        ----------
        rows : N collections, or a column of lists
            The classes of each set: labels found in `classes`, or positions 0..K-1.
        classes : sequence of K labels, optional
            The names of all classes, in order. By default those that some set names, in the order of their
            texts; numbers are positions.
        n_classes : int, optional
            The number of classes, where the sets hold positions. By default the largest position plus 1.
        level : float, optional
            The coverage that the sets claim, such as 0.9.

        Returns
        -------
        Sets
            The sets.

        Examples
        --------
        >>> import verax as vx
        >>> vx.Sets.from_labels([{0, 2}, {1}], n_classes=4).mask().astype(int).tolist()
        [[1, 0, 1, 0], [0, 1, 0, 0]]
        """
        flat, offsets = flat_labels(rows)
        if classes is not None and not isinstance(classes, Iterable):
            raise InputError(
                "must be a list of names", argument="classes", kind="type", found=f"it is {show(classes)}"
            )
        names = None if classes is None else tuple(classes)
        for label in flat:
            if not isinstance(label, Hashable):
                raise InputError("must name classes", argument="sets", kind="type", found=show(label))
        textual = any(not is_whole(label) for label in flat)
        if names is None and textual:
            names = tuple(in_order(set(flat)))
        k = len(names) if names is not None else None if n_classes is None else check_n_classes(n_classes)
        if names is None and k is None:
            k = max((int(label) for label in flat), default=0) + 1
        assert k is not None
        checked = check_classes(names, k)
        places = label_positions(flat, offsets, k, checked)
        order = np.lexsort((places, np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))))
        members = places[order]
        check_repeats(members, offsets, checked)
        return cls(members, offsets, max(k, 2), classes=checked if k >= 2 else None, level=level)

    @classmethod
    def from_probabilities(
        cls,
        p: object,
        *,
        level: float | None = None,
        threshold: float | None = None,
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
        logits: bool = False,
    ) -> Sets:
        """Build sets from the stated probabilities; `conformal` corrects them.

        Parameters
        ----------
        p : array_like of shape (N, K)
            Forecasts: probabilities of the K classes.
        level : float, optional
            Take the most likely classes until their probability reaches this level.
        threshold : float, optional
            Take the classes whose probability is above this threshold.
        classes : sequence of K labels, optional
            Names of the columns of `p`, in order.
        normalize : bool, default False
            Whether to divide each row of `p` by its sum first.
        logits : bool, default False
            Whether `p` holds logits; the softmax is applied first.

        Returns
        -------
        Sets
            The sets.

        Examples
        --------
        >>> import verax as vx
        >>> vx.Sets.from_probabilities([[0.1, 0.6, 0.3]], level=0.8).to_labels()
        [(1, 2)]
        """
        rows = new_rows(p, classes=classes, normalize=normalize, logits=logits)
        made = members_by(level, threshold)
        if made is None:
            raise no_way()
        return sets_made_by(made, rows)

    @classmethod
    def from_lists(cls, lists: TopLists) -> Sets:
        """The classes that top lists name; each set claims the probability that its list gives them.

        Parameters
        ----------
        lists : TopLists
            The lists.

        Returns
        -------
        Sets
            The sets.

        Examples
        --------
        >>> import verax as vx
        >>> lists = vx.TopLists.from_dicts([{0: 0.5, 3: 0.2}, {2: 0.7}], n_classes=5)
        >>> vx.Sets.from_lists(lists).to_labels()
        [(0, 3), (2,)]
        """
        if not isinstance(lists, TopLists):
            raise InputError("must be TopLists", argument="lists", kind="type", found=f"it is {show(lists)}")
        made = object.__new__(cls)
        made.n_classes, made.level, made._mask, made._lists = lists.n_classes, None, None, lists
        vocabulary = lists.vocabulary
        made.classes = vocabulary.names if vocabulary is not None and vocabulary.complete else None
        ragged = lists.with_class(0).lists
        made._members, made._offsets = ragged.classes, ragged.offsets
        return made

    _claimed: Floats | None = None

    # ---- properties ------------------------------------------------------------------------

    @property
    def of_lists(self) -> bool:
        """Whether the sets come from top lists, whose classes have no positions."""
        return self._lists is not None

    def __len__(self) -> int:
        return len(self._offsets) - 1 if self._mask is None else len(self._mask)

    @property
    def sizes(self) -> Ints:
        """(N,) the number of classes in each set."""
        if self._mask is not None:
            return sizes_of(self._mask)
        return np.diff(self._offsets)

    def __getitem__(self, row: int) -> tuple[Hashable, ...]:
        """The classes of one set: their names, or their positions if they have none."""
        at = range(len(self))[check_integer("row", row)]
        if self._mask is not None:
            return tuple(map(self._name, np.flatnonzero(self._mask[at]).tolist()))
        return tuple(map(self._name, self._members[self._offsets[at] : self._offsets[at + 1]].tolist()))

    def _name(self, code: int) -> Hashable:
        if self._lists is not None and self._lists.vocabulary is not None:
            return self._lists.vocabulary.name(code)
        return code if self.classes is None else self.classes[code]

    def to_labels(self) -> list[tuple[Hashable, ...]]:
        """The classes of every set: their names, or their positions if they have none.

        Returns
        -------
        list of tuple
            The sets.
        """
        return [self[row] for row in range(len(self))]

    def mask(self) -> Bools:
        """The sets as a table with a column per class.

        Returns
        -------
        bool array of shape (N, K)
            True for the members.
        """
        if self._mask is not None:
            return self._mask
        self._check_positions("have a table")
        mask = np.zeros((len(self), self.n_classes), np.bool_)
        mask[np.repeat(np.arange(len(self)), self.sizes), self._members] = True
        return mask

    def to_lists(self, level: float | None = None) -> TopLists:
        """The sets as top lists: every member has the same share of the level.

        A set at level L is a top list with total probability L. So sets and lists are compared on one scale,
        by `padded` rules: `compare(y, {"sets": sets.to_lists(), "lists": lists}, rule="brier")`.

        Parameters
        ----------
        level : float, optional
            The probability that the classes of a set have together; by default the level of the sets.

        Returns
        -------
        TopLists
            The lists. A set of all classes has probability 1.

        Examples
        --------
        >>> import verax as vx
        >>> vx.Sets.from_labels([[0, 2], [1]], n_classes=4).to_lists(0.9).to_dicts()
        [{0: 0.45, 2: 0.45}, {1: 0.9}]
        """
        self._check_positions("become lists")
        claimed = self.level if level is None else check_level(level)
        if claimed is None:
            raise InputError(
                "must be given where the sets have none", argument="level", remedies=[passing(level=0.9)]
            )
        sizes = self.sizes
        members = np.flatnonzero(self._mask) % self.n_classes if self._mask is not None else self._members
        mass = np.where(sizes == self.n_classes, 1.0, claimed)
        shares = np.repeat(mass / np.maximum(sizes, 1), sizes)
        vocabulary = None if self.classes is None else ClassVocabulary(self.classes, complete=True)
        return TopLists(members, shares, offsets_of(sizes), self.n_classes, vocabulary=vocabulary)

    def taken(self, rows: Ints) -> Sets:
        """Some of the sets.

        Parameters
        ----------
        rows : array of int
            The numbers of the sets.

        Returns
        -------
        Sets
            These sets, in this order.
        """
        self._check_positions("be taken one by one")
        rows = to_host(to_array(rows, "rows")[0])
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or not ((rows >= 0) & (rows < len(self))).all():
            raise InputError("must be numbers of sets", argument="rows", kind="type", found=show(rows))
        sets = Sets.from_mask(self.mask()[rows], classes=self.classes, level=self.level)
        sets._claimed = None if self._claimed is None else self._claimed[rows]
        return sets

    def _check_positions(self, what: str) -> None:
        if self._lists is not None:
            raise InputError(f"must be sets of known classes to {what}", argument="sets", kind="type")

    def __repr__(self) -> str:
        n = len(self)
        level = "" if self.level is None else f", level {self.level:g}"
        mean = f", mean size {self.sizes.mean():.3g}" if n else ""
        return f"Sets: {n:,} sets of {self.n_classes:,} classes{mean}{level}"

    # ---- use -------------------------------------------------------------------------------

    def with_outcomes(
        self,
        y: object,
        *,
        classes: Sequence[Hashable] | None = None,
        weights: object | None = None,
        groups: object | None = None,
        normalize: bool = False,
        logits: bool = False,
        ordered: bool = False,
        part: bool = False,
    ) -> SetRows:
        """The sets as rows to be scored; called by `sets`, `compare` and rules.

        Parameters
        ----------
        y : array_like of shape (N,) or (N, K)
            Outcomes: class positions, labels of the sets, or one-hot rows.
        classes : sequence of K labels, optional
            The names of all classes, in order.
        weights : array_like of shape (N,), optional
            Importance weights of the rows, not negative, not all zero. Only their ratios matter.
        groups : array_like of shape (N,), or two of them, optional
            Labels of clusters (patients, sites) whose rows belong together and are resampled together.
        normalize : bool, default False
            Refused if true: sets hold no probabilities.
        logits : bool, default False
            Refused if true: sets hold no probabilities.
        ordered : bool, default False
            Whether the classes have an order.
        part : bool, default False
            Whether these are a part of all rows, which may have no row and no weight.

        Returns
        -------
        SetRows
            The sets with their outcomes.
        """
        for name, flag in (("normalize", normalize), ("logits", logits)):
            if check_flag(name, flag):
                raise InputError("does not apply to sets", argument=name)
        options: dict[str, Any] = {"weights": weights, "groups": groups, "part": part, "level": self.level}
        if self._lists is not None:
            rows = self._lists.with_outcomes(y, classes=classes, weights=weights, groups=groups, part=part)
            return SetRows.of_lists(rows)
        names = check_classes(classes, self.n_classes)
        if names is not None and self.classes is not None and names != self.classes:
            raise InputError(
                "must be the classes of the sets, in the same order",
                argument="classes",
                kind="label",
                found=f"those of the sets are {show(list(self.classes))}",
            )
        names = names or self.classes
        codes = positions(y, self.n_classes, names)
        check_one_each(codes, len(self))
        ends = check_flag("ordered", ordered)
        return SetRows(self._reduced(codes, ends=ends), codes, self.n_classes, classes=names, **options)

    def with_class(self, position: int) -> SetRows:
        """The sets as rows in which the class at this position happened.

        Parameters
        ----------
        position : int
            The position of the class.

        Returns
        -------
        SetRows
            The sets with that outcome in every row.
        """
        if self._lists is not None:
            return SetRows.of_lists(self._lists.with_class(position))
        codes = np.full(len(self), check_integer("position", position))
        reduced = self._reduced(codes, ends=True)
        return SetRows(reduced, codes, self.n_classes, classes=self.classes, level=self.level)

    def _reduced(self, codes: Ints, *, ends: bool) -> Reduced:
        if self._mask is not None:
            return reduced_mask(self._mask, codes, self._claimed, ends=ends)
        return reduced_lists(self._members, self._offsets, codes, self.n_classes)


def sets_made_by(made: Members, rows: Forecasts) -> Sets:
    """The sets that `made` takes from full distributions; their outcomes do not matter."""
    p = to_host(widen(rows.batch(0, rows.n_rows).p)).astype(float, copy=False)
    mask = made.mask(p)
    sets = Sets.from_mask(mask, classes=rows.classes, level=made.level)
    if made.states_mass:
        sets._claimed = np.minimum(np.where(mask, p, 0.0).sum(axis=1), 1.0)
    return sets
