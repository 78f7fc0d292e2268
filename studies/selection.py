"""Do penalized scores keep better checkpoints than the scores they are made of? Sets of series, 1-D networks.

    python studies/selection.py [folder with the data sets]
    python studies/selection.py --prepare windows.npz               then, where there is a GPU,
    python studies/selection_training.py windows.npz trajectories.npz --device cuda
    python studies/selection.py --trajectories trajectories.npz

The first form trains one network a fold on the three small sets (minutes on two cores); the other three
train ten a fold on all seven. Prints the tables of studies/selection.md and draws its figures. The data
are not part of the repository.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import matplotlib as mpl
import numpy as np
from scipy import stats
from selection_data import SETS, SMALL
from selection_training import TEST, TRAIN, Problem, save_problems, train

import verax as vx
from verax.figures import COLOURS, STYLES
from verax.selection import Correlation, EarlyStopping, History

mpl.use("Agg")

HERE = Path(__file__).parent
PATIENCE = 10
CONFIDENCE = 0.95
PLACEBOS = 20
# What is selected by: losses, and two metrics that are better when higher.
LOSSES = ("brier", "pbs", "code_pbs", "log", "pll", "zero_one")
HIGHER = ("f1", "accuracy")
WAYS = {"ES": "early stopping", "CP": "checkpointing"}
PAIRS = (("brier", "pbs"), ("log", "pll"))
# Curves in the folder `history` of the authors' repository, and their classes.
PUBLISHED = {"RSSI": 12, "Healthy_Older_People": 12, "User_Identification_From_Walking": 13}
SHOWN = {
    "brier": "Brier",
    "pbs": "PBS",
    "code_pbs": "PBS as in the authors' code",
    "log": "log",
    "pll": "PLL",
    "zero_one": "error rate",
    "f1": "F1",
}


@dataclass(frozen=True)
class Runs:
    """All folds and seeds of one data set: values (folds, seeds, epochs) of every metric on both parts."""

    name: str
    n_classes: int
    ratio: float
    values: dict[str, np.ndarray]

    @classmethod
    def of(cls, name: str, problem: Problem, trained: dict[str, np.ndarray]) -> Runs:
        values = {k: v for part in ("validation", "test") for k, v in with_penalties(part, trained, problem)}
        sizes = {role: (problem.folds == role).sum(axis=1).mean() for role in (TRAIN, TEST)}
        return cls(name, problem.n_classes, float(sizes[TEST] / sizes[TRAIN]), values)

    @property
    def n_folds(self) -> int:
        return self.values["val_f1"].shape[0]

    @cached_property
    def histories(self) -> list[list[History]]:
        """One history a fold and seed."""
        columns = [c for c in self.values if c.startswith("val_")]
        code = {"val_code_pbs": "min"}
        return [
            [
                History.from_columns({c: self.values[c][fold, seed] for c in columns}, directions=code)
                for seed in range(self.values["val_f1"].shape[1])
            ]
            for fold in range(self.n_folds)
        ]

    def each(self, ask: Callable[[History], float]) -> np.ndarray:
        """The answer to a question about every history, (folds, seeds)."""
        return np.array([[ask(history) for history in fold] for fold in self.histories])

    def kept(self, by: str, way: str) -> np.ndarray:
        """The epoch that selection by a metric on the validation part keeps, (folds, seeds)."""
        if way == "CP":
            return self.each(lambda history: history.best(f"val_{by}").index)
        return self.stopped(by, PATIENCE)[0]

    def stopped(self, by: str, patience: int) -> tuple[np.ndarray, np.ndarray]:
        """The best epoch before early stopping and the one at which it stops, each (folds, seeds)."""
        found = np.array([[stop(history, by, patience) for history in fold] for fold in self.histories])
        return found[..., 0], found[..., 1]

    def at(self, epochs: np.ndarray, metric: str) -> np.ndarray:
        """What a metric on the test part was at these epochs, (folds, seeds)."""
        return np.take_along_axis(self.values[f"test_{metric}"], epochs[..., None], axis=-1)[..., 0]

    def tested(self, by: str, way: str, metric: str) -> np.ndarray:
        return self.at(self.kept(by, way), metric)

    def correlation(self, by: str, way: str, kind: str = "pearson") -> np.ndarray:
        """The correlation of a rule with F1, until the base rule has stopped or over all epochs."""
        base = next((pair[0] for pair in PAIRS if by in pair), by)

        def ask(history: History) -> float:
            until = history.n_epochs if way == "CP" else stop(history, base)[1] + 1
            part = History(history.epochs[:until], {c: v[:until] for c, v in history.values.items()})
            return getattr(Correlation.of(part, f"val_{by}", "val_f1"), kind)

        return self.each(ask)


def with_penalties(part: str, trained: dict, problem: Problem) -> Iterable[tuple[str, np.ndarray]]:
    """The metrics of a part under short names, and the penalized scores made of them."""
    short, k = {"validation": "val", "test": "test"}[part], problem.n_classes
    plain = {m: trained[f"{part}_{m}"] for m in ("brier", "log", "zero_one", "f1", "accuracy")}
    wrong = plain["zero_one"]
    penalized = {
        "pbs": plain["brier"] + vx.pbs.constant(k) * wrong,
        "pll": plain["log"] + vx.pll.constant(k) * wrong,
        # The published code adds the penalty of the sum of squares to their mean over classes.
        "code_pbs": plain["brier"] / k + vx.pbs.constant(k) * wrong,
    }
    return ((f"{short}_{m}", v) for m, v in (plain | penalized).items())


def stop(history: History, by: str, patience: int = PATIENCE) -> tuple[int, int]:
    """The epoch that early stopping by a metric restores, and the one at which it stops."""
    stopping = EarlyStopping(mode="max" if by in HIGHER else "min", patience=patience)
    for value in history.values[f"val_{by}"]:
        if stopping.step(value):
            break
    return stopping.best_epoch, stopping.epoch - 1


# ---- intervals ---------------------------------------------------------------------------------


def over_folds(x: np.ndarray, ratio: float) -> tuple[float, float]:
    """The mean over folds and seeds, and half of its interval.

    Seeds are averaged within a fold. Folds share their rows, so the variance is that of Nadeau and
    Bengio (2003): s^2 (1/folds + test/training) with folds - 1 degrees of freedom.
    """
    folds = np.nanmean(x, axis=1)
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(folds) - 1) * folds.std(ddof=1)
    return float(folds.mean()), float(half * np.sqrt(1 / len(folds) + ratio))


def over_sets(means: list[float]) -> tuple[float, float]:
    """The mean over data sets and half of its t interval."""
    x = np.array(means)
    if len(x) < 2:
        return float(x.mean()), np.nan
    return float(x.mean()), float(
        stats.t.ppf((1 + CONFIDENCE) / 2, len(x) - 1) * x.std(ddof=1) / len(x) ** 0.5
    )


def span(found: tuple[float, float], digits: int = 3, scale: float = 1.0) -> str:
    mean, half = found[0] * scale, found[1] * scale
    return f"{mean:+.{digits}f} ± {half:.{digits}f}" if np.isfinite(half) else f"{mean:+.{digits}f}"


def row(*cells: object) -> None:
    print("| " + " | ".join(str(c) for c in cells) + " |")


def header(*cells: str, left: int = 1) -> None:
    row(*cells)
    row(*["---"] * left, *["---:"] * (len(cells) - left))


# ---- tables ------------------------------------------------------------------------------------


def table_pairs(
    sets: list[Runs], value: Callable[[Runs, str, str], np.ndarray], scale: float, digits: int
) -> None:
    """The layout of the paper's Tables 2 and 3: a score, the same with a penalty, and the difference."""
    header("data", "", "Brier", "PBS", "PBS − Brier", "log", "PLL", "PLL − log", left=2)
    for way in WAYS:
        pooled: dict[str, list[float]] = {base: [] for base, _ in PAIRS}
        for runs in sets:
            cells: list[str] = []
            for base, penalized in PAIRS:
                a, b = value(runs, base, way), value(runs, penalized, way)
                cells += [f"{np.nanmean(x) * scale:.{digits}f}" for x in (a, b)]
                cells.append(span(over_folds(b - a, runs.ratio), digits, scale))
                pooled[base].append(float(np.nanmean(b - a)))
            row(runs.name, way, *cells)
        means = [span(over_sets(pooled[base]), digits, scale) for base, _ in PAIRS]
        row("**all sets**", way, "", "", means[0], "", "", means[1])


