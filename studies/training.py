"""What is worth training with, and what is worth stopping with? Twelve small data sets from packages.

`python studies/training.py` prints the tables of training.md, in about three minutes on one core. It needs
torch, scikit-learn and scikit-survival, and no other data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import sksurv.datasets
import torch
from scipy import stats
from sklearn import datasets

import verax as vx
from recording import Data, run
from verax.adapters.torch import Loss

SEEDS, EPOCHS, PATIENCE = 10, 60, 10
HIDDEN, RATE, MOST_ROWS = 32, 0.01, 1500
PARTS = 0.5, 0.25  # for training and validation; the rest is the test
LOSSES = ("log_score", "brier", "pbs", "pll", "rps", "sa_rps")
OF_ORDER = ("rps", "sa_rps")
# The logarithms of inverse temperatures that are tried.
TEMPERATURES = np.linspace(-2.0, 1.5, 15)
SCALED = "log after scaling"
SHARES = ("accuracy", "macro F1")
METRICS = ("log_score", "brier", "pbs", "pll", "rps", "sa_rps", *SHARES, SCALED)
JUDGES = ("log_score", "brier", "rps", *SHARES, SCALED)


@dataclass(frozen=True)
class Table:
    """Features and classes of a data set; the classes may be ordered."""

    x: np.ndarray
    y: np.ndarray
    ordered: bool

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1


def of_frame(frame: pd.DataFrame, y: np.ndarray, *, ordered: bool = True) -> Table:
    """A table of numbers and categories, without rows that miss one."""
    known = frame.notna().all(axis=1).to_numpy() & ~pd.isna(y)
    x = pd.get_dummies(frame[known], drop_first=True).to_numpy(float)
    return Table(x, np.unique(np.asarray(y)[known], return_inverse=True)[1], ordered)


def fifths(values: np.ndarray) -> np.ndarray:
    """The fifth of all values in which each lies."""
    return np.searchsorted(np.quantile(values, [0.2, 0.4, 0.6, 0.8]), values)


def bundled(load: Callable[..., object]) -> Table:
    return Table(*load(return_X_y=True), ordered=False)


def few_digits() -> Table:
    x, y = datasets.load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:400]
    return Table(x[rows], y[rows], ordered=False)


def tumours_by_size() -> Table:
    """Fifths of the radius of tumours, from features that are no sizes."""
    data = datasets.load_breast_cancer(as_frame=True).data
    sizes = [c for c in data if any(word in c for word in ("radius", "perimeter", "area"))]
    return of_frame(data.drop(columns=sizes), fifths(data["mean radius"]))


def wines_by_colour() -> Table:
    data = datasets.load_wine(as_frame=True).data
    return of_frame(data.drop(columns="color_intensity"), fifths(data["color_intensity"]))


def cells_of_tumours() -> Table:
    x, outcome = sksurv.datasets.load_veterans_lung_cancer()
    frame = x.drop(columns="Celltype").assign(days=outcome["Survival_in_days"])
    return of_frame(frame, x["Celltype"].astype(str), ordered=False)


def grades_of_tumours() -> Table:
    x, _ = sksurv.datasets.load_gbsg2()
    return of_frame(x.drop(columns="tgrade"), x["tgrade"].astype(str).str.len().to_numpy())


def patients_by_weight() -> Table:
    x, _ = sksurv.datasets.load_whas500()
    return of_frame(x.drop(columns="bmi").astype(float), fifths(x["bmi"].astype(float).to_numpy()))


def people_by_age() -> Table:
    x, _ = sksurv.datasets.load_flchain()
    frame = x[["creatinine", "kappa", "lambda", "mgus", "sex"]]
    return of_frame(frame, np.minimum(x["age"].to_numpy(float) // 10, 9))


SETS: dict[str, Callable[[], Table]] = {
    "iris": lambda: bundled(datasets.load_iris),
    "wine": lambda: bundled(datasets.load_wine),
    "breast cancer": lambda: bundled(datasets.load_breast_cancer),
    "digits": lambda: bundled(datasets.load_digits),
    "400 digits": few_digits,
    "lung cancer cells": cells_of_tumours,
    "diabetes in fifths": lambda: of_frame(
        *(lambda d: (d.data, fifths(d.target)))(datasets.load_diabetes(as_frame=True))
    ),
    "tumours by size": tumours_by_size,
    "wines by colour": wines_by_colour,
    "grades of tumours": grades_of_tumours,
    "patients by weight": patients_by_weight,
    "people by age": people_by_age,
}


# ---- training


@dataclass(frozen=True)
class Runs:
    """Metrics of all runs on validation and test rows: arrays (losses, seeds, epochs)."""

    losses: tuple[str, ...]
    validation: dict[str, np.ndarray]
    test: dict[str, np.ndarray]


@cache
def trained(name: str) -> Runs:
    """Small networks, one for each loss and seed; those of a seed have the same rows, start and batches."""
    table = SETS[name]()
    losses = tuple(loss for loss in LOSSES if table.ordered or loss not in OF_ORDER)
    splits = [split(table, seed) for seed in range(SEEDS)]
    (x, y), *others = (
        [np.stack(parts) for parts in zip(*part, strict=True)] for part in zip(*splits, strict=True)
    )
    x = torch.tensor(x, dtype=torch.float32).repeat(len(losses), 1, 1)
    y = torch.tensor(y)
    networks = start(x.shape[2], table.n_classes, len(losses))
    optimizer = torch.optim.Adam(networks, lr=RATE)
    found: list[list[dict[str, np.ndarray]]] = []
    rng, n = np.random.default_rng(0), x.shape[1]
    size = 32 if n < 500 else 64
    rules = [Loss(loss) for loss in losses]
    for _ in range(EPOCHS):
        order = np.stack([rng.permutation(n) for _ in range(SEEDS)])
        for begin in range(0, n - size + 1, size):
            rows = torch.tensor(order[:, begin : begin + size])
            batch = x[torch.arange(len(x))[:, None], rows.repeat(len(losses), 1)]
            target = y.gather(1, rows).reshape(-1)
            logits = outputs(networks, batch).reshape(len(losses), -1, table.n_classes)
            # Each network moves by the gradient of its own loss alone.
            total = sum(loss(z, target) for loss, z in zip(rules, logits, strict=True)) * SEEDS
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
        found.append(measured(networks, others, table, len(losses)))
    return Runs(losses, *(gathered([epoch[part] for epoch in found]) for part in range(2)))


def split(table: Table, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows for training, validation and testing, standardised by those for training."""
    rows = np.random.default_rng(seed).permutation(len(table.y))[:MOST_ROWS]
    ends = np.cumsum([int(part * len(rows)) for part in PARTS])
    first = table.x[rows[: ends[0]]]
    middle, spread = first.mean(axis=0), first.std(axis=0)
    x = (table.x - middle) / np.where(spread > 0, spread, 1.0)
    return [(x[part].clip(-5, 5), table.y[part]) for part in np.split(rows, ends)]


