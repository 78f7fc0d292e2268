"""Figures, in matplotlib. Each function draws on axes that it is given or makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verax.errors import InputError

if TYPE_CHECKING:
    from verax.curves import RetentionCurve

# The colours of Okabe and Ito, which colour-blind readers can tell apart, and line styles.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":")


def draw_retention(curves: list[RetentionCurve], ax: Any = None) -> Any:
    """Draw curves of one or several orders, with their bands if there are any; one panel per metric."""
    import matplotlib.pyplot as plt

    metrics = list(dict.fromkeys(curve.metric for curve in curves))
    if ax is None:
        _, panels = plt.subplots(
            1, len(metrics), figsize=(1.2 + 5.2 * len(metrics), 4.4), layout="constrained", squeeze=False
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


def _draw_panel(ax: Any, curves: list[RetentionCurve]) -> None:
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
    ax.legend(
        title=f"rows ranked by; {kind}{interval}", frameon=False, loc="best", alignment="left", fontsize=9
    )


def _area(curve: RetentionCurve) -> str:
    interval = "" if curve.interval is None else f" ({curve.interval[0]:.3f} to {curve.interval[1]:.3f})"
    return f"{curve.area:.3f}{interval}"
