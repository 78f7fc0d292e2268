"""Data sets to train on: features, classes, and whether the classes have an order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets

# Most rows of a data set that are used.
MOST_ROWS = 12_000
# Classes with fewer rows are merged with a neighbour (ordered) or left out.
FEWEST = 12


@dataclass(frozen=True)
class Table:
    """Features and classes, and how many rows the recalibration may use.

    Attributes
    ----------
    name : str
        The name of the data set, by which intervals resample.
    read : callable
        Features and classes, from the folder of the data.
    calibration : int
        The number of rows that recalibrators are fitted to.
    classes : int
        The number of classes, where there are many.
    """

    name: str
    read: Callable[[Path], tuple[np.ndarray, np.ndarray]]
    calibration: int
    ordered: bool = False
    classes: int = 2


def tables() -> list[Table]:
    """All data sets to train on."""
    return [*_bundled(), *_drawn(), *_ordered(), *_sensors()]


def tidy(x: np.ndarray, y: np.ndarray, *, ordered: bool) -> tuple[np.ndarray, np.ndarray]:
    """At most `MOST_ROWS` rows, classes 0 to K - 1, none of them with fewer than `FEWEST` rows."""
    if len(y) > MOST_ROWS:
        some = np.random.default_rng(0).choice(len(y), MOST_ROWS, replace=False)
        x, y = x[some], y[some]
    y = np.unique(y, return_inverse=True)[1]
    while ordered and np.bincount(y).min() < FEWEST:
        counts = np.bincount(y)
        rare = int(counts.argmin())
        beside = [k for k in (rare - 1, rare + 1) if 0 <= k < len(counts)]
        y = np.where(y == rare, min(beside, key=lambda k: counts[k]), y)
        y = np.unique(y, return_inverse=True)[1]
    kept = np.bincount(y)[y] >= FEWEST
    return x[kept], np.unique(y[kept], return_inverse=True)[1]


# ---- from scikit-learn -------------------------------------------------------------------------


def _bundled() -> Iterator[Table]:
    for name, load, rows in (
        ("iris", datasets.load_iris, 50),
        ("wine", datasets.load_wine, 60),
        ("breast cancer", datasets.load_breast_cancer, 150),
        ("digits", datasets.load_digits, 500),
    ):
        yield Table(name, lambda _, load=load: load(return_X_y=True), rows)

    def even(_: Path) -> tuple[np.ndarray, np.ndarray]:
        x, y = datasets.load_digits(return_X_y=True)
        return x, y % 2

    def one_of_ten(_: Path) -> tuple[np.ndarray, np.ndarray]:
        x, y = datasets.load_digits(return_X_y=True)
        return x + 12 * np.random.default_rng(0).normal(size=x.shape), (y == 8).astype(int)

    def noisy(_: Path) -> tuple[np.ndarray, np.ndarray]:
        x, y = datasets.load_digits(return_X_y=True)
        rng = np.random.default_rng(0)
        return x, np.where(rng.random(len(y)) < 0.2, rng.integers(10, size=len(y)), y)

    yield Table("digits, even or odd", even, 300)
    yield Table("digits, eight or not, blurred", one_of_ten, 500)
    yield Table("digits, a fifth of labels at random", noisy, 600)


def _drawn() -> Iterator[Table]:
    """Settings of `make_classification`: classes, rows to recalibrate, label noise, class weights."""
    for classes, rows, noise, weights, apart in (
        (2, 200, 0.0, None, 0.7),
        (2, 500, 0.1, [0.9], 0.8),
        (2, 1000, 0.3, None, 1.0),
        (2, 2000, 0.02, [0.97], 0.8),
        (2, 3000, 0.05, [0.7], 0.5),
        (3, 300, 0.1, None, 0.8),
        (3, 2000, 0.02, [0.8, 0.15], 0.8),
        (4, 1000, 0.2, None, 1.0),
        (5, 500, 0.0, None, 0.7),
        (6, 2000, 0.1, [0.5, 0.2, 0.1, 0.1, 0.07], 1.0),
        (10, 400, 0.05, None, 1.2),
        (10, 3000, 0.05, None, 1.0),
        (20, 2000, 0.05, None, 1.5),
        (30, 1000, 0.0, None, 1.5),
        (50, 3000, 0.0, None, 2.0),
        (100, 3000, 0.0, None, 2.0),
    ):
        name = f"drawn: {classes} classes {apart:g} apart, {100 * noise:g} % noise"
        name += ", imbalanced" if weights else ""

        def read(
            _: Path,
            classes: int = classes,
            noise: float = noise,
            weights: list[float] | None = weights,
            apart: float = apart,
        ) -> tuple[np.ndarray, np.ndarray]:
            return datasets.make_classification(
                MOST_ROWS,
                n_features=20,
                n_informative=12,
                n_redundant=3,
                n_classes=classes,
                n_clusters_per_class=2 if classes <= 10 else 1,
                flip_y=noise,
                weights=weights,
                class_sep=apart,
                random_state=classes,
            )

        yield Table(name, read, rows, classes=classes)


# ---- ordered classes ---------------------------------------------------------------------------


def _ordered() -> Iterator[Table]:
    for name, rows in (
        ("winequality-red", 400),
        ("car", 400),
        ("ERA", 300),
        ("ESL", 150),
        ("balance-scale", 200),
        ("melanoma5_fs", 180),
    ):

        def read(data: Path, name: str = name) -> tuple[np.ndarray, np.ndarray]:
            frame = pd.read_csv(data / "ordinal-tabular" / f"{name}.csv")
            frame = frame.drop(columns=["split", "fold"], errors="ignore")
            return frame.drop(columns="y").to_numpy(float), frame["y"].to_numpy(int)

        yield Table(name, read, rows, ordered=True)
    yield Table("party, ANES 1996", _party, 300, ordered=True)
    yield Table("diamonds, cut", _diamonds, 1000, ordered=True)
    yield Table("diamonds, clarity", _clarity, 3000, ordered=True)
    yield Table("particles in Beijing", _particles, 2000, ordered=True)
    yield Table("diabetes, fifths", _diabetes, 130, ordered=True)
    yield Table("Friedman, sevenths", _friedman, 500, ordered=True)


def _party(data: Path) -> tuple[np.ndarray, np.ndarray]:
    frame = pd.read_csv(data / "ordinal-tabular" / "anes96.csv")
    return frame.drop(columns=["PID", "vote"]).to_numpy(float), frame["PID"].to_numpy(int)


def _stones(data: Path) -> tuple[pd.DataFrame, np.ndarray]:
    frame = pd.read_parquet(data / "ordinal-tabular" / "diamonds.parquet")
    return frame, frame[["carat", "depth", "table", "price", "x", "y", "z"]].to_numpy(float)


def _diamonds(data: Path) -> tuple[np.ndarray, np.ndarray]:
    frame, x = _stones(data)
    return x, frame["cut_code"].to_numpy(int)


def _clarity(data: Path) -> tuple[np.ndarray, np.ndarray]:
    frame, x = _stones(data)
    grades = ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]
    colours = pd.Categorical(frame["color"]).codes
    return np.column_stack([x, colours]), np.array(pd.Categorical(frame["clarity"], grades).codes, int)


def _particles(data: Path) -> tuple[np.ndarray, np.ndarray]:
    """Six levels of fine particles, from the weather."""
    frame = pd.read_parquet(data / "spatio-temporal" / "PRSA2017.parquet").dropna()
    x = frame[["month", "hour", "TEMP", "PRES", "DEWP", "RAIN", "wd", "WSPM", "O3"]].to_numpy(float)
    return x, np.searchsorted([35, 75, 115, 150, 250], frame["PM2.5"].to_numpy(float))


def _diabetes(_: Path) -> tuple[np.ndarray, np.ndarray]:
    x, amount = datasets.load_diabetes(return_X_y=True)
    return x, np.searchsorted(np.quantile(amount, [0.2, 0.4, 0.6, 0.8]), amount)


def _friedman(_: Path) -> tuple[np.ndarray, np.ndarray]:
    x, amount = datasets.make_friedman1(MOST_ROWS, noise=3.0, random_state=0)
    return x, np.searchsorted(np.quantile(amount, np.arange(1, 7) / 7), amount)


# ---- sensors -----------------------------------------------------------------------------------


def _sensors() -> Iterator[Table]:
    for name, file, target, columns, rows in (
        ("driver", "DriverIdentification", "class_file", slice(1, 7), 1000),
        ("walker", "User_Identification_From_Walking", "class_file", slice(2, 5), 500),
        ("motor", "Motor_Failure_Time", "class_file", slice(3, 6), 2000),
        ("posture", "Healthy_Older_People", "Label", slice(2, 9), 1000),
        ("beacon", "RSSI", "class_file", slice(4, 6), 2000),
        ("power zone", "Power_consumption", "class_file", slice(2, 8), 500),
        ("station", "PRSA2017", "class_file", slice(5, 17), 3000),
    ):

        def read(
            data: Path, file: str = file, target: str = target, columns: slice = columns
        ) -> tuple[np.ndarray, np.ndarray]:
            frame = pd.read_parquet(data / "spatio-temporal" / f"{file}.parquet").dropna()
            return frame.iloc[:, columns].to_numpy(float), frame[target].astype(str).to_numpy()

        yield Table(name, read, rows)

    def polluted(data: Path) -> tuple[np.ndarray, np.ndarray]:
        x, level = _particles(data)
        return x, (level >= 2).astype(int)

    def vote(data: Path) -> tuple[np.ndarray, np.ndarray]:
        frame = pd.read_csv(data / "ordinal-tabular" / "anes96.csv")
        return frame[["popul", "TVnews", "age", "educ", "income"]].to_numpy(float), frame["vote"].to_numpy(
            int
        )

    yield Table("polluted air in Beijing", polluted, 1500)
    yield Table("vote, ANES 1996", vote, 300)
