"""Answers of a language model as top lists: ten prompts, one to four options, alone and combined.

`python studies/llm_lists.py FOLDER` prints the tables of llm_lists.md; FOLDER holds the data sets.
"""

from __future__ import annotations

import numpy as np

import verax as vx
from llm_calibration import read
from recording import Data, run

NAMES = ("brier", "log_score", "spherical", "zero_one", "pbs")


def row(name: str, losses: list[float]) -> None:
    print(f"| {name} | {' | '.join(f'{loss:.4f}' for loss in losses)} |")


def head(first: str) -> None:
    print(f"| {first} | {' | '.join(NAMES)} |")
    print(f"|---|{'---:|' * len(NAMES)}")


def paired(a: np.ndarray, b: np.ndarray, subject: np.ndarray) -> str:
    """The mean difference with a 95 percent interval from 2,000 resamples of whole subjects."""
    d = a - b
    codes = np.unique(subject, return_inverse=True)[1]
    sums, counts = np.bincount(codes, d), np.bincount(codes)
    draws = np.random.default_rng(0).multinomial(len(sums), np.full(len(sums), 1 / len(sums)), 2000)
    low, high = np.quantile(draws @ sums / (draws @ counts), [0.025, 0.975])
    return f"{d.mean():+.4f} ({low:+.4f} to {high:+.4f})"


def tables(data: Data) -> None:
    p, y, subject = read(data)
    rules = [vx.parse(name) for name in NAMES]
    lists = {k: [vx.TopLists.from_probabilities(each, k) for each in p] for k in range(5)}
    hard = [vx.TopLists.from_decisions(each.argmax(axis=1), n_classes=4) for each in p]
    print(
        f"### One prompt: {len(y):,} questions in {len(np.unique(subject))} subjects, "
        f"means over {len(p)} prompts\n"
    )
    head("prediction")
    for name, each in [("hard", hard), *((f"top-{k}" if k < 4 else "full", lists[k]) for k in range(5))]:
        row(name, [float(np.mean([rule(y, one) for one in each])) for rule in rules])
    print("\n### Ten prompts combined\n")
    head("prediction")
    combined = {"ten hard answers": vx.combine(hard)}
    combined |= {
        f"ten top-{k} lists" if k < 4 else "ten full distributions": vx.combine(lists[k])
        for k in (1, 2, 3, 4)
    }
    for name, one in combined.items():
        row(name, [rule(y, one) for rule in rules])
    print("\n### Paired differences in Brier (95 %, subjects resampled)\n")
    print("| difference | Brier |\n|---|---:|")
    single = np.mean([vx.brier.samples(y, one) for one in lists[4]], axis=0)
    whole = vx.brier.samples(y, combined["ten full distributions"])
    votes = vx.brier.samples(y, combined["ten hard answers"])
    top_1 = vx.brier.samples(y, combined["ten top-1 lists"])
    print(f"| ten full distributions, minus one prompt's | {paired(whole, single, subject)} |")
    print(f"| ten top-1 lists, minus ten full distributions | {paired(top_1, whole, subject)} |")
    print(f"| ten hard answers, minus ten full distributions | {paired(votes, whole, subject)} |")
    print("\n### Prompts, by the Brier score of the full distribution\n")
    means = [vx.brier(y, one) for one in lists[4]]
    order = np.argsort(means)
    print("| prompt | brier | top-1 | accuracy |\n|---|---:|---:|---:|")
    for i in order:
        accuracy = 1 - vx.zero_one(y, lists[4][i])
        print(f"| {i} | {means[i]:.4f} | {vx.brier(y, lists[1][i]):.4f} | {accuracy:.4f} |")
    best, last = (vx.brier.samples(y, lists[4][i]) for i in (order[0], order[-1]))
    print(f"\nLast minus first: {paired(last, best, subject)}.")


if __name__ == "__main__":
    run(__file__, {"lists": tables})
