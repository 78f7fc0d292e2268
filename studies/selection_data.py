"""Seven sets of series, cut into blocks and windows by verax.selection, for selection.py."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from selection_training import TEST, TRAIN, VALIDATION, Problem
from verax.selection import HBlockSplit, sliding_windows

OVERLAP = 0.75


@dataclass(frozen=True)
class Series:
    """How a data set is cut: channels, rows in a window, blocks for training, validation and testing.

    A series ends where the class changes and where the column `time` goes back or jumps by more than
    `jump`; no window crosses such a place.
    """

    file: str
    channels: tuple[str, ...]
    length: int
    blocks: tuple[int, int, int]
    batch: int
    epochs: int = 60
    time: str | None = None
    jump: float = np.inf

    def read(self, folder: Path) -> Problem:
        frame = pd.read_parquet(folder / f"{self.file}.parquet")
        if self.time is not None:
            frame = frame.dropna(subset=[self.time])
        labels, y = np.unique(frame["class_file"].astype(str), return_inverse=True)
        rows = frame[list(self.channels)].to_numpy(np.float32, copy=True)
        return self.cut(rows, y, self.pieces(frame, y), len(labels))

    def pieces(self, frame: pd.DataFrame, y: np.ndarray) -> np.ndarray:
        """The number of the uninterrupted series that each row belongs to."""
        new = np.diff(y, prepend=y[0]) != 0
        if self.time is not None:
            passed = np.diff(frame[self.time].to_numpy(float), prepend=0.0)
            new |= (passed < 0) | (passed > self.jump)
        return new.cumsum()

    def cut(self, rows: np.ndarray, y: np.ndarray, pieces: np.ndarray, n_classes: int) -> Problem:
        """Blocks within each class first, then windows inside the parts of each fold."""
        _, n_validation, n_test = self.blocks
        split = HBlockSplit(sum(self.blocks), n_validation=n_validation, n_test=n_test, per_class=True)
        folds = [
            {
                role: sliding_windows(rows, self.length, overlap=OVERLAP, series=pieces, rows=part).starts
                for role, part in zip((TRAIN, VALIDATION, TEST), parts, strict=True)
            }
            for parts in split.split_three(rows, y)
        ]
        starts = np.unique(np.concatenate([found for fold in folds for found in fold.values()]))
        roles = np.zeros((len(folds), len(starts)), np.int8)
        for row, fold in zip(roles, folds, strict=True):
            for role, found in fold.items():
                row[np.searchsorted(starts, found)] = role
        return Problem(rows, starts, y[starts], roles, self.length, n_classes, self.batch, self.epochs)


ACCELERATION = tuple(f"{axis} acceleration" for axis in "xyz")
DRIVING = tuple(f"{axis}-{sensor}" for sensor in ("accelerometer", "gyroscope") for axis in "xyz")
POWER = ("Temperature", "Humidity", "Wind Speed", "general diffuse flows", "diffuse flows", "Consumption")
AIR = ("PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN", "wd", "WSPM")
# Windows: 60 s at 1 Hz, 4 s at 1 Hz (as the authors count), 3 s at 32 Hz, 4 s at 18 Hz, 420 rows of 10
# minutes, 10 s at 2 Hz, 60 hours.
SETS = {
    "RSSI": Series("RSSI", ("rssiOne",), 60, (4, 1, 1), 32, epochs=120),
    "Older people": Series(
        "Healthy_Older_People", ("X", "Y", "Z"), 4, (9, 2, 4), 128, time="Time", jump=10.0
    ),
    "Walking": Series(
        "User_Identification_From_Walking", ACCELERATION, 96, (5, 2, 3), 64, time="time-step", jump=1.0
    ),
    "Motor": Series("Motor_Failure_Time", ("x", "y", "z"), 72, (9, 2, 4), 64),
    "Power": Series("Power_consumption", POWER, 420, (9, 2, 4), 32),
    "Driver": Series(
        "DriverIdentification", DRIVING, 20, (9, 2, 4), 128, time="Time since start in ms", jump=5000.0
    ),
    "Air": Series("PRSA2017", AIR, 60, (5, 2, 3), 256),
}
SMALL = ("RSSI", "Older people", "Walking")
