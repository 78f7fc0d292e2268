"""Answers of a language model: what a temperature gains, and which prompt is right most often.

`python studies/llm_temperature.py FOLDER` prints the tables of llm_temperature.md; FOLDER holds the data.
Subjects are groups: their questions belong together.
"""

from __future__ import annotations

import numpy as np

import verax as vx
from llm_calibration import read
from recording import run

METHODS = ("temperature", "rest", "temperature_rest")


def gains(p: np.ndarray, y: np.ndarray, subject: np.ndarray) -> None:
    """The cross-validated gain of every scaling, by the length of the lists; means over the prompts."""
    print("| lists | method | temperature | gain, mean over prompts | range | interval above 0 | chosen |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for k in (1, 2, 3):
        made = [vx.TopLists.from_probabilities(each, k) for each in p]
        found = [vx.recalibrate(y, lists, rule="log_score", groups=subject) for lists in made]
        for method in METHODS:
            trials = [one.trial(method) for one in found]
            shares = np.array([100 * trial.gain.share for trial in trials])
            certain = sum(trial.gain.interval.low > 0 for trial in trials)
            chosen = sum(one.method == method for one in found)
            slopes = (
                [
                    vx.recalibrate(y, lists, method=method, rule="log_score", folds=2).form.slope
                    for lists in made
                ]
                if method in ("temperature", "temperature_rest")
                else []
            )
            warm = f"{np.mean([1 / slope for slope in slopes]):.2f}" if slopes else ""
            cells = [f"top-{k}", method, warm, f"{shares.mean():+.2f} %"]
            cells += [f"{shares.min():+.2f} to {shares.max():+.2f}", f"{certain} of 10"]
            print(f"| {' | '.join([*cells, f'{chosen} of 10'])} |", flush=True)


def mean_of_prompts(p: np.ndarray, y: np.ndarray, subject: np.ndarray) -> None:
    """Scaling of the mean of all prompts, which is less sure than each of them."""
    lists = vx.TopLists.from_probabilities(p.mean(axis=0), 3)
    print(f"```\n{vx.recalibrate(y, lists, rule='log_score', groups=subject)}\n```")


def accuracies(p: np.ndarray, y: np.ndarray, subject: np.ndarray) -> None:
    """Which differences in accuracy are significant, without groups and with subjects as groups."""
    lists = {f"prompt {i}": vx.TopLists.from_probabilities(each, 1) for i, each in enumerate(p)}
    print(
        "| questions taken as | best | accuracy | worst | gap | interval | p | p (Holm) | significant pairs |"
    )
    print("|---|---|---:|---|---:|---:|---:|---:|---:|")
    for name, groups in (("independent", None), ("grouped by subject", subject)):
        found = vx.compare(y, lists, rule="zero_one", groups=groups)
        models = found.models["zero_one"]
        gap = found.difference(models[-1].name, models[0].name)
        pairs = found.differences["zero_one"]
        low, high = (f"{100 * end:+.1f}" for end in gap.interval)
        print(
            f"| {name} | {models[0].name} | {1 - models[0].mean:.3f} | {models[-1].name} | "
            f"{100 * gap.difference:.1f} points | {low} to {high} | {gap.p_value:.4f} | "
            f"{gap.p_adjusted:.4f} | {sum(pair.p_adjusted <= 0.05 for pair in pairs)} of {len(pairs)} |"
        )
    pair = {models[i].name: lists[models[i].name] for i in (0, -1)}
    found = vx.compare(y, pair, rule="zero_one", groups=subject)
    print(f"\n```\n{vx.plan(found, difference=0.02)}\n```")


if __name__ == "__main__":
    run(
        __file__, {f.__name__: lambda data, f=f: f(*read(data)) for f in (gains, mean_of_prompts, accuracies)}
    )
