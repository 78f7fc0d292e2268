"""The charts of recalibration: reliability before and after."""

from __future__ import annotations

from collections.abc import Sequence

from verax.report.charts import (
    DASHES,
    DIAGONAL,
    FORECAST,
    HAPPENED,
    SERIES,
    Values,
    filled,
    finite,
    told_apart,
)
from verax.report.vega import Spec, category, chart, layer, number, rows_of
from verax.wings.recalibrate.section.analysis import RecalibrationBenefit


def remedy_charts(remedies: Sequence[RecalibrationBenefit]) -> dict[str, Spec]:
    """A chart for each event that has curves, with all models."""
    return {
        f"remedy-{i}": filled(_before_after_chart(), {"rows": _rows(remedies, i)})
        for i in range(len(remedies[0].curves))
    }


def _rows(remedies: Sequence[RecalibrationBenefit], i: int) -> Values:
    """A row for each model and point of one event's curve, before and after recalibration."""
    rows = []
    for m, remedy in enumerate(remedies):
        for curve in remedy.curves[i : i + 1]:
            for j, (label, points) in enumerate((("before", curve.before), ("after", curve.after))):
                rows += [
                    {"m": m, "i": j, "label": label, "x": finite(x), "y": finite(y), "share": finite(share)}
                    for x, y, share in points.tolist()
                ]
    return rows


def _before_after_chart() -> Spec:
    """One event's reliability before and after recalibration, with the diagonal."""
    rows, of_model = rows_of("rows"), "datum.m == model"
    tooltip = [
        category("label", title="recalibration"),
        number("x", title="forecast", format=".3f"),
        number("y", title="happened", format=".3f"),
        number("share", title="share of rows", format=".2~%"),
    ]
    at = {"x": FORECAST, "y": HAPPENED}
    layers = [
        layer("line", "diagonal", DIAGONAL, at),
        layer("line", "curve", rows, {**at, **told_apart(SERIES[1::-1], DASHES[1::-1], None)}, of_model),
        layer("point", "target", rows, {**at, "tooltip": tooltip}, of_model),
    ]
    return chart(layers, 170, "model")