def table_proper(sets: list[Runs], way: str) -> None:
    """What else the penalty changes: differences in accuracy and in the proper scores, on test windows."""
    metrics = ("accuracy", "brier", "log")
    header("data", *(f"{p} − {b}: {m}" for b, p in (("Brier", "PBS"), ("log", "PLL")) for m in metrics))
    pooled: dict[tuple[str, str], list[float]] = {(b, m): [] for b, _ in PAIRS for m in metrics}
    for runs in sets:
        cells = []
        for base, penalized in PAIRS:
            for m in metrics:
                x = runs.tested(penalized, way, m) - runs.tested(base, way, m)
                pooled[base, m].append(float(x.mean()))
                scale = 100 if m == "accuracy" else 1
                cells.append(span(over_folds(x, runs.ratio), 2 if scale > 1 else 4, scale))
        row(runs.name, *cells)
    row(
        "**all sets**",
        *(span(over_sets(x), *((2, 100) if m == "accuracy" else (4, 1))) for (_, m), x in pooled.items()),
    )


def table_baselines(sets: list[Runs], way: str) -> None:
    """Selection by anything, the error rate alone among them, against selection by Brier."""
    header("selected by", "F1", "F1 − Brier's", "accuracy − Brier's", "Brier − Brier's", "log − Brier's")
    last = {
        "the last epoch": lambda r: np.full(r.values["val_f1"].shape[:2], r.values["val_f1"].shape[2] - 1)
    }
    best = {"test F1 itself (cheating)": lambda r: r.values["test_f1"].argmax(axis=-1)}
    rules = {shown: (lambda r, by=by: r.kept(by, way)) for by, shown in SHOWN.items()}
    for shown, choose in (rules | last | best).items():
        epochs = [choose(runs) for runs in sets]
        cells = [
            f"{100 * np.mean([runs.at(e, 'f1').mean() for runs, e in zip(sets, epochs, strict=True)]):.2f}"
        ]
        for metric, digits, scale in (("f1", 2, 100), ("accuracy", 2, 100), ("brier", 4, 1), ("log", 4, 1)):
            means = [
                float((runs.at(e, metric) - runs.tested("brier", way, metric)).mean())
                for runs, e in zip(sets, epochs, strict=True)
            ]
            cells.append("" if shown == "Brier" else span(over_sets(means), digits, scale))
        row(shown, *cells)


