"""The section on several raters: their disagreement, the excess of the forecasts, and the worth in raters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from verax.analyses.raters.result import RatedMean, Rater, RaterStudy
from verax.analyses.words import clean, number, said, short_of, span
from verax.report.charts import Spec, labelled
from verax.report.contents import Contents
from verax.report.rate_charts import line_points, line_rows, rate_chart

# Panels of raters that are drawn: at least, and at most.
_FEWEST, _MOST = 5, 30
_PANEL = "panel of raters"
_NO_WORTH = "There is no worth in raters: no case has two raters or more."
_LINES = {"loss": "Loss", "disagreement": "Rater disagreement", "excess": "Excess of the forecasts"}


def raters_exhibit(contents: Contents) -> dict[str, Any] | None:
    """Rater disagreement for each model; None where there is one outcome per row."""
    studies = _studies(contents)
    if not studies:
        return None
    first = studies[0]
    return {
        "rule": said(first.rule),
        "about": _about(first),
        "models": [_model(study) for study in studies],
        "named": bool(first.raters),
    }


def rater_charts(contents: Contents) -> dict[str, Spec]:
    """The losses of all models beside those of panels of 1, 2, 3, ... raters."""
    studies = _studies(contents)
    if not studies or not math.isfinite(studies[0].disagreement.value):
        return {}
    names = list(contents.problem.models.values())
    h = studies[0].disagreement.value
    worth = [study.worth.value for study in studies if math.isfinite(study.worth.value)]
    most = min(_MOST, max([_FEWEST, *(math.ceil(2 * each) for each in worth)]))
    sizes = np.arange(1, most + 1, dtype=float)
    rows = []
    for m, (name, study) in enumerate(zip(names, studies, strict=True)):
        level = np.full(len(sizes), h + study.excess.value)
        band = np.array([np.full(len(sizes), h + end) for end in study.excess.interval])
        rows += line_points(m, name, sizes, level, band, sizes)
    none = np.full((2, len(sizes)), np.nan)
    rows += line_points(len(names), _PANEL, sizes, h * (1 + 1 / sizes), none, sizes)
    heights = [row[key] for row in rows for key in ("y", "low", "high") if row[key] is not None]
    lowest, highest = min([h, *heights]), max([h, *heights])
    room = 0.05 * (highest - lowest) or 0.01
    drawing = rate_chart(
        len(names),
        "raters in the panel",
        f"{short_of(studies[0].rule)}, mean loss",
        (1.0, float(most)),
        (lowest - room, highest + room),
        "linear",
        beside=True,
        along="raters in the panel",
    )
    return {"raters": labelled(line_rows(drawing, [(1, h), (most, h)]), rows, step=None)}


def _studies(contents: Contents) -> list[RaterStudy]:
    return [found.raters for found in contents.findings if found.raters is not None]


def _about(study: RaterStudy) -> str:
    """How many raters there are, and which cases enter what."""
    mean = study.mean_raters
    texts = [
        "The number of raters is not known: their shares are treated as exact."
        if mean is None
        else f"A case has {mean:.3g} raters on average."
    ]
    single = study.n_rows - study.n_rated
    if single:
        cases = "1 case has" if single == 1 else f"{single:,} cases have"
        texts.append(f"{cases} one rater, and so no disagreement: they enter the loss only.")
    return " ".join(texts)


def _model(study: RaterStudy) -> dict[str, Any]:
    lines = [(title, *_cells(getattr(study, name))) for name, title in _LINES.items()]
    worth = [("Worth in raters", *_cells(study.worth, 2))]
    if study.general is not None:
        worth.append(("Worth, raters in general", *_cells(study.general, 2)))
    return {
        "words": " ".join(filter(None, [study.verdict or _NO_WORTH, study.assumption])),
        "lines": [*lines, *worth],
        "raters": [_rater(rater) for rater in study.raters],
    }


def _cells(mean: RatedMean, digits: int = 4) -> tuple[str, str]:
    """A number and its interval, as far as there are such."""
    if math.isnan(mean.value):
        return "–", ""
    low, high = mean.interval
    if math.isinf(high) and not math.isinf(low):
        return number(mean.value, digits), f"at least {number(low, digits)}"
    return number(mean.value, digits), span(mean.interval, digits)


def _rater(rater: Rater) -> dict[str, Any]:
    return {
        "name": clean(rater.name),
        "n": f"{rater.n_rows:,}",
        "cells": [_cells(mean) for mean in (rater.against, rater.own, rater.gain)],
    }
