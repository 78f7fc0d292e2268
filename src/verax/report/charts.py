"""The figures of the report, at their places: one for each model, score or metric that readers can choose."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from verax.analyses.words import clean, number, title_of
from verax.display.axes import Axis
from verax.display.figures import Figure, rows_figure
from verax.display.marks import Band, Guide, Line, Mark, Points, Ranged, Ranges, Strip
from verax.report.breakdowns import drawn
from verax.report.contents import Contents, Distributions, ListFindings, inner_name
from verax.report.figures import FULL, HALF, PANEL, SINGLE, Shown, Variant
from verax.report.reliability import ReliabilityPanel
from verax.scores.registry import name_of

# Of more models, all but the chosen one are grey.
_TOLD_APART = 5
# The height of the highest bar at the bottom of a panel, as a share of it.
_BAR = 0.25
FORECAST = Axis("forecast", 0, 1, ticks=(0.0, 0.5, 1.0))
HAPPENED = Axis("happened", 0, 1, ticks=(0.0, 0.5, 1.0))
DIAGONAL = Line("calibrated", (0, 1), (0, 1), "soft", dash=1)


def all_figures(contents: Contents) -> dict[str, Shown]:
    """Every figure of the core under the name of its place."""
    shown = {"coverage": _coverage(contents)} if contents.problem.lists else {"classes": _classes(contents)}
    n_panels = len(contents.findings[0].panels)
    for i in range(n_panels):
        panels = [model.panels[i] for model in contents.findings]
        place = PANEL if n_panels > 1 else SINGLE
        shown[f"panel-{i}"] = of_models(contents, partial(_reliability, panels), place)
    for i, name in enumerate(contents.breakdowns):
        if name in contents.subgroups:
            shown[f"subgroups-{i}"] = _subgroups(contents, name)
    if len(contents.findings) > 1:
        shown |= {"models": _models(contents), "differences": _differences(contents)}
    return shown


def of_models(contents: Contents, figure: Callable[[int], Figure], place: Any = HALF) -> Shown:
    """A figure for each model."""
    models = list(contents.problem.models.values())
    return Shown([Variant({"model": m}, name, figure(m)) for m, name in enumerate(models)], place)


def interval_named(contents: Contents) -> str:
    """What intervals are called in keys."""
    return f"{100 * contents.confidence:g}% interval"


# ---- means with their intervals ------------------------------------------------------------------


def mean_figure(
    ranges: Ranges, axis: str, what: str, others: Sequence[tuple[float, int]] = (), *, zero: bool = False
) -> Figure:
    """Means below each other, and beside them those of other models, by their places."""
    behind: list[Mark] = [Guide("no difference", "x", 0.0)] if zero else []
    known = [(x, place) for x, place in others if math.isfinite(x)]
    if known:
        x, place = zip(*known, strict=True)
        behind.append(Points("other models", x, place, colour="soft", size=4))
    return rows_figure("", ranges, Axis(axis), what, *behind)


def row_of(name: str, mean: float, interval: Iterable[float], *, flagged: bool = False) -> Ranged:
    """A mean with its interval; in words where it is not finite."""
    low, high = interval
    if not math.isfinite(mean):
        return Ranged(name, math.nan, note=number(mean))
    if not (math.isfinite(low) and math.isfinite(high)):
        low = high = math.nan
    return Ranged(name, mean, low, high, flagged)


def _classes(contents: Contents) -> Shown:
    """The mean loss of the rows of each class, by score and model."""
    titles, models = contents.problem.titles, list(contents.problem.models.values())
    dense = [model.dense for model in contents.findings if model.dense is not None]

    def figure(m: int, rule: Any) -> Figure:
        lines = dense[m].by_class
        rows = [row_of(titles[line.position], line.means[rule], line.intervals[rule]) for line in lines]
        others = [
            (line.means[rule], i)
            for k, other in enumerate(dense)
            for i, line in enumerate(_in_order(other, lines))
            if k != m and line is not None
        ]
        return mean_figure(Ranges("mean loss", rows, interval_named(contents)), "mean loss", "class", others)

    rules = list(dense[0].by_class[0].means) if dense[0].by_class else []
    return Shown(
        [
            Variant({"score": s, "model": m}, f"{name}, {title_of(str(rule))}", figure(m, rule))
            for s, rule in enumerate(rules)
            for m, name in enumerate(models[: len(dense)])
        ],
        FULL,
    )


def _in_order(model: Distributions, lines: Sequence[Any]) -> list[Any]:
    """The lines of a model for the classes of other lines."""
    by_position = {line.position: line for line in model.by_class}
    return [by_position.get(line.position) for line in lines]


def _subgroups(contents: Contents, name: str) -> Shown:
    """The mean loss of each subgroup, by score and model; subgroups that stand out are flagged."""
    position = {model.name: m for m, model in enumerate(contents.findings)}
    lines = drawn(contents.subgroups[name])
    order = {label: i for i, label in enumerate(dict.fromkeys(line.label for line in lines))}
    chosen = []
    for s, rule in enumerate(contents.problem.rules):
        scored = []
        for line in lines:
            score = next((x for x in line.card.scores.values() if inner_name(x) == name_of(rule)), None)
            if score is not None:
                scored.append((position.get(line.model, 0), line, score))
        for m, whose in enumerate(contents.problem.models.values()):
            own = {line.label: (line, score) for k, line, score in scored if k == m}
            rows = [
                row_of(clean(label), score.mean, score.interval, flagged=line.stands_out)
                for label, (line, score) in sorted(own.items(), key=lambda pair: order[pair[0]])
            ]
            places = {label: i for i, label in enumerate(sorted(own, key=order.__getitem__))}
            beside = [each for each in scored if each[0] != m and each[1].label in places]
            others = [(score.mean, places[line.label]) for _, line, score in beside]
            ranges = Ranges("mean loss", rows, interval_named(contents), "significantly miscalibrated")
            figure = mean_figure(ranges, "mean loss", "subgroup", others)
            chosen.append(Variant({"score": s, "model": m}, f"{whose}, {title_of(name_of(rule))}", figure))
    return Shown(chosen, FULL)


def _models(contents: Contents) -> Shown:
    """The mean losses of all models by score, the best first."""
    chosen = []
    for s, (rule, models) in enumerate(contents.comparison.models.items()):
        rows = [row_of(m.name, m.mean, contents.interval(m.name, rule)) for m in models]
        ranges = Ranges("mean loss", rows, interval_named(contents))
        chosen.append(Variant({"score": s}, title_of(rule), mean_figure(ranges, "mean loss", "model")))
    return Shown(chosen, HALF)


def _differences(contents: Contents) -> Shown:
    """How much more than the best the other models lose, by score."""
    chosen = []
    for s, (rule, models) in enumerate(contents.comparison.models.items()):
        gaps = [contents.comparison.difference(m.name, models[0].name, rule) for m in models[1:]]
        rows = [row_of(m.name, d.difference, d.interval) for m, d in zip(models[1:], gaps, strict=True)]
        ranges = Ranges("difference", rows, interval_named(contents))
        figure = mean_figure(ranges, "mean loss minus that of the best", "model", zero=True)
        chosen.append(Variant({"score": s}, title_of(rule), figure))
    return Shown(chosen, HALF)


# ---- curves --------------------------------------------------------------------------------------


def _reliability(panels: Sequence[ReliabilityPanel], chosen: int) -> Figure:
    """One event's reliability: the curve, the expected range if calibrated, the diagonal, the forecasts."""
    panel = panels[chosen]
    x, y, low, high = panel.points[:, :4].T
    edges = np.linspace(0, 1, len(panel.histogram) + 1)
    marks: list[Mark] = [
        Strip("how often forecast", edges, panel.histogram, height=_BAR),
        Band("expected range if calibrated", x, low, high, "soft"),
        DIAGONAL,
        *(
            Line("other models", other.points[:, 0], other.points[:, 1], "soft", dash=0)
            for m, other in enumerate(panels)
            if m != chosen
        ),
        Line("observed", x, y),
    ]
    facts = []
    if panel.components is not None:
        facts = [Ranged("miscalibration", panel.components.miscalibration)]
    return Figure("", marks, FORECAST, HAPPENED, facts=facts, square=True)


