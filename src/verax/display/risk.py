"""Risk-coverage curves, drawn with matplotlib."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from verax.display.palette import COLOURS, plain_texts, pyplot


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
