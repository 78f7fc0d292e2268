"""The charts about top lists, drawn as those of distributions are."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from verax.analyses.calibration.curves import ReliabilityCurve
from verax.report.charts import (
    Spec,
    Values,
    altair,
    bar_rows,
    difference_rows,
    filled,
    finish,
    finite,
    interval_chart,
    interval_row,
    labelled,
    model_rows,
    panel_chart,
    point_rows,
)
from verax.report.lists.contents import ListContents
from verax.report.reliability import ReliabilityPanel, on_grid

_LABEL = "labels[datum.value]"


def all_charts(contents: ListContents) -> dict[str, Spec]:
    """Every chart of the page under the name of its place."""
    charts = {"coverage": labelled(_coverage_chart(), coverage_rows(contents), step=None)}
    for i in range(n_panels(contents)):
        panels = [panel_of(contents, m, i) for m in range(len(contents.findings))]
        shown = [panel for panel in panels if panel is not None]
        if shown:
            data = {"curve": point_rows(shown), "bars": bar_rows(shown)}
            charts[f"panel-{i}"] = filled(panel_chart(170), data)
    rows = length_rows(contents)
    if rows:
        drawing = interval_chart("prediction", "loss above that of the longest", from_zero=True)
        charts["lengths"] = labelled(drawing, rows)
    if len(contents.findings) > 1:
        charts["models"] = labelled(interval_chart("model", "mean loss", alone=True), model_rows(contents))
        title = "mean loss minus that of the best"
        drawing = interval_chart("model", title, alone=True, from_zero=True)
        charts["differences"] = labelled(drawing, difference_rows(contents))
    return charts


def n_panels(contents: ListContents) -> int:
    """How many events have a panel: those of the model with the most places."""
    return max(len(found.reliability) for found in contents.findings)


def panel_names(contents: ListContents) -> list[str]:
    """The names of the events, in the order of the panels."""
    longest = max(contents.findings, key=lambda found: len(found.reliability))
    return [curve.name for curve in longest.reliability]


def panel_of(contents: ListContents, m: int, i: int) -> ReliabilityPanel | None:
    """The panel of one event of one model, numbered as all models have it; None where it has none."""
    name = panel_names(contents)[i]
    curve = next((c for c in contents.findings[m].reliability if c.name == name), None)
    if curve is None:
        return ReliabilityPanel(m, name, np.zeros((0, 5)), np.ones(1), _nothing(contents, name))
    return ReliabilityPanel(m, name, on_grid(curve), curve.histogram, curve.components)


def _nothing(contents: ListContents, name: str) -> Any:
    """The components of an event that some other model has, for a panel that stays empty."""
    curves: list[ReliabilityCurve] = [c for found in contents.findings for c in found.reliability]
    return next(curve.components for curve in curves if curve.name == name)


def coverage_rows(contents: ListContents) -> Values:
    """A row for each model, number of places, and what is added up: claims, or what happened."""
    rows = []
    for m, found in enumerate(contents.findings):
        for place, happened, claimed in found.so_far():
            for i, (label, value) in enumerate((("listed so far", happened), ("claimed", claimed))):
                rows.append({"m": m, "i": i, "label": label, "k": place, "value": finite(value)})
    return rows


def length_rows(contents: ListContents) -> Values:
    """A row for each model, score and prediction that is shorter than the last."""
    rows = []
    for m, found in enumerate(contents.findings):
        if found.lengths is None:
            continue
        last = found.lengths.predictions[-1]
        for s, rule in enumerate(found.lengths.means):
            for i, each in enumerate(found.lengths.predictions[:-1]):
                gap = found.lengths.difference(each, last, rule)
                n = found.lengths.n_rows
                rows.append(interval_row(m, s, i, each, i, n, gap.difference, list(gap.interval)))
    return rows


@lru_cache
def _coverage_chart() -> Spec:
    """How many outcomes are among the first places, and how many were claimed to be."""
    alt = altair()
    base = alt.Chart(alt.NamedData("rows")).transform_filter("datum.m == model && isValid(datum.value)")
    x = alt.X("k:Q", title="places", axis=alt.Axis(tickMinStep=1, grid=False), scale=alt.Scale(nice=False))
    y = alt.Y("value:Q", title="share of rows", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="~%"))
    legend = alt.Legend(title=None, orient="top", labelExpr=_LABEL, symbolType="stroke")
    colours = alt.Scale(domain=[0, 1], range=["var(--series-1)", "var(--series-2)"])
    dashes = alt.Scale(domain=[0, 1], range=[[1, 0], [6, 3]])
    tooltip = [
        alt.Tooltip("label:N", title="line"),
        alt.Tooltip("k:Q", title="places"),
        alt.Tooltip("value:Q", title="share of rows", format=".1%"),
    ]
    layers = [
        base.mark_line(style="curve").encode(
            x=x,
            y=y,
            color=alt.Color("i:N", scale=colours, legend=legend),
            strokeDash=alt.StrokeDash("i:N", scale=dashes, legend=legend),
        ),
        base.mark_point(style="target").encode(x=x, y=y, tooltip=tooltip),
    ]
    return finish(alt.layer(*layers), 240, "model", "labels")
