"""The figures of recalibration: reliability before and after."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from verax.display.figures import Figure
from verax.display.marks import Line, Mark
from verax.report.charts import DIAGONAL, FORECAST, HAPPENED, of_models
from verax.report.contents import Contents
from verax.report.figures import PANEL, SINGLE, Shown
from verax.wings.recalibrate.section.analysis import RecalibrationBenefit


def remedy_figures(contents: Contents, remedies: Sequence[RecalibrationBenefit]) -> dict[str, Shown]:
    """A figure for each event that has curves, for each model."""
    n = len(remedies[0].curves)
    return {
        f"remedy-{i}": of_models(contents, partial(_figure, remedies, i), PANEL if n > 1 else SINGLE)
        for i in range(n)
    }


def _figure(remedies: Sequence[RecalibrationBenefit], i: int, m: int) -> Figure:
    """One event's reliability before and after recalibration, with the diagonal."""
    marks: list[Mark] = [DIAGONAL]
    for curve in remedies[m].curves[i : i + 1]:
        for colour, dash, name, points in ((1, 1, "before", curve.before), (0, 0, "after", curve.after)):
            x, y = points[:, :2].T
            marks.append(Line(name, x, y, colour, dash))
    return Figure("", marks, FORECAST, HAPPENED, square=True)
