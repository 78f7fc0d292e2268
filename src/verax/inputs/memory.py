"""Rows in memory, as a handle with one part: analyses need not know where rows are.

    open_rows(y, p, ...) -> Handle

The part is the rows as they were given. Nothing is copied or turned into bytes, no thread is started, and
what one pass has made of the rows (`Part.once`) is still there for the next.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax.errors import InputError, Remedy
from verax.inputs.arrays import to_array, to_host
from verax.inputs.breakdown import BreakdownRecipe, labels_of, parts_by
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups, is_two_way
from verax.inputs.handles import (
    Array,
    Handle,
    Mergeable,
    Part,
    Recipe,
    RowFacts,
    Summaries,
    refuse_beside,
    refuse_graded,
    refuse_lists,
)
from verax.inputs.lists.rows import ListRows
from verax.inputs.rows import Rows, at_fault, one_way
from verax.inputs.sets.rows import Members, SetRows
from verax.inputs.skipping import Skipped


def set_rows(rows: Rows, made: Members | None, *, ordered: bool = False) -> SetRows:
    """Rows as sets: unchanged, the classes of lists, or the sets that `made` takes from probabilities."""
    if isinstance(rows, SetRows):
        return rows
    if isinstance(rows, ListRows):
        return SetRows.of_lists(rows)
    assert isinstance(rows, Forecasts)
    assert made is not None
    rows.check()
    return SetRows.of_probabilities(rows, made, ends=ordered)


def set_part(part: Part, made: Members | None, *, ordered: bool = False) -> Part:
    """The same rows with sets as forecasts, made once for all recipes.

    Cases of several raters are read as their classes, which belong together.
    """

    def read() -> Part:
        pairs = part.in_pairs
        models = {name: set_rows(rows, made, ordered=ordered) for name, rows in pairs.models.items()}
        return Part.divisible(models, None, pairs.by, None, start=pairs.start, whole=pairs.whole)

    return part.once(("sets", made, ordered), read)


@dataclass(frozen=True)
class OfSets(Recipe[Any]):
    """A recipe for sets, applied after probabilities have become sets."""

    recipe: Recipe[Any]
    made: Members
    ordered: bool

    def take(self, part: Part) -> Mergeable:
        """Summarise one part."""
        summary: Mergeable = self.recipe.take(set_part(part, self.made, ordered=self.ordered))
        return summary

    def load(self, stored: bytes, sizes: Mapping[str, int] | None = None) -> Any:
        """A summary from its bytes."""
        return self.recipe.load(stored, sizes)


class SetHandle(Handle):
    """The predictions of a handle as prediction sets: each part becomes sets where it is read.

    Parameters
    ----------
    handle : Handle
        The predictions.
    made : Members
        How probabilities become sets.
    ordered : bool
        Whether the classes have an order.
    """

    def __init__(self, handle: Handle, made: Members, *, ordered: bool = False) -> None:
        self._handle, self._made, self._ordered = handle, made, ordered
        facts = replace(handle.facts, sets=True, lists=False, rated=False, outcome="", graded=None)
        self._describe(handle.name, handle.n_rows, facts)
        self.has_rows: bool = handle.has_rows

    @property
    def level(self) -> float | None:
        """The coverage that all sets claim."""
        return self._made.level

    def in_order(self) -> Handle:
        return SetHandle(self._handle.in_order(), self._made, ordered=True)

    def knows(self, recipe: Recipe[Any]) -> bool:
        """Whether it can make this summary."""
        return self._handle.knows(self._of_sets(recipe))

    def _summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        return self._handle._summarise({name: self._of_sets(recipe) for name, recipe in recipes.items()})

    def _of_sets(self, recipe: Recipe[Any]) -> OfSets:
        return OfSets(recipe, self._made, self._ordered)


def refuse_sets(sets: bool, name: Hashable = "") -> None:
    """Refuse prediction sets where probabilities are needed."""
    if sets:
        raise InputError(
            "must be probabilities or top lists here",
            argument="p",
            kind="type",
            found="these are prediction sets",
            source=str(name),
            remedies=[
                Remedy('Judge sets with vx.evaluate_sets(y, sets), or compare them by rule="level_set".')
            ],
        )


# Weights whose squares and sums do not overflow or underflow.
LEAST_WEIGHT, MOST_WEIGHT = 1e-100, 1e100
# The name of a single model.
ONLY = "forecast"


class InMemory(Handle):
    """Rows in memory, as a single part.

    Parameters
    ----------
    models : mapping of str to Rows
        The rows with the forecasts of each model.
    several : bool
        Whether a caller named the models, so that results are by name even for one.
    ids : numpy.ndarray or None
        Names of the rows.
    by : mapping of str to numpy.ndarray
        Labels of subgroups, by column.
    numbers : numpy.ndarray or None
        The numbers of the rows among all given ones, if invalid ones were left out.
    skipped : Skipped or None
        The invalid rows that were left out.
    """

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
        self._part = Part.divisible(dict(models), ids, dict(by or {}), numbers, skipped)
        facts = RowFacts(
            models=tuple(models),
            classes=getattr(rows, "classes", None),
            n_classes=rows.n_classes,
            by=tuple(self._part.by),
            lists=isinstance(rows, ListRows),
            sets=any(isinstance(model_rows, SetRows) for model_rows in models.values()),
            rated=rows.shared,
            weighted=rows.weights is not None or rows.shared,
        )
        # Errors about rows in memory need not say where these are.
        self._describe("", rows.n_rows, facts)

    @property
    def several(self) -> bool:
        """Whether results are by the names of models."""
        return self._several

    @property
    def listed(self) -> tuple[str, ...]:
        """The models with top lists; others may have full distributions."""
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
        handle = InMemory(models, several=self._several, skipped=part.skipped, **beside)
        handle.name, handle.taken, handle.outcome = self.name, self.taken, self.outcome
        return handle

    def summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        """Summaries of all rows; there may be none if these are a part of more."""
        part = self._part
        by_name = {name: recipe.take(part) for name, recipe in recipes.items()}
        return Summaries(by_name, part.n_rows, part.skipped)

    _summarise = summarise


def pair(y: object, p: object, **options: Any) -> Rows:
    """Outcomes and forecasts as rows; a `p` with a method `with_outcomes` pairs itself."""
    meet = None if isinstance(p, type) else getattr(p, "with_outcomes", None)
    if meet is None:
        return Forecasts(y, p, **options)
    if options.pop("raters", None) is not None:
        raise InputError(
            "cannot be used with top lists, which are scored against one class per row", argument="raters"
        )
    rows: Rows = meet(y, **options)
    return rows


def paired_by_model(y: object, models: Mapping[str, object], **options: Any) -> Iterator[tuple[str, Rows]]:
    """Outcomes with the forecasts of each model, by name; errors about forecasts name the model.

    If models have different rows, `y` maps the name of each to its outcomes. `normalize` and `logits` apply
    to probabilities only, not to top lists beside them.
    """
    written: dict[str, Any] = {name: options.pop(name) for name in ("normalize", "logits") if name in options}
    if all(hasattr(p, "with_outcomes") for p in models.values()):
        options |= written
    for name, p in models.items():
        how = options if hasattr(p, "with_outcomes") else options | written
        try:
            yield str(name), pair(y[name] if isinstance(y, Mapping) else y, p, **how)
        except InputError as error:
            raise at_fault(str(name), error) from None


def holds_lists(y: object, p: object) -> bool:
    """Whether arguments are top lists, before they are opened."""
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
    """A handle on rows wherever they are: the one that `scan` has opened, or one on the given rows.

    `ordered` is for analyses that need the order of the classes, `dense` for those that need the
    probabilities of all classes, `single` for those of one model. Elsewhere `p` may be a mapping from the
    names of models to their forecasts; it must be one if the function has an argument `named` for it. `ids`
    are names of the rows, `by` labels of subgroups by the name of the breakdown. If invalid rows were left
    out, `numbers` are those of the others, and `skipped` describes them. With `alone`, arguments beside a
    handle are refused. Prediction sets are refused without `sets`.
    """
    if isinstance(y, Handle):
        refuse_sets(y.sets and not sets, y.name)
        refuse_graded(y)
        beside = {"p": p, "ids": ids, "by": by, **read} if alone else {}
        refuse_beside([name for name, value in beside.items() if value is not None and value is not False])
        if dense:
            refuse_lists(y)
        return y.in_order() if ordered else y
    options: dict[str, Any] = {"ordered": ordered, **read}
    if "part" not in read:
        options["weights"] = usual_weights(read.get("weights"))
    if named and not isinstance(p, Mapping):
        raise InputError(
            "must be a mapping from the names of models to their forecasts",
            argument=named,
            kind="type",
            found=f"it is a {type(p).__name__}",
            remedies=[Remedy('Name the models: {"a": p, "b": q}.', python_only=True)],
        )
    if single or not isinstance(p, Mapping):
        rows = Forecasts(y, p, **options) if dense else pair(y, p, **options)
        refuse_sets(isinstance(rows, SetRows) and not sets)
        return InMemory({ONLY: rows}, **_beside(rows.n_rows, ids, by), numbers=numbers, skipped=skipped)
    if not p:
        raise InputError(
            "must hold the forecasts of at least one model", argument=named or "p", kind="length"
        )
    for name, forecasts in p.items():
        if dense and hasattr(forecasts, "with_outcomes"):
            raise InputError(
                "must be full distributions here",
                argument="p",
                kind="type",
                found="top lists do not give the probability of every class",
                source=repr(name),
            )
    models = dict(paired_by_model(y, p, **options))
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
    """The weights of all rows; extreme ones are scaled by a power of two, so that squares do not overflow.

    Weights of rows that may be a part of more stay unchanged: the unit of the others is unknown.
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
            # None is missing, and all are of one type.
            labels[name] = column
            continue
        groups = labels_of(column, n_rows)
        labels[name] = groups.labels[groups.codes]
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


