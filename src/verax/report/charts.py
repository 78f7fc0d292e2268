"""The charts: Vega-Lite specifications, drawn with altair, and the rows behind them.

Colours are CSS variables of the page, so that the light, dark and printed pages share one drawing. Texts
from outside are values, never keys: field names and expressions are fixed, and classes, subgroups, models,
scores, metrics and orders are numbers. Axes and legends look their labels up in a list by that number,
because Vega groups by the texts of values, which fails for a text such as "__proto__".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from verax.analyses.retention.result import RetentionCurve
from verax.analyses.words import abbreviated, clean, short_of
from verax.common.packages import needed
from verax.report.contents import Contents, Distributions, ListFindings, inner_name
from verax.report.reliability import ReliabilityPanel
from verax.scores.registry import name_of

Spec = dict[str, Any]
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


def all_charts(contents: Contents) -> dict[str, Spec]:
    """Every chart of the page under the name of its place."""
    charts = _list_charts(contents) if contents.problem.lists else _dense_charts(contents)
    charts |= _charts_of_all(contents)
    n_panels = len(contents.findings[0].panels)
    for i in range(n_panels):
        panels = [found.panels[i] for found in contents.findings]
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
    found = [each.dense for each in contents.findings if each.dense is not None]
    return {"classes": labelled(interval_chart("class", "mean loss"), class_rows(contents, found))}


def _charts_of_all(contents: Contents) -> dict[str, Spec]:
    """Those of every kind of forecasts: curves after dropping cases, and recalibration."""
    found = [each.own for each in contents.findings]
    charts: dict[str, Spec] = {}
    if found[0].selected:
        charts["retained"] = _curve_chart_of(curve_rows([each.retained for each in found]))
        charts["selected"] = _curve_chart_of(curve_rows([each.selected for each in found]))
    for i in range(len(found[0].remedy.curves)):
        charts[f"remedy-{i}"] = filled(_before_after_chart(), {"rows": remedy_rows(found, i)})
    return charts


def _list_charts(contents: Contents) -> dict[str, Spec]:
    found = [each.places for each in contents.findings if each.places is not None]
    charts = {"coverage": labelled(_coverage_chart(), coverage_rows(found), step=None)}
    rows = length_rows(found)
    if rows:
        drawing = interval_chart("prediction", "loss above that of the longest", from_zero=True)
        charts["lengths"] = labelled(drawing, rows)
    return charts


def filled(drawing: Spec, data: dict[str, Values]) -> Spec:
    """A drawing with its rows."""
    return {**drawing, "datasets": {**drawing.get("datasets", {}), **data}}


# ---- rows --------------------------------------------------------------------------------------


def class_rows(contents: Contents, found: Sequence[Distributions]) -> Values:
    """A row for each model, score and class."""
    names = contents.problem.titles
    return [
        interval_row(m, s, i, names[line.position], i, line.n_rows, mean, line.intervals[rule])
        for m, own in enumerate(found)
        for i, line in enumerate(own.by_class)
        for s, (rule, mean) in enumerate(line.means.items())
    ]


def subgroup_rows(contents: Contents, name: str) -> Values:
    """A row for each model, score and subgroup of one breakdown."""
    position = {found.name: m for m, found in enumerate(contents.findings)}
    lines = contents.subgroups[name].lines
    order = {label: i for i, label in enumerate(dict.fromkeys(line.label for line in lines))}
    rows = []
    for line in lines:
        label = clean(line.label)
        for s, rule in enumerate(contents.problem.rules):
            score = next((x for x in line.card.scores.values() if inner_name(x) == name_of(rule)), None)
            if score is not None:
                m, i, n = position.get(line.model, 0), order[line.label], line.card.n_rows
                own = interval_row(m, s, i, label, i, n, score.mean, score.interval)
                rows.append(own | {"flag": line.stands_out})
    return rows


def model_rows(contents: Contents) -> Values:
    """A row for each model and score, the best first."""
    position = {found.name: i for i, found in enumerate(contents.findings)}
    n = contents.problem.n_rows
    rows = []
    for s, (rule, models) in enumerate(contents.comparison.models.items()):
        for model in models:
            i, interval = position[model.name], contents.interval(model.name, rule)
            rows.append(interval_row(0, s, i, model.name, model.rank, n, model.mean, interval))
    return rows


def difference_rows(contents: Contents) -> Values:
    """A row for each model but the best, and score: how much more it loses."""
    position = {found.name: i for i, found in enumerate(contents.findings)}
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


def curve_rows(models: Sequence[Sequence[RetentionCurve]]) -> Values:
    """A row for each model, metric, order and share of rows removed."""
    rows = []
    for m, curves in enumerate(models):
        metrics = list(dict.fromkeys(curve.metric for curve in curves))
        orders = list(dict.fromkeys(curve.order for curve in curves))
        for curve in curves:
            low, high = (curve.values, curve.values) if curve.band is None else curve.band
            rows += [
                {
                    "m": m,
                    "metric": metrics.index(curve.metric),
                    "i": orders.index(curve.order),
                    "label": short_of(curve.order),
                    "removed": finite(100 * float(removed)),
                    "value": finite(float(curve.values[i])),
                    "low": finite(float(low[i])),
                    "high": finite(float(high[i])),
                }
                for i, removed in enumerate(curve.removed)
            ]
    return rows


def point_rows(panels: list[ReliabilityPanel]) -> Values:
    """A row for each model and point of one event's curve."""
    names = ("x", "y", "low", "high", "share")
    return [
        {"m": m, **{name: finite(value) for name, value in zip(names, point, strict=True)}}
        for m, panel in enumerate(panels)
        for point in panel.points.tolist()
    ]


