"""Rows that can be scored: what the pass needs to know of them, whatever their kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any, Protocol, TypeVar

from verax.errors import InputError
from verax.inputs.arrays import Array, Ints, Namespace
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups
from verax.inputs.lists.rows import ListFaults, ListRows


class RowBatch(Protocol):
    """Consecutive rows of one kind or another: what can be read without knowing which."""

    @property
    def y(self) -> Array: ...
    @property
    def weights(self) -> Array | None: ...
    @property
    def groups(self) -> Array | None: ...
    @property
    def start(self) -> int: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def xp(self) -> Namespace: ...


class Rows(Protocol):
    """Rows that can be scored. `Forecasts` are dense ones, `ListRows` are top lists, `SetRows` are sets."""

    n_classes: int
    weights: Array | None
    groups: Groups | None
    xp: Namespace

    @property
    def n_rows(self) -> int: ...
    @property
    def width(self) -> int: ...
    def batch(self, start: int, stop: int) -> RowBatch: ...
    def batches(self, rows: int) -> Iterator[RowBatch]: ...
    def check(self) -> None: ...


RowsT = TypeVar("RowsT", bound=Rows)


def without_groups(rows: RowsT) -> RowsT:
    """The same rows, taken to be independent."""
    same = copy(rows)
    same.groups = None
    return same


def one_way(rows: RowsT) -> RowsT:
    """The same rows with one kind of groups: of two, the one with fewer groups."""
    same = copy(rows)
    same.groups = None if rows.groups is None else rows.groups.fewest
    return same


def numbers_of(batch: RowBatch, at: Ints) -> Ints:
    """The numbers among all rows of some rows of a batch."""
    rows = getattr(batch, "rows", None)
    return batch.start + at if rows is None else rows[at]


def pair(y: object, p: object, **options: Any) -> Rows:
    """Outcomes and forecasts as rows. A `p` that knows how to meet its outcomes does it itself."""
    meet = None if isinstance(p, type) else getattr(p, "with_outcomes", None)
    if meet is None:
        return Forecasts(y, p, **options)
    if options.pop("raters", None) is not None:
        raise InputError(
            "cannot be used with top lists, which are scored against one class per row", argument="raters"
        )
    rows: Rows = meet(y, **options)
    return rows


def pair_each(y: object, models: Mapping[str, object], **options: Any) -> Iterator[tuple[str, Rows]]:
    """Outcomes with the forecasts of each model, by its name; an error about forecasts says whose they are.

    Where every model has rows of its own, `y` is a mapping from its name to its outcomes. How probabilities
    are written (`normalize`, `logits`) is no matter of top lists beside them.
    """
    written: dict[str, Any] = {name: options.pop(name) for name in ("normalize", "logits") if name in options}
    if all(hasattr(p, "with_outcomes") for p in models.values()):
        options |= written
    for name, p in models.items():
        own = options if hasattr(p, "with_outcomes") else options | written
        try:
            yield str(name), pair(y[name] if isinstance(y, Mapping) else y, p, **own)
        except InputError as error:
            raise at_fault(str(name), error) from None


def at_fault(name: str, error: InputError) -> InputError:
    """The error with the name of the model, where its forecasts are what is wrong."""
    source = f"{name!r}: {error.source}" if error.source else repr(name)
    return error.replace(source=source) if error.argument == "p" else error


def faults_of(models: Mapping[str, Rows]) -> dict[str, ListFaults]:
    """What there is to say of the top lists among the rows of models, by the name of each."""
    return {name: rows.faults for name, rows in models.items() if isinstance(rows, ListRows)}
