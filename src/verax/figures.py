"""Figures, in matplotlib. Each function draws one thing on axes it is given or makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verax.curves import RetentionCurve

# Okabe and Ito's colours, which those who see red and green alike can tell apart; then line styles.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":")


def draw_retention(curves: list[RetentionCurve], ax: Any = None) -> Any:
    """Curves of one or several orders, with bands where there was a bootstrap."""
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    several = len({curve.metric for curve in curves}) > 1
    for i, curve in enumerate(curves):
        colour, style = COLOURS[i % len(COLOURS)], STYLES[i % len(STYLES)]
        x = 100 * curve.removed
        name = f"{curve.order}, {curve.metric}" if several else curve.order
        ax.plot(
            x, curve.values, color=colour, linestyle=style, linewidth=1.8, label=f"{name}  {_area(curve)}"
        )
        if curve.band is not None:
            ax.fill_between(x, *curve.band, color=colour, alpha=0.13, linewidth=0)
    first = curves[0]
    direction = "higher is better" if first.higher_is_better else "lower is better"
    metric = "metric" if several else f"{first.metric} of the rows kept ({direction})"
    worst = "worst rows" if first.sees_outcome else "least certain rows"
    ax.set(xlabel=f"{worst} removed (%)", ylabel=metric, xlim=(x[0], x[-1]))
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    kind = "mean height" if first.area_kind == "mean" else "area in steps"
    interval = "" if first.band is None else f", {100 * first.confidence:g}% interval"
    ax.legend(title=f"ordered by: {kind}{interval}", frameon=False, loc="best", alignment="left")
    return ax


def _area(curve: RetentionCurve) -> str:
    interval = "" if curve.interval is None else f" ({curve.interval[0]:.3f} to {curve.interval[1]:.3f})"
    return f"{curve.area:.3f}{interval}"
