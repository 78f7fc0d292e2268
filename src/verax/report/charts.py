"""The charts: Vega-Lite specifications, made with altair.

Colours are CSS variables of the page, so that light, dark and paper are one drawing. What comes
from outside is only ever data: field names and expressions are fixed, models and scores are numbers
there, and the page sets the signals `model`, `score` and `metric`.
"""

from __future__ import annotations

import math
from typing import Any

from verax.curves import RetentionCurve
from verax.errors import MissingPackageError
from verax.registry import name_of
from verax.report.contents import Contents
from verax.report.words import title_of

Spec = dict[str, Any]
Values = list[dict[str, Any]]

_DIGITS = 5
_FORMAT = ".4~g"
_SERIES = [f"var(--series-{i})" for i in range(1, 6)]
_DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3]]


def altair() -> Any:
    """Altair, or the error that says how to get it."""
    try:
        import altair as alt
    except ImportError:
        raise MissingPackageError("A report needs altair: pip install 'verax[report]'.") from None
    return alt


def all_charts(contents: Contents) -> dict[str, Spec]:
    """Every chart of the page under the id of its place."""
    charts = {
        "classes": interval_chart(class_values(contents), "class", "mean loss"),
        "retained": curve_chart(curve_values(contents, sees_outcome=True)),
        "selected": curve_chart(curve_values(contents, sees_outcome=False)),
    }
    first = contents.findings[0]
    for i in range(len(first.panels)):
        charts[f"panel-{i}"] = panel_chart([f.panels[i] for f in contents.findings])
    for i, name in enumerate(contents.subgroups):
        charts[f"subgroups-{i}"] = interval_chart(subgroup_values(contents, name), "subgroup", "mean loss")
    if len(contents.findings) > 1:
        charts["models"] = interval_chart(model_values(contents), "model", "mean loss", every_model=True)
        charts["differences"] = interval_chart(
            difference_values(contents),
            "model",
            "mean loss minus that of the best model",
            every_model=True,
            zero=True,
        )
    return charts


# ---- data --------------------------------------------------------------------------------------


def class_values(contents: Contents) -> Values:
    """A row for each model, score and class."""
    rows = []
    for m, found in enumerate(contents.findings):
        for line in found.by_class:
            for s, rule in enumerate(line.means):
                rows.append(
                    _interval(
                        m, s, contents.problem.names[line.position], line.means[rule], line.intervals[rule]
                    )
                    | {"n": line.n_rows, "order": line.position}
                )
    return rows


def subgroup_values(contents: Contents, name: str) -> Values:
    """A row for each model, score and subgroup of one breakdown."""
    position = {found.name: m for m, found in enumerate(contents.findings)}
    several = len(position) > 1
    labels = {
        label: i
        for i, label in enumerate(dict.fromkeys(str(x.label) for x in contents.subgroups[name].lines))
    }
    rows = []
    for line in contents.subgroups[name].lines:
        m = position[line.model] if several else 0
        for s, rule in enumerate(contents.problem.rules):
            score = line.card.scores.get(name_of(rule))
            if score is not None:
                rows.append(
                    _interval(m, s, str(line.label), score.mean, score.interval)
                    | {"n": line.card.n_rows, "order": labels[str(line.label)]}
                )
    return rows


def model_values(contents: Contents) -> Values:
    """A row for each model and score, in the order of the score."""
    rows = []
    for s, rule in enumerate(contents.comparison.models):
        for model in contents.comparison.models[rule]:
            rows.append(
                _interval(0, s, model.name, model.mean, model.interval)
                | {"n": contents.problem.n_rows, "order": model.rank}
            )
    return rows


def difference_values(contents: Contents) -> Values:
    """A row for each model but the best, and score: how much more it loses."""
    rows = []
    for s, (rule, models) in enumerate(contents.comparison.models.items()):
        best = models[0].name
        for model in models[1:]:
            d = contents.comparison.difference(model.name, best, rule)
            rows.append(
                _interval(0, s, model.name, d.difference, d.interval)
                | {"n": contents.problem.n_rows, "order": model.rank}
            )
    return rows


