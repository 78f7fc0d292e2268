"""What each rule keeps in many training runs, and what it was worth: one row a fold, for selection.py.

The rows are means over the seeds of a fold. Their columns:

    CP/f1/pbs               test F1 of the epoch that has the lowest PBS on the validation windows
    ES/f1/pbs               the same, with early stopping; likewise patience 3/f1/pbs
    CP/log_refinement/pbs   test log score of that epoch after temperature scaling (fitted to validation)
    CP/f1/log_refinement    test F1 of the epoch with the lowest validation log score after such scaling
    CP/pearson/pbs          correlation of PBS with F1 over the epochs, validation windows
    CP/other/pbs            share of runs in which PBS keeps another epoch than Brier; of these, in
                            CP/better/pbs the test F1 is higher, in CP/worse/pbs lower
    link/..., moves/...     what is left of the correlation when the error rate is known
    sweep/f1/0.5            test F1 of the epoch kept by a weighted sum of Brier and error rate
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

import verax as vx
from selection_training import TEST, TRAIN, Problem
from verax.selection import Correlation, EarlyStopping, History

WAYS = ("ES", "CP")  # early stopping, checkpointing
PATIENCE = 10
PATIENCES = (3, 5, 10, 20)
PAIRS = (("brier", "pbs"), ("log", "pll"))
LOSSES = ("brier", "pbs", "code_pbs", "log", "pll", "zero_one")
HIGHER = ("f1", "accuracy")
# Losses after temperature scaling: cross-validated on validation windows, as deployed on test windows.
REFINED = ("brier_refinement", "log_refinement")
REPORTED = ("f1", "accuracy", "brier", "log", *REFINED)
WEIGHTS = np.round(np.linspace(0, 1, 21), 2)
PLACEBOS = 20
EARLY = 15  # epochs
DIGITS = 6


@dataclass(frozen=True)
class Runs:
    """All folds and seeds of one data set: values (folds, seeds, epochs) of every metric on both parts."""

    n_classes: int
    ratio: float
    values: dict[str, np.ndarray]

    @classmethod
    def of(cls, problem: Problem, trained: dict[str, np.ndarray]) -> Runs:
        values = {k: v for part in ("validation", "test") for k, v in with_penalties(part, trained, problem)}
        sizes = {role: (problem.folds == role).sum(axis=1).mean() for role in (TRAIN, TEST)}
        return cls(problem.n_classes, float(sizes[TEST] / sizes[TRAIN]), values)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.values["f1"].shape

    @cached_property
    def histories(self) -> list[list[History]]:
        """The validation part of each fold and seed."""
        columns = {name: v for name, v in self.values.items() if not name.startswith("test_")}
        folds, seeds, _ = self.shape
        return [
            [
                History.from_columns(
                    {name: v[fold, seed] for name, v in columns.items()}, directions={"code_pbs": "min"}
                )
                for seed in range(seeds)
            ]
            for fold in range(folds)
        ]

    def each(self, ask: Callable[[History], float]) -> np.ndarray:
        """The answer to a question about every history, (folds, seeds)."""
        return np.array([[ask(history) for history in fold] for fold in self.histories])

    def kept(self, by: str, way: str) -> np.ndarray:
        """The epoch that selection by a metric on the validation part keeps, (folds, seeds)."""
        if way == "CP":
            return self.each(lambda history: history.best(by).index)
        return self.each(lambda history: stop(history, by)[0])

    def at(self, epochs: np.ndarray, metric: str) -> np.ndarray:
        """What a metric on the test part was at these epochs, (folds, seeds)."""
        return np.take_along_axis(self.values[f"test_{metric}"], epochs[..., None], axis=-1)[..., 0]


def with_penalties(part: str, trained: dict, problem: Problem) -> Iterable[tuple[str, np.ndarray]]:
    """The metrics of a part under short names, and the penalized scores made of them."""
    prefix, k = ("test_" if part == "test" else ""), problem.n_classes
    plain = {m: trained[f"{part}_{m}"] for m in ("brier", "log", "zero_one", "f1", "accuracy")}
    plain |= {f"{m}_refinement": trained[f"{part}_scaled_{m}"] for m in ("brier", "log")}
    wrong = plain["zero_one"]
    penalized = {
        "pbs": plain["brier"] + vx.pbs.constant(k) * wrong,
        "pll": plain["log"] + vx.pll.constant(k) * wrong,
        # The published function adds the penalty of the sum of squares to their mean over classes.
        "code_pbs": plain["brier"] / k + vx.pbs.constant(k) * wrong,
    }
    return ((f"{prefix}{m}", v) for m, v in (plain | penalized).items())


def stop(history: History, by: str, patience: int = PATIENCE) -> tuple[int, int]:
    """The epoch that early stopping by a metric restores, and the one at which it stops."""
    stopping = EarlyStopping(mode="max" if by in HIGHER else "min", patience=patience)
    for value in history.values[by]:
        if stopping.step(value):
            break
    return stopping.best_epoch, stopping.epoch - 1


# ---- correlations ------------------------------------------------------------------------------


def correlation(history: History, by: str, way: str) -> tuple[float, float]:
    """Pearson and Spearman of a rule with F1, over all epochs or until the base rule has stopped."""
    base = next(pair[0] for pair in PAIRS if by in pair)
    until = history.n_epochs if way == "CP" else stop(history, base)[1] + 1
    part = History(history.epochs[:until], {c: history.values[c][:until] for c in (by, "f1")})
    found = Correlation.of(part, by, "f1")
    return found.pearson, found.spearman


def pearson(loss: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Minus the correlation along the last axis: 1 is full agreement of a loss with a score.

    NaN where one of them does not vary.
    """
    x, y = (a - a.mean(axis=-1, keepdims=True) for a in (loss, score))
    varies = (np.ptp(loss, axis=-1) > 0) & (np.ptp(score, axis=-1) > 0)
    below = np.sqrt((x**2).sum(axis=-1) * (y**2).sum(axis=-1))
    return np.where(varies, -(x * y).sum(axis=-1) / np.where(varies, below, 1.0), np.nan)


