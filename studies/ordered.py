"""Real graders of ordered classes: which rule retains best, and what the curves can and cannot show.

    python studies/ordered.py [folder with the data sets]

Prints the tables of studies/ordered.md and draws its figures. The data are not part of the repository.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

import verax as vx
from recording import Data, run

mpl.use("Agg")

HERE = Path(__file__).parent
RULES = ["brier", "log_score", "rps", "sa_rps"]
REMOVED = [i / 100 for i in range(21)]
REPLICATES = 1000


def retinopathy(data: Data) -> tuple:
    z = np.load(data.file("dr-aptos/dr_aptos5.npz"))
    p = z["probs"].astype(float)
    return z["labels"], p / p.sum(axis=1, keepdims=True), None


def rain(data: Data) -> tuple:
    frame = pd.read_csv(data.file("weather-ordinal/pop_tampere_2003.csv")).dropna()
    p = frame[["p24_cat0", "p24_cat1", "p24_cat2"]].to_numpy(float)
    return np.digitize(frame["obs"], [0.25, 4.45]), p / p.sum(axis=1, keepdims=True), None


def terciles(data: Data) -> tuple:
    frame = pd.read_parquet(data.file("weather-ordinal/ecmwf_terciles.parquet"))
    forecast = [c for c in frame.columns if frame[c].dtype.kind == "f" and frame[c].between(0, 1).all()][:3]
    outcome = next(c for c in frame.columns if set(frame[c].unique()) <= {0, 1, 2} and c not in forecast)
    p = frame[forecast].to_numpy(float)
    groups = frame["year"].astype(str) + "-" + frame["month"].astype(str)
    return frame[outcome].to_numpy(), p / p.sum(axis=1, keepdims=True), groups.to_numpy()


def football(data: Data) -> tuple:
    frame = pd.read_parquet(data.file("football-odds/odds_6bookmakers.parquet"))
    p = 1 / frame[["B365H", "B365D", "B365A"]].to_numpy(float)
    groups = frame["Div"].astype(str) + frame["date"].dt.year.astype(str)
    return frame["outcome"].to_numpy(), p / p.sum(axis=1, keepdims=True), groups.to_numpy()


def by_hard_cost(y: np.ndarray, p: np.ndarray) -> tuple[float, float]:
    """Areas when rows are ordered by the squared distance of the decision itself, probabilities unseen."""
    decisions = vx.decide(p)
    order = np.argsort((y - decisions) ** 2, kind="stable")
    kept = [order[: len(y) - round(100 * r) * len(y) // 100] for r in REMOVED]
    k = p.shape[1]
    curves = [
        [vx.kappa(y[rows], decisions[rows], n_classes=k) for rows in kept],
        [vx.expected_cost(y[rows], decisions[rows], n_classes=k) for rows in kept],
    ]
    return tuple(float(np.mean(np.convolve(c, [0.5, 0.5], "valid"))) for c in curves)


def row(*cells: object) -> None:
    print("| " + " | ".join(str(c) for c in cells) + " |")


def span(value: float, interval: tuple[float, float], digits: int = 4) -> str:
    return f"{value:.{digits}f} ({interval[0]:.{digits}f} to {interval[1]:.{digits}f})"


def retained(load: Callable[[Data], tuple], data: Data) -> None:
    y, p, groups = load(data)
    card = vx.evaluate(y, p, ordered=True, groups=groups)
    units = "" if card.n_groups is None else f", {card.n_groups} clusters"
    print(f"{card.n_rows:,} rows{units}.")
    scores = {**card.scores, **card.metrics}
    print("; ".join(f"{n} {span(scores[n].mean, scores[n].interval)}" for n in ("rps", "qwk", "ec")) + ".\n")
    options = {"removed": REMOVED, "bootstrap": REPLICATES, "groups": groups}
    curves = vx.retention(y, p, rule=RULES, metric=["qwk", "ec"], **options)
    row("ordered by", "mean QWK", "mean EC")
    row("---", "---:", "---:")
    for rule in RULES:
        row(rule, *(span(curves[rule, m].area, curves[rule, m].interval) for m in ("qwk", "ec")))
    row("the hard cost itself", *(f"{area:.4f}" for area in by_hard_cost(y, p)))
    print()
    row("difference of areas", "QWK", "EC")
    row("---", "---:", "---:")
    for a, b in (("rps", "brier"), ("rps", "log_score"), ("sa_rps", "rps")):
        row(f"{a} - {b}", *(span(*curves.difference((a, m), (b, m))) for m in ("qwk", "ec")))
    print()
    free = vx.selective(y, p, by=["max_probability", "entropy", "rps"], metric=["qwk", "ec"], **options)
    row("ordered without the outcome, by", "mean QWK", "mean EC")
    row("---", "---:", "---:")
    for key in ("max_probability", "entropy", "expected rps"):
        row(key, *(span(free[key, m].area, free[key, m].interval) for m in ("qwk", "ec")))
    if load is retinopathy:
        draw(y, p, options)
        print("\n```")
        print(vx.worst(y, p, rule="brier", n=3, others=["rps", "log_score"]))
        print(vx.worst(y, p, rule="rps", n=3, others=["brier", "log_score"]))
        print("```")


def draw(y: np.ndarray, p: np.ndarray, options: dict) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    vx.retention(y, p, rule=RULES, metric="qwk", **options).plot(left)
    vx.selective(y, p, by=["max_probability", "entropy", "rps"], metric="qwk", **options).plot(right)
    left.set_title("ranked with the outcome known", loc="left")
    right.set_title("ranked by the forecasts alone", loc="left")
    for ax in (left, right):
        ax.set_ylim(0.88, 1.0)
    (HERE / "figures").mkdir(exist_ok=True)
    figure.savefig(HERE / "figures" / "aptos-retention.png", dpi=110)


if __name__ == "__main__":
    run(
        __file__, {load.__name__: partial(retained, load) for load in (retinopathy, rain, terciles, football)}
    )
