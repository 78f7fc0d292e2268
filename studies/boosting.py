"""Does boosting by RPS beat boosting by log loss on ordered classes? Five data sets, two libraries.

    python studies/boosting.py [folder with the data sets]

Prints the tables of studies/boosting.md and draws its figure. The data are not part of the repository.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import lightgbm as lgb
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xgboost as xgb
from scipy import stats
from sklearn.model_selection import StratifiedKFold

import verax as vx
from verax.adapters.boosting import (
    lightgbm_metric,
    lightgbm_objective,
    start_scores,
    xgboost_metric,
    xgboost_objective,
)

mpl.use("Agg")
# Some classes have fewer cases than there are folds; they stay where chance puts them.
warnings.filterwarnings("ignore", message="The least populated class")

HERE = Path(__file__).parent
FOLDS = 5
# Enough for training to stop by itself; the longest, log loss on `car` by XGBoost, takes some 1,600.
ROUNDS, PATIENCE = 2000, 30


@dataclass(frozen=True)
class Setting:
    """Parameters of both libraries, and whether training begins at the class frequencies."""

    xgboost: dict
    lightgbm: dict
    at_frequencies: bool = True


XGB = {"eta": 0.1, "max_depth": 4, "nthread": 1, "disable_default_eval_metric": 1}
LGB = {"learning_rate": 0.1, "num_leaves": 15, "num_threads": 1, "verbose": -1, "metric": "None"}
MAIN = Setting(XGB, LGB)
OTHERS = {
    "from equal probabilities": Setting(XGB, LGB, at_frequencies=False),
    "slow and shallow": Setting(
        XGB | {"eta": 0.05, "max_depth": 3}, LGB | {"learning_rate": 0.05, "num_leaves": 7}
    ),
    "no least curvature of a leaf": Setting(
        XGB | {"min_child_weight": 0}, LGB | {"min_sum_hessian_in_leaf": 0}
    ),
}


@dataclass(frozen=True)
class Arm:
    """What is minimised, and what decides when to stop."""

    objective: str
    stop: str

    def __str__(self) -> str:
        return self.objective if self.objective == self.stop else f"{self.objective}, stopped by {self.stop}"


USUAL = Arm("log_score", "log_score")
ARMS = (USUAL, Arm("log_score", "rps"), Arm("rps", "rps"), Arm("brier", "brier"))


# ---- data ------------------------------------------------------------------------------------


def table(name: str) -> Callable[[Path], tuple]:
    def read(data: Path) -> tuple:
        frame = pd.read_csv(data / f"{name}.csv").drop(columns="split", errors="ignore")
        return frame.drop(columns="y").to_numpy(float), frame["y"].to_numpy(int) - 1

    return read


def diamonds(data: Path) -> tuple:
    frame = pd.read_parquet(data / "diamonds.parquet")
    clarity = ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]
    numbers = frame[["carat", "depth", "table", "price", "x", "y", "z"]].to_numpy(float)
    codes = np.stack(
        [pd.Categorical(frame["color"]).codes, pd.Categorical(frame["clarity"], clarity).codes], 1
    )
    some = np.random.default_rng(0).permutation(len(frame))[:20_000]
    return np.hstack([numbers, codes])[some], frame["cut_code"].to_numpy(int)[some]


# The data, and how often the five folds are drawn anew.
SETS = {
    "wine": (table("winequality-red"), 3),
    "ERA": (table("ERA"), 3),
    "ESL": (table("ESL"), 3),
    "car": (table("car"), 3),
    "diamonds": (diamonds, 1),
}
QUICK = ("wine", "ERA", "ESL")


# ---- training --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """One training set, the rows of it that stop training, and the rows that judge."""

    x: np.ndarray
    y: np.ndarray
    fit: np.ndarray
    stop: np.ndarray
    test: np.ndarray
    setting: Setting

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1

    @property
    def start(self) -> np.ndarray:
        equal = np.zeros(self.n_classes)
        return start_scores(self.y[self.fit], self.n_classes) if self.setting.at_frequencies else equal


def by_xgboost(split: Split, arm: Arm) -> np.ndarray:
    """Raw scores of the test rows; every arm begins at the same ones."""
    data = [
        xgb.DMatrix(split.x[rows], label=split.y[rows], base_margin=np.tile(split.start, (len(rows), 1)))
        for rows in (split.fit, split.stop, split.test)
    ]
    objective = None if arm.objective == "log_score" else xgboost_objective(arm.objective)
    booster = xgb.train(
        split.setting.xgboost | {"objective": "multi:softprob", "num_class": split.n_classes},
        data[0],
        ROUNDS,
        obj=objective,
        custom_metric=xgboost_metric(arm.stop) if objective is None else objective.metric(arm.stop),
        evals=[(data[1], "stop")],
        early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )
    return booster.predict(data[2], output_margin=True, iteration_range=(0, booster.best_iteration + 1))


def by_lightgbm(split: Split, arm: Arm) -> np.ndarray:
    fit, stop = (
        lgb.Dataset(split.x[rows], split.y[rows], init_score=np.tile(split.start, (len(rows), 1)))
        for rows in (split.fit, split.stop)
    )
    own = arm.objective == "log_score"
    objective = lightgbm_objective(arm.objective)
    booster = lgb.train(
        split.setting.lightgbm
        | {"objective": "multiclass" if own else objective, "num_class": split.n_classes},
        fit,
        ROUNDS,
        valid_sets=[stop.set_reference(fit)],
        feval=lightgbm_metric(arm.stop) if own else objective.metric(arm.stop),
        callbacks=[lgb.early_stopping(PATIENCE, verbose=False)],
    )
    return booster.predict(split.x[split.test], raw_score=True) + split.start


LIBRARIES = {"XGBoost": by_xgboost, "LightGBM": by_lightgbm}


def judge(y: np.ndarray, z: np.ndarray) -> dict[str, float]:
    k = z.shape[1]
    qwk = {
        name: vx.kappa(y, vx.decide(z, costs=costs, logits=True), n_classes=k)
        for name, costs in (("QWK", None), ("QWK, Bayes decision", "quadratic"))
    }
    return {"RPS": vx.rps(y, z, logits=True), "log": vx.log_score(y, z, logits=True), **qwk}


def splits(x: np.ndarray, y: np.ndarray, repeats: int, setting: Setting = MAIN) -> list[Split]:
    drawn = []
    for seed in range(repeats):
        for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(x, y):
            inner = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(x[train], y[train])
            fit, stop = next(inner)
            drawn.append(Split(x, y, train[fit], train[stop], test, setting))
    return drawn


# ---- verdicts --------------------------------------------------------------------------------


def interval(differences: np.ndarray) -> tuple[float, float, float]:
    """Mean difference over folds and its 95% interval by the corrected resampled t test."""
    n = len(differences)
    variance = differences.var(ddof=1) * (1 / n + 1 / (FOLDS - 1))
    half = stats.t.ppf(0.975, n - 1) * np.sqrt(variance)
    mean = differences.mean()
    return mean, mean - half, mean + half


def row(*cells: object) -> None:
    print("| " + " | ".join(str(c) for c in cells) + " |", flush=True)


def span(mean: float, low: float, high: float) -> str:
    sure = "**" if low > 0 or high < 0 else ""
    return f"{sure}{mean:+.4f}{sure} ({low:+.4f} to {high:+.4f})"


def report(name: str, scores: dict[Arm, pd.DataFrame]) -> dict[tuple[Arm, str], tuple[float, float, float]]:
    usual, verdicts = scores[USUAL], {}
    for measure in usual:
        for arm in ARMS[1:]:
            verdicts[arm, measure] = interval((scores[arm][measure] - usual[measure]).to_numpy())
        cells = [span(*verdicts[arm, measure]) for arm in ARMS[1:]]
        row(name, measure, f"{usual[measure].mean():.4f}", *cells)
        name = ""
    return verdicts


def draw(verdicts: dict, means: dict) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    colours = dict(zip(ARMS[1:], ("#888888", "#0072b2", "#d55e00"), strict=True))
    for axis, measure in zip(axes, ("RPS", "log"), strict=True):
        for i, (library, name) in enumerate(verdicts):
            usual = means[library, name][measure]
            for j, arm in enumerate(ARMS[1:]):
                mean, low, high = (100 * v / usual for v in verdicts[library, name][arm, measure])
                at = i + 0.22 * (j - 1)
                label = str(arm) if i == 0 else None
                axis.plot([low, high], [at, at], color=colours[arm], lw=1.5, label=label)
                axis.plot(mean, at, "o", color=colours[arm], ms=4)
        axis.axvline(0, color="black", lw=0.8)
        axis.set_xlabel(f"{measure}: difference from the log-loss objective, %")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(verdicts)), [f"{name}, {library}" for library, name in verdicts])
    axes[0].invert_yaxis()
    axes[1].legend(frameon=False, fontsize=8)
    figure.savefig(HERE / "figures" / "boosting-objectives.png", dpi=110)


def compare_arms(folder: Path) -> None:
    verdicts, means = {}, {}
    for library, train in LIBRARIES.items():
        print(f"\n### {library}\n")
        row("data", "measure", USUAL, *(f"{arm}: difference" for arm in ARMS[1:]))
        row("---", "---", *["---:"] * len(ARMS))
        for name, (read, repeats) in SETS.items():
            drawn = splits(*read(folder), repeats)
            scores = {arm: pd.DataFrame([judge(s.y[s.test], train(s, arm)) for s in drawn]) for arm in ARMS}
            verdicts[library, name] = report(name, scores)
            means[library, name] = scores[USUAL].mean()
    draw(verdicts, means)


def compare_settings(folder: Path) -> None:
    print("\n### Other settings: RPS of the RPS objective minus that of log loss, five folds\n")
    row("library", "setting", *QUICK)
    row("---", "---", *["---:"] * len(QUICK))
    for library, train in LIBRARIES.items():
        for name, setting in OTHERS.items():
            cells = []
            for data in QUICK:
                read, _ = SETS[data]
                drawn = splits(*read(folder), 1, setting)
                losses = [
                    [judge(s.y[s.test], train(s, arm))["RPS"] for s in drawn] for arm in (ARMS[2], USUAL)
                ]
                cells.append(span(*interval(np.subtract(*losses))))
            row(library, name, *cells)


def main() -> None:
    data = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parents[1] / "shared" / "data"
    compare_arms(data / "ordinal-tabular")
    compare_settings(data / "ordinal-tabular")


if __name__ == "__main__":
    main()
