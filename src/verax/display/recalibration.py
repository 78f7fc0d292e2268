"""What methods of recalibration gain, drawn with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

from verax.display.panels import COLOURS, GREY, plain_texts, pyplot


class GainOnNothing(Protocol):
    """What a method takes off the loss, as a share of it."""

    @property
    def share(self) -> float: ...
    @property
    def share_interval(self) -> tuple[float, float]: ...


class MethodTried(Protocol):
    """A method and its gain."""

    @property
    def method(self) -> str: ...
    @property
    def gain(self) -> GainOnNothing: ...


class MethodsTried(Protocol):
    """What is drawn: all methods tried, and the one that is used."""

    @property
    def trials(self) -> Sequence[MethodTried]: ...
    @property
    def method(self) -> str: ...
    @property
    def rule(self) -> str: ...
    @property
    def confidence(self) -> float: ...


@plain_texts
def draw_gains(found: MethodsTried, ax: Any = None) -> Any:
    """A line for each method: its gain in percent and the interval; the method that is used stands out."""
    plt = pyplot()

    lines = [trial for trial in found.trials if trial.method != "none"]
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 1.3 + 0.42 * max(len(lines), 1)), layout="constrained")
    for place, trial in enumerate(lines):
        gain = trial.gain
        if math.isnan(gain.share):
            continue
        colour = COLOURS[0] if trial.method == found.method else GREY
        low, high = gain.share_interval
        if not math.isnan(low):
            ax.plot([100 * low, 100 * high], [place, place], color=colour, linewidth=2.2)
        ax.plot([100 * gain.share], [place], "o", color=colour, markersize=6)
    ax.axvline(0, color="black", linewidth=0.8)
    names = [f"{t.method} (nested)" if t.method == "best" else t.method for t in lines]
    ax.set_yticks(range(len(lines)), names)
    ax.set_ylim(max(len(lines), 1) - 0.5, -0.5)
    for label, trial in zip(ax.get_yticklabels(), lines, strict=True):
        label.set_fontweight("bold" if trial.method == found.method else "normal")
    level = f"{100 * found.confidence:g}% interval"
    ax.set_xlabel(f"{found.rule} gained on held-out rows, % of the loss, {level}")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    return ax
