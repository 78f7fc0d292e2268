"""The page of prediction sets: one HTML file with figures, and no other file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from verax.display.figures import Figure
from verax.display.marks import Ranged
from verax.inference.findings import Claim
from verax.report.figures import HALF, figure_html
from verax.report.plain import plain_page, save_page, table_of
from verax.wings.sets.figures import coverage_figure, sizes_figure, spans_figure
from verax.wings.sets.result import MOST_DRAWN, SetEvaluation


def sets_page(evaluation: SetEvaluation, *, title: str = "Prediction sets", source: str = "") -> str:
    """The page as text.

    Parameters
    ----------
    evaluation : SetEvaluation
        The sets, judged.
    title : str, default "Prediction sets"
        The title of the page.
    source : str, default ""
        Where the rows come from.

    Returns
    -------
    str
        HTML that needs nothing else.
    """
    short = Claim.TOO_NARROW in evaluation.verdict.claims
    main, *others = evaluation._tables()
    lines = [
        f'<p class="verdict{" alarm" if short else ""}">{escape(evaluation.verdict)}</p>',
        *(f'<p class="soft">{escape(note)}</p>' for note in evaluation._notes()),
        table_of(main, "Coverage, sizes and scores"),
        "<h2>Sizes</h2>",
        figure_html(sizes_figure(evaluation.sizes), "sizes", HALF),
    ]
    for i, (name, rows) in enumerate(evaluation._coverages().items()):
        lines.append(f"<h2>Coverage by {escape(name)}</h2>")
        lines.append(figure_html(_coverage(evaluation, name, rows), f"coverage-{i}"))
    if evaluation.spans:
        lines += [
            "<h2>Sets of ordered classes</h2>",
            figure_html(spans_figure(evaluation.spans[:MOST_DRAWN], evaluation.classes), "spans"),
        ]
    lines += ["<h2>Numbers</h2>", *(table_of(table, table.title, fold=True) for table in others)]
    return plain_page(title, lines, source)


def save_sets_page(evaluation: SetEvaluation, path: str | Path, *, source: str = "") -> None:
    """Write the page: whole or not at all.

    Parameters
    ----------
    evaluation : SetEvaluation
        The sets, judged.
    path : str or path
        The file.
    source : str, default ""
        Where the rows come from.
    """
    save_page(sets_page(evaluation, source=source), path)


def _coverage(evaluation: SetEvaluation, name: str, rows: Sequence[Ranged]) -> Figure:
    """The coverage of one breakdown; sizes are called by their number of classes."""
    named = [row._replace(name=_classes(row.name)) for row in rows] if name == "size" else rows
    return coverage_figure(evaluation, name, named)


def _classes(size: str) -> str:
    return f"{size} {'class' if size == '1' else 'classes'}"
