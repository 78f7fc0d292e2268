"""Do penalized scores keep better checkpoints than the scores they are made of? Sets of series, 1-D networks.

    python studies/selection.py                      the tables of studies/selection.md from results/
    python studies/selection.py FOLDER               trains a small version on the CPU: minutes
    python studies/selection.py FOLDER --prepare windows.npz                           then, with a GPU,
    python studies/selection_training.py windows.npz trajectories.npz --device cuda    and
    python studies/selection.py FOLDER --trajectories trajectories.npz                 for all seven sets
    python studies/selection.py --histories FOLDER   the authors' published curves

FOLDER holds the data sets, or the authors' folder `history`; neither is part of the repository. The last but
one rewrites results/selection.csv.gz and the figures.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from scipy import stats

from selection_data import SETS, SMALL
from selection_runs import (
    EARLY,
    PAIRS,
    PATIENCES,
    WAYS,
    WEIGHTS,
    Runs,
    partial,
    pearson,
    read,
    summarize,
    write,
)
from selection_training import save_problems, train
from verax.display.plots import COLOURS
from verax.selection import History

mpl.use("Agg")

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "selection.csv.gz"
CONFIDENCE = 0.95
SHOWN = {
    "brier": "Brier",
    "pbs": "PBS",
    "code_pbs": "PBS as the published function has it",
    "log": "log",
    "pll": "PLL",
    "zero_one": "error rate",
    "f1": "F1",
    "log_refinement": "refinement (log)",
    "brier_refinement": "refinement (Brier)",
}


# ---- intervals ---------------------------------------------------------------------------------


def over_folds(x: pd.Series, ratio: float) -> tuple[float, float]:
    """The mean over folds and half of its interval.

    Folds share their rows, so the variance is that of Nadeau and Bengio (2003): s^2 (1/folds +
    test/training), with folds - 1 degrees of freedom. Folds without a value are left out.
    """
    x = x.dropna()
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(x) - 1) * x.std()
    return float(x.mean()), float(half * np.sqrt(1 / len(x) + ratio))


def over_sets(x: pd.Series) -> tuple[float, float]:
    """The mean over data sets of their means over folds, and half of its t interval."""
    with np.errstate(invalid="ignore"):
        means = x.groupby("data").mean()
        half = stats.t.ppf((1 + CONFIDENCE) / 2, len(means) - 1) * means.std() / len(means) ** 0.5
    return float(means.mean()), float(half)


def span(found: tuple[float, float], digits: int = 3, scale: float = 1.0) -> str:
    mean, half = found[0] * scale, found[1] * scale
    if np.isinf(mean):
        return "infinite"
    return f"{mean:+.{digits}f} ± {half:.{digits}f}"


def row(*cells: object) -> None:
    print("| " + " | ".join(str(c) for c in cells) + " |")


def header(title: str, *cells: str, left: int = 1) -> None:
    print(f"\n### {title}\n")
    row(*cells)
    row(*["---"] * left, *["---:"] * (len(cells) - left))


def sets(frame: pd.DataFrame) -> Iterable[tuple[str, pd.DataFrame]]:
    return frame.groupby("data", sort=False)


# ---- tables ------------------------------------------------------------------------------------


def table_pairs(frame: pd.DataFrame, title: str, what: str, scale: float, digits: int) -> None:
    """The layout of the paper's Tables 2 and 3: a score, the same with a penalty, and the difference."""
    header(title, "data", "", "Brier", "PBS", "PBS − Brier", "log", "PLL", "PLL − log", left=2)
    for way in WAYS:
        for name, folds in sets(frame):
            cells: list[str] = []
            for pair in PAIRS:
                a, b = (folds[f"{way}/{what}/{by}"] for by in pair)
                cells += [f"{x.mean() * scale:.{digits}f}" for x in (a, b)]
                cells.append(span(over_folds(b - a, folds["ratio"].iloc[0]), digits, scale))
            row(name, way, *cells)
        gains = [span(over_sets(gain(frame, f"{way}/{what}", *pair)), digits, scale) for pair in PAIRS]
        row("**all sets**", way, "", "", gains[0], "", "", gains[1])


def gain(frame: pd.DataFrame, what: str, base: str, other: str) -> pd.Series:
    return frame[f"{what}/{other}"] - frame[f"{what}/{base}"]


