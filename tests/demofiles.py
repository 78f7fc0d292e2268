"""The files that `verax demo --files` writes, and a call of every command on them."""

from __future__ import annotations

import shutil

from pages import DOCS
from verax.wings.demo.command import write_predictions
from verax.wings.demo.files import FILES, N, days, predictions
from verax.wings.demo.files import write_files as write_all
from verax.wings.demo.tour import progression

__all__ = ["FILES", "RUNS", "N", "days", "predictions", "write_all", "write_demo"]

# A call of every command on these files.
RUNS = {
    "evaluate": ["preds.parquet", "--groups", "site", "--require", "brier<0.1"],
    "merge": ["monday.verax", "tuesday.verax"],
    "compare": ["preds.parquet", "missing.parquet"],
    "decompose": ["preds.parquet", "--bootstrap", 20],
    "plan": ["preds.parquet", "--rule", "accuracy", "--width", 0.02],
    "decide": ["preds.parquet", "--threshold", "youden"],
    "sets": ["preds.parquet", "--level", 0.8],
    "raters": ["rated.csv", "--raters", "ann,bob,cy"],
    "sites": ["risks.csv", "--target", "died", "--probs", "risk", "--sites", "hospital"],
    "recalibrate": ["preds.parquet", "--method", "temperature"],
    "worst": ["preds.parquet", "-n", 3],
    "retain": ["preds.parquet", "--metric", "accuracy", "--json"],
    "monitor": ["february.parquet", "--time", "day", "--reference", 0.5, "--state", "new.state"],
    "select": ["metrics.csv"],
    "toplist": ["completions.jsonl", "--classes", 50000],
    "certify": ["zero_one", "--n-classes", 2, "--json"],
    "reproduce": ["resin"],
    "folds": ["folds.csv", "--probs", "new=new_*", "--probs", "old=old_*"],
    "datasets": ["scores.csv", "--better", "lower"],
    "evals evaluate": ["new_answers.csv", "--id", "qid"],
    "evals compare": ["new_answers.csv", "old_answers.csv", "--id", "qid"],
    "evals plan": ["log.eval", "--width", 0.02],
    "evals worst": ["log.eval", "-n", 1],
    "init": ["preds.parquet"],
    "help": ["rules"],
    "schema": ["evaluate"],
}


def write_demo(folder):
    """Write what pages have besides: the ordered problem of `verax demo`, and the logs of the tutorial."""
    write_predictions(progression(), folder)
    for path in (DOCS / "tutorials" / "logs").iterdir():
        shutil.copy(path, folder)
