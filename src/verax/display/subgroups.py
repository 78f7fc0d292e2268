"""Miscalibration of subgroups, drawn with matplotlib: what is seen beside what chance would show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from verax.display.panels import COLOURS, GREY, plain_texts, pyplot, quiet

MOST_LINES = 40


@plain_texts
def draw_subgroups(lines: Sequence[tuple[str, float, float | None, bool]], rule: str) -> Any:
    """Draw a line for each subgroup: its name, value, value by chance, and whether it stands out."""
    plt = pyplot()
    if len(lines) > MOST_LINES:
        largest = sorted(lines, key=lambda line: -line[1])[:MOST_LINES]
        lines = [line for line in lines if line in largest]
    figure, ax = plt.subplots(figsize=(6.6, 1.3 + 0.3 * len(lines)), layout="constrained")
    for place, (_, seen, chance, stands_out) in enumerate(lines):
        if chance is not None:
            ax.plot([chance, seen], [place, place], color=GREY, linewidth=0.8, zorder=1)
            ax.plot(chance, place, "o", markersize=8, markerfacecolor="none", color=GREY, zorder=2)
        colour, marker = (COLOURS[1], "D") if stands_out else (COLOURS[0], "o")
        ax.plot(seen, place, marker, color=colour, markersize=6, zorder=3)
    ax.set_yticks(range(len(lines)), [name for name, *_ in lines])
    ax.set_ylim(len(lines) - 0.5, -0.5)
    ax.set_xlim(left=0)
    tested = any(chance is not None for _, _, chance, _ in lines)
    note = "\n(open circles: expected by chance; diamonds: significant)" if tested else ""
    ax.set_xlabel(f"miscalibration by {rule}, lower is better{note}", fontsize=9)
    ax.tick_params(axis="y", length=0)
    quiet(ax, "x")
    return figure
