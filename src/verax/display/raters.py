"""The loss of forecasts between rater disagreement and panels of raters, drawn with matplotlib."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from verax.display.panels import COLOURS, GREY, plain_texts, pyplot


class DrawnMean(Protocol):
    """A number with its interval."""

    @property
    def value(self) -> float: ...
    @property
    def interval(self) -> Any: ...


class DrawnStudy(Protocol):
    """What is drawn."""

    @property
    def rule(self) -> str: ...
    @property
    def unbiased(self) -> bool: ...
    @property
    def disagreement(self) -> DrawnMean: ...
    @property
    def excess(self) -> DrawnMean: ...
    @property
    def worth(self) -> DrawnMean: ...


@plain_texts
def draw_raters(study: DrawnStudy) -> Any:
    """The loss as disagreement plus excess; panels of raters beside it where the rule has them."""
    plt = pyplot()
    figure, ax = plt.subplots(figsize=(6.6, 3.2), layout="constrained")
    h, excess = study.disagreement.value, study.excess.value
    low, high = (h + end for end in study.excess.interval)
    ax.axhline(h, color=GREY, linewidth=0.8, linestyle="--")
    ax.annotate("rater disagreement", (1, h), xytext=(0, 3), textcoords="offset points", fontsize=8)
    if study.unbiased:
        worth = study.worth.value
        most = 10 if not math.isfinite(worth) else max(5, math.ceil(2 * worth))
        sizes = np.arange(1, min(most, 50) + 1)
        ax.plot(sizes, h * (1 + 1 / sizes), "o-", color=GREY, markersize=4, label="panel of raters")
        ax.set_xlabel("raters in the panel", fontsize=9)
    else:
        ax.set_xticks([])
    if not math.isnan(low + high):
        ax.axhspan(low, high, color=COLOURS[0], alpha=0.15, linewidth=0)
    ax.axhline(h + excess, color=COLOURS[0], linewidth=1.6, label="forecasts")
    ax.set_ylabel(f"{study.rule}, lower is better", fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
    return figure
