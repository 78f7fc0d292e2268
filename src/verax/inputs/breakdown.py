"""Summaries of every subgroup of predictions, wherever the rows are."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from verax._settings import settings
from verax.common.memory import give_back
from verax.common.packing import UnreadableError
from verax.common.specs import Each, Label, Several, Spec
from verax.common.spelling import LATER
from verax.common.stored import Sizes
from verax.common.summaries import KnownSummary, Summary, fields_of, merges, same_names
from verax.errors import InputError, Remedy, join, show
from verax.inputs.arrays import Array, Columns, Ints, to_array, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups, kinds_of, label_columns
from verax.inputs.handles import Gathering, Handle, Merged, Part, Recipe
from verax.inputs.outcomes import Outcomes
from verax.inputs.rows import Rows, at_fault, forecasts_like, without_groups
from verax.kernels.ledger import compiles, expecting
from verax.kernels.threads import in_order

# Rows of more numbers are not moved: their numbers would go to too many places.
_MOST_NUMBERS = 10
# Places are 32-bit numbers.
_MOST_ROWS = 2**32
# The number of subgroups that are filled at the same time; more would not fit in the cache.
_MOST_SUBGROUPS = 256


def divides(part: Part, n_labels: int) -> bool:
    """Whether the rows of a part are many numbers in host memory, which a compiled pass can move."""
    n_numbers = sum(rows.n_rows * rows.width for rows in part.models.values())
    return (
        n_labels <= _MOST_SUBGROUPS
        and part.n_rows < _MOST_ROWS
        and all(_is_moved(rows) for rows in part.models.values())
        and compiles(n_numbers, "divisions")
    )


def _is_moved(rows: object) -> bool:
    if not isinstance(rows, Forecasts) or not isinstance(rows.outcomes, Outcomes):
        return False
    columns = rows.given.columns if isinstance(rows.given, Columns) else (rows.given,)
    return rows.width <= _MOST_NUMBERS and all(
        type(column) is np.ndarray and column.dtype.kind == "f" and column.dtype.itemsize in (4, 8)
        for column in columns
    )


@dataclass(frozen=True)
class Division:
    """The places of rows, ordered by subgroup.

    Attributes
    ----------
    edges : (G + 1,) int array
        Where each subgroup begins, and the end.
    places : (N,) uint32 array
        The place of each row.
    order : (N,) int array
        The row at each place; rows of a subgroup keep their order.
    """

    edges: Ints
    places: Any
    order: Ints

    @classmethod
    def by(cls, labels: Groups) -> Division:
        """The division by the codes of labels."""
        from verax.kernels.counting import find_places

        n = len(labels.codes)
        edges = np.concatenate([[0], np.cumsum(np.bincount(labels.codes, minlength=len(labels.labels)))])
        places, order = np.empty(n, np.uint32), np.empty(n, np.int64)
        find_places(labels.codes, edges[:-1].copy(), places, order)
        return cls(edges, places, order)

    def parts(self, part: Part) -> Iterator[Part]:
        """The rows of each subgroup as a separate part."""
        models = {name: self._forecasts(rows) for name, rows in part.models.items()}
        ids = None if part.ids is None else part.ids[self.order]
        numbers = self.order + part.start if part.numbers is None else part.numbers[self.order]
        for begin, end in zip(self.edges[:-1].tolist(), self.edges[1:].tolist(), strict=True):
            span = slice(begin, end)
            yield Part.divisible(
                {name: next(subsets) for name, subsets in models.items()},
                None if ids is None else ids[span],
                _Taken(part.by, self.order[span]),
                numbers[span],
                start=part.start,
                whole=part.whole,
            )

    def _forecasts(self, rows: Any) -> Iterator[Forecasts]:
        """The forecasts of each subgroup, whose columns are contiguous."""
        given, n = rows.given, len(self.order)
        if isinstance(given, Columns):
            p: Any = Columns([self._moved(column[None])[0] for column in given.columns])
        else:
            p = self._moved(given.T if given.ndim > 1 else given[None])
            p = p.T if given.ndim > 1 else p[0]
        y = rows.outcomes.raw
        if type(y) is not np.ndarray or y.dtype != np.int64 or not rows.outcomes.are_positions:
            y = rows.outcomes.positions_of(slice(0, n))
        y = self._moved(y[None])[0]
        weights = None if rows.weights is None else np.asarray(rows.weights)[self.order]
        for begin, end in zip(self.edges[:-1].tolist(), self.edges[1:].tolist(), strict=True):
            span = slice(begin, end)
            groups = None if rows.groups is None else rows.groups.at(self.order[span])
            some = Columns([column[span] for column in p.columns]) if isinstance(p, Columns) else p[span]
            yield forecasts_like(rows, y[span], some, None if weights is None else weights[span], groups)

    def _moved(self, columns: Array) -> Array:
        """(C, N) columns with every row at its place."""
        from verax.kernels.counting import move_columns

        out = np.empty(columns.shape, columns.dtype)
        bits = np.uint64 if columns.dtype.itemsize == 8 else np.uint32
        move_columns(columns.view(bits), self.places, out.view(bits))
        return out


class _Taken(Mapping[str, Array]):
    """Columns of some rows, taken on demand: few analyses need the labels within a subgroup."""

    def __init__(self, columns: Mapping[str, Array], rows: Ints) -> None:
        self._columns, self._rows = columns, rows

    def __getitem__(self, name: str) -> Array:
        return self._columns[name][self._rows]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


MISSING = "(missing)"
# The number of subgroups that may have tables to which rows are added in place.
_TABLES = 32
# From this number of rows, memory freed by the tables is worth handing back.
_LARGE = 2**20
# The number of subgroups whose memory is handed back together.
_AT_A_TIME = 4


def not_scanned(name: object, known: Sequence[str], argument: str = "by") -> InputError:
    """The error about a column that `scan` was not told of."""
    return InputError(
        "must be a column that `scan` was told of",
        argument=argument,
        kind="label",
        found=f"it is {show(name)}; there {f'are {join(map(show, known))}' if known else 'is none'}",
        remedies=[Remedy("Say which when opening them: `scan(..., by=...)`.")],
    )


def breakdowns(by: object, handle: Handle | None = None) -> dict[str, Any]:
    """The labels of the rows by the name of the breakdown; for a handle, its columns by their names."""
    if handle is not None and by is not None:
        names = (by,) if isinstance(by, str) else by
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            raise InputError(
                "must be the name of a column, or a list of names, beside predictions that `scan` has opened",
                argument="by",
                kind="type",
                found=f"it is a {type(by).__name__}",
                remedies=[
                    Remedy("Name the column when opening them: `scan(..., by=...)`.", python_only=True)
                ],
            )
        for name in names:
            if name not in handle.by:
                raise not_scanned(name, handle.by)
        return {name: name for name in names}
    return label_columns(by)


def labels_of(column: Any, n_rows: int) -> Groups:
    """The subgroups of rows; rows without a label have the label MISSING."""
    kinds = [_labelled(to_host(to_array(kind, "by")[0])) for kind in kinds_of(column)]
    try:
        return Groups.of(kinds if len(kinds) > 1 else kinds[0], n_rows)
    except InputError as error:
        raise (error.replace(argument="by") if error.argument == "groups" else error) from None


def _labelled(raw: Any) -> Any:
    """Labels, with a text for missing ones."""
    if raw.ndim != 1 or raw.dtype.kind not in "fO":
        return raw
    values = [MISSING if v is None or v != v else v for v in raw.tolist()]
    return np.array([str(v) for v in values], object) if any(isinstance(v, str) for v in values) else raw


class _Subgroups(Spec):
    """Summaries by name for each label, stored as labels and their summaries."""

    flat = True

    def __init__(self) -> None:
        super().__init__("by label")
        self.names = {"by_label": _by_label}

    def merged(self, name: str) -> str:
        return f"by_label(self.{name}, other.{name})"

    def pack(self, value: Any) -> dict[str, Any]:
        stored = [
            {name: summary.to_bytes() for name, summary in summaries.items()} for summaries in value.values()
        ]
        return {"labels": list(value), "summaries": stored}

    def read(self, stored: Any, sizes: Sizes) -> dict[Hashable, Mapping[str, Any]]:
        values = fields_of(
            {"labels": Several(Label()), "summaries": Several(Each(KnownSummary()))}, stored, sizes
        )
        by_label = dict(zip(values["labels"], values["summaries"], strict=True))
        alike = [
            {name: type(summary) for name, summary in summaries.items()} for summaries in by_label.values()
        ]
        if len(by_label) < len(values["labels"]) or len({type(label) for label in by_label}) > 1:
            raise UnreadableError("has labels that repeat, or of several types", "labels")
        if any(summaries != alike[0] for summaries in alike):
            raise UnreadableError("has different summaries for some subgroups", "summaries")
        return by_label


def _by_label(one: Mapping[Hashable, Any], other: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
    merged = dict(one)
    for label, theirs in other.items():
        ours = merged.get(label)
        merged[label] = theirs if ours is None else same_names(ours, theirs, "subgroups")
    return merged


class Breakdown(Summary, kind="subgroups"):
    """Summaries by name for each label of a column; parts may differ in their labels."""

    by_label: Mapping[Hashable, Mapping[str, Any]] = merges(_Subgroups())

    @property
    def labels(self) -> list[Any]:
        """The labels in their order."""
        labels: list[Any] = list(self.by_label)
        try:
            return sorted(labels)
        except TypeError:
            return sorted(labels, key=str)

    def __getitem__(self, label: Hashable) -> Mapping[str, Any]:
        return self.by_label[label]

    def _merged(self) -> Breakdown:
        return self.fitting()

    def fitting(self) -> Breakdown:
        """The same with subgroups that share the size of one summary, whatever the order of merging."""
        most = _keys_per_label(len(self.by_label))
        return Breakdown(
            {
                label: {name: _fitted(summary, most) for name, summary in summaries.items()}
                for label, summaries in self.by_label.items()
            }
        )


def _fitted(summary: Any, most: int) -> Any:
    """The summary with at most this number of keys, if it can be coarser."""
    return summary.at_most(most) if hasattr(summary, "at_most") else summary


def _bound(gathered: Any, most: int) -> None:
    """From now on, keep at most this number of keys, if the summary can be coarser."""
    if hasattr(gathered, "at_most"):
        gathered.at_most(most)


def _keys_per_label(n_labels: int) -> int:
    """The maximum number of keys per subgroup: together they have that of one summary."""
    return settings.exact_up_to // max(1, n_labels)


class _Gathered:
    """Gathers the summaries of subgroups from one part after the other.

    Attributes
    ----------
    threads : int
        The number of threads that may share the subgroups of a part.
    """

    threads: int = 1

    def __init__(self, recipe: BreakdownRecipe) -> None:
        self._recipe = recipe
        self._by_label: dict[Hashable, dict[str, Gathering[Any]]] = {}
        self._n_rows = 0

    def add(self, part: Part) -> None:
        """Take in the rows of one part."""
        self._n_rows += part.n_rows
        labels = self._recipe.labels(part)
        most = _keys_per_label(len({*self._by_label, *labels.labels.tolist()}))

        def take_in(item: tuple[Part, dict[str, Gathering[Any]]]) -> None:
            rows, gathered = item
            with numbering(part):
                for gathering in gathered.values():
                    gathering.add(rows)
                    _bound(gathering, most)

        subgroups = ((rows, self._of(label, most)) for label, rows in self._recipe.parts(part, labels))
        threads = self.threads if part.n_rows >= settings.threads_from else 1
        deque(in_order(take_in, subgroups, threads) if threads > 1 else map(take_in, subgroups), maxlen=0)
        for label in self._by_label.keys() - set(labels.labels.tolist()):
            for gathering in self._by_label[label].values():
                _bound(gathering, most)

    def _of(self, label: Hashable, most: int) -> dict[str, Gathering[Any]]:
        if label not in self._by_label:
            # Tables to which rows are added in place take memory for each subgroup.
            few = len(self._by_label) < _TABLES
            self._by_label[label] = {
                name: recipe.gathering() if few else Merged(recipe)
                for name, recipe in self._recipe.recipes.items()
            }
            for gathering in self._by_label[label].values():
                _bound(gathering, most)
        return self._by_label[label]

    def summary(self) -> Breakdown:
        """All summaries; tables are dropped one after the other."""
        most, summaries = _keys_per_label(len(self._by_label)), {}
        for label in list(self._by_label):
            gathered = self._by_label.pop(label)
            summaries[label] = {name: _fitted(gathered.pop(name).summary(), most) for name in list(gathered)}
            if self._n_rows >= _LARGE and len(self._by_label) % _AT_A_TIME == 0:
                # Threads made the tables, and other threads do not reuse the memory that one has freed.
                give_back()
        return Breakdown(summaries)


@dataclass(frozen=True)
class BreakdownRecipe(Recipe[Breakdown], cases=True):
    """The summaries of each subgroup of a column by the same recipes."""

    column: str
    recipes: Mapping[str, Recipe[Any]]
    grouped: bool = field(default=True, metadata=LATER)
    longer = 4
    shared = True

    def gathering(self) -> Gathering[Breakdown]:
        """Start to take in parts, each subgroup by itself."""
        return _Gathered(self)

    def take(self, part: Part) -> Breakdown:
        """Summarise one part."""
        by_label = {}
        with expecting(sum(rows.n_rows * rows.width for rows in part.models.values())):
            for label, rows in self.parts(part, self.labels(part)):
                with numbering(part):
                    by_label[label] = {name: recipe.take(rows) for name, recipe in self.recipes.items()}
        return Breakdown(by_label).fitting()

    def labels(self, part: Part) -> Groups:
        """The subgroup of each row."""
        return Groups.of(part.by[self.column], part.n_rows)

    def parts(self, part: Part, labels: Groups) -> Iterator[tuple[Hashable, Part]]:
        """The rows of each subgroup, treated as independent unless `grouped`."""
        for label, rows in parts_by(part, labels):
            yield label, rows if self.grouped else ungrouped(rows)


def parts_by(part: Part, labels: Groups) -> Iterator[tuple[Hashable, Part]]:
    """The rows of each label as a separate part."""
    assert part.subset is not None
    if len(labels.labels) == 1:
        yield labels.labels.tolist()[0], part
        return
    if divides(part, len(labels.labels)):
        yield from zip(labels.labels.tolist(), Division.by(labels).parts(part), strict=True)
        return
    # Short integers are sorted without comparisons.
    codes = labels.codes.astype(np.uint16) if len(labels.labels) < 2**16 else labels.codes
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(labels.codes, minlength=len(labels.labels)))[:-1]
    for label, rows in zip(labels.labels.tolist(), np.split(order, ends), strict=True):
        yield label, part.subset(rows)


def ungrouped(part: Part) -> Part:
    """The same rows, treated as independent."""
    models = {name: without_groups(rows) for name, rows in part.models.items()}
    within = part.subset

    def subset(places: Ints) -> Part:
        assert within is not None
        return ungrouped(within(places))

    return replace(part, models=models, subset=None if within is None else subset, _made={})


@contextmanager
def numbering(part: Part) -> Iterator[None]:
    """Errors about rows of a subgroup number them among all rows of the part."""
    try:
        yield
    except InputError as error:
        if error.rows:
            for name, rows in part.models.items():
                _check(rows, name if part.whole and len(part.models) > 1 else "")
        raise


def _check(rows: Rows, model: str) -> None:
    """Refuse invalid rows, naming their model if there are several."""
    try:
        rows.check()
    except InputError as error:
        raise (at_fault(model, error) if model else error) from None
