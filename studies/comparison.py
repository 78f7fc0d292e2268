"""Which differences between forecasters are real? Bookmakers, rain forecasts, networks.

    python studies/comparison.py [folder with the data sets]

Prints the tables of studies/comparison.md. The data are not part of the repository.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

import verax as vx
from recording import Data, run

BOOKMAKERS = ("B365", "BW", "IW", "LB", "WH", "VC", "BbAv")


def bookmakers(data: Data) -> None:
    frame = pd.read_parquet(data.file("football-odds/odds_6bookmakers.parquet")).sort_values(
        "date", kind="stable"
    )
    y = frame["outcome"].to_numpy()
    season = (frame["date"].dt.year + (frame["date"].dt.month > 6)).to_numpy()
    odds = {name: frame[[f"{name}H", f"{name}D", f"{name}A"]].to_numpy(float) for name in BOOKMAKERS}
    p = {name: (1 / o) / (1 / o).sum(axis=1, keepdims=True) for name, o in odds.items()}
    print(vx.compare(y, p, rule=["rps", "brier", "log_score"], groups=season, reference="frequencies"))
    print("\nThe same, taking every match for independent, RPS:")
    naive = vx.compare(y, p, rule="rps")
    print("  letters:", {m.name: m.letters for m in naive.models["rps"]})
    timed = vx.compare(y, p, rule="rps", time_ordered=True)
    print(f"{timed.method}, RPS:\n  letters:", {m.name: m.letters for m in timed.models["rps"]})
    for pair in (("B365", "IW"), ("B365", "VC")):
        sequence = vx.ConfidenceSequence("rps", n_classes=3)
        first = None
        for start in range(0, len(y), 500):
            part = slice(start, start + 500)
            sequence.update(y[part], p[pair[0]][part], p[pair[1]][part])
            first = first or (sequence.n_rows if sequence.decided else None)
        print(f"{' - '.join(pair)}: {sequence}; first decided after {first} matches")


def rain(data: Data) -> None:
    frame = pd.read_csv(data.file("weather-ordinal/pop_tampere_2003.csv")).dropna()
    y = np.digitize(frame["obs"], [0.25, 4.45])
    p = {f"{h} h ahead": frame[[f"p{h}_cat{i}" for i in range(3)]].to_numpy(float) for h in (24, 48)}
    print(vx.compare(y, p, rule=["rps", "brier"], normalize=True, time_ordered=True, reference="frequencies"))


def networks(data: Data) -> None:
    z = {name: np.load(data.file(f"cifar100/cifar100_{name}.npz")) for name in ("vgg19_bn", "resnet-20")}
    y, p = {n: a["labels"] for n, a in z.items()}, {n: a["logits"] for n, a in z.items()}
    print(vx.compare(y, p, rule=["zero_one", "brier", "log_score"], logits=True))


def quoted(study: Callable[[Data], None], data: Data) -> None:
    print("```")
    study(data)
    print("```")


if __name__ == "__main__":
    run(__file__, {study.__name__: partial(quoted, study) for study in (bookmakers, rain, networks)})
