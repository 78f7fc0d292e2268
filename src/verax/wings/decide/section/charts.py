"""The figures over thresholds: ROC, precision-recall, accuracy by confidence, decision curves."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from verax.display.figures import Figure
from verax.display.marks import Band, Line, Mark
from verax.report.charts import lines_figure, of_models
from verax.report.contents import Contents
from verax.report.figures import Shown
from verax.wings.decide.section.analysis import ThresholdCurves, TwoClassCurves


def rate_figures(contents: Contents, thresholds: ThresholdCurves) -> dict[str, Shown]:
    """The figures over thresholds by the name of their place."""
    names = list(contents.problem.models.values())
    # With two classes, the most likely one has at least one half.
    least = 0.5 if contents.problem.n_classes == 2 else 0.0
    confidence = thresholds.confidence
    figures = {"confident": _from(confidence._figure(confidence.curves[0].event), least)}
    if thresholds.two is not None:
        figures |= _two_class(thresholds.two)
    return {key: of_models(contents, partial(lines_figure, figure, names)) for key, figure in figures.items()}


def _from(figure: Figure, least: float) -> Figure:
    """Accuracies by confidence, from a least confidence on.

    Without the diagonal: rows from a confidence on claim more than it, so even overconfident ones may lie
    above.
    """
    marks: list[Mark] = []
    lowest = 1.0
    for mark in figure.marks:
        if isinstance(mark, Line) and mark.colour != "soft":
            kept = mark.x >= least
            marks.append(replace(mark, x=mark.x[kept], y=mark.y[kept], along=mark.along[kept]))
            lowest = min(lowest, float(np.nanmin(mark.y[kept], initial=1.0)))
        elif isinstance(mark, Band):
            kept = mark.x >= least
            marks.append(replace(mark, x=mark.x[kept], low=mark.low[kept], high=mark.high[kept]))
            lowest = min(lowest, float(np.nanmin(mark.low[kept], initial=1.0)))
    x = replace(figure.x, label="least confidence", low=least, high=1.0)
    y = replace(figure.y, low=min(least, math.floor(10 * lowest) / 10), high=1.0)
    return replace(figure, marks=marks, x=x, y=y)


def _two_class(curves: TwoClassCurves) -> dict[str, Figure]:
    event = curves.roc.curves[0].event
    recall = curves.precision_recall._figure(event)
    rate = curves.net_benefit.curves[0].prevalence
    steps = [replace(mark, step="before") if isinstance(mark, Line) else mark for mark in recall.marks]
    prevalence = Line("prevalence", (0, 1), (rate, rate), "soft", dash=1)
    return {
        "roc": curves.roc._figure(event),
        "recall": replace(recall, marks=[*steps, prevalence]),
        "worth": curves.net_benefit._figure(event),
    }