def table_moved(frame: pd.DataFrame) -> None:
    """How often a penalty changes which epoch is kept, and in which direction test F1 goes."""
    cells = [f"{p}: {x}" for p in ("PBS", "PLL") for x in ("another epoch kept", "F1 better", "F1 worse")]
    header("How often another model is kept, share of runs", "data", "", *cells, left=2)
    for way in WAYS:
        for name, folds in (*sets(frame), ("**all sets**", frame.groupby("data").mean())):
            shares = [folds[f"{way}/{x}/{p}"].mean() for _, p in PAIRS for x in ("other", "better", "worse")]
            row(name, way, *(f"{100 * x:.0f} %" for x in shares))


def table_choices(frame: pd.DataFrame) -> None:
    """Selection by anything, the error rate alone among them, against selection by Brier."""
    header("Selection by other things, differences from selection by Brier, all sets", "kept by",
           "CP: F1", "CP: accuracy", "CP: Brier", "CP: log", "ES: F1")  # fmt: skip
    names = {shown: ("CP/{}/" + by, "ES/{}/" + by) for by, shown in SHOWN.items() if by != "brier"}
    names["the last epoch"] = ("last/{}",) * 2
    names["the best test F1 (cheating)"] = ("oracle/{}",) * 2
    for shown, (checkpoint, stopped) in names.items():
        cells = []
        for metric, digits, scale in (("f1", 2, 100), ("accuracy", 2, 100), ("brier", 4, 1), ("log", 4, 1)):
            x = frame[checkpoint.format(metric)] - frame[f"CP/{metric}/brier"]
            cells.append(span(over_sets(x), digits, scale))
        x = frame[stopped.format("f1")] - frame["ES/f1/brier"]
        row(shown, *cells, span(over_sets(x), 2, 100))


def table_refinement(frame: pd.DataFrame) -> None:
    """Models that are recalibrated before use: how good is the one that each monitor keeps."""
    cells = [f"{way}: {x} after scaling" for way in WAYS for x in ("log", "Brier")]
    header("Recalibrated models, differences from selection by log, all sets", "kept by", *cells, "CP: F1")
    for by, shown in SHOWN.items():
        if by in ("log", "code_pbs"):
            continue
        asked = [(f"{way}/{x}_refinement", 4, 1) for way in WAYS for x in ("log", "brier")]
        found = [over_sets(gain(frame, what, "log", by)) for what, _, _ in asked]
        row(shown, *(span(x, 4) for x in found), span(over_sets(gain(frame, "CP/f1", "log", by)), 2, 100))


def table_refined_sets(frame: pd.DataFrame) -> None:
    """The same set by set, for the refinement."""
    parts = [
        x for when in ("before", "after") for x in (f"{when} scaling, by log", "by refinement", "difference")
    ]
    header("Refinement minus log as the monitor, test log score", "data", "", *parts, left=2)
    for way in WAYS:
        for name, folds in sets(frame):
            cells: list[str] = []
            for what in ("log", "log_refinement"):
                a, b = (folds[f"{way}/{what}/{by}"] for by in ("log", "log_refinement"))
                cells += [f"{x.mean():.4f}" for x in (a, b)]
                cells.append(span(over_folds(b - a, folds["ratio"].iloc[0]), 4))
            row(name, way, *cells)
        both = [
            over_sets(gain(frame, f"{way}/{x}", "log", "log_refinement")) for x in ("log", "log_refinement")
        ]
        row("**all sets**", way, "", "", span(both[0], 4), "", "", span(both[1], 4))


def table_patience(frame: pd.DataFrame) -> None:
    """Early stopping with more and less patience."""
    header("Early stopping with other patience, differences of test F1, all sets",
           "patience", "PBS − Brier", "PLL − log", "error rate − Brier")  # fmt: skip
    for patience in PATIENCES:
        pairs = (*PAIRS, ("brier", "zero_one"))
        row(patience, *(span(over_sets(gain(frame, f"patience {patience}/f1", *p)), 2, 100) for p in pairs))


def table_columns(frame: pd.DataFrame, title: str, columns: dict[str, str]) -> None:
    """Means over folds of some columns, data sets in rows."""
    header(title, "data", *columns.values())
    means = frame[list(columns)].groupby("data", sort=False).mean()
    for name, values in means.iterrows():
        row(name, *(f"{x:.3f}" for x in values))
    row("**all sets**", *(f"{x:.3f}" for x in means.mean()))


