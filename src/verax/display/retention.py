"""Retention and risk-coverage curves, drawn with matplotlib."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from verax.display.panels import COLOURS, STYLES, plain_texts, pyplot
from verax.errors import InputError


class RetainedCurve(Protocol):
    """What is drawn: a metric of the rows kept, by the share of rows removed."""

    @property
    def order(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def higher_is_better(self) -> bool: ...
    @property
    def sees_outcome(self) -> bool: ...
    @property
    def removed(self) -> Any: ...
    @property
    def values(self) -> Any: ...
    @property
    def area(self) -> float: ...
    @property
    def area_kind(self) -> str: ...
    @property
    def interval(self) -> tuple[float, float] | None: ...
    @property
    def band(self) -> Any: ...
    @property
    def confidence(self) -> float: ...


@plain_texts
def draw_retention(curves: list[RetainedCurve], ax: Any = None) -> Any:
    """Draw curves of one or several orders, with their bands if there are any; one panel per metric."""
    plt = pyplot()

    metrics = list(dict.fromkeys(curve.metric for curve in curves))
    if ax is None:
        width = 5.2 if len(metrics) == 1 else 3.3
        _, panels = plt.subplots(
            1, len(metrics), figsize=(1.2 + width * len(metrics), 4.4), layout="constrained", squeeze=False
        )
        axes = list(panels[0])
    elif len(metrics) == 1:
        axes = [ax]
    else:
        raise InputError(
            "must be left out, or the curves must be of one metric",
            argument="ax",
            found=f"there are {len(metrics)} metrics, and each has axes of its own",
        )
    for panel, metric in zip(axes, metrics, strict=True):
        _draw_panel(panel, [curve for curve in curves if curve.metric == metric])
    return axes[0] if len(axes) == 1 else axes


def _draw_panel(ax: Any, curves: list[RetainedCurve]) -> None:
    # Bands are more transparent where there are many, so that they can be told apart.
    alpha = 0.2 / len(curves) ** 0.75
    for i, curve in enumerate(curves):
        colour, style = COLOURS[i % len(COLOURS)], STYLES[i % len(STYLES)]
        x = 100 * curve.removed
        label = f"{curve.order}  {_area(curve)}"
        ax.plot(x, curve.values, color=colour, linestyle=style, linewidth=1.8, label=label)
        if curve.band is not None:
            ax.fill_between(x, *curve.band, color=colour, alpha=alpha, linewidth=0)
            for edge in curve.band if len(curves) > 1 else ():
                ax.plot(x, edge, color=colour, linestyle=style, linewidth=0.5, alpha=0.5)
    first = curves[0]
    direction = "higher is better" if first.higher_is_better else "lower is better"
    worst = "worst rows" if first.sees_outcome else "least certain rows"
    ylabel = f"{first.metric} of the rows kept ({direction})"
    ax.set(
        xlabel=f"{worst} removed (%)", ylabel=ylabel, xlim=(100 * first.removed[0], 100 * first.removed[-1])
    )
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    kind = "mean height" if first.area_kind == "mean" else "area in steps"
    interval = "" if first.band is None else f" and its {100 * first.confidence:g}% interval"
    title = f"rows ranked by;\n{kind}{interval}"
    ax.legend(title=title, frameon=False, loc="best", alignment="left", fontsize=8, title_fontsize=8)


def _area(curve: RetainedCurve) -> str:
    interval = "" if curve.interval is None else f" ({curve.interval[0]:.3f} to {curve.interval[1]:.3f})"
    return f"{curve.area:.3f}{interval}"


class PlottedRisk(Protocol):
    """What is drawn: the risk of the rows kept, by their share."""

    @property
    def order(self) -> str: ...
    @property
    def loss(self) -> str: ...
    @property
    def coverage(self) -> Any: ...
    @property
    def risk(self) -> Any: ...
    @property
    def aurc(self) -> float: ...
    @property
    def augrc(self) -> float: ...
    def band(self, coverages: Any) -> Any:
        """Intervals of the risk at some coverages, or None."""


@plain_texts
def draw_risk(curve: PlottedRisk, ax: Any = None) -> Any:
    """Draw one curve with its band; the areas are in the legend."""
    plt = pyplot()

    if ax is None:
        _, ax = plt.subplots(figsize=(5.6, 4), layout="constrained")
    places = np.linspace(0.01, 1, 100)
    band = curve.band(places)
    if band is not None:
        ax.fill_between(100 * places, *band, color=COLOURS[0], alpha=0.2, linewidth=0)
    label = f"by {curve.order}\nAURC {curve.aurc:.4f}, AUGRC {curve.augrc:.4f}"
    ax.plot(100 * curve.coverage, curve.risk, color=COLOURS[0], linewidth=1.6, label=label)
    ax.set(
        xlabel="coverage: most certain rows kept (%)", ylabel=f"{curve.loss} of the rows kept", xlim=(0, 100)
    )
    # A few rows at the beginning may have any risk; they should not set the scale.
    seen = curve.risk[curve.coverage >= 0.05]
    top = max([float(seen.max()), *([] if band is None else [float(band[1][5:].max())])])
    ax.set_ylim(0, 1.1 * top if np.isfinite(top) and top > 0 else None)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.legend(frameon=False, fontsize=9)
    return ax
