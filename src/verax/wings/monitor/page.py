"""The page of a monitor: one HTML file with figures, and no other file."""

from __future__ import annotations

import math
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from verax.analyses.words import title_of
from verax.display.axes import Axis
from verax.display.figures import Figure
from verax.display.marks import Line, Ranged, Shade
from verax.display.tables import Column, Table
from verax.report.figures import PANEL, figure_html, key_html
from verax.report.plain import plain_page, save_page, table_of
from verax.wings.monitor.monitor import Monitor
from verax.wings.monitor.result import MonitorHistory


def monitor_page(monitor: Monitor, *, title: str = "Has the model changed?", source: str = "") -> str:
    """The page as text.

    Parameters
    ----------
    monitor : Monitor
        What was monitored.
    title : str, default "Has the model changed?"
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
    parts = [
        f'<p class="verdict{"" if alarm is None else " alarm"}">{escape(monitor.verdict)}</p>',
        f'<p class="soft">{escape(_settings(monitor))}</p>',
    ]
    if alarm is not None and len(alarm.reasons) > 1:
        parts += ["<ul>", *(f"<li>{escape(reason)}</li>" for reason in alarm.reasons), "</ul>"]
    answers = (f"{answer!r}." for answer in monitor.acknowledged)
    for note in (*monitor.cautions, monitor.lateness, _expected(monitor), *answers):
        parts += [f"<p>{escape(note)}</p>"] if note else []
    if history.lines:
        size = -(-len(history.lines) // len(drawn.lines))
        parts += [*_drawings(drawn, began, size), *_subgroups(monitor)]
        notes = (f'<p class="soft">{escape(note)}</p>' for note in history._notes())
        (table,) = history._tables()
        parts += ["<h2>Time steps</h2>", *notes, table_of(table, "Time steps", fold=True)]
    return plain_page(title, parts, source)


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
    units = {"row": "Rows", "group": "Groups", "time": "Time steps"}[told.unit]
    assumed = f"{units} are assumed to be independent given the past."
    if told.unit == "time":
        assumed += " Rows of a time step may depend on each other."
    of_subgroups = " Subgroups are monitored for calibration." if told.by else ""
    return f"{reference} {kept} {assumed}{of_subgroups}"


def _expected(monitor: Monitor) -> str:
    if not monitor.pending:
        return ""
    return (
        f"{monitor.pending:,} forecasts have no outcome yet. Their estimated mean loss is "
        f"{monitor.expected_loss:.4g}, if calibration stays as it was."
    )


def _drawings(history: MonitorHistory, began: tuple[Any, Any, Any] | None, size: int) -> list[str]:
    losses, evidence = history._figures(began)
    what = "each time step" if size == 1 else f"every {size} time steps"
    counted = (
        "The evidence starts at 1 and grows when losses rise or probabilities are off. It raises an alarm at "
        f"{history.threshold:.4g}, however often you look."
    )
    drawings = [
        f"<h2>Mean {escape(title_of(history.rule))}</h2>",
        figure_html(replace(losses, note=f"Mean loss of {what}."), "losses"),
        "<h2>Evidence of a change</h2>",
        figure_html(replace(evidence, note=counted), "evidence"),
        '<h2>Forecast and observed, all rows</h2><div class="events">',
    ]
    figures = []
    for i, name in enumerate(history.events):
        events = [step.events[name] for step in history.lines]
        places = range(len(events))
        marks = [
            Line("mean probability", places, [event.stated for event in events], "soft", dash=0),
            Line("frequency", places, [event.happened for event in events]),
            *losses.of_kind(Shade),
        ]
        last = [
            Ranged("mean probability at last", events[-1].stated),
            Ranged("frequency", events[-1].happened),
        ]
        figure = Figure(name, marks, losses.x, Axis(percent=True), facts=last)
        figures.append(figure)
        drawings.append(figure_html(figure, f"event-{i}", PANEL, heading="h3"))
    return [*drawings, "</div>", key_html(figures)]


def _subgroups(monitor: Monitor) -> list[str]:
    """The evidence in each subgroup, strongest first."""
    periods = monitor._state.periods
    rows: dict[tuple[str, Any], int] = {}
    for period in periods:
        for scope, step in period.steps.items():
            if scope[0]:
                rows[scope] = rows.get(scope, 0) + step.n_rows
    strongest: dict[tuple[str, Any], tuple[float, str]] = {}
    for (column, label, claim), log in periods[-1].logs.items():
        if column:
            strongest[column, label] = max(strongest.get((column, label), (-math.inf, "")), (log, claim))
    ranked = [
        (f"{column} = {label}", rows.get((column, label), 0), claim, math.exp(min(log, 700.0)))
        for (column, label), (log, claim) in sorted(strongest.items(), key=lambda pair: -pair[1][0])
    ]
    if not ranked:
        return []
    table = Table(
        [
            Column("subgroup", "subgroup", value=lambda line: line[0], right=False),
            Column("rows", "rows", ",", lambda line: line[1]),
            Column("claim", "strongest evidence against", value=lambda line: line[2], right=False),
            Column("evidence", "evidence", ".3g", lambda line: line[3]),
        ],
        ranked,
    )
    note = "Evidence against the probabilities of each subgroup; an alarm allows for all claims together."
    return ["<h2>Subgroups</h2>", f'<p class="soft">{note}</p>', table_of(table, "Subgroups")]