LINKS = {
    "link/brier": "Brier",
    "link/pbs": "PBS",
    "link/zero_one": "error rate alone",
    "link/shuffled": "Brier in random order + penalty",
    "link/borrowed": "another fold's Brier + penalty",
    "link/partial": "Brier or PBS, error rate given",
}
EARLY_LINKS = {
    "moves/early/brier": "Brier",
    "moves/early/pbs": "PBS",
    "moves/early/zero_one": "error rate alone",
    "moves/early/partial": "Brier or PBS, error rate given",
}
MOVES = {
    f"moves/{part}/{by}": f"{shown}: {SHOWN[by]}"
    for part, shown in (("changes", "changes"), ("late", "second half"))
    for by in ("brier", "pbs", "zero_one")
}


def table_training(frame: pd.DataFrame) -> None:
    """What depends on the loss that the networks were trained with: differences over all sets."""
    header("Networks trained by either loss, all sets", "trained by", "", "Pearson: PBS − Brier",
           "Pearson: PLL − log", "Spearman: PBS − Brier", "Spearman: PLL − log", "F1: PBS − Brier",
           "F1: PLL − log", "F1: error rate − Brier", left=2)  # fmt: skip
    for loss, runs in frame.groupby("trained by", sort=False):
        for way in WAYS:
            asked = [(f"{way}/{kind}", *pair, 3, 1) for kind in ("pearson", "spearman") for pair in PAIRS]
            asked += [(f"{way}/f1", *pair, 2, 100) for pair in (*PAIRS, ("brier", "zero_one"))]
            cells = [span(over_sets(gain(runs, *names)), digits, scale) for *names, digits, scale in asked]
            row(SHOWN[loss], way, *cells)


def table_trained_refinement(frame: pd.DataFrame) -> None:
    """Refinement as the monitor, by the loss that the networks were trained with."""
    asked = [("log", "log_refinement"), ("brier", "brier_refinement")]
    cells = [f"{way}: refinement − {SHOWN[base]}, {SHOWN[base]} after scaling"
             for way in WAYS for base, _ in asked]  # fmt: skip
    header("Refinement, networks trained by either loss, all sets", "trained by", *cells)
    for loss, runs in frame.groupby("trained by", sort=False):
        found = [over_sets(gain(runs, f"{way}/{by}", base, by)) for way in WAYS for base, by in asked]
        row(SHOWN[loss], *(span(x, 4) for x in found))


def table_published(folder: Path) -> None:
    """The curves behind the paper's Figure 3: their penalty gives the error rate away."""
    header("The authors' curves", "curve", "Brier", "PBS", "as printed in the file", "error rate alone",
           "Brier or PBS, error rate given", "best epoch by Brier", "PBS", "error rate", "F1")  # fmt: skip
    for path in sorted(folder.glob("*.csv")):
        found = pd.read_csv(path)
        brier, pbs, f1 = (found[column].to_numpy() for column in ("esl", "pesl", "f1"))
        wrong = (pbs - brier).round(6)  # times a constant; rounded, so that equal rates stay equal
        columns = {"brier": brier, "pbs": pbs, "zero_one": wrong, "f1": f1}
        links = [pearson(x, f1) for x in (brier, pbs)]
        printed = found.loc[0, ["COR_ESL", "COR_PESL"]].to_numpy(dtype=float)
        agree = "yes" if abs(printed - links).max() < 1e-6 else "no: {:.3f}, {:.3f}".format(*printed)
        beside = pearson(wrong, f1), partial(brier, f1, wrong)
        history = History.from_columns(columns)
        kept = [history.best(metric).epoch for metric in columns]
        row(path.stem, *(f"{x:.3f}" for x in links), agree, *(f"{x:.3f}" for x in beside), *kept)


def report(frame: pd.DataFrame) -> None:
    """All tables: in full for networks trained by the log score, then what the other loss changes."""
    first = frame.xs("log", level="trained by")
    for name, folds in sets(first):
        of = folds.iloc[0]
        print(f"- {name}: {of['classes']:.0f} classes, {len(folds)} folds, {of['seeds']:.0f} seeds, "
              f"{of['epochs']:.0f} epochs")  # fmt: skip
    table_columns(first, "How much of the correlation with F1 is the error rate", LINKS)
    table_columns(first, f"The same over the first {EARLY} epochs", EARLY_LINKS)
    table_columns(first, "The same without the common rise", MOVES)
    table_pairs(first, "Correlation with F1 (their Table 2)", "pearson", 1, 3)
    table_pairs(first, "Test F1 of the model kept, in percent (their Table 3)", "f1", 100, 2)
    table_choices(first)
    table_moved(first)
    table_patience(first)
    table_refinement(first)
    table_refined_sets(first)
    table_training(frame)
    table_trained_refinement(frame)


