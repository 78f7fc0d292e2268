"""The page of a monitor: one HTML file with drawings, no script and no other file."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from verax.analyses.monitoring.monitor import Monitor
from verax.analyses.monitoring.result import MonitorHistory
from verax.display.monitoring import places_of
from verax.display.ticks import round_numbers
from verax.report.plain import figure, plain_page, save_page, table_of

_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 10, 26


def monitor_page(monitor: Monitor, *, title: str = "Is it still good?", source: str = "") -> str:
    """The page as text.

    Parameters
    ----------
    monitor : Monitor
        What was monitored.
    title : str, default "Is it still good?"
        The title of the page.
    source : str, default ""
        Where the rows come from.

    Returns
    -------
    str
        HTML that needs nothing else.
    """
    history, drawn = monitor.history, monitor.joined_history()
    began, alarm = monitor.began, monitor.alarm
    marked = None if began is None else places_of([line.time for line in drawn.lines], began)
    lines = [
        f'<p class="verdict{"" if alarm is None else " alarm"}">{escape(monitor.verdict)}</p>',
        f'<p class="soft">{escape(_settings(monitor))}</p>',
    ]
    if alarm is not None and len(alarm.reasons) > 1:
        lines += ["<ul>", *(f"<li>{escape(reason)}</li>" for reason in alarm.reasons), "</ul>"]
    for note in (*monitor.cautions, monitor.lateness, _expected(monitor)):
        lines += [f"<p>{escape(note)}</p>"] if note else []
    if history.lines:
        size = -(-len(history.lines) // len(drawn.lines))
        lines += _drawings(drawn, marked, size)
        notes = (f'<p class="soft">{escape(note)}</p>' for note in history._notes())
        (table,) = history._tables()
        lines += ["<h2>Time steps</h2>", *notes, table_of(table, "Time steps")]
    return plain_page(title, lines, source)


def save_monitor_page(monitor: Monitor, path: str | Path, *, source: str = "") -> None:
    """Write the page: whole or not at all.

    Parameters
    ----------
    monitor : Monitor
        What was monitored.
    path : str or path
        The file.
    source : str, default ""
        Where the rows come from.
    """
    save_page(monitor_page(monitor, source=source), path)


def _settings(monitor: Monitor) -> str:
    told = monitor.settings
    reference = (
        "Without a reference, only calibration is monitored."
        if told.reference is None
        else f"Reference {told.reference:.4g}, tolerance {told.tolerance:.4g}."
    )
    kept = (
        f"The probability of ever raising a false alarm is at most {100 * told.alpha:g}%."
        if told.false_alarms == "ever"
        else f"False alarms are at least {1 / told.alpha:,.0f} time steps apart on average."
    )
    units = {"row": "Rows", "group": "Groups", "time": "Time steps", None: "Rows"}[told.unit]
    assumed = f"{units} are assumed to be independent given the past."
    if told.unit != "time" and not told.unit_stated:
        assumed = (
            f"{units} are assumed to be independent given the past where time steps do not speak against it; "
            "elsewhere, and in the first nine steps, time steps enter as a whole."
        )
    of_subgroups = " Subgroups are monitored for calibration." if told.by else ""
    return f"{reference} {kept} {assumed}{of_subgroups}"


def _expected(monitor: Monitor) -> str:
    if not monitor.pending:
        return ""
    return (
        f"{monitor.pending:,} forecasts have no outcome yet. Their estimated mean loss is "
        f"{monitor.expected_loss:.4g}, if calibration stays as it was."
    )


def _drawings(history: MonitorHistory, marked: Any, size: int) -> list[str]:
    steps = history.lines
    times = [str(step.time) for step in steps]
    what = "each time step" if size == 1 else f"every {size} time steps"
    loss = [step.loss for step in steps]
    ends = [[step.interval[end] if step.interval.defined else step.loss for step in steps] for end in (0, 1)]
    expected = [step.expected_loss for step in steps]
    lines = [{"values": loss, "colour": "var(--accent)", "width": 2}]
    known = all(value is not None for value in expected)
    if known:
        lines.append({"values": expected, "colour": "var(--soft)", "width": 1.2})
    level = [] if history.tolerated is None else [(history.tolerated, "tolerated")]
    shown = _both(lines, times, 260, levels=level, band=ends, marked=marked)
    evidence = [max(step.evidence, 1e-12) for step in steps]
    below = _both(
        [{"values": evidence, "colour": "var(--warn)", "width": 2}],
        times,
        200,
        levels=[(history.threshold, "alarm")],
        marked=marked,
        log=True,
    )
    found = [
        f"<h2>Mean {escape(history.rule)}</h2>",
        figure(
            shown,
            f"Mean loss of {what} with its 95% interval"
            + ("; in grey, the loss that the forecasts expect." if known else "."),
        ),
        "<h2>Evidence of a change</h2>",
        figure(
            below,
            "An alarm is raised when the evidence reaches the dashed line, however often you look."
            + ("" if marked is None else " Shaded: when the change may have begun."),
        ),
        '<h2>What was forecast and what happened, all rows</h2><div class="events">',
    ]
    for name in history.events:
        own = [step.events[name] for step in steps]
        stated, happened = [event.stated for event in own], [event.happened for event in own]
        drawn = _chart(
            [
                {"values": stated, "colour": "var(--soft)", "width": 1.5},
                {"values": happened, "colour": "var(--accent)", "width": 2},
            ],
            times,
            170,
            width=330,
            marked=marked,
        )
        found.append(figure(drawn, f"{name}: mean probability in grey, frequency in blue"))
    return [*found, "</div>"]


def _both(lines: Sequence[dict[str, Any]], times: Sequence[str], height: int, **how: Any) -> str:
    """A chart for screens and one for phones."""
    wide, narrow = (_chart(lines, times, height, width=width, **how) for width in (900, 360))
    return f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>'


def _chart(
    lines: Sequence[dict[str, Any]],
    times: Sequence[str],
    height: int,
    *,
    width: int = 900,
    levels: Sequence[tuple[float, str]] = (),
    band: Sequence[Sequence[float]] = (),
    marked: tuple[int, int] | None = None,
    log: bool = False,
) -> str:
    """Lines over the time steps as SVG."""
    scale: Callable[[float], float] = math.log10 if log else float
    every = [scale(v) for line in lines for v in line["values"]]
    every += [scale(v) for v, _ in levels] + [scale(v) for values in band for v in values]
    low, high = min(every), max(every)
    gap = 0.06 * (high - low) or 0.5
    low, high = low - gap, high + gap
    n = len(times)

    def x(i: float) -> float:
        return _LEFT + (width - _LEFT - _RIGHT) * (0.5 if n == 1 else i / (n - 1))

    def y(value: float) -> float:
        return _TOP + (height - _TOP - _BOTTOM) * (high - scale(value)) / (high - low)

    parts = [f'<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">']
    if marked is not None:
        step = (width - _LEFT - _RIGHT) / max(1, n - 1) / 2
        a, b = max(x(marked[0]) - step, _LEFT), min(x(marked[1]) + step, width - _RIGHT)
        parts.append(
            f'<rect x="{a:.1f}" y="{_TOP}" width="{b - a:.1f}" height="{height - _TOP - _BOTTOM}" '
            'fill="var(--mark)"/>'
        )
    for value, text in _ticks(low, high, log=log):
        at = _TOP + (height - _TOP - _BOTTOM) * (high - value) / (high - low)
        parts.append(
            f'<line x1="{_LEFT}" x2="{width - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="var(--line)"/>'
            f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{text}</text>'
        )
    if band:
        up = [f"{x(i):.1f},{y(v):.1f}" for i, v in enumerate(band[0])]
        down = [f"{x(i):.1f},{y(v):.1f}" for i, v in reversed(list(enumerate(band[1])))]
        parts.append(f'<polygon points="{" ".join(up + down)}" fill="var(--band)"/>')
    for line in lines:
        points = " ".join(f"{x(i):.1f},{y(v):.1f}" for i, v in enumerate(line["values"]))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{line["colour"]}" '
            f'stroke-width="{line["width"]}"/>'
        )
    for value, name in levels:
        at = y(value)
        parts.append(
            f'<line x1="{_LEFT}" x2="{width - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="var(--soft)" '
            f'stroke-dasharray="5 4"/><text class="level" x="{width - _RIGHT}" y="{at - 5:.1f}" '
            f'text-anchor="end">{name}</text>'
        )
    most = max(2, width // 140)
    shown = sorted({round(i * (n - 1) / (most - 1)) for i in range(most)}) if n > 1 else [0]
    for place, i in enumerate(shown):
        anchor = "start" if place == 0 and n > 1 else "end" if place == len(shown) - 1 and n > 1 else "middle"
        parts.append(
            f'<text x="{x(i):.1f}" y="{height - 6}" text-anchor="{anchor}">{escape(times[i][:16])}</text>'
        )
    return "".join([*parts, "</svg>"])


def _ticks(low: float, high: float, *, log: bool) -> list[tuple[float, str]]:
    """Places and labels on the vertical axis."""
    if log:
        step = max(1, math.ceil((high - low) / 5))
        first = math.ceil(low / step) * step
        return [
            (float(e), f"1e{e}" if abs(e) > 3 else f"{10.0**e:g}")
            for e in range(first, math.floor(high) + 1, step)
        ]
    return [(place, f"{place:.4g}") for place in round_numbers(low, high, 4)]
