"""The charts over thresholds: ROC, precision-recall, accuracy by confidence, and decision curves.

All models are in one chart, with the band of the chosen one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from verax.report.charts import DASHES, FORMAT, LABEL, SERIES, Spec, Values, altair, filled, finish, finite
from verax.report.charts import labelled as with_labels
from verax.report.contents import Contents
from verax.report.thresholds import ThresholdCurves, TwoClassCurves

# The lowest net benefit that is drawn, as a share of the prevalence.
_FLOOR = -0.2
_ALL = "act in all rows"


def rate_charts(contents: Contents) -> dict[str, Spec]:
    """The charts by the name of their place; none where the curves were not computed."""
    found = contents.thresholds
    if found is None:
        return {}
    names = list(contents.problem.models.values())
    charts = {"confident": _confident(contents, found, names)}
    if found.two is not None:
        charts |= _two_class(found.two, names)
    return charts


def _confident(contents: Contents, found: ThresholdCurves, names: Sequence[str]) -> Spec:
    # With two classes, the most likely one has at least one half.
    least = 0.5 if contents.problem.n_classes == 2 else 0.0
    rows = [row for row in _rates(found.confidence, names) if row["x"] >= least]
    lowest = min((row[key] for row in rows for key in ("y", "low") if row[key] is not None), default=0.0)
    upward = (min(least, math.floor(10 * lowest) / 10), 1.0)
    drawing = rate_chart(len(names), "least confidence", "accuracy", (least, 1.0), upward, "linear")
    # No diagonal: rows from a confidence on claim more than it, so even overconfident ones may lie above.
    return with_labels(line_rows(drawing, []), rows, step=None)


def _two_class(found: TwoClassCurves, names: Sequence[str]) -> dict[str, Spec]:
    unit = (0.0, 1.0)
    roc = rate_chart(len(names), "false positive rate", "sensitivity", unit, unit, "linear")
    recall = rate_chart(len(names), "recall (sensitivity)", "precision", unit, unit, "step-before")
    first = found.net_benefit.curves[0]
    rate = first.prevalence
    highest = max(float(np.nanmax(curve.values)) for curve in found.net_benefit)
    span = (_FLOOR * rate or -0.01, max(1.05 * highest, 1.05 * rate) or 0.01)
    worth = rate_chart(len(names), "threshold", "net benefit", unit, span, "linear", beside=True)
    references: dict[str, list[tuple[float, float]]] = {
        "roc": [(0, 0), (1, 1)],
        "recall": [(0, rate), (1, rate)],
        "worth": [(0, 0), (1, 0)],
    }
    rows = {
        "roc": _rates(found.roc, names),
        "recall": _rates(found.precision_recall, names),
        "worth": [
            row
            for m, curve in enumerate(found.net_benefit)
            for row in line_points(m, names[m], curve.thresholds, curve.values, curve.band, curve.thresholds)
        ],
    }
    none = np.full((2, len(first.thresholds)), np.nan)
    rows["worth"] += line_points(len(names), _ALL, first.thresholds, first.treat_all, none, first.thresholds)
    drawings = {"roc": roc, "recall": recall, "worth": worth}
    return {
        key: with_labels(line_rows(drawing, references[key]), rows[key], step=None)
        for key, drawing in drawings.items()
    }


def line_rows(drawing: Spec, points: Sequence[tuple[float, float]]) -> Spec:
    """A drawing with the line to compare with."""
    return filled(drawing, {"reference": [{"x": finite(x), "y": finite(y)} for x, y in points]})


def _rates(curves: Iterable[Any], names: Sequence[str]) -> Values:
    return [
        row
        for m, curve in enumerate(curves)
        for row in line_points(m, names[m], curve.x, curve.values, curve.band, curve.thresholds)
    ]


def line_points(i: int, label: str, x: Any, values: Any, band: Any, thresholds: Any) -> Values:
    """The points of one line, in their order along it."""
    return [
        {
            "i": i,
            "label": label,
            "k": k,
            "x": finite(a),
            "y": finite(b),
            "low": finite(low),
            "high": finite(high),
            "t": finite(t),
        }
        for k, (a, b, low, high, t) in enumerate(
            zip(x.tolist(), values.tolist(), *band.tolist(), thresholds.tolist(), strict=True)
        )
        if finite(b) is not None
    ]


@lru_cache
def rate_chart(
    n_models: int,
    x: str,
    y: str,
    across: tuple[float, float],
    upward: tuple[float, float],
    interpolate: str,
    *,
    beside: bool = False,
    along: str = "threshold",
) -> Spec:
    """A line for each model, the band of the chosen one, and a line to compare with; `beside` one more.

    Of more models than there are colours, all but the chosen one are grey. Points have a number `along` the
    line.
    """
    alt = altair()
    base = alt.Chart(alt.NamedData("rows"))
    horizontal = alt.Scale(domain=list(across), nice=False)
    vertical = alt.Scale(domain=list(upward), nice=False)
    ticks = alt.Axis(format="~g", tickCount=5, grid=True)
    counted = alt.Axis(format="d", tickCount=5, tickMinStep=1, grid=True)
    at_x = alt.X("x:Q", title=x, scale=horizontal, axis=counted if across[1] > 1 else ticks)
    at_y = alt.Y("y:Q", title=y, scale=vertical, axis=ticks)
    n_lines = n_models + beside
    domain = list(range(n_lines))
    many = n_models > len(SERIES) - beside
    colours, dashes = SERIES[:n_models], DASHES[:n_models]
    if many:
        colours, dashes = [SERIES[0]] * n_models, [DASHES[0]] * n_models
    colours, dashes = [*colours, *["var(--soft)"] * beside], [*dashes, *[[4, 3]] * beside]
    legend: Any = None
    if n_lines > 1 and not many:
        legend = alt.Legend(
            title=None, orient="top", columns=2, labelExpr=LABEL, labelLimit=170, symbolType="stroke"
        )
    colour = alt.Color("i:N", scale=alt.Scale(domain=domain, range=colours), legend=legend)
    dash = alt.StrokeDash("i:N", scale=alt.Scale(domain=domain, range=dashes), legend=legend)
    tooltip = [
        *([alt.Tooltip("label:N", title="line")] if n_lines > 1 else []),
        alt.Tooltip("t:Q", title=along, format=".3~f"),
        *([] if x in (along, "least confidence") else [alt.Tooltip("x:Q", title=x, format=".3f")]),
        alt.Tooltip("y:Q", title=y, format=".3f"),
        alt.Tooltip("low:Q", title="band from", format=".3f"),
        alt.Tooltip("high:Q", title="to", format=FORMAT),
    ]
    mine = base.transform_filter("datum.i == model")
    reference = alt.Chart(alt.NamedData("reference"))
    lines = mine if many else base
    order = alt.Order("k:Q")
    layers = [
        mine.transform_filter("isValid(datum.low)")
        .mark_area(style="band", clip=True)
        .encode(
            x=at_x,
            y=alt.Y("low:Q", title=y, scale=vertical),
            y2="high:Q",
            color=colour,
        ),
        reference.mark_line(style="diagonal", clip=True).encode(x=at_x, y=at_y),
    ]
    if many:
        others = base.transform_filter("datum.i != model")
        layers.append(
            others.mark_line(style="others", clip=True, interpolate=interpolate).encode(
                x=at_x, y=at_y, order=order, detail="i:N"
            )
        )
    layers += [
        lines.mark_line(style="curve", clip=True, interpolate=interpolate).encode(
            x=at_x, y=at_y, order=order, color=colour, strokeDash=dash
        ),
        mine.mark_point(style="target", clip=True).encode(x=at_x, y=at_y, tooltip=tooltip),
    ]
    return finish(alt.layer(*layers), 260, "model", "labels")
