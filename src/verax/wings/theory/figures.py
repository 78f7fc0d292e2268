"""Landscapes of rules, drawn with matplotlib: curves over two classes, triangles over three."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from verax.display.panels import COLOURS, STYLES, axes_for, plain_texts, pyplot

# Dark is a small loss. Readers who see no colours, or few, see the same order of brightness.
_MAP = "cividis"
# Losses above this share of the finite ones have the last colour where the loss has no bound.
_SHOWN = 0.97
_LEVELS = 9
# A step of a curve is a jump if it is this many times as large as those beside it.
_JUMP = 8.0
_ROOT = math.sqrt(3) / 2
# Where the names of the corners stand: how far from them, and how they are aligned.
_CORNERS = ((-0.03, -0.03, "right", "top"), (0.0, 0.03, "center", "bottom"), (0.03, -0.03, "left", "top"))


class PlottedMinimum(Protocol):
    """The forecast with the smallest expected loss."""

    @property
    def forecast(self) -> Any: ...
    @property
    def alone(self) -> bool: ...


class Surface(Protocol):
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


@plain_texts
def draw_landscape(surface: Surface, ax: Any = None) -> Any:
    """Draw the losses for each outcome, or the expected loss; returns the axes, or a list of them."""
    draw = _draw_curves if surface.n_classes == 2 else _draw_triangles
    return draw(surface, ax)


# ---- two classes ---------------------------------------------------------------------------------


def _draw_curves(surface: Surface, ax: Any) -> Any:
    ax = pyplot().subplots(figsize=(5.6, 4), layout="constrained")[1] if ax is None else ax
    x = surface.points[:, 1]
    order = np.argsort(x)
    if surface.expected is None:
        curves = [(f"class {y} happens", surface.losses[order, y]) for y in range(2)]
    else:
        curves = [("expected loss", surface.expected[order])]
    for i, (label, values) in enumerate(curves):
        _draw_curve(ax, x[order], values, label=label, color=COLOURS[i], linestyle=STYLES[i])
    if surface.expected is not None:
        _mark_lowest(ax, surface, lambda p: (p[1], _value_at(p, x[order], curves[0][1])))
    every = np.concatenate([values for _, values in curves])
    if not np.isfinite(every).all():
        ax.set_ylim(top=_highest(every))
    title = surface.rule if surface.truth is None else f"{surface.rule}, truth {_row(surface.truth)}"
    ax.set(xlabel="forecast probability of class 1", ylabel="loss (lower is better)", xlim=(-0.01, 1.01))
    ax.set_title(title, fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9)
    return ax


def _draw_curve(ax: Any, x: Any, values: Any, **how: Any) -> None:
    """A curve that is not drawn across jumps; single points between two of them are dots."""
    finite = np.where(np.isfinite(values), values, np.nan)
    steps = np.abs(np.diff(finite))
    near = np.stack([np.roll(steps, 2), np.roll(steps, -2)])
    jump = steps > np.maximum(_JUMP * np.nanmax(near, axis=0, initial=0), 0.01 * np.nanmax(np.abs(finite)))
    at = np.flatnonzero(jump)
    ax.plot(np.insert(x, at + 1, np.nan), np.insert(finite, at + 1, np.nan), linewidth=1.8, **how)
    alone = at[np.isin(at + 1, at)] + 1
    for i in at[~np.isin(at, alone) & ~np.isin(at + 1, alone)]:
        ax.plot(x[i : i + 2], finite[i : i + 2], color=how["color"], linewidth=0.8, linestyle=":")
    for i in alone:
        ax.plot(x[i - 1 : i + 2], finite[i - 1 : i + 2], color=how["color"], linewidth=0.8, linestyle=":")
        ax.plot(x[i], finite[i], "o", color=how["color"], markersize=5)
    for i in np.flatnonzero(np.isposinf(values)):
        side, ha = (4, "left") if x[i] < 0.5 else (-4, "right")
        at = ax.get_xaxis_transform()
        ax.plot(x[i], 1.0, "^", color=how["color"], transform=at, clip_on=False)
        how_to = {"ha": ha, "va": "center", "color": how["color"], "fontsize": 13}
        ax.annotate("∞", (x[i], 1.0), (side, -1), at, "offset points", **how_to)


def _value_at(p: Any, x: Any, values: Any) -> float:
    return float(values[np.abs(x - p[1]).argmin()])


# ---- three classes -------------------------------------------------------------------------------


def _draw_triangles(surface: Surface, ax: Any) -> Any:
    expected = surface.expected
    panels = [expected] if expected is not None else [surface.losses[:, y] for y in range(3)]
    axes = _axes(len(panels), ax)
    low = min(float(np.min(values[np.isfinite(values)], initial=math.inf)) for values in panels)
    high = max(_highest(values) for values in panels)
    cut = any(bool((values > high).any()) for values in panels)
    levels = np.linspace(low, high, _LEVELS + 1)[1:-1] if high > low else np.empty(0)
    infinite = False
    for y, (panel, values) in enumerate(zip(axes, panels, strict=True)):
        image = _draw_triangle(panel, surface.points, values, (low, high), levels)
        infinite |= _draw_infinite(panel, surface.points, values)
        said = f"class {y} happens" if expected is None else f"truth {_row(surface.truth)}"
        panel.set_title(said, fontsize=10)
    if expected is not None:
        _mark_lowest(axes[0], surface, _place)
        axes[0].legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, 0.06))
    if ax is None:
        figure = axes[0].figure
        what = "loss" if expected is None else "expected loss"
        bar = figure.colorbar(image, ax=axes, shrink=0.75, extend="max" if cut else "neither", pad=0.02)
        bar.set_label(f"{what} of {surface.rule} (lower is better)", fontsize=9)
        bar.ax.tick_params(labelsize=8)
        if infinite:
            bar.ax.set_title("red line: ∞", fontsize=8, color=COLOURS[1])
    return axes[0] if expected is not None else axes


def _axes(n: int, ax: Any) -> list[Any]:
    if ax is None:
        _, axes = pyplot().subplots(
            1, n, figsize=(2.7 * n + 1.1, 2.9) if n > 1 else (4.6, 4.2), squeeze=False, layout="constrained"
        )
        return list(axes[0])
    return axes_for(n, ax)


def _draw_triangle(ax: Any, points: Any, values: Any, limits: tuple[float, float], levels: Any) -> Any:
    from matplotlib.tri import Triangulation

    x, y = _place(points.T)
    shown = np.clip(np.nan_to_num(values, nan=limits[1], posinf=limits[1]), *limits)
    mesh = Triangulation(x, y, _facets(points))
    image = ax.tripcolor(
        mesh, shown, shading="gouraud", cmap=_MAP, vmin=limits[0], vmax=limits[1], rasterized=True
    )
    if len(levels):
        ax.tricontour(mesh, shown, levels=levels, colors="white", linewidths=0.5, alpha=0.75)
    ax.set(aspect="equal", xlim=(-0.13, 1.13), ylim=(-0.13, _ROOT + 0.12))
    ax.set_axis_off()
    for j, (dx, dy, ha, va) in enumerate(_CORNERS):
        at = _place(np.eye(3)[j])
        ax.text(at[0] + dx, at[1] + dy, f"{j}", ha=ha, va=va, fontsize=10)
    return image


def _draw_infinite(ax: Any, points: Any, values: Any) -> bool:
    """Mark where the loss is infinite, which may be an edge only, without area."""
    infinite = np.isposinf(values)
    if not infinite.any():
        return False
    from matplotlib.collections import LineCollection

    x, y = _place(points.T)
    facets = _facets(points)
    sides = np.concatenate([facets[:, [0, 1]], facets[:, [1, 2]], facets[:, [2, 0]]])
    ends = sides[infinite[sides].all(axis=1)]
    lines = list(np.stack([x[ends], y[ends]], axis=-1))
    ax.add_collection(LineCollection(lines, colors=COLOURS[1], linewidths=2.5, capstyle="round"))
    ax.plot(x[infinite], y[infinite], ".", color=COLOURS[1], markersize=1.5)
    return True


def _facets(points: Any) -> Any:
    """The small triangles between neighbouring points of a lattice, as numbers of points."""
    units = round(1 / np.min(points[points > 0]))
    counts = np.rint(points[:, :2] * units).astype(int)
    at = np.full((units + 2, units + 2), -1)
    at[counts[:, 0], counts[:, 1]] = np.arange(len(points))
    i, j = counts.T
    corner, right, up, across = at[i, j], at[i + 1, j], at[i, j + 1], at[i + 1, j + 1]
    first, second = np.stack([corner, right, up], axis=1), np.stack([right, across, up], axis=1)
    both = np.concatenate([first, second])
    return both[(both >= 0).all(axis=1)]


def _place(p: Any) -> tuple[Any, Any]:
    """Where a forecast lies: class 0 at the left, class 1 at the top, class 2 at the right."""
    return p[2] + p[1] / 2, _ROOT * p[1]


# ---- both ----------------------------------------------------------------------------------------


def _mark_lowest(ax: Any, surface: Surface, place: Any) -> None:
    """The truth as a white dot, and where it is lower elsewhere, the lowest place as a cross."""
    how = {"markersize": 10, "linestyle": "none", "markeredgecolor": "black", "zorder": 5}
    label = "truth"
    if surface.lowest is not None and surface.truth_is_best:
        label = f"the truth loses least{'' if surface.lowest.alone else ', as others do'}"
    x, y = place(surface.truth)
    ax.plot(x, y, "o", markerfacecolor="white", markeredgewidth=2, label=label, **how)
    if surface.lowest is not None and not surface.truth_is_best:
        x, y = place(surface.lowest.forecast)
        label = f"{_row(surface.lowest.forecast)} loses least"
        ax.plot(x, y, "X", markerfacecolor=COLOURS[1], markeredgewidth=0.8, label=label, **how)


def _highest(values: Any) -> float:
    """The loss that has the last colour: the largest, unless some are infinite."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 1.0
    return float(finite.max() if len(finite) == len(values) else np.quantile(finite, _SHOWN))


def _row(p: Any) -> str:
    return f"({', '.join(f'{x:.3g}' for x in p)})"