def partial(loss: np.ndarray, score: np.ndarray, given: np.ndarray) -> np.ndarray:
    """The same after both are freed of what a line in `given` explains."""
    z = given - given.mean(axis=-1, keepdims=True)
    below = np.where(np.ptp(given, axis=-1) > 0, (z**2).sum(axis=-1), np.nan)

    def rest(x: np.ndarray) -> np.ndarray:
        x = x - x.mean(axis=-1, keepdims=True)
        return x - z * ((x * z).sum(axis=-1) / below)[..., None]

    return np.where(np.ptp(score, axis=-1) > 0, pearson(rest(loss), rest(score)), np.nan)


# ---- the columns -------------------------------------------------------------------------------


def selected(runs: Runs) -> dict[str, np.ndarray]:
    """Test metrics of what each rule keeps, and of two choices that no rule makes."""
    chosen = {f"{way}/{{}}/{by}": runs.kept(by, way) for way in WAYS for by in (*LOSSES, "f1", *REFINED)}
    chosen["last/{}"] = np.full(runs.shape[:2], runs.shape[2] - 1)
    chosen["oracle/{}"] = runs.values["test_f1"].argmax(axis=-1)
    return {name.format(m): runs.at(epochs, m) for name, epochs in chosen.items() for m in REPORTED}


def moved(runs: Runs) -> dict[str, np.ndarray]:
    """How often a penalty changes which epoch is kept, and whether test F1 gains."""
    found = {}
    for way in WAYS:
        for base, penalized in PAIRS:
            a, b = runs.kept(base, way), runs.kept(penalized, way)
            gain = runs.at(b, "f1") - runs.at(a, "f1")
            answers = {"other": a != b, "better": gain > 0, "worse": gain < 0}
            found |= {f"{way}/{name}/{penalized}": answer for name, answer in answers.items()}
    return found


