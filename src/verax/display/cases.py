"""Figures of single forecasts beside what happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.display.axes import Axis
from verax.display.figures import MOST_FIGURES, Figure, Sheet
from verax.display.marks import Band, Bars, Line, Mark


@dataclass(frozen=True)
class DrawnCase:
    """A forecast and what happened, as probabilities of the same classes, and a title."""

    title: str
    classes: Sequence[str]
    forecast: Any
    happened: Any


def cases_sheet(cases: Sequence[DrawnCase], *, ordered: bool) -> Sheet:
    """A figure per case: cumulative probabilities of ordered classes, else the probability of each class."""
    shown = cases[:MOST_FIGURES]
    widest = max(len(case.classes) for case in shown)
    figures = [(_cumulative if ordered else _separate)(case) for case in shown]
    upward = "cumulative probability" if ordered else "probability"
    size = (max(2.3, 0.5 * widest), 2.2)
    return Sheet(figures, size=size, y=upward, shared="x y" if ordered else "y", key="above")


def _cumulative(case: DrawnCase) -> Figure:
    """Both distribution functions; what lies between them, squared, is what the RPS adds up."""
    k = len(case.classes)
    forecast, happened = (np.append(np.cumsum(p)[:-1], [1.0, 1.0]) for p in (case.forecast, case.happened))
    # Steps from each class to the next; the last one is 1 by definition.
    x = np.arange(k + 1) - 0.5
    marks: list[Mark] = [
        Band("between them", x[:-1], forecast[:-1], happened[:-1], "soft", step="after"),
        Line("forecast", x, forecast, 0, step="after"),
        Line("what happened", x, happened, 1, step="after"),
    ]
    return Figure(case.title, marks, _classes(case), Axis("", 0, 1.05))


def _separate(case: DrawnCase) -> Figure:
    places, happened = np.arange(len(case.classes)), np.array(case.happened)
    seen = happened > 0
    marks: list[Mark] = [
        Bars("forecast", places, case.forecast, width=0.7),
        Bars("what happened", places[seen], happened[seen], 1, outline=True),
    ]
    return Figure(case.title, marks, _classes(case), Axis("", 0, 1.05))


def _classes(case: DrawnCase) -> Axis:
    return Axis(names=tuple(case.classes))
