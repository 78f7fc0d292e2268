"""Cross-validation reports of skore as rows: outcomes and forecasts of every fold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from verax.analyses.folds.given import read_splits
from verax.errors import InputError, Remedy


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
    return bool(reports) and all(_folds(own) is not None for own in reports.values())


def _by_model(given: object) -> Mapping[str, Any]:
    own = given if isinstance(given, Mapping) else getattr(given, "reports_", None)
    return own if isinstance(own, Mapping) else {}


def _folds(report: object) -> Any:
    """The reports of the folds of a model; None where it has none. The attribute had another name before."""
    found = getattr(report, "reports_", None) or getattr(report, "estimator_reports_", None)
    known = isinstance(found, (list, tuple)) and bool(found) and hasattr(found[0], "y_test")
    return found if known and hasattr(report, "split_indices") else None


def read_reports(given: object) -> ReportRows:
    """The rows of cross-validation reports of the same data and splits."""
    reports = _by_model(given)
    splits = {name: list(own.split_indices) for name, own in reports.items()}
    test_train, repeats = read_splits(splits, "y")
    forecasts, classes, first = {}, None, None
    for name, own in reports.items():
        folds = _folds(own)
        known = [list(fold.estimator_.classes_) for fold in folds]
        classes = known[0] if classes is None else classes
        if any(each != classes for each in known):
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