def table_epochs(sets: list[Runs]) -> None:
    """How often a penalty changes which epoch is kept, and what the change is worth."""
    header(
        "data",
        "",
        "rule",
        "runs",
        "another epoch kept",
        "epochs apart",
        "later",
        "F1 better",
        "worse",
        "equal",
        left=3,
    )
    for runs in sets:
        for way in WAYS:
            for base, penalized in PAIRS:
                a, b = runs.kept(base, way), runs.kept(penalized, way)
                other = a != b
                gain = (runs.at(b, "f1") - runs.at(a, "f1"))[other]
                apart = f"{np.abs(b - a)[other].mean():.1f}" if other.any() else "-"
                counts = [int(x.sum()) for x in ((b > a)[other], gain > 0, gain < 0, gain == 0)]
                shown = f"{SHOWN[penalized]} for {SHOWN[base]}"
                row(runs.name, way, shown, a.size, f"{100 * other.mean():.0f} %", apart, *counts)


def table_patience(sets: list[Runs]) -> None:
    """Early stopping with more and less patience, with the best and with the last weights kept: test F1."""
    header("patience", "weights", "PBS − Brier", "PLL − log", "error rate − Brier", left=2)
    for patience in (3, 5, 10, 20):
        for place, weights in enumerate(("best", "last")):
            cells = []
            for base, other in (*PAIRS, ("brier", "zero_one")):
                gains = []
                for runs in sets:
                    a, b = (runs.stopped(by, patience)[place] for by in (base, other))
                    gains.append(float((runs.at(b, "f1") - runs.at(a, "f1")).mean()))
                cells.append(span(over_sets(gains), 2, 100))
            row(patience, weights, *cells)


def table_error_rate(sets: list[Runs]) -> None:
    """How much of the correlation with F1 is the error rate."""
    header(
        "data", "Brier", "PBS", "PBS of the code", "error rate alone", "shuffled Brier, penalized",
        "another fold's Brier, penalized", "Brier or PBS, error rate given", "F1 on error rate: R²",
    )  # fmt: skip
    columns = []
    for runs in sets:
        v, c = runs.values, vx.pbs.constant(runs.n_classes)
        f1, brier, wrong = v["val_f1"], v["val_brier"], v["val_zero_one"]
        rng = np.random.default_rng(0)
        shuffled = [pearson(rng.permuted(brier, axis=-1) + c * wrong, f1) for _ in range(PLACEBOS)]
        found = [
            pearson(brier, f1),
            pearson(v["val_pbs"], f1),
            pearson(v["val_code_pbs"], f1),
            pearson(wrong, f1),
            np.mean(shuffled, axis=0),
            pearson(np.roll(brier, 1, axis=0) + c * wrong, f1),
            partial(brier, f1, wrong),
            pearson(wrong, f1) ** 2,
        ]
        columns.append([float(np.nanmean(x)) for x in found])
        row(runs.name, *(f"{x:.3f}" for x in columns[-1]))
    row("**all sets**", *(f"{x:.3f}" for x in np.mean(columns, axis=0)))


