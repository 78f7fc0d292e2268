"""Files of two models that were named as one: the same rows are in both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise, zip_longest
from math import exp, lgamma, log
from typing import Any

from verax.errors import InputError, Remedy, passing, show

# What columns are called that may identify rows, where nobody names one.
_ID_NAMES = frozenset(
    (
        *("id", "ids", "_id", "uid", "uuid", "guid", "key", "index", "idx", "row", "row_id", "rowid", "qid"),
        *("sample_id", "example_id", "case_id", "item_id", "record_id", "question_id", "doc_id", "image_id"),
        *("instance_id", "patient_id", "subject_id", "filename", "file_name", "custom_id"),
    )
)
# Files are refused as those of two models where chance makes them look so less often than this: by the
# outcomes of the same ids, and by the order of the outcomes alone.
_BY_IDS, _BY_ORDER = 1e-3, 1e-6
# How many outcomes are compared in order.
_COMPARED = 1000
# How many rows of each file are looked at, and of all files: some rows are in both files of two models, even
# where their orders differ.
_HEAD, _ALL_HEADS, _LEAST = 2**12, 2**17, 2**6


class SameRows:
    """Looks for files that hold the same rows, while files of columns are read one after the other.

    Attributes
    ----------
    outcomes : tuple of str
        The columns of outcomes; none where there is none.
    notes : tuple of str
        A sentence about files that may be of two models, where that is not sure.
    """

    def __init__(self, names: Sequence[str], outcomes: Sequence[str], n_files: int) -> None:
        self.outcomes: tuple[str, ...] = tuple(outcomes)
        self._id = next((name for name in names if name.casefold() in _ID_NAMES), None)
        self._search = TwoModels(n_files, self._id or "")
        self.rows: int = head_rows(n_files)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to look at."""
        return (*self.outcomes, *([] if self._id is None else [self._id]))

    @property
    def notes(self) -> tuple[str, ...]:
        return self._search.notes

    def wants(self, file: str) -> bool:
        """Whether a file has not been seen yet."""
        return file not in self._search.seen

    def see(self, file: str, first: Any) -> None:
        """Look at the first rows of a file; refuse it where they are those of another model."""
        cells: dict[str, list[Any]] = {}
        if first is not None:
            head = first.slice(0, self.rows)
            cells = {
                name: head.column(name).to_pylist() for name in self.columns if name in head.schema.names
            }
        outcomes = [cells[name] for name in self.outcomes if name in cells]
        ids = None if self._id is None else cells.get(self._id)
        self._search.add(file, list(zip(*outcomes, strict=True)), ids)


def head_rows(n_files: int) -> int:
    """How many rows of each file are looked at, so that the ids of many files do not fill the memory.

    >>> head_rows(2), head_rows(1000)
    (4096, 131)
    """
    return max(_LEAST, min(_HEAD, _ALL_HEADS // max(1, n_files)))


class TwoModels:
    """Refuses files that hold the same rows, which are those of two models.

    Files with other ids are parts of one data set. Files with the same ids and other outcomes are parts that
    count from the same number. Files without ids are the same rows if their outcomes are in the same order.
    Where outcomes are not known, the ids tell, unless they are numbers, which may begin at 0 in every file.

    Parameters
    ----------
    n_files : int
        The number of all files, of which some look alike by chance.
    column : str
        The column of ids that nobody named.

    Attributes
    ----------
    notes : tuple of str
        A sentence about two files that look alike, where that may be chance.
    """

    def __init__(self, n_files: int, column: str = "") -> None:
        self._n_files, self._column = n_files, column
        self.seen: set[str] = set()
        self.notes: tuple[str, ...] = ()
        self._with_ids = True
        self._ids: dict[Hashable, tuple[str, Hashable]] = {}
        self._orders: dict[tuple[Hashable, ...], str] = {}

    def add(self, file: str, outcomes: Sequence[Hashable], ids: Sequence[Hashable] | None = None) -> None:
        """Compare the first rows of a file with those before it."""
        self.seen.add(file)
        if not outcomes and not ids:
            return
        self._with_ids &= ids is not None and None not in ids and len(set(ids)) == len(ids)
        if self._with_ids:
            self._compare_ids(file, outcomes, ids or ())
        elif outcomes:
            self._compare_order(file, outcomes)

    def _compare_ids(self, file: str, outcomes: Sequence[Hashable], ids: Sequence[Hashable]) -> None:
        shared: dict[str, list[tuple[Hashable, Hashable]]] = {}
        for row_id, outcome in zip_longest(ids, outcomes):
            before, known = self._ids.setdefault(row_id, (file, outcome))
            if before != file:
                shared.setdefault(before, []).append((known, outcome))
        same = f"the same ids in column {show(self._column)}"
        for other, pairs in shared.items():
            if not outcomes:
                self._report(other, file, same, sure=not all(str(row_id).isdecimal() for row_id in ids))
                continue
            counts = Counter(outcome for _, outcome in pairs)
            alike = sum((n / len(pairs)) ** 2 for n in counts.values())
            if len(counts) > 1 and all(a == b for a, b in pairs):
                chance = alike ** len(pairs) * self._n_files
                self._report(other, file, f"{same}, and the same outcomes", sure=chance < _BY_IDS)

    def _compare_order(self, file: str, outcomes: Sequence[Hashable]) -> None:
        first = tuple(outcomes[:_COMPARED])
        other = self._orders.setdefault(first, file)
        counts = Counter(first)
        if other == file or len(counts) < 2:
            return
        # Outcomes that are sorted tell nothing but their counts, which parts of a data set may share.
        runs = 1 + sum(a != b for a, b in pairwise(first))
        orders = lgamma(len(first) + 1) - sum(lgamma(n + 1) for n in counts.values())
        chance = exp(2 * log(self._n_files) - orders) if runs > len(counts) else 1.0
        self._report(other, file, "the same outcomes, row by row", sure=chance < _BY_ORDER)

    def _report(self, first: str, second: str, same: str, *, sure: bool) -> None:
        what = f"{first} and {second} have {same}"
        if not sure:
            others = "If they are of two models, compare them: `verax compare a=FILE b=FILE`."
            self.notes = self.notes or (f"{what}. {others}",)
            return
        raise InputError(
            "The files must hold different rows of one model",
            argument="path",
            kind="label",
            found=what,
            remedies=[
                compare_them(self._column if self._with_ids else ""),
                passing("if they are parts of one data set (a column that tells their rows apart)", id=...),
                Remedy("Or name them as files of one model: m=FILE m=FILE."),
            ],
        )


def compare_them(column: str) -> Remedy:
    """How two models are compared, by a column of ids if there is one."""
    named = f" --id {column}" if column else ""
    return Remedy(f"For two models: `verax compare a=FILE b=FILE{named}`.")