# ---- figures -----------------------------------------------------------------------------------


def draw_sweep(frame: pd.DataFrame, path: Path) -> None:
    """From Brier to the error rate alone: what each weight of the penalty is worth on test windows."""
    import matplotlib.pyplot as plt

    panels = (("f1", 100, "F1, points"), ("brier", 1, "Brier"), ("log", 1, "log score"))
    figure, axes = plt.subplots(1, 3, figsize=(11.5, 4.2), layout="constrained")
    for ax, (metric, scale, title) in zip(axes, panels, strict=True):
        means = frame[[f"sweep/{metric}/{w}" for w in WEIGHTS]].groupby("data", sort=False).mean()
        lines = scale * (means.to_numpy() - means.to_numpy()[:, :1])
        for i, (name, line) in enumerate(zip(means.index, lines, strict=True)):
            style = "--" if i == 6 else "-"
            ax.plot(WEIGHTS, line, color=COLOURS[i % 6], linestyle=style, linewidth=1.2, label=name)
        ax.plot(WEIGHTS, lines.mean(axis=0), color="black", linewidth=2.4, label="mean of all")
        ax.axhline(0, color="#888888", linewidth=0.7)
        ax.axvline(0.5, color="#888888", linewidth=0.7, linestyle=":")
        better = "higher" if metric == "f1" else "lower"
        ax.set_title(f"test {title} ({better} is better)", loc="left", fontsize=10)
        ax.set_xticks([0, 0.5, 1], ["Brier", "PBS", "error\nrate"])
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("difference from selection by Brier")
    figure.supxlabel("kept by", fontsize=10)
    axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_history(runs: Runs, path: Path) -> None:
    """The first run of a data set in the manner of the paper's Figure 3."""
    import matplotlib.pyplot as plt

    figure = runs.histories[0][0].select(rules=["brier", "pbs", "zero_one"], against="f1").plot()
    figure.align_ylabels()
    figure.savefig(path, dpi=110)
    plt.close(figure)


# ---- all of it ---------------------------------------------------------------------------------


def trained_before(path: Path, folder: Path) -> dict[tuple[str, str], Runs]:
    """What selection_training.py wrote, by the loss trained with and the data set."""
    found: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    with np.load(path) as archive:
        for key in archive.files:
            name, loss, metric = key.split("/")
            found.setdefault((loss, name), {})[metric] = archive[key]
    problems = {name: SETS[name].read(folder) for name in dict.fromkeys(name for _, name in found)}
    return {key: Runs.of(problems[key[1]], metrics) for key, metrics in found.items()}


def trained_now(names: Iterable[str], folder: Path, seeds: int, epochs: int) -> dict[tuple[str, str], Runs]:
    problems = {name: SETS[name].read(folder) for name in names}
    options = {"loss": "log", "seeds": seeds, "epochs": epochs, "seed": 0, "device": "cpu"}
    return {("log", name): Runs.of(p, train(p, **options)) for name, p in problems.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", help="folder with the data sets")
    parser.add_argument("--prepare", type=Path, help="write the windows of all sets here, and stop")
    parser.add_argument("--trajectories", type=Path, help="read what selection_training.py wrote")
    parser.add_argument("--histories", type=Path, help="the authors' curves: a table of them, and stop")
    parser.add_argument("--sets", nargs="*", default=SMALL, help="names of the data sets to train on")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=15)
    args = parser.parse_args()
    if args.histories:
        table_published(args.histories)
        return
    if args.data is None:
        report(read(RESULTS))
        return
    folder = args.data / "spatio-temporal"
    if args.prepare:
        save_problems(args.prepare, {name: series.read(folder) for name, series in SETS.items()})
        return
    if args.trajectories:
        runs = trained_before(args.trajectories, folder)
    else:
        runs = trained_now(args.sets, folder, args.seeds, args.epochs)
    frame = pd.concat({key: summarize(r) for key, r in runs.items()}, names=["trained by", "data"])
    if args.trajectories:
        write(frame, RESULTS)
        draw_sweep(frame.xs("log", level="trained by"), HERE / "figures" / "selection-penalty.png")
        draw_history(runs["log", "Air"], HERE / "figures" / "selection-history.png")
    report(frame)


if __name__ == "__main__":
    main()