def lines_figure(figure: Figure, names: Sequence[str], chosen: int) -> Figure:
    """The lines of all models, called by their names on the page, with the band of the chosen one.

    Of more models than there are colours, all but the chosen one are grey.
    """
    many = len(names) > _TOLD_APART
    marks: list[Mark] = []
    for mark in figure.marks:
        if isinstance(mark, Band):
            if mark.colour == chosen:
                marks.append(replace(mark, colour=0) if many else mark)
        elif isinstance(mark, Line) and isinstance(mark.colour, int):
            named = replace(mark, name=names[mark.colour])
            if many and mark.colour != chosen:
                marks.append(replace(named, name="other models", colour="soft", dash=0))
            else:
                marks.append(replace(named, colour=0) if many else named)
        else:
            marks.append(mark)
    facts = figure.facts[chosen : chosen + 1]
    return replace(figure, title="", marks=marks, says="", facts=facts)


def _coverage(contents: Contents) -> Shown:
    """How many outcomes are among the first places, and how many were claimed to be."""
    lists = [model.places for model in contents.findings if model.places is not None]
    return of_models(contents, lambda m: _coverage_figure(lists[m]), FULL)


def _coverage_figure(model: ListFindings) -> Figure:
    places, happened, claimed = zip(*model.so_far(), strict=True)
    listed = Line("listed so far", places, happened, dots=True)
    lines = [listed, Line("claimed", places, claimed, 1, dots=True)]
    facts = [Ranged("listed", happened[-1]), Ranged("claimed", claimed[-1])]
    share = Axis("share of rows", 0, 1, percent=True)
    return Figure("", lines, Axis("places", whole=True), share, facts=facts)
