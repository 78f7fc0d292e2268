"""The experiments: forecasts of trained models, rows that recalibrate them, rows that judge."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from boards.forecasts import Forecast, forecasts
from boards.tables_of_rows import Table, tables, tidy

# Most rows that models are trained on, and that judge.
TRAINING, TEST = 1500, 4000
# Data sets with fewer rows are split this many times, because few rows judge each time.
SMALL, REPEATS = 1000, 2
# Models of each data set; fewer, and none that are slow, where there are more than this many classes.
PER_TABLE, PER_LARGE_TABLE, MANY = 3, 2, 13


class Margins:
    """A support vector machine whose margins are taken for logits."""

    def __init__(self, seed: int) -> None:
        self.machine = make_pipeline(StandardScaler(), SVC(random_state=seed))

    def fit(self, x: np.ndarray, y: np.ndarray) -> Margins:
        self.machine.fit(x, y)
        self.classes_ = self.machine.classes_
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        margins = self.machine.decision_function(x)
        if margins.ndim == 1:
            return np.column_stack([expit(-margins), expit(margins)])
        return softmax(margins, axis=1)


def _scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def _xgboost(seed: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=100, max_depth=4, learning_rate=0.2, nthread=1, random_state=seed)


def _lightgbm(seed: int) -> Any:
    from lightgbm import LGBMClassifier

    steady = {"n_jobs": 1, "verbose": -1, "deterministic": True}
    return LGBMClassifier(n_estimators=60, num_leaves=15, random_state=seed, **steady)


MODELS: dict[str, Callable[[int], Any]] = {
    "logistic": lambda _: _scaled(LogisticRegression(max_iter=300)),
    "forest": lambda seed: RandomForestClassifier(100, random_state=seed),
    "hist boosting": lambda seed: HistGradientBoostingClassifier(max_iter=100, random_state=seed),
    "naive Bayes": lambda _: GaussianNB(),
    "network": lambda seed: _scaled(MLPClassifier((64,), max_iter=120, random_state=seed)),
    "neighbours": lambda _: _scaled(KNeighborsClassifier(15)),
    "XGBoost": _xgboost,
    "margins": Margins,
    "extra trees": lambda seed: ExtraTreesClassifier(100, min_samples_leaf=3, random_state=seed),
    "AdaBoost": lambda seed: AdaBoostClassifier(n_estimators=50, random_state=seed),
    "LightGBM": _lightgbm,
}
_SLOW = ("hist boosting", "XGBoost", "LightGBM", "AdaBoost")


@dataclass(frozen=True)
class Rows:
    """Forecasts of one split: rows to recalibrate on, and rows that judge."""

    y: np.ndarray
    p: np.ndarray
    test_y: np.ndarray
    test_p: np.ndarray


@dataclass(frozen=True)
class Experiment:
    """A model on a data set.

    Attributes
    ----------
    data, model : str
        Names.
    splits : tuple of Rows
        One or more splits, whose losses are averaged.
    """

    data: str
    model: str
    ordered: bool
    splits: tuple[Rows, ...]

    @property
    def name(self) -> str:
        return f"{self.data} / {self.model} / {len(self.splits[0].y)}"

    @property
    def n_classes(self) -> int:
        return int(self.splits[0].p.shape[1])


def experiments(data: Path, cache: Path) -> Iterator[Experiment]:
    """All experiments; the forecasts of trained models are kept in `cache`."""
    cache.mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(tables()):
        yield from _trained(number, table, data, cache)
    for given in forecasts():
        yield _given(given, data)


def dealt(y: np.ndarray, parts: list[int], seed: int) -> list[np.ndarray]:
    """Rows dealt at random to parts of these sizes, every class in proportion."""
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    # Places of the rows of a part, spread evenly over the sorted rows.
    shares = np.concatenate([(np.arange(n) + 0.5) / n for n in parts])
    part = np.repeat(np.arange(len(parts)), parts)[np.argsort(shares, kind="stable")]
    step = np.linspace(0, len(y) - 1, len(part)).round().astype(int)
    return [np.sort(order[step[part == i]]) for i in range(len(parts))]


def sizes(n: int, calibration: int) -> list[int]:
    """Rows to train on, to recalibrate on, and to judge."""
    training = min(TRAINING, int(0.45 * n))
    calibration = min(calibration, (n - training) // 2)
    return [training, calibration, min(TEST, n - training - calibration)]


def _trained(number: int, table: Table, data: Path, cache: Path) -> Iterator[Experiment]:
    rows: tuple[np.ndarray, np.ndarray] | None = None
    for model in _models_of(number, table):
        stored = cache / (re.sub(r"\W+", "-", f"{table.name}-{model}-{table.calibration}") + ".npz")
        if not stored.exists():
            rows = tidy(*table.read(data), ordered=table.ordered) if rows is None else rows
            splits = _predicted(model, *rows, table.calibration)
            np.savez_compressed(
                stored, **{f"{name}{i}": v for i, s in enumerate(splits) for name, v in vars(s).items()}
            )
        kept = np.load(stored)
        names = ("y", "p", "test_y", "test_p")
        splits = [
            Rows(*(kept[f"{name}{i}"] for name in names)) for i in range(min(REPEATS, len(kept.files) // 4))
        ]
        yield Experiment(table.name, model, table.ordered, tuple(splits))


def _models_of(number: int, table: Table) -> list[str]:
    many = table.classes > MANY
    names = [name for name in MODELS if not (many and name in _SLOW)]
    start = (4 * number) % len(names)
    return [names[(start + i) % len(names)] for i in range(PER_LARGE_TABLE if many else PER_TABLE)]


def _predicted(model: str, x: np.ndarray, y: np.ndarray, calibration: int) -> list[Rows]:
    found = []
    for seed in range(REPEATS if len(y) < SMALL else 1):
        parts = dealt(y, sizes(len(y), calibration), seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = MODELS[model](seed).fit(x[parts[0]], y[parts[0]])
            p = []
            for rows in parts[1:]:
                # Classes without a row to train on have no column.
                wide = np.zeros((len(rows), y.max() + 1))
                wide[:, fitted.classes_] = fitted.predict_proba(x[rows])
                p.append(wide / wide.sum(axis=1, keepdims=True))
        found.append(Rows(y[parts[1]], p[0], y[parts[2]], p[1]))
    return found


def _given(given: Forecast, data: Path) -> Experiment:
    y, p = given.read(data)
    p = np.asarray(p, float) / np.asarray(p, float).sum(axis=1, keepdims=True)
    splits = []
    for seed in range(REPEATS if len(y) < SMALL else 1):
        calibration = min(given.calibration, len(y) // 2)
        parts = dealt(y, [calibration, min(2 * TEST, len(y) - calibration)], seed)
        splits.append(Rows(y[parts[0]], p[parts[0]], y[parts[1]], p[parts[1]]))
    return Experiment(given.data, given.model, given.ordered, tuple(splits))
