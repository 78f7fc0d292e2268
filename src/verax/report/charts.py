"""The charts: Vega-Lite specifications, and the rows behind them.

Colours are CSS variables of the page, so that the light, dark and printed pages share one drawing. Texts
from outside are values, never keys: field names and expressions are fixed, and classes, subgroups, models,
scores, metrics and orders are numbers. Axes and legends look their labels up in a list by that number,
because Vega groups by the texts of values, which fails for a text such as "__proto__".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from verax.analyses.words import abbreviated, clean
from verax.report.contents import Contents, Distributions, ListFindings, inner_name
from verax.report.reliability import ReliabilityPanel
from verax.report.vega import Spec, category, chart, either, end, fixed_rows, layer, number, rows_of
from verax.scores.registry import name_of

Values = list[dict[str, Any]]

_DIGITS = 5
FORMAT = ".4~g"
SERIES = [f"var(--series-{i})" for i in range(1, 6)]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3]]
_BINS = 20
# The height of the highest bar at the bottom of a panel.
_BAR = 0.25
# The height of a line of an interval chart.
_STEP = 26
# The label of a number on an axis or in a legend.
LABEL = "labels[datum.value]"
# The distance of intervals from the edges, and of tick labels from each other, in pixels.
_PADDING = 12
_LEGEND = {"title": None, "orient": "top", "labelExpr": LABEL, "symbolType": "stroke"}
# Two columns of names, each with an end of its own.
WIDE_LEGEND: Spec = {**_LEGEND, "columns": 2, "labelLimit": 170}
# How lines that stand out look.
_FLAGGED = {
    "color": either("datum.flag", "var(--warn)", "var(--accent)"),
    "shape": either("datum.flag", "diamond", "circle"),
    "size": either("datum.flag", 130, 64),
}
# The axes of reliability diagrams, and the line of calibrated forecasts.
_UNIT = {"domain": [0, 1], "nice": False}
_HALVES = {"values": [0, 0.5, 1], "format": ".1~f", "grid": True}
FORECAST = number("x", title="forecast", scale=_UNIT, axis=_HALVES)
HAPPENED = number("y", title="happened", scale=_UNIT, axis=_HALVES)
DIAGONAL = fixed_rows({"x": 0, "y": 0}, {"x": 1, "y": 1})


def all_charts(contents: Contents) -> dict[str, Spec]:
    """Every chart of the page under the name of its place."""
    charts = _list_charts(contents) if contents.problem.lists else _dense_charts(contents)
    n_panels = len(contents.findings[0].panels)
    for i in range(n_panels):
        panels = [model.panels[i] for model in contents.findings]
        drawing = panel_chart(170 if n_panels > 1 else 300)
        charts[f"panel-{i}"] = filled(drawing, {"curve": point_rows(panels), "bars": bar_rows(panels)})
    for i, name in enumerate(contents.breakdowns):
        if name in contents.subgroups:
            drawing = interval_chart("subgroup", "mean loss", flags=True)
            charts[f"subgroups-{i}"] = labelled(drawing, subgroup_rows(contents, name))
    if len(contents.findings) > 1:
        drawing = interval_chart("model", "mean loss", alone=True)
        charts["models"] = labelled(drawing, model_rows(contents))
        drawing = interval_chart("model", "mean loss minus that of the best", alone=True, from_zero=True)
        charts["differences"] = labelled(drawing, difference_rows(contents))
    return charts


def _dense_charts(contents: Contents) -> dict[str, Spec]:
    dense = [model.dense for model in contents.findings if model.dense is not None]
    return {"classes": labelled(interval_chart("class", "mean loss"), class_rows(contents, dense))}


def _list_charts(contents: Contents) -> dict[str, Spec]:
    lists = [model.places for model in contents.findings if model.places is not None]
    return {"coverage": labelled(_coverage_chart(), coverage_rows(lists), step=None)}


def filled(drawing: Spec, data: dict[str, Values]) -> Spec:
    """A drawing with its rows."""
    return {**drawing, "datasets": data}


# ---- rows --------------------------------------------------------------------------------------


def class_rows(contents: Contents, models: Sequence[Distributions]) -> Values:
    """A row for each model, score and class."""
    names = contents.problem.titles
    return [
        interval_row(m, s, i, names[line.position], i, line.n_rows, mean, line.intervals[rule])
        for m, model in enumerate(models)
        for i, line in enumerate(model.by_class)
        for s, (rule, mean) in enumerate(line.means.items())
    ]


def subgroup_rows(contents: Contents, name: str) -> Values:
    """A row for each model, score and subgroup of one breakdown."""
    position = {model.name: m for m, model in enumerate(contents.findings)}
    lines = contents.subgroups[name].lines
    order = {label: i for i, label in enumerate(dict.fromkeys(line.label for line in lines))}
    rows = []
    for line in lines:
        label = clean(line.label)
        for s, rule in enumerate(contents.problem.rules):
            score = next((x for x in line.card.scores.values() if inner_name(x) == name_of(rule)), None)
            if score is not None:
                m, i, n = position.get(line.model, 0), order[line.label], line.card.n_rows
                row = interval_row(m, s, i, label, i, n, score.mean, score.interval)
                rows.append(row | {"flag": line.stands_out})
    return rows


def model_rows(contents: Contents) -> Values:
    """A row for each model and score, the best first."""
    position = {findings.name: i for i, findings in enumerate(contents.findings)}
    n = contents.problem.n_rows
    rows = []
    for s, (rule, models) in enumerate(contents.comparison.models.items()):
        for model in models:
            i, interval = position[model.name], contents.interval(model.name, rule)
            rows.append(interval_row(0, s, i, model.name, model.rank, n, model.mean, interval))
    return rows


def difference_rows(contents: Contents) -> Values:
    """A row for each model but the best, and score: how much more it loses."""
    position = {findings.name: i for i, findings in enumerate(contents.findings)}
    n = contents.problem.n_rows
    rows = []
    for s, (rule, models) in enumerate(contents.comparison.models.items()):
        for model in models[1:]:
            d = contents.comparison.difference(model.name, models[0].name, rule)
            i = position[model.name]
            rows.append(interval_row(0, s, i, model.name, model.rank, n, d.difference, d.interval))
    return rows


def interval_row(
    m: int, s: int, i: int, label: str, order: int, n: int, mean: float, interval: Sequence[float]
) -> dict[str, Any]:
    """A mean of model `m` by score `s` on the line numbered `i`, which `order` puts in its place."""
    low, high = interval
    row = {"m": m, "s": s, "i": i, "label": label, "order": order, "n": n}
    return row | {"mean": finite(mean), "low": finite(low), "high": finite(high)}


def point_rows(panels: list[ReliabilityPanel]) -> Values:
    """A row for each model and point of one event's curve."""
    names = ("x", "y", "low", "high", "share")
    return [
        {"m": m, **{name: finite(value) for name, value in zip(names, point, strict=True)}}
        for m, panel in enumerate(panels)
        for point in panel.points.tolist()
    ]


