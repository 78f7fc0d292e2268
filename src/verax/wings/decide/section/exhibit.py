"""The section on two classes: ROC, precision-recall and decision curves, and rates at thresholds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from verax.analyses.verdicts.which import level_words
from verax.analyses.words import number, part_of, probability, span
from verax.common.texts import percent
from verax.report.contents import Contents
from verax.wings.decide.rates.result import OperatingPoint, RateCurve, RateCurves
from verax.wings.decide.section.analysis import SHOWN, TwoClassCurves

# The rates of the table, and those of the folded one.
_COLUMNS = ("sensitivity", "specificity", "ppv", "npv", "f1")
COLUMN_TITLES = ("Sensitivity", "Specificity", "PPV", "NPV", "F1")
_YOUDEN = "largest Youden index, corrected for the choice"
_CONFIDENCES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


def confidence_exhibit(contents: Contents, curves: RateCurves) -> list[list[tuple[str, ...]]]:
    """Accuracy among confident rows, in numbers, of each model."""
    return [_confident(curve, 1 / contents.problem.n_classes) for curve in curves]


def _confident(curve: RateCurve, least: float) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for wanted in _CONFIDENCES:
        i = int(np.flatnonzero(curve.thresholds <= wanted + 1e-9)[-1])
        if (wanted and wanted < least - 1e-9) or not curve.acted[i] > 0:
            continue
        cells = (part_of(float(curve.acted[i])), percent(float(curve.values[i]), 1))
        rows.append((f"{wanted:g}", *cells, _percents(curve.interval[:, i])))
    return rows


def thresholds_exhibit(contents: Contents, curves: TwoClassCurves) -> dict[str, Any]:
    """The section on two classes."""
    names = list(contents.problem.models.values())
    return {
        "event": contents.problem.titles[1],
        "prevalence": percent(curves.net_benefit.curves[0].prevalence, 1),
        "areas": [_areas(contents, curves, m) for m in range(len(names))],
        "gaps": _gaps(contents, curves, names),
        "useful": [_useful(curves, m) for m in range(len(names))],
        "columns": COLUMN_TITLES,
        "points": [_points(curves, m) for m in range(len(names))],
        "numbers": [_numbers(curves, m) for m in range(len(names))],
        "acts_on": _noted(contents),
    }


def _areas(contents: Contents, curves: TwoClassCurves, m: int) -> str:
    ranked, precise = curves.roc.curves[m], curves.precision_recall.curves[m]
    ends = level_words(contents.confidence)
    if math.isnan(ranked.area):
        return "There is no ROC curve: all rows have the same outcome."
    rate = curves.net_benefit.curves[m].prevalence
    return (
        f"ROC AUC {number(ranked.area, 3)} ({ends} {span(ranked.area_interval, 3)}; 0.5 is chance). "
        f"Average precision {number(precise.area, 3)} ({ends} {span(precise.area_interval, 3)}; "
        f"{number(rate, 3)} is chance)."
    )


def _gaps(contents: Contents, curves: TwoClassCurves, names: list[str]) -> list[str]:
    """The differences of the areas under the ROC curves."""
    given = dict(zip(contents.problem.models, names, strict=True))
    texts = []
    for gap in curves.roc.differences:
        p = probability(gap.p_adjusted)
        shown = f"p {p}" if p.startswith("<") else f"p = {p}"
        texts.append(
            f"{given[gap.a]} minus {given[gap.b]}: {number(gap.difference, 3)} "
            f"({level_words(contents.confidence)} {span(gap.interval, 3)}; {shown}, Holm)"
        )
    return texts


def _useful(curves: TwoClassCurves, m: int) -> str:
    sentence = curves.net_benefit.sentences[m].partition(": ")[2]
    return f"{sentence[:1].upper()}{sentence[1:]}"


def _points(curves: TwoClassCurves, m: int) -> list[dict[str, Any]]:
    n_models = len(curves.roc.curves)
    n_given = len(curves.points.points) // n_models
    points = curves.points.points[m * n_given : (m + 1) * n_given]
    lines = [_line(point, "") for point in points if point.threshold in SHOWN]
    return [
        *lines,
        *(_line(point, point.note or _YOUDEN) for point in (points.points[m] for points in curves.chosen)),
    ]


def _line(point: OperatingPoint, purpose: str) -> dict[str, Any]:
    if math.isnan(point.threshold):
        cells = [("", "")] * len(_COLUMNS)
        return {"threshold": "none", "purpose": purpose, "acted": "", "cells": cells}
    rates = [point.rate(name) for name in _COLUMNS]
    return {
        "threshold": f"{point.threshold:.3g}",
        "purpose": purpose,
        "acted": part_of(sum(point.shares[:2])),
        "cells": [(_percent(rate.value), _percents(rate.interval)) for rate in rates],
    }


def _percent(value: float) -> str:
    return percent(value, 1)


def _percents(interval: Any) -> str:
    low, high = interval
    return "" if math.isnan(low) or math.isnan(high) else f"{percent(low, 1)} to {percent(high, 1)}"


def _numbers(curves: TwoClassCurves, m: int) -> list[tuple[str, ...]]:
    """Rates and net benefit at all thresholds of the table."""
    n_given = len(curves.points.points) // len(curves.roc.curves)
    worth = curves.net_benefit.curves[m]
    rows = []
    for point in curves.points.points[m * n_given : (m + 1) * n_given]:
        i = int(np.argmin(np.abs(worth.thresholds - point.threshold)))
        rates = (_percent(point[name]) for name in ("sensitivity", "specificity", "ppv"))
        rows.append(
            (
                f"{point.threshold:g}",
                *rates,
                number(float(worth.values[i])),
                span(worth.interval[:, i].tolist()),
                number(float(worth.treat_all[i])),
            )
        )
    return rows


def _noted(contents: Contents) -> str:
    problem = contents.problem
    if problem.weighted and problem.weights_are == "counts":
        return "The intervals of this section treat weights as importance weights."
    return ""
