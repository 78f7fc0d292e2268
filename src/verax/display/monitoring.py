"""Losses over time, drawn with matplotlib, with the evidence or the accuracy below."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Protocol

from verax.display.panels import COLOURS, GREY, plain_texts, pyplot


class Monitored(Protocol):
    """What is drawn: time steps, the tolerated loss, and the evidence that raises an alarm."""

    @property
    def rule(self) -> str: ...
    @property
    def tolerated(self) -> float | None: ...
    @property
    def threshold(self) -> float: ...
    @property
    def lines(self) -> Sequence[Any]: ...


@plain_texts
def draw_monitor(history: Monitored, began: tuple[Any, Any, Any] | None, ax: Any = None) -> Any:
    """Draw losses and evidence; the time when a change began is shaded."""
    plt = pyplot()
    if ax is None:
        _, ax = plt.subplots(2, 1, figsize=(7, 5), sharex=True, layout="constrained")
    losses, evidence = ax
    lines = history.lines
    places = range(len(lines))
    times = [str(line.time) for line in lines]
    loss = [line.loss for line in lines]
    low, high = zip(
        *(line.interval if line.interval.defined else (line.loss,) * 2 for line in lines), strict=True
    )
    losses.fill_between(places, low, high, color=COLOURS[0], alpha=0.2, linewidth=0)
    losses.plot(places, loss, color=COLOURS[0], linewidth=1.4, marker="o", markersize=3)
    if history.tolerated is not None:
        losses.axhline(history.tolerated, color=GREY, linewidth=1, linestyle="--", label="tolerated")
        losses.legend(frameon=False, fontsize=9)
    losses.set(ylabel=f"mean {history.rule}")
    evidence.plot(places, [line.evidence for line in lines], color=COLOURS[1], linewidth=1.4)
    evidence.axhline(history.threshold, color=GREY, linewidth=1, linestyle="--", label="alarm")
    evidence.set(yscale="log", ylabel="evidence of a change", xlabel="time")
    evidence.legend(frameon=False, fontsize=9)
    if began is not None:
        first, last = places_of([line.time for line in lines], began)
        for each in (losses, evidence):
            each.axvspan(first - 0.5, last + 0.5, color=COLOURS[1], alpha=0.15, linewidth=0)
    _finish(ax, times)
    return ax


def places_of(times: Sequence[Any], began: tuple[Any, Any, Any]) -> tuple[int, int]:
    """The steps that hold the earliest and the latest time at which a change may have begun.

    >>> places_of([1, 4, 8], (5, 3, 8))
    (0, 2)
    """
    _, first, last = began
    return bisect_right(times, first) - 1, bisect_right(times, last) - 1


class Periods(Protocol):
    """What is drawn of periods."""

    @property
    def rule(self) -> str: ...
    @property
    def lines(self) -> Sequence[Any]: ...


@plain_texts
def draw_over_time(found: Periods, ax: Any = None) -> Any:
    """Draw the losses of periods with their intervals, and confidence and accuracy below them."""
    plt = pyplot()
    if ax is None:
        _, ax = plt.subplots(2, 1, figsize=(7, 5), sharex=True, layout="constrained")
    losses, below = ax
    lines, places = found.lines, range(len(found.lines))
    values = [line.loss for line in lines]
    ends = [line.interval if line.interval.defined else (line.loss, line.loss) for line in lines]
    reach = [[abs(value - pair[i]) for value, pair in zip(values, ends, strict=True)] for i in (0, 1)]
    losses.errorbar(places, values, reach, fmt="o", color=COLOURS[0], markersize=4, linewidth=1.2)
    losses.set(ylabel=f"mean {found.rule}")
    below.plot(
        places, [line.stated for line in lines], color=GREY, marker="o", markersize=3, label="confidence"
    )
    below.plot(
        places,
        [line.accuracy for line in lines],
        color=COLOURS[1],
        marker="o",
        markersize=3,
        label="accuracy",
    )
    below.legend(frameon=False, fontsize=9)
    below.set(ylabel="most likely class", xlabel="time")
    _finish(ax, [str(line.period) for line in lines])
    return ax


def _finish(axes: Any, times: Sequence[str]) -> None:
    """Labels of times below, and a quiet grid."""
    _label(axes[-1], times)
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.grid(axis="y", color="#dddddd", linewidth=0.6)
        each.set_axisbelow(True)


def _label(axis: Any, times: Sequence[str]) -> None:
    """At most eight labels of times."""
    every = max(1, -(-len(times) // 8))
    shown = range(0, len(times), every)
    axis.set_xticks(list(shown), [times[i] for i in shown], rotation=0 if len(times[0]) < 6 else 20)
