"""The loss of shorter lists against the full distribution, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from verax.display.panels import COLOURS, label_below, panels, plain_texts

Floats = np.ndarray[Any, np.dtype[np.float64]]
# A hard prediction that loses more than this multiple of the largest loss of a list is written, not drawn.
_FAR = 4.0


class LengthGap(Protocol):
    """A difference of two mean losses."""

    @property
    def difference(self) -> float: ...
    @property
    def interval(self) -> Any: ...


class Lengths(Protocol):
    """The figure's data: the loss of each prediction against the last."""

    @property
    def predictions(self) -> tuple[str, ...]: ...
    @property
    def means(self) -> Mapping[str, tuple[float, ...]]: ...
    @property
    def confidence(self) -> float: ...
    def difference(self, a: str, b: str, rule: str | None = None, /) -> LengthGap: ...


@plain_texts
def draw_lengths(lengths: Lengths, names: Sequence[str], share: float) -> Any:
    """One panel per rule: what every prediction loses against the last, with intervals."""
    last = lengths.predictions[-1]
    shown = lengths.predictions[:-1]
    figure, axes = panels(len(names), width=3.4, height=2.6, share_y=False)
    for ax, name in zip(axes, names, strict=True):
        gaps = [lengths.difference(prediction, last, name) for prediction in shown]
        values = np.array([gap.difference for gap in gaps])
        fits = _fits(values)
        x = np.flatnonzero(fits)
        # An interval need not be known, for one row or one group.
        low, high = (np.array([gap.interval[end] for gap in gaps])[fits] for end in (0, 1))
        errors = np.nan_to_num(np.stack([values[fits] - low, high - values[fits]]))
        within = share * abs(lengths.means[name][-1])
        if np.isfinite(within):
            ax.axhspan(-within, within, color="#cccccc", alpha=0.5, linewidth=0)
        ax.axhline(0, color="#777777", linewidth=0.8, linestyle="--")
        ax.errorbar(x, values[fits], errors, color=COLOURS[0], marker="o", markersize=4, capsize=2.5)
        for missing in np.flatnonzero(~fits):
            text = "∞" if np.isinf(values[missing]) else f"{values[missing]:.2g} ↑"
            place = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "top", "fontsize": 8}
            ax.annotate(text, (missing, 0.97), **place)
        ax.set_title(name.replace("_", " "), fontsize=10)
        ax.set_xticks(range(len(shown)), shown, rotation=45, ha="right", fontsize=8)
        ax.set_xlim(-0.5, len(shown) - 0.5)
        ax.grid(axis="y", color="#dddddd", linewidth=0.6)
        ax.set_axisbelow(True)
    what = "the full distribution" if last == "full" else "the lists as given"
    note = f"{100 * lengths.confidence:g}% intervals; shaded: within {100 * share:g}% of it"
    figure.supylabel(f"loss above that of {what}", fontsize=9)
    label_below(figure, note)
    return figure


def _fits(values: Floats) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The losses that set the scale: finite ones, except a first that is far above all others."""
    fits = np.isfinite(values)
    others = values[1:][fits[1:]]
    if fits[0] and len(others) > 1 and values[0] > _FAR * others.max() > 0:
        fits[0] = False
    return fits
