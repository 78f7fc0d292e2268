"""What recalibration gains on real forecasts, and how often it leaves calibrated ones alone.

Run it with the folder of the data sets: python studies/recalibration.py ../shared/data
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as papq

import verax as vx


def retinopathy(data):
    """Grades of diabetic retinopathy, RETFound on APTOS 2019."""
    z = np.load(data / "dr-aptos" / "dr_aptos5.npz")
    return z["labels"], z["probs"], {"rule": "rps", "ordered": True}


def football(data):
    """Home, draw, away by the mean odds of bookmakers (Betbrain); 10,000 matches drawn at random."""
    rows = papq.read_table(data / "football-odds" / "odds_6bookmakers.parquet").to_pandas()
    rows = rows.sample(10_000, random_state=0)
    odds = 1 / rows[[f"BbAv{side}" for side in "HDA"]].to_numpy()
    y = rows["FTR"].map({"H": 0, "D": 1, "A": 2}).to_numpy()
    return y, odds / odds.sum(axis=1, keepdims=True), {"rule": "rps", "ordered": True}


def rain(data):
    """Three classes of rain in Tampere, a day ahead; probabilities in tenths, many of them zero."""
    rows = np.genfromtxt(data / "weather-ordinal" / "pop_tampere_2003.csv", delimiter=",", names=True)
    p = np.column_stack([rows[f"p24_cat{k}"] for k in range(3)])
    y = np.searchsorted([0.2, 4.4], rows["obs"])
    kept = np.isfinite(p).all(axis=1) & np.isfinite(rows["obs"])
    return y[kept], p[kept], {"rule": "rps", "ordered": True, "normalize": True}


def language_model(data):
    """LLaMA on MMLU, the first set of prompts; subjects are groups."""
    z = np.load(data / "llm-mmlu-conformal" / "mmlu_llama.npz")
    return z["labels"], z["probs"][0], {"rule": "log_score", "groups": z["subject"], "normalize": True}


def images(data):
    """VGG16 on CIFAR-10."""
    z = np.load(data / "cifar10-vgg16" / "cifar10_vgg16.npz")
    return z["labels"].ravel(), z["probs"], {"rule": "brier"}


def left_alone(n, k, rule, ordered, spread, times=60):
    """How often calibrated forecasts are left alone, and what that costs on new rows, in percent."""
    chosen, harm = [], []
    for seed in range(times):
        rng = np.random.default_rng(seed)
        z = spread * rng.normal(size=(n + 20_000, k))
        p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        y = (rng.random((len(p), 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
        found = vx.recalibrate(y[:n], p[:n], rule=rule, ordered=ordered, seed=seed)
        loss = vx.parse(rule)
        chosen.append(found.method)
        harm.append(loss(y[n:], found.apply(p[n:])) / loss(y[n:], p[n:]) - 1)
    return chosen.count("none") / times, 100 * float(np.mean(harm))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for read in (retinopathy, football, rain, language_model, images):
        y, p, options = read(folder)
        print(f"{read.__doc__}\n{vx.recalibrate(y, p, **options)}\n", flush=True)
    for design in (
        (200, 3, "log_score", False, 1.0),
        (1000, 3, "log_score", False, 1.0),
        (300, 4, "rps", True, 1.0),
        (1000, 2, "brier", False, 1.5),
        (300, 8, "brier", False, 1.5),
    ):
        share, cost = left_alone(*design)
        print(f"calibrated {design}: left alone in {share:.0%}; new rows lose {cost:.2f} % more", flush=True)
