"""The section on recalibration: what each method gains, and reliability before and after."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from verax.analyses.words import clean, number, title_of, within
from verax.common.texts import percent
from verax.report.contents import Contents
from verax.wings.recalibrate.records import METHOD_TITLES, Trial
from verax.wings.recalibrate.section.analysis import Curve, RecalibrationBenefit

_SKIPPED = (
    "Recalibration was not tried: there are too few rows, or too many classes, or they were summed up by an "
    "older version. Use `verax recalibrate`."
)


def remedy_exhibit(contents: Contents, remedies: list[RecalibrationBenefit]) -> dict[str, Any]:
    """The tables and figures of all models."""
    return {
        "models": [_of_model(contents, remedy) for remedy in remedies],
        "curves": [
            _numbers([remedy.curves[i] for remedy in remedies]) for i in range(len(remedies[0].curves))
        ],
    }


def _of_model(contents: Contents, remedy: RecalibrationBenefit) -> dict[str, Any]:
    better = remedy.recalibration
    if better is None:
        return {"words": _SKIPPED, "lines": [], "rule": "", "note": ""}
    some = better.n_rows < contents.problem.n_rows
    drawn = f"Measured on {better.n_rows:,} rows drawn at random." if some else ""
    return {
        "words": " ".join(clean(text, 400) for text in better.sentences),
        "lines": [_line(better.method, trial) for trial in better.trials],
        "rule": within(title_of(better.rule)),
        "note": drawn,
    }


def _numbers(curves: list[Curve]) -> dict[str, Any]:
    """The curves of one event in ten bins, for reading."""
    return {"title": curves[0].title, "models": [_bins(curve) for curve in curves]}


def _bins(curve: Curve) -> list[tuple[str, ...]]:
    """Forecasts from and to, and before and after: how often it happened, and in what share of rows."""
    rows = []
    for low in range(10):
        cells = []
        for points in (curve.before, curve.after):
            part = points[np.minimum((points[:, 0] * 10).astype(int), 9) == low]
            mass = float(part[:, 2].sum())
            happened = float((part[:, 1] * part[:, 2]).sum() / mass) if mass else math.nan
            cells += [number(happened, 3), percent(mass)]
        rows.append((f"{low / 10:.1f} to {(low + 1) / 10:.1f}", *cells))
    return rows


def _line(chosen: str, trial: Trial) -> dict[str, Any]:
    gain = trial.gain
    known = trial.method != "none" and not math.isnan(gain.share)
    title = METHOD_TITLES[trial.method]
    return {
        "name": title[:1].upper() + title[1:],
        "detail": "; ".join(
            text for text in ("chosen" if trial.method == chosen else "", trial.detail) if text
        ),
        "loss": number(trial.loss),
        "gain": percent(gain.share, 1) if known else "",
        "interval": f"{percent(gain.share_interval[0], 1)} to {percent(gain.share_interval[1], 1)}"
        if known and gain.share_interval.defined
        else "",
    }
