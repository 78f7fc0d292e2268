"""The page of a comparison of graded answers: one HTML file with drawings, no script and no other file."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path

from verax.analyses.comparison.result import Comparison
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
        f'<p class="verdict">{escape(found.headline)}</p>',
        f'<p class="soft">{escape(found._heading().removeprefix("verax comparison: "))}</p>',
    ]
    notes = [*found.undecided, *found.notes]
    lines += [f"<p>{escape(note)}</p>" for note in notes]
    for rule in found.models:
        lines.append(_drawing(found, rule))
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


def _drawing(found: Comparison, rule: str) -> str:
    """Mean losses of models with their intervals, best first."""
    models = [m for m in found.models[rule][:_MOST] if math.isfinite(m.mean) and m.interval.defined]
    if not models:
        return ""
    low = min(m.interval[0] for m in models)
    high = max(m.interval[1] for m in models)
    gap = 0.04 * (high - low) or 0.5
    low, high = low - gap, high + gap
    height = _LINE * len(models) + 40

    def x(value: float) -> float:
        return _LABEL + (_WIDTH - _LABEL - 20) * (value - low) / (high - low)

    level = f"{100 * found.confidence:g}%"
    parts = [
        f"<h2>{escape(rule)}: mean loss with {level} confidence intervals (lower is better)</h2>"
        f'<svg viewBox="0 0 {_WIDTH} {height}" xmlns="http://www.w3.org/2000/svg" role="img">'
    ]
    parts += [
        f'<line x1="{x(place):.1f}" x2="{x(place):.1f}" y1="4" y2="{height - 30}" stroke="var(--line)"/>'
        f'<text x="{x(place):.1f}" y="{height - 12}" text-anchor="middle">{place:.3g}</text>'
        for place in (low + (high - low) * i / 4 for i in range(5))
    ]
    for i, model in enumerate(models):
        y = _LINE * i + 18
        a, b = (x(end) for end in model.interval)
        parts.append(
            f'<text x="{_LABEL - 10}" y="{y + 4}" text-anchor="end">{escape(model.name[-28:])}</text>'
            f'<line x1="{a:.1f}" x2="{b:.1f}" y1="{y}" y2="{y}" stroke="var(--soft)" stroke-width="3"/>'
            f'<circle cx="{x(model.mean):.1f}" cy="{y}" r="5" fill="var(--ink)"/>'
        )
    return "".join([*parts, "</svg>"])