def _interval(m: int, s: int, label: str, mean: float, interval: tuple[float, float]) -> dict[str, Any]:
    return {
        "m": m,
        "s": s,
        "label": label,
        "mean": _finite(mean),
        "low": _finite(interval[0]),
        "high": _finite(interval[1]),
    }


def _finite(x: float) -> float | None:
    """A number of a few digits that count, or nothing: JSON has no infinity."""
    return float(f"{x:.{_DIGITS}g}") if math.isfinite(x) else None


def curve_values(contents: Contents, *, sees_outcome: bool) -> Values:
    """A row for each model, metric, order and share of rows removed."""
    rows = []
    for m, found in enumerate(contents.findings):
        curves = found.retained if sees_outcome else found.selected
        metrics = metrics_of(curves)
        for curve in curves:
            low, high = (curve.values, curve.values) if curve.band is None else curve.band
            for i, removed in enumerate(curve.removed):
                rows.append(
                    {
                        "m": m,
                        "metric": metrics.index(curve.metric),
                        "label": title_of(curve.order),
                        "removed": _finite(100 * float(removed)),
                        "value": _finite(float(curve.values[i])),
                        "low": _finite(float(low[i])),
                        "high": _finite(float(high[i])),
                    }
                )
    return rows


def metrics_of(curves: list[RetentionCurve]) -> list[str]:
    """The metrics of some curves, in order."""
    return list(dict.fromkeys(curve.metric for curve in curves))


# ---- drawings ----------------------------------------------------------------------------------


def _finish(chart: Any, height: int | dict[str, int], **params: int) -> Spec:
    alt = altair()
    chart = chart.properties(width="container", height=height, background="transparent")
    chart = chart.add_params(*(alt.param(name=name, value=value) for name, value in params.items()))
    spec: Spec = chart.to_dict()
    spec.pop("config", None)
    return spec


def interval_chart(
    values: Values, what: str, axis: str, *, every_model: bool = False, zero: bool = False
) -> Spec:
    """Means with their intervals, a line each; the other models' means behind, in grey."""
    alt = altair()
    n = len({row["label"] for row in values})
    base = alt.Chart(alt.InlineData(values=values)).transform_filter(
        "datum.s == score && isValid(datum.mean)"
    )
    y = alt.Y(
        "label:N",
        sort=alt.EncodingSortField("order", op="min"),
        title=None,
        axis=alt.Axis(labelLimit=130, ticks=False, domain=False, grid=True),
    )
    x = alt.X("mean:Q", title=axis, scale=alt.Scale(zero=zero), axis=alt.Axis(format="~g", tickCount=5))
    tooltip = [
        alt.Tooltip("label:N", title=what),
        alt.Tooltip(
            "mean:Q", title=axis.partition(" minus")[0] if not zero else "difference", format=_FORMAT
        ),
        alt.Tooltip("low:Q", title="interval from", format=_FORMAT),
        alt.Tooltip("high:Q", title="to", format=_FORMAT),
        alt.Tooltip("n:Q", title="rows", format=","),
    ]
    own = base if every_model else base.transform_filter("datum.m == model")
    layers = [] if every_model else [base.mark_point(style="context").encode(x=x, y=y)]
    if zero:
        layers.append(
            alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(style="zero").encode(x="zero:Q")
        )
    layers += [
        own.mark_rule(style="span").encode(x=alt.X("low:Q", title=axis), x2="high:Q", y=y, tooltip=tooltip),
        own.mark_point(style="mean").encode(x=x, y=y, tooltip=tooltip),
    ]
    return _finish(alt.layer(*layers), {"step": 26} if n > 1 else 40, score=0, model=0)


