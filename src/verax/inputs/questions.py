"""Questions that several models answered, matched by id: which row of each model is which question."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.common.ids import numbered as numbered_ids
from verax.common.ids import repeated
from verax.common.times import by_value
from verax.errors import InputError, Offenders, Remedy, join, passing, show
from verax.inputs.arrays import Array, Bools, Floats, Ints, to_array, to_host
from verax.inputs.groups import missing

# How many questions an error names.
_SHOWN = 3


@dataclass(frozen=True)
class Questions:
    """The questions of several models, each with its repeats.

    Attributes
    ----------
    ids : array of shape (N,)
        The question of each row; repeats of a question have the same.
    at : dict of str to array of shape (N,)
        For each model the row with its answer; -1 for questions it was not asked.
    repeated : bool
        Whether some question was asked several times.
    apart : bool
        Whether models have different rows.
    """

    ids: Array
    at: Mapping[str, Ints]
    repeated: bool
    apart: bool

    @classmethod
    def of(cls, sizes: Mapping[str, int], ids: object, epochs: object = None) -> Questions:
        """Match the rows of models by their ids, and by their repeats; by their order without ids."""
        if ids is None:
            _refuse_lengths(sizes)
            n = next(iter(sizes.values()))
            return cls(np.arange(n), dict.fromkeys(sizes, np.arange(n)), False, False)
        apart = isinstance(ids, Mapping)
        if not apart:
            _refuse_lengths(sizes, ids)
        # Rows shared by all models are read once.
        models = list(sizes) if apart else list(sizes)[:1]
        columns = [ids_of(ids, name, sizes[name]) for name in models]
        repeats = (
            None if epochs is None else [column_of(epochs, name, sizes[name], "epochs") for name in models]
        )
        sources = [_source(ids, name) for name in models]
        codes, n = _codes(columns, repeats, sources)
        first = _first_rows(np.concatenate(codes), n)
        names = _labels(np.concatenate([column.astype(object) for column in columns])[first].tolist())
        at = {name: _rows_of(of_model, n) for name, of_model in zip(models, codes, strict=True)}
        several = repeats is not None and numbered_ids([names])[1] < n
        questions = cls(names, {name: at[name if apart else models[0]] for name in sizes}, several, apart)
        questions._refuse_strangers()
        return questions

    @property
    def n_rows(self) -> int:
        """The number of questions, each with its repeats."""
        return len(self.ids)

    def absent(self, model: str) -> Bools:
        """The questions that a model was not asked, as a mask."""
        return np.asarray(self.at[model] < 0)

    def spread(self, model: str, values: Floats) -> Floats:
        """The values of a model's rows, one per question; NaN for questions it was not asked."""
        places = self.at[model]
        return np.where(places < 0, np.nan, values[places])

    def counts(self, model: str, values: Ints) -> Ints:
        """Numbers of a model's rows, one per question or several; 0 for questions it was not asked."""
        places = self.at[model]
        asked = places >= 0
        return np.where(asked if values.ndim == 1 else asked[:, None], values[places], 0)

    def column(self, given: object, argument: str, sizes: Mapping[str, int]) -> Array:
        """A value per question, from shared rows, or from those of each model, which must agree."""
        if not self.apart:
            return column_of(given, next(iter(sizes)), next(iter(sizes.values())), argument)[
                next(iter(self.at.values()))
            ]
        if not isinstance(given, Mapping):
            raise InputError(
                "must be a mapping from the names of models to a value per row, as the ids are",
                argument=argument,
                kind="type",
            )
        result = np.empty(self.n_rows, object)
        filled = np.zeros(self.n_rows, np.bool_)
        for name, places in self.at.items():
            values = column_of(given, name, sizes[name], argument).astype(object)
            asked = places >= 0
            known = values[places]
            differ = np.flatnonzero(asked & filled & (known != result))
            if len(differ):
                q = int(differ[0])
                raise InputError(
                    "must be the same for a question in all models",
                    argument=argument,
                    source=repr(name),
                    found=f"question {show(self.ids[q])} has {show(known[q])} and {show(result[q])}",
                )
            result[asked], filled = known[asked], filled | asked
        return _labels(result.tolist())

    def _refuse_strangers(self) -> None:
        """Refuse ids if no two models share any."""
        asked = np.stack([places >= 0 for places in self.at.values()])
        if len(self.at) > 1 and asked.sum(axis=0).max(initial=0) < 2:
            first = [show(self.ids[int(np.argmax(answered))]) for answered in asked[:2]]
            names = [repr(name) for name in list(self.at)[:2]]
            raise InputError(
                "must name some questions that two models share",
                argument="ids",
                kind="label",
                found=join(f"{name} begins with {value}" for name, value in zip(names, first, strict=True)),
                remedies=[Remedy("Ids are one if their values are: 7 and '7' are, '07' is another.")],
            )

    def refuse_absent(self) -> None:
        """Refuse questions that some model was not asked."""
        lacking = {name: np.flatnonzero(places < 0) for name, places in self.at.items()}
        name, rows = max(lacking.items(), key=lambda item: len(item[1]))
        if not len(rows):
            return
        shown = [show(self.ids[q]) for q in rows[:_SHOWN]]
        more = [f"{len(rows) - _SHOWN:,} more"] if len(rows) > _SHOWN else []
        raise InputError(
            "must name the same questions for all models",
            argument="ids",
            kind="label",
            found=f"{name!r} lacks {len(rows):,} of {self.n_rows:,} ({join([*shown, *more])})",
            values=[self.ids[q] for q in rows[:_SHOWN]],
            remedies=[
                passing("to estimate all models on all questions", missing="joint"),
                passing("to compare each pair on what both answered", missing="pairwise"),
            ],
        )