def table_movement(sets: list[Runs]) -> None:
    """The same from one epoch to the next, and over the second half: without the common rise."""
    header("data", *(f"{x}: {y}" for y in ("changes", "second half") for x in ("Brier", "PBS", "error rate")),
           "share of PBS's variance that is the penalty")  # fmt: skip
    columns = []
    for runs in sets:
        v, c = runs.values, vx.pbs.constant(runs.n_classes)
        names = ("val_brier", "val_pbs", "val_zero_one")
        late = v["val_f1"].shape[-1] // 2
        changes = [pearson(np.diff(v[n]), np.diff(v["val_f1"])) for n in names]
        second = [pearson(v[n][..., late:], v["val_f1"][..., late:]) for n in names]
        pbs, penalty = (x - x.mean(axis=-1, keepdims=True) for x in (v["val_pbs"], c * v["val_zero_one"]))
        share = (pbs * penalty).sum(axis=-1) / (pbs**2).sum(axis=-1)
        columns.append([float(np.nanmean(x)) for x in (*changes, *second, share)])
        row(runs.name, *(f"{x:.3f}" for x in columns[-1]))
    row("**all sets**", *(f"{x:.3f}" for x in np.mean(columns, axis=0)))


def pearson(loss: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Minus the correlation along the last axis: 1 is full agreement of a loss with a score."""
    x, y = (a - a.mean(axis=-1, keepdims=True) for a in (loss, score))
    with np.errstate(invalid="ignore"):
        return -(x * y).sum(axis=-1) / np.sqrt((x**2).sum(axis=-1) * (y**2).sum(axis=-1))


def partial(loss: np.ndarray, score: np.ndarray, given: np.ndarray) -> np.ndarray:
    """The same after both are freed of what a line in `given` explains."""
    z = given - given.mean(axis=-1, keepdims=True)

    def rest(x: np.ndarray) -> np.ndarray:
        x = x - x.mean(axis=-1, keepdims=True)
        return x - z * ((x * z).sum(axis=-1) / (z**2).sum(axis=-1))[..., None]

    return pearson(rest(loss), rest(score))


def table_published(folder: Path) -> None:
    """The curves behind the paper's Figure 3: their penalty gives the error rate away."""
    header("curve", "Brier", "PBS", "error rate alone", "Brier or PBS, error rate given",
           "best epoch by Brier", "PBS", "error rate", "F1")  # fmt: skip
    for name, k in PUBLISHED.items():
        found = History.from_csv(folder / f"{name}.csv", directions={"esl": "min", "pesl": "min"})
        brier, pbs, f1 = (found.values[column] for column in ("esl", "pesl", "f1"))
        # Means over classes, so the penalty is (K - 1) / K^2, that of the paper's Algorithm 2.
        wrong = (pbs - brier) * k / vx.pbs.constant(k)
        columns = {"brier": brier, "pbs": pbs, "zero_one": wrong, "f1": f1}
        choice = History.from_columns(columns).select(rules=["brier", "pbs", "zero_one"], against="f1")
        moves = [choice.correlation(rule, "f1").pearson for rule in choice.rules]
        rest = float(partial(brier, f1, wrong))
        best = [choice.best[metric].epoch for metric in columns]
        row(name, *(f"{x:.3f}" for x in (*moves, rest)), *best)


# ---- figures -----------------------------------------------------------------------------------


def sweep(runs: Runs, weights: np.ndarray, metric: str) -> np.ndarray:
    """A test metric at the epoch kept by (1 - w) Brier/penalty + w error rate, less Brier's, for each w."""
    constant = vx.pbs.constant(runs.n_classes)
    brier, wrong = runs.values["val_brier"] / constant, runs.values["val_zero_one"]
    found = [runs.at(((1 - w) * brier + w * wrong).argmin(axis=-1), metric).mean() for w in weights]
    return np.array(found) - found[0]


def draw_sweep(sets: list[Runs], path: Path) -> None:
    """From Brier to the error rate alone: what each weight of the penalty is worth on test windows."""
    import matplotlib.pyplot as plt

    weights = np.linspace(0, 1, 41)
    panels = (("f1", 100, "F1, points"), ("brier", 1, "Brier"), ("log", 1, "log score"))
    figure, axes = plt.subplots(1, 3, figsize=(11.5, 4.2), layout="constrained")
    for ax, (metric, scale, title) in zip(axes, panels, strict=True):
        lines = [scale * sweep(runs, weights, metric) for runs in sets]
        for i, (runs, line) in enumerate(zip(sets, lines, strict=True)):
            style = STYLES[i // len(COLOURS[:6])]
            ax.plot(weights, line, color=COLOURS[i % 6], linestyle=style, linewidth=1, label=runs.name)
        ax.plot(weights, np.mean(lines, axis=0), color="black", linewidth=2.2, label="mean")
        ax.axhline(0, color="#888888", linewidth=0.7)
        ax.axvline(0.5, color="#888888", linewidth=0.7, linestyle=":")
        better = "higher" if metric == "f1" else "lower"
        ax.set_title(f"test {title} ({better} is better)", loc="left", fontsize=10)
        ax.set_xticks([0, 0.5, 1], ["Brier", "PBS", "error rate"])
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("difference from selection by Brier")
    axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_history(runs: Runs, path: Path) -> None:
    """The first run of a data set in the manner of the paper's Figure 3."""
    import matplotlib.pyplot as plt

    selection = runs.histories[0][0].select(rules=["val_brier", "val_pbs", "val_zero_one"], against="val_f1")
    figure = selection.plot()
    figure.savefig(path, dpi=110)
    plt.close(figure)


# ---- all of it ---------------------------------------------------------------------------------


def report(sets: list[Runs], loss: str) -> None:
    print(f"\n## Trained by the {'log score' if loss == 'log' else 'Brier score'}\n")
    for runs in sets:
        folds, seeds, epochs = runs.values["val_f1"].shape
        print(f"- {runs.name}: {runs.n_classes} classes, {folds} folds, {seeds} seeds, {epochs} epochs")
    tables: dict[str, Callable[[], None]] = {
        "Correlation with F1 over epochs, validation (their Table 2)": lambda: table_pairs(
            sets, Runs.correlation, 1, 3
        ),
        "The same by ranks (Spearman)": lambda: table_pairs(
            sets, lambda runs, by, way: runs.correlation(by, way, "spearman"), 1, 3
        ),
        "Test F1 of the model kept, in percent (their Table 3)": lambda: table_pairs(
            sets, lambda runs, by, way: runs.tested(by, way, "f1"), 100, 2
        ),
        "Accuracy and proper scores of the model kept, checkpointing": lambda: table_proper(sets, "CP"),
        "How often another model is kept": lambda: table_epochs(sets),
        "Selection by other things, checkpointing": lambda: table_baselines(sets, "CP"),
        "Selection by other things, early stopping": lambda: table_baselines(sets, "ES"),
        "Early stopping with other patience, differences of test F1": lambda: table_patience(sets),
        "How much of the correlation is the error rate": lambda: table_error_rate(sets),
        "Without the common rise": lambda: table_movement(sets),
    }
    for title, table in tables.items():
        print(f"\n### {title}\n")
        table()


def load(path: Path, problems: dict[str, Problem]) -> dict[str, list[Runs]]:
    """What selection_training.py wrote, by the loss trained with."""
    found: dict[str, dict[str, dict[str, np.ndarray]]] = {}
    with np.load(path) as archive:
        for key in archive.files:
            name, loss, metric = key.split("/")
            if name in problems:
                found.setdefault(loss, {}).setdefault(name, {})[metric] = archive[key]
    return {loss: [Runs.of(n, problems[n], t) for n, t in of.items()] for loss, of in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--prepare", type=Path, help="write the windows of all sets here, and stop")
    parser.add_argument("--trajectories", type=Path, help="read what selection_training.py wrote")
    parser.add_argument(
        "--histories", type=Path, help="the authors' published curves: a table of them, and stop"
    )
    parser.add_argument("--sets", nargs="*", help="names of data sets")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=30)
    args = parser.parse_args()
    if args.histories:
        table_published(args.histories)
        return
    names = args.sets or (tuple(SETS) if args.prepare or args.trajectories else SMALL)
    problems = {name: SETS[name].read(args.data / "spatio-temporal") for name in names}
    if args.prepare:
        save_problems(args.prepare, problems)
        return
    if args.trajectories:
        trained = load(args.trajectories, problems)
    else:
        options = {"loss": "log", "seeds": args.seeds, "epochs": args.epochs, "seed": 0, "device": "cpu"}
        trained = {"log": [Runs.of(n, p, train(p, **options)) for n, p in problems.items()]}
    for loss, sets in trained.items():
        report(sets, loss)
    (HERE / "figures").mkdir(exist_ok=True)
    draw_sweep(trained["log"], HERE / "figures" / "selection-penalty.png")
    draw_history(trained["log"][-1], HERE / "figures" / "selection-history.png")


if __name__ == "__main__":
    main()