@dataclass(frozen=True)
class OfLabel(Recipe[Any], cases=True):
    """A recipe applied to the rows with one label."""

    recipe: Recipe[Any]
    column: str
    label: Hashable

    @property
    def follows(self) -> bool:
        return self.recipe.follows

    def take(self, part: Part) -> Mergeable:
        """Summarise the rows of a part with the label; there may be none."""
        rows = np.flatnonzero(np.asarray(part.by[self.column]) == self.label)
        assert part.subset is not None
        summary: Mergeable = self.recipe.take(part if len(rows) == part.n_rows else part.subset(rows))
        return summary

    def load(self, stored: bytes, sizes: Any = None) -> Any:
        """A summary from its bytes."""
        return self.recipe.load(stored, sizes)


class Labelled(Handle):
    """The rows of a handle with one label of a column."""

    def __init__(self, handle: Handle, column: str, label: Hashable) -> None:
        self._handle, self._column, self._label = handle, column, label
        self._describe(handle.name, None, replace(handle.facts, by=(), weighted=True, rated=False))
        self.has_rows: bool = handle.has_rows
        self.shard: bool = handle.shard

    def in_order(self) -> Handle:
        return Labelled(self._handle.in_order(), self._column, self._label)

    def _summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        return self._handle._summarise(
            {name: OfLabel(recipe, self._column, self._label) for name, recipe in recipes.items()}
        )


def handles_by_label(handle: Handle, column: str) -> list[tuple[Hashable, Handle]]:
    """A handle on the rows of each label of a column."""
    part = handle.kept
    if part is None:
        labels = handle.summarise({"labels": BreakdownRecipe(column, {})})["labels"].labels
        return [(label, Labelled(handle, column, label)) for label in labels]
    handles: list[tuple[Hashable, Handle]] = []
    for label, subset in parts_by(part, Groups.of(part.by[column], part.n_rows)):
        rows = InMemory(subset.models, several=True)
        rows.graded = handle.graded
        handles.append((label, rows))
    return handles