def column_of(given: object, model: str, n: int, argument: str) -> Array:
    """One value per row of a model, from values for all models or for each by name."""
    column = given[model] if isinstance(given, Mapping) and model in given else given
    if isinstance(given, Mapping) and model not in given:
        raise InputError(
            "must have the values of each model under its name",
            argument=argument,
            kind="label",
            found=f"{model!r} is missing",
        )
    raw = to_host(to_array(column, argument)[0])
    if raw.shape != (n,):
        raise InputError(
            f"must be {n} values, one per row",
            argument=argument,
            kind="length",
            source=repr(model),
            found=f"its shape is {raw.shape}",
        )
    values = raw.tolist() if raw.dtype == object else []
    odd = next((i for i, value in enumerate(values) if not isinstance(value, Hashable)), None)
    if odd is not None:
        raise InputError(
            "must hold texts, numbers or dates",
            argument=argument,
            kind="type",
            source=repr(model),
            found=f"row {odd} holds {show(raw[odd])}",
            rows=[odd],
            values=[raw[odd]],
        )
    return raw


def ids_of(given: object, model: str, n: int) -> Array:
    """The question of each row of a model; refuses rows without one."""
    ids = column_of(given, model, n, "ids")
    unnamed = np.flatnonzero(missing(ids))
    if len(unnamed):
        raise InputError(
            "must name the question of every row",
            argument="ids",
            kind="missing",
            source=_source(given, model),
            rows=unnamed[:_SHOWN].tolist(),
        )
    return ids


def numbered(ids: object, epochs: object, model: str, n: int) -> tuple[Ints, Ints]:
    """The place of each row among the repeats of its question, by epoch, and the number of repeats.

    >>> place, sizes = numbered(["p", "q", "p"], [3, 1, 2], "model", 3)
    >>> place.tolist(), sizes.tolist()
    ([1, 0, 0], [2, 1, 2])
    """
    named, repeats = ids_of(ids, model, n), column_of(epochs, model, n, "epochs")
    _codes([named], [repeats], [_source(ids, model)])
    (question,), _ = numbered_ids([named])
    _, epoch = np.unique(repeats.astype(str) if repeats.dtype.kind == "O" else repeats, return_inverse=True)
    order = np.lexsort((epoch, question))
    sizes = np.bincount(question)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return place, sizes[question]


def _source(given: object, model: str) -> str:
    """The source in errors about rows of a single model."""
    return repr(model) if isinstance(given, Mapping) else ""


def _refuse_lengths(sizes: Mapping[str, int], ids: object | None = None) -> None:
    """Refuse models of different lengths if one list of ids, or the order of rows, matches them."""
    wanted = next(iter(sizes.values())) if ids is None else _length(ids)
    odd = next((name for name, n in sizes.items() if n != wanted), None)
    if odd is not None:
        raise InputError(
            "must have the same number of rows for every model" if ids is None else "must be one per row",
            argument="grades" if ids is None else "ids",
            kind="length",
            found=f"{odd!r} has {sizes[odd]:,} rows, not {wanted:,}",
            remedies=[Remedy("Give the ids of each model: ids={name: values}.", python_only=True)],
        )