def start(n_features: int, n_classes: int, n_losses: int) -> list[torch.Tensor]:
    """The numbers of all networks; those of a seed begin alike."""
    torch.manual_seed(0)
    first = torch.randn(SEEDS, n_features, HIDDEN) / n_features**0.5
    second = torch.randn(SEEDS, HIDDEN, n_classes) / HIDDEN**0.5
    shapes = first, torch.zeros(SEEDS, 1, HIDDEN), second, torch.zeros(SEEDS, 1, n_classes)
    return [w.repeat(n_losses, 1, 1).requires_grad_() for w in shapes]


def outputs(networks: list[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    a, b, c, d = networks
    return torch.relu(x @ a + b) @ c + d


def gathered(epochs: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.stack([epoch[name] for epoch in epochs], axis=-1) for name in epochs[0]}


def measured(
    networks: list[torch.Tensor], parts: Iterable[list[np.ndarray]], table: Table, n_losses: int
) -> list[dict[str, np.ndarray]]:
    """The metrics of all networks on validation and test rows, (losses, seeds).

    The temperature is that of the lowest log score on the validation rows.
    """
    found, chosen = [], None
    for x, y in parts:
        with torch.no_grad():
            z = outputs(networks, torch.tensor(x, dtype=torch.float32).repeat(n_losses, 1, 1))
        rows, target = z.double().numpy().reshape(-1, table.n_classes), np.tile(y, (n_losses, 1))
        names = [name for name in METRICS[:6] if table.ordered or name not in OF_ORDER]
        own = {
            name: vx.rules.RULES[name].samples(target.reshape(-1), rows, logits=True).reshape(target.shape)
            for name in names
        }
        own = {name: losses.mean(axis=1) for name, losses in own.items()}
        own["accuracy"], own["macro F1"] = decided(rows.argmax(axis=1).reshape(target.shape), target)
        scaled = np.stack(
            [
                vx.log_score.samples(target.reshape(-1), rows * np.exp(t), logits=True)
                .reshape(target.shape)
                .mean(axis=1)
                for t in TEMPERATURES
            ]
        )
        chosen = scaled.argmin(axis=0) if chosen is None else chosen
        own[SCALED] = scaled[chosen, np.arange(len(chosen))]
        found.append({name: values.reshape(n_losses, SEEDS) for name, values in own.items()})
    return found


def decided(decisions: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Accuracy and macro F1 of each network; classes that neither happen nor are named are left out."""
    k = int(max(decisions.max(), y.max())) + 1
    f1 = []
    for named, happened in zip(decisions, y, strict=True):
        both = np.bincount(named, minlength=k) + np.bincount(happened, minlength=k)
        right = np.bincount(happened[named == happened], minlength=k)
        f1.append(np.mean(2 * right[both > 0] / both[both > 0]))
    return (decisions == y).mean(axis=1), np.array(f1)


# ---- which epoch is kept, and what it is worth


def kept(values: np.ndarray, name: str, way: str) -> np.ndarray:
    """The epoch that a metric keeps, of each run: the best one, or the best before it stops to improve."""
    values = -values if name in SHARES else values
    if way == "checkpoint":
        return values.argmin(axis=-1)
    best, at = np.full(values.shape[:-1], np.inf), np.zeros(values.shape[:-1], int)
    for epoch in range(values.shape[-1]):
        better = (values[..., epoch] < best) & (epoch - at <= PATIENCE)
        best, at = np.where(better, values[..., epoch], best), np.where(better, epoch, at)
    return at


def worth(runs: Runs, judge: str, by: str, way: str = "checkpoint") -> np.ndarray:
    """The test value of each loss, in the mean over seeds, at the epochs that a metric keeps."""
    at = kept(runs.validation[by], by, way)
    return np.take_along_axis(runs.test[judge], at[..., None], axis=-1)[..., 0].mean(axis=1)


def difference(judge: str, value: float, usual: float) -> float:
    """Percent that are lost: of a loss as logarithm of a ratio, of accuracy and F1 as points."""
    return 100 * (usual - value if judge in SHARES else float(np.log(value / usual)))


def cell(differences: list[float]) -> str:
    """The mean over data sets with its t interval; bold where that excludes zero."""
    if len(differences) < 3:
        return ""
    mean, error = np.mean(differences), np.std(differences, ddof=1) / len(differences) ** 0.5
    half = stats.t.ppf(0.975, len(differences) - 1) * error
    text = f"{mean:+.1f} ({mean - half:+.1f} to {mean + half:+.1f})"
    return f"**{text}**" if abs(mean) > half else text


def training(_: Data) -> None:
    """What each loss is worth against cross entropy, where the epoch is kept by what will judge."""
    print("| trained by | data sets |", " | ".join(JUDGES), "|")
    print("|---|---:|" + "---:|" * len(JUDGES))
    for loss in LOSSES[1:]:
        for kind, ordered in (("ordered", True), ("unordered", False)):
            sets = [trained(name) for name in SETS if (trained(name).losses == LOSSES) == ordered]
            sets = [runs for runs in sets if loss in runs.losses]
            if not sets:
                continue
            cells = []
            for judge in JUDGES:
                values = [worth(runs, judge, judge) for runs in sets if judge in runs.test]
                places = [runs.losses.index(loss) for runs in sets]
                own = [difference(judge, v[j], v[0]) for v, j in zip(values, places, strict=False)]
                cells.append(cell(own))
            print(f"| {loss} | {len(sets)} {kind} |", " | ".join(cells), "|")


def stopping(_: Data) -> None:
    """What each metric keeps, against the checkpoint of the lowest validation log score."""
    print("| kept by | way |", " | ".join(JUDGES), "|")
    print("|---|---|" + "---:|" * len(JUDGES))
    for way in ("checkpoint", "early stopping"):
        for by in METRICS:
            cells = []
            for judge in JUDGES:
                sets = [trained(name) for name in SETS]
                sets = [runs for runs in sets if judge in runs.test and by in runs.validation]
                own = []
                for runs in sets:
                    # By proper losses, which nobody has a reason not to train with.
                    places = [runs.losses.index(loss) for loss in ("log_score", "brier")]
                    usual, value = worth(runs, judge, "log_score"), worth(runs, judge, by, way)
                    own.append(float(np.mean([difference(judge, value[j], usual[j]) for j in places])))
                cells.append(cell(own))
            print(f"| {by} | {way} |", " | ".join(cells), "|")


def sizes(_: Data) -> None:
    """The data sets, and the test values of cross entropy at the checkpoint of its own."""
    print("| data | rows | classes | ordered | log_score | accuracy | epoch kept |")
    print("|---|---:|---:|---|---:|---:|---:|")
    for name, read in SETS.items():
        table, runs = read(), trained(name)
        log, right = (worth(runs, judge, "log_score")[0] for judge in ("log_score", "accuracy"))
        epoch = kept(runs.validation["log_score"], "log_score", "checkpoint")[0].mean() + 1
        order = "yes" if table.ordered else "no"
        rows = min(len(table.y), MOST_ROWS)
        print(f"| {name} | {rows} | {table.n_classes} | {order} | {log:.3f} | {right:.3f} | {epoch:.0f} |")


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(__file__, {"training": training, "stopping": stopping, "sizes": sizes})
