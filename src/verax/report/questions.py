"""The page of a comparison by questions: one HTML file with figures."""

from __future__ import annotations

import math
from html import escape
from pathlib import Path

from verax.analyses.comparison.result import Comparison
from verax.analyses.comparison.tables import grade_named
from verax.analyses.words import number, title_of
from verax.display.axes import Axis
from verax.display.figures import rows_figure
from verax.display.marks import Guide, Ranged, Ranges
from verax.report.figures import figure_html
from verax.report.plain import plain_page, save_page, table_of

# Of more models or differences the first are drawn.
_MOST = 40


def question_page(comparison: Comparison, *, title: str = "Which model is better?", source: str = "") -> str:
    """The page as text.

    Parameters
    ----------
    comparison : Comparison
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
    heading = comparison._heading().removeprefix("verax comparison: ")
    lines = [f'<p class="verdict">{escape(comparison.verdict)}</p>', f'<p class="soft">{escape(heading)}</p>']
    lines += [f"<p>{escape(note)}</p>" for note in comparison.notes]
    for i, rule in enumerate(comparison.models):
        lines += _models(comparison, rule, f"rule-{i}")
    lines += [
        "<h2>Numbers</h2>",
        *(table_of(table, table.title or "Differences") for table in comparison._tables()),
    ]
    return plain_page(title, lines, source)


def save_question_page(comparison: Comparison, path: str | Path, *, source: str = "") -> None:
    """Write the page: whole or not at all.

    Parameters
    ----------
    comparison : Comparison
        The comparison.
    path : str or path
        The file.
    source : str, default ""
        Where the answers come from.
    """
    save_page(question_page(comparison, source=source), path)


def _models(comparison: Comparison, rule: str, ident: str) -> list[str]:
    """Mean grades or losses of models with their intervals, best first, and their differences."""
    graded = grade_named(rule) is not None
    level = f"{100 * comparison.confidence:g}%"
    what = "Mean grade" if graded else f"Mean {title_of(rule)}"
    better = "higher" if graded else "lower"
    interval = f"{level} confidence interval"
    rows = [_finite(Ranged(line.name, line.mean, *line.interval)) for line in comparison.models[rule][:_MOST]]
    gaps = [
        _finite(
            Ranged(
                f"{line.a} − {line.b}",
                line.difference,
                line.interval.low,
                line.interval.high,
                line.p_adjusted < 1 - comparison.confidence,
            )
        )
        for line in comparison.differences[rule][:_MOST]
    ]
    means = rows_figure("", Ranges(what, rows, interval), Axis(f"{what}, {better} is better"), "Model")
    drawn = [f"<h2>{escape(what)}</h2>", figure_html(means, f"{ident}-means")]
    if gaps:
        x = Axis(f"difference; {'positive' if graded else 'negative'}: the first is better")
        ranges = Ranges("difference", gaps, interval, "significant (Holm)")
        differences = rows_figure("", ranges, x, "Models", Guide("no difference", "x", 0.0))
        drawn += ["<h3>Differences</h3>", figure_html(differences, f"{ident}-differences")]
    return drawn


def _finite(row: Ranged) -> Ranged:
    """A row that says in words what cannot be drawn."""
    return row if math.isfinite(row.value) else row._replace(note=number(row.value))
