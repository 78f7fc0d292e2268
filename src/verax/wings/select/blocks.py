"""h-block cross-validation: contiguous blocks of series, held out in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from verax.common.checks import check_count, check_flag
from verax.errors import InputError, Remedy, show
from verax.inputs.arrays import Ints, to_array, to_host
from verax.inputs.groups import Groups

if TYPE_CHECKING:
    from verax.common.packages import Untyped as BaseCrossValidator
else:
    from sklearn.model_selection import BaseCrossValidator

Mask = np.ndarray[Any, Any]

_TRAIN, _VALIDATION, _TEST, _GAP = range(4)


class _Parts(NamedTuple):
    train: Ints
    validation: Ints
    test: Ints


class Parts(_Parts):
    """The rows of one fold, each part in ascending order.

    Parameters
    ----------
    train : array of int
        The rows to train on.
    validation : array of int
        The rows for validation.
    test : array of int
        The rows to test on.
    left_out : array of int
        The rows of the gaps.

    Examples
    --------
    >>> from verax.selection import HBlockSplit
    >>> fold = next(HBlockSplit(5, gap=2).split_three(range(10)))
    >>> fold.test.tolist(), fold.left_out.tolist()
    ([0, 1], [2, 3])
    """

    left_out: Ints

    def __new__(cls, train: Ints, validation: Ints, test: Ints, left_out: Ints) -> Parts:
        parts = super().__new__(cls, train, validation, test)
        parts.left_out = left_out
        return parts

    def __getnewargs__(self) -> tuple[Ints, ...]:
        return (*self, self.left_out)


class HBlockSplit(BaseCrossValidator):
    """Cross-validate time series by holding out contiguous blocks, optionally with gaps.

    Every series is cut into `n_blocks` blocks whose lengths differ by at most one. In fold i, blocks
    i, i+1, ... are for validation, those that follow for testing, and the others for training. Blocks
    are counted in a ring: after the last comes the first, so that no fold runs past the end and, over
    all folds with ``step=1``, every row is tested `n_test` times and validates `n_validation` times.
    The end of a series and its beginning are not neighbours, so there is no gap between them.

    The default leaves no gap: the last training row before a block and the first row of the block are
    neighbours. For rows that resemble their neighbours, pass `gap` or `gap_blocks`.

    Parameters
    ----------
    n_blocks : int, default 10
        Number of blocks per series (h).
    n_validation : int, default 0
        Number of validation blocks per fold.
    n_test : int, default 1
        Number of test blocks per fold.
    gap_blocks : int, default 0
        Number of blocks left out between any two of the three parts. Between different series (see
        `per_class` and `groups`), the gap has the number of rows of that many blocks of the shorter one.
    gap : int, default 0
        Number of rows left out between any two of the three parts, taken from training first, then from
        validation. Rows are counted in time order, whatever their class. For windows made before the
        split, ceil(length / step) - 1 keeps them from sharing rows.
    step : int, default 1
        Number of blocks from one fold to the next. ``step=n_test``, a divisor of `n_blocks`, tests every
        row exactly once.
    per_class : bool, default False
        Whether blocks are cut among the rows of each class in `y`, so that every class is in every part.

    Notes
    -----
    With `groups` the rows of each group are a series, and with `per_class` those of each class in each
    group. The order of the table is the order of time. Groups that follow one another in the table follow
    one another in time, so gaps also hold across their borders; groups whose rows are interleaved are
    parallel recordings, each with its own time. ``fold.left_out`` has the rows that a fold of `split_three`
    leaves out for its gaps.

    This is Algorithm 4 of Ahmadian, Ghatee and Wahlström (2025), with its blocks counted in a ring (there
    late folds run past block h and lose their test blocks) and with gaps.

    Examples
    --------
    >>> from verax.selection import HBlockSplit
    >>> split = HBlockSplit(5, n_validation=1, gap_blocks=0)
    >>> for fold in split.split_three(range(10)):
    ...     print(fold.train, fold.validation, fold.test)
    [4 5 6 7 8 9] [0 1] [2 3]
    [0 1 6 7 8 9] [2 3] [4 5]
    [0 1 2 3 8 9] [4 5] [6 7]
    [0 1 2 3 4 5] [6 7] [8 9]
    [2 3 4 5 6 7] [8 9] [0 1]
    >>> fold = next(HBlockSplit(5, gap=2).split_three(range(10)))
    >>> fold.train, fold.test, fold.left_out
    (array([4, 5, 6, 7, 8, 9]), array([0, 1]), array([2, 3]))
    """

    # scikit-learn then hands `groups` on by itself where metadata routing is switched on.
    __metadata_request__split = {"groups": True}  # noqa: RUF012

    def __init__(
        self,
        n_blocks: int = 10,
        *,
        n_validation: int = 0,
        n_test: int = 1,
        gap_blocks: int = 0,
        gap: int = 0,
        step: int = 1,
        per_class: bool = False,
    ) -> None:
        least = {"n_blocks": 2, "n_validation": 0, "n_test": 1, "gap_blocks": 0, "gap": 0, "step": 1}
        for name, value in zip(least, (n_blocks, n_validation, n_test, gap_blocks, gap, step), strict=True):
            check_count(name, value, least=least[name])
        held_out = n_validation + n_test + gap_blocks * (3 if n_validation else 2)
        if held_out >= n_blocks:
            raise InputError(
                "must leave a block for training",
                argument="n_blocks",
                found=f"validation, testing and gaps take {show(held_out)} of {show(n_blocks)}",
                values=[n_blocks],
                remedies=[Remedy("Cut the series into more blocks or hold out fewer.")],
            )
        if step > n_blocks:
            raise InputError(
                f"must be at most the {show(n_blocks)} blocks, not {show(step)}",
                argument="step",
                values=[step],
            )
        self.n_blocks = n_blocks
        self.n_validation = n_validation
        self.n_test = n_test
        self.gap_blocks = gap_blocks
        self.gap = gap
        self.step = step
        self.per_class: bool = check_flag("per_class", per_class)

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Return the number of folds: one for every `step` blocks, rounded up.

        Parameters
        ----------
        X : object, optional
            Not used; scikit-learn passes it.
        y : object, optional
            Not used; scikit-learn passes it.
        groups : object, optional
            Not used; scikit-learn passes it.

        Returns
        -------
        int
            The number of folds.
        """
        return -(-self.n_blocks // self.step)

    def split(self, X: object, y: object = None, groups: object = None) -> Iterator[tuple[Ints, Ints]]:
        """Yield training and test rows of every fold; validation rows are in neither.

        Parameters
        ----------
        X : array_like of N rows
            The rows, in time order.
        y : array_like of shape (N,), optional
            The class of each row, for `per_class`.
        groups : array_like of shape (N,), optional
            The series of each row.

        Yields
        ------
        tuple of two arrays
            The numbers of the training rows and of the test rows.
        """
        for fold in self.split_three(X, y, groups):
            yield fold.train, fold.test

    def split_three(self, X: object, y: object = None, groups: object = None) -> Iterator[Parts]:
        """Yield training, validation and test rows of every fold.

        Parameters
        ----------
        X : array_like of N rows
            The rows, in time order.
        y : array_like of shape (N,), optional
            The class of each row, for `per_class`.
        groups : array_like of shape (N,), optional
            The series of each row.

        Yields
        ------
        Parts
            The numbers of the rows of a fold.
        """
        n = _n_rows(X)
        recordings = [] if groups is None else [_codes(groups, "groups", n)]
        series = _series(n, [*recordings, *self._classes(y, n)])
        block, lengths = np.empty(n, np.int64), np.empty(n, np.int64)
        for name, rows in series:
            block[rows] = self._cut(name, len(rows))
            lengths[rows] = len(rows) // self.n_blocks
        orders = _orders(n, recordings)
        for start in range(0, self.n_blocks, self.step):
            role = self._roles(start)[block]
            role = self._keep_apart(role, orders, lengths if len(series) > 1 else None)
            self._check_parts(role, series)
            yield Parts(*(np.flatnonzero(role == part) for part in (_TRAIN, _VALIDATION, _TEST, _GAP)))

    def _classes(self, y: object, n: int) -> list[tuple[Any, Ints]]:
        if not self.per_class:
            return []
        if y is None:
            raise InputError(
                "must be given, because blocks are cut within each class", argument="y", kind="missing"
            )
        return [_codes(y, "y", n)]

    def _cut(self, name: str, n: int) -> Ints:
        """The block of every row of a series."""
        if n < self.n_blocks:
            raise InputError(
                "must not exceed the number of rows of a series",
                argument="n_blocks",
                kind="length",
                found=f"the one{name} has {n} rows for {show(self.n_blocks)} blocks",
                values=[n],
                remedies=[Remedy("Use fewer blocks, or leave that series out.")],
            )
        edges = np.arange(self.n_blocks + 1) * n // self.n_blocks
        return np.repeat(np.arange(self.n_blocks), np.diff(edges))

    def _roles(self, start: int) -> Ints:
        """The role of each block in the fold that starts at this one."""
        ring = (start + np.arange(self.n_blocks)) % self.n_blocks
        between = self.gap_blocks if self.n_validation else 0
        validation = ring[: self.n_validation]
        test = ring[self.n_validation + between :][: self.n_test]
        roles = np.full(self.n_blocks, _TRAIN)
        for held_out in (*validation, *test):
            roles[max(0, held_out - self.gap_blocks) : held_out + self.gap_blocks + 1] = _GAP
        roles[ring[self.n_validation :][:between]] = _GAP
        roles[validation], roles[test] = _VALIDATION, _TEST
        return roles

    def _keep_apart(self, role: Ints, orders: list[Ints], lengths: Ints | None) -> Ints:
        """The roles with rows taken out between parts, in every order in which rows are neighbours.

        `lengths` are those of the blocks that rows belong to, where rows of different series can be
        neighbours; within a series whole blocks are taken out already.
        """
        role = role.copy()
        for held_out, others in ((_TEST, (_TRAIN, _VALIDATION)), (_VALIDATION, (_TRAIN,))):
            near = np.zeros(len(role), bool)
            for rows in orders:
                near[rows] |= self._near(role[rows] == held_out, None if lengths is None else lengths[rows])
            role[near & np.isin(role, others)] = _GAP
        return role

    def _near(self, held_out: Mask, lengths: Ints | None) -> Mask:
        """Which of these rows, in order, are within the gap of rows held out."""
        near = _widened(held_out, self.gap)
        if lengths is None or not self.gap_blocks:
            return near
        # Between two rows there must be at least `gap_blocks` blocks of the shorter series.
        for length in np.unique(lengths):
            longer = lengths >= length
            near |= longer & _widened(held_out & longer, self.gap_blocks * int(length))
        return near

    def _check_parts(self, role: Ints, series: list[tuple[str, Ints]]) -> None:
        """Refuse a gap that takes all rows of a series from a part."""
        wanted = {_TRAIN: "training"} | ({_VALIDATION: "validation"} if self.n_validation else {})
        for name, rows in series:
            for part, what in wanted.items():
                if not (role[rows] == part).any():
                    argument = "gap" if self.gap else "gap_blocks"
                    gap = getattr(self, argument)
                    unit = "rows" if self.gap else "blocks"
                    raise InputError(
                        f"must leave rows for {what}",
                        argument=argument,
                        found=f"{show(gap)} {unit} on each side leave none of the series{name}",
                        values=[gap],
                        remedies=[Remedy("Use a smaller gap, or fewer and longer blocks.")],
                    )


def _orders(n: int, recordings: list[tuple[Any, Ints]]) -> list[Ints]:
    """The rows in each order in which rows are neighbours: the table's, or that of each mixed group."""
    if recordings:
        labels, codes = recordings[0]
        if np.count_nonzero(np.diff(codes)) >= len(labels):
            return [rows for _, rows in _series(n, recordings)]
    return [np.arange(n)]


def _series(n: int, keys: list[tuple[Any, Ints]]) -> list[tuple[str, Ints]]:
    """The rows of every series, with its name in messages; without keys, all rows are one series."""
    if not keys:
        return [("", np.arange(n))]
    joint = np.stack([codes for _, codes in keys], axis=1)
    combinations, codes = np.unique(joint, axis=0, return_inverse=True)
    names = [
        " of " + ", ".join(show(labels[i]) for (labels, _), i in zip(keys, row, strict=True))
        for row in combinations
    ]
    order = np.argsort(codes.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(codes.reshape(-1)))
    return list(zip(names, np.split(order, ends[:-1]), strict=True))


def _n_rows(X: object) -> int:
    shape = getattr(X, "shape", None)
    try:
        n = int(shape[0]) if shape else len(X)  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        raise InputError(
            f"must have rows, not be a {type(X).__name__}",
            argument="X",
            kind="type",
            remedies=[Remedy("Where there is no table, range(n) will do.")],
        ) from None
    if n == 0:
        raise InputError("must have rows to split", argument="X", kind="length", found="it has none")
    return n


def _codes(labels: object, argument: str, n: int) -> tuple[Any, Ints]:
    """The different labels, and for each row the number of its own."""
    values = to_host(to_array(labels, argument)[0])
    if values.shape != (n,):
        raise InputError(
            f"must have one label for each of the {n} rows",
            argument=argument,
            kind="length",
            found=f"its shape is {values.shape}",
        )
    groups = Groups.of_labels(values, argument, "must have a label in every row")
    return groups.labels, groups.codes


def _widened(mask: Mask, by: int) -> Mask:
    """Where a true value is at most `by` places away."""
    by = min(by, len(mask))
    counts = np.concatenate([[0], np.cumsum(mask)])
    i = np.arange(len(mask))
    widened: Mask = counts[np.minimum(i + by + 1, len(mask))] > counts[np.maximum(i - by, 0)]
    return widened
