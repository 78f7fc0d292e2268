"""The page of graded answers of one model: one HTML file with figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from verax.analyses.calibration.curves import ReliabilityCurve
from verax.analyses.words import number
from verax.common.texts import shortened
from verax.display.axes import Axis
from verax.display.figures import Figure, rows_figure
from verax.display.marks import Band, Guide, Line, Mark, Ranged, Ranges
from verax.inputs.groups import in_words
from verax.report.figures import HALF, figure_html
from verax.report.plain import facts, folded, plain_page, save_page, table_of
from verax.report.reliability import on_grid
from verax.wings.evals.result import NOT_THE_ACCURACY, GradeCard

# Of more models the best are drawn.
_MOST = 40
# Texts of answers are cut at this number of characters.
_LONGEST = 240


def grade_page(
    card: GradeCard,
    *,
    name: str = "",
    source: str = "",
    verdicts: Sequence[str] = (),
    command: str = "",
    read: Sequence[str] = (),
    curve: ReliabilityCurve | None = None,
    worst: Sequence[Mapping[str, Any]] = (),
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
    verdicts : sequence of str, default ()
        Bounds that the card was held to, a line each.
    command : str, default ""
        What made the page.
    read : sequence of str, default ()
        How the file was read, a line each.
    curve : ReliabilityCurve, optional
        The reliability of the confidences.
    worst : sequence of mapping, default ()
        The worst answers: `row`, `id`, `grade`, `confidence` and, in `about`, texts by their names.

    Returns
    -------
    str
        HTML that needs nothing else.
    """
    lines = [f'<p class="verdict">{escape(card.verdict)}</p>', facts(_facts(card))]
    lines += [f"<p>{escape(note)}</p>" for note in (*card.notes, *verdicts)]
    level = f"{100 * card.confidence:g}% confidence interval"
    for i, (column, parts) in enumerate({"task": card.tasks, **card.subgroups}.items()):
        rows = [
            Ranged(label, part.mean, *part.interval) for label, part in sorted(parts.items(), key=_in_order)
        ]
        if rows:
            ranges, x = Ranges("mean grade", rows[:_MOST], level), Axis("mean grade")
            figure = rows_figure("", ranges, x, column, Guide("all answers", "x", card.mean))
            heading = f"<h2>Mean grade by {escape(column)}</h2>"
            lines += [heading, figure_html(figure, f"grades-{i}")]
    lines += [
        "<h2>Mean grades</h2>",
        *(table_of(table, table.title or "Mean grades") for table in card._tables()),
    ]
    if card.card is not None:
        lines.append("<h2>Confidences as forecasts of being right</h2>")
        lines += [] if curve is None else [_reliability(curve)]
        titles = ("Scores of confidences", "Calibration of confidences")
        for title, table in zip(titles, card.card._tables(), strict=False):
            lines.append(table_of(table, table.title or title, fold=True))
        lines += [f'<p class="soft">{escape(note)}</p>' for note in (*card.card._notes(), NOT_THE_ACCURACY)]
    if worst:
        lines += [
            "<h2>Worst answers</h2>",
            '<p class="soft">The lowest grades; of equal ones, the highest confidence first.</p>',
            f'<ol class="cases">{"".join(map(_case, worst))}</ol>',
        ]
    if read:
        lines += [
            "<h2>Data checks</h2>",
            folded(
                "How the file was read", ["<ul>", *(f"<li>{escape(line)}</li>" for line in read), "</ul>"]
            ),
        ]
    title = f"How good are the answers of {name}?" if name else "How good are the answers?"
    return plain_page(title, lines, "; ".join(filter(None, (source, command))))


def _facts(card: GradeCard) -> list[tuple[str, str]]:
    pairs = [("answers", f"{card.answers.asked:,}"), ("graded", f"{card.n_rows:,}")]
    if card.n_groups is not None:
        pairs.append(("groups", in_words(card.n_groups).removesuffix(" groups")))
    if math.isfinite(card.mean):
        pairs.append(("mean grade", number(card.mean, 3)))
    return pairs


def _in_order(part: tuple[str, object]) -> tuple[float, str]:
    """Numbers in their order, before other names."""
    try:
        return float(part[0]), part[0]
    except ValueError:
        return math.inf, part[0]


def _reliability(curve: ReliabilityCurve) -> str:
    x, happened, low, high = on_grid(curve)[:, :4].T.tolist()
    marks: list[Mark] = [Line("calibrated", [0, 1], [0, 1], "soft", dash=1), Line("observed", x, happened)]
    if curve.band is not None:
        marks.append(Band("expected range if calibrated", x, low, high))
    facts = [Ranged("miscalibration", curve.components.miscalibration)]
    across, upward = Axis("confidence", 0, 1), Axis("share of right answers", 0, 1)
    figure = Figure("", marks, across, upward, facts=facts)
    return figure_html(figure, "reliability", HALF)


def _case(case: Mapping[str, Any]) -> str:
    named = f"id {case['id']}" if case["id"] is not None else f"row {case['row']}"
    sure = case["confidence"]
    graded = f"grade {case['grade']:g}" + ("" if sure is None else f", confidence {number(sure, 2)}")
    about = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(shortened(str(text), _LONGEST))}</dd>"
        for name, text in case["about"].items()
        if text is not None
    )
    return f"<li><p><b>{escape(named)}:</b> {escape(graded)}</p>{about and f'<dl>{about}</dl>'}</li>"


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
