"""Pages of graded answers, of one model or several: one HTML file with drawings, no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from verax.analyses.comparison.result import Comparison
from verax.analyses.comparison.tables import grade_named, in_grades
from verax.analyses.grades.result import NOT_THE_ACCURACY, GradeCard
from verax.display.ticks import round_numbers
from verax.inference.intervals import Interval
from verax.report.plain import plain_page, save_page, table_of

# Of more models the best are drawn.
_MOST = 40
_WIDTH, _LINE, _LABEL = 700, 26, 190


def question_page(found: Comparison, *, title: str = "Which model is better?", source: str = "") -> str:
    """The page as text.

    Parameters
    ----------
    found : Comparison
        The comparison.
    title : str, default "Which model is better?"
        The title of the page.
    source : str, default ""
        Where the answers come from.

    Returns
    -------
    str
        HTML that needs nothing else.
    """
    lines = [
        f'<p class="verdict">{escape(found.verdict)}</p>',
        f'<p class="soft">{escape(found._heading().removeprefix("verax comparison: "))}</p>',
    ]
    lines += [f"<p>{escape(note)}</p>" for note in found.notes]
    for rule in found.models:
        lines.append(_models(found, rule))
    lines += [table_of(table, table.title or "Differences") for table in found._tables()]
    return plain_page(title, lines, source)


def save_question_page(found: Comparison, path: str | Path, *, source: str = "") -> None:
    """Write the page: whole or not at all.

    Parameters
    ----------
    found : Comparison
        The comparison.
    path : str or path
        The file.
    source : str, default ""
        Where the answers come from.
    """
    save_page(question_page(found, source=source), path)


def grade_page(
    card: GradeCard, *, name: str = "", source: str = "", held: Sequence[str] = (), command: str = ""
) -> str:
    """The page of one model as text.

    Parameters
    ----------
    card : GradeCard
        The grades of the model.
    name : str, default ""
        The name of the model.
    source : str, default ""
        Where the answers come from.
    held : sequence of str, default ()
        Bounds that the card was held to, a line each.
    command : str, default ""
        What made the page.

    Returns
    -------
    str
        HTML that needs nothing else.
    """
    heading = card._heading().removeprefix("verax grades: ")
    lines = [f'<p class="verdict">{escape(card.verdict)}</p>', f'<p class="soft">{escape(heading)}</p>']
    lines += [f"<p>{escape(note)}</p>" for note in card.notes]
    lines += [f"<p>{escape(line)}</p>" for line in held]
    level = f"{100 * card.confidence:g}%"
    drawn = {"task": card.tasks, **card.subgroups}
    for column, parts in drawn.items():
        of = [(label, own.mean, own.interval) for label, own in parts.items()]
        head = f"Mean grade by {column} with {level} confidence intervals (higher is better)"
        lines.append(_drawing(of[:_MOST], head))
    lines += [table_of(table, table.title or "Mean grades") for table in card._tables()]
    if card.card is not None:
        lines.append("<h2>Confidences as forecasts of being right</h2>")
        lines += [table_of(table, table.title or "Scores of confidences") for table in card.card._tables()]
        lines += [f'<p class="soft">{escape(note)}</p>' for note in (*card.card._notes(), NOT_THE_ACCURACY)]
    title = f"How good are the answers of {name}?" if name else "How good are the answers?"
    return plain_page(title, lines, "; ".join(filter(None, (source, command))))


def save_grade_page(card: GradeCard, path: str | Path, **about: Any) -> None:
    """Write the page of one model: whole or not at all.

    Parameters
    ----------
    card : GradeCard
        The grades of the model.
    path : str or path
        The file.
    **about : Any
        As for `grade_page`.
    """
    save_page(grade_page(card, **about), path)


def _models(found: Comparison, rule: str) -> str:
    """Mean grades or losses of models with their intervals, best first."""
    lines = [(own.name, own.mean, own.interval) for own in in_grades(found).models[rule][:_MOST]]
    level = f"{100 * found.confidence:g}%"
    graded = grade_named(rule) is not None
    head = "Mean grade" if graded else f"{rule}: mean loss"
    better = "higher" if graded else "lower"
    return _drawing(lines, f"{head} with {level} confidence intervals ({better} is better)")


def _drawing(given: Sequence[tuple[str, float, Interval]], heading: str) -> str:
    """Means with their intervals, below each other."""
    lines = [line for line in given if math.isfinite(line[1]) and line[2].defined]
    if not lines:
        return ""
    low = min(interval[0] for _, _, interval in lines)
    high = max(interval[1] for _, _, interval in lines)
    gap = 0.04 * (high - low) or 0.5
    low, high = low - gap, high + gap
    height = _LINE * len(lines) + 40

    def x(value: float) -> float:
        return _LABEL + (_WIDTH - _LABEL - 20) * (value - low) / (high - low)

    parts = [
        f"<h2>{escape(heading)}</h2>"
        f'<svg viewBox="0 0 {_WIDTH} {height}" xmlns="http://www.w3.org/2000/svg" role="img">'
    ]
    parts += [
        f'<line x1="{x(place):.1f}" x2="{x(place):.1f}" y1="4" y2="{height - 30}" stroke="var(--line)"/>'
        f'<text x="{x(place):.1f}" y="{height - 12}" text-anchor="middle">{place:.3g}</text>'
        for place in round_numbers(low, high, 4)
    ]
    for i, (name, mean, interval) in enumerate(lines):
        y = _LINE * i + 18
        a, b = (x(end) for end in interval)
        parts.append(
            f'<text x="{_LABEL - 10}" y="{y + 4}" text-anchor="end">{escape(name[-28:])}</text>'
            f'<line x1="{a:.1f}" x2="{b:.1f}" y1="{y}" y2="{y}" stroke="var(--soft)" stroke-width="3"/>'
            f'<circle cx="{x(mean):.1f}" cy="{y}" r="5" fill="var(--ink)"/>'
        )
    return "".join([*parts, "</svg>"])
