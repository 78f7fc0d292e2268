"""Answers of a language model: calibration of each place, what short lists lose, how scores order prompts.

`python studies/llm_calibration.py FOLDER` prints the tables of llm_calibration.md and writes its figures and
`results/llm_calibration.csv`; FOLDER holds the data sets.
"""

from __future__ import annotations

import csv
from itertools import combinations, pairwise
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import verax as vx
from recording import Data, run
from verax.display.plots import COLOURS

HERE = Path(__file__).parent
PLACES = ("place 1", "place 2", "place 3", "whole list")
RULES = ("brier", "log_score", "pbs", "pll")


def read(data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities of the four options under ten prompts, the answers, and the subjects."""
    z = np.load(data.file("llm-mmlu-conformal/mmlu_llama.npz"))
    p = z["probs"].astype(np.float64)
    return p / p.sum(axis=2, keepdims=True), z["labels"], z["subject"]


def places(p: np.ndarray, y: np.ndarray, subject: np.ndarray) -> list[dict[str, object]]:
    """What every place of lists of three claims under each prompt, tested with subjects as groups."""
    records = []
    for prompt, each in enumerate(p):
        lists = vx.TopLists.from_probabilities(each, 3)
        claims = vx.reliability(y, lists, places=3, resamples=0, groups=subject).claims
        slopes = vx.calibration_slope(y, lists, places=3, groups=subject)
        records += [
            {
                "prompt": prompt,
                "event": claim.name,
                "claimed": claim.claimed,
                "happened": claim.happened,
                "gap": claim.gap,
                "p_adjusted": claim.p_adjusted,
                "slope": slopes[claim.name].slope,
                "slope_low": slopes[claim.name].slope_interval.low,
                "slope_high": slopes[claim.name].slope_interval.high,
            }
            for claim in claims
        ]
    return records


def draw_places(p: np.ndarray, y: np.ndarray, records: list[dict[str, object]]) -> None:
    """The curves of all prompts, with the band of the first, and the mean gaps."""
    figure, axes = plt.subplots(1, 5, figsize=(14, 3.2), layout="constrained")
    diagrams = [
        vx.reliability(y, vx.TopLists.from_probabilities(each, 3), places=3, resamples=200 * (not i))
        for i, each in enumerate(p)
    ]
    for ax, name in zip(axes, PLACES, strict=False):
        band = diagrams[0][name]
        ax.plot([0, 1], [0, 1], color="#777777", linewidth=0.8, linestyle="--")
        ax.fill_between(band.forecast, *band.band, color=COLOURS[0], alpha=0.2, linewidth=0)
        for diagram in diagrams:
            ax.plot(
                diagram[name].forecast, diagram[name].frequency, color=COLOURS[1], alpha=0.45, linewidth=0.9
            )
        ax.set(title=name, xlim=(0, 1), ylim=(0, 1), xlabel="confidence", aspect="equal")
    axes[0].set_ylabel("frequency")
    for i, name in enumerate(PLACES):
        gaps = [100 * float(r["gap"]) for r in records if r["event"] == name]
        axes[4].plot(np.full(len(gaps), i), gaps, "o", color=COLOURS[1], alpha=0.6, markersize=4)
    axes[4].axhline(0, color="#777777", linewidth=0.8, linestyle="--")
    axes[4].set(title="claimed minus happened", ylabel="percentage points")
    axes[4].set_xticks(range(4), ["1", "2", "3", "list"])
    figure.savefig(HERE / "figures" / "llm-places.png", dpi=110)


def lengths(p: np.ndarray, y: np.ndarray, subject: np.ndarray) -> vx.results.LengthComparison:
    """What shorter lists lose, on all prompts together; the questions of a subject belong together."""
    n = len(p)
    every = vx.compare_lengths(
        np.tile(y, n),
        p.reshape(-1, p.shape[2]),
        k=[1, 2, 3],
        rule=["brier", "log_score"],
        groups=np.tile(subject, n),
    )
    every.plot().savefig(HERE / "figures" / "llm-lengths.png", dpi=110)
    return every


def orders(p: np.ndarray, y: np.ndarray, subject: np.ndarray) -> list[dict[str, object]]:
    """How many pairs of prompts each score orders differently from the Brier score of full distributions."""
    names = [f"prompt {i}" for i in range(len(p))]
    reference = {n: vx.brier(y, each) for n, each in zip(names, p, strict=True)}
    records = []
    for k in (1, 2, 4):
        lists = {n: vx.TopLists.from_probabilities(each, k) for n, each in zip(names, p, strict=True)}
        found = vx.compare(y, lists, rule=list(RULES), groups=subject)
        for rule in RULES:
            means = {m.name: m.mean for m in found.models[rule]}
            pairs = list(combinations(names, 2))
            against = [(a, b) for a, b in pairs if (means[a] - means[b]) * (reference[a] - reference[b]) < 0]
            beyond = [1 for a, b in against if found.difference(a, b, rule).p_adjusted <= 0.05]
            seen = [1 for a, b in pairs if found.difference(a, b, rule).p_adjusted <= 0.05]
            records.append(
                {
                    "k": k,
                    "rule": rule,
                    "means": means,
                    "discordant": len(against),
                    "discordant_beyond_chance": len(beyond),
                    "told_apart": len(seen),
                    "pairs": len(pairs),
                    "best": found.best(rule),
                }
            )
    return records


def draw_orders(records: list[dict[str, object]]) -> None:
    """The rank of every prompt by each score and length."""
    columns = [(r["rule"], r["k"]) for r in records]
    tables: list[dict[str, float]] = [r["means"] for r in records]  # type: ignore[misc]
    figure, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
    for name in sorted(tables[0]):
        line = [sorted(means, key=means.__getitem__).index(name) + 1 for means in tables]
        ax.plot(range(len(line)), line, marker="o", markersize=4, linewidth=1.2, label=name)
    ax.set_xticks(
        range(len(columns)), [f"{rule}\ntop-{k}" if k < 4 else f"{rule}\nfull" for rule, k in columns]
    )
    ax.invert_yaxis()
    ax.set(ylabel="rank (1 is best)")
    ax.tick_params(labelsize=8)
    ax.legend(fontsize=7, ncols=1, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    figure.savefig(HERE / "figures" / "llm-orders.png", dpi=110)


def places_table(data: Data) -> None:
    p, y, subject = read(data)
    found = places(p, y, subject)
    draw_places(p, y, found)
    with (HERE / "results" / "llm_calibration.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    header = ["statement", "claimed", "happened", "gap, range over prompts", "off beyond chance", "slope"]
    print(f"| {' | '.join([*header, 'above 1 beyond chance'])} |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in PLACES:
        own = [r for r in found if r["event"] == name]
        claimed, happened, slope = (
            np.mean([float(r[c]) for r in own]) for c in ("claimed", "happened", "slope")
        )
        gaps = [float(r["gap"]) for r in own]
        off = sum(float(r["p_adjusted"]) <= 0.05 for r in own)
        timid = sum(float(r["slope_low"]) > 1 for r in own)
        print(
            f"| {name} | {claimed:.4f} | {happened:.4f} | {min(gaps):+.4f} to {max(gaps):+.4f} | "
            f"{off} of {len(own)} | {slope:.2f} | {timid} of {len(own)} |"
        )


def lengths_table(data: Data) -> None:
    print("| data | hard, above top-1 | top-1, above a list | the list, above full |\n|---|---:|---:|---:|")
    compared = {"LLaMA": lengths(*read(data))}
    for name, network in (("VGG-19", "vgg19_bn"), ("ResNet-20", "resnet-20")):
        z = np.load(data.file(f"cifar100/cifar100_{network}.npz"))
        logits = z["logits"].astype(np.float64)
        compared[name] = vx.compare_lengths(
            z["labels"], logits, logits=True, k=[1, 5, 20], rule=["brier", "log_score"]
        )
    for name, found in compared.items():
        for rule in found.means:
            kind = f"{found.steps()[2].replace('top-', 'list of ')} of {found.n_classes}"
            gaps = [found.difference(a, b, rule) for a, b in pairwise(found.steps())]
            print(f"| {name}, {rule} ({kind}) | {' | '.join(map(span, gaps))} |")


def span(gap: vx.results.Difference) -> str:
    """A difference with its interval."""
    if not np.isfinite(gap.difference):
        return "infinite"
    return (
        f"{gap.difference:.4f} ({gap.interval.low:.4f} to {gap.interval.high:.4f})" if gap.difference else "0"
    )


def orders_table(data: Data) -> None:
    print("| length | score | best | pairs told apart | ordered against Brier, full | beyond chance |")
    print("|---|---|---|---:|---:|---:|")
    ordered = orders(*read(data))
    for r in ordered:
        length = "full" if r["k"] == 4 else f"top-{r['k']}"
        apart = f"{r['told_apart']} of {r['pairs']}"
        against = f"{r['discordant']} | {r['discordant_beyond_chance']}"
        print(f"| {length} | {r['rule']} | {r['best']} | {apart} | {against} |")
    draw_orders(ordered)


if __name__ == "__main__":
    run(__file__, {"places": places_table, "lengths": lengths_table, "orders": orders_table})