def remedy_rows(found: Sequence[Distributions | ListFindings], i: int) -> Values:
    """A row for each model and point of one event's curve, before and after recalibration."""
    rows = []
    for m, own in enumerate(found):
        for curve in own.remedy.curves[i : i + 1]:
            for j, (label, points) in enumerate((("before", curve.before), ("after", curve.after))):
                rows += [
                    {
                        "m": m,
                        "i": j,
                        "label": label,
                        "x": finite(x),
                        "y": finite(y),
                        "share": finite(share),
                    }
                    for x, y, share in points.tolist()
                ]
    return rows


def coverage_rows(models: Sequence[ListFindings]) -> Values:
    """A row for each model, number of places, and what is added up: claims, or what happened."""
    rows = []
    for m, found in enumerate(models):
        for place, happened, claimed in found.so_far():
            for i, (label, value) in enumerate((("listed so far", happened), ("claimed", claimed))):
                rows.append({"m": m, "i": i, "label": label, "k": place, "value": finite(value)})
    return rows


def length_rows(models: Sequence[ListFindings]) -> Values:
    """A row for each model, score and prediction that is shorter than the last."""
    rows = []
    for m, found in enumerate(models):
        if found.lengths is None:
            continue
        last = found.lengths.predictions[-1]
        for s, rule in enumerate(found.lengths.means):
            for i, each in enumerate(found.lengths.predictions[:-1]):
                gap = found.lengths.difference(each, last, rule)
                n = found.lengths.n_rows
                rows.append(interval_row(m, s, i, each, i, n, gap.difference, list(gap.interval)))
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


def altair() -> Any:
    """The package that draws."""
    return needed("altair", "A report", "report")


def finish(chart: Any, height: Any, *signals: str) -> Spec:
    """The specification, as wide as its place, with signals that the page sets."""
    alt = altair()
    chart = chart.properties(
        width="container", height=height, background="transparent", autosize=alt.AutoSizeParams(type="fit-x")
    )
    chart = chart.add_params(*(alt.param(name=name, value=[] if name == "labels" else 0) for name in signals))
    spec: Spec = chart.to_dict(validate=altair().utils.schemapi.DEBUG_MODE)
    # The page has a configuration of its own, and its one version of Vega-Lite.
    return {key: value for key, value in spec.items() if key not in ("config", "$schema")}


def labelled(drawing: Spec, rows: Values, *, step: int | None = _STEP) -> Spec:
    """A drawing with its rows and the labels of their numbers; `step` is the height of a line."""
    texts = {row["i"]: row["label"] for row in rows}
    labels = abbreviated([texts.get(i, "") for i in range(max(texts, default=-1) + 1)])
    params = [{**p, "value": labels} if p["name"] == "labels" else p for p in drawing["params"]]
    complete = {**filled(drawing, {"rows": rows}), "params": params}
    return complete if step is None else {**complete, "height": step * len(texts)}


