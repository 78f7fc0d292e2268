"""Scores of models on several data sets: tables, frames, comparisons and cards, as one matrix."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from verax.errors import SHOWN_ROWS, InputError, Remedy, join, passing, show
from verax.inputs.arrays import Array, Floats, frame_columns, to_array, to_host

Missing = Literal["refuse", "drop"]
# Usual names of the columns of a long table.
_DATASETS = ("dataset", "data_set", "data set", "data", "task", "benchmark")
_MODELS = ("model", "method", "classifier", "algorithm", "estimator")


@dataclass(frozen=True)
class ScoreTable:
    """The score of each model (column) on each data set (row); NaN where there is none."""

    datasets: tuple[Any, ...]
    models: tuple[str, ...]
    values: Floats
    score: str = "score"

    def complete(self, missing: Missing) -> tuple[ScoreTable, tuple[Any, ...]]:
        """The data sets that have all models, and those that were left out; refused unless asked for."""
        lacking = np.asarray(np.isnan(self.values).any(axis=1)).tolist()
        if not any(lacking):
            return self, ()
        left_out = tuple(dataset for dataset, lacks in zip(self.datasets, lacking, strict=True) if lacks)
        if missing == "refuse":
            shown = []
            for i in np.flatnonzero(lacking)[:SHOWN_ROWS]:
                absent = [m for m, v in zip(self.models, self.values[i], strict=True) if np.isnan(v)]
                shown.append(f"{show(self.datasets[i])} lacks {join(absent[:3])}")
            raise InputError(
                "must have a score of every model on every data set",
                argument="scores",
                kind="missing",
                found=f"{'; '.join(shown)} ({len(left_out)} of {len(self.datasets)} data sets)",
                count=len(left_out),
                remedies=[passing("to leave these data sets out", missing="drop")],
            )
        kept = tuple(dataset for dataset, lacks in zip(self.datasets, lacking, strict=True) if not lacks)
        return ScoreTable(kept, self.models, self.values[~np.array(lacking)], self.score), left_out


def read_table(
    table: object, datasets: object, models: object, scores: object, rule: str | None
) -> ScoreTable:
    """Scores in any of the known forms."""
    if table is None:
        return _long(_column(datasets, "datasets"), _column(models, "models"), _column(scores, "scores"))
    if isinstance(table, Mapping):
        _refuse(datasets=datasets, models=models, scores=scores)
        return _mapping(table, rule)
    columns = frame_columns(table)
    if columns is not None:
        return _of_frame(table, columns, datasets, models, scores)
    values = to_host(to_array(table, "table")[0])
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise InputError(
            "must be a mapping, a frame, or an array with a row per data set and a column per model",
            argument="table",
            kind="type",
            found=f"it is a {type(table).__name__}",
        )
    names = range(values.shape[1]) if models is None else _column(models, "models").tolist()
    rows = range(len(values)) if datasets is None else _column(datasets, "datasets").tolist()
    scores_table = ScoreTable(tuple(rows), tuple(map(str, names)), values.astype(float))
    if (len(scores_table.datasets), len(scores_table.models)) != values.shape:
        raise InputError(
            "must have a row per data set and a column per model",
            argument="table",
            kind="length",
            found=f"its shape is {values.shape}",
        )
    return _distinct(scores_table)


def _refuse(**given: object) -> None:
    for argument, value in given.items():
        if value is not None:
            raise InputError("cannot be used beside this table, which has them", argument=argument)


def _column(given: object, argument: str) -> Array:
    if given is None or isinstance(given, str):
        raise InputError(
            "must be an array, one value per row of a long table",
            argument=argument,
            kind="missing" if given is None else "type",
            remedies=[passing("all three", datasets=..., models=..., scores=...)],
        )
    column = to_host(to_array(given, argument)[0])
    if column.ndim != 1:
        raise InputError(
            "must have one value per row", argument=argument, found=f"its shape is {column.shape}"
        )
    return column


def _long(datasets: Array, models: Array, scores: Array, score: str = "score") -> ScoreTable:
    """A long table: a row for each data set and model."""
    if not len(datasets) == len(models) == len(scores):
        raise InputError(
            "must have one value per row",
            argument="scores",
            kind="length",
            found=f"there are {len(datasets)} data sets, {len(models)} models and {len(scores)} scores",
        )
    try:
        numbers = scores.astype(float)
    except (TypeError, ValueError):
        raise InputError("must be numbers", argument="scores", kind="type") from None
    rows: dict[Hashable, int] = {}
    columns: dict[str, int] = {}
    seen: dict[tuple[int, int], list[int]] = {}
    for i, (dataset, model) in enumerate(zip(datasets.tolist(), models.tolist(), strict=True)):
        at = rows.setdefault(dataset, len(rows)), columns.setdefault(str(model), len(columns))
        seen.setdefault(at, []).append(i)
    twice = {at: places for at, places in seen.items() if len(places) > 1}
    if twice:
        (row, column), places = next(iter(twice.items()))
        pair = f"{show(list(rows)[row])} and {show(list(columns)[column])}"
        raise InputError(
            "must have one score for each data set and model",
            argument="scores",
            found=f"{pair} are in rows {join(map(str, places[:3]))} ({len(twice)} such pairs)",
            rows=places[:SHOWN_ROWS],
            count=len(twice),
            remedies=[
                Remedy("Average folds or seeds first; to compare models over folds, use `compare_folds`.")
            ],
        )
    values = np.full((len(rows), len(columns)), np.nan)
    for at, (i,) in seen.items():
        values[at] = numbers[i]
    return ScoreTable(tuple(rows), tuple(columns), values, score)


def _distinct(table: ScoreTable) -> ScoreTable:
    """Refuse duplicate names."""
    for argument, names in (("datasets", table.datasets), ("models", table.models)):
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InputError(
                "must have different names", argument=argument, found=f"{show(twice[0])} is there twice"
            )
    return table


def _mapping(table: Mapping[Any, Any], rule: str | None) -> ScoreTable:
    """A table from the scores of models, their cards, or a comparison of them, for each data set."""
    datasets, models, scores = [], [], []
    names: list[str] = []
    for dataset, result in table.items():
        by_model, name = _scores_of(dataset, result, rule)
        names.append(name)
        for model, value in by_model.items():
            datasets.append(dataset)
            models.append(model)
            scores.append(value)
    if len(set(names)) > 1:
        raise InputError(
            "must be of the same score for all data sets",
            argument="table",
            found=f"there are {join(sorted(set(names)))}",
            remedies=[passing(rule=names[0])],
        )
    labels = np.empty(len(datasets), object)
    labels[:] = datasets
    return _long(labels, np.array(models, object), np.array(scores, object), names[0] if names else "score")


def _scores_of(dataset: object, result: Any, rule: str | None) -> tuple[Mapping[str, Any], str]:
    """The score of each model on a data set, and what it is called."""
    compared = getattr(result, "models", None)
    if isinstance(compared, Mapping) and hasattr(result, "differences"):
        name = rule or next(iter(compared))
        if name not in compared:
            raise _no_rule(dataset, name, list(compared))
        return {model.name: model.mean for model in compared[name]}, name
    if not isinstance(result, Mapping):
        raise InputError(
            "must have a comparison, or a mapping from models to scores or cards, for each data set",
            argument="table",
            kind="type",
            found=f"that of {show(dataset)} is a {type(result).__name__}",
        )
    values, name = {}, rule or "score"
    for model, value in result.items():
        if hasattr(value, "to_dict") and hasattr(value, "scores"):
            name = rule or next(iter(value.scores))
            try:
                value = value[name]
            except KeyError:
                raise _no_rule(dataset, name, list(value.scores)) from None
        values[str(model)] = np.nan if value is None else value
    return values, name


def _no_rule(dataset: object, name: str, known: Sequence[str]) -> InputError:
    return InputError(
        f"must be a score of all data sets, not {show(name)}",
        argument="rule",
        kind="label",
        found=f"{show(dataset)} has {join(known)}",
    )


def _of_frame(
    table: object, columns: Mapping[Any, Any], datasets: object, models: object, scores: object
) -> ScoreTable:
    """A long frame, with columns of data sets, models and scores, or a wide one with a column per model.

    Where all columns are numbers and none is named as that of data sets, each row is a data set.
    """
    for argument, name_given in (("datasets", datasets), ("models", models), ("scores", scores)):
        if name_given is not None and (not isinstance(name_given, str) or name_given not in columns):
            raise InputError(
                f"must be one of the columns {join(map(show, columns))}",
                argument=argument,
                kind="label",
                found=f"it is {show(name_given)}",
            )
    number = [name for name, column in columns.items() if column.dtype.is_numeric()]
    low = {str(name).lower(): name for name in columns}
    first = datasets or next((low[name] for name in _DATASETS if name in low), None)
    if first is None:
        first = next((name for name in columns if name not in number), None)
    model = models or next((low[name] for name in _MODELS if name in low), None)
    values = [name for name in number if name not in (first, model)]
    if first is None and (model is not None or scores is not None or not values):
        raise InputError(
            "must name the column of data sets",
            argument="datasets",
            kind="missing",
            remedies=[passing(datasets=...)],
        )
    if model is None:
        if scores is not None:
            raise InputError("must name the column of models", argument="models", kind="missing")
        names = [str(name) for name in values]
        numbers = np.column_stack([columns[name].to_numpy().astype(float) for name in values] or [[]])
        rows = _index(table, len(numbers)) if first is None else columns[first].to_list()
        return _distinct(ScoreTable(tuple(rows), tuple(names), numbers))
    score = scores or (values[0] if len(values) == 1 else None)
    if score is None:
        raise InputError(
            f"must name one of the columns {join(map(show, values))}"
            if values
            else "must name a column of numbers",
            argument="scores",
            kind="missing",
            remedies=[passing(scores=...)],
        )
    labels = np.empty(len(columns[first]), object)
    labels[:] = columns[first].to_list()
    return _long(labels, np.array(columns[model].to_list(), object), columns[score].to_numpy(), str(score))


def _index(table: Any, n_rows: int) -> Sequence[Any]:
    """The index of a pandas frame; the numbers of the rows of other frames."""
    index = getattr(table, "index", None)
    return list(index) if index is not None and hasattr(index, "tolist") else range(n_rows)
