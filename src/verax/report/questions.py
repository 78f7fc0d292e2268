"""The page of a comparison by questions: one HTML file with drawings, no script."""

from __future__ import annotations

from html import escape
from pathlib import Path

from verax.analyses.comparison.result import Comparison
from verax.analyses.comparison.tables import grade_named, in_grades
from verax.analyses.words import title_of
from verax.display.figures import Dot
from verax.report.drawings import intervals
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
    for rule in comparison.models:
        lines += _models(comparison, rule)
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


def _models(comparison: Comparison, rule: str) -> list[str]:
    """Mean grades or losses of models with their intervals, best first, and their differences."""
    shown = in_grades(comparison)
    graded = grade_named(rule) is not None
    level = f"{100 * comparison.confidence:g}%"
    what = "Mean grade" if graded else f"Mean {title_of(rule)}"
    better = "higher" if graded else "lower"
    means = [Dot(line.name, line.mean, *line.interval) for line in shown.models[rule][:_MOST]]
    gaps = [
        Dot(
            f"{line.a} − {line.b}",
            line.difference,
            line.interval.low,
            line.interval.high,
            line.p_adjusted < 1 - comparison.confidence,
        )
        for line in shown.differences[rule][:_MOST]
    ]
    drawn = [
        f"<h2>{escape(what)}</h2>",
        intervals(means, f"{what} with {level} confidence intervals ({better} is better)."),
    ]
    if gaps:
        caption = (
            f"Differences with {level} confidence intervals; "
            f"{'positive: the first is better' if graded else 'negative: the first is better'}; orange: "
            "significant (Holm)."
        )
        drawn += ["<h3>Differences</h3>", intervals(gaps, caption, mark=0.0)]
    return drawn
