"""Rows with their folds, and the sums of the losses of all models in each fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from verax.analyses.comparison.checks import check_models
from verax.analyses.comparison.paired import PairedRecipe, PairedSums
from verax.analyses.parts import faults_in, with_fault_recipes
from verax.common.ids import numbered
from verax.errors import InputError, Remedy, join, passing, show
from verax.inputs.arrays import Array, to_array, to_host
from verax.inputs.breakdown import Breakdown, BreakdownRecipe, not_scanned
from verax.inputs.groups import Groups
from verax.inputs.handles import Handle
from verax.inputs.lists.rows import ListFaults
from verax.inputs.memory import open_rows
from verax.inputs.skipping import Skipped
from verax.scores.base import Rule
from verax.wings.select.folds.given import most_often

_FOLD = "fold"
_SUMS = "sums"


class FoldSums(NamedTuple):
    """Sums of the losses of all models in each fold, and what is known of the rows."""

    sums: Mapping[Any, PairedSums]
    models: tuple[str, ...]
    dense: list[str]
    skipped: Skipped | None
    # Rows of several repeats are the same cases, and are matched.
    cases_known: bool
    faults: Mapping[str, ListFaults] = MappingProxyType({})


def are_handles(given: object) -> bool:
    """Whether there is a handle for each fold: a list of them, or one by each label."""
    values = list(given.values()) if isinstance(given, Mapping) else given
    return isinstance(values, (list, tuple)) and bool(values) and all(isinstance(v, Handle) for v in values)


def _recipe(handle: Handle, rules: Sequence[Rule]) -> PairedRecipe:
    return PairedRecipe(handle.models, tuple(rules), traits=len(handle.listed) < len(handle.models))


def _dense(handle: Handle) -> list[str]:
    return [name for name in handle.models if name not in handle.listed]


def sums_of_handles(given: Any, rules: Sequence[Rule]) -> FoldSums:
    """The sums of predictions that have a handle for each fold."""
    named = given if isinstance(given, Mapping) else dict(enumerate(given))
    first: Handle = next(iter(named.values()))
    sums: dict[Any, PairedSums] = {}
    skipped: list[Skipped] = []
    for label, handle in named.items():
        check_models(handle, None)
        if (handle.models, handle.n_classes) != (first.models, first.n_classes):
            raise InputError(
                "must have the same models and classes in all folds",
                argument="y",
                kind="label",
                found=f"fold {show(label)} has {join(handle.models)}, not {join(first.models)}",
                remedies=[Remedy("Name the models when opening files: `scan(..., probs={name: columns})`.")],
            )
        summaries = handle.summarise({_SUMS: _recipe(first, rules)})
        sums[label] = summaries[_SUMS]
        skipped += [] if summaries.skipped is None else [summaries.skipped]
    whole = reduce(lambda a, b: a + b, skipped) if skipped else None
    return FoldSums(sums, first.models, _dense(first), whole, _grouped(sums))


def _grouped(sums: Mapping[Any, PairedSums]) -> bool:
    """Whether rows are in groups."""
    return next(iter(sums.values())).first.labels is not None


def open_folds(
    y: object,
    forecasts: Mapping[str, object] | None,
    folds: object,
    ids: object,
    repeats: int | None,
    *,
    ordered: bool,
    **read: Any,
) -> Handle:
    """The rows with their folds; those of several repeats are clustered by case."""
    if folds is None:
        raise InputError(
            "must say the test fold of each row",
            argument="folds",
            kind="missing",
            remedies=[passing(folds=...), passing("for the scores of each fold", scores=...)],
        )
    if isinstance(y, Handle):
        return open_rows(y, forecasts, ordered=ordered, named="forecasts", sets=True)
    labels = to_host(to_array(folds, "folds")[0])
    if labels.ndim != 1:
        raise InputError(
            "must be one label per row", argument="folds", kind="length", found=f"its shape is {labels.shape}"
        )
    try:
        Groups.of(labels, len(labels))
    except InputError as error:
        raise error.replace(argument="folds") from None
    if ids is not None:
        cases = to_host(to_array(ids, "ids")[0])
        often = _check_cases(cases, labels, repeats)
        if often > 1 and read.get("groups") is None:
            read["groups"] = cases
    beside: dict[str, Any] = {"ids": ids, "by": {_FOLD: labels}}
    try:
        return open_rows(y, forecasts, ordered=ordered, named="forecasts", sets=True, **beside, **read)
    except InputError as error:
        if error.argument != "by":
            raise
        count = f"there are {len(labels)}"
        raise InputError("must be one label per row", argument="folds", kind="length", found=count) from None


def _check_cases(cases: Array, labels: Array, repeats: int | None) -> int:
    """How often cases are in some fold at most; refuses folds that share cases."""
    if len(cases) != len(labels):
        raise InputError(
            f"must be {len(labels)} names, one per row",
            argument="ids",
            kind="length",
            found=f"there are {len(cases)}",
        )
    (place,), n_cases = numbered([cases])
    count = np.bincount(place, minlength=n_cases)
    pairs = np.stack([place, np.unique(labels, return_inverse=True)[1]])
    (of_case, _), n_rows = np.unique(pairs, axis=1, return_counts=True)
    twice = of_case[n_rows > 1]
    if len(twice):
        raise InputError(
            "must be different within a fold",
            argument="ids",
            found=f"{show(cases[np.argmax(place == twice[0])])} is there several times "
            f"({len(set(twice.tolist()))} such cases)",
            rows=np.flatnonzero(place == twice[0])[:3].tolist(),
            count=len(set(twice.tolist())),
            remedies=[Remedy("Rows that belong together are groups, not ids.")],
        )
    often = int(count.max(initial=1))
    if repeats is None and often == count.min():
        return often
    if often > (repeats or 1):
        shared = np.flatnonzero(count > (repeats or 1))
        at = np.flatnonzero(place == shared[0])
        raise InputError(
            "must not share rows within a round of cross-validation",
            argument="folds",
            found=f"{show(cases[at[0]])} is in folds {join(show(labels[i]) for i in at[:3])} "
            f"({len(shared)} such cases)",
            rows=at[:3].tolist(),
            count=len(shared),
            remedies=[passing("if folds are those of several rounds", repeats=often)],
        )
    return often


def repeats_of(handle: Handle) -> int | None:
    """How often cases are in some fold; None where that is not known."""
    part = handle.kept
    return None if part is None or part.ids is None else most_often(part.ids)


def sums_by_fold(handle: Handle, folds: object, rules: Sequence[Rule]) -> FoldSums:
    """The sums of each label of a column."""
    check_models(handle, None)
    column = _FOLD
    if isinstance(folds, str):
        column = folds
        if folds not in handle.by:
            raise not_scanned(folds, handle.by, "folds")
    elif _FOLD not in handle.by:
        raise InputError(
            "must name a column of predictions that `scan` has opened",
            argument="folds",
            kind="type",
            found=f"it is a {type(folds).__name__}",
        )
    recipe = BreakdownRecipe(column, {_SUMS: _recipe(handle, rules)})
    summaries = handle.summarise(with_fault_recipes(handle, {_FOLD: recipe}))
    parts: Breakdown = summaries[_FOLD]
    sums = {label: parts[label][_SUMS] for label in parts.labels}
    faults = faults_in(handle, summaries)
    return FoldSums(sums, handle.models, _dense(handle), summaries.skipped, _grouped(sums), faults)
