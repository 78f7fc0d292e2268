"""Charts of lines: a panel that a result describes, with all models and the band of the chosen one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from verax.report.charts import DASHES, FORMAT, SERIES, WIDE_LEGEND, Values, finite, labelled, told_apart
from verax.report.panels import Line, Panel
from verax.report.vega import Spec, category, chart, end, layer, number, rows_of

# The dashes of lines to compare with.
_BESIDE = [[4, 3], [1, 3]]


def line_chart(panel: Panel, names: Sequence[str], *, along: str = "threshold", steps: bool = False) -> Spec:
    """The chart of a panel, whose models are called by their names on the page.

    Points have a number `along` the line. Lines to compare with follow those of the models.
    """
    models = [line for line in panel.lines if not line.beside]
    ends = panel.across or (0.0, 1.0)
    levels = [Line(name, ends, (height, height), beside=True) for height, name in panel.levels]
    lines = [*models, *(line for line in panel.lines if line.beside), *levels]
    labels = [*names, *(line.name for line in lines[len(models) :])]
    rows = [row for i, line in enumerate(lines) for row in _points(i, labels[i], line)]
    upward = panel.upward or _range(rows)
    how = "step-before" if steps else "linear"
    n = (len(models), len(lines) - len(models))
    return labelled(_drawing(*n, panel.x, panel.y, ends, upward, how, along), rows, step=None)


def _range(rows: Values) -> tuple[float, float]:
    """The range of all lines and bands, with some room."""
    heights = [row[key] for row in rows for key in ("y", "low", "high") if row[key] is not None]
    room = 0.05 * (max(heights) - min(heights)) or 0.01
    return min(heights) - room, max(heights) + room


def _points(i: int, label: str, line: Line) -> Values:
    """The points of one line, in their order along it."""
    none = [math.nan] * len(line.x)
    low, high = line.bands[0][1:] if line.bands else (none, none)
    columns = {
        "x": line.x,
        "y": line.y,
        "low": low,
        "high": high,
        "t": none if line.along is None else line.along,
    }
    points = [
        {"i": i, "label": label, "k": k} | dict(zip(columns, map(finite, map(float, point)), strict=True))
        for k, point in enumerate(zip(*columns.values(), strict=True))
    ]
    return [point for point in points if point["y"] is not None]


def _drawing(
    n_models: int,
    n_beside: int,
    x: str,
    y: str,
    across: tuple[float, float],
    upward: tuple[float, float],
    interpolate: str,
    along: str,
) -> Spec:
    """A line for each model, the band of the chosen one, and lines to compare with.

    Of more models than there are colours, all but the chosen one are grey.
    """
    rows, chosen = rows_of("rows"), "datum.i == model"
    upright = {"title": y, "scale": {"domain": upward, "nice": False}}
    ticks = {"format": "~g", "tickCount": 5, "grid": True}
    counted = {"format": "d", "tickCount": 5, "tickMinStep": 1, "grid": True}
    at_x = number(
        "x", title=x, scale={"domain": across, "nice": False}, axis=counted if across[1] > 1 else ticks
    )
    at = {"x": at_x, "y": number("y", **upright, axis=ticks)}
    n_lines = n_models + n_beside
    many = n_models > len(SERIES)
    colours = [SERIES[0 if many else i] for i in range(n_models)] + ["var(--soft)"] * n_beside
    dashes = [DASHES[0 if many else i] for i in range(n_models)] + _BESIDE[:n_beside]
    apart = told_apart(colours, dashes, WIDE_LEGEND if n_lines > 1 and not many else None)
    tooltip = [
        *([category("label", title="line")] if n_lines > 1 else []),
        number("t", title=along, format=".3~f"),
        *([] if x in (along, "least confidence") else [number("x", title=x, format=".3f")]),
        number("y", title=y, format=".3f"),
        number("low", title="band from", format=".3f"),
        number("high", title="to", format=FORMAT),
    ]
    line = {"clip": True, "interpolate": interpolate}
    along_line = {**at, "order": number("k")}
    band = {"x": at_x, "y": number("low", **upright), "y2": end("high"), "color": apart["color"]}
    layers = [layer("area", "band", rows, band, chosen, "isValid(datum.low)", clip=True)]
    shown = []
    if many:
        others = f"datum.i != model && datum.i < {n_models}"
        layers.append(layer("line", "others", rows, {**along_line, "detail": category("i")}, others, **line))
        shown = [f"datum.i == model || datum.i >= {n_models}"]
    layers += [
        layer("line", "curve", rows, {**along_line, **apart}, *shown, **line),
        layer("point", "target", rows, {**at, "tooltip": tooltip}, chosen, clip=True),
    ]
    return chart(layers, 260, "model", "labels")
