"""Landscapes of rules as figures: curves over two classes, triangles over three."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from verax.display.axes import Axis
from verax.display.figures import Figure, Sheet
from verax.display.marks import Line, Mark, Points, Ranged, Surface, corner_place

# Losses above this share of the finite ones have the last colour where the loss has no bound.
_SHOWN = 0.97
# A step of a curve is a jump if it is this many times as large as those beside it.
_JUMP = 8.0


class PlottedMinimum(Protocol):
    """The forecast with the smallest expected loss."""

    @property
    def forecast(self) -> Any: ...
    @property
    def alone(self) -> bool: ...


class LossSurface(Protocol):
    """The figure's data: losses at points of the simplex."""

    @property
    def rule(self) -> str: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def points(self) -> Any: ...
    @property
    def losses(self) -> Any: ...
    @property
    def expected(self) -> Any: ...
    @property
    def truth(self) -> Any: ...
    @property
    def truth_is_best(self) -> bool | None: ...
    @property
    def lowest(self) -> PlottedMinimum | None: ...


def landscape_sheet(surface: LossSurface) -> Sheet:
    """The losses for each outcome, or the expected loss."""
    if surface.n_classes == 2:
        return Sheet([_curves(surface)], size=(5.1, 3.3))
    figures = _triangles(surface)
    return Sheet(figures, len(figures), (2.7, 2.2) if len(figures) > 1 else (4.1, 3.5), key="above")


# ---- two classes ---------------------------------------------------------------------------------


def _curves(surface: LossSurface) -> Figure:
    x = surface.points[:, 1]
    order = np.argsort(x)
    if surface.expected is None:
        curves = [(f"class {y} happens", surface.losses[order, y]) for y in range(2)]
    else:
        curves = [("expected loss", surface.expected[order])]
    marks = [mark for i, (name, values) in enumerate(curves) for mark in _curve(x[order], values, i, name)]
    if surface.expected is not None:
        marks += _lowest(surface, lambda p: (p[1], _value_at(p, x[order], curves[0][1])))
    every = np.concatenate([values for _, values in curves])
    # The axis ends where a loss without bound has its last height.
    high = None if np.isfinite(every).all() else _highest(every)
    title = surface.rule if surface.truth is None else f"{surface.rule}, truth {_row(surface.truth)}"
    across = Axis("forecast probability of class 1", -0.01, 1.01)
    upward = Axis("loss (lower is better)", None, high)
    return Figure(title, marks, across, upward, facts=_facts(surface))


def _curve(x: Any, values: Any, i: int, name: str) -> list[Mark]:
    """A curve that is not drawn across jumps; single points between two of them are dots."""
    finite = np.where(np.isfinite(values), values, np.nan)
    steps = np.abs(np.diff(finite))
    near = np.stack([np.roll(steps, 2), np.roll(steps, -2)])
    jump = steps > np.maximum(_JUMP * np.nanmax(near, axis=0, initial=0), 0.01 * np.nanmax(np.abs(finite)))
    at = np.flatnonzero(jump)
    marks: list[Mark] = [Line(name, np.insert(x, at + 1, np.nan), np.insert(finite, at + 1, np.nan), i)]
    alone = at[np.isin(at + 1, at)] + 1
    across = [(k, k + 2) for k in at[~np.isin(at, alone) & ~np.isin(at + 1, alone)]]
    across += [(k - 1, k + 2) for k in alone]
    marks += [Line("", x[a:b], finite[a:b], i, 3, thin=True) for a, b in across]
    marks += [Points("", x[[k]], finite[[k]], colour=i, size=5) for k in alone]
    infinite = np.isposinf(values)
    if infinite.any():
        marks.append(Points("", x[infinite], values[infinite], colour=i))
    return marks


def _value_at(p: Any, x: Any, values: Any) -> float:
    return float(values[np.abs(x - p[1]).argmin()])


# ---- three classes -------------------------------------------------------------------------------


def _triangles(surface: LossSurface) -> list[Figure]:
    expected = surface.expected
    losses = [expected] if expected is not None else [surface.losses[:, y] for y in range(3)]
    low = min(float(np.min(values[np.isfinite(values)], initial=math.inf)) for values in losses)
    high = max(_highest(values) for values in losses)
    cut = any(bool((values > high).any()) for values in losses)
    name = f"{'loss' if expected is None else 'expected loss'} of {surface.rule} (lower is better)"
    figures = []
    for y, values in enumerate(losses):
        marks: list[Mark] = [Surface(name, surface.points, values, low, high, cut)]
        marks += _lowest(surface, corner_place) if expected is not None else []
        title = f"class {y} happens" if expected is None else f"truth {_row(surface.truth)}"
        figures.append(Figure(title, marks, facts=_facts(surface)))
    return figures


# ---- both ----------------------------------------------------------------------------------------


def _lowest(surface: LossSurface, place: Callable[[Any], tuple[Any, Any]]) -> list[Mark]:
    """The truth as a ring, and where the loss is lower elsewhere, the lowest place as a cross."""
    label = "truth"
    if surface.lowest is not None and surface.truth_is_best:
        label = f"the truth loses least{'' if surface.lowest.alone else ', as others do'}"
    x, y = place(surface.truth)
    marks: list[Mark] = [Points(label, [x], [y], colour="ink", shape="ring", size=9)]
    if surface.lowest is not None and not surface.truth_is_best:
        x, y = place(surface.lowest.forecast)
        label = f"{_row(surface.lowest.forecast)} loses least"
        marks.append(Points(label, [x], [y], colour="warn", shape="cross", size=9))
    return marks


def _facts(surface: LossSurface) -> list[Ranged]:
    if surface.expected is None:
        return []
    return [Ranged("smallest expected loss", float(np.min(surface.expected)))]


def _highest(values: Any) -> float:
    """The loss that has the last colour: the largest, unless some are infinite."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 1.0
    return float(finite.max() if len(finite) == len(values) else np.quantile(finite, _SHOWN))


def _row(p: Any) -> str:
    return f"({', '.join(f'{x:.3g}' for x in p)})"