@lru_cache
def interval_chart(
    what: str, axis: str, *, alone: bool = False, from_zero: bool = False, flags: bool = False
) -> Spec:
    """Means with their intervals, one line each, and the means of the other models unless all are shown.

    With `flags`, lines that are flagged have another colour and shape.
    """
    alt = altair()
    base = alt.Chart(alt.NamedData("rows")).transform_filter("datum.s == score && isValid(datum.mean)")
    labels = alt.Axis(labelExpr=LABEL, labelLimit=220, ticks=False, domain=False, grid=True)
    y = alt.Y("i:N", sort=alt.EncodingSortField("order", op="min"), title=None, axis=labels)
    # Intervals end inside the plot: what touches its edge looks cut off.
    scale = alt.Scale(zero=from_zero, nice=False, padding=_PADDING)
    ticks = alt.Axis(format="~g", tickCount=4, labelOverlap="greedy", labelSeparation=_PADDING)
    x = alt.X("mean:Q", title=axis, scale=scale, axis=ticks)
    tooltip = [
        alt.Tooltip("label:N", title=what),
        alt.Tooltip("mean:Q", title="difference" if from_zero else axis, format=FORMAT),
        alt.Tooltip("low:Q", title="interval from", format=FORMAT),
        alt.Tooltip("high:Q", title="to", format=FORMAT),
        alt.Tooltip("n:Q", title="rows", format=","),
    ]
    own = base if alone else base.transform_filter("datum.m == model")
    layers = [] if alone else [base.mark_point(style="context").encode(x=x, y=y)]
    if from_zero:
        zero = alt.Chart(alt.InlineData(values=[{"zero": 0}]))
        layers.append(zero.mark_rule(style="zero").encode(x=alt.X("zero:Q", title=axis, scale=scale)))
    layers += [
        own.mark_rule(style="span").encode(x=alt.X("low:Q", title=axis, scale=scale), x2="high:Q", y=y),
        own.mark_point(style="mean").encode(x=x, y=y, tooltip=tooltip, **(_flagged() if flags else {})),
    ]
    return finish(alt.layer(*layers), _STEP, "score", "labels", *([] if alone else ["model"]))


def _flagged() -> dict[str, Any]:
    alt = altair()
    return {
        "color": alt.condition("datum.flag", alt.value("var(--warn)"), alt.value("var(--accent)")),
        "shape": alt.condition("datum.flag", alt.value("diamond"), alt.value("circle")),
        "size": alt.condition("datum.flag", alt.value(130), alt.value(64)),
    }


def _curve_chart_of(rows: Values) -> Spec:
    return labelled(_curve_chart(len({row["i"] for row in rows})), rows, step=None)


@lru_cache
def _curve_chart(n_orders: int) -> Spec:
    """A metric as rows are removed: a line for each order, and the band of the first."""
    alt = altair()
    base = alt.Chart(alt.NamedData("rows")).transform_filter(
        "datum.m == model && datum.metric == metric && isValid(datum.value)"
    )
    scale = alt.Scale(zero=False)
    x = alt.X("removed:Q", title="percent of rows removed", axis=alt.Axis(tickCount=5, grid=False))
    y = alt.Y("value:Q", title=None, scale=scale, axis=alt.Axis(format="~g", tickCount=5))
    legend = alt.Legend(
        title=None, orient="top", columns=2, labelExpr=LABEL, labelLimit=170, symbolType="stroke"
    )
    colours = alt.Scale(domain=list(range(n_orders)), range=SERIES[:n_orders])
    dashes = alt.Scale(domain=list(range(n_orders)), range=DASHES[:n_orders])
    tooltip = [
        alt.Tooltip("label:N", title="ranked by"),
        alt.Tooltip("removed:Q", title="% removed", format="~g"),
        alt.Tooltip("value:Q", title="value", format=FORMAT),
        alt.Tooltip("low:Q", title="interval from", format=FORMAT),
        alt.Tooltip("high:Q", title="to", format=FORMAT),
    ]
    band = base.transform_filter("datum.i == 0").mark_area(style="band")
    layers = [
        band.encode(x=x, y=alt.Y("low:Q", title=None, scale=scale), y2="high:Q"),
        base.mark_line(style="curve").encode(
            x=x,
            y=y,
            color=alt.Color("i:N", scale=colours, legend=legend),
            strokeDash=alt.StrokeDash("i:N", scale=dashes, legend=legend),
        ),
        base.mark_point(style="target").encode(x=x, y=y, tooltip=tooltip),
    ]
    return finish(alt.layer(*layers), 240, "metric", "model", "labels")


