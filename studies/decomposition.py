"""What decompositions see on real forecasts, where the truth is known and where it is not.

    python studies/decomposition.py [folder with the data sets]

Prints the tables of studies/decomposition.md and draws its figures. The data are not part of the repository.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from sklearn.isotonic import IsotonicRegression

import verax as vx
from recording import Data, run

mpl.use("Agg")

HERE = Path(__file__).parent
CIFAR = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
REPLICATES = 500
PAIRED = 500


def row(*cells: object) -> None:
    print("| " + " | ".join(str(c) for c in cells) + " |")


def table(*header: str) -> None:
    print()
    row(*header)
    row("---", *["---:"] * (len(header) - 1))


def span(components: vx.results.Components, name: str, digits: int = 4) -> str:
    value = getattr(components, name)
    if components.intervals is None:
        return f"{value:.{digits}f}"
    low, high = components.intervals[name]
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def against_truth(p: np.ndarray, q: np.ndarray) -> tuple[float, float, float]:
    """How far the forecasts are from the distributions q of the rows, and how much of that a monotone
    map of each class's probability removes: fitted to the rows themselves, and to the other half of them.
    """
    half = np.random.default_rng(0).permutation(len(p)) % 2 == 0
    inside = outside = 0.0
    for k in range(p.shape[1]):
        before = (p[:, k] - q[:, k]) ** 2
        x, target = p[:, k], q[:, k]
        own = IsotonicRegression().fit_transform(x, target)
        inside += np.mean(before - (own - target) ** 2)
        for fitted, held in ((half, ~half), (~half, half)):
            model = IsotonicRegression(out_of_bounds="clip").fit(x[fitted], target[fitted])
            outside += np.sum(before[held] - (model.predict(x[held]) - target[held]) ** 2) / len(p)
    return float(((p - q) ** 2).sum(axis=1).mean()), inside, outside


def humans(data: Data) -> None:
    h = np.load(data.file("cifar10h-human/cifar10h.npz"))
    q = h["counts"] / h["counts"].sum(axis=1, keepdims=True)
    y = h["labels"]
    rng = np.random.default_rng(0)
    one_human = (rng.random((len(q), 1)) > np.cumsum(q, axis=1)).sum(axis=1).clip(0, 9)
    vgg = np.load(data.file("cifar10-vgg16/cifar10_vgg16.npz"))["probs"].astype(float)
    folds = np.load(data.file("label-errors/cifar10.npz"))["probs"].astype(float)
    models = {
        "VGG16": vgg / vgg.sum(axis=1, keepdims=True),
        "cross-validated": folds / folds.sum(axis=1, keepdims=True),
        "the humans themselves": q,
    }
    for name, outcome in (("the CIFAR-10 label", y), ("the answer of one human", one_human)):
        print(f"\nBrier score, the outcome being {name}:")
        table("forecast", "score", "MCB", "MCB if calibrated", "p", "DSC", "UNC")
        for model, p in models.items():
            result = vx.decompose(outcome, p, rule="brier", bootstrap=REPLICATES)
            row(
                model,
                span(result.whole, "score"),
                span(result.whole, "miscalibration"),
                f"{result.whole.expected_miscalibration:.4f}",
                f"{result.p_value:.3f}",
                f"{result.discrimination:.4f}",
                f"{result.uncertainty:.4f}",
            )
    print("\nFrom the whole human distribution instead of labels:")
    table("forecast", "divergence from the humans", "MCB", "MCB, fitted to the other half of the images")
    for model in ("VGG16", "cross-validated"):
        row(model, *(f"{value:.4f}" for value in against_truth(models[model], q)))
    print("\nECE of the same forecasts of the CIFAR-10 label:")
    table("forecast", "15 bins of width", "15 bins of mass", "100 bins of mass", "classwise, width")
    for model, p in models.items():
        values = [
            vx.ece(y, p),
            vx.ece(y, p, binning="mass"),
            vx.ece(y, p, bins=100, binning="mass"),
            vx.ece(y, p, kind="classwise"),
        ]
        row(model, *(f"{value:.4f}" for value in values))
    figure = vx.reliability(y, models["VGG16"], classes=CIFAR).plot()
    figure.savefig(HERE / "figures" / "cifar10-reliability.png", dpi=110)


def terciles(data: Data) -> None:
    frame = pd.read_parquet(data.file("weather-ordinal/ecmwf_terciles.parquet"))
    p = frame[["below", "normal", "above"]].to_numpy(float)
    p = p / p.sum(axis=1, keepdims=True)
    y = frame["category"].to_numpy()
    months = (frame["year"].astype(str) + "-" + frame["month"].astype(str)).to_numpy()
    table("independent", "RPS", "MCB", "DSC", "UNC")
    for name, groups in (("rows", None), ("months", months)):
        result = vx.decompose(y, p, rule="rps", groups=groups, bootstrap=REPLICATES)
        row(
            name,
            *(span(result.whole, c) for c in ("score", "miscalibration", "discrimination", "uncertainty")),
        )
    print()
    print("```")
    print(vx.decompose(y, p, rule="rps", classes=["below", "normal", "above"]))
    print("```")


def tampere(data: Data) -> None:
    frame = pd.read_csv(data.file("weather-ordinal/pop_tampere_2003.csv")).dropna()
    y = np.digitize(frame["obs"], [0.25, 4.45])
    leads = ("p24", "p48")
    forecasts = [frame[[f"{lead}_cat{k}" for k in range(3)]].to_numpy(float) for lead in leads]
    table("forecast", "RPS", "MCB", "MCB if calibrated", "p", "DSC", "UNC")
    for lead, p in zip(leads, forecasts, strict=True):
        result = vx.decompose(y, p, rule="rps", bootstrap=REPLICATES, normalize=True)
        row(
            lead,
            span(result.whole, "score"),
            span(result.whole, "miscalibration"),
            f"{result.whole.expected_miscalibration:.4f}",
            f"{result.p_value:.3f}",
            span(result.whole, "discrimination"),
            f"{result.uncertainty:.4f}",
        )
    print(f"\nThe same days resampled for both, {PAIRED} times; percentiles of the differences:")
    table("p48 - p24", "difference", "95% interval")
    names = ("score", "miscalibration", "discrimination")
    drawn = np.random.default_rng(0).multinomial(len(y), np.full(len(y), 1 / len(y)), PAIRED)
    gaps = np.array([_gaps(y, forecasts, names, w) for w in drawn])
    for i, (name, gap) in enumerate(zip(names, _gaps(y, forecasts, names, None), strict=True)):
        low, high = np.percentile(gaps[:, i], [2.5, 97.5])
        row(name, f"{gap:.4f}", f"{low:.4f} to {high:.4f}")


def _gaps(
    y: np.ndarray, forecasts: list[np.ndarray], names: tuple[str, ...], weights: np.ndarray | None
) -> list[float]:
    first, second = (vx.decompose(y, p, rule="rps", weights=weights, normalize=True) for p in forecasts)
    return [getattr(second, name) - getattr(first, name) for name in names]


def niamey(data: Data) -> None:
    frame = pd.read_csv(data.file("weather-ordinal/precip_Niamey_2016.csv"))
    table("forecast", "Brier (half)", "MCB", "MCB if calibrated", "p", "DSC", "UNC")
    for name in ("Logistic", "EMOS", "ENS", "EPC"):
        result = vx.decompose(
            frame["obs"].to_numpy(), frame[name].to_numpy(), rule="brier(scale='half')", bootstrap=REPLICATES
        )
        row(
            name,
            span(result.whole, "score"),
            span(result.whole, "miscalibration"),
            f"{result.whole.expected_miscalibration:.4f}",
            f"{result.p_value:.3f}",
            span(result.whole, "discrimination"),
            f"{result.uncertainty:.4f}",
        )


if __name__ == "__main__":
    run(__file__, {study.__name__: study for study in (humans, terciles, tampere, niamey)})
