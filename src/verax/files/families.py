"""Columns that belong together because the numbers of every row sum to 1, or to 100."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

ONE, PERCENT = 1.0, 100.0
# Sums that are further from 1 than this are not explained by rounding.
NEARLY = 0.02
# Most broken rows, which other checks complain about.
_BROKEN = 0.1
# Most columns of which all subsets are tried; of more columns, neighbours.
_SUBSETS, _NEIGHBOURS = 12, 100
# So many rows tell subsets from each other.
_ROWS = 200
# Rows whose sums are further from the total than this, in parts of it, lack something or have too much.
_EXACT = 1e-6
# Columns hold what rows lack if at most this share of their values is not explained by it.
_UNEXPLAINED = 0.25
_SEPARATORS = r"[\s_.\-:]"


class Family(NamedTuple):
    """Columns whose rows sum to `total`, which is ONE or PERCENT."""

    columns: tuple[str, ...]
    total: float


def total_of(values: Array) -> float | None:
    """What the rows of some (n, m) numbers sum to: ONE or PERCENT, but for a few broken rows; else None.

    >>> total_of(np.array([[0.3, 0.7], [0.5, 0.5]])), total_of(np.array([[30, 70]])), total_of(np.eye(2) / 2)
    (1.0, 100.0, None)
    """
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.where((values >= 0).all(axis=1), values.sum(axis=1), np.nan)
        for total in (ONE, PERCENT):
            if len(sums) and np.mean(np.abs(sums - total) <= NEARLY * total) >= 1 - _BROKEN:
                return total
    return None


def families(columns: Sequence[str], values: Array, must: Collection[str] = ()) -> list[Family]:
    """The sets of columns that may be the probabilities of all classes; more than one where that is in doubt.

    First all columns that can hold probabilities, then those of one name but for a number or a last word,
    then any of them. Sets of zeros and ones alone are decisions or flags and are left out.

    Parameters
    ----------
    columns : Sequence[str]
        The columns of numbers that have no other role.
    values : numpy.ndarray
        (n, m) some of their rows; NaN where a cell is not a number.
    must : Collection[str]
        Columns that a set must contain.
    """
    for stage in (_whole, _of_one_name, _subsets):
        fitting = {}
        for total in (ONE, PERCENT):
            usable = [j for j in range(len(columns)) if _can_hold(values[:, j], total)]
            for chosen in stage({j: columns[j] for j in usable}, values):
                part = values[:, list(chosen)]
                if (
                    {columns[j] for j in chosen} >= set(must)
                    and total_of(part) == total
                    and not _hard(part, total)
                ):
                    family = Family(tuple(columns[j] for j in chosen), total)
                    fitting[family.columns] = family
        if fitting:
            return list(fitting.values())
    return []


def complete(values: Array) -> bool:
    """Whether no row of some (n, m) numbers lacks anything of ONE or, if all hold percentages, of PERCENT."""
    values = values[np.isfinite(values).all(axis=1)]
    total = total_of(values)
    return total is not None and not (total - values.sum(axis=1) > total * _EXACT).any()


def completions(columns: Sequence[str], values: Array, taken: Sequence[str]) -> list[Family]:
    """The sets of other columns that hold what the rows of some columns lack, each with those, in file order.

    Of all sets whose rows sum to 1 or 100 those with the most exact sums, and of these the smallest; more
    than one where several are equally exact. None where the rows lack nothing, or nothing holds it.

    Parameters
    ----------
    columns : Sequence[str]
        The columns of numbers that have no other role.
    values : numpy.ndarray
        (n, m) some of their rows; NaN where a cell is not a number.
    taken : Sequence[str]
        Columns that surely hold probabilities.

    >>> rows = np.array([[0.5, 0.5, 0.0, 3], [0.5, 0.4, 0.1, 4], [0.2, 0.8, 0.0, 5]])
    >>> completions(["a", "b", "c", "fold"], rows, ["a", "b"])
    [Family(columns=('a', 'b', 'c'), total=1.0)]
    """
    kept = [j for j, name in enumerate(columns) if name in taken]
    values = values[np.isfinite(values[:, kept]).all(axis=1)]
    for total in (ONE, PERCENT):
        lacking = total - values[:, kept].sum(axis=1)
        if not (lacking > total * _EXACT).any():
            continue
        others = [j for j in range(len(columns)) if j not in kept and _can_hold(values[:, j], total)]
        others = [j for j in others if _is_part(values[:, j], lacking, total)]
        sets = [
            chosen
            for chosen in _additions(others, values, lacking, total)
            if _holds(values[:, chosen].sum(axis=1), lacking)
        ]
        whole = [[*kept, *chosen] for chosen in sets if total_of(values[:, [*kept, *chosen]]) == total]
        off = [_inexactness(values[:, chosen], total) for chosen in whole]
        best = [chosen for chosen, how in zip(whole, off, strict=True) if how <= min(off) + _EXACT**2]
        least = min((len(chosen) for chosen in best), default=0)
        smallest = [tuple(columns[j] for j in sorted(chosen)) for chosen in best if len(chosen) == least]
        if smallest:
            return [Family(chosen, total) for chosen in smallest]
    return []


def _is_part(values: Array, lacking: Array, total: float) -> bool:
    """Whether a column is at most what rows lack, but for rounding and a few broken rows: one of a set is."""
    with np.errstate(invalid="ignore"):
        return bool(np.mean(values <= lacking + NEARLY * total) >= 1 - _BROKEN)


def _additions(others: Sequence[int], values: Array, lacking: Array, total: float) -> Iterator[list[int]]:
    """Sets of columns to add: any of a few; of many one, or any two that a few rows do not rule out."""
    if len(others) <= _SUBSETS:
        for n in range(1, len(others) + 1):
            yield from map(list, combinations(others, n))
        return
    yield from ([j] for j in others)
    some = np.asarray(others)
    step = max(1, len(values) // _ROWS)
    fitting = np.zeros((len(some), len(some)), np.int64)
    for row, lack in zip(values[::step, some], lacking[::step], strict=True):
        with np.errstate(invalid="ignore"):
            fitting += np.abs(row[:, None] + row - lack) <= NEARLY * total
    # Twice the tolerated share of broken rows, because these are only a sample.
    for a, b in np.argwhere(np.triu(fitting, 1) >= (1 - 2 * _BROKEN) * len(values[::step])):
        yield [int(some[a]), int(some[b])]


def _holds(values: Array, lacking: Array) -> bool:
    """Whether numbers are what rows lack, but for rounding and a few broken rows."""
    some = values > 0
    with np.errstate(invalid="ignore"):
        unexplained = np.minimum(np.abs(lacking - values), values)[some].sum()
    return bool(some.any()) and bool(unexplained <= _UNEXPLAINED * values[some].sum())


def _inexactness(values: Array, total: float) -> float:
    """How far sums are from the total on average; what is beyond rounding counts as just beyond it."""
    with np.errstate(invalid="ignore"):
        return float(np.mean(np.fmin(np.abs(values.sum(axis=1) / total - 1), NEARLY)))


def can_be_a_class(values: Array, *, rescaled: bool) -> bool:
    """Whether a column can hold probabilities of a class; `rescaled`: or anything in proportion to them."""
    return _can_hold(values, np.inf if rescaled else ONE)


def _can_hold(values: Array, total: float) -> bool:
    """Whether a column can hold shares of `total`, but for a few broken cells."""
    with np.errstate(invalid="ignore"):
        inside = (values >= 0) & (values <= total * (1 + NEARLY))
    return bool(len(values)) and float(np.mean(inside)) >= 1 - _BROKEN


def _hard(values: Array, total: float) -> bool:
    """Whether no number lies between the ends."""
    with np.errstate(invalid="ignore"):
        return not bool(((values > 0) & (values < total)).any())


def _whole(usable: Mapping[int, str], _: Array) -> Iterator[Sequence[int]]:
    if len(usable) > 1:
        yield list(usable)


def _of_one_name(usable: Mapping[int, str], _: Array) -> Iterator[Sequence[int]]:
    """Columns that differ in a number at the end, or in the word after the last separator."""
    for ending in (rf"{_SEPARATORS}*\d+$", rf"{_SEPARATORS}+[^\s_.\-:]*$"):
        stems: dict[str, list[int]] = {}
        for j, name in usable.items():
            stem = re.sub(ending, "", name)
            if stem != name:
                stems.setdefault(stem, []).append(j)
        yield from (chosen for chosen in stems.values() if len(chosen) > 1)


def _subsets(usable: Mapping[int, str], values: Array) -> Iterator[Sequence[int]]:
    """Any columns that are not zero throughout: those would fit every set."""
    some = [j for j in usable if np.nanmax(values[:, j], initial=0.0) > 0]
    if len(some) <= _SUBSETS:
        sets = (chosen for n in range(2, len(some) + 1) for chosen in combinations(some, n))
    else:
        some = some[:_NEIGHBOURS]
        pairs = combinations(range(len(some) + 1), 2)
        sets = (tuple(some[a:b]) for a, b in pairs if b - a > 1)
    few = values[:_ROWS]
    yield from (chosen for chosen in sets if total_of(few[:, list(chosen)]) is not None)