def coverage_rows(models: Sequence[ListFindings]) -> Values:
    """A row for each model, number of places, and what is added up: claims, or what happened."""
    rows = []
    for m, model in enumerate(models):
        for place, happened, claimed in model.so_far():
            for i, (label, value) in enumerate((("listed so far", happened), ("claimed", claimed))):
                rows.append({"m": m, "i": i, "label": label, "k": place, "value": finite(value)})
    return rows


def bar_rows(panels: list[ReliabilityPanel]) -> Values:
    """A row for each model and bar of one event's forecasts."""
    return [
        {"m": m, "from": i / _BINS, "to": (i + 1) / _BINS, "foot": 0, "top": finite(_BAR * share)}
        for m, panel in enumerate(panels)
        for i, share in enumerate((panel.histogram / panel.histogram.max()).tolist())
        if share > 0
    ]


def finite(x: float) -> float | None:
    """A number with a few significant digits, or None: JSON has no infinity."""
    return float(f"{x:.{_DIGITS}g}") if math.isfinite(x) else None


# ---- drawings ----------------------------------------------------------------------------------


def labelled(drawing: Spec, rows: Values, *, step: int | None = _STEP) -> Spec:
    """A drawing with its rows and the labels of their numbers; `step` is the height of a line."""
    texts = {row["i"]: row["label"] for row in rows}
    labels = abbreviated([texts.get(i, "") for i in range(max(texts, default=-1) + 1)])
    params = [{**p, "value": labels} if p["name"] == "labels" else p for p in drawing["params"]]
    complete = {**filled(drawing, {"rows": rows}), "params": params}
    return complete if step is None else {**complete, "height": step * len(texts)}


