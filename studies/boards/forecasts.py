"""Forecasts that others have made: outcomes, probabilities, and how many rows recalibrate them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import softmax


@dataclass(frozen=True)
class Forecast:
    """Forecasts of a model that is not trained here.

    Attributes
    ----------
    data, model : str
        The names of the data set and of the model.
    read : callable
        Outcomes and probabilities, from the folder of the data.
    calibration : int
        The number of rows that recalibrators are fitted to.
    """

    data: str
    model: str
    read: Callable[[Path], tuple[np.ndarray, np.ndarray]]
    calibration: int
    ordered: bool = False


def forecasts() -> list[Forecast]:
    """All forecasts that others have made."""
    return [*_images(), *_football(), *_weather(), *_texts(), *_hearts()]


def _stored(folder: str, file: str) -> Callable[[Path], tuple[np.ndarray, np.ndarray]]:
    def read(data: Path) -> tuple[np.ndarray, np.ndarray]:
        stored = np.load(data / folder / file)
        p = softmax(stored["logits"].astype(float), axis=1) if "logits" in stored else stored["probs"]
        return stored["labels"].ravel(), p

    return read


def _images() -> Iterator[Forecast]:
    for rows in (1000, 5000):
        yield Forecast("CIFAR-10", "VGG16", _stored("cifar10-vgg16", "cifar10_vgg16.npz"), rows)
        yield Forecast("CIFAR-10", "cross-validated network", _stored("label-errors", "cifar10.npz"), rows)
        model = "vgg19_bn" if rows == 1000 else "resnet-20"
        yield Forecast("CIFAR-100", model, _stored("cifar100", f"cifar100_{model}.npz"), rows)
    for rows in (200, 600):
        read = _stored("dr-aptos", "dr_aptos5.npz")
        yield Forecast("retinopathy grades", "RETFound", read, rows, ordered=True)


def _football() -> Iterator[Forecast]:
    for number, bookmaker in enumerate(("B365", "IW", "LB", "WH")):

        def read(data: Path, bookmaker: str = bookmaker) -> tuple[np.ndarray, np.ndarray]:
            frame = pd.read_parquet(data / "football-odds" / "odds_6bookmakers.parquet")
            odds = 1 / frame[[f"{bookmaker}{side}" for side in "HDA"]].to_numpy(float)
            return frame["outcome"].to_numpy(int), odds

        yield Forecast("football odds", bookmaker, read, (400, 4000)[number % 2], ordered=True)

    def spi(data: Path) -> tuple[np.ndarray, np.ndarray]:
        frame = pd.read_csv(data / "soccer-538-spi" / "spi_matches_2016_2019.csv.gz")
        return frame["outcome"].to_numpy(int), frame[["prob1", "probtie", "prob2"]].to_numpy(float)

    yield Forecast("FiveThirtyEight football", "SPI", spi, 1000, ordered=True)


def _weather() -> Iterator[Forecast]:
    for hours in (24, 48):

        def rain(data: Path, hours: int = hours) -> tuple[np.ndarray, np.ndarray]:
            frame = pd.read_csv(data / "weather-ordinal" / "pop_tampere_2003.csv").dropna()
            p = frame[[f"p{hours}_cat{k}" for k in range(3)]].to_numpy(float)
            return np.digitize(frame["obs"], [0.25, 4.45]), p

        yield Forecast("rain in Tampere", f"{hours} h ahead", rain, 160, ordered=True)

    def seasons(data: Path) -> tuple[np.ndarray, np.ndarray]:
        frame = pd.read_parquet(data / "weather-ordinal" / "ecmwf_terciles.parquet")
        return frame["category"].to_numpy(int), frame[["below", "normal", "above"]].to_numpy(float)

    def percent(data: Path) -> tuple[np.ndarray, np.ndarray]:
        frame = pd.read_csv(data / "weather-ordinal" / "prob_frcs_binary.csv").dropna()
        x = frame["frcst"].to_numpy(float) / 100
        return frame["obs"].to_numpy(int), np.column_stack([1 - x, x])

    yield Forecast("seasonal rain", "ECMWF", seasons, 2000, ordered=True)
    yield Forecast("rain or not", "forecasters", percent, 400)


def _texts() -> Iterator[Forecast]:
    for number in range(3):

        def answers(data: Path, number: int = number) -> tuple[np.ndarray, np.ndarray]:
            stored = np.load(data / "llm-mmlu-conformal" / "mmlu_llama.npz")
            return stored["labels"], stored["probs"][number]

        yield Forecast("MMLU", f"LLaMA, prompts {number + 1}", answers, (300, 1000, 1400)[number])
    for rows in (300, 5000):
        yield Forecast("IMDB", "cross-validated network", _stored("label-errors", "imdb.npz"), rows)


def _hearts() -> Iterator[Forecast]:
    for name in ("NORM", "ABQRS", "IMI", "LVH", "AFIB"):

        def read(data: Path, name: str = name) -> tuple[np.ndarray, np.ndarray]:
            parts = [np.load(data / "multilabel-ptbxl-71" / f"ptbxl_{part}.npz") for part in ("val", "test")]
            place = parts[0]["label_names"].tolist().index(name)
            y = np.concatenate([part["labels"][:, place] for part in parts]).astype(int)
            x = np.concatenate([part["probs_xresnet1d101"][:, place] for part in parts]).astype(float)
            return y, np.column_stack([1 - x, x])

        yield Forecast("PTB-XL", f"xresnet1d101, {name}", read, 2000)
