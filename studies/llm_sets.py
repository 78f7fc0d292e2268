"""Answers of a language model as prediction sets: at their word and by conformal prediction, by subject.

`python studies/llm_sets.py FOLDER` prints the tables of llm_sets.md; FOLDER holds the data sets.
"""

from __future__ import annotations

import numpy as np

import verax as vx
from llm_calibration import read
from recording import Data, run

LEVEL, SPLITS = 0.9, 50
SCORES = ("lac", "aps", "brier", "log_score")


def judged(y: np.ndarray, sets: object, **options: object) -> tuple[float, ...]:
    """Coverage, mean size, share of sets with one answer, and the level-set score."""
    found = vx.evaluate_sets(y, sets, level=LEVEL, **options)
    return found.coverage.value, found.size.value, found.sizes.get(1, 0.0), found.level_set.value


def of_splits(y: np.ndarray, p: np.ndarray) -> None:
    """Random halves to calibrate on, the others to judge."""
    rng = np.random.default_rng(0)
    rows: dict[str, list[tuple[float, ...]]] = {}
    for _ in range(SPLITS):
        order = rng.permutation(len(y))
        a, b = order[: len(y) // 2], order[len(y) // 2 :]
        rows.setdefault("at their word", []).append(judged(y[b], p[b]))
        for score in SCORES:
            made = vx.conformal(y[a], p[a], level=LEVEL, score=score).apply(p[b])
            rows.setdefault(f"conformal, {score}", []).append(judged(y[b], made))
        common = np.zeros((len(b), 4), bool)
        common[:, np.argsort(-np.bincount(y[a], minlength=4))[:3]] = True
        rows.setdefault("the three most frequent letters", []).append(judged(y[b], common))
        rows.setdefault("all four answers", []).append(judged(y[b], np.ones((len(b), 4), bool)))
    print("| sets | coverage | range of 95 % of splits | mean size | one answer | level-set score, t = 0.1 |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, found in rows.items():
        coverage, size, single, score = np.mean(found, axis=0)
        low, high = np.quantile([own[0] for own in found], [0.025, 0.975])
        cells = f"{coverage:.3f} | {low:.3f} to {high:.3f} | {size:.2f} | {single:.3f} | {score:.4f}"
        print(f"| {name} | {cells} |")


def by_subject(y: np.ndarray, p: np.ndarray, subject: np.ndarray) -> None:
    """Each subject judged by sets that all other subjects calibrate, with and without groups."""
    print(
        "| calibrated on the other subjects | mean coverage | lowest | subject | highest | subject | size |"
    )
    print("|---|---:|---:|---|---:|---|---:|")
    names = np.unique(subject)
    for called, grouped in (("rows alike", False), ("subjects alike (groups)", True)):
        found = []
        for name in names:
            a, b = subject != name, subject == name
            own = {"groups": subject[a]} if grouped else {}
            made = vx.conformal(y[a], p[a], level=LEVEL, **own)
            found.append(judged(y[b], made.apply(p[b]))[:2])
        coverage, size = np.array(found).T
        low, high = int(np.argmin(coverage)), int(np.argmax(coverage))
        ends = " | ".join(f"{coverage[at]:.3f} | {names[at]}" for at in (low, high))
        cells = f"{coverage.mean():.3f} | {ends}"
        print(f"| {called} | {cells} | {size.mean():.2f} |")


def one_split(y: np.ndarray, p: np.ndarray, subject: np.ndarray) -> None:
    """The verdict on the sets of one random half that the other half calibrates."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    a, b = order[: len(y) // 2], order[len(y) // 2 :]
    made = vx.conformal(y[a], p[a], level=LEVEL)
    found = vx.evaluate_sets(y[b], made.apply(p[b]), by={"subject": subject[b]})
    print(found.verdict)


def prompts(p: np.ndarray, y: np.ndarray, subject: np.ndarray) -> None:
    """Sets of one prompt beside those of the mean of ten, on the same questions."""
    half = np.random.default_rng(0).permutation(len(y))
    a, b = half[: len(y) // 2], half[len(y) // 2 :]
    sets = {}
    for name, own in (("one prompt", p[0]), ("mean of ten prompts", p.mean(axis=0))):
        sets[name] = vx.conformal(y[a], own[a], level=LEVEL).apply(own[b])
    found = vx.compare(y[b], sets, rule="level_set", groups=subject[b])
    d = found.difference("one prompt", "mean of ten prompts")
    low, high = d.interval
    print(f"Level-set score, one prompt minus the mean of ten: {d.difference:.4f} ({low:.4f} to {high:.4f}).")


def mmlu(data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Answers, probabilities of one prompt, and subjects."""
    p, y, subject = read(data)
    return y, p[0], subject


if __name__ == "__main__":
    run(
        __file__,
        {
            "splits": lambda data: of_splits(*mmlu(data)[:2]),
            "subjects": lambda data: by_subject(*mmlu(data)),
            "one-split": lambda data: one_split(*mmlu(data)),
            "prompts": lambda data: prompts(*read(data)),
        },
    )