def _length(ids: object) -> int:
    shape = to_array(ids, "ids")[0].shape
    return int(shape[0]) if shape else 0


def _codes(
    columns: Sequence[Array], repeats: Sequence[Array] | None, sources: Sequence[str]
) -> tuple[list[Ints], int]:
    """A code for each question and repeat of all models, and their number; repeated rows are refused."""
    codes, n = numbered_ids(columns, "ids", sources)
    if repeats is not None:
        epochs, n_epochs = numbered_ids(repeats, "epochs", sources)
        pairs = [of_id * n_epochs + epoch for of_id, epoch in zip(codes, epochs, strict=True)]
        codes, n = numbered_ids(pairs)
    for i, of_model in enumerate(codes):
        rows = repeated(of_model)
        if rows is not None:
            again = show(columns[i][rows[0]])
            repeat = "" if repeats is None else f" with epoch {show(repeats[i][rows[0]])}"
            raise InputError(
                "must not repeat within a model",
                argument="ids",
                kind="label",
                source=sources[i],
                found=f"{again}{repeat} is in rows {rows[0]} and {rows[1]}",
                rows=rows,
                remedies=[
                    passing("if questions were asked several times", epochs=...),
                    passing("if forecasts changed over time", times=..., closes=...),
                ],
            )
    return codes, n


def _first_rows(codes: Ints, n: int) -> Ints:
    """The first place of each code."""
    first = np.empty(n, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def _rows_of(codes: Ints, n: int) -> Ints:
    """The row of each question; -1 for those that a model was not asked."""
    result = np.full(n, -1, np.int64)
    result[codes] = np.arange(len(codes))
    return result


def _labels(values: Sequence[Any]) -> Array:
    """Labels as an array of their type; labels of several types as texts."""
    if len({type(value) for value in values}) > 1:
        values = [str(value) for value in values]
    return np.array(values)


def how_long(ids: Array, times: Array, closes: Array, source: str = "") -> Floats:
    """The time that each forecast of a forecaster stood: until the next on its question, or the close.

    >>> how_long(np.array(["a", "b", "a"]), np.array([0.0, 1.0, 6.0]), np.array([10.0, 5.0, 10.0])).tolist()
    [6.0, 4.0, 4.0]
    """
    starts, ends = _numbers(times, "times"), _numbers(closes, "closes")
    late = Offenders("times", "must not be after the close of the question", "value")
    late.add(starts > ends, starts, 0)
    if late.count:
        raise late.error().replace(source=source)
    (codes,), _ = numbered_ids([ids], "ids", [source])
    order = np.lexsort((starts, codes))
    until = ends[order].copy()
    same = codes[order][1:] == codes[order][:-1]
    until[:-1][same] = starts[order][1:][same]
    durations = np.empty(len(starts))
    durations[order] = until - starts[order]
    return durations


def _numbers(given: Array, argument: str) -> Floats:
    """Times as numbers; dates in days."""
    values, _ = by_value(given, argument)
    if values.dtype.kind == "M":
        values = values.astype("datetime64[us]").astype(np.int64) / 8.64e10
    numbers = np.asarray(values, float)
    if not np.isfinite(numbers).all():
        raise InputError("must be a time in every row", argument=argument, kind="missing")
    return numbers


def first_rows(ids: Array) -> tuple[Ints, Ints]:
    """The first row of each question, in the order of appearance, and the question of each row."""
    (codes,), n = numbered_ids([ids])
    return _first_rows(codes, n), codes


def averaged(losses: Mapping[Any, Floats], question: Ints, stood: Floats) -> dict[Any, Floats]:
    """One loss per question: the mean over its forecasts, weighted by the time they stood.

    If none stood for any time, the unweighted mean; NaN if no forecast has a loss.
    """
    n = int(question.max(initial=-1)) + 1
    means: dict[Any, Floats] = {}
    total = np.bincount(question, stood, n)
    weight = np.where(total[question] > 0, stood, 1.0)
    for rule, values in losses.items():
        known = ~np.isnan(values)
        sums = np.bincount(question[known], (weight * values)[known], n)
        weights = np.bincount(question[known], weight[known], n)
        means[rule] = np.divide(sums, weights, where=weights > 0, out=np.full(n, np.nan))
    return means