def curve_chart(values: Values) -> Spec:
    """A metric as rows are removed: a line for each order, with its band."""
    alt = altair()
    labels = list(dict.fromkeys(row["label"] for row in values))
    base = alt.Chart(alt.InlineData(values=values)).transform_filter(
        "datum.m == model && datum.metric == metric && isValid(datum.value)"
    )
    x = alt.X("removed:Q", title="rows removed, percent", axis=alt.Axis(tickCount=5, grid=False))
    y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False), axis=alt.Axis(format="~g", tickCount=5))
    legend = alt.Legend(title=None, orient="top", columns=2, labelLimit=170, symbolType="stroke")
    colour = alt.Color("label:N", scale=alt.Scale(domain=labels, range=_SERIES[: len(labels)]), legend=legend)
    dash = alt.StrokeDash(
        "label:N", scale=alt.Scale(domain=labels, range=_DASHES[: len(labels)]), legend=legend
    )
    tooltip = [
        alt.Tooltip("label:N", title="ranked by"),
        alt.Tooltip("removed:Q", title="% removed", format="~g"),
        alt.Tooltip("value:Q", title="value", format=_FORMAT),
        alt.Tooltip("low:Q", title="interval from", format=_FORMAT),
        alt.Tooltip("high:Q", title="to", format=_FORMAT),
    ]
    layers = [
        base.mark_area(style="band").encode(
            x=x, y=alt.Y("low:Q", title=None, scale=alt.Scale(zero=False)), y2="high:Q", color=colour
        ),
        base.mark_line(style="curve").encode(x=x, y=y, color=colour, strokeDash=dash),
        base.mark_point(style="target").encode(x=x, y=y, tooltip=tooltip),
    ]
    return _finish(alt.layer(*layers), 240, metric=0, model=0)


def panel_chart(panels: list[Any]) -> Spec:
    """One event's reliability: the curve, the band of calibrated forecasts, the diagonal, the forecasts."""
    alt = altair()
    points = [
        {
            "m": m,
            "x": _finite(x),
            "y": _finite(y),
            "low": _finite(low),
            "high": _finite(high),
            "share": _finite(share),
        }
        for m, panel in enumerate(panels)
        for x, y, low, high, share in panel.points.tolist()
    ]
    bars = [
        {
            "m": m,
            "from": i / 20,
            "to": (i + 1) / 20,
            "share": _finite(share),
            "bottom": 0,
            "top": _finite(0.25 * share),
        }
        for m, panel in enumerate(panels)
        for i, share in enumerate(panel.histogram.tolist())
        if share > 0
    ]
    unit = alt.Scale(domain=[0, 1], nice=False)
    ticks = alt.Axis(values=[0, 0.5, 1], format=".1~f", grid=True)
    mine = "datum.m == model"
    curve = alt.Chart(alt.InlineData(values=points)).transform_filter(mine)
    x = alt.X("x:Q", title="forecast", scale=unit, axis=ticks)
    tooltip = [
        alt.Tooltip("x:Q", title="forecast", format=".3f"),
        alt.Tooltip("y:Q", title="happened", format=".3f"),
        alt.Tooltip("low:Q", title="calibrated from", format=".3f"),
        alt.Tooltip("high:Q", title="to", format=".3f"),
        alt.Tooltip("share:Q", title="share of rows", format=".2~%"),
    ]
    diagonal = alt.Chart(alt.InlineData(values=[{"x": 0, "y": 0}, {"x": 1, "y": 1}]))
    layers = [
        alt.Chart(alt.InlineData(values=bars))
        .transform_filter(mine)
        .mark_rect(style="bar")
        .encode(
            x=alt.X("from:Q", scale=unit, title="forecast"),
            x2="to:Q",
            y=alt.Y("bottom:Q", scale=unit),
            y2="top:Q",
        ),
        curve.mark_area(style="calibrated").encode(
            x=x, y=alt.Y("low:Q", scale=unit, title="happened"), y2="high:Q"
        ),
        diagonal.mark_line(style="diagonal").encode(x=x, y=alt.Y("y:Q", scale=unit)),
        curve.mark_line(style="observed").encode(
            x=x, y=alt.Y("y:Q", scale=unit, title="happened", axis=ticks)
        ),
        curve.mark_point(style="target").encode(x=x, y=alt.Y("y:Q", scale=unit), tooltip=tooltip),
    ]
    return _finish(alt.layer(*layers), 170, model=0)
