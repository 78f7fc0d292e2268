"""Scores of models on the same folds, from arrays, frames, `cv_results_` and results of `cross_validate`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from verax.common.ids import numbered
from verax.errors import InputError, Remedy, join, passing, show
from verax.inputs.arrays import Floats, frame_columns, to_array, to_host

_SPLIT = re.compile(r"split(\d+)_test_(.+)")
_TEST = "test_"
# The name of scores without one.
SCORE = "score"


@dataclass(frozen=True)
class FoldScores:
    """The score of every model in every fold, by the name of the score.

    Attributes
    ----------
    values : dict of str to array
        (J, M) scores, by name.
    names : tuple of str
        The models.
    better : "lower", "higher" or None
        Which scores are better by the convention of where they come from; None where there is none.
    test_train : float or None
        The number of test rows over that of training rows, where it is known.
    repeats : int or None
        How often rows are test rows, where it is known.
    """

    values: dict[str, Floats]
    names: tuple[str, ...]
    better: Literal["lower", "higher"] | None = None
    test_train: float | None = None
    repeats: int | None = None


def read_scores(given: object) -> FoldScores:
    """Scores in any of the known forms, checked."""
    table = _columns(given)
    if "params" in table and any(map(_SPLIT.fullmatch, table)):
        scores = _search(table)
    elif table and all(isinstance(results, Mapping) for results in table.values()):
        scores = _validated(table)
    else:
        scores = FoldScores({SCORE: _beside(table)}, tuple(map(str, table)))
    if len(scores.names) < 2:
        raise InputError(
            "must name at least two models", argument="scores", found=f"there are {len(scores.names)}"
        )
    for name, values in scores.values.items():
        _check_finite(name, values, scores.names)
    return scores


def _columns(given: object) -> Mapping[str, Any]:
    """Scores by name: a mapping, or the columns of a frame of numbers."""
    if isinstance(given, Mapping):
        return given
    columns = frame_columns(given)
    if columns is None:
        raise InputError(
            "must be a mapping from models to one score per fold, a frame with a column per model, "
            "`cv_results_`, or results of `cross_validate` by model",
            argument="scores",
            kind="type",
            found=f"it is a {type(given).__name__}",
            remedies=[Remedy('Name the models: scores={"a": values, "b": others}.', python_only=True)],
        )
    return {str(name): column.to_numpy() for name, column in columns.items() if column.dtype.is_numeric()}


def _beside(columns: Mapping[str, Any]) -> Floats:
    """(J, M) scores of the same folds."""
    by_model = {str(name): to_host(to_array(column, "scores")[0]) for name, column in columns.items()}
    for name, column in by_model.items():
        if column.ndim != 1 or column.dtype.kind not in "biuf":
            raise InputError(
                "must be one number per fold for every model",
                argument="scores",
                kind="type",
                source=repr(name),
                found=f"its shape is {column.shape} and its type {column.dtype}",
            )
    sizes = {name: len(column) for name, column in by_model.items()}
    if len(set(sizes.values())) > 1:
        raise InputError(
            "must be of the same folds for all models",
            argument="scores",
            kind="length",
            found=join(f"{name!r} has {n}" for name, n in sizes.items()),
        )
    if not by_model:
        return np.zeros((0, 0))
    return np.column_stack([column.astype(float) for column in by_model.values()])


def _check_finite(metric: str, values: Floats, names: Sequence[str]) -> None:
    """Refuse scores that are missing or infinite, as those of failed fits are."""
    folds, models = np.nonzero(~np.isfinite(values))
    if len(folds):
        shown = [f"that of {names[m]!r} in fold {f}" for f, m in zip(folds[:3], models[:3], strict=True)]
        more = f" ({len(folds)} in all)" if len(folds) > len(shown) else ""
        raise InputError(
            f"must be finite; {metric}: {join(shown)} {'is' if len(folds) == 1 else 'are'} not{more}",
            argument="scores",
            kind="finite",
            rows=folds[:3].tolist(),
            count=len(folds),
            remedies=[Remedy("Leave out the model or the fold.")],
        )


def _search(results: Mapping[str, Any]) -> FoldScores:
    """The `cv_results_` of a scikit-learn search: candidates are the models."""
    params = list(results["params"])
    keys = dict.fromkeys(key for candidate in params for key in candidate)
    changing = [key for key in keys if len({show(candidate.get(key)) for candidate in params}) > 1]
    names = tuple(
        ", ".join(f"{key}={_short(candidate[key])}" for key in changing if key in candidate) or "model"
        for candidate in params
    )
    if len(set(names)) < len(names):
        names = tuple(f"{i}: {name}" for i, name in enumerate(names))
    splits: dict[str, dict[int, Any]] = {}
    for key in results:
        if split := _SPLIT.fullmatch(str(key)):
            splits.setdefault(split[2], {})[int(split[1])] = results[key]
    values = {
        name: np.array([np.asarray(by_split[i], float) for i in sorted(by_split)])
        for name, by_split in splits.items()
    }
    return FoldScores(values, names, better="higher")


def _short(value: Any) -> str:
    return value if isinstance(value, str) else show(value, 40)


def _validated(results: Mapping[str, Mapping[str, Any]]) -> FoldScores:
    """The scores that `cross_validate` returned for each model."""
    names = tuple(map(str, results))
    metrics = {name: [key for key in keys if str(key).startswith(_TEST)] for name, keys in results.items()}
    first = next(iter(metrics.values()))
    for name, keys in metrics.items():
        if set(keys) != set(first) or not keys:
            raise InputError(
                "must have the same test scores for all models",
                argument="scores",
                kind="label",
                found=f"{name!r} has {join(keys) if keys else 'none'}"
                + (f", not {join(first)}" if keys and first else ""),
                remedies=[
                    Remedy("Pass what `cross_validate` returned with the same `scoring`.", python_only=True)
                ],
            )
    values = {
        key.removeprefix(_TEST): _beside({name: result[key] for name, result in results.items()})
        for key in first
    }
    indices = [result["indices"] for result in results.values() if "indices" in result]
    if len(indices) < len(names):
        return FoldScores(values, names, better="higher")
    splits = [list(zip(index["train"], index["test"], strict=True)) for index in indices]
    ratio, repeats = read_splits(dict(zip(names, splits, strict=True)), "scores")
    return FoldScores(values, names, better="higher", test_train=ratio, repeats=repeats)


def read_splits(splits: Mapping[str, Sequence[tuple[Any, Any]]], argument: str) -> tuple[float, int]:
    """Test rows over training rows, and how often a row is a test row, of splits that all models share."""
    first, shared = next(iter(splits.items()))
    for name, other in splits.items():
        same = len(shared) == len(other) and all(
            np.array_equal(a, b)
            for x, y in zip(shared, other, strict=True)
            for a, b in zip(x, y, strict=True)
        )
        if not same:
            raise InputError(
                "must be of the same folds for all models",
                argument=argument,
                kind="length",
                found=f"the splits of {name!r} differ from those of {first!r}",
                remedies=[
                    Remedy("Use one splitter with a fixed random_state for all of them.", python_only=True)
                ],
            )
    for i, (train, test) in enumerate(shared):
        both = np.intersect1d(np.asarray(train), np.asarray(test))
        if len(both):
            raise InputError(
                f"must not train and test on the same rows; fold {i} has {len(both)} in common",
                argument=argument,
                rows=both[:3].tolist(),
                count=len(both),
            )
    sizes = [(len(train), len(test)) for train, test in shared]
    test_rows = np.concatenate([np.asarray(test) for _, test in shared])
    return sum(n for _, n in sizes) / sum(n for n, _ in sizes), most_often(test_rows)


def most_often(ids: Any) -> int:
    """How often the commonest of some ids is there."""
    (codes,), _ = numbered([ids])
    return int(np.bincount(codes).max(initial=1))


def ratio_of(n_folds: int, repeats: int) -> float:
    """Test rows over training rows, where `n_folds` folds are `repeats` rounds of cross-validation.

    >>> ratio_of(5, 1), ratio_of(20, 2)
    (0.25, 0.1111111111111111)
    """
    per_round = n_folds // repeats
    if n_folds % repeats or per_round < 2:
        raise InputError(
            f"must divide the number of folds, {n_folds}, into rounds of at least two",
            argument="repeats",
            values=[repeats],
            remedies=[
                passing(
                    "for other splits, the number of test rows over that of training rows", test_train=...
                )
            ],
        )
    return 1 / (per_round - 1)


class ReportRows(NamedTuple):
    """The test rows of all folds, one fold below the other."""

    y: Any
    forecasts: dict[str, Any]
    folds: Any
    ids: Any
    classes: list[Any]
    test_train: float
    repeats: int


def are_reports(given: object) -> bool:
    """Whether these are a comparison of cross-validation reports, or such reports by model."""
    reports = _by_model(given)
    return bool(reports) and all(_folds(report) is not None for report in reports.values())


def _by_model(given: object) -> Mapping[str, Any]:
    reports = given if isinstance(given, Mapping) else getattr(given, "reports_", None)
    return reports if isinstance(reports, Mapping) else {}


def _folds(report: object) -> Any:
    """The reports of the folds of a model; None where it has none. The attribute had another name before."""
    reports = getattr(report, "reports_", None) or getattr(report, "estimator_reports_", None)
    known = isinstance(reports, (list, tuple)) and bool(reports) and hasattr(reports[0], "y_test")
    return reports if known and hasattr(report, "split_indices") else None


def read_reports(given: object) -> ReportRows:
    """The rows of cross-validation reports of the same data and splits."""
    reports = _by_model(given)
    splits = {name: list(report.split_indices) for name, report in reports.items()}
    test_train, repeats = read_splits(splits, "y")
    forecasts, classes, first = {}, None, None
    for name, report in reports.items():
        folds = _folds(report)
        known = [list(fold.estimator_.classes_) for fold in folds]
        classes = known[0] if classes is None else classes
        if any(labels != classes for labels in known):
            raise InputError(
                "must have the same classes in all folds and models",
                argument="y",
                kind="label",
                source=repr(name),
                remedies=[Remedy("Stratify the folds, so that each has all classes.", python_only=True)],
            )
        asked = {"data_source": "test", "response_method": "predict_proba"}
        forecasts[name] = np.concatenate([np.asarray(fold.get_predictions(**asked)) for fold in folds])
        first = folds if first is None else first
    assert first is not None
    assert classes is not None
    tests = [np.asarray(test) for _, test in next(iter(splits.values()))]
    ids = np.concatenate(tests)
    return ReportRows(
        np.concatenate([np.asarray(fold.y_test) for fold in first]),
        forecasts,
        np.repeat(np.arange(len(tests)), [len(test) for test in tests]),
        ids,
        classes,
        test_train,
        repeats,
    )
