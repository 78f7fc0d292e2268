"""The section on several raters: their disagreement, the excess of the forecasts, and the worth in raters."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from verax.analyses.words import clean, number, said, short_of, span
from verax.report.contents import Contents
from verax.report.vega import Spec
from verax.wings.decide.section.charts import line_chart
from verax.wings.raters.result import RatedMean, Rater, RaterStudy, raters_panel

# Panels of raters that are drawn: at least, and at most.
_FEWEST, _MOST = 5, 30
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
    by_name = dict(zip(contents.problem.models.values(), studies, strict=True))
    panel = raters_panel(by_name, _FEWEST, _MOST)
    panel = replace(panel, y=f"{short_of(studies[0].rule)}, mean loss")
    return {"raters": line_chart(panel, list(by_name), along=panel.x)}


def _studies(contents: Contents) -> list[RaterStudy]:
    return [model.raters for model in contents.findings if model.raters is not None]


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
