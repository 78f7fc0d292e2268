"""The charts over thresholds: ROC, precision-recall, accuracy by confidence, decision curves."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from verax.report.contents import Contents
from verax.report.line_charts import line_chart
from verax.report.panels import Line, Panel, panel_of
from verax.report.vega import Spec
from verax.wings.decide.section.analysis import ThresholdCurves, TwoClassCurves


def rate_charts(contents: Contents, thresholds: ThresholdCurves) -> dict[str, Spec]:
    """The charts over thresholds by the name of their place."""
    names = list(contents.problem.models.values())
    # With two classes, the most likely one has at least one half.
    least = 0.5 if contents.problem.n_classes == 2 else 0.0
    confident = thresholds.confidence._figure(thresholds.confidence.curves[0].event)
    panels = {"confident": _from(panel_of(confident), least)}
    if thresholds.two is not None:
        panels |= _two_class(thresholds.two)
    return {key: line_chart(panel, names, steps=key == "recall") for key, panel in panels.items()}


def _from(panel: Panel, least: float) -> Panel:
    """A panel of accuracies by confidence, from a least confidence on.

    Without the diagonal: rows from a confidence on claim more than it, so even overconfident ones may lie
    above.
    """
    lines, lowest = [], 1.0
    for line in panel.lines:
        if line.beside:
            continue
        kept = line.x >= least
        ((x, low, high),) = line.bands
        band = (x[kept], low[kept], high[kept])
        lines.append(replace(line, x=line.x[kept], y=line.y[kept], bands=[band], along=line.along[kept]))
        lowest = min([lowest, *(float(np.nanmin(v[kept], initial=1.0)) for v in (line.y, low))])
    upward = (min(least, math.floor(10 * lowest) / 10), 1.0)
    return replace(panel, lines=lines, x="least confidence", across=(least, 1.0), upward=upward)


def _two_class(curves: TwoClassCurves) -> dict[str, Panel]:
    event = curves.roc.curves[0].event
    recall = panel_of(curves.precision_recall._figure(event))
    rate = curves.net_benefit.curves[0].prevalence
    prevalence = Line("prevalence", (0, 1), (rate, rate), beside=True)
    return {
        "roc": panel_of(curves.roc._figure(event)),
        "recall": replace(recall, lines=[*recall.lines, prevalence]),
        "worth": panel_of(curves.net_benefit._figure(event)),
    }