def interval_chart(
    what: str, axis: str, *, alone: bool = False, from_zero: bool = False, flags: bool = False
) -> Spec:
    """Means with their intervals, one line each, and the means of the other models unless all are shown.

    With `flags`, lines that are flagged have another colour and shape.
    """
    rows, filters = rows_of("rows"), ["datum.s == score && isValid(datum.mean)"]
    of_model = filters if alone else [*filters, "datum.m == model"]
    labels = {"labelExpr": LABEL, "labelLimit": 220, "ticks": False, "domain": False, "grid": True}
    y = category("i", sort={"field": "order", "op": "min"}, title=None, axis=labels)
    # Intervals end inside the plot: what touches its edge looks cut off.
    across = {"title": axis, "scale": {"zero": from_zero, "nice": False, "padding": _PADDING}}
    ticks = {"format": "~g", "tickCount": 4, "labelOverlap": "greedy", "labelSeparation": _PADDING}
    x = number("mean", **across, axis=ticks)
    tooltip = [
        category("label", title=what),
        number("mean", title="difference" if from_zero else axis, format=FORMAT),
        number("low", title="interval from", format=FORMAT),
        number("high", title="to", format=FORMAT),
        number("n", title="rows", format=","),
    ]
    look = _FLAGGED if flags else {}
    layers = [] if alone else [layer("point", "context", rows, {"x": x, "y": y}, *filters)]
    if from_zero:
        layers.append(layer("rule", "zero", fixed_rows({"zero": 0}), {"x": number("zero", **across)}))
    layers += [
        layer("rule", "span", rows, {"x": number("low", **across), "x2": end("high"), "y": y}, *of_model),
        layer("point", "mean", rows, {"x": x, "y": y, "tooltip": tooltip, **look}, *of_model),
    ]
    return chart(layers, _STEP, "score", "labels", *([] if alone else ["model"]))


def panel_chart(height: int) -> Spec:
    """One event's reliability: the curve, the band of calibrated forecasts, the diagonal, the forecasts."""
    curve, of_model = rows_of("curve"), "datum.m == model"
    tooltip = [
        number("x", title="forecast", format=".3f"),
        number("y", title="happened", format=".3f"),
        number("low", title="calibrated from", format=".3f"),
        number("high", title="to", format=".3f"),
        number("share", title="share of rows", format=".2~%"),
    ]
    bars = {
        "x": number("from", title="forecast", scale=_UNIT),
        "x2": end("to"),
        "y": number("foot", title="happened", scale=_UNIT),
        "y2": end("top"),
    }
    band = {"x": FORECAST, "y": number("low", title="happened", scale=_UNIT), "y2": end("high")}
    at = {"x": FORECAST, "y": HAPPENED}
    layers = [
        layer("rect", "bar", rows_of("bars"), bars, of_model),
        layer("area", "calibrated", curve, band, of_model),
        layer("line", "diagonal", DIAGONAL, at),
        layer("line", "others", curve, {**at, "detail": category("m")}, "datum.m != model"),
        layer("line", "observed", curve, at, of_model),
        layer("point", "target", curve, {**at, "tooltip": tooltip}, of_model),
    ]
    return chart(layers, height, "model")


def _coverage_chart() -> Spec:
    """How many outcomes are among the first places, and how many were claimed to be."""
    rows, shown = rows_of("rows"), "datum.m == model && isValid(datum.value)"
    tooltip = [
        category("label", title="line"),
        number("k", title="places"),
        number("value", title="share of rows", format=".1%"),
    ]
    at = {
        "x": number("k", title="places", axis={"tickMinStep": 1, "grid": False}, scale={"nice": False}),
        "y": number("value", title="share of rows", scale={"domain": [0, 1]}, axis={"format": "~%"}),
    }
    layers = [
        layer("line", "curve", rows, {**at, **told_apart(SERIES[:2], DASHES[:2], _LEGEND)}, shown),
        layer("point", "target", rows, {**at, "tooltip": tooltip}, shown),
    ]
    return chart(layers, 240, "model", "labels")


def told_apart(colours: Sequence[str], dashes: Sequence[Sequence[int]], legend: Spec | None) -> Spec:
    """The channels that tell numbered lines apart: their colours and dashes."""
    domain = list(range(len(colours)))
    return {
        "color": category("i", scale={"domain": domain, "range": colours}, legend=legend),
        "strokeDash": category("i", scale={"domain": domain, "range": dashes}, legend=legend),
    }