def patient(runs: Runs) -> dict[str, np.ndarray]:
    """Test F1 with more and less patience."""
    found = {}
    for patience in PATIENCES:
        for by in ("brier", "pbs", "log", "pll", "zero_one"):
            epochs = runs.each(lambda history, by=by, n=patience: stop(history, by, n)[0])
            found[f"patience {patience}/f1/{by}"] = runs.at(epochs, "f1")
    return found


def correlated(runs: Runs) -> dict[str, np.ndarray]:
    found = {}
    for way in WAYS:
        for by in (rule for pair in PAIRS for rule in pair):
            both = runs.each(lambda history, by=by, way=way: correlation(history, by, way))
            found |= {f"{way}/pearson/{by}": both[..., 0], f"{way}/spearman/{by}": both[..., 1]}
    return found


def linked(runs: Runs) -> dict[str, np.ndarray]:
    """How much of the correlation with F1 is the error rate."""
    v, c = runs.values, vx.pbs.constant(runs.n_classes)
    f1, brier, wrong = v["f1"], v["brier"], v["zero_one"]
    rng = np.random.default_rng(0)
    shuffled = [pearson(rng.permuted(brier, axis=-1) + c * wrong, f1) for _ in range(PLACEBOS)]
    return {
        "link/brier": pearson(brier, f1),
        "link/pbs": pearson(v["pbs"], f1),
        "link/zero_one": pearson(wrong, f1),
        "link/shuffled": np.mean(shuffled, axis=0),
        "link/borrowed": pearson(np.roll(brier, 1, axis=0) + c * wrong, f1),
        "link/partial": partial(brier, f1, wrong),
    }


def moving(runs: Runs) -> dict[str, np.ndarray]:
    """The correlation of changes from one epoch to the next, and that of early and of late epochs."""
    v, late = runs.values, runs.shape[2] // 2
    first = {by: v[by][..., :EARLY] for by in ("brier", "pbs", "zero_one", "f1")}
    found = {"moves/early/partial": partial(first["brier"], first["f1"], first["zero_one"])}
    for by in ("brier", "pbs", "zero_one"):
        found[f"moves/changes/{by}"] = pearson(np.diff(v[by]), np.diff(v["f1"]))
        found[f"moves/early/{by}"] = pearson(first[by], first["f1"])
        found[f"moves/late/{by}"] = pearson(v[by][..., late:], v["f1"][..., late:])
    return found


def swept(runs: Runs) -> dict[str, np.ndarray]:
    """Test metrics of the epoch kept by (1 - w) Brier/penalty + w error rate: Brier at 0, PBS at 0.5."""
    brier, wrong = runs.values["brier"] / vx.pbs.constant(runs.n_classes), runs.values["zero_one"]
    epochs = {w: ((1 - w) * brier + w * wrong).argmin(axis=-1) for w in WEIGHTS}
    return {f"sweep/{m}/{w}": runs.at(e, m) for w, e in epochs.items() for m in ("f1", "brier", "log")}


def summarize(runs: Runs) -> pd.DataFrame:
    """One row a fold, of means over seeds."""
    folds, seeds, epochs = runs.shape
    columns: dict[str, object] = {
        "classes": runs.n_classes,
        "seeds": seeds,
        "epochs": epochs,
        "ratio": round(runs.ratio, DIGITS),
    }
    for ask in (correlated, selected, moved, patient, linked, moving, swept):
        columns |= {name: mean_over_seeds(x) for name, x in ask(runs).items()}
    return pd.DataFrame(columns, index=pd.RangeIndex(folds, name="fold"))


def mean_over_seeds(x: np.ndarray) -> np.ndarray:
    """NaN where no seed has a value."""
    known = ~np.isnan(x.astype(float))
    number = known.sum(axis=1)
    total = np.where(known, x, 0.0).sum(axis=1)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan).round(DIGITS)


def write(frame: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, compression={"method": "gzip", "mtime": 0})


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, index_col=["trained by", "data", "fold"])
