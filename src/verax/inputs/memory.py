"""Rows in memory, as a handle with one part: analyses need not know where rows are.

    open_rows(y, p, ...) -> Handle

The part is the rows as they were given. Nothing is copied or turned into bytes, no thread is started, and
what one pass has made of the rows (`Part.once`) is still there for the next.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from verax.errors import InputError, Remedy
from verax.inputs.arrays import to_array, to_host
from verax.inputs.breakdown import labels_of
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import is_two_way
from verax.inputs.handles import (
    Array,
    Handle,
    Part,
    Recipe,
    Summaries,
    refuse_beside,
    refuse_graded,
    refuse_lists,
)
from verax.inputs.lists.rows import ListRows
from verax.inputs.pairs import are_shared
from verax.inputs.rows import Rows, one_way, pair, pair_each
from verax.inputs.setparts import refuse_sets
from verax.inputs.sets.rows import SetRows
from verax.inputs.skipping import Skipped

# Weights whose squares and sums are numbers, in any number of rows.
LEAST_WEIGHT, MOST_WEIGHT = 1e-100, 1e100
# What a single model is called.
ONLY = "forecast"


class InMemory(Handle):
    """Rows in memory: one part, which is the whole.

    Parameters
    ----------
    models : mapping of str to Rows
        The rows with the forecasts of each model.
    several : bool
        Whether a caller named the models, so that results are by name even if there is one.
    ids : numpy.ndarray or None
        Names of the rows.
    by : mapping of str to numpy.ndarray
        Labels of subgroups, by column.
    numbers : numpy.ndarray or None
        The numbers of the rows among all that were given, where invalid ones were left out.
    skipped : Skipped or None
        The invalid rows that were left out.
    """

    # Errors about rows in memory need not say where these are.
    name: str = ""
    taken: tuple[str, ...] = ()
    whole: bool = True

    def __init__(
        self,
        models: Mapping[str, Rows],
        *,
        several: bool = False,
        ids: Any = None,
        by: Mapping[str, Any] | None = None,
        numbers: Any = None,
        skipped: Skipped | None = None,
    ) -> None:
        rows = next(iter(models.values()))
        self._several = several
        self._part = Part.held(dict(models), ids, dict(by or {}), numbers, skipped)
        self.models: tuple[str, ...] = tuple(models)
        self.classes: tuple[Hashable, ...] | None = getattr(rows, "classes", None)
        self.n_classes: int = rows.n_classes
        self.n_rows: int | None = rows.n_rows
        self.by: tuple[str, ...] = tuple(self._part.by)
        self.lists: bool = isinstance(rows, ListRows)
        self.sets: bool = any(isinstance(own, SetRows) for own in models.values())
        self.rated: bool = are_shared(rows)
        self.weighted: bool = rows.weights is not None or self.rated

    @property
    def several(self) -> bool:
        """Whether results are by the names of models."""
        return self._several

    @property
    def listed(self) -> tuple[str, ...]:
        """The models whose forecasts are top lists; others may be full distributions."""
        return tuple(name for name, rows in self._part.models.items() if isinstance(rows, ListRows))

    @property
    def kept(self) -> Part:
        """All rows as one part."""
        return self._part

    def in_order(self) -> Handle:
        return self

    def one_way(self) -> Handle:
        groups = self._part.rows.groups
        if groups is None or not is_two_way(groups.labels):
            return self
        part, models = self._part, {name: one_way(rows) for name, rows in self._part.models.items()}
        beside: dict[str, Any] = {"ids": part.ids, "by": part.by, "numbers": part.numbers}
        found = InMemory(models, several=self._several, skipped=part.skipped, **beside)
        found.name, found.taken, found.outcome = self.name, self.taken, self.outcome
        return found

    def summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        """Summaries of all rows; there may be none where they are a part of more."""
        return self._summarise(recipes)

    def _summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        part = self._part
        found = {name: recipe.take(part) for name, recipe in recipes.items()}
        return Summaries(found, part.n_rows, part.skipped)


def holds_lists(y: object, p: object) -> bool:
    """Whether these are top lists, before they are opened."""
    return y.lists if isinstance(y, Handle) else hasattr(p, "with_outcomes") and not isinstance(p, type)


def open_rows(
    y: object,
    p: object,
    *,
    ordered: bool = False,
    dense: bool = False,
    single: bool = False,
    named: str = "",
    alone: bool = False,
    sets: bool = False,
    ids: object | None = None,
    by: Mapping[str, object] | None = None,
    numbers: Any = None,
    skipped: Skipped | None = None,
    **read: Any,
) -> Handle:
    """Rows wherever they are, as a handle: those that `scan` has opened, or those that are given.

    `ordered` is for analyses to which the order of the classes matters, `dense` for those that need the
    probabilities of all classes, `single` for those of one model. For others `p` may be a mapping from the
    names of several models to their forecasts; it must be one for those that call it `named`. `ids` are names
    of the rows, `by` labels of subgroups by the name of the breakdown. Where invalid rows were left out,
    `numbers` are those of the others, and `skipped` knows which they were. A handle that must
    be `alone` refuses what is given beside it. Prediction sets are refused unless it is for `sets`.
    """
    if isinstance(y, Handle):
        refuse_sets(y.sets and not sets, y.name)
        refuse_graded(y)
        beside = {"p": p, "ids": ids, "by": by, **read} if alone else {}
        refuse_beside([name for name, value in beside.items() if value is not None and value is not False])
        if dense:
            refuse_lists(y)
        return y.in_order() if ordered else y
    own: dict[str, Any] = {"ordered": ordered, **read}
    if "part" not in read:
        own["weights"] = usual_weights(read.get("weights"))
    if named and not isinstance(p, Mapping):
        raise InputError(
            "must be a mapping from the names of models to their forecasts",
            argument=named,
            kind="type",
            found=f"it is a {type(p).__name__}",
            remedies=[Remedy('Name the models: {"a": p, "b": q}.', python_only=True)],
        )
    if single or not isinstance(p, Mapping):
        rows = Forecasts(y, p, **own) if dense else pair(y, p, **own)
        refuse_sets(isinstance(rows, SetRows) and not sets)
        return InMemory({ONLY: rows}, **_beside(rows.n_rows, ids, by), numbers=numbers, skipped=skipped)
    if not p:
        raise InputError(
            "must hold the forecasts of at least one model", argument=named or "p", kind="length"
        )
    for name, each in p.items():
        if dense and hasattr(each, "with_outcomes"):
            raise InputError(
                "must be full distributions here",
                argument="p",
                kind="type",
                found="top lists do not give the probability of every class",
                source=repr(name),
            )
    models = dict(pair_each(y, p, **own))
    if len(models) < len(p):
        raise InputError("must have different names for all models", argument=named or "p", kind="length")
    first = next(iter(models))
    for name, rows in models.items():
        refuse_sets(isinstance(rows, SetRows) and not sets, name)
        if rows.n_classes != models[first].n_classes:
            raise InputError(
                "must have the same classes for all models",
                argument=named or "p",
                kind="length",
                found=f"{name!r} has {rows.n_classes}, {first!r} has {models[first].n_classes}",
                values=[rows.n_classes, models[first].n_classes],
            )
    n_rows = models[first].n_rows
    return InMemory(models, several=True, **_beside(n_rows, ids, by), numbers=numbers, skipped=skipped)


def usual_weights(weights: object) -> object:
    """The weights of all rows; extreme ones in units of a power of two, so that their squares are numbers.

    Weights of rows that may be part of more stay as they are, because the unit of the others is not known.
    """
    if weights is None:
        return None
    raw, _ = to_array(weights, "weights")
    if not isinstance(raw, np.ndarray) or raw.dtype.kind != "f" or not raw.size:
        return weights
    largest = float(raw.max())
    if not largest > 0 or LEAST_WEIGHT <= largest <= MOST_WEIGHT or math.isinf(largest):
        return weights
    return np.ldexp(raw, -math.frexp(largest)[1])


def _beside(n_rows: int, ids: object | None, by: Mapping[str, object] | None) -> dict[str, Any]:
    """Names of the rows, and their labels in each breakdown."""
    labels = {}
    for name, column in (by or {}).items():
        if type(column) is np.ndarray and column.dtype.kind in "biu" and column.shape == (n_rows,):
            # None is missing, and all are of one kind.
            labels[name] = column
            continue
        found = labels_of(column, n_rows)
        labels[name] = found.labels[found.codes]
    return {"ids": _names(ids, n_rows), "by": labels}


def _names(ids: object | None, n_rows: int) -> Array | None:
    """One name for each row."""
    if ids is None:
        return None
    values = to_host(to_array(ids, "ids")[0])
    if values.shape != (n_rows,):
        raise InputError(
            f"must be {n_rows} names, one per row",
            argument="ids",
            kind="length",
            found=f"its shape is {values.shape}",
        )
    return values