@lru_cache
def panel_chart(height: int) -> Spec:
    """One event's reliability: the curve, the band of calibrated forecasts, the diagonal, the forecasts."""
    alt = altair()
    unit = alt.Scale(domain=[0, 1], nice=False)
    ticks = alt.Axis(values=[0, 0.5, 1], format=".1~f", grid=True)
    x = alt.X("x:Q", title="forecast", scale=unit, axis=ticks)
    y = alt.Y("y:Q", title="happened", scale=unit, axis=ticks)
    tooltip = [
        alt.Tooltip("x:Q", title="forecast", format=".3f"),
        alt.Tooltip("y:Q", title="happened", format=".3f"),
        alt.Tooltip("low:Q", title="calibrated from", format=".3f"),
        alt.Tooltip("high:Q", title="to", format=".3f"),
        alt.Tooltip("share:Q", title="share of rows", format=".2~%"),
    ]
    mine = "datum.m == model"
    curve = alt.Chart(alt.NamedData("curve")).transform_filter(mine)
    others = alt.Chart(alt.NamedData("curve")).transform_filter("datum.m != model")
    bars = alt.Chart(alt.NamedData("bars")).transform_filter(mine)
    diagonal = alt.Chart(alt.InlineData(values=[{"x": 0, "y": 0}, {"x": 1, "y": 1}]))
    layers = [
        bars.mark_rect(style="bar").encode(
            x=alt.X("from:Q", title="forecast", scale=unit),
            x2="to:Q",
            y=alt.Y("foot:Q", title="happened", scale=unit),
            y2="top:Q",
        ),
        curve.mark_area(style="calibrated").encode(
            x=x, y=alt.Y("low:Q", title="happened", scale=unit), y2="high:Q"
        ),
        diagonal.mark_line(style="diagonal").encode(x=x, y=y),
        others.mark_line(style="others").encode(x=x, y=y, detail="m:N"),
        curve.mark_line(style="observed").encode(x=x, y=y),
        curve.mark_point(style="target").encode(x=x, y=y, tooltip=tooltip),
    ]
    return finish(alt.layer(*layers), height, "model")


@lru_cache
def _before_after_chart() -> Spec:
    """One event's reliability before and after recalibration, with the diagonal."""
    alt = altair()
    unit = alt.Scale(domain=[0, 1], nice=False)
    ticks = alt.Axis(values=[0, 0.5, 1], format=".1~f", grid=True)
    x = alt.X("x:Q", title="forecast", scale=unit, axis=ticks)
    y = alt.Y("y:Q", title="happened", scale=unit, axis=ticks)
    colours = alt.Scale(domain=[0, 1], range=[SERIES[1], SERIES[0]])
    dashes = alt.Scale(domain=[0, 1], range=[DASHES[1], DASHES[0]])
    tooltip = [
        alt.Tooltip("label:N", title="recalibration"),
        alt.Tooltip("x:Q", title="forecast", format=".3f"),
        alt.Tooltip("y:Q", title="happened", format=".3f"),
        alt.Tooltip("share:Q", title="share of rows", format=".2~%"),
    ]
    base = alt.Chart(alt.NamedData("rows")).transform_filter("datum.m == model")
    diagonal = alt.Chart(alt.InlineData(values=[{"x": 0, "y": 0}, {"x": 1, "y": 1}]))
    layers = [
        diagonal.mark_line(style="diagonal").encode(x=x, y=y),
        base.mark_line(style="curve").encode(
            x=x,
            y=y,
            color=alt.Color("i:N", scale=colours, legend=None),
            strokeDash=alt.StrokeDash("i:N", scale=dashes, legend=None),
        ),
        base.mark_point(style="target").encode(x=x, y=y, tooltip=tooltip),
    ]
    return finish(alt.layer(*layers), 170, "model")


@lru_cache
def _coverage_chart() -> Spec:
    """How many outcomes are among the first places, and how many were claimed to be."""
    alt = altair()
    base = alt.Chart(alt.NamedData("rows")).transform_filter("datum.m == model && isValid(datum.value)")
    x = alt.X("k:Q", title="places", axis=alt.Axis(tickMinStep=1, grid=False), scale=alt.Scale(nice=False))
    y = alt.Y("value:Q", title="share of rows", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="~%"))
    legend = alt.Legend(title=None, orient="top", labelExpr=LABEL, symbolType="stroke")
    colours = alt.Scale(domain=[0, 1], range=SERIES[:2])
    dashes = alt.Scale(domain=[0, 1], range=DASHES[:2])
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
